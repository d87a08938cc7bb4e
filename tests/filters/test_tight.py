"""Filters of any number of blocks: made of the bits alone, and built anew at the size that meets the rate."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import mean

import pytest
from support import reference
from support.reference import packed

from bloomcli import limits
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.parquet.plan import HashBuffer
from bloomcli.formats.size_rule import SizeRule


def hashes_of(count: int, seed: int = 0) -> bytes:
    return random.Random(f"{count} {seed}").randbytes(count * 8)


def filled(blocks: int, hashes: bytes) -> SplitBlockFilter:
    built = SplitBlockFilter.empty(blocks * 32)
    built.insert_hashes(hashes, len(hashes) // 8)
    return built


def holds_all(bits: SplitBlockFilter, hashes: bytes) -> bool:
    count = len(hashes) // 8
    return bits.check_hashes(hashes, count, bytearray(count)) == 0


class Built:
    """Builds a filter of these hashes at any size, and counts how often."""

    def __init__(self, hashes: bytes, fpp: float, *, bound: int | None = None) -> None:
        self.sizes: list[int] = []
        self._hashes = hashes
        self._bound = bound or sizing.upper_bound_bytes(len(hashes) // 8, fpp)

    def __call__(self, size: int | None) -> SplitBlockFilter:
        self.sizes.append(size or self._bound)
        return filled(self.sizes[-1] // 32, self._hashes)


@pytest.mark.parametrize(("blocks", "fewer"), [(12, 1), (12, 3), (12, 4), (12, 6), (12, 12), (45, 9), (1024, 64)])
def test_a_filter_made_of_the_bits_is_the_one_built_anew_where_its_blocks_divide(blocks: int, fewer: int) -> None:
    hashes = hashes_of(blocks * 5)
    assert filled(blocks, hashes).resized(fewer * 32).bitset == filled(fewer, hashes).bitset


@pytest.mark.parametrize(("blocks", "fewer"), [(12, 5), (12, 7), (12, 11), (31, 30), (1024, 77), (1000, 999), (7, 2)])
def test_other_sizes_hold_the_bits_of_the_one_built_anew_and_more(blocks: int, fewer: int) -> None:
    hashes = hashes_of(blocks * 5)
    exact = int.from_bytes(filled(fewer, hashes).bitset, "little")
    made = int.from_bytes(filled(blocks, hashes).resized(fewer * 32).bitset, "little")
    assert exact & made == exact
    assert made > exact


@pytest.mark.parametrize(("blocks", "fewer"), [(7, 3), (64, 63), (1000, 77)])
def test_the_first_and_the_last_hash_of_every_block_stay_found(blocks: int, fewer: int) -> None:
    edges = [-(-(b << 32) // blocks) for b in range(blocks + 1)]
    values = [(edge + step << 32) | 12345 for edge in edges for step in (-1, 0) if 0 <= edge + step < 1 << 32]
    assert {reference.positions(value, blocks)[0] for value in values} == set(range(blocks))
    assert holds_all(filled(blocks, packed(values)).resized(fewer * 32), packed(values))


@pytest.mark.parametrize("nbytes", [0, 96, 1])
def test_a_filter_is_made_no_larger_and_of_whole_blocks(nbytes: int) -> None:
    with pytest.raises(ValueError, match=r"blocks|multiple of 32"):
        SplitBlockFilter.empty(64).resized(nbytes)


@pytest.mark.parametrize(
    ("count", "blocks", "fpp"),
    [
        *((0, 1000, 0.1), (1, 32767, 0.01), (100, 32768, 0.0001), (1000, 24576, 0.01), (1000, 1000, 0.1)),
        *((3000, 32768, 0.01), (3000, 32767, 0.1), (3000, 1000, 0.0001)),
    ],
)
def test_a_tightened_filter_holds_all_values_meets_the_rate_and_stays_as_it_is(
    count: int, blocks: int, fpp: float
) -> None:
    hashes = hashes_of(count)
    made = filled(blocks, hashes)
    tight = made.tightened_to(fpp, limits.FILTER_MAX_BYTES)
    assert holds_all(tight, hashes)
    assert tight.fpp <= fpp or tight.nbytes == made.nbytes
    assert tight.nbytes <= made.folded_to(fpp).nbytes
    assert tight.tightened_to(fpp, limits.FILTER_MAX_BYTES).bitset == tight.bitset
    if blocks * 32 > 20 * sizing.tight_bytes(count, fpp) and count >= 100:
        assert tight.nbytes <= 1.08 * sizing.tight_bytes(count, fpp) + 32


def test_a_tightened_filter_goes_before_no_cap_and_no_least_size() -> None:
    hashes = hashes_of(3000)
    made = filled(4096, hashes)
    assert made.tightened_to(0.01, 1600).nbytes <= 1600
    assert holds_all(made.tightened_to(0.01, 1600), hashes)
    assert filled(4095, hashes).tightened_to(0.01, 1600).nbytes <= 1600
    assert filled(4096, hashes_of(1)).tightened_to(0.5, limits.FILTER_MAX_BYTES, 64).nbytes == 64


def test_tight_filters_meet_their_rates_with_a_quarter_to_a_third_less_than_powers_of_two() -> None:
    source = random.Random(16)
    saved: list[float] = []
    for seed in range(400):
        count, fpp = int(10 ** source.uniform(0.5, 4.7)), source.choice([0.1, 0.05, 0.01, 0.001, 0.0001])
        hashes = hashes_of(count, seed)
        build = Built(hashes, fpp)
        tight = SizeRule(fpp=fpp, tight=True).build_filter(build)
        powers = SizeRule(fpp=fpp).build_filter(Built(hashes, fpp))
        assert tight.fpp <= fpp, (count, fpp, seed)
        assert tight.nbytes <= powers.nbytes
        assert len(build.sizes) <= 8
        assert tight.nbytes <= sizing.tight_bytes(count, fpp, 3) + 64
        assert holds_all(tight, hashes)
        if count >= 1000:
            saved.append(1 - tight.nbytes / powers.nbytes)
    assert 0.24 < mean(saved) < 0.34


@pytest.mark.parametrize("seed", range(4))
def test_a_tight_filter_is_close_to_the_smallest_of_all_sizes(seed: int) -> None:
    count, fpp = random.Random(seed).randrange(200, 3000), 0.01
    hashes = hashes_of(count, seed)
    tight = SizeRule(fpp=fpp, tight=True).build_filter(Built(hashes, fpp))
    smallest = next(blocks for blocks in range(1, tight.blocks + 1) if filled(blocks, hashes).fpp <= fpp)
    assert smallest <= tight.blocks <= smallest * 1.06 + 1


@pytest.mark.parametrize(("cap", "meets"), [(1312, False), (2000, False), (13_000, False), (14_000, True)])
def test_a_tight_cap_is_any_multiple_of_32(cap: int, meets: bool) -> None:
    hashes = hashes_of(10_000)
    rule = SizeRule(fpp=0.01, tight=True, max_bytes=cap)
    tight = rule.build_filter(Built(hashes, 0.01))
    assert rule.largest_split_block == cap // 32 * 32
    assert tight.nbytes <= cap
    assert (tight.fpp <= 0.01) == meets
    if not meets:
        assert tight.nbytes == cap // 32 * 32, "the largest comes closest to the rate"
    assert holds_all(tight, hashes)


def test_a_tight_filter_keeps_to_the_smallest_size() -> None:
    assert SizeRule(fpp=0.5, tight=True, min_bytes=64).build_filter(Built(hashes_of(1), 0.5)).nbytes == 64


def test_more_values_than_were_expected_make_a_larger_tight_filter() -> None:
    hashes = hashes_of(20_000)
    tight = SizeRule(fpp=0.01, tight=True).build_filter(Built(hashes, 0.01, bound=64))
    assert tight.fpp <= 0.01
    assert tight.nbytes < 1.02 * sizing.tight_bytes(20_000, 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_where_values_have_to_be_read_again_one_more_build_is_enough(seed: int) -> None:
    hashes = hashes_of(60_000, seed)
    build = Built(hashes, 0.01)
    tight = SizeRule(fpp=0.01, tight=True).build_filter(build, lambda: False)
    assert tight.fpp <= 0.01
    assert tight.nbytes < 1.02 * sizing.tight_bytes(60_000, 0.01)
    assert len(build.sizes) <= 3


def test_with_a_number_of_values_the_size_is_that_of_the_expected_rate() -> None:
    rule = SizeRule(fpp=0.01, ndv=2_000_000, tight=True)
    assert rule.size_of(2_000_000, 0.01) == sizing.tight_bytes(2_000_000, 0.01)
    assert rule._replace(max_bytes=1 << 20).size_of(2_000_000, 0.01) == 1 << 20


@pytest.mark.parametrize(("most", "complete"), [(0, False), (31, False), (32, True), (1000, True)])
def test_hashes_are_kept_up_to_a_ceiling(most: int, complete: bool) -> None:
    kept = HashBuffer(most)
    for part in range(4):
        kept.insert_hashes(bytes([part]) * 8, 1)
    assert kept.complete == complete
    expected: Callable[[int], SplitBlockFilter] = lambda blocks: filled(  # noqa: E731
        blocks, b"".join(bytes([part]) * 8 for part in range(4))
    )
    if complete:
        assert kept.filter(96).bitset == expected(3).bitset
