"""ALP pages of arbitrary values, and arbitrary bytes in place of ALP pages."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import alp

from bloomcli import kernels

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=150, deadline=None)
decimals = st.decimals(-(10**7), 10**7, places=2).map(float)
widths = st.sampled_from([4, 8])


@QUICK
@given(widths, st.integers(3, 15), st.data())
def test_values_keep_their_bits_through_the_specification_s_encoder(
    width: int, log: int, data: st.DataObject
) -> None:
    floats = st.one_of(decimals, st.floats(width=32 if width == 4 else 64))
    array = np.array(data.draw(st.lists(floats, max_size=60)) * data.draw(st.integers(1, 3)), f"<f{width}")
    exponent = data.draw(st.integers(0, alp.MOST[width]))
    page = alp.encoded(array.tobytes(), width, log, exponent, data.draw(st.integers(0, exponent)))
    start = data.draw(st.integers(0, 9))
    out = bytearray(len(array) * width)
    reader = kernels.Alp(bytes(start) + page, start, len(array), width)
    assert reader.read(out) == len(array)
    assert bytes(out) == array.tobytes()


@QUICK
@given(widths, st.data())
def test_no_bytes_make_it_read_or_write_outside(width: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 40))
    page = bytearray(alp.encoded(np.arange(count, dtype=f"<f{width}").tobytes(), width, 3, 3, 1))
    for _ in range(data.draw(st.integers(1, 4))):
        page[data.draw(st.integers(0, len(page) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(page[: data.draw(st.integers(0, len(page)))])
    out = bytearray(count * width + 8)
    with contextlib.suppress(kernels.PageError):
        assert kernels.Alp(cut, 0, count, width).read(memoryview(out)[: count * width]) == count
    assert not any(out[count * width :])
