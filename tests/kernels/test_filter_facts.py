"""The kernels that examine filters: any bytes give the right facts or None."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli import kernels
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.parquet.bloom_filter import write_header
from bloomcli.formats.parquet.statistics import kind_of_bounds
from bloomcli.model.file import Column

HEADER = write_header(32)


@given(
    st.integers(1, 40).flatmap(lambda blocks: st.binary(min_size=blocks * 32, max_size=blocks * 32)),
    st.sampled_from([None, b"", b"12345678"]),
    st.sampled_from([0x00, 0xFF, None]),
)
def test_a_filter_s_figures_are_those_of_its_bits(bits: bytes, bound: bytes | None, every: int | None) -> None:
    if every is not None:
        bits = bytes([every]) * len(bits)
    header = write_header(len(bits))
    whole = SplitBlockFilter(bits)
    lacks = bool(whole.set_bits and bound is not None and not whole.check(kernels.xxh64(bound)))
    ndv = whole.ndv_estimate
    assert kernels.sbbf_examine(header + bits, [] if bound is None else [bound]) == (
        len(header),
        len(bits),
        (ndv, whole.fill, whole.fpp, len(bits) * 8 / ndv if ndv else None),
        lacks,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x15",
        HEADER + bytes(31), HEADER + bytes(33), write_header(64) + bytes(32), write_header(31) + bytes(31),
        b"\x15" + b"\xff" * 60, b"\x15" + b"\x80" * 40,
        b"\x15\x00" + HEADER[2:] + bytes(32), b"\x15\x3f" + HEADER[2:] + bytes(32),
    ],
)  # fmt: skip
def test_what_is_no_usual_filter_is_left_to_others(data: bytes) -> None:
    assert kernels.sbbf_examine(data, []) is None


def test_a_filter_without_set_bits_lacks_no_bound() -> None:
    found = kernels.sbbf_examine(HEADER + bytes(32), [b"12345678"])
    assert found is not None
    assert not found[-1]


@given(
    st.sampled_from(["INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "INT96"]),
    st.sampled_from([None, "DECIMAL(9,2)", "FLOAT16", "INTERVAL"]),
    st.sampled_from([b"", b"\0" * 4, b"\0" * 7 + b"\x80", struct.pack("<f", math.nan), struct.pack("<d", -math.nan)])
    | st.binary(max_size=9),
    st.sampled_from([None, True, False]),
)
def test_a_bound_is_certain_if_the_statistics_and_its_type_say_that_it_is_a_value(
    physical: str, logical: str | None, bound: bytes, exact: bool | None
) -> None:
    column = Column(path="a", index=0, physical=physical, logical=logical, type_length=4)
    width = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "FIXED_LEN_BYTE_ARRAY": 4}.get(physical)
    if physical == "BYTE_ARRAY":
        wanted = exact is True and logical != "DECIMAL(9,2)"
    elif exact is False or len(bound) != width:
        wanted = False
    elif physical == "FIXED_LEN_BYTE_ARRAY":
        wanted = logical not in {"FLOAT16", "INTERVAL"}
    else:
        form = {"FLOAT": "<f", "DOUBLE": "<d"}.get(physical)
        value = 1.0 if form is None else struct.unpack(form, bound)[0]
        wanted = value != 0 and not math.isnan(value)
    assert kernels.is_certain(bound, exact, *kind_of_bounds(column)) == wanted
