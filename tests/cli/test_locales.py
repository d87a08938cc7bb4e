"""In a locale whose encoding lacks characters, every command escapes them and does its work."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.one_process import Run, commands

import bloomcli

NAME = "名前"
ESCAPED = r"\u540d\u524d"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0"}


@pytest.fixture(scope="module")
def in_c_locale() -> Iterator[Run]:
    """Runs bloom where text is ASCII. All that it prints has to be."""
    with commands(C_LOCALE, encoding="ascii") as run:
        yield run


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
def test_every_command_escapes_what_the_locale_lacks(
    in_c_locale: Run, named: Path, args: list[str], code: int
) -> None:
    done = in_c_locale(*args, folder=named)
    assert (done.code, "a bug" in done.err) == (code, False), done.err
    assert ESCAPED in done.out + done.err


def test_tables_are_aligned_with_their_escapes(in_c_locale: Run, named: Path) -> None:
    out = in_c_locale("inspect", "filtered.parquet", folder=named).out
    first, second, third = out.split("\n\n")[1].splitlines()
    assert ESCAPED in second
    assert first.index("type") == second.index("STRING") == third.index("INT64")


def test_documents_stay_valid_and_whole(in_c_locale: Run, named: Path) -> None:
    out = in_c_locale("inspect", "filtered.parquet", "--format", "json", folder=named).out
    assert {f["column"] for f in json.loads(out)["filters"]} == {NAME, "id"}
    out = in_c_locale("validate", "lake", "--require", NAME, "--format", "sarif", folder=named).out
    (finding,) = json.loads(out)["runs"][0]["results"]
    assert finding["locations"][0]["logicalLocations"][1]["name"] == NAME
    out = in_c_locale("validate", "lake", "--require", NAME, "--format", "junit", folder=named).out
    ET.fromstring(out)
    out = in_c_locale("inspect", "filtered.parquet", "--format", "csv", folder=named).out
    assert {row["column"] for row in csv.DictReader(io.StringIO(out))} == {ESCAPED, "id"}


def test_errors_of_click_are_escaped_too(in_c_locale: Run, named: Path) -> None:
    for args in ([NAME], ["inspect", f"--{NAME}"], ["add", "plain.parquet", "-c", "id", "--fpp", NAME]):
        done = in_c_locale(*args, folder=named)
        assert done.code == 2
        assert "Error: " in done.err


def test_nothing_is_printed_by_clicks_echo() -> None:
    for path in sorted(Path(bloomcli.__file__).parent.rglob("*.py")):
        assert "click.echo(" not in path.read_text(), path
