"""bloom validate as a gate: policies, formats, samples, baselines, rules explained; what it says of misuse."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support import datasets
from support.cli import Bloom
from support.processes import started

import bloomcli
from bloomcli.policy.policy_file import load


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six sound files with filters on id, below the working folder."""
    monkeypatch.chdir(tmp_path)
    root = datasets.plain(tmp_path / "lake", 6)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True)
    return Path("lake")


# --- the policy


def test_init_writes_a_policy_that_the_dataset_passes_and_never_over_one(bloom: Bloom, lake: Path) -> None:
    made = bloom("validate", lake, "--init")
    assert (made.code, made.err) == (0, "")
    assert made.out == "wrote bloom.toml; now: bloom validate lake\n"
    assert 'require = [\n  "id"' in Path("bloom.toml").read_text()
    passed = bloom("validate", lake)
    assert passed.code == 0
    assert "bloom.toml" in passed.out
    again = bloom("validate", lake, "--init")
    assert again.code == 2
    assert "the policy exists already" in again.err
    assert bloom("validate", lake, "--init", "--policy", "other.toml").code == 0
    assert Path("other.toml").read_bytes() == Path("bloom.toml").read_bytes()


def test_init_reports_what_it_left_out_and_makes_nothing_of_nothing(bloom: Bloom, lake: Path) -> None:
    Path("lake/cut.parquet").write_bytes(b"PAR1 cut")
    made = bloom("validate", lake, "--init")
    assert made.code == 0
    assert "left out: lake/cut.parquet: " in made.err
    none = bloom("validate", "lake/cut.parquet", "--init", "--policy", "none.toml")
    assert none.code == 3
    assert not Path("none.toml").exists()


def test_init_reports_what_the_files_fail_all_the_same(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(ROOT) / "fixtures" / "parquet" / "spark_types.parquet", "types.parquet")
    made = bloom("validate", "types.parquet", "--init")
    assert made.code == 0
    assert made.err == ("these files fail with any limits: filter-boolean (2); bloom.toml lists where\n")
    assert "filter-boolean: 2 findings, the first: flag in types.parquet" in Path("bloom.toml").read_text()
    failing = bloom("validate", "types.parquet", "--format", "json").json
    assert {finding["id"] for finding in failing["findings"]} == {"filter-boolean"}
    Path("bloom.toml").unlink()
    bloomcli.remove("types.parquet", columns=["flag"], in_place=True)
    assert bloom("validate", "types.parquet", "--init").err == ""
    assert bloom("validate", "types.parquet").code == 0


def test_the_command_after_init_takes_a_tables_schema_elsewhere(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name(f"{tmp_path.name} elsewhere")
    elsewhere.mkdir()
    (elsewhere / "t.sql").write_text("id BIGINT, name STRING")
    for schema in (elsewhere / "t.sql", (elsewhere / "t.sql").as_uri()):
        made = bloom("validate", lake, "--init", "--readers", "trino", "--table-schema", schema)
        line = made.out.partition("now: bloom ")[2]
        assert "--policy bloom.toml" in line
        assert bloom(*shlex.split(line)).code == 0
        Path("bloom.toml").unlink()


def test_init_looks_at_what_was_requested(bloom: Bloom, lake: Path) -> None:
    bloomcli.add(next(lake.rglob("*.parquet")), ["name"], in_place=True)
    Path("t.sql").write_text("id BIGINT, name STRING")
    Path("sub").mkdir()
    made = bloom(
        "validate", lake, "--init", "--policy", "sub/p.toml", "--sample", "2", "--seed", "1", "-c", "id",
        "--readers", "pyspark,trino", "--table-schema", "t.sql",
    )  # fmt: skip
    assert (made.code, made.err) == (0, "")
    assert made.out == "wrote sub/p.toml; now: bloom validate lake --policy sub/p.toml\n"
    policy = load("sub/p.toml")
    assert policy.whole.require == ("id",)
    assert policy.whole.readers == ("spark", "trino")
    assert policy.whole.table is not None
    text = Path("sub/p.toml").read_text()
    assert "from 2 files (2 parquet)" in text
    assert "They are a sample of 6 files" in text
    assert 'table-schema = "../t.sql"' in text
    missing = bloom("validate", lake, "--init", "-c", "nmae")
    assert missing.code == 2
    assert "no column 'nmae'; did you mean name?" in missing.err
    assert not Path("bloom.toml").exists()


@pytest.mark.parametrize(
    "option",
    [
        ("--require", "id"), ("--max-fpp", "0.1"), ("--max-oversize", "4"), ("--deep",), ("--no-policy",),
        ("--sample-row-groups", "5%"), ("--baseline", "b.json"), ("--update-baseline",), ("--max-per-rule", "3"),
        ("--report", "json=x"), ("--format", "json"), ("--format", "text"),
    ],
    ids="".join,
)  # fmt: skip
def test_init_refuses_what_it_would_not_heed(bloom: Bloom, lake: Path, option: tuple[str, ...]) -> None:
    refused = bloom("validate", lake, "--init", *option)
    assert (refused.code, refused.out) == (2, "")
    assert f"--init takes no {option[0]}\n" in refused.err
    assert not Path("bloom.toml").exists()


def test_init_never_takes_the_place_of_a_policy_without_a_word(bloom: Bloom, lake: Path) -> None:
    into = bloom("validate", lake, "--init", "--policy", "pyproject.toml")
    assert into.code == 2
    assert "doesn't write into pyproject.toml" in into.err
    assert not Path("pyproject.toml").exists()
    Path("pyproject.toml").write_text('[tool.bloom]\nrequire = ["id"]\n')
    refused = bloom("validate", lake, "--init")
    assert refused.code == 2
    assert "pyproject.toml: the policy exists already, as [tool.bloom]" in refused.err
    assert not Path("bloom.toml").exists()
    assert bloom("validate", lake, "--init", "--policy", "other.toml").code == 0
    below = bloom("validate", lake, "--init", "--policy", "lake/bloom.toml")
    assert below.code == 0
    assert below.err == "lake/bloom.toml replaces pyproject.toml as the policy of its directory\n"


def test_a_required_column_whose_name_looks_like_a_glob_is_itself(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"a[0]": range(10), "a0": range(10)})
    pq.write_table(table, path, bloom_filter_options={"a[0]": {"ndv": 10, "fpp": 0.01}})
    assert bloom("validate", "--no-policy", path, "--require", "a[0]").code == 0
    assert bloom("validate", "--no-policy", path, "--require", "a*").code == 1


def test_init_of_a_folder_of_other_kinds_of_files_is_a_usage_error(bloom: Bloom, lake: Path) -> None:
    Path("texts").mkdir()
    Path("texts/1.txt").write_text("hi")
    refused = bloom("validate", "texts", "--init")
    assert (refused.code, refused.out) == (2, "")
    assert "none of the files is of a known format" in refused.err
    assert not Path("bloom.toml").exists()


# --- formats


def test_every_format_says_what_was_found_exits_alike_and_goes_to_a_file_too(bloom: Bloom, lake: Path) -> None:
    asked = ("validate", lake, "--no-policy", "--require", "name")
    said = {form: bloom(*asked, "--format", form) for form in ("text", "json", "junit", "sarif", "github")}
    assert {done.code for done in said.values()} == {1}
    done = bloom(*asked, *(word for form in said for word in ("--report", f"{form}=out.{form}")))
    saved = {form: Path(f"out.{form}").read_text() for form in said}
    assert done.out.startswith("error filter-required")
    assert saved["github"] == said["github"].out
    assert saved["text"].startswith("error filter-required")
    assert json.loads(saved["json"])["findings"] == said["json"].json["findings"]
    assert bloom(*asked, "--max-per-rule", "2").out.count("lake/part=") == 4, "two findings, and the hint for them"
    document = said["json"].json
    assert document["schema"] == "bloom/validate/1"
    assert [f["id"] for f in document["findings"]] == ["filter-required"] * 6
    assert {f["path"] for f in document["findings"]} == {str(p) for p in lake.rglob("*.parquet")}
    for text in (said["junit"].out, saved["junit"]):
        assert ET.fromstring(text).attrib["failures"] == "6"
    for sarif in (said["sarif"].json, json.loads(saved["sarif"])):
        assert sarif["version"] == "2.1.0"
        assert len(sarif["runs"][0]["results"]) == 6
    assert said["github"].out.count("::error ") >= 6


def test_a_file_that_cant_be_read_is_in_machine_reports_and_an_error_to_a_person(bloom: Bloom, lake: Path) -> None:
    cut = lake / "cut.parquet"
    cut.write_bytes(b"PAR1 cut")
    refused = bloom("validate", "--no-policy", cut)
    assert (refused.code, refused.out) == (3, "")
    assert "cut.parquet" in refused.err
    for form in ("junit", "sarif", "github"):
        said = bloom("validate", "--no-policy", cut, "--format", form)
        assert said.code == 3
        assert "cut.parquet" in said.out
    saved = bloom("validate", "--no-policy", cut, "--report", "junit=out.xml")
    assert saved.code == 3
    assert ET.parse("out.xml").getroot().attrib["errors"] == "1"


def test_a_report_replaces_nothing_but_reports(bloom: Bloom, lake: Path) -> None:
    """Not data, not another file of the run, not a device."""
    data = next(lake.rglob("*.parquet"))
    Path("p.toml").write_text("")
    assert bloom("validate", lake, "--no-policy", "--baseline", "b.json", "--update-baseline").code == 0
    os.link(data, "linked")
    Path("symbolic").symlink_to(data)
    run = ("validate", lake, "--policy", "p.toml", "--baseline", "b.json", "--update-baseline")
    for asked, said in (
        ((f"json={data}",), "would replace a data file"),
        (("json=linked",), "would replace a data file"),
        (("json=symbolic",), "would replace a data file"),
        (("text=p.toml",), "would replace another file of this run"),
        (("text=./b.json",), "would replace another file of this run"),
        (("json=out", "text=./out"), "would replace another file of this run"),
    ):
        before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        done = bloom(*run, *(part for one in asked for part in ("--report", one)))
        assert (done.code, done.out) == (2, "")
        assert said in done.err
        assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_report_goes_through_a_pipe_or_a_device(bloom: Bloom, lake: Path) -> None:
    os.mkfifo("pipe")
    with started(["cat", "pipe"], stdout=subprocess.PIPE) as cat:
        done = bloom("validate", lake, "--no-policy", "--report", "json=pipe")
        assert done.code == 0, done.err
        assert json.loads(cat.communicate()[0])["ok"] is True
    assert Path("pipe").is_fifo()
    command = [sys.executable, "-m", "bloomcli", "validate", lake, "--no-policy", "--report", "json=/dev/stdout"]
    whole = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": ROOT})
    assert '"ok": true' in whole.stdout
    with Path("kept").open("w") as kept:
        subprocess.run(command, stdout=kept, check=True, env=os.environ | {"PYTHONPATH": ROOT})
    assert "checked" in Path("kept").read_text()
    assert '"ok": true' in Path("kept").read_text()
    assert bloom("validate", lake, "--no-policy", "--report", "text=/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_a_report_that_cant_be_written_costs_the_others_nothing(bloom: Bloom, lake: Path) -> None:
    Path("folder").mkdir()
    early = bloom("validate", lake, "--no-policy", "--report", "json=folder")
    assert (early.code, early.out) == (3, "")
    assert "is a directory" in early.err
    if Path("/dev/full").exists():
        late = bloom("validate", lake, "--no-policy", "-r", "name", "--report", "json=/dev/full")
        assert late.code == 3
        assert "no space left" in late.err
        assert "filter-required" in late.out


def test_what_is_found_before_values_cant_be_read_is_reported(bloom: Bloom, lake: Path) -> None:
    path = datasets.write(lake / "two.parquet", 200)
    bloomcli.add(path, ["id", "name"], in_place=True)
    data = bytearray(path.read_bytes())
    fact = next(f for f in bloomcli.inspect(path).filters if f.column == "id")
    assert fact.length is not None
    assert fact.bitset_bytes is not None
    start = fact.offset + fact.length - fact.bitset_bytes
    data[start : start + fact.bitset_bytes] = bytes(fact.bitset_bytes)
    at = pq.read_metadata(path).row_group(1).column(1).dictionary_page_offset
    data[at + 30 : at + 70] = b"\xff" * 40  # behind the page's header, which `validate` would find fault with
    path.write_bytes(data)
    for place in (path, lake):
        done = bloom("validate", place, "--no-policy", "--deep", "-f", "json")
        assert done.code == 3
        said = json.loads(done.out)
        assert "filter-all-zero" in {finding["id"] for finding in said["findings"]}
        assert said["ok"] is False
    alone = bloom("validate", path, "--no-policy", "--deep")
    assert alone.code == 3
    assert "filter-all-zero" in alone.out
    assert "could not be checked" in alone.out


def test_explain_prints_text_only(bloom: Bloom) -> None:
    assert bloom("validate", "--explain", "filter-fpp", "--format", "text").code == 0
    for other, said in (
        (("--format", "json"), "--explain prints text, not json"),
        (("--report", "json=x"), "--report has no meaning"),
        (("--init",), "--init has no meaning"),
    ):
        refused = bloom("validate", "--explain", "filter-fpp", *other)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err


# --- misuse


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sample", "five"], "is not a valid sample"),
        (["--sample-row-groups", "5%"], "--deep"),
        (["--update-baseline"], "--baseline FILE"),
        (["--baseline", "none.json"], "--update-baseline"),
        (["--report", "pdf=x"], "FORM=FILE"),
        (["--report", "sarif"], "FORM=FILE"),
        (["--report", "junit=no/folder/out.xml"], "create the directory first"),
        (["--max-oversize", "0.5"], "0.5"),
        (["--table-schema", "none.sql"], "none.sql"),
        (["--table-schema", "t.sql"], "t.sql: a table's schema is for readers, and none is named\nhint: --readers"),
        (["--readers", "spork"], "spark"),
        (["--policy", "p.toml"], "exclude each other"),
        (["--seed", "0"], "--sample 5%"),
        (["--deep", "--seed", "7"], "--sample 5%"),
    ],
)
def test_misuse_is_reported_with_what_to_do(bloom: Bloom, lake: Path, arguments: list[str], said: str) -> None:
    Path("t.sql").write_text("id BIGINT, name STRING")
    result = bloom("validate", lake, "--no-policy", *arguments)
    assert result.code in {2, 3}
    assert result.out == ""
    assert said in result.err
    assert "Traceback" not in result.err


def test_all_columns_of_a_file_without_columns_are_none(bloom: Bloom, tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    pq.write_table(pa.table({"a": [1, 2]}).select([]), path)
    for options, which in (((), ""), (("-c", "*"), "of * "), (("-c", "*", "--deep"), "of * ")):
        done = bloom("validate", path, *options)
        assert (done.code, done.err) == (0, ""), options
        assert f"{path}: no filters {which}to check" in done.out
    wrong = bloom("validate", path, "-c", "a*")
    assert (wrong.code, "no column 'a*'" in wrong.err) == (2, True)
