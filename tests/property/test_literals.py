"""Text and values: any text is a value or an error, and a rendered value is parsed as the same value."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.columns import (
    BINARY,
    DATE,
    DOUBLE,
    EVERY,
    FLOAT,
    FLOAT16,
    INT96,
    STRING,
    UUID,
    column,
    decimal,
    integer,
    time,
    timestamp,
)

from bloomcli.errors import LiteralError
from bloomcli.model.file import Column
from bloomcli.values import literals

pytestmark = pytest.mark.slow

columns = st.sampled_from(EVERY)
DAYS = (-(1 << 31), (1 << 31) - 1)
PER_SECOND = {"MILLIS": 10**3, "MICROS": 10**6, "NANOS": 10**9}

texts = st.one_of(
    st.text(st.characters(), max_size=30),
    st.text("0123456789+-.eE_xX:TZ /,abcdfinINty", max_size=30),
    st.integers().map(str),
    st.decimals().map(str),
    st.floats().map(repr),
    st.datetimes().map(str),
    st.dates().map(str),
    st.times().map(str),
    st.uuids().map(str),
    st.binary(max_size=20).map(lambda data: "0x" + data.hex()),
    st.from_regex(r"[+-]?\d{1,4}(\.\d{1,4})?[eE][+-]?\d{1,12}", fullmatch=True),
)


@settings(max_examples=600, deadline=None)
@given(texts, columns)
@example("\ud800", STRING)
@example("9" * 5000, column("INT64"))
@example("9" * 5000 + "-01-01", DATE)
@example("1e99999999999999999999999", decimal("INT32", 9, 2))
@example("1e999999999999999999", decimal("INT32", 9, 2))
@example("1e-999999999999999999", column("INT32"))
def test_any_text_is_a_value_or_a_literal_error(text: str, of: Column) -> None:
    try:
        literal = literals.parse(text, of)
    except LiteralError as error:
        assert "is not a value of column" in error.reason
        assert error.hint
        return
    assert literal.text == text
    answers = [bool(literal.encodings), literal.impossible is not None, literal.unknowable is not None]
    assert answers.count(True) == 1
    for encoding in literal.encodings:
        width = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "INT96": 12}.get(of.physical, of.type_length)
        assert width in {None, len(encoding)}
        again = literals.parse(literals.render(encoding, of), of)
        assert encoding in again.encodings
        assert set(again.encodings) <= set(literal.encodings), "a UUID's text has its bytes, too"
        assert literals.exclusions([literal], encoding, encoding, of)[0] in {False, None}


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=20), columns)
def test_any_bytes_can_be_rendered_and_compared(data: bytes, of: Column) -> None:
    assert isinstance(literals.render(data, of), str)
    key = literals.decode_bound(data, of)
    assert key is None or key == key


def integers_of(of: Column, low: int, high: int) -> st.SearchStrategy[tuple[Column, bytes]]:
    """An integer column and its values."""
    width = 4 if of.physical == "INT32" else 8
    return st.integers(low, high).map(lambda value: (of, value.to_bytes(width, "little", signed=low < 0)))


def decimals_of(of: Column, width: int | None) -> st.SearchStrategy[tuple[Column, bytes]]:
    """A decimal column and its values."""

    def plain(value: int) -> bytes:
        if of.physical in {"INT32", "INT64"}:
            return value.to_bytes(width or 0, "little", signed=True)
        shortest = next(n for n in range(1, 40) if -(1 << 8 * n - 1) <= value < 1 << 8 * n - 1)
        return value.to_bytes(width or shortest, "big", signed=True)

    top = 10**of.precision - 1
    return st.integers(-top, top).map(lambda value: (of, plain(value)))


def moments_of(unit: str, utc: bool) -> st.SearchStrategy[tuple[Column, bytes]]:
    """A timestamp column and its values."""
    return integers_of(timestamp(unit, utc=utc), -(1 << 63), (1 << 63) - 1)


def floats_of(of: Column, code: str, width: int) -> st.SearchStrategy[tuple[Column, bytes]]:
    """A floating-point column and its values: no zeros, which are two, and no NaN."""
    numbers = st.floats(width=width, allow_nan=False).filter(bool)  # type: ignore[call-overload]
    return numbers.map(lambda value: (of, struct.pack(code, value)))


FIVE = column("FIXED_LEN_BYTE_ARRAY", type_length=5)
stored: st.SearchStrategy[tuple[Column, bytes]] = st.one_of(
    *(integers_of(integer(bits), -(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)),
    *(integers_of(integer(bits, signed=False), 0, (1 << bits) - 1) for bits in (8, 16, 32, 64)),
    decimals_of(decimal("INT32", 9, 2), 4),
    decimals_of(decimal("INT64", 18, 18), 8),
    decimals_of(decimal("FIXED_LEN_BYTE_ARRAY", 20, 4, 9), 9),
    decimals_of(decimal("BYTE_ARRAY", 38, 10), None),
    integers_of(DATE, *DAYS),
    *(integers_of(time(unit), 0, 86_400 * per - 1) for unit, per in PER_SECOND.items()),
    *(moments_of(unit, utc) for unit in PER_SECOND for utc in (True, False)),
    st.tuples(st.integers(0, 86_400 * 10**9 - 1), st.integers(*DAYS)).map(
        lambda parts: (INT96, struct.pack("<qi", *parts))
    ),
    floats_of(DOUBLE, "<d", 64),
    floats_of(FLOAT, "<f", 32),
    floats_of(FLOAT16, "<e", 16),
    st.tuples(st.just(STRING), st.binary(max_size=30)),
    st.tuples(st.just(BINARY), st.binary(max_size=30) | st.text(max_size=10).map(str.encode)),
    st.tuples(st.just(FIVE), st.binary(min_size=5, max_size=5)),
    st.tuples(st.just(UUID), st.binary(min_size=16, max_size=16)),
)


@settings(max_examples=600, deadline=None)
@given(stored)
@example((BINARY, b"0x41"))
@example((FIVE, b"0X414"))
def test_a_stored_value_rendered_reads_as_the_same_bytes(pair: tuple[Column, bytes]) -> None:
    of, data = pair
    literal = literals.parse(literals.render(data, of), of)
    assert literal.encodings == (data,)
    assert literal.order_key == literals.decode_bound(data, of)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_statistics_rule_out_exactly_what_lies_outside(data: st.DataObject) -> None:
    kinds = [
        (column("INT64"), st.integers(-(1 << 63), (1 << 63) - 1)),
        (DOUBLE, st.floats(allow_nan=False)),
        (decimal("BYTE_ARRAY", 38, 3), st.decimals(-(10**9), 10**9, places=3)),
        (DATE, st.dates()),
    ]
    of, values = data.draw(st.sampled_from(kinds))
    typed: Any = values
    low, high, value = data.draw(typed), data.draw(typed), data.draw(typed)
    low, high = sorted((low, high))

    def encode(given_value: Any) -> bytes:
        found = literals.parse(str(given_value), of).encodings
        return found[math.copysign(1, given_value) < 0 if len(found) > 1 else 0]

    literal = literals.parse(str(value), of)
    assert literals.exclusions([literal], encode(low), encode(high), of)[0] is (not low <= value <= high)
