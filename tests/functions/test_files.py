"""The functions take what the commands take: one file gives its report, anything else the report on many files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import datasets

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.probe import ProbeReport
from bloomcli.model.validate import ValidateReport

ROOT = Path(__file__).parents[2]


@pytest.fixture
def lake(one_process: None, tmp_path: Path) -> Path:
    """Two Parquet files and an ORC file in a tree."""
    for name in ("a.parquet", "deep/b.parquet", "deep/c.orc"):
        path = tmp_path / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.write(path)
    return tmp_path / "lake"


def test_a_directory_gets_filters_and_loses_them_again(lake: Path) -> None:
    before = datasets.digests(lake)
    dry = bloomcli.add([lake], ["id"], dry_run=True)
    assert [row.status for row in dry.rows] == [Status.PLANNED] * 3
    assert datasets.digests(lake) == before
    seen: list[FileRow] = []
    report = bloomcli.add([lake], ["id"], in_place=True, jobs=1, on_row=seen.append)
    assert isinstance(report, DatasetReport)
    assert (report.command, report.jobs, report.done) == ("add", 1, 3)
    assert sorted(row.path for row in seen) == sorted(row.path for row in report.rows)
    again = bloomcli.add([str(lake / "a.parquet"), lake / "deep"], ["id"], in_place=True)
    assert [row.status for row in again.rows] == [Status.SKIPPED] * 3
    removed = bloomcli.remove([lake], in_place=True)
    assert removed.done == 3
    assert {name: digest for name, digest in datasets.digests(lake).items() if name.endswith("parquet")} == {
        name: digest for name, digest in before.items() if name.endswith("parquet")
    }


def test_a_directory_or_a_pattern_may_be_a_text(lake: Path, tmp_path: Path) -> None:
    bloomcli.add([lake], ["id"], in_place=True)
    for given in (str(lake), lake, f"{lake}/*/*", f"{lake}/**/*.parquet"):
        report = bloomcli.inspect(given)
        assert isinstance(report, DatasetReport)
        assert all(row.filters for row in report.rows)
    folded: object = bloomcli.fold(f"{lake}/*.parquet", output=tmp_path / "out", max_bytes=32)
    assert isinstance(folded, DatasetReport)
    assert (tmp_path / "out" / "a.parquet").is_file()


def test_one_file_gives_its_own_report_and_a_list_of_one_doesnt(lake: Path, tmp_path: Path) -> None:
    path, out = lake / "a.parquet", tmp_path / "out.parquet"
    assert isinstance(bloomcli.add(path, ["id"], output=out), ChangeReport)
    assert isinstance(bloomcli.remove(out, dry_run=True), ChangeReport)
    assert isinstance(bloomcli.fold(out, dry_run=True), ChangeReport)
    assert isinstance(bloomcli.inspect(str(out)), InspectReport)
    assert isinstance(bloomcli.probe(out, 3), ProbeReport)
    assert isinstance(bloomcli.validate(out), ValidateReport)
    assert isinstance(bloomcli.inspect([out]), DatasetReport)
    assert isinstance(bloomcli.validate([out]), GateReport)


def test_values_are_probed_and_filters_validated_in_many_files(lake: Path) -> None:
    bloomcli.add([lake], ["id"], in_place=True)
    probed = bloomcli.probe([lake], [3, -77], column="id")
    assert [row.totals[0].value for row in probed.rows] == ["3"] * 3
    assert probed.exit_code == 0
    report = bloomcli.validate([lake], require=["id"], deep=True)
    assert (report.ok, report.files, report.values_checked > 0) == (True, 3, True)
    assert not bloomcli.validate([lake], require=["name"]).ok
    rows: list[FileRow] = []
    (lake / "cut.parquet").write_bytes((lake / "a.parquet").read_bytes()[:-9])
    assert bloomcli.validate([lake], on_row=rows.append).failed == 1
    assert len(rows) == 4
    stopped = bloomcli.add([lake], ["name"], in_place=True, fail_fast=True)
    assert (stopped.failed, stopped.done, stopped.not_started) == (1, 0, 3)


def test_what_has_no_meaning_is_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="no files are named"):
        bloomcli.inspect([])
    with pytest.raises(UsageError, match="schema is for one file"):
        bloomcli.inspect([lake], schema=True)
    with pytest.raises(UsageError, match="progress is for one file"):
        bloomcli.add([lake], ["id"], dry_run=True, progress=lambda *_: None)


TYPED = """
from pathlib import Path
import bloomcli

reveal_type(bloomcli.add("f", ["id"]))
reveal_type(bloomcli.add(["f"], ["id"]))
reveal_type(bloomcli.add([Path("d"), Path("e")], columns=["id"], jobs=3))
reveal_type(bloomcli.inspect(Path("f")))
reveal_type(bloomcli.inspect(("d", "e")))
reveal_type(bloomcli.validate("f"))
reveal_type(bloomcli.validate(["d"], deep=True))
bloomcli.add(["d"], colums=["id"])
bloomcli.fold("f", fpp="low")
"""


@pytest.mark.slow
def test_type_checkers_know_the_report_by_the_files(tmp_path: Path) -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "page.py").write_text(program)
    (tmp_path / "example.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    done = subprocess.run(
        [*command, "page.py", "example.py"],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    revealed = [line.split('"')[1].rpartition(".")[2] for line in lines if "Revealed type" in line]
    assert revealed == [
        "ChangeReport",
        "DatasetReport",
        "DatasetReport",
        "InspectReport",
        "DatasetReport",
        "ValidateReport",
        "GateReport",
    ]
    errors = [line for line in lines if ": error:" in line]
    assert len(errors) == 3, done.stdout
    assert all(line.startswith("example.py:") for line in errors)
    assert [line.split(":")[1] for line in errors] == ["12", "12", "13"]
