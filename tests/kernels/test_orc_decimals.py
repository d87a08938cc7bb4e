"""ORC's decimals from their varints and scales to numbers in the column's scale and the hash of their text, against
Python's decimal."""

from __future__ import annotations

import random
import struct
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import orc_hashes, orcfiles, orcruns
from support.reference import unpacked

from bloomcli import kernels

EXACT = Context(prec=200)
TOP = (1 << 127) - 1


def stored(values: list[int]) -> bytes:
    """Mantissas as stored in a DATA stream."""
    return b"".join(orcruns.varint(v << 1 if v >= 0 else (-v << 1) - 1) for v in values)


def longs(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def hashed(values: list[int], scales: list[int], scale: int, most: int = 38) -> list[int]:
    """The hashes of all decimals, in one call."""
    data, decimals, out = stored(values), bytearray(16 * len(values)), bytearray(8 * len(values))
    assert kernels.orc_decimals(data, 0, longs(scales), 0, len(values), scale, most, decimals) == (
        len(values),
        len(data),
    )
    kernels.orc_hash_decimals(decimals, len(values), scale, out)
    return unpacked(out, len(values))


def decoded(decimals: bytearray) -> list[int]:
    return [int.from_bytes(decimals[at : at + 16], "little", signed=True) for at in range(0, len(decimals), 16)]


def text(value: int, scale: int) -> bytes:
    """The text that HiveDecimal prints."""
    return orcfiles.decimal_text(Decimal(value).scaleb(-scale, EXACT)).encode()


def fits(value: int, scale: int, column: int, most: int) -> bool:
    """Whether a value fits a column: exact at its scale, with at most its number of digits."""
    at_scale = Decimal(value).scaleb(column - scale, EXACT)
    short = most == 38 or abs(value) < 10**18
    return at_scale == at_scale.to_integral_value(context=EXACT) and abs(at_scale) < 10**most and short


@pytest.mark.parametrize("scale", [0, 2, 7, 38])
def test_decimals_of_every_length_are_hashed_by_their_text(scale: int) -> None:
    rng = random.Random(scale)
    some = [0, 1, -1, 10, 100, -100, 99, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 10**38 - 1, 1 - 10**38]
    some += [sign * rng.getrandbits(bits) for bits in range(1, 127) for sign in (1, -1)]
    values = [v for v in some if abs(v) < 10**38]
    assert hashed(values, [scale] * len(values), scale) == [orc_hashes.orc_bytes(text(v, scale)) for v in values]


@given(
    st.integers(-TOP, TOP) | st.integers(-(10**6), 10**6),
    st.integers(-45, 90),
    st.integers(0, 38),
    st.sampled_from([18, 38]),
)
def test_a_value_is_hashed_exactly_or_refused(value: int, scale: int, column: int, most: int) -> None:
    if value == 0 or fits(value, scale, column, most):
        assert hashed([value], [scale], column, most) == [orc_hashes.orc_bytes(text(value, scale))]
    else:
        with pytest.raises(kernels.RunError, match="a decimal with more digits than its column allows"):
            hashed([value], [scale], column, most)


def test_scales_differ_from_value_to_value_and_neighbours_may_be_equal() -> None:
    values, scales = [15, 15, 15, -15, 150, 1500, 0, 0], [1, 1, 0, 1, 2, 3, 5, -100]
    texts = [b"1.5", b"1.5", b"15", b"-1.5", b"1.5", b"1.5", b"0", b"0"]
    assert hashed(values, scales, 2) == [orc_hashes.orc_bytes(t) for t in texts]


@pytest.mark.parametrize("cut", range(25))
def test_a_value_that_is_cut_off_is_left_for_the_next_piece(cut: int) -> None:
    values = [7, -300, 1 << 70, 5]
    data, scales, out = stored(values), longs([0] * 4), bytearray(64)
    ends = [len(stored(values[:n])) for n in range(5)]
    whole = sum(end <= cut for end in ends[1:])
    done, at = kernels.orc_decimals(data[:cut], 0, scales, 0, 4, 0, 38, out)
    assert (done, at) == (whole, ends[whole])
    kernels.orc_decimals(data, at, scales, done, 4, 0, 38, out)
    assert decoded(out) == values


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 19 + b"\x01", b"\x80" * 19 + b"\x00", b"\xff" * 18 + b"\x04", b"\xff" * 18 + b"\x7f", b"\xff" * 40],
)
def test_more_than_128_bits_are_refused(data: bytes) -> None:
    with pytest.raises(kernels.RunError, match="more than 128 bits"):
        kernels.orc_decimals(data, 0, longs([0]), 0, 1, 0, 38, bytearray(16))


def test_zeros_in_front_of_a_varint_mean_nothing() -> None:
    out = bytearray(16)
    for zeros in range(1, 18):
        data = b"\x8e" + b"\x80" * (zeros - 1) + b"\x00"
        assert kernels.orc_decimals(data, 0, longs([0]), 0, 1, 0, 38, out) == (1, len(data))
        assert decoded(out) == [7]


@pytest.mark.parametrize(
    ("first", "count", "scales", "scale", "out", "pos"),
    [
        *((0, 2, 1, 0, 32, 0), (0, 1, 1, 0, 15, 0), (2, 1, 2, 0, 32, 0), (0, 1, 1, 39, 16, 0)),
        *((0, 1, 1, -1, 16, 0), (-1, 1, 1, 0, 16, 0), (0, 1, 1, 0, 16, 2), (0, 1, 1, 0, 16, -1)),
    ],
)
def test_what_is_out_of_bounds_is_refused(
    first: int, count: int, scales: int, scale: int, out: int, pos: int
) -> None:
    with pytest.raises(ValueError, match=r"an invalid|fewer scales"):
        kernels.orc_decimals(b"\x02", pos, longs([0] * scales), first, count, scale, 38, bytearray(out))
    assert kernels.orc_decimals(b"", 0, b"", 0, 0, 0, 38, bytearray()) == (0, 0)
