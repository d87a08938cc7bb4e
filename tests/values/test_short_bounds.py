"""Cut bounds stay bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli.values.short_bounds import BOUND_BYTES, cut_high, cut_low

LONG_TEXTS = st.builds("".join, st.lists(st.text(min_size=1), min_size=20))
LONG_BYTES = st.builds(b"".join, st.lists(st.binary(min_size=1) | st.just(b"\xff" * 30), min_size=5))


@given(LONG_BYTES | st.binary())
def test_cut_bounds_of_bytes_leave_no_value_out(value: bytes) -> None:
    low, high = cut_low(value), cut_high(value)
    assert low <= value <= high
    assert len(low) <= BOUND_BYTES
    if len(value) <= BOUND_BYTES:
        assert low == high == value
    else:
        assert high == value or len(high) <= BOUND_BYTES + 1
        assert high.rstrip(b"\xff") or value[:BOUND_BYTES] == b"\xff" * BOUND_BYTES


@given(LONG_TEXTS | st.text())
def test_cut_bounds_of_text_are_text(text: str) -> None:
    value = text.encode()
    low, high = cut_low(value).decode(), cut_high(value).decode()
    assert low <= text <= high
    assert text.startswith(low)
    assert len(low.encode()) <= BOUND_BYTES
    if len(value) > BOUND_BYTES and high != text:
        assert not text.startswith(high)
        assert len(high) <= len(low)


@pytest.mark.parametrize(
    ("text", "high"),
    [
        ("a" * 63 + "\ud7ff" + "z" * 9, "a" * 62 + "b"),  # the character is cut off with its last bytes
        ("a" * 61 + "\ud7ff" + "z" * 9, "a" * 61 + "\ue000"),  # surrogates are no characters
        ("a" * 60 + "\U0010ffff" + "z" * 9, "a" * 59 + "b"),  # the last character has no successor
        ("\U0010ffff" * 20, "\U0010ffff" * 20),
        ("a" * 63 + "\x7f" + "z" * 9, "a" * 63 + "\x80"),  # the successor takes a byte more
    ],
)
def test_the_last_character_of_a_cut_maximum_is_increased(text: str, high: str) -> None:
    assert cut_high(text.encode()).decode() == high
