"""The scalar hashes, against filters that other systems wrote and against published vectors."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import mmh3
from support import reference

from bloomcli import kernels
from bloomcli.formats.parquet.bloom_filter import DRAFT_SEED, draft_hash

HELD = (b"hello", b"parquet", b"bloom", b"filter")
NOT_HELD = [f"nobody-{at}".encode() for at in range(200)]


def draft_holds(bitset: bytes, value: int) -> bool:
    """The 2018 drafts' answer: the same eight bits, in the block that a mask picks."""
    words = struct.unpack_from("<8I", bitset, ((value >> 32) & (len(bitset) // 32 - 1)) * 32)
    return all(word >> bit & 1 for word, bit in zip(words, reference.positions(value, 1)[1], strict=True))


def test_the_filter_of_the_2018_branch_holds_its_strings_by_the_drafts_hash(corpus: Path) -> None:
    data = (corpus / "bloom_filter.bin").read_bytes()
    size, hash_code, algorithm = struct.unpack_from("<3I", data)
    bitset = data[12:]
    assert (size, hash_code, algorithm) == (len(bitset), 0, 0)
    assert all(draft_holds(bitset, draft_hash(value)) for value in HELD)
    assert not any(draft_holds(bitset, draft_hash(value)) for value in NOT_HELD)
    assert not any(draft_holds(bitset, kernels.xxh64(value)) for value in HELD)
    assert bitset.count(0) >= len(bitset) - 8 * len(HELD)


def test_the_current_filter_holds_its_strings_by_xxhash(corpus: Path) -> None:
    data = (corpus / "bloom_filter.xxhash.bin").read_bytes()
    bitset = data[16:]
    assert bitset == reference.filter_of([kernels.xxh64(value) for value in HELD], 1024)
    assert not any(reference.holds(bitset, kernels.xxh64(value)) for value in NOT_HELD)
    assert not any(reference.holds(bitset, draft_hash(value)) for value in HELD)


def test_the_drafts_hash_is_the_low_half_of_murmur3() -> None:
    for length in range(40):
        data = random.Random(length).randbytes(length)
        whole = mmh3.hash_bytes(data, DRAFT_SEED)
        assert draft_hash(data) == int.from_bytes(whole[:8], "little")
