"""Filters that can't be used: each fault has a finding with path, byte offset and field path."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from support import blooms, footers, thrift
from support.tables import packed, write

import bloomcli
from bloomcli import limits
from bloomcli.errors import CorruptFile
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.model.file import Presence

BITS = blooms.build(map(packed("<q"), range(50)), 64)
FIELD = "row_groups[1].columns[0].meta_data.bloom_filter_offset"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 100 rows in 2 row groups, without filters."""
    table = {"id": pa.array(range(100), pa.int64()), "n": [f"n{i}" for i in range(100)]}
    return write(tmp_path / "f.parquet", table, rows=50, store_schema=False)


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import what the commands import on first use: it is no memory of a filter."""
    path = write(tmp_path_factory.mktemp("imported") / "f.parquet", {"id": pa.array(range(9))}, rows=9)
    bloomcli.add(path, ["id"], in_place=True)
    bloomcli.validate(path, deep=True)
    bloomcli.inspect(path)
    bloomcli.dump(path)


def start(path: Path) -> int:
    """The offset of a planted filter, which follows the body."""
    return len(footers.split(path.read_bytes())[0])


def plant(path: Path, blob: bytes, length: int | None = -1) -> int:
    at = start(path)
    path.write_bytes(blooms.planted(path.read_bytes(), 1, 0, blob, length))
    return at


def claim(path: Path, offset: int, length: int | None) -> None:
    path.write_bytes(footers.edited(path.read_bytes(), footers.set_filter(1, 0, offset, length)))


def assert_reported(path: Path, name: str, message: str, offset: int) -> None:
    """Check that every command reports the same about the filter, and allocates nothing for it."""
    tracemalloc.start()
    try:
        (finding,) = (f for f in bloomcli.validate(path, deep=True).findings if f.id != "filter-overlap")
        (fact,) = bloomcli.inspect(path).filters
        with pytest.raises(FilterProblem, match=message) as caught:
            bloomcli.dump(path, row_group=1)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert (finding.id, finding.row_group, finding.column) == (name, 1, "id")
    assert (finding.offset, fact.problem) == (offset, finding.message)
    error = caught.value
    assert isinstance(error, CorruptFile)
    assert (error.path, error.offset, error.field) == (str(path), offset, FIELD)
    assert str(error).startswith(f"{path}: ")
    assert f"(at {FIELD}, byte {offset})" in str(error)
    assert error.hint
    verdicts = bloomcli.probe(path, ["70", "7000"]).verdicts
    assert [v.presence for v in verdicts if v.row_group == 1] == [Presence.UNKNOWN] * 2
    assert {v.reason for v in verdicts if v.row_group == 1} == {finding.message}
    before = path.read_bytes()
    with pytest.raises(FilterProblem):
        bloomcli.fold(path, in_place=True)
    assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
    repaired = path.with_name("repaired")
    bloomcli.add(path, ["id"], output=repaired, replace=True)
    assert bloomcli.validate(repaired, deep=True, require=["id"]).findings == ()
    bloomcli.remove(path, output=path.with_name("removed"))
    assert bloomcli.inspect(path.with_name("removed")).filters == ()


@pytest.mark.parametrize("length", [None, 47, 10**6])
@pytest.mark.parametrize("where", ["footer", "tail", "end", "far", "head"])
def test_a_filter_offset_outside_the_data_is_named(path: Path, where: str, length: int | None) -> None:
    claim(path, 1 << 30, length)
    size = path.stat().st_size
    offset = {"footer": start(path), "tail": size - 8, "end": size, "far": (1 << 63) - 1, "head": 3}[where]
    claim(path, offset, length)
    if where == "footer":  # the claim changed the footer's place within a body that stayed
        offset = start(path)
    assert_reported(path, "filter-offset", "outside the file's data", offset)


@pytest.mark.parametrize("offset", [0, -1, -(1 << 63)])
@pytest.mark.parametrize("length", [None, 0, 47])
def test_an_offset_of_zero_or_below_means_no_filter(path: Path, offset: int, length: int | None) -> None:
    claim(path, offset, length)
    assert bloomcli.inspect(path).filters == ()
    found = [(f.id, f.row_group, f.column) for f in bloomcli.validate(path, deep=True).findings]
    assert found == ([("filter-offset", 1, "id")] if length or offset < -1 else [])
    assert "filter-required" in {f.id for f in bloomcli.validate(path, require=["id"]).findings}
    assert bloomcli.probe(path, ["70"], column="id").verdicts[1].presence is Presence.NO_FILTER
    bloomcli.add(path, ["id"], output=path.with_name("out"))
    assert bloomcli.validate(path.with_name("out"), deep=True, require=["id"]).findings == ()


@pytest.mark.parametrize("length", [None, -1])
@pytest.mark.parametrize(
    ("size", "name", "message"),
    [
        (0, "filter-num-bytes", "the bitset has 0 bytes"),
        (-32, "filter-num-bytes", "the bitset has -32 bytes"),
        (-(1 << 31), "filter-num-bytes", "the bitset has -2147483648 bytes"),
        (33, "filter-num-bytes", "33 bytes are not a multiple of 32"),
        (63, "filter-num-bytes", "63 bytes are not a multiple of 32"),
        (96, "filter-num-bytes", r"header and bitset take \d+ bytes, \d+ are left"),
        (1 << 20, "filter-num-bytes", r"header and bitset take \d+ bytes, \d+ are left"),
        (limits.FILTER_MAX_BYTES + 32, "filter-too-large", "134217760 bytes are more than 134217728"),
        ((1 << 31) - 32, "filter-too-large", "2147483616 bytes are more than"),
        ((1 << 31) - 1, "filter-num-bytes", "not a multiple of 32"),
    ],
)
def test_a_bitset_size_that_can_not_be_is_named(
    path: Path, size: int, name: str, message: str, length: int | None
) -> None:
    assert_reported(path, name, message, plant(path, blooms.header(size) + BITS[:32], length))


@pytest.mark.parametrize("by", [1, 16, -1, -16, -30])
def test_a_length_that_contradicts_the_header_is_not_trusted(path: Path, by: int) -> None:
    blob = blooms.header(64) + BITS
    offset = plant(path, blob + bytes(64), len(blob) + by)
    assert_reported(
        path, "filter-length", f"bloom_filter_length is {len(blob) + by}, the header says {len(blob)}", offset
    )


@pytest.mark.parametrize("length", [0, -1, -(1 << 31), (1 << 31) - 1, 1000])
def test_a_length_that_can_not_be_is_named(path: Path, length: int) -> None:
    offset = plant(path, blooms.header(64) + BITS, 1)
    claim(path, offset, length)
    assert_reported(path, "filter-length", f"bloom_filter_length is {length}, but 80 bytes are left", offset)


@pytest.mark.parametrize(
    ("header", "name", "message"),
    [
        (blooms.header(64, algorithm=2), "filter-algorithm", r"algorithm is unknown \(2\); only BLOCK"),
        (blooms.header(64, algorithm=0), "filter-algorithm", "algorithm is empty"),
        (blooms.header(64, hashed=2), "filter-hash", r"hash is unknown \(2\); only XXHASH"),
        (blooms.header(64, hashed=0), "filter-hash", "hash is empty"),
        (blooms.header(64, compression=2), "filter-compression", r"compression is unknown \(2\)"),
        (blooms.header(64, hashed=2, compression=None), "filter-hash", r"hash is unknown \(2\)"),
        (thrift.encode({1: (thrift.I32, 64)}), "filter-algorithm", "algorithm is missing"),
        (
            thrift.encode(
                {
                    **thrift.parse(blooms.header(64))[0],
                    2: (thrift.STRUCT, {1: (thrift.STRUCT, {}), 2: (thrift.STRUCT, {})}),
                }
            ),
            "filter-algorithm",
            "algorithm is several",
        ),
    ],
    ids=["algorithm", "no_algorithm", "hash", "no_hash", "compression", "draft_hash", "bare", "two_algorithms"],
)
def test_a_header_of_another_kind_is_named(path: Path, header: bytes, name: str, message: str) -> None:
    assert_reported(path, name, message, plant(path, header + BITS))


@pytest.mark.parametrize(
    ("blob", "message", "at"),
    [
        (b"\x00" * 80, "has no numBytes", 0),
        (b"\xff" * 80, "type code", 0),
        (b"\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(70), "integer", 1),
        (b"\x1c" * 80, "nest", None),
        (b"\x18\xff\xff\xff\xff\x0f" + bytes(70), "length", None),
        (thrift.encode({1: (thrift.BINARY, b"64"), **dict(list(thrift.parse(blooms.header(64))[0].items())[1:])})
         + BITS, "BloomFilterHeader has no numBytes", 0),
        (thrift.encode({**thrift.parse(blooms.header(64))[0], 9: (thrift.BINARY, b"x" * 400)}) + BITS, "", None),
    ],
    ids=["zeros", "ones", "varint", "deep", "long_binary", "binary_size", "beyond_the_ceiling"],
)  # fmt: skip
@pytest.mark.parametrize("length", [None, -1])
def test_bytes_that_are_no_header_are_named(
    path: Path, blob: bytes, message: str, at: int | None, length: int | None
) -> None:
    offset = plant(path, blob, length)
    (finding,) = bloomcli.validate(path).findings
    assert finding.id == "filter-header"
    assert finding.message.startswith("no filter header at the filter's offset: ")
    assert message in finding.message
    assert finding.offset is not None
    assert offset <= finding.offset < offset + parquet_limits.FILTER_HEADER_MAX_BYTES
    assert at is None or finding.offset == offset + at
    assert_reported(path, "filter-header", "no filter header", finding.offset)


def test_a_header_with_fields_of_the_future_is_read(path: Path) -> None:
    fields = {**thrift.parse(blooms.header(64))[0], 9: (thrift.BINARY, b"x" * 100), 70: (thrift.TRUE, True)}
    plant(path, thrift.encode(fields) + blooms.build(map(packed("<q"), range(50, 100)), 64))
    assert bloomcli.validate(path, deep=True).findings == ()
