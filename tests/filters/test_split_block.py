"""Split-block filters: the bits of the specification, measured rates, folding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference
from support.examples import examples
from support.reference import packed

from bloomcli import kernels
from bloomcli.filters.split_block import SplitBlockFilter

SOURCE = random.Random(5)
HASHES = [SOURCE.getrandbits(64) for _ in range(3000)]


def filled(nbytes: int, count: int) -> SplitBlockFilter:
    """A filter that holds the first `count` hashes."""
    built = SplitBlockFilter.empty(nbytes)
    built.insert_hashes(packed(HASHES[:count]), count)
    return built


QUICK = settings(max_examples=examples(100), deadline=None)
caps = st.none() | st.integers(32, 4096)
hashes = st.lists(st.integers(0, (1 << 64) - 1), max_size=60)


def built(values: list[int], nbytes: int) -> SplitBlockFilter:
    """A filter that holds these hashes."""
    made = SplitBlockFilter.empty(nbytes)
    made.insert_hashes(packed(values), len(values))
    return made


@QUICK
@given(hashes, hashes, st.integers(1, 70))
def test_what_was_inserted_is_always_found_and_bits_answers_and_rate_are_the_specifications(
    held: list[int], others: list[int], blocks: int
) -> None:
    made, single = built(held, 32 * blocks), SplitBlockFilter.empty(32 * blocks)
    for value in held:
        single.insert(value)
    assert single.bitset == made.bitset == reference.filter_of(held, 32 * blocks)
    assert (made.nbytes, made.blocks) == (32 * blocks, blocks)
    expected = [reference.holds(bytes(made.bitset), value) for value in held + others]
    out = bytearray(len(expected))
    assert made.check_hashes(packed(held + others), len(expected), out) == expected.count(False)
    assert [made.check(value) for value in held + others] == expected == [bool(answer) for answer in out]
    assert all(expected[: len(held)])
    set_bits, fpp = reference.stats(bytes(made.bitset))
    assert (made.set_bits, made.fill) == (set_bits, set_bits / (32 * blocks * 8))
    assert made.fpp == pytest.approx(fpp, rel=1e-12)
    assert kernels.count_bits(made.bitset) == set_bits


@QUICK
@given(hashes, st.integers(0, 9).map(lambda half: 2 * half + 1), st.integers(0, 5))
def test_folded_equals_freshly_built(held: list[int], odd: int, doublings: int) -> None:
    made = built(held, 32 * odd << doublings)
    for _ in range(doublings):
        made = made.fold()
        assert made.bitset == built(held, made.nbytes).bitset
    assert made.blocks == odd
    with pytest.raises(ValueError, match="odd"):
        made.fold()


@QUICK
@given(hashes, st.sampled_from([1, 3, 5]), st.integers(0, 6), st.floats(1e-6, 0.999), caps)
def test_a_filter_is_folded_to_the_smallest_that_meets_the_rate_and_the_cap(
    held: list[int], odd: int, doublings: int, fpp: float, cap: int | None
) -> None:
    made = built(held, 32 * odd << doublings)
    folded = made.folded_to(fpp, cap)
    assert folded.bitset == built(held, folded.nbytes).bitset
    smaller = [32 * odd << power for power in range(doublings)]
    fits = cap is None or folded.nbytes <= cap
    assert fits or folded.nbytes == 32 * odd
    assert folded.fpp <= fpp or folded.nbytes == made.nbytes or (cap is not None and folded.nbytes * 2 > cap)
    if folded.nbytes > 32 * odd and fits:
        assert folded.nbytes // 2 in smaller
        assert folded.fold().fpp > fpp


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


def test_folding_leaves_the_larger_filter_as_it_was() -> None:
    built = filled(1024, 100)
    before = bytes(built.bitset)
    built.fold().insert(HASHES[500])
    assert built.bitset == before
