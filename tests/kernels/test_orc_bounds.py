"""The compiled extremes of ORC's values, held against Python's."""

from __future__ import annotations

import math
import random
import struct
from array import array
from collections.abc import Callable

import pytest

from bloomcli import kernels
from bloomcli.formats.orc.zones import writer_zone

UTC = writer_zone("UTC")
assert UTC is not None


@pytest.mark.parametrize("width", [1, 8, 16])
def test_least_and_greatest_integers_are_the_first_of_their_equals(width: int) -> None:
    top = 1 << 8 * width - 1
    choice = random.Random(width)
    for count in (1, 2, 3, 100):
        for among in ([-top, top - 1], [-1, 0, 1, 1 << 8 * width - 2], [5]):
            values = [choice.choice(among) for _ in range(count)]
            data = b"".join(value.to_bytes(width, "little", signed=True) for value in values)
            wanted = (values.index(min(values)), values.index(max(values)))
            assert kernels.orc_extremes(data, width, count) == wanted
    assert kernels.orc_extremes(b"", width, 0) == (-1, -1)


@pytest.mark.parametrize(("form", "width"), [("<f", 4), ("<d", 8)])
def test_nan_is_counted_and_not_compared(form: str, width: int) -> None:
    values = [math.nan, 2.0, -math.inf, math.nan, 7.5, -math.nan]
    data = b"".join(struct.pack(form, value) for value in values)
    assert kernels.orc_float_extremes(data, width, 6) == (2, 4, 3)
    assert kernels.orc_float_extremes(data, width, 1) == (-1, -1, 1)
    assert kernels.orc_float_extremes(b"", width, 0) == (-1, -1, 0)


def test_texts_are_compared_as_unsigned_bytes_and_then_by_length() -> None:
    choice = random.Random(1)
    for count in (1, 2, 50):
        for letters in (b"\0\x7f\x80\xff", b"a"):
            texts = [bytes(choice.choices(letters, k=choice.randrange(20))) for _ in range(count)]
            lengths = array("q", map(len, texts)).tobytes()
            low, high = kernels.orc_text_extremes(b"".join(texts), lengths, count)
            assert low is not None
            assert high is not None
            data = b"".join(texts)
            assert data[low[0] : sum(low)] == min(texts)
            assert data[high[0] : sum(high)] == max(texts)
            assert kernels.orc_ascending(data, lengths, count) == (texts == sorted(texts))
            data, lengths = b"".join(sorted(texts)), array("q", map(len, sorted(texts))).tobytes()
            assert kernels.orc_ascending(data, lengths, count)
    assert kernels.orc_text_extremes(b"", b"", 0) == (None, None)
    assert kernels.orc_ascending(b"", b"", 0)


def test_moments_are_compared_by_milliseconds_and_then_nanoseconds() -> None:
    base = 1_420_070_400
    moments = [(5, 1_000_001), (5, 1_000_000), (-3, 999_999_999), (-2, 0), (5, 1_000_001)]
    seconds = array("q", [second - base for second, _ in moments]).tobytes()
    nanos = array("q", [nano << 3 for _, nano in moments]).tobytes()
    least, greatest = kernels.orc_moment_extremes(seconds, nanos, len(moments), UTC)
    walls = [UTC.wall(second - base, nano << 3) for second, nano in moments]
    assert (least, greatest) == (walls.index(min(walls)), walls.index(max(walls)))
    assert kernels.orc_moment_extremes(b"", b"", 0, UTC) == (-1, -1)


def test_moments_that_readers_read_differently_are_left_out() -> None:
    zone = writer_zone("Europe/Berlin")
    assert zone is not None
    before_1900, after = -3_000_000_000, 1_000_000_000
    base = 1_420_070_400 - 3600
    seconds = array("q", [before_1900 - base, after - base]).tobytes()
    assert kernels.orc_moment_extremes(seconds, bytes(16), 2, zone) == (1, 1)


def test_starts_of_runs_are_kept_with_the_values_before_them() -> None:
    repeat = bytes([5, 0, 7])  # 8 times the unsigned number 7, in version 1
    starts, out = kernels.RunStarts(), bytearray(8 * 3000)
    have, at = kernels.orc_runs(repeat * 200, 0, 1, False, out, 0, 1600, starts, 1000, 50)
    assert (have, at) == (1600, 600)
    assert [starts.value_at(1000 + 3 * run) for run in (0, 1, 199)] == [50, 58, 50 + 199 * 8]
    assert [starts.value_at(place) for place in (0, 1001, 1600)] == [-1, -1, -1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: kernels.orc_extremes(bytes(8), 8, 2),
        lambda: kernels.orc_extremes(bytes(8), 3, 1),
        lambda: kernels.orc_extremes(bytes(8), 8, -1),
        lambda: kernels.orc_float_extremes(bytes(8), 8, 2),
        lambda: kernels.orc_float_extremes(bytes(8), 2, 1),
        lambda: kernels.orc_text_extremes(b"abc", array("q", [4]).tobytes(), 1),
        lambda: kernels.orc_text_extremes(b"abc", array("q", [-1]).tobytes(), 1),
        lambda: kernels.orc_text_extremes(b"abc", b"", 1),
        lambda: kernels.orc_ascending(b"abc", array("q", [2, 2]).tobytes(), 2),
        lambda: kernels.orc_moment_extremes(bytes(8), b"", 1, UTC),
    ],
)
def test_fewer_values_than_requested_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"than requested|can't be"):
        call()
