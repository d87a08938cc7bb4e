"""Values of a few rows are picked out of pages: they are those that Arrow reads, and Arrow reads all others."""

from __future__ import annotations

import datetime as dt
import decimal
from array import array
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bloomcli
from bloomcli import kernels
from bloomcli.formats.parquet import page_rows

ROWS = 5000
WANTED = (0, 1, 777, 2500, 2501, 4999)
EPOCH = dt.datetime(2026, 1, 1)
PICKED = (
    "i32",
    "u32",
    "u64",
    "f32",
    "f64",
    "text",
    "raw",
    "day",
    "ms",
    "us",
    "ns",
    "zoned",
    "few",
    "same",
    "seconds",
    "i8",
    "nulls",
    "amount",
    "small",
    "long",
    "fixed",
    "large",
    "clock",
    "took",
)
FLAG = "flag"
"""It is picked out of pages of version 1. Those of version 2 have runs instead of bits."""
OTHERS = ("id", "list", "struct", "coded")
"""The values of `id`, which is searched, are known."""


def table() -> pa.Table:
    n = range(ROWS)
    times = [EPOCH + dt.timedelta(seconds=k) for k in n]
    return pa.table(
        {
            "id": pa.array(n, pa.int64()),
            "i32": pa.array([-k for k in n], pa.int32()),
            "u32": pa.array([2**32 - 1 - k for k in n], pa.uint32()),
            "u64": pa.array([2**64 - 1 - k for k in n], pa.uint64()),
            "f32": pa.array([k / 4 for k in n], pa.float32()),
            "f64": pa.array([-k / 8 for k in n], pa.float64()),
            "text": [f"naïve {k}" if k % 5 else "" for k in n],
            "raw": pa.array([bytes([255, k % 256]) for k in n], pa.binary()),
            "day": pa.array(n, pa.int32()).cast(pa.date32()),
            "ms": pa.array(times, pa.timestamp("ms")),
            "us": pa.array(times, pa.timestamp("us")),
            "ns": pa.array(times, pa.timestamp("ns")),
            "zoned": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
            "few": [f"kind {k % 7}" for k in n],
            "same": pa.array([12] * ROWS, pa.int64()),
            "i8": pa.array([k % 100 for k in n], pa.int8()),
            "nulls": pa.array([None if k % 3 == 1 else k for k in n], pa.int64()),
            "flag": [k % 2 == 0 for k in n],
            "amount": pa.array([decimal.Decimal(k) / 4 for k in n], pa.decimal128(12, 2)),
            "small": pa.array([decimal.Decimal(k - 2500) / 4 for k in n], pa.decimal128(7, 2)),
            "long": pa.array(
                [None if k % 7 == 2 else decimal.Decimal(2500 - k) * 10**20 for k in n], pa.decimal128(38)
            ),
            "fixed": pa.array([k.to_bytes(4, "big") for k in n], pa.binary(4)),
            "large": pa.array([f"large {k}" for k in n], pa.large_string()),
            "seconds": pa.array(times, pa.timestamp("s")),
            "clock": pa.array(n, pa.int64()).cast(pa.time64("us")),
            "took": pa.array(n, pa.int64()).cast(pa.duration("us")),
            "list": [[k, None] if k % 4 else [] for k in n],
            "struct": [{"a": k, "b": {"c": str(k)}} if k % 4 else None for k in n],
            "coded": pa.array([f"code {k % 5}" for k in n]).dictionary_encode(),
        }
    )


def records(found: Any) -> pa.Table:
    return pa.concat_tables(pa.Table.from_struct_array(batch.column("record")) for batch in found)


def write(path: Path, **options: Any) -> pa.Table:
    made = table()
    pq.write_table(made, path, data_page_size=3000, write_batch_size=100, write_page_index=True, **options)
    return pq.read_table(path)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_records_are_those_that_arrow_reads(
    codec: str, version: str, dictionary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kinds.parquet"
    options: dict[str, Any] = {"use_dictionary": dictionary, "dictionary_pagesize_limit": 8000}
    options |= {"store_decimal_as_integer": codec in {"snappy", "gzip"}}
    whole = write(path, compression=codec, data_page_version=version, row_group_size=2500, **options)
    picked: set[str] = set()
    original = page_rows.picked

    def watched(source: Any, chunk: Any, *rest: Any) -> Any:
        found = original(source, chunk, *rest)
        if found is not None:
            picked.add(chunk.column.path)
        return found

    monkeypatch.setattr(page_rows, "picked", watched)
    dense = (range(0, ROWS, 9), range(0, ROWS, 3)) if codec == "zstd" else ()  # of a third, Arrow reads chunks
    for wanted in (WANTED, WANTED[2:3], *dense):
        found = records(bloomcli.find(path, list(wanted), column="id"))
        expected = whole.take(list(wanted))
        assert found.schema.names == expected.schema.names
        for name in expected.column_names:
            assert found[name].to_pylist() == expected[name].to_pylist(), name
            assert found[name].type == expected[name].type, name
    assert picked - {FLAG} == set(PICKED)
    assert (FLAG in picked) == (version == "1.0")
    assert set(whole.column_names) == {*PICKED, FLAG, *OTHERS}


def test_bytes_that_are_not_utf8_are_given_as_arrow_gives_them(tmp_path: Path) -> None:
    path = tmp_path / "latin.parquet"
    text = pa.array([b"caf\xe9 %d" % n for n in range(ROWS)], pa.binary())
    buffers = text.buffers()
    wrong = pa.Array.from_buffers(pa.string(), ROWS, buffers)
    pq.write_table(pa.table({"id": range(ROWS), "text": wrong}), path, data_page_size=3000, write_page_index=True)
    found = records(bloomcli.find(path, 4000, column="id"))
    assert found["text"].cast(pa.binary()).to_pylist() == [b"caf\xe9 4000"]


def test_pages_that_are_damaged_are_left_to_arrow_which_says_so(tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
    write(path, **options)
    data = bytearray(path.read_bytes())
    at = data.index("naïve 2501".encode())
    data[at] ^= 1
    path.write_bytes(data)
    found = bloomcli.find(path, 2501, column="id", select=["text"])
    assert list(found) == []
    assert [error.exit_code for error in found.report.errors] == [3]
    again = records(bloomcli.find(path, 4999, column="id", select=["text"]))
    assert again["text"].to_pylist() == ["naïve 4999"]


def picked_indices(data: bytes, positions: list[int], limit: int = 1 << 32) -> list[int]:
    at = array("q", positions)
    kernels.pick_indices(data, 0, limit, at)
    return at.tolist()


@pytest.mark.parametrize("width", [0, 1, 3, 8, 11, 20, 32])
def test_dictionary_indices_are_picked_out_of_runs(width: int) -> None:
    most = (1 << width) - 1
    packed = [k * 7919 & most for k in range(24)]
    bits = sum(value << (at * width) for at, value in enumerate(packed))
    repeated = 5 & most
    runs = bytes([3 << 1 | 1]) + bits.to_bytes(3 * width, "little")
    runs += b"\xd8\x04" + repeated.to_bytes((width + 7) // 8, "little")  # 300 times
    data = bytes([width]) + runs
    every = packed + [repeated] * 300
    for positions in ([0], [7, 8, 23], [24, 323], list(range(324))):
        assert picked_indices(data, positions) == [every[at] for at in positions]
        numbers = array("q", [-1]) * (most + 1 if width < 20 else 0)
        for at in positions if numbers else ():
            numbers[every[at]] = at
        if numbers:
            there, found = (
                memoryview(part).cast("q").tolist() for part in kernels.match_indices(data, 0, 324, numbers)
            )
            assert there == [at for at in range(324) if numbers[every[at]] >= 0]
            assert found == [numbers[every[at]] for at in there]
    assert picked_indices(data, [-1, 3, -1, 30, -1]) == [-1, every[3], -1, every[30], -1]
    bad: list[tuple[bytes, list[int], int]] = [(b"", [0], 9), (b"\x21", [0], 9), (b"\x08" + b"\xff" * 11, [0], 9)]
    bad += [(b"\x08\x00\x07" * 3, [0], 9), (b"\x08\x02\x07", [0], 7), (b"\x08\x03" + bytes(6) + b"\x09", [7], 9)]
    if width:
        bad += [(data, [324], 1 << 32), (data[: width + 1], [23], 1 << 32), (data, [3, 3], 1 << 32)]
    for broken, positions, limit in bad:
        with pytest.raises(kernels.PageError):
            picked_indices(broken, positions, limit)


def test_values_are_not_picked_from_behind_a_page() -> None:
    page = b"".join(len(word).to_bytes(4, "little") + word for word in (b"a", b"", b"ccc"))
    starts = array("q", [-1, 0, 2])
    kernels.binary_starts(page, 0, starts)
    sizes = array("q", [0, 0, 0])
    assert kernels.pick_binary(page, starts, 9, sizes) == b"accc"
    assert sizes.tolist() == [0, 1, 3]
    assert kernels.pick_binary(page, starts, 3, sizes) is None
    assert memoryview(kernels.binary_places(page, 0, 3)).cast("q").tolist() == [0, 5, 9]
    for broken, positions in ((page, [3]), (page[:-1], [2]), (page, [1, 0]), (page[:3], [0])):
        with pytest.raises(kernels.PageError):
            kernels.binary_starts(broken, 0, array("q", positions))
    for start in (10, len(page), len(page) - 3, 1 << 40):
        with pytest.raises(kernels.PageError):
            kernels.pick_binary(page, array("q", [start]), 9, sizes)
    for broken, count in ((page, 4), (page[:-1], 3), (page, -1)):
        with pytest.raises(kernels.PageError):
            kernels.binary_places(broken, 0, count)
    assert kernels.pick_fixed(bytes(range(12)), 2, 3, array("q", [0, -1, 2])) == bytes([2, 3, 4, 0, 0, 0, 8, 9, 10])
    assert kernels.pick_bits(b"\x00\x82", 1, array("q", [1, 2, -1, 7])) == bytes([1, 0, 0, 1])
    for position in (3, 1 << 60):
        with pytest.raises(kernels.PageError):
            kernels.pick_fixed(bytes(range(12)), 2, 3, array("q", [position]))
    with pytest.raises(kernels.PageError):
        kernels.pick_bits(b"\x00\x82", 1, array("q", [8]))
    for width, made in ((1, b"\xff"), (2, b"\x80\x01"), (16, bytes(range(16)))):
        for order in ("big", "little"):
            found = kernels.decimals_of(made, width, order == "big")
            assert int.from_bytes(found, "little", signed=True) == int.from_bytes(made, order, signed=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="16 bytes"):
        kernels.decimals_of(bytes(17), 17, True)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), min_size=1, max_size=8), st.data())
def test_positions_with_and_without_nulls_are_each_others(runs: list[tuple[bool, int]], data: st.DataObject) -> None:
    """Runs of equal levels, and bit-packed ones in between."""
    levels: list[bool] = []
    coded = b""
    for number, (level, times) in enumerate(runs):
        if number % 2:
            bits = data.draw(st.lists(st.booleans(), min_size=8, max_size=24).filter(lambda bits: len(bits) % 8 == 0))
            levels += bits
            coded += bytes([len(bits) // 8 << 1 | 1])
            coded += sum(bit << at for at, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")
        else:
            levels += [level] * times
            coded += bytes([times << 1, level])
    ranks = [sum(levels[:at]) if level else -1 for at, level in enumerate(levels)]
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(levels))))))
    at = array("q", chosen)
    kernels.pick_levels(coded, 0, len(coded), at)
    assert at.tolist() == [ranks[position] for position in chosen]
    kept = array("q", [rank for rank in at if rank >= 0])
    kernels.place_values(coded, 0, len(coded), kept)
    assert kept.tolist() == [position for position in chosen if levels[position]]
    bitmap, nulls = kernels.validity_of(at)
    assert nulls == at.tolist().count(-1)
    assert [bool(bitmap[n >> 3] >> (n & 7) & 1) for n in range(len(at))] == [rank >= 0 for rank in at]
    for beyond, function in ((len(levels), kernels.pick_levels), (sum(levels), kernels.place_values)):
        with pytest.raises(kernels.PageError):
            function(coded, 0, len(coded), array("q", [beyond]))
