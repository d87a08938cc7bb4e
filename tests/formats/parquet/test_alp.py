"""ALP pages: their values are hashed, found and proven bit by bit, and damaged ones are named; so are drafts'."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import alp, footers, fuzzparquet, pagefiles, thrift
from support.thrift import Fields, Items

import bloomcli
from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits
from bloomcli.kernels import PageError

WORKED: Final = bytes.fromhex("00000a 04000000 04000000 0403 0100 070d000000000000 0f") + b"".join(
    [
        sum(delta << 15 * at for at, delta in enumerate((11665, 11665, 21665, 0))).to_bytes(8, "little"),
        struct.pack("<Hd", 1, float("nan")),
    ]
)
"""The specification's example: 1500, NaN, 2500 and 333.5."""
PAGE: Final = b"??" + alp.page(
    [
        alp.vector(np.array([7, -1, 5, 7, 7, 7, 7, 900]), 3, 1, {1: bytes(8), 4: b"\1" * 8}, 8),
        alp.vector(np.array([3, 4]), 0, 0, {}, 8),
    ],
    10,
    3,
)
"""Ten values in two vectors, after two other bytes."""


def values(data: bytes, count: int, width: int, at: int = 0) -> bytes:
    """All values of a page."""
    reader, out = kernels.Alp(data, at, count, width), bytearray(count * width)
    assert reader.read(out) == count
    assert reader.read(out) == 0
    return bytes(out)


def test_the_specification_s_example_is_decoded() -> None:
    assert struct.unpack("<4d", values(WORKED, 4, 8))[::2] == (1500.0, 2500.0)
    assert values(WORKED, 4, 8)[8:16] == struct.pack("<d", float("nan"))
    assert values(WORKED, 4, 8)[24:] == struct.pack("<d", 333.5)


@pytest.mark.slow
@pytest.mark.parametrize("width", [4, 8])
def test_every_bit_width_exponent_and_vector_size_is_decoded(width: int) -> None:
    random = np.random.default_rng(width)
    for bits in range(8 * width + 1):
        log = 3 + bits % 13
        exponent = bits % (alp.MOST[width] + 1)
        factor = bits % (exponent + 1)
        counts = [1 << log, min(1 << log, 1 + bits * 7)]
        vectors, wanted = [], []
        for count in counts:
            deltas = random.integers(0, 1 << 63, count, np.uint64, endpoint=True) * 2 + 1
            deltas = deltas >> np.uint64(64 - bits) if bits else np.zeros(count, np.uint64)
            low = np.uint64(-(1 << bits >> 1) % (1 << 64))
            integers = (deltas + low).astype(f"u{width}").view(f"i{width}")
            exceptions = {int(at): random.bytes(width) for at in random.choice(count, count // 5, replace=False)}
            vectors.append(alp.vector(integers, exponent, factor, exceptions, width, bits))
            plain = bytearray(alp.decoded(integers, exponent, factor, width).tobytes())
            for at, value in exceptions.items():
                plain[at * width : (at + 1) * width] = value
            wanted.append(bytes(plain))
        data = b"?" + alp.page(vectors, sum(counts), log)
        assert values(data, sum(counts), width, 1) == b"".join(wanted), (bits, log, exponent, factor)


def test_the_powers_are_those_of_the_decimals_as_numpy_rounds_them() -> None:
    """All 66 and 190 pairs, on integers with as many digits as the type holds."""
    for width, digits in ((4, 16_777_213), (8, 9_007_199_254_740_991)):
        for exponent in range(alp.MOST[width] + 1):
            for factor in range(exponent + 1):
                integers = np.array([digits, -3, 1, 10, 12345, 7, -digits, 99], f"<i{width}")
                data = alp.page([alp.vector(integers, exponent, factor, {}, width)], 8, 3)
                assert values(data, 8, width) == alp.decoded(integers, exponent, factor, width).tobytes()


def test_a_page_is_decoded_in_parts_of_whole_vectors() -> None:
    reader, whole = kernels.Alp(PAGE, 2, 10, 8), values(PAGE, 10, 8, 2)
    with pytest.raises(ValueError, match="no room for a vector"):
        reader.read(bytearray(63))
    first, second = bytearray(79), bytearray(79)
    assert (reader.read(first), reader.read(second)) == (8, 2)
    assert bytes(first[:64] + second[:16]) == whole


def test_every_cut_of_a_page_is_refused() -> None:
    for end in range(2, len(PAGE)):
        with pytest.raises(PageError):
            values(PAGE[:end], 10, 8, 2)
    assert values(PAGE + b"more", 10, 8, 2) == values(PAGE, 10, 8, 2)


FAULTS: Final[dict[str, tuple[int, int, str]]] = {  # (offset, byte, message)
    "the mode": (0, 1, "compression mode 1 and the integer encoding 0, which are reserved"),
    "the encoding of integers": (1, 2, "compression mode 0 and the integer encoding 2, which are reserved"),
    "vectors that are too small": (2, 2, r"vectors of 2\^2 values"),
    "vectors that are too large": (2, 16, r"vectors of 2\^16 values"),
    "the number of values": (3, 9, "the ALP header says 9 values, the page has 10"),
    "a negative number of values": (6, 0x80, "the ALP header says"),
    "the first offset": (7, 9, "ALP vector 0: its offset isn't where"),
    "the second offset": (14, 1, "ALP vector 1: its offset isn't where"),
    "the exponent": (15, 19, "ALP vector 0: an exponent or a factor that isn't valid"),
    "the factor": (16, 4, "ALP vector 0: an exponent or a factor that isn't valid"),
    "the exceptions": (17, 9, "ALP vector 0: more exceptions than values"),
    "many exceptions": (18, 0xFF, "ALP vector 0: more exceptions than values"),
    "the bit width": (27, 65, "ALP vector 0: more bits than a value has"),
    "a larger bit width": (27, 64, "ALP vector 0: "),
    "a position": (38, 8, "ALP vector 0: an exception behind the vector's last value"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_damaged_page_is_named(what: str) -> None:
    at, byte, message = FAULTS[what]
    data = bytearray(PAGE)
    data[2 + at] = byte
    with pytest.raises(PageError, match=message):
        values(bytes(data), 10, 8, 2)


def test_a_float_has_narrower_limits() -> None:
    data = bytearray(alp.page([alp.vector(np.array([1, 2], "<i4"), 10, 10, {}, 4)], 2, 3))
    for at, byte in ((11, 11), (19, 33)):
        damaged = bytearray(data)
        damaged[at] = byte
        with pytest.raises(PageError):
            values(bytes(damaged), 2, 4)


@pytest.mark.parametrize(
    ("start", "count", "width"), [(-1, 10, 8), (len(PAGE) + 1, 10, 8), (1 << 62, 10, 8), (2, -1, 8), (2, 10, 3)]
)
def test_wrong_places_numbers_and_widths_are_refused(start: int, count: int, width: int) -> None:
    with pytest.raises(ValueError):
        kernels.Alp(PAGE, start, count, width)


# --- files


def shapes(numbers: list[float]) -> dict[str, tuple[pa.Array, str]]:
    """Values flat, with nulls, in lists and in structs, with the leaf's path."""
    lists = [None if n % 7 == 3 else [] if n % 7 == 5 else [value, None, value] for n, value in enumerate(numbers)]
    structs = [None if n % 5 == 3 else {"x": value, "y": n} for n, value in enumerate(numbers)]
    return {
        "flat": (pa.array(numbers, pa.float64()), "v"),
        "nulls": (pa.array([None if n % 3 == 1 else v for n, v in enumerate(numbers)], pa.float32()), "v"),
        "only nulls": (pa.nulls(len(numbers), pa.float64()), "v"),
        "lists": (pa.array(lists, pa.list_(pa.float64())), "v.list.element"),
        "structs": (pa.array(structs, pa.struct([("x", pa.float32()), ("y", pa.int64())])), "v.x"),
    }


NUMBERS: Final = [
    {3: -0.0, 9: 0.1 + 0.2, 15: float("inf"), 21: 1e300, 27: -5e-324}.get(n, 100 + n * 0.25) for n in range(600)
]
SOUGHT: Final = ["100", "0", "175", "0.30000000000000004", "inf", "249.75", "1e300", "7"]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("shape", shapes([]))
def test_a_file_in_alp_has_the_filters_rows_and_values_of_the_same_file_in_plain(
    shape: str, version: str, tmp_path: Path
) -> None:
    array, leaf = shapes(NUMBERS)[shape]
    table = pa.table({"v": array, "n": range(len(NUMBERS))})
    codec = ("none", "snappy", "zstd", "gzip", "lz4")[list(shapes([])).index(shape)]
    options: dict[str, Any] = {"data_page_version": version, "compression": codec, "row_group_size": 300}
    options |= {"data_page_size": 500, "write_batch_size": 10}
    plain, encoded = tmp_path / "plain.parquet", tmp_path / "alp.parquet"
    pq.write_table(table, plain, use_dictionary=False, **options)
    encoded.write_bytes(alp.written(table, [leaf], log=4, **options))
    assert len(fuzzparquet.pages(encoded.read_bytes())) > 8
    found = []
    for path in (plain, encoded):
        bloomcli.add(path, [leaf], in_place=True)
        report = bloomcli.validate(path, deep=True, columns=["*"])
        assert report.findings == ()
        rows = bloomcli.find(path, SOUGHT, column=leaf)
        records = [(row["row"], row["value"], row["record"]) for batch in rows for row in batch.to_pylist()]
        assert not rows.report.errors
        data = path.read_bytes()
        found.append((records, [data[at : at + size] for *_, at, size in footers.claims(data)]))
    assert repr(found[0]) == repr(found[1])
    assert (shape == "only nulls") == (not found[0][0])


def test_all_rows_of_large_row_groups_are_shown(tmp_path: Path) -> None:
    """Few rows are read by pages, and many from whole chunks."""
    path = tmp_path / "f.parquet"
    table = pa.table({"k": [n % 2 for n in range(3000)], "v": [n / 4 for n in range(3000)]})
    path.write_bytes(alp.written(table, ["v"], log=10, row_group_size=1000, data_page_size=2000))
    rows = [row["record"] for batch in bloomcli.find(path, "1", column="k") for row in batch.to_pylist()]
    assert rows == table.slice(0).filter(pa.array([n % 2 == 1 for n in range(3000)])).to_pylist()


def test_values_that_no_bytes_take_are_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"k": [0, 1] * 20_000, "v": pa.array([[5.0]] * 40_000, pa.list_(pa.float64()))})
    path.write_bytes(alp.written(table, ["v.list.element"], log=15, compression="zstd"))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(limits, "ROWS_FILE_MAX_BYTES", 300_000)
    found = bloomcli.find(path, "1", column="k")
    assert list(found) == []
    (error,) = found.report.errors
    assert "that Arrow can't decode, which decoded take more than the 300000 bytes" in str(error)
    assert sum(batch.num_rows for batch in bloomcli.find(path, "1", column="k", select=["k"])) == 20_000


def renumbered(path: Path, number: int, physical: str = "INT64") -> Path:
    """A file of a column `v` whose page claims an encoding, and of a column `k`."""
    pages = [pagefiles.data_page(b"".join(n.to_bytes(8, "little") for n in range(5)), 5)]
    header, start = thrift.parse(pages[0])
    header[5][1][2] = (thrift.I32, number)
    pagefiles.of_pages(path, {"v": (physical, [thrift.encode(header) + pages[0][start:]]), "k": ("INT64", pages)}, 5)

    def edit(metadata: Fields) -> None:
        footers.meta(metadata, 0, 0)[2] = (thrift.LIST, Items(thrift.I32, [number]))

    return footers.edit_file(path, path, edit)


@pytest.mark.parametrize(("number", "name"), [(11, "PFOR or FSST (draft)"), (42, "CODE 42")])
def test_an_encoding_that_is_not_read_is_named_and_other_columns_get_filters(
    number: int, name: str, tmp_path: Path
) -> None:
    path = renumbered(tmp_path / "f.parquet", number)
    assert bloomcli.inspect(path).by_column[0].encodings == (name,)
    with pytest.raises(UnsupportedError) as caught:
        bloomcli.add(path, ["v"], output=tmp_path / "out.parquet")
    found = bloomcli.find(path, "3", column="v")
    assert list(found) == []
    for error in (caught.value, found.report.errors[0]):
        assert f"values in the encoding {name}" in str(error)
        assert error.hint == "choose other columns, or write this one again in another encoding"
    assert bloomcli.add(path, ["k"], output=tmp_path / "out.parquet").changes


def test_integers_in_alp_are_refused(tmp_path: Path) -> None:
    path = renumbered(tmp_path / "f.parquet", alp.ALP)
    with pytest.raises(CorruptFile, match="values of the type INT64 in the encoding ALP, which doesn't support it"):
        bloomcli.add(path, ["v"], output=tmp_path / "out.parquet")
