"""Values as text again, and what min/max statistics alone rule out."""

from __future__ import annotations

import math
import struct

import pytest
from support import columns as kinds

from bloomcli.model.file import Column
from bloomcli.values import literals

INT32 = kinds.column("INT32")
FIVE_BYTES = kinds.column("FIXED_LEN_BYTE_ARRAY", type_length=5)

RENDERED = [
    (kinds.integer(8), "-128"),
    (kinds.integer(32, signed=False), "4294967295"),
    (kinds.integer(64, signed=False), "18446744073709551615"),
    (kinds.column("INT64"), "-9223372036854775808"),
    (kinds.decimal("INT32", 9, 2), "-12.30"),
    (kinds.decimal("INT64", 18, 0), "999999999999999999"),
    (kinds.decimal("FIXED_LEN_BYTE_ARRAY", 20, 4, 9), "0.0001"),
    (kinds.decimal("BYTE_ARRAY", 38, 10), "9999999999999999999999999999.0123456789"),
    (kinds.decimal("BYTE_ARRAY", 600, 2), "9" * 598 + ".99"),
    (kinds.DATE, "0001-01-01"),
    (kinds.DATE, "2024-02-29"),
    (kinds.DATE, "0000-02-29"),
    (kinds.DATE, "+5881580-07-11"),
    (kinds.DATE, "-5877641-06-23"),
    (kinds.timestamp("MILLIS"), "+292278994-08-17T07:12:55.807Z"),
    (kinds.timestamp("MILLIS"), "-292275055-05-16T16:47:04.192Z"),
    (kinds.time("MILLIS"), "13:45:30.25"),
    (kinds.time("NANOS"), "23:59:59.999999999"),
    (kinds.timestamp("MICROS"), "2024-02-29T13:45:30.000001Z"),
    (kinds.timestamp("MICROS", utc=False), "1969-12-31T23:59:59.999999"),
    (kinds.timestamp("NANOS"), "1677-09-21T00:12:43.145224192Z"),
    (kinds.INT96, "2000-01-01T00:00:00.000000001Z"),
    (kinds.UUID, "123e4567-e89b-12d3-a456-426614174000"),
    (kinds.STRING, "0x41 is text here\n"),
    (kinds.STRING, ""),
    (kinds.BINARY, "text"),
    (kinds.BINARY, "0x00ff"),
    (kinds.BINARY, "0x3058"),  # "0X": text that would be read as hexadecimal
    (kinds.BINARY, "0x09"),
    (FIVE_BYTES, "hello"),
    (FIVE_BYTES, "0xff00ff00ff"),
    (kinds.INTERVAL, "0x414141414141414141414141"),
    (kinds.FLOAT, "0.10000000149011612"),
    (kinds.FLOAT, "inf"),
    (kinds.FLOAT16, "-65504.0"),
    (kinds.DOUBLE, "5e-324"),
    (kinds.DOUBLE, "-1.7976931348623157e+308"),
]


@pytest.mark.parametrize(("of", "text"), [pytest.param(c, t, id=f"{kinds.label(c)} {t[:40]!a}") for c, t in RENDERED])
def test_a_value_is_rendered_so_that_it_reads_as_the_same_again(of: Column, text: str) -> None:
    (data,) = literals.parse(text, of).encodings
    assert literals.render(data, of) == text


def test_bytes_that_are_no_utf8_render_as_hexadecimal_or_come_back_as_they_were() -> None:
    assert literals.render(b"caf\xe9", kinds.BINARY) == "0x636166e9"
    text = literals.render(b"caf\xe9", kinds.STRING)
    assert literals.parse(text, kinds.STRING).encodings == (b"caf\xe9",)


@pytest.mark.parametrize(
    ("of", "data"),
    [
        (kinds.time("MILLIS"), struct.pack("<i", -1)),
        (kinds.time("MILLIS"), struct.pack("<i", 86_400_000)),
        (kinds.INT96, struct.pack("<qi", -1, 2440588)),
        (kinds.DOUBLE, struct.pack("<d", math.nan)),
        (kinds.FLOAT16, b"a~"),  # a NaN that is also printable
        (kinds.BOOLEAN, b"\x01"),
        (kinds.DATE, b"\x01"),
    ],
)
def test_what_has_no_text_is_shown_as_hexadecimal(of: Column, data: bytes) -> None:
    assert literals.render(data, of) == "0x" + data.hex()


@pytest.mark.parametrize(
    ("of", "data", "key"),
    [
        (INT32, b"\xff\xff\xff\xff", -1),
        (kinds.integer(32, signed=False), b"\xff\xff\xff\xff", 4294967295),
        (kinds.DATE, struct.pack("<i", -5), -5),
        (kinds.decimal("INT64", 18, 2), struct.pack("<q", -7), -7),
        (kinds.decimal("BYTE_ARRAY", 38, 2), b"\xff\x7f", -129),
        (kinds.decimal("FIXED_LEN_BYTE_ARRAY", 20, 0, 9), b"\x00" * 8 + b"\x80", 128),
        (kinds.FLOAT, struct.pack("<f", 1.5), 1.5),
        (kinds.FLOAT16, struct.pack("<e", -2.0), -2.0),
        (kinds.STRING, b"abc", b"abc"),
        (kinds.UUID, b"\x80" * 16, b"\x80" * 16),
        (kinds.DOUBLE, struct.pack("<d", math.nan), None),
        (kinds.INT96, bytes(12), None),
        (kinds.INTERVAL, bytes(12), None),
        (kinds.BOOLEAN, b"\x01", None),
        (kinds.column("BYTE_ARRAY", "GEOMETRY"), b"\x01", None),
        (INT32, b"\x01", None),
        (kinds.DOUBLE, bytes(4), None),
        (kinds.FLOAT16, bytes(4), None),
        (kinds.decimal("BYTE_ARRAY", 38, 2), b"", None),
    ],
)
def test_bounds_become_keys_in_the_columns_order(of: Column, data: bytes, key: object) -> None:
    assert literals.decode_bound(data, of) == key


def excluded(text: str, low: str | None, high: str | None, of: Column) -> bool | None:
    """Whether bounds given as text rule `text` out."""

    def bound(given: str | None) -> bytes | None:
        return None if given is None else literals.parse(given, of).encodings[0]

    return literals.exclusions([literals.parse(text, of)], bound(low), bound(high), of)[0]


@pytest.mark.parametrize(
    ("text", "low", "high", "out"),
    [
        ("5", "5", "9", False),
        ("9", "5", "9", False),
        ("4", "5", "9", True),
        ("10", "5", "9", True),
        ("-1", "-5", "9", False),
        ("4", "5", None, True),
        ("10", "5", None, False),
        ("10", None, "9", True),
        ("4", None, "9", False),
        ("7", None, None, None),
        ("7", "9", "5", None),  # a minimum above the maximum: the statistics are wrong
        ("100", "9", "5", None),
    ],
)
@pytest.mark.parametrize(
    "of",
    [
        INT32,
        kinds.column("INT64"),
        kinds.decimal("BYTE_ARRAY", 38, 2),
        kinds.decimal("FIXED_LEN_BYTE_ARRAY", 9, 0, 4),
        kinds.DOUBLE,
        kinds.FLOAT16,
    ],
    ids=kinds.label,
)
def test_a_value_outside_the_bounds_is_ruled_out(
    of: Column, text: str, low: str | None, high: str | None, out: bool | None
) -> None:
    assert excluded(text, low, high, of) is out


@pytest.mark.parametrize(
    ("of", "text", "low", "high", "out"),
    [
        (kinds.integer(32, signed=False), "3000000000", "1", "4000000000", False),
        (kinds.integer(64, signed=False), "1", "9223372036854775808", "18446744073709551615", True),
        (kinds.STRING, "b", "a", "c", False),
        (kinds.STRING, "é", "a", "z", True),
        (kinds.STRING, "abcd", "ab", "abd", False),  # bounds cut short are bounds
        (kinds.DATE, "2024-01-01", "2023-01-01", "2023-12-31", True),
        (kinds.timestamp("NANOS"), "1969-01-01", "1960-01-01", "1970-01-01", False),
        (kinds.UUID, "80000000-0000-0000-0000-000000000000", "0" * 32, "7" + "f" * 31, True),
        (kinds.DOUBLE, "0", "-0.0", "1", False),
        (kinds.DOUBLE, "-0.0", "0.0", "1", False),
        (kinds.DOUBLE, "NaN", "1", "2", None),
        (kinds.INT96, "2024-01-01", "2025-01-01", "2026-01-01", None),
        (kinds.integer(8), "300", "1", "2", True),
    ],
)
def test_bounds_compare_in_the_types_own_order(of: Column, text: str, low: str, high: str, out: bool | None) -> None:
    assert excluded(text, low, high, of) is out


def test_bounds_that_are_not_numbers_rule_nothing_out() -> None:
    nan = struct.pack("<d", math.nan)
    assert literals.exclusions([literals.parse("1", kinds.DOUBLE)], nan, nan, kinds.DOUBLE)[0] is None
    assert literals.exclusions([literals.parse("1", INT32)], b"\x09", b"\x09", INT32)[0] is None
