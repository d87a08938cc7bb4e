"""The kernels that examine filters: any bytes give the right facts or None."""

from __future__ import annotations

import dataclasses
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli import kernels
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.parquet.variants import write_header
from bloomcli.model.file import FilterFacts

HEADER = write_header(32)


@given(
    st.integers(1, 40).flatmap(lambda blocks: st.binary(min_size=blocks * 32, max_size=blocks * 32)),
    st.sampled_from([None, b"", b"12345678"]),
    st.integers(0, 7),
    st.sampled_from([0x00, 0xFF, None]),
)
def test_a_filter_s_figures_are_those_of_its_bits(
    bits: bytes, bound: bytes | None, before: int, every: int | None
) -> None:
    if every is not None:
        bits = bytes([every]) * len(bits)
    header = write_header(len(bits))
    whole = SplitBlockFilter(bits)
    lacks = bool(whole.set_bits and bound is not None and not whole.check(kernels.xxh64(bound)))
    ndv = whole.ndv_estimate
    data = bytes(before) + header + bits
    assert kernels.sbbf_examine(data, before, len(header) + len(bits), None, bound) == (
        len(header),
        len(bits),
        ndv,
        whole.fill,
        whole.fpp,
        len(bits) * 8 / ndv if ndv else None,
        lacks,
    )


@pytest.mark.parametrize(
    ("data", "at", "size"),
    [
        (b"", 0, 0), (b"\x15", 0, 1),
        (HEADER + bytes(31), 0, 48), (HEADER + bytes(32), 1, 49), (HEADER + bytes(32), -1, 49),
        (HEADER + bytes(33), 0, 50), (write_header(64) + bytes(32), 0, 49), (write_header(31) + bytes(31), 0, 48),
        (b"\x15" + b"\xff" * 60, 0, 61), (b"\x15" + b"\x80" * 40, 0, 41),
        (b"\x15\x00" + HEADER[2:] + bytes(32), 0, 49), (b"\x15\x3f" + HEADER[2:] + bytes(32), 0, 49),
    ],
)  # fmt: skip
def test_what_is_no_usual_filter_is_left_to_others(data: bytes, at: int, size: int) -> None:
    assert kernels.sbbf_examine(data, at, size, None, None) is None


def test_an_instance_made_by_fields_is_one_that_init_makes() -> None:
    values = {field.name: None for field in dataclasses.fields(FilterFacts)} | {
        "row_group": 3,
        "column": "a",
        "fpp": 0.5,
    }
    made = kernels.frozen(FilterFacts, tuple(values), tuple(values.values()))
    usual = FilterFacts(**values)  # type: ignore[arg-type]
    assert (made, hash(made), repr(made)) == (usual, hash(usual), repr(usual))
    assert pickle.loads(pickle.dumps(made)) == usual
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.row_group = 4  # type: ignore[misc]
    with pytest.raises(ValueError, match="a value for each name"):
        kernels.frozen(FilterFacts, ("row_group",), ())


@given(st.binary(max_size=200), st.lists(st.integers(-5, 250), max_size=4))
def test_claims_of_any_bytes_are_none_or_well_formed(data: bytes, starts: list[int]) -> None:
    columns = struct.pack("4i", 2, 2, 2, 8) * 4
    for found in kernels.filter_claims(data, starts, 32, memoryview(columns).cast("i"), 1000):
        if found is not None and found is not False:
            offset, length, values, low, high = found
            assert 4 <= offset < 1000
            assert length == -1 or 0 < length <= 1000 - offset
            assert values >= 0
            assert all(bound is None or len(bound) == 8 for bound in (low, high))
    if len(starts) > 1:
        with pytest.raises(ValueError, match="fewer columns"):
            kernels.filter_claims(data, starts, 32, memoryview(columns[:16]).cast("i"), 1000)


@given(st.binary(max_size=200), st.integers(-5, 250))
def test_a_chunk_of_any_bytes_is_none_or_well_formed(data: bytes, start: int) -> None:
    column = memoryview(struct.pack("4i", 2, 2, 2, 8)).cast("i")
    found = kernels.usual_chunk(data, start, 32, column, 1000)
    assert found is None or (found[0] >= 0 and found[2] >= 0 and found[3] >= 0)
    with pytest.raises(ValueError, match="four numbers"):
        kernels.usual_chunk(data, start, 32, column[:3], 1000)
