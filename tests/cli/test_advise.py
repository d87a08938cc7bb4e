"""`bloom advise`: what it refuses, what it writes, and that the commands it prints run as they are pasted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.advised_lakes import LAKES, write
from support.cli import Bloom

import bloomcli

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing argument 'FILE...'"),
        (["a.parquet", "--budget", "2%%"], "'2%%' is not a budget"),
        (["a.parquet", "--sample", "0%"], "'0%' is not a valid sample"),
        (["a.parquet", "--fpp", "2"], "lies between 0 and 1"),
        (["a.parquet", "--table-name", "orders"], "a table's name is for finding it in queries"),
        (["a.parquet", "--overwrite"], "--overwrite is for --policy"),
        (["a.parquet", "--readers", "sparc"], "unknown reader 'sparc'"),
        (["a.parquet", "--policy", "s3://b/bloom.toml"], "--policy writes to this machine"),
        (["a.parquet", "--policy", "pyproject.toml"], "--policy doesn't write into pyproject.toml"),
        (["a.parquet", "--policy", "there.toml"], "there.toml: the policy exists already"),
        (["a.parquet", "--policy", "a.parquet", "--overwrite"], "the report would replace a data file"),
        (["a.parquet", "--queries", "q.sql", "--dialect", "sparc"], "no SQL dialect 'sparc'"),
        (["a.parquet", "--columns", "no_such"], "no column 'no_such'"),
        (["a.parquet", "--table", "t"], "--table takes no files"),
    ],
)
def test_what_can_not_be_meant_is_a_usage_error(
    bloom: Bloom, arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(LAKES["general"], tmp_path / "lake")
    (tmp_path / "lake" / "part-00.parquet").rename("a.parquet")
    Path("there.toml").write_text("")
    Path("q.sql").write_text("SELECT * FROM t WHERE id = 1;")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = bloom("advise", *arguments)
    assert done.code == 2
    assert text in done.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake in a folder with an odd name, from which commands name it."""
    folder = tmp_path / "work here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(LAKES["general"], folder / "my lake")
    return Path("my lake")


def commands(text: str) -> list[list[str]]:
    """The `bloom` command lines that a report ends with."""
    lines = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  bloom ")]
    return [line for line in lines if line[0] != "repair"]  # page indexes have tests of their own


def filtered(lake: Path) -> set[str]:
    """The columns that have filters in all row groups of all files."""
    found = [{fact.column: 0 for fact in bloomcli.inspect(path).filters} for path in sorted(lake.iterdir())]
    assert all(one == found[0] for one in found)
    return set(found[0])


def test_the_printed_command_adds_what_is_recommended(bloom: Bloom, lake: Path) -> None:
    advised = bloom("advise", str(lake), "--readers", "spark,trino")
    assert advised.code == 0, advised.err
    (add,) = commands(advised.out)
    assert add[:2] == ["add", "my lake"]
    added = bloom(*add)
    assert added.code == 0, added.err
    assert filtered(lake) == {"id", "word", "user.email"}
    looked_at = ["--columns", "id,word,user.email,tenant,sparse"]
    report = bloom("advise", str(lake), "--readers", "spark,trino", *looked_at, "--format", "json").json
    assert report["command"] is None, "with these filters, nothing is left to add"
    columns = {column["column"]: column for column in report["columns"]}
    for name in filtered(lake):
        assert (columns[name]["reason_id"], columns[name]["existing"]["judgement"]) == ("has-filters", "worth")
    for name in ("tenant", "sparse"):  # of few values in a row group, in which both readers use dictionaries
        assert columns[name]["reason_id"] == "dictionary"


@pytest.mark.parametrize(
    ("asked", "rate", "lowered"),
    [([], "0.001", False), (["--fpp", "0.0001"], "0.0001", False), (["--fpp", "0.05"], "0.001", True)],
)
def test_the_printed_command_meets_a_policy_with_a_lower_rate(
    bloom: Bloom, lake: Path, asked: list[str], rate: str, lowered: bool
) -> None:
    Path("bloom.toml").write_text("max-fpp = 0.001\n")
    done = bloom("advise", lake, "--columns", "id", *asked)
    assert f"--fpp {rate} " in done.out
    assert ("--fpp 0.05 is above the policy's max-fpp, so 0.001 was used" in done.err) == lowered


def test_columns_of_several_rates_have_a_command_each_and_all_of_them_run(bloom: Bloom, lake: Path) -> None:
    hot = [f"SELECT * FROM t WHERE id = {number * 157};" for number in range(500)]
    Path("log.sql").write_text("\n".join(hot) + "\nSELECT 1 FROM t WHERE sparse IN (60000, 90000, 90001);")
    arguments = ["advise", str(lake), "--queries", "log.sql", "--budget", "124KiB"]
    done = bloom(*arguments, "--report", "json=advice.json")
    report = json.loads(Path("advice.json").read_text())
    rates = {column["column"]: column["fpp"] for column in report["columns"] if column["recommended"]}
    assert rates["id"] == 0.01
    assert len(set(rates.values())) > 1
    assert report["budget_used"] <= report["budget_bytes"] == 124 * 1024
    lines = commands(done.out)
    assert len(lines) == len(set(rates.values()))
    for line in lines:
        done = bloom(*line)
        assert done.code == 0, done.err
    assert filtered(lake) == set(rates)
    for path in lake.iterdir():
        for fact in bloomcli.inspect(path).filters:
            assert fact.fpp is not None
            assert fact.fpp <= rates[fact.column]
    used = sum(fact.bitset_bytes or 0 for path in lake.iterdir() for fact in bloomcli.inspect(path).filters)
    assert used == pytest.approx(report["budget_used"], rel=0.15)


def test_a_policy_has_what_is_recommended_and_add_and_validate_take_it(bloom: Bloom, lake: Path) -> None:
    advise = ("advise", str(lake), "--columns", "id,seq,tenant", "--policy", "advised.toml")
    done = bloom(*advise)
    assert done.code == 0, done.err
    last = done.out.splitlines()[-1]
    assert last == "wrote advised.toml; now: bloom add 'my lake' --policy advised.toml --in-place"
    assert bloom("validate", str(lake), "--policy", "advised.toml").code == 1
    added = bloom(*shlex.split(last.partition("now: bloom ")[2]))
    assert added.code == 0, added.err
    assert filtered(lake) == {"id", "tenant"}
    valid = bloom("validate", str(lake), "--policy", "advised.toml", "--deep")
    assert valid.code == 0, valid.out

    assert bloom(*advise).code == 2
    again = bloom(*advise, "--overwrite", "--format", "json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["command"] is None
    valid = bloom("validate", str(lake), "--policy", "advised.toml")
    assert valid.code == 0, "filters that are there and good stay required"
    assert "require = [" in Path("advised.toml").read_text()


def test_a_policy_is_met_by_files_that_lack_some_of_its_columns(bloom: Bloom, lake: Path) -> None:
    files = sorted(lake.iterdir())
    for number, path in enumerate(files):
        table = pq.read_table(path)
        own = pa.array([f"{(row * 7919 + number) % 1_000_003:07}" for row in range(len(table))])
        names = ["id", "[a] own!" if number % 2 else " own"]
        pq.write_table(pa.table([table["id"], own], names), path)
    done = bloom("advise", str(lake), "--policy", "advised.toml")
    assert "it refuses files that lack one of these columns" in done.out
    (line,) = commands(done.out)
    assert bloom(*line).code == 2
    added = bloom(*shlex.split(done.out.splitlines()[-1].partition("now: bloom ")[2]))
    assert added.code == 0, added.out
    written = [{fact.column for fact in bloomcli.inspect(path).filters} for path in files]
    assert all(columns == {"id", ("[a] own!" if n % 2 else " own")} for n, columns in enumerate(written))
    valid = bloom("validate", str(lake), "--policy", "advised.toml", "--deep")
    assert valid.code == 0, valid.out


def test_a_policy_is_not_written_where_no_filter_is_worth_it(bloom: Bloom, lake: Path) -> None:
    done = bloom("advise", str(lake), "--columns", "seq,status", "--policy", "none.toml")
    assert done.code == 0
    assert "no new filter is recommended" in done.out
    assert "none.toml isn't written" in done.err
    assert not Path("none.toml").exists()


def test_filters_that_save_nothing_or_are_too_large_have_commands_that_run(bloom: Bloom, lake: Path) -> None:
    bloomcli.add([lake], ["seq"], in_place=True)
    bloomcli.add([lake], ["id"], in_place=True, ndv=100_000)
    before = sum(path.stat().st_size for path in lake.iterdir())
    advised = bloom("advise", str(lake), "--columns", "seq,id")
    fold, remove = commands(advised.out)
    assert (fold[0], remove[0]) == ("fold", "remove")
    for line in (fold, remove):
        done = bloom(*line)
        assert done.code == 0, done.err
    assert filtered(lake) == {"id"}
    assert sum(path.stat().st_size for path in lake.iterdir()) < before
    (_, seq) = bloom("advise", str(lake), "--columns", "seq,id", "--format", "json").json["columns"]
    assert (seq["column"], seq["reason_id"], seq["existing"]) == ("seq", "sorted", None) or not seq["existing"][
        "filters"
    ]


def test_queries_choose_the_columns_and_their_values_stay_out_of_the_report(bloom: Bloom, lake: Path) -> None:
    Path("log.sql").write_text(
        "SELECT * FROM orders WHERE id = 4711 AND user.email = 'a secret';\n"
        "SELECT * FROM orders o WHERE o.status = 'paid';\n"
        "SELECT * FROM orders WHERE seq > 987654321;\n"
    )
    done = bloom("advise", str(lake), "--queries", "log.sql", "--format", "json", "--report", "text=advice.txt")
    assert done.code == 0, done.err
    text = Path("advice.txt").read_text()
    for said in (done.out, text):
        assert "a secret" not in said
        assert "987654321" not in said
    reasons = {column["column"]: column["reason_id"] for column in done.json["columns"]}
    assert reasons["id"] == "saves"
    assert reasons["status"] in {"few-values", "costs-more"}
    assert {name for name, reason in reasons.items() if reason == "not-queried"} >= {"tenant", "word", "sparse"}
    assert "3 statements, 3 are about these files" in text
    assert "1 predicate of the queries can't use a filter" in text


def test_quiet_prints_nothing_and_other_forms_stay(bloom: Bloom, lake: Path) -> None:
    arguments = ["advise", str(lake), "--columns", "id", "--quiet"]
    assert bloom(*arguments).out == ""
    assert bloom(*arguments, "--format", "csv").out.startswith("column,type,recommended,reason")


def test_files_of_a_delta_table_are_changed_by_the_table(bloom: Bloom, lake: Path) -> None:
    """`bloom add --in-place` refuses to change them: the log has their sizes."""
    (lake / "_delta_log").mkdir()
    advised = bloom("advise", str(lake / "part-00.parquet"), "--columns", "id")
    assert advised.code == 0, advised.err
    (add,) = commands(advised.out)
    root = f"delta.`{lake.absolute()}`"
    assert add[:3] == ["add", "--table", root]
    assert "--in-place" not in add
    assert "is a Delta table" in advised.out
    report = json.loads(bloom("advise", str(lake), "--columns", "id", "--format", "json").out)
    assert shlex.split(report["command"])[1:4] == ["add", "--table", root]
    assert "is a Delta table" in report["in_table"]


def test_the_table_of_iceberg_files_is_the_users_to_name(bloom: Bloom, lake: Path) -> None:
    (lake / "metadata").mkdir()
    (lake / "metadata" / "v1.metadata.json").write_text("{}")
    (lake / "data").mkdir()
    for path in list(lake.glob("*.parquet")):
        path.rename(lake / "data" / path.name)
    advised = bloom("advise", str(lake / "data"), "--columns", "id")
    assert advised.code == 0, advised.err
    (add,) = commands(advised.out)
    assert add[:3] == ["add", "--table", "CATALOG.DATABASE.TABLE"]
    assert "put the table's name for CATALOG.DATABASE.TABLE" in " ".join(advised.out.split())


def test_the_command_for_files_with_a_summary_next_to_them_writes_copies(bloom: Bloom, lake: Path) -> None:
    path = lake / "part-00.parquet"
    (lake / "_metadata").write_bytes(b"PAR1")
    advised = bloom("advise", str(path), "--columns", "id")
    (add,) = commands(advised.out)
    assert add[-2:] == ["-o", "with-filters-part-00.parquet"]
    added = bloom(*add)
    assert added.code == 0, added.err


def _damaged(path: Path) -> Path:
    """A file whose footer is whole, and whose pages are not."""
    data = bytearray((ROOT / "fixtures" / "parquet" / "orders.parquet").read_bytes())
    data[3000:20_000] = bytes(value ^ 0x5A for value in data[3000:20_000])
    path.write_bytes(data)
    return path


def test_a_damaged_file_is_an_error_and_not_a_file_without_values(bloom: Bloom, tmp_path: Path) -> None:
    path = _damaged(tmp_path / "damaged.parquet")
    done = bloom("advise", path, "--format", "json")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"bloom: {path}: the page can't be decompressed")
    assert "\nhint: " in done.err


def test_files_that_fail_are_named_on_standard_error_beside_the_advice_on_the_others(
    bloom: Bloom, tmp_path: Path
) -> None:
    damaged = _damaged(tmp_path / "damaged.parquet")
    (tmp_path / "orders.parquet").write_bytes((ROOT / "fixtures" / "parquet" / "orders.parquet").read_bytes())
    done = bloom("advise", tmp_path, "--format", "json")
    assert done.code == 3
    assert [path for path, _ in done.json["failed"]] == [str(damaged)]
    assert done.err.startswith(f"bloom: {damaged}: the page can't be decompressed")
    assert not any("no row group with values" in column["reason"] for column in done.json["columns"])
