"""Hadoop's chained hashes and filters, against what Hadoop 3.4's own classes computed."""

from __future__ import annotations

from array import array
from base64 import b64decode
from itertools import accumulate

import pytest
from support.hadoop_bits import hadoop_bits

from bloomcli import kernels

KEYS = [
    text.encode()
    for text in (
        *("a", "ab", "abc", "k00042", "id:k00042,n:42", "ключ", "Zürich", "日本語テスト", "é", "aé", "abé"),
        *("0123456789ab", "0123456789abc", "0123456789abcdefghijklmnopq"),
    )
]
JENKINS = (
    "/////wAAAAcAAAAD5RAIIAAAEAIAACA4AAIAAAAAABgAAEAQAAAQGAAICwAAMAYiAAAAIAAAgBAgAAAgAAAAEBAIABYECIAgEAAQAAgAAAAg"
    "QAQAAhAEAECAAIAAABCAAQAABAAQoAAAgIAAEEAAQAAiwAAAAAIAAIAABHIBFGAgQAAAAAhAEAAB"
)
MURMUR = (
    "/////wAAAAcBAAAD5UECgAACAQgAgAAAACQAAQEABAAAAQAAAAAACAAAAAAAAAwAAACAAAAgwBFAAQIECIAQQASgAgcAAIkAAAiAQAAiQAIA"
    "AIAAQRBIAAAAKAAAEMCBgAKAJAAAEIAAAQAAAJgAEAkASIKAACAAAAIIQCAAAGBAAAIQAIgCAAAC"
)
"""Hadoop's BloomFilter(997, 7, hash) with `KEYS`, as base64: a header of 13 bytes, and the bits."""


@pytest.mark.parametrize(("jenkins", "text"), [(True, JENKINS), (False, MURMUR)])
def test_filters_have_the_bits_of_hadoop_s_also_for_bytes_above_127(jenkins: bool, text: str) -> None:
    expected = b64decode(text)[13:]
    data, offsets = b"".join(KEYS), array("q", accumulate(map(len, KEYS), initial=0))
    assert hadoop_bits(KEYS, 997, 7, jenkins=jenkins) == expected
    found = bytearray(len(KEYS))
    kernels.chained_check(expected, 997, 7, jenkins, data, offsets, found)
    assert found == bytearray(b"\1" * len(KEYS))
    for key in KEYS:
        _, bits = kernels.chained_bits(key, 997, 7, jenkins)
        assert all(expected[bit >> 3] >> (bit & 7) & 1 for bit in bits)


def test_the_first_hash_is_that_of_hadoop() -> None:
    assert kernels.chained_bits("ключ".encode(), 997, 7, False)[0] == 1599728837
    assert kernels.chained_bits("日本語テスト".encode(), 997, 1, True)[0] == -9450008 & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("bitset", "m", "k", "data", "offsets", "out"),
    [
        (b"\0", 9, 1, b"a", [0, 1], 1),
        (b"", 0, 1, b"a", [0, 1], 1),
        (b"\0", 8, 0, b"a", [0, 1], 1),
        (b"\0", -8, 1, b"a", [0, 1], 1),
        (b"\0", 8, 1, b"a", [0, 2], 1),
        (b"\0", 8, 1, b"a", [1, 0], 1),
        (b"\0", 8, 1, b"a", [-1, 1], 1),
        (b"\0", 8, 1, b"a", [0, 1], 0),
        (b"\0", 8, 1, b"a", [], 1),
    ],
)
def test_what_would_lie_outside_of_a_buffer_is_refused(
    bitset: bytes, m: int, k: int, data: bytes, offsets: list[int], out: int
) -> None:
    with pytest.raises(ValueError, match=r"filter|offsets"):
        kernels.chained_check(bitset, m, k, False, data, array("q", offsets), bytearray(out))


def test_a_filter_of_one_bit_and_values_without_bytes_are_fine() -> None:
    bitset, found = hadoop_bits([b"a"], 1, 5), bytearray(3)
    offsets = array("q", [0, 0, 1, 1])
    kernels.chained_check(bitset, 1, 5, False, b"a", offsets, found)
    assert (bitset, found) == (b"\1", b"\0\1\0")
