"""Split-block filters: the bits of the specification, measured rates, folding."""

from __future__ import annotations

import random

import pytest
from support import reference
from support.reference import packed

from bloomcli import kernels
from bloomcli.filters.split_block import SALT, SplitBlockFilter

SOURCE = random.Random(5)
HASHES = [SOURCE.getrandbits(64) for _ in range(3000)]
SIZES = [32, 64, 96, 224, 1024, 8192]


def filled(nbytes: int, count: int) -> SplitBlockFilter:
    """A filter that holds the first `count` hashes."""
    built = SplitBlockFilter.empty(nbytes)
    built.insert_hashes(packed(HASHES[:count]), count)
    return built


def test_the_salts_are_the_specifications() -> None:
    assert SALT == reference.SALTS


@pytest.mark.parametrize("nbytes", SIZES)
def test_inserting_one_by_one_and_at_once_gives_the_specifications_bits(nbytes: int) -> None:
    single = SplitBlockFilter.empty(nbytes)
    for value in HASHES[:200]:
        single.insert(value)
    assert single.bitset == filled(nbytes, 200).bitset == reference.filter_of(HASHES[:200], nbytes)
    assert (single.nbytes, single.blocks) == (nbytes, nbytes // 32)


@pytest.mark.parametrize("nbytes", SIZES)
def test_one_answer_and_many_answers_agree_with_the_specification(nbytes: int) -> None:
    built = filled(nbytes, 50)
    out = bytearray(500)
    absent = built.check_hashes(packed(HASHES[:500]), 500, out)
    expected = [reference.holds(bytes(built.bitset), value) for value in HASHES[:500]]
    assert [built.check(value) for value in HASHES[:500]] == expected == [bool(answer) for answer in out]
    assert absent == expected.count(False)
    assert all(expected[:50])


@pytest.mark.parametrize("value", [0, (1 << 64) - 1, kernels.xxh64(b"parquet")])
def test_a_trail_names_the_block_the_bits_and_which_are_set(value: int) -> None:
    built = SplitBlockFilter.empty(1024)
    block, bits, present = built.trail(value)
    assert (block, bits) == reference.positions(value, 32)
    assert present == (False,) * 8
    built.insert(value)
    assert built.trail(value) == (block, bits, (True,) * 8)


def test_a_trail_shows_a_single_missing_bit() -> None:
    built = filled(32, 1)
    bits = built.trail(HASHES[0])[1]
    built.bitset[4 * 3 + bits[3] // 8] ^= 1 << bits[3] % 8  # type: ignore[index]
    assert built.trail(HASHES[0])[2] == (True, True, True, False, True, True, True, True)
    assert not built.check(HASHES[0])


@pytest.mark.parametrize("count", [0, 1, 30, 3000])
@pytest.mark.parametrize("nbytes", SIZES)
def test_the_rate_is_exactly_the_formulas(nbytes: int, count: int) -> None:
    built = filled(nbytes, count)
    set_bits, fpp = reference.stats(bytes(built.bitset))
    assert built.set_bits == set_bits
    assert built.fill == set_bits / (nbytes * 8)
    assert built.fpp == pytest.approx(fpp, rel=1e-12)


def test_the_rate_is_what_random_probes_meet() -> None:
    built = filled(1024, 400)
    source = random.Random(7)
    probes = [source.getrandbits(64) for _ in range(100_000)]
    absent = built.check_hashes(packed(probes), len(probes), bytearray(len(probes)))
    expected = built.fpp
    deviation = (expected * (1 - expected) / len(probes)) ** 0.5
    assert (len(probes) - absent) / len(probes) == pytest.approx(expected, abs=5 * deviation)


def test_every_pattern_of_a_word_weighs_by_its_bits() -> None:
    bitset = b"".join((2**ones - 1).to_bytes(4, "little") for ones in (1, 2, 4, 8, 16, 32, 31, 5))
    assert SplitBlockFilter(bitset).fpp == (1 * 2 * 4 * 8 * 16 * 32 * 31 * 5) / 32**8


def test_figures_follow_later_insertions() -> None:
    built = filled(64, 5)
    before = (built.set_bits, built.fpp, built.ndv_estimate)
    built.insert(HASHES[10])
    assert built.set_bits > before[0]
    assert built.fpp > before[1]
    built.insert_hashes(packed(HASHES[20:40]), 20)
    assert built.set_bits == reference.stats(bytes(built.bitset))[0]


def test_read_only_bits_are_copied_before_they_change() -> None:
    frozen = bytes(64)
    built = SplitBlockFilter(frozen)
    built.insert(HASHES[0])
    assert built.check(HASHES[0])
    assert not any(frozen)


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_the_distinct_values_are_estimated_from_the_bits(count: int) -> None:
    assert filled(8192, count).ndv_estimate == pytest.approx(count, rel=0.05, abs=0.5)


def test_an_empty_filter_has_no_values_and_a_full_one_has_no_estimate() -> None:
    assert SplitBlockFilter.empty(64).ndv_estimate == 0
    assert SplitBlockFilter(b"\xff" * 64).ndv_estimate is None


@pytest.mark.parametrize("size", [0, 1, 31, 33, 100])
def test_bits_that_are_not_whole_blocks_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="multiple of 32"):
        SplitBlockFilter(bytes(size))
    with pytest.raises(ValueError, match="multiple of 32"):
        SplitBlockFilter.empty(size)


@pytest.mark.parametrize("count", [0, 1, 100, 3000])
@pytest.mark.parametrize("nbytes", [64, 192, 1024, 8192, 65536])
def test_folded_equals_freshly_built(nbytes: int, count: int) -> None:
    built = filled(nbytes, count)
    while built.blocks % 2 == 0:
        built = built.fold()
        assert built.bitset == filled(built.nbytes, count).bitset
    with pytest.raises(ValueError, match="odd"):
        built.fold()


def test_folding_leaves_the_larger_filter_as_it_was() -> None:
    built = filled(1024, 100)
    before = bytes(built.bitset)
    built.fold().insert(HASHES[500])
    assert built.bitset == before


@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("count", [1, 50, 700])
def test_a_filter_is_folded_to_the_smallest_that_meets_the_rate(count: int, fpp: float) -> None:
    folded = filled(65536, count).folded_to(fpp)
    assert folded.fpp <= fpp
    assert folded.bitset == filled(folded.nbytes, count).bitset
    assert folded.blocks == 1 or folded.fold().fpp > fpp


def test_a_filter_that_misses_the_rate_stays_unchanged() -> None:
    built = filled(256, 1000)
    assert built.folded_to(0.001) is built


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_an_odd_filter_stays_unchanged(blocks: int) -> None:
    built = filled(32 * blocks, 1)
    assert built.folded_to(0.99, max_bytes=32) is built


@pytest.mark.parametrize(("cap", "size"), [(32, 32), (100, 64), (512, 512), (1023, 512), (4096, 4096)])
def test_a_cap_goes_before_the_rate(cap: int, size: int) -> None:
    folded = filled(4096, 3000).folded_to(0.001, max_bytes=cap)
    assert folded.nbytes == size
    assert folded.bitset == filled(size, 3000).bitset


def test_a_cap_that_is_not_needed_changes_nothing() -> None:
    built = filled(65536, 100)
    assert built.folded_to(0.01, max_bytes=65536).bitset == built.folded_to(0.01).bitset


def test_an_empty_filter_folds_to_one_block() -> None:
    assert SplitBlockFilter.empty(4096).folded_to(0.01).nbytes == 32
