"""`bloom add` without --columns adds the filters that the policy requires, at its rates: the gate passes then."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.cli import Bloom
from support.shell import arguments

import bloomcli

ROWS = 20_000

POLICY = """
require = ["id", "user*"]
max-fpp = 0.002
exclude = ["staging/**"]

[columns.user_name]
max-fpp = 0.05

[columns.user_note]
off.filter-required = "free text"

[[files]]
paths = ["events/**"]
require = ["kind"]
"""


def table(*more: str) -> pa.Table:
    names = ["id", "user_name", "user_note", *more]
    return pa.table({name: [f"{name}{i}" for i in range(ROWS)] for name in names})


@pytest.fixture(params=["parquet", "orc"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for name, data in {
        "orders/a": table(),
        "orders/b": table("kind"),
        "events/a": table("kind"),
        "staging/a": table(),
    }.items():
        path = tmp_path / "lake" / f"{name}.{request.param}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if request.param == "orc":
            orc.write_table(data, path)
        else:
            pq.write_table(data, path, row_group_size=ROWS // 2)
    (tmp_path / "lake" / "bloom.toml").write_text(POLICY)
    return tmp_path / "lake"


def found(path: Path) -> set[str]:
    return {f.column for f in bloomcli.inspect(path).filters}


def test_a_dataset_gets_what_its_policy_requires_and_passes_the_gate(bloom: Bloom, lake: Path) -> None:
    (suffix,) = {path.suffix for path in lake.rglob("*.*") if path.suffix != ".toml"}
    policy = ["--policy", lake / "bloom.toml"]
    assert bloom("validate", lake, *policy).code == 1
    dry = bloom("add", lake, *policy, "--dry-run", "-f", "json").json
    assert {row["status"] for row in dry["rows"] if "staging" not in row["path"] and "toml" not in row["path"]} == {
        "planned"
    }
    done = bloom("add", lake, *policy, "--in-place", "-f", "json")
    assert done.code == 0, done.out + done.err
    assert found(lake / f"orders/a{suffix}") == found(lake / f"orders/b{suffix}") == {"id", "user_name"}
    assert found(lake / f"events/a{suffix}") == {"id", "user_name", "kind"}
    assert found(lake / f"staging/a{suffix}") == set()
    assert "excludes the file" in str([row["reason"] for row in done.json["rows"]])
    gate = bloom("validate", lake, *policy, "--deep", "-f", "json")
    assert (gate.code, gate.json["errors"], gate.json["off"]) == (0, 0, 3)
    rates = {f.column: f.fpp or 0 for f in bloomcli.inspect(lake / f"orders/a{suffix}").filters}
    assert rates["id"] <= 0.002 < rates["user_name"] <= 0.05
    again = bloom("add", lake, *policy, "--in-place", "-f", "json").json
    assert {row["status"] for row in again["rows"]} == {"skipped"}


def test_a_file_gets_what_is_missing_and_is_not_written_if_nothing_is(
    bloom: Bloom, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake)
    path = next(Path("orders").glob("a.*"))
    assert bloom("add", path, "-c", "id", "--in-place").code == 0  # the nearest policy says at which rate
    assert all((f.fpp or 0) <= 0.002 for f in bloomcli.inspect(path).filters)
    done = bloom("add", path, "--in-place")
    assert done.code == 0, done.err
    assert found(path) == {"id", "user_name"}
    before = path.stat()
    idle = bloom("add", path, "--in-place")
    assert (idle.code, idle.out.count("\n")) == (0, 1)
    assert idle.out.startswith(f"nothing written: {path}: the columns have filters already")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    copy = Path("copy")
    assert bloom("add", path, "-o", copy, "--policy", "bloom.toml").code == 0
    assert found(copy) == {"id", "user_name"}
    excluded = bloom("add", next(Path("staging").iterdir()), "-n")
    assert (excluded.code, "excludes the file" in excluded.out) == (0, True)


def test_without_columns_and_without_requirements_nothing_can_be_added(bloom: Bloom, plain: Path) -> None:
    done = bloom("add", plain, "--no-policy", "-n")
    assert done.code == 2
    assert "no columns to add filters for" in done.err
    empty = plain.with_name("empty.toml")
    empty.write_text("max-fpp = 0.01\n")
    done = bloom("add", plain, "--policy", empty, "-n")
    assert f"the policy {empty} requires none" in done.err
    empty.write_text('require = ["nope"]\n')
    done = bloom("add", plain, "--policy", empty, "-n")
    assert done.code == 2
    assert "requires a filter on column 'nope', which the file doesn't have" in done.err
    assert "hint: correct the policy, or name columns of the file with --columns" in done.err
    empty.write_text('require = ["ok"]\n')
    done = bloom("add", plain, "--policy", empty, "-n")
    assert "column ok is BOOLEAN" in done.err
    assert "or out of what the policy requires" in done.err


def test_the_hints_of_the_gate_run_as_they_are_until_it_passes(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    """Each round pastes every command into a shell."""
    folder = tmp_path / "it's a lake"
    lake.rename(folder)
    policy = folder / "bloom.toml"
    for path in folder.glob("events/*"):
        bloomcli.add(path, ["kind"], in_place=True, fpp=0.3, policy=None)
    ran = 0
    for _ in range(3):
        report = bloom("validate", folder, "--policy", policy, "--readers", "spark,trino", "-f", "json")
        hints = [f["hint"] for f in report.json["findings"] if f["counts"]]
        lines = {line for hint in hints for line in re.findall("`(bloom .+?)`", hint)}
        if report.code == 0:
            break
        for line in sorted(lines):
            done = bloom(*arguments(line, tmp_path))
            assert done.code == 0, (line, done.err)
            ran += 1
    assert report.code == 0, report.out
    assert ran >= 6


def test_a_first_policy_for_files_without_filters_says_so(
    bloom: Bloom, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake)
    Path("bloom.toml").unlink()
    (kind,) = {path.suffix[1:] for path in lake.rglob("*.*")}
    done = bloom("validate", ".", "--init")
    assert done.code == 0
    assert f"looked at 4 files (4 {kind}): no filters found, so the policy requires nothing yet" in done.out
    text = Path("bloom.toml").read_text()
    assert "none of them has a filter, so it requires nothing yet" in text
    assert '\n# require = ["id", "user_name", "user_note", "kind"]\n' in text
    assert bloom("validate", ".").code == 0
    Path("bloom.toml").write_text(re.sub("^# require = .*$", 'require = ["id"]', text, flags=re.MULTILINE))
    assert bloom("validate", ".").code == 1
    assert bloom("add", ".", "--in-place").code == 0
    assert bloom("validate", ".").code == 0


@pytest.mark.parametrize("paths", [["a.parquet"], ["a.parquet", "b.parquet"]], ids=["a file", "files"])
def test_add_and_advise_name_the_policy_that_they_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bloom: Bloom, paths: list[str]
) -> None:
    for path in paths:
        pq.write_table(pa.table({"id": range(100)}), tmp_path / path)
    (tmp_path / "bloom.toml").write_text("max-fpp = 0.001")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    named = [f"../{path}" for path in paths]
    for options in (["--dry-run"], ["-o", "out"], ["-o", "out"]):
        if options != ["--dry-run"] and len(paths) == 1:
            options = [*options, "--overwrite"]
        assert (
            "policy ../bloom.toml applies (--no-policy uses none)" in bloom("add", *named, "-c", "id", *options).out
        )
    assert json.loads(bloom("add", *named, "-c", "id", "-n", "-f", "json").out)["policy"] == "../bloom.toml"
    assert "policy" not in bloom("add", *named, "-c", "id", "-n", "--no-policy").out
    assert re.search(r"^policy +\.\./bloom\.toml$", bloom("advise", *named).out, re.MULTILINE)
