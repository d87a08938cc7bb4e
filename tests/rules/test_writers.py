"""Writers: every fault has evidence and a detection, and only this table knows writers by name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from support.golden import WRITERS
from support.modules import facts

from bloomcli.model.file import Column
from bloomcli.rules.reader_table import Kind
from bloomcli.rules.writer_table import ROWS, Detection, Part, dictionaries_hold_values_only, fault_of, faults

ROOT = Path(__file__).parents[2]
DECIMAL = Column(path="c", index=0, physical="FIXED_LEN_BYTE_ARRAY", logical="DECIMAL(24,2)", type_length=11)
SHORT = Column(path="c", index=0, physical="BYTE_ARRAY", logical="DECIMAL(24,2)")
WIDE = Column(path="c", index=0, physical="FIXED_LEN_BYTE_ARRAY", type_length=16)
TEXT = Column(path="c", index=0, physical="BYTE_ARRAY", logical="STRING")
DAY = Column(path="c", index=0, physical="INT32", logical="DATE")
NUMBER = Column(path="c", index=0, physical="DOUBLE")
LOCAL = Column(path="c", index=0, physical="INT64", logical="TIMESTAMP(MILLIS,local)", utc=False)
TINYINT = Column(path="c", index=0, physical="INT32", logical="INTEGER(8,signed)", bit_width=8)
MOMENT = Column(path="c", index=0, physical="INT128", logical="TIMESTAMP(NANOS)", unit="NANOS", utc=False)
UTC = Column(path="c", index=0, physical="INT64", logical="TIMESTAMP(MILLIS,UTC)", utc=True)

CASES = [
    ("Polars", Part.BOUNDS, DECIMAL, NUMBER),
    ("Polars", Part.BOUNDS, TEXT, NUMBER),
    ("Polars", Part.NULL_COUNT, NUMBER, None),
    ("Polars (python) version 2.1.0 (build 7f902bd3)", Part.BOUNDS, WIDE, DECIMAL),
    ("parquet-cpp version 1.5.1-SNAPSHOT", Part.BOUNDS, DECIMAL, TEXT),
    ("parquet-cpp-arrow version 3.0.0", Part.BOUNDS, DECIMAL, TEXT),
    ("parquet-rs version 55.1.0", Part.BOUNDS, SHORT, DECIMAL),
    ("github.com/segmentio/parquet-go", Part.PAGE_BOUNDS, TEXT, NUMBER),
    ("github.com/segmentio/parquet-go version 0.0.0(build 5d42db8f0d47)", Part.PAGE_BOUNDS, TEXT, NUMBER),
    ("Parquet.Net version 4.25.0 (build 687fbb46)", Part.BOUNDS, LOCAL, UTC),
    ("DuckDB version v1.4.2 (build 68d7555f68)", Part.EXACT_BOUNDS, TEXT, DAY),
    ("DuckDB version v2.0.1 (build 8d78114e90)", Part.DELTAS, DAY, NUMBER),
    ("ORC Java, writer version 0", Part.BOUNDS, TEXT, DAY),
    ("ORC Java, writer version 0", Part.FILE_BOUNDS, DAY, NUMBER),
    ("ORC Java, writer version 6", Part.BOUNDS, DECIMAL, NUMBER),
    ("ORC C++, writer version 6", Part.FILTER, TEXT, None),
    ("ORC C++ 1.7.4, writer version 6", Part.BOUNDS, MOMENT, DAY),
    ("ORC C++ 1.6.11, writer version 6", Part.FILTER, TEXT, None),
    ("ORC C++ 1.7.0-SNAPSHOT, writer version 6", Part.FILTER, TEXT, None),
    ("ORC C++ 2.2.2, writer version 6", Part.FILTER, TINYINT, TEXT),
]
SOUND = [
    None,
    "",
    "Polars (python) version 2.1.0 (build 7f902bd3)",
    "parquet-cpp-arrow version 4.0.0",
    "parquet-cpp-arrow version 26.0.1",
    "parquet-mr version 1.17.0 (build 1)",
    "github.com/parquet-go/parquet-go version 0.32.0(build )",
    "ORC Java 1.9.1, writer version 9",
    "ORC Java, writer version 1",
    "ORC Java, writer version 7",
    "ORC C++ 1.6.12, writer version 6",
    "ORC C++ 1.7.1, writer version 6",
    "ORC C++ 2.3.0, writer version 10",
    "Trino, writer version 0",
]


@pytest.mark.parametrize(("created_by", "part", "wrong", "right"), CASES)
def test_a_fault_concerns_its_part_and_its_columns(
    created_by: str, part: Part, wrong: Column, right: Column | None
) -> None:
    found = fault_of(created_by, part, wrong)
    assert found is not None
    assert found.detection is Detection.WRITER
    assert right is None or fault_of(created_by, part, right) is None


def test_every_fault_that_is_detected_by_its_writer_has_a_case() -> None:
    tried = {row for created_by, part, column, _ in CASES if (row := fault_of(created_by, part, column)) is not None}
    assert tried == {row for row in ROWS if row.detection is Detection.WRITER}


@pytest.mark.parametrize("created_by", SOUND)
def test_writers_without_the_fault_are_believed(created_by: str | None) -> None:
    for column in (DECIMAL, TEXT, DAY, NUMBER):
        assert [row for row in faults(created_by) if row.columns(column)] == []
    assert fault_of("DuckDB version v2.0.1 (build 8d78114e90)", Part.EXACT_BOUNDS, TEXT) is None


def test_every_row_is_a_sentence_with_a_version_and_only_known_writers_have_a_pattern() -> None:
    for row in ROWS:
        assert row.writer
        assert row.evidence.version
        assert row.evidence.text
        assert not row.evidence.text.endswith(".")
        assert row.created_by is not None or row.detection is not Detection.WRITER
        if row.before is not None:
            assert re.compile(row.created_by or "").groups >= len(row.before)
    assert {row.evidence.kind for row in ROWS} == set(Kind)


def test_every_file_with_wrong_metadata_has_a_row() -> None:
    entries = tomllib.loads((ROOT / "fixtures" / "MANIFEST.toml").read_text())["file"]
    writers = {e["writer"] for e in entries if (ROOT / "fixtures" / e["path"]).parent == WRITERS}
    assert writers
    assert writers <= {row.writer for row in ROWS if row.evidence.kind is Kind.MEASURED}


def test_only_parquet_java_is_known_to_write_dictionaries_of_values_only() -> None:
    assert dictionaries_hold_values_only("parquet-mr version 1.17.0 (build 1)")
    assert not any(map(dictionaries_hold_values_only, (None, "", "parquet-cpp-arrow version 26.0.1", "DuckDB")))


def test_no_other_module_compares_created_by() -> None:
    """The names of writers in code, outside docstrings, are in the tables of writers and readers only."""
    names = re.compile(r"(parquet-mr |parquet-cpp|parquet-rs|Polars |segmentio|DuckDB version)")
    formats = ROOT / "bloomcli" / "formats"
    for path in formats.rglob("*.py"):
        found = [text for text in facts(path).literals if isinstance(text, str) and names.match(text)]
        assert found == [], path
