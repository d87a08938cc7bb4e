"""Split-block filters and the compiled walks, with arbitrary values, sizes and bytes."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference, thrift
from support.reference import packed

from bloomcli import kernels
from bloomcli.filters import sizing
from bloomcli.filters.split_block import SplitBlockFilter

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=150, deadline=None)

hashes = st.lists(st.integers(0, (1 << 64) - 1), max_size=60)
blocks = st.integers(1, 70)
rates = st.floats(1e-6, 0.999)


def built(values: list[int], nbytes: int) -> SplitBlockFilter:
    """A filter that holds these hashes."""
    made = SplitBlockFilter.empty(nbytes)
    made.insert_hashes(packed(values), len(values))
    return made


@QUICK
@given(hashes, hashes, blocks)
def test_what_was_inserted_is_always_found_and_every_answer_is_the_specifications(
    held: list[int], others: list[int], z: int
) -> None:
    made = built(held, 32 * z)
    assert made.bitset == reference.filter_of(held, 32 * z)
    out = bytearray(len(held))
    assert made.check_hashes(packed(held), len(held), out) == 0
    assert all(out)
    assert all(made.check(value) for value in held)
    for value in others:
        assert made.check(value) == reference.holds(bytes(made.bitset), value)


@QUICK
@given(st.lists(st.binary(max_size=40), max_size=40), blocks)
def test_values_are_found_by_their_bytes(values: list[bytes], z: int) -> None:
    made = SplitBlockFilter.empty(32 * z)
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    out = bytearray(8 * len(values))
    kernels.hash_binary(struct.pack(f"<{len(offsets)}q", *offsets), b"".join(values), len(values), out)
    made.insert_hashes(out, len(values))
    assert all(made.check(kernels.xxh64(value)) for value in values)


@QUICK
@given(hashes, st.integers(1, 20), st.integers(0, 5))
def test_folded_equals_freshly_built(held: list[int], odd: int, doublings: int) -> None:
    made = built(held, 32 * odd << doublings)
    for _ in range(doublings):
        made = made.fold()
        assert made.bitset == built(held, made.nbytes).bitset
    assert made.blocks == odd


@QUICK
@given(hashes, st.integers(0, 6), rates, st.none() | st.integers(32, 4096))
def test_a_filter_folded_to_a_rate_loses_nothing(held: list[int], power: int, fpp: float, cap: int | None) -> None:
    made = built(held, 32 << power)
    folded = made.folded_to(fpp, cap)
    assert folded.bitset == built(held, folded.nbytes).bitset
    assert cap is None or folded.nbytes <= max(cap, 32)
    assert folded.fpp <= fpp or folded.nbytes == made.nbytes or (cap is not None and folded.nbytes * 2 > cap)


@QUICK
@given(st.binary(min_size=32, max_size=512).map(lambda data: data[: len(data) // 32 * 32]))
def test_figures_of_any_bits_stay_in_their_bounds(bitset: bytes) -> None:
    made = SplitBlockFilter(bitset)
    set_bits, fpp = reference.stats(bitset)
    assert made.set_bits == set_bits
    assert 0 <= made.fill <= 1
    assert 0 <= made.fpp <= 1
    assert abs(made.fpp - fpp) <= 1e-12
    assert made.ndv_estimate is None if set_bits == made.nbytes * 8 else (made.ndv_estimate or 0) >= 0
    if made.blocks % 2 == 0:
        assert made.fold().fpp >= made.fpp * (1 - 1e-9)


@QUICK
@given(st.integers(0, 10**12), rates)
def test_sizes_are_powers_of_two_that_grow_with_the_values(values: int, fpp: float) -> None:
    for size_of in (sizing.bytes_for_ndv, sizing.upper_bound_bytes):
        size = size_of(values, fpp)
        assert size & (size - 1) == 0
        assert 32 <= size <= 128 << 20
        assert size_of(values * 2, fpp) >= size
    assert 0 <= sizing.expected_fpp(values, sizing.bytes_for_ndv(values, fpp)) <= 1


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=80), st.integers(-2, 82), st.integers(0, 40))
def test_walking_any_bytes_ends_inside_them_or_in_the_one_error(data: bytes, start: int, depth: int) -> None:
    try:
        fields, end = kernels.compact_struct(data, start, depth)
    except kernels.CompactError as error:
        assert error.reason
    else:
        assert start < end <= len(data)
        spans = [span for _, *span in fields.values()]
        assert all(start <= header < value <= stop < end for header, value, stop in spans)
    for walk in (lambda: kernels.compact_list(data, start, depth, 1000), lambda: kernels.compact_int(data, start)):
        try:
            walk()
        except kernels.CompactError as error:
            assert error.reason
    try:
        assert kernels.compact_bytes(data, start) in data
    except kernels.CompactError as error:
        assert error.reason


scalars = st.one_of(
    st.tuples(st.just(thrift.I64), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just(thrift.BINARY), st.binary(max_size=20)),
    st.tuples(st.just(thrift.DOUBLE), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(thrift.BYTE), st.integers(0, 255)),
    st.booleans().map(lambda flag: (thrift.TRUE if flag else thrift.FALSE, flag)),
)


def structures(inner: st.SearchStrategy[tuple[int, object]]) -> st.SearchStrategy[tuple[int, object]]:
    """Structs and lists of structs of the given columns."""
    fields = st.dictionaries(st.integers(1, 300), inner, max_size=6)
    lists = st.lists(fields, max_size=20).map(lambda values: (thrift.LIST, thrift.Items(thrift.STRUCT, values)))
    return fields.map(lambda value: (thrift.STRUCT, value)) | lists


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(-100, 32767), st.recursive(scalars, structures, max_leaves=12), max_size=10))
def test_every_field_of_a_structure_is_found_with_its_bytes(tree: thrift.Fields) -> None:
    data = thrift.encode(tree)
    fields, end = kernels.compact_struct(data, 0, 64)
    assert end == len(data)
    assert {number: span[0] for number, span in fields.items()} == {n: kind for n, (kind, _) in tree.items()}
    for number, (kind, value) in tree.items():
        _, _, at, stop = fields[number]
        assert data[at:stop] == thrift._encoded(kind, value)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 400), st.integers(1, 16), st.booleans())
def test_the_walks_over_pages_raise_nothing_but_their_own_errors(
    data: bytes, start: int, count: int, width: int, final: bool
) -> None:
    out, shapes, seen = bytearray(8 * count), bytearray(16 * count), bytearray(5)

    def deltas() -> kernels.Deltas:
        found = kernels.Deltas()
        found.feed(data, start, final)
        return found

    for call in (
        lambda: kernels.Levels(count, (1 << width) - 2 or 1).feed(data, start, len(data), final),
        lambda: kernels.Indices(count, seen, len(seen)).feed(data, start, final),
        lambda: deltas().skip(),
        lambda: deltas().read(out, count),
        lambda: kernels.hash_plain_binary(data, start, final, out, count, count, final),
        lambda: kernels.hash_lengths(deltas(), data, start, final, out, shapes, count),
        lambda: kernels.DeltaByteArrayHasher(40, width).hash(
            deltas(), deltas(), data, start, final, out, shapes, count
        ),
    ):
        with suppress(kernels.PageError, kernels.CompactError):
            call()
