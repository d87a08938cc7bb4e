"""The commands as functions, on Parquet files: inspect, dump and probe against figures computed apart."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import blooms, footers, thrift
from support.sources import CountingSource
from support.tables import CASES, leaves, packed, write

import bloomcli
from bloomcli.commands.values import texts
from bloomcli.errors import UnknownColumn, UsageError
from bloomcli.model.file import Presence

LONG = packed("<q")


def ids(rows: int, step: int = 1) -> pa.Array:
    return pa.array([i * step for i in range(rows)], pa.int64())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """300 rows in 3 row groups, filters by bloom on `id` and `user.name`, none on `price`."""
    table = pa.table(
        {
            "id": ids(300, 3),
            "user": [{"name": f"n{i}" if i % 4 else None, "age": i} for i in range(300)],
            "price": [i / 4 for i in range(300)],
        }
    )
    write(tmp_path / "plain", table, rows=100, compression="zstd")
    bloomcli.add(tmp_path / "plain", ["id", "user.name"], output=tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


def expected(group: int, column: str) -> list[bytes]:
    rows = range(group * 100, group * 100 + 100)
    return [LONG(i * 3) for i in rows] if column == "id" else [f"n{i}".encode() for i in rows if i % 4]


def test_inspect_reports_what_the_file_and_its_filters_are(path: Path) -> None:
    report = bloomcli.inspect(path)
    meta = pq.read_metadata(path)
    assert (report.rows, report.row_groups, report.columns) == (300, 3, 4)
    assert (report.file_bytes, report.created_by) == (path.stat().st_size, meta.created_by)
    assert (report.format, report.unreadable) == ("parquet", 0)
    data = path.read_bytes()
    found = [(f.row_group, f.column) for f in report.filters]
    assert found == [(g, c) for g in range(3) for c in ("id", "user.name")]
    for fact in report.filters:
        fields = footers.meta(footers.tree(data), fact.row_group, 0 if fact.column == "id" else 1)
        offset, length = fields[14][1], fields[15][1]
        header, start = thrift.parse(data, offset)
        bits = data[start : offset + length]
        values = expected(fact.row_group, fact.column)
        assert bits == blooms.build(values, header[1][1])
        assert (fact.offset, fact.length, fact.header_bytes) == (offset, length, start - offset)
        assert (fact.bitset_bytes, fact.blocks) == (len(bits), len(bits) // 32)
        assert (fact.algorithm, fact.hash, fact.compression) == ("BLOCK", "XXHASH", "UNCOMPRESSED")
        assert fact.values == len(values)
        assert fact.fpp == pytest.approx(blooms.rate(bits))
        assert fact.fpp is not None
        assert fact.fpp <= 0.01
        assert fact.fill == pytest.approx(sum(b.bit_count() for b in bits) / len(bits) / 8)
        assert fact.ndv_estimate == pytest.approx(len(values), rel=0.1)
        assert fact.bits_per_value == pytest.approx(len(bits) * 8 / fact.ndv_estimate)
        assert fact.problem is None
        assert fact.logical == ("STRING" if fact.column == "user.name" else None)
    assert report.filter_bytes == sum(f.length or 0 for f in report.filters)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["id"], ["id"]),
        (["user.*"], ["user.name"]),
        (["*"], ["id", "user.name"]),
        (["price"], []),
        (["[iu]*", "id"], ["id", "user.name"]),
    ],
    ids=str,
)
def test_columns_are_named_by_path_or_glob(path: Path, names: list[str], found: list[str]) -> None:
    report = bloomcli.inspect(path, columns=names)
    assert [f.column for f in report.filters if f.row_group == 0] == found


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ID", "did you mean id"),
        ("prise", "did you mean price"),
        ("user", "user is a group; its leaves: user.name, user.age"),
        ("name", "user.name"),
        ("zzz*", "the file's columns: id, user.name"),
    ],
)
def test_a_name_that_means_no_column_gets_near_ones(path: Path, name: str, hint: str) -> None:
    with pytest.raises(UnknownColumn, match="no column") as caught:
        bloomcli.inspect(path, columns=["id", name])
    assert hint in (caught.value.hint or "")
    assert caught.value.path == str(path)


SAME_NAMES = {
    "two columns": ("x", pa.Table.from_arrays([pa.array([1, 2]), pa.array([10, 20])], names=["x", "x"])),
    "a dot in a column's name": ("a.b", pa.table({"a.b": [1, 2], "a": [{"b": 10}, {"b": 20}]})),
}


@pytest.mark.parametrize("case", SAME_NAMES)
def test_nothing_is_said_of_one_column_by_a_name_that_several_have(tmp_path: Path, case: str) -> None:
    name, table = SAME_NAMES[case]
    pq.write_table(table, tmp_path / "f")
    for column in (name, name[0] + "*"):
        with pytest.raises(UsageError, match=f"2 columns are called '{name}'; probe can't tell") as caught:
            bloomcli.probe(tmp_path / "f", ["1"], column=column)
        assert "other names" in (caught.value.hint or "")
    bloomcli.add(tmp_path / "f", [name], output=tmp_path / "out")
    with pytest.raises(UsageError, match=f"2 columns are called '{name}'; probe can't tell"):
        bloomcli.probe(tmp_path / "out", ["1"])
    with pytest.raises(UsageError, match=f"2 columns are called '{name}'; dump can't tell"):
        bloomcli.dump(tmp_path / "out", column=name)


@pytest.mark.parametrize("case", SAME_NAMES)
def test_a_name_that_several_columns_have_means_all_of_them(tmp_path: Path, case: str) -> None:
    name, table = SAME_NAMES[case]
    pq.write_table(table, tmp_path / "f")
    report = bloomcli.add(tmp_path / "f", [name], output=tmp_path / "out")
    assert [c.column for c in report.changes] == [name, name]
    assert [f.column for f in bloomcli.inspect(tmp_path / "out", columns=[name]).filters] == [name, name]
    assert bloomcli.validate(tmp_path / "out", columns=[name], deep=True).values_checked == 4
    bloomcli.remove(tmp_path / "out", columns=[name], output=tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "f").read_bytes()


def test_inspect_reads_tail_footer_and_filters_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = CountingSource(path)
    monkeypatch.setattr(import_module("bloomcli.commands.inspect"), "open_source", lambda _: source)
    report = bloomcli.inspect(path)
    footer = len(footers.split(path.read_bytes())[1])
    assert len(source.reads) == 3 + len(report.filters)
    assert source.bytes_read == 4 + 8 + footer + report.filter_bytes
    assert source.reads[3:] == [(f.offset, f.length) for f in report.filters]


@pytest.mark.parametrize("column", ["id", "user.name"])
def test_dump_gives_header_and_bits(path: Path, column: str) -> None:
    for group in range(3):
        dumped = bloomcli.dump(path, column=column, row_group=group)
        at = dumped.facts.offset
        assert path.read_bytes()[at:].startswith(dumped.header + dumped.bitset)
        assert dumped.header == blooms.header(len(dumped.bitset))
        assert dumped.bitset == blooms.build(expected(group, column), len(dumped.bitset))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "2 columns have filters"),
        ({"column": "price"}, "column price has no filter in row group 0"),
        ({"column": "id", "row_group": 3}, "there is no row group 3; the file has 3"),
        ({"column": "id", "row_group": -1}, "there is no row group -1"),
        ({"column": "user.*"}, "means 2 columns"),
    ],
    ids=str,
)
def test_dump_of_what_is_not_one_filter_is_refused(path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.dump(path, **options)


def test_a_files_only_filtered_column_needs_no_name(path: Path, tmp_path: Path) -> None:
    bloomcli.remove(path, columns=["id"], output=tmp_path / "one")
    assert bloomcli.dump(tmp_path / "one").facts.column == "user.name"
    assert bloomcli.probe(tmp_path / "one", ["n1"]).column == "user.name"
    with pytest.raises(UsageError, match="no column has a filter"):
        bloomcli.dump(tmp_path / "plain")


def typed(value: Any, utc: bool) -> str:
    """A Python value as a person types it."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, dt.datetime):
        return value.isoformat() + ("Z" if utc else "")
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


@pytest.mark.parametrize("name", CASES)
def test_every_value_that_exists_is_maybe_present(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write(tmp_path / "in", {"c": case.array(2)}, rows=1 << 20)
    bloomcli.add(tmp_path / "in", ["*"], output=tmp_path / "out", fpp=1e-6, readers="spark")
    texts = [typed(v, name.endswith("utc")) for v in leaves(case.values)]
    if not texts:
        report = bloomcli.probe(tmp_path / "out", ["0"])
        assert report.absent_everywhere
        assert report.verdicts[0].reason == (None if name == "null" else "only nulls")  # it has no null count
        return
    report = bloomcli.probe(tmp_path / "out", texts, explain=True)
    assert {v.presence for v in report.verdicts} == {Presence.MAYBE}
    hashed = {t.hashed for v in report.verdicts for t in v.trail}
    assert set(map(case.plain, leaves(case.values))) <= hashed
    assert not report.absent_everywhere


ABSENT: dict[str, Callable[[int], Any]] = {
    "int64": lambda i: i + 1000,
    "float16": lambda i: (i + 1) / 128,
    "decimal128_9": lambda i: Decimal(i + 100) / 100,
    "string": lambda i: f"other {i}",
    "timestamp_ns": lambda i: dt.datetime(2001, 1, 1) + dt.timedelta(microseconds=i),
}


@pytest.mark.parametrize("name", ABSENT)
def test_values_that_do_not_exist_are_mostly_absent(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write(tmp_path / "in", {"c": case.array()})
    bloomcli.add(tmp_path / "in", ["*"], output=tmp_path / "out", readers="spark")
    present = set(map(case.plain, leaves(case.values)))
    others = [v for i in range(150) if case.plain(v := ABSENT[name](i)) not in present]
    report = bloomcli.probe(tmp_path / "out", [typed(v, False) for v in others])
    bits = bloomcli.dump(tmp_path / "out").bitset
    for value, verdict in zip(others, report.verdicts, strict=True):
        found = blooms.build([case.plain(value), *present], len(bits)) == bits
        assert verdict.presence is (Presence.MAYBE if found else Presence.ABSENT)
    assert sum(v.presence is Presence.ABSENT for v in report.verdicts) >= 0.95 * len(others)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("longer", [0, 1, 2, 7, 14])
def test_a_decimal_is_found_in_whatever_length_it_is_stored(tmp_path: Path, longer: int, dictionary: bool) -> None:
    """The specification asks writers for the shortest form, and lets them write others."""

    def decimal(metadata: thrift.Fields) -> None:
        element = metadata[2][1].values[1]
        scale, precision = (thrift.I32, 2), (thrift.I32, 9)
        metadata[2][1].values[1] = dict(sorted({**element, 6: (thrift.I32, 5), 7: scale, 8: precision}.items()))

    numbers = [0, 1, -1, 127, 128, -128, -129, 12345, -12345]
    shortest = [n.to_bytes((n if n >= 0 else ~n).bit_length() // 8 + 1, "big", signed=True) for n in numbers]
    stored = [(b"\xff" if value[0] & 0x80 else b"\0") * longer + value for value in shortest]
    path = write(tmp_path / "in", {"d": pa.array(stored, pa.binary())}, dictionary=dictionary, store_schema=False)
    path.write_bytes(footers.edited(path.read_bytes(), decimal))
    assert pq.read_table(path)["d"].to_pylist() == [Decimal(n).scaleb(-2) for n in numbers]
    bloomcli.add(path, ["d"], output=tmp_path / "out", fpp=1e-6)
    report = bloomcli.probe(tmp_path / "out", [str(Decimal(n) / 100) for n in numbers], explain=True)
    assert {v.presence for v in report.verdicts} == {Presence.MAYBE}
    for verdict, value, short in zip(report.verdicts, stored, shortest, strict=True):
        assert verdict.trail[0].hashed == short
        assert value in [t.hashed for t in verdict.trail if all(t.present)]
        assert len({t.hashed for t in verdict.trail}) == len(verdict.trail) == 18 - len(short)
    others = [str(Decimal(n) / 100) for n in range(2000, 2100)]
    assert {v.presence for v in bloomcli.probe(tmp_path / "out", others).verdicts} == {Presence.ABSENT}


def test_a_filter_is_used_where_statistics_count_only_nulls(tmp_path: Path) -> None:
    """And what they say stands apart: readers skip by it before they ask the filter."""

    def lie(metadata: thrift.Fields) -> None:
        statistics = footers.meta(metadata, 0, 0)[12][1]
        statistics.clear()
        statistics[3] = (thrift.I64, 100)

    write(tmp_path / "in", {"id": ids(100, 3)})
    bloomcli.add(tmp_path / "in", ["id"], output=tmp_path / "out", fpp=1e-6)
    for name in ("in", "out"):
        path = tmp_path / name
        path.write_bytes(footers.edited(path.read_bytes(), lie))
    there, absent = bloomcli.probe(tmp_path / "out", ["30", "31"], explain=True).verdicts
    assert (there.presence, there.stats_skip) == (Presence.MAYBE, True)
    assert there.reason == "the statistics count only nulls"
    assert (absent.presence, absent.stats_skip, absent.reason) == (Presence.ABSENT, True, "only nulls")
    assert len(there.trail) == len(absent.trail) == 1
    (bare,) = bloomcli.probe(tmp_path / "in", ["30"], column="id").verdicts
    assert (bare.presence, bare.answer, bare.stats_skip) == (Presence.NO_FILTER, Presence.ABSENT, True)
    assert bare.reason == "only nulls"


def test_totals_say_what_filters_gain_over_statistics(path: Path) -> None:
    report = bloomcli.probe(path, ["150", "151", "10000", "1.5", "3"], column="id")
    groups = [pq.read_metadata(path).row_group(g) for g in range(3)]
    sizes = [sum(g.column(c).total_compressed_size for c in range(4)) for g in groups]
    assert report.total_bytes == sum(sizes)
    assert [v.row_group_bytes for v in report.verdicts[:3]] == sizes
    assert [v.chunk_bytes for v in report.verdicts[:3]] == [g.column(0).total_compressed_size for g in groups]
    assert {v.rows for v in report.verdicts} == {100}
    present, gap, beyond, impossible, low = report.totals
    assert (present.presence, present.stats_skipped_row_groups) == (Presence.MAYBE, 2)
    assert (present.skipped_row_groups, present.skipped_bytes) == (2, sizes[1] + sizes[2])
    assert (present.gain_row_groups, present.gain_bytes) == (0, 0)
    assert (gap.presence, gap.skipped_row_groups) == (Presence.ABSENT, 3)
    assert (gap.stats_skipped_row_groups, gap.gain_row_groups, gap.gain_bytes) == (2, 1, sizes[0])
    assert (beyond.stats_skipped_row_groups, beyond.gain_row_groups) == (3, 0)
    assert (impossible.presence, impossible.skipped_row_groups) == (Presence.ABSENT, 3)
    assert "whole numbers" in (impossible.reason or "")
    assert low.presence is Presence.MAYBE


def test_a_column_without_filters_has_no_answer_but_statistics_have(path: Path) -> None:
    report = bloomcli.probe(path, ["10"], column="price")
    assert [v.presence for v in report.verdicts] == [Presence.NO_FILTER] * 3
    assert [v.stats_skip for v in report.verdicts] == [False, True, True]
    assert report.totals[0].skipped_row_groups == 0


def test_explain_shows_hash_block_and_bits(path: Path) -> None:
    report = bloomcli.probe(path, ["n5", "n8"], column="user.name", explain=True)
    for verdict in report.verdicts:
        bits = bloomcli.dump(path, column="user.name", row_group=verdict.row_group).bitset
        (trail,) = verdict.trail
        assert trail.hashed == verdict.value.encode()
        assert trail.hash == blooms.hash_of(trail.hashed)
        assert (trail.block, trail.bits) == blooms.positions(trail.hash, len(bits) // 32)
        words = struct.unpack("<8I", bits[trail.block * 32 :][:32])
        assert trail.present == tuple(bool(w >> b & 1) for w, b in zip(words, trail.bits, strict=True))
        assert (verdict.presence is Presence.MAYBE) == all(trail.present)
    assert report.verdicts[0].presence is Presence.MAYBE
    assert bloomcli.probe(path, ["n5"], column="user.name").verdicts[0].trail == ()


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("encoding", ["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"])
def test_a_filter_finds_a_zero_by_either_sign(tmp_path: Path, name: str, stored: float, encoding: str) -> None:
    if encoding == "DELTA_BYTE_ARRAY" and name != "float16":
        encoding = "PLAIN"  # only fixed-length byte arrays take it
    write(tmp_path / "in", {"c": pa.array([stored, 1.5], CASES[name].type)}, encoding=encoding)
    bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "out", fpp=1e-6, readers="spark")
    bits = bloomcli.dump(tmp_path / "out").bitset
    assert bits == blooms.build(map(CASES[name].plain, [0.0, -0.0, 1.5]), len(bits))
    report = bloomcli.probe(tmp_path / "out", ["0", "-0.0", "nan"])
    assert [t.presence for t in report.totals] == [Presence.MAYBE, Presence.MAYBE, Presence.UNKNOWN]


# --- one name or value, or several


@pytest.mark.parametrize("given", ["id", {"id"}])
def test_one_name_is_meant_as_one_and_not_as_its_letters(path: Path, given: Any) -> None:
    assert {f.column for f in bloomcli.inspect(path, columns=given).filters} == {"id"}
    assert bloomcli.validate(path, columns=given, require=given).ok
    assert bloomcli.gate(path, columns=given, require=given, readers="spark").columns == ("id",)
    for report in (
        bloomcli.add(path, given, replace=True, dry_run=True),
        bloomcli.fold(path, columns=given, dry_run=True),
        bloomcli.remove(path, columns=given, dry_run=True),
    ):
        assert {c.column for c in report.changes if c.action != "keep"} <= {"id"}
    with pytest.raises(UnknownColumn, match="no column 'nosuch'"):
        bloomcli.inspect(path, columns="nosuch")


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("42", ["42"]),
        (42, ["42"]),
        ([42, "7"], ["42", "7"]),
        (np.arange(2), ["0", "1"]),
        (1.5, ["1.5"]),
        (np.float64(0.1), ["0.1"]),
        (Decimal("1.20"), ["1.20"]),
        (dt.date(2024, 2, 29), ["2024-02-29"]),
        (dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC), ["2024-02-29T01:02:03+00:00"]),
        (uuid.UUID(int=1), [str(uuid.UUID(int=1))]),
        ("", [""]),
        ([], []),
    ],
    ids=repr,
)
def test_values_are_the_texts_that_a_person_would_type(given: Any, asked: list[str]) -> None:
    assert list(texts(given)) == asked


@pytest.mark.parametrize("given", [True, None, [1, None], [[1]]])
def test_values_without_one_usual_text_are_refused(path: Path, given: Any) -> None:
    with pytest.raises(UsageError, match="a value to probe is text, bytes, a number, a date or a UUID") as caught:
        bloomcli.probe(path, given, column="id")
    assert "0x0fff" in str(caught.value.hint)
