"""The compiled extremes of ORC's values, held against Python's."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest

from bloomcli import kernels
from bloomcli.formats.orc.zones import writer_zone

UTC = writer_zone("UTC")
assert UTC is not None


@pytest.mark.parametrize("width", [1, 8, 16])
def test_integers_of_each_width_are_compared_as_signed(width: int) -> None:
    top = 1 << 8 * width - 1
    choice = random.Random(width)
    for count in (1, 2, 3, 100):
        for among in ([-top, top - 1], [-1, 0, 1, 1 << 8 * width - 2], [5]):
            values = [choice.choice(among) for _ in range(count)]
            bounds = kernels.Bounds(kernels.WIDE if width == 16 else kernels.SIGNED, width)
            bounds.fixed(b"".join(value.to_bytes(width, "little", signed=True) for value in values), count)
            wanted = [end.to_bytes(width, "little", signed=True) for end in (min(values), max(values))]
            assert bounds.least_and_greatest == tuple(wanted)


def test_texts_are_compared_as_unsigned_bytes_and_then_by_length() -> None:
    choice = random.Random(1)
    for count in (1, 2, 50):
        for letters in (b"\0\x7f\x80\xff", b"a"):
            texts = [bytes(choice.choices(letters, k=choice.randrange(20))) for _ in range(count)]
            for some in (texts, sorted(texts)):
                bounds = kernels.Bounds(kernels.BYTEWISE, 0, tracked=True)
                bounds.sized(b"".join(some), 0, array("q", map(len, some)).tobytes(), count)
                assert bounds.least_and_greatest == (min(texts), max(texts))
                assert bounds.rises == (some == sorted(texts))


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
        lambda: kernels.Bounds(kernels.SIGNED, 8).fixed(bytes(8), 2),
        lambda: kernels.Bounds(kernels.BYTEWISE, 0).sized(b"abc", 0, array("q", [4]).tobytes(), 1),
        lambda: kernels.Bounds(kernels.BYTEWISE, 0).sized(b"abc", 0, array("q", [-1]).tobytes(), 1),
        lambda: kernels.Bounds(kernels.BYTEWISE, 0).sized(b"abc", 0, b"", 1),
        lambda: kernels.orc_moment_extremes(bytes(8), b"", 1, UTC),
    ],
)
def test_fewer_values_than_requested_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"than requested|past the page's end"):
        call()
