"""validate on Parquet files: sound files have no findings, and every kind of fault is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import blooms, footers
from support.tables import write

import bloomcli
from bloomcli.model.file import Presence, Severity
from bloomcli.model.validate import Finding

ID, NAME, PRICE, FLAG = range(4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 200 rows in 2 row groups, with filters by bloom on `id` and `name`."""
    table = {
        "id": pa.array(range(200), pa.int64()),
        "name": [f"n{i % 50}" if i % 4 else None for i in range(200)],
        "price": [i / 4 for i in range(200)],
        "flag": [i % 3 == 0 for i in range(200)],
    }
    write(tmp_path / "plain", table, rows=100)
    bloomcli.add(tmp_path / "plain", ["id", "name"], output=tmp_path / "f.parquet", ndv=200)
    return tmp_path / "f.parquet"


def claim(data: bytes, group: int, column: int) -> tuple[int, int]:
    fields = footers.meta(footers.tree(data), group, column)
    return fields[14][1], fields[15][1]


def bits_of(data: bytes, group: int, column: int) -> tuple[int, int]:
    """(start, size) of a filter's bitset."""
    offset, length = claim(data, group, column)
    size = 1 << length.bit_length() - 1
    return offset + length - size, size


def found(path: Path, data: bytes, **options: Any) -> list[Finding]:
    path.write_bytes(data)
    return list(bloomcli.validate(path, **options).findings)


def brief(findings: list[Finding]) -> list[tuple[str, str, int | None, str | None]]:
    return [(f.id, f.severity.value, f.row_group, f.column) for f in findings]


def test_deep_counts_pages_and_dictionaries_as_they_are_read(tmp_path: Path) -> None:
    write(tmp_path / "in", {"c": [f"v{i % 7}" for i in range(1000)]})
    bloomcli.add(tmp_path / "in", ["c"], in_place=True)
    assert bloomcli.validate(tmp_path / "in", deep=True).values_checked == 7
    write(tmp_path / "in", {"c": [f"v{i % 7}" for i in range(1000)]}, dictionary=False)
    bloomcli.add(tmp_path / "in", ["c"], in_place=True)
    seen: list[tuple[str, int, int]] = []
    report = bloomcli.validate(tmp_path / "in", deep=True, progress=lambda *step: seen.append(step))
    assert report.values_checked == 1000
    assert seen[-1][0] == "check"
    assert seen[-1][1] == seen[-1][2] > 0


ENTRIES = [f"entry {i}" for i in range(100)]


def categories(path: Path, filtered: list[str]) -> Path:
    """A file whose column refers to entries 3, 5 and 8 of its dictionary, with a filter of these values."""
    array = pa.DictionaryArray.from_arrays(pa.array([5, None, 3, 5, 8], pa.int32()), ENTRIES)
    bits = blooms.build([v.encode() for v in filtered], 1024)
    path.write_bytes(blooms.planted(write(path, {"c": array}).read_bytes(), 0, 0, blooms.header(1024) + bits))
    return path


@pytest.mark.parametrize("filtered", [[3, 5, 8], [3, 5, 8, 0, 99], range(100)], ids=["own", "two more", "all"])
def test_entries_that_no_row_refers_to_may_be_in_the_filter_or_not(tmp_path: Path, filtered: list[int]) -> None:
    report = bloomcli.validate(categories(tmp_path / "f", [ENTRIES[i] for i in filtered]), deep=True)
    assert (report.findings, report.values_checked) == ((), 100 if len(filtered) == 100 else 3)


def test_of_a_dictionary_only_values_that_rows_have_are_missing(tmp_path: Path) -> None:
    report = bloomcli.validate(categories(tmp_path / "f", [ENTRIES[i] for i in (3, 8, 0)]), deep=True)
    (found,) = report.findings
    assert (found.id, found.missing) == ("value-missing", ("entry 5",))
    assert found.message.startswith("1 of 3 values")


def test_bits_of_neither_rows_nor_entries_are_stray(tmp_path: Path) -> None:
    report = bloomcli.validate(categories(tmp_path / "f", [*(ENTRIES[i] for i in (3, 5, 8, 0)), "other"]), deep=True)
    (found,) = report.findings
    assert found.id == "filter-stray-bits"
    assert 1 <= int(found.message.split()[0]) <= 8  # those of "other" alone


def test_swapped_filters_are_found_by_their_bounds_or_by_all_values(path: Path) -> None:
    """The minimum and maximum of the statistics are values too, and prove it without reading a page."""
    data = path.read_bytes()
    here, there = claim(data, 0, ID), claim(data, 1, ID)
    data = footers.edited(data, footers.set_filter(0, ID, *there))
    data = footers.edited(data, footers.set_filter(1, ID, *here))
    cheap = found(path, data)
    assert brief(cheap) == [("value-missing", "error", g, "id") for g in (0, 0, 1, 1)]
    assert [f.missing for f in cheap] == [("0",), ("99",), ("100",), ("199",)]
    assert ["minimum" in f.message for f in cheap] == [True, False, True, False]
    wrong = "the filter is wrong: it doesn't have the row group's own minimum or maximum"
    assert {f.untrusted for f in bloomcli.inspect(path, columns=["id"]).filters} == {wrong}
    said = bloomcli.probe(path, ["5", "105", "-1"], column="id")
    assert {(v.presence, v.reason) for v in said.verdicts} == {(Presence.UNKNOWN, wrong)}
    # the dictionaries contain the bounds: the filters are wrong, and the entries are trusted
    assert {(v.answer, v.dictionary_skip) for v in said.verdicts} == {
        (Presence.UNKNOWN, False),
        (Presence.ABSENT, True),
    }
    assert {v.stats_skip for v in said.verdicts if v.value == "-1"} == {True}  # which isn't trusted
    assert not said.absent_everywhere
    findings = found(path, data, deep=True)
    assert brief(findings) == [("value-missing", "error", g, "id") for g in (0, 1)]
    assert all(len(set(f.missing)) == 5 for f in findings)


def test_a_required_column_has_values_even_if_its_statistics_leave_them_out(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    table = pa.table({"id": range(100)}, schema)
    pq.write_table(
        table, tmp_path / "f", write_statistics=False, bloom_filter_options={"id": {"ndv": 100, "fpp": 0.01}}
    )
    data = bytearray((tmp_path / "f").read_bytes())
    start, size = bits_of(bytes(data), 0, 0)
    data[start : start + size] = bytes(size)
    findings = found(tmp_path / "f", bytes(data))
    assert ("filter-all-zero", "error", 0, "id") in brief(findings)


def test_a_required_filter_isnt_missed_where_there_are_only_nulls(tmp_path: Path) -> None:
    table = pa.table({"k": pa.array([None] * 50 + list(range(50)), pa.int64())})
    pq.write_table(table, tmp_path / "in", row_group_size=50)
    report = bloomcli.validate(tmp_path / "in", require=["k"])
    assert "no filter in 1 of 2 row groups" in report.findings[0].message


def test_a_filter_within_the_pages_is_an_error(path: Path) -> None:
    data = path.read_bytes()
    data = footers.edited(data, footers.set_filter(0, ID, 10, None))
    findings = found(path, data)
    assert brief(findings) == [("filter-header", "error", 0, "id")]
    blob = blooms.header(32) + bytes(32)
    body, footer = footers.split(path.with_name("plain").read_bytes())
    pages = footers.meta(footers.tree(footers.join(body, footer)), 1, PRICE)[9][1]
    data = footers.join(body[:pages] + blob + body[pages + len(blob) :], footer)
    findings = found(path, footers.edited(data, footers.set_filter(0, PRICE, pages, len(blob))))
    assert ("filter-overlap", "error", 0, "price") in brief(findings)
    assert "overlaps the pages" in str([f.message for f in findings])


def test_findings_come_worst_first(path: Path) -> None:
    data = path.read_bytes()
    data = footers.edited(data, footers.set_filter(0, ID, claim(data, 0, ID)[0], None))
    data = footers.edited(data, footers.set_filter(1, ID, 1 << 40, None))
    data = blooms.planted(data, 0, PRICE, blooms.header(96) + b"\xff" * 96)
    assert [f.severity for f in found(path, data)] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
