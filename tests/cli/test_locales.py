"""In a locale whose encoding lacks characters, every command escapes them and does its work."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli

NAME = "名前"
ESCAPED = r"\u540d\u524d"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0"}


def in_c_locale(*args: object, folder: Path) -> tuple[int, str, str]:
    """Run bloom where text is ASCII: exit code, standard output, standard error. Both have to be ASCII."""
    done = subprocess.run(
        [sys.executable, "-m", "bloomcli", *map(str, args)],
        cwd=folder,
        env={**os.environ, **C_LOCALE},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode("ascii"), done.stderr.decode("ascii")


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A folder with a file of a column 名前, with and without a filter, and a damaged file."""
    pq.write_table(pa.table({NAME: ["é", "日本"] * 50, "id": list(range(100))}), tmp_path / "plain.parquet")
    bloomcli.add(tmp_path / "plain.parquet", ["*"], output=tmp_path / "filtered.parquet")
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("plain", "filtered"):
        (lake / f"{name}.parquet").write_bytes((tmp_path / f"{name}.parquet").read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["inspect", "filtered.parquet"], 0),
        (["inspect", "filtered.parquet", "--format", "csv"], 0),
        (["inspect", "filtered.parquet", "-c", NAME], 0),
        (["probe", "filtered.parquet", "-c", NAME, "日本"], 0),
        (["probe", "filtered.parquet", "-c", NAME, "-v", "日本", "--explain"], 0),
        (["probe", "filtered.parquet", "-c", "名", "x"], 2),
        (["add", "plain.parquet", "-c", NAME, "--dry-run"], 0),
        (["add", "plain.parquet", "-c", NAME, "-o", "out.parquet"], 0),
        (["fold", "filtered.parquet", "--dry-run"], 0),
        (["remove", "filtered.parquet", "--dry-run"], 0),
        (["validate", "plain.parquet", "--require", NAME], 1),
        (["validate", "lake", "--require", NAME, "--format", "github"], 1),
        (["dump", "filtered.parquet", "-c", NAME], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_every_command_escapes_what_the_locale_lacks(named: Path, args: list[str], code: int) -> None:
    found, out, err = in_c_locale(*args, folder=named)
    assert (found, "a bug" in err) == (code, False), err
    assert ESCAPED in out + err


def test_tables_are_aligned_with_their_escapes(named: Path) -> None:
    _, out, _ = in_c_locale("inspect", "filtered.parquet", folder=named)
    first, second, third = out.split("\n\n")[1].splitlines()
    assert ESCAPED in second
    assert first.index("type") == second.index("STRING") == third.index("INT64")


def test_documents_stay_valid_and_whole(named: Path) -> None:
    _, out, _ = in_c_locale("inspect", "filtered.parquet", "--format", "json", folder=named)
    assert {f["column"] for f in json.loads(out)["filters"]} == {NAME, "id"}
    _, out, _ = in_c_locale("validate", "lake", "--require", NAME, "--format", "sarif", folder=named)
    (finding,) = json.loads(out)["runs"][0]["results"]
    assert finding["locations"][0]["logicalLocations"][1]["name"] == NAME
    _, out, _ = in_c_locale("validate", "lake", "--require", NAME, "--format", "junit", folder=named)
    ET.fromstring(out)
    _, out, _ = in_c_locale("inspect", "filtered.parquet", "--format", "csv", folder=named)
    assert {row["column"] for row in csv.DictReader(io.StringIO(out))} == {ESCAPED, "id"}


def test_errors_of_click_are_escaped_too(named: Path) -> None:
    for args in ([NAME], ["inspect", f"--{NAME}"], ["add", "plain.parquet", "-c", "id", "--fpp", NAME]):
        code, _, err = in_c_locale(*args, folder=named)
        assert code == 2
        assert "Error: " in err


def test_nothing_is_printed_by_clicks_echo() -> None:
    for path in sorted(Path(bloomcli.__file__).parent.rglob("*.py")):
        assert "click.echo(" not in path.read_text(), path
