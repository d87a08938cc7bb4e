"""Deletion vectors as Iceberg and Delta store them: all kinds of containers, and damage."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from bloomcli.errors import CorruptFile
from bloomcli.tables.deleted_rows import DeletionVector, from_blob, from_body
from bloomcli.tables.delta.reading import z85

pytestmark = pytest.mark.slow  # the quick run leaves out the tests of tables

MAGIC = b"\xd1\xd3\x39\x64"


def array(numbers: list[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)


def bits(numbers: set[int]) -> bytes:
    found = bytearray(8192)
    for number in numbers:
        found[number // 8] |= 1 << number % 8
    return bytes(found)


def without_runs(containers: dict[int, tuple[int, bytes]]) -> bytes:
    """A 32-bit bitmap of containers: cardinality and bytes."""
    head = struct.pack("<II", 12346, len(containers))
    keys = b"".join(struct.pack("<HH", key, count - 1) for key, (count, _) in containers.items())
    offsets = bytes(4 * len(containers))
    return head + keys + offsets + b"".join(data for _, data in containers.values())


def with_runs(runs: list[tuple[int, int]]) -> bytes:
    """A 32-bit bitmap of one container of runs: starts and lengths."""
    pairs = b"".join(struct.pack("<HH", start, length - 1) for start, length in runs)
    count = sum(length for _, length in runs)
    return struct.pack("<IBHHH", 12347, 1, 0, count - 1, len(runs)) + pairs


def body(*bitmaps: tuple[int, bytes]) -> bytes:
    return MAGIC + struct.pack("<Q", len(bitmaps)) + b"".join(struct.pack("<I", key) + b for key, b in bitmaps)


def blob(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def test_a_vector_with_another_number_of_rows_than_the_metadata_say_is_an_error(tmp_path: Path) -> None:
    even = set(range(0, 20_000, 2))
    low = without_runs({0: (3, array([1, 7, 65535])), 2: (len(even), bits(even))})
    data = blob(body((0, low), (1, with_runs([(10, 5), (100, 1)]))))
    count = 3 + len(even) + 5 + 1
    (tmp_path / "dv.bin").write_bytes(data)
    for rows in (None, count):
        in_file = DeletionVector(path=str(tmp_path / "dv.bin"), size=len(data), rows=rows)
        for vector in (in_file, DeletionVector(path="log", body=data[4:-4], rows=rows)):
            assert vector.read().count == count
    with pytest.raises(CorruptFile, match=f"deletes {count} rows, and the table's metadata say 7"):
        DeletionVector(path=str(tmp_path / "dv.bin"), size=len(data), rows=7).read()


def test_numbers_are_found_in_arrays_bits_and_runs() -> None:
    even = set(range(0, 20_000, 2))
    low = without_runs({0: (3, array([1, 7, 65535])), 2: (len(even), bits(even))})
    found = from_blob(blob(body((0, low), (1, with_runs([(10, 5), (100, 1)])))), "dv.bin", 0)
    wanted = {1, 7, 65535, *(2 * 65536 + n for n in even), *((1 << 32) + n for n in (10, 11, 12, 13, 14, 100))}
    asked = [*range(70_000), *range(2 * 65536, 2 * 65536 + 30_000), *range(1 << 32, (1 << 32) + 200), 1 << 40]
    assert {number for number in asked if number in found} == wanted


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "isn't as long"),
        (lambda data: data[:20] + b"\xff" + data[21:], "checksum"),
        (lambda data: data[:0], "isn't as long"),
    ],
)
def test_a_damaged_blob_is_an_error(damage: object, reason: str) -> None:
    whole = blob(body((0, without_runs({0: (2, array([1, 7]))}))))
    with pytest.raises(CorruptFile, match=reason):
        from_blob(damage(whole), "dv.bin", 4)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0\0\0\0" + bytes(8), "magic"),
        (MAGIC + struct.pack("<Q", 1 << 60), "ends too early"),
        (body((0, struct.pack("<II", 12346, 1 << 31))), "ends too early"),
        (body((0, struct.pack("<I", 99))), "ends too early"),
        (body((0, without_runs({0: (2, array([1]))}))), "ends too early"),
        (body() + b"x", "too long"),
    ],
)
def test_sizes_that_a_bitmap_claims_are_not_believed(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason):
        from_body(data, "dv.bin")


def test_texts_are_read_as_zeromq_writes_them() -> None:
    assert z85("HelloWorld", "log") == bytes.fromhex("864fd26fb559f75b")
    for text in ("Hello~orld", "Hell", "#####"):
        with pytest.raises(CorruptFile):
            z85(text, "log")
