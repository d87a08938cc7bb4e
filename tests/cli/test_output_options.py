"""--quiet, --all and --format csv: on every command with rows, and nothing is cut without naming what shows it."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.cli import Bloom, Result

import bloomcli
from bloomcli.report.text_dataset import ROWS_SHOWN

CHANGES = {"add": ["-c", "id", "--no-policy"], "remove": [], "fold": []}
FILES = ROWS_SHOWN + 5


def rows(done: Result) -> list[dict[str, str]]:
    """The rows of a CSV report."""
    return list(csv.DictReader(io.StringIO(done.out)))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of files with a filter that is too large."""
    folder = tmp_path_factory.mktemp("many")
    pq.write_table(pa.table({"id": range(10), "other": range(10)}), folder / "0.parquet")
    bloomcli.add(folder / "0.parquet", ["id"], in_place=True, ndv=5000)
    for n in range(1, FILES):
        shutil.copy(folder / "0.parquet", folder / f"{n}.parquet")
    return folder


@pytest.mark.parametrize("command", CHANGES)
def test_what_a_change_does_is_csv_for_one_file_and_for_many(
    bloom: Bloom, many: Path, command: str, tmp_path: Path
) -> None:
    more = CHANGES[command] + (["--replace"] if command == "add" else [])
    path = many / "3.parquet"
    (one,) = rows(bloom(command, path, *more, "-o", tmp_path / "out", "-f", "csv"))
    assert (one["path"], one["output"], one["column"]) == (str(path), str(tmp_path / "out"), "id")
    assert one["action"] == {"add": "replace"}.get(command, command)
    assert one["dry_run"] == "False"
    of_many = rows(bloom(command, many, *more, "-n", "-f", "csv"))
    assert [row["status"] for row in of_many] == ["planned"] * FILES


def test_findings_are_csv_with_a_row_for_a_file_that_could_not_be_checked(
    bloom: Bloom, many: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    shutil.copy(many / "0.parquet", lake / "good.parquet")
    (lake / "cut.parquet").write_bytes((many / "0.parquet").read_bytes()[:-9])
    done = bloom("validate", lake, "--require", "id,other", "--no-policy", "-f", "csv")
    assert done.code == 3
    found = {(Path(r["path"]).name, r["status"], r["id"], r["column"], r["counts"]) for r in rows(done)}
    assert found == {
        ("good.parquet", "found", "filter-required", "other", "True"),
        ("cut.parquet", "failed", "", "", "True"),
    }
    (failed,) = (r for r in rows(done) if r["status"] == "failed")
    assert "cut.parquet" in failed["message"]
    saved = tmp_path / "findings.csv"
    assert bloom("validate", lake, "--require", "id,other", "--no-policy", "--report", f"csv={saved}").code == 3
    assert saved.read_text() == done.out
    (one,) = rows(bloom("validate", lake / "cut.parquet", "-f", "csv"))
    assert one["status"] == "failed"


def test_all_shows_every_finding(bloom: Bloom, many: Path) -> None:
    command = ["validate", many, "--require", "other", "--no-policy"]
    assert f"... and {FILES - 5} more (--all or --format csv shows all)" in bloom(*command).out
    assert "  hint for these 5 files: `bloom add " in bloom(*command).out.replace("\n    ", " ")
    every = bloom(*command, "--all").out
    assert "more (" not in every
    assert "  hint: `bloom add " in every.replace("\n    ", " ")
    assert all(f"{n}.parquet: no filter" in every for n in range(FILES))
    assert bloom(*command, "--all", "--max-per-rule", 3).code == 2


def test_the_bits_of_an_orc_filter_are_csv(bloom: Bloom, tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": range(1000)}), tmp_path / "f.orc")
    bloomcli.add(tmp_path / "f.orc", ["id"], in_place=True)
    longs = rows(bloom("dump", tmp_path / "f.orc", "-f", "csv"))
    assert [int(row["word"], 16) for row in longs] == np.frombuffer(
        bloomcli.dump(tmp_path / "f.orc").bitset, "<u8"
    ).tolist()


@pytest.mark.parametrize(
    "command",
    [
        ["inspect"],
        ["probe", "-c", "id", "-v", "3"],
        ["add", "-c", "id", "--replace", "-n"],
        ["fold", "-n"],
        ["remove", "-n"],
        ["validate", "--no-policy"],
    ],
    ids=lambda words: words[0],
)
def test_quiet_commands_print_nothing_but_errors(
    bloom: Bloom, many: Path, command: list[Any], tmp_path: Path
) -> None:
    name, *more = command
    for target in (many / "0.parquet", many):
        done = bloom(name, target, *more, "-q")
        assert (done.code, done.out, done.err) == (0, "", "")
    lake = tmp_path / "lake"
    lake.mkdir()
    shutil.copy(many / "0.parquet", lake)
    (lake / "cut.parquet").write_bytes((many / "0.parquet").read_bytes()[:-9])
    done = bloom(name, lake, *more, "--quiet")
    assert done.code == 3
    assert "cut.parquet" in (done.out if name == "validate" else done.err)
    assert "0.parquet" not in (done.out + done.err).replace("cut.parquet", "")
    assert bloom(name, lake, *more, "--quiet", "-f", "json").json["failed"] == 1
    assert bloom(name, lake, *more, "--quiet", "--all").code == (3 if name == "validate" else 2)


def test_quiet_validate_prints_findings_alone(bloom: Bloom, many: Path) -> None:
    done = bloom("validate", many / "0.parquet", "--require", "other", "--no-policy", "-q")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("error filter-required")
    assert lines[-1].startswith("  hint: `bloom add ")
    assert "policy" not in done.out


def test_what_contradicts_quiet_is_refused(bloom: Bloom, many: Path) -> None:
    assert bloom("probe", many, "-c", "id", "-v", "3", "-l", "-q").code == 2
    assert bloom("validate", "--explain", "filter-fpp", "-q").code == 2
    assert bloom("probe", many / "0.parquet", "-c", "id", "-v", "77", "-q").code == 1


def test_a_quiet_init_writes_the_policy_and_says_nothing(
    bloom: Bloom, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bloom("validate", many, "--init", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (tmp_path / "bloom.toml").is_file()
