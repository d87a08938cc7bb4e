"""The compiled walks over structures and pages, with arbitrary bytes."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st
from support import thrift
from support.examples import examples

from bloomcli import kernels


@settings(max_examples=examples(300), deadline=None)
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


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(st.integers(-100, 32767), st.recursive(scalars, structures, max_leaves=12), max_size=10))
def test_every_field_of_a_structure_is_found_with_its_bytes(tree: thrift.Fields) -> None:
    data = thrift.encode(tree)
    fields, end = kernels.compact_struct(data, 0, 64)
    assert end == len(data)
    assert {number: span[0] for number, span in fields.items()} == {n: kind for n, (kind, _) in tree.items()}
    for number, (kind, value) in tree.items():
        _, _, at, stop = fields[number]
        assert data[at:stop] == thrift._encoded(kind, value)


@settings(max_examples=examples(300), deadline=None)
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
