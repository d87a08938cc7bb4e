"""Text typed by a person becomes the column's PLAIN bytes: every logical type, and what it can't hold."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from dataclasses import replace
from typing import Any, Final

import pytest
from support.columns import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    EVERY,
    FLOAT,
    FLOAT16,
    INT96,
    INTERVAL,
    STRING,
    UUID,
    column,
    decimal,
    integer,
    label,
    time,
    timestamp,
)

from bloomcli.errors import LiteralError
from bloomcli.model.file import Column
from bloomcli.values import literals

INT32, INT64 = column("INT32"), column("INT64")
FIVE_BYTES = column("FIXED_LEN_BYTE_ARRAY", type_length=5)
ID = "123e4567-e89b-12d3-a456-426614174000"
UTC = dt.UTC


def encoded(text: str, of: Column) -> bytes:
    """The one value that `text` is."""
    literal = literals.parse(text, of)
    assert literal.impossible is None
    assert literal.unknowable is None
    assert literal.text == text
    (data,) = literal.encodings
    return data


def since_epoch(moment: str, per_second: int) -> int:
    """A moment in units since 1970, UTC."""
    delta = dt.datetime.fromisoformat(moment).replace(tzinfo=UTC) - dt.datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * per_second + delta.microseconds * per_second // 10**6


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_are_held_from_end_to_end_of_their_range(bits: int, signed: bool) -> None:
    of = integer(bits, signed=signed)
    width = 8 if bits == 64 else 4
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    for value in (low, high, 0, 42):
        assert encoded(str(value), of) == value.to_bytes(width, "little", signed=signed)
    for value in (low - 1, high + 1):
        literal = literals.parse(str(value), of)
        assert literal.impossible == f"{of.logical} holds {low} to {high}, not {value}"
        assert literal.encodings == ()


def cases(rows: list[tuple[str, Column, Any]]) -> list[Any]:
    """Parameters whose ids name the column's type and the text."""
    return [pytest.param(*row, id=f"{label(row[1])} {row[0][:40]!a}") for row in rows]


WHOLE: Final = {
    " 42 ": 42,
    "+7": 7,
    "-0": 0,
    "007": 7,
    "0x2A": 42,
    "-0xff": -255,
    "4e2": 400,
    "5.000": 5,
    "0e999": 0,
    "0" * 5000 + "5": 5,
}
DAYS: Final = ("1970-01-01", "2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31")
ZONES: Final = ("Z", "z", " UTC", "+00:00", "-00")
ENCODED: Final = [
    *((text, INT32, struct.pack("<i", value)) for text, value in WHOLE.items()),
    *((text, INT64, struct.pack("<q", value)) for text, value in WHOLE.items()),
    ("12.34", decimal("INT32", 9, 2), struct.pack("<i", 1234)),
    ("-12.3", decimal("INT32", 9, 2), struct.pack("<i", -1230)),
    ("1.2e1", decimal("INT64", 18, 3), struct.pack("<q", 12000)),
    ("12.3400", decimal("INT32", 9, 2), struct.pack("<i", 1234)),
    ("-0.00", decimal("INT32", 9, 2), bytes(4)),
    ("0e500", decimal("INT32", 9, 2), bytes(4)),
    ("1", decimal("FIXED_LEN_BYTE_ARRAY", 20, 4, 9), (10000).to_bytes(9, "big")),
    ("-1", decimal("FIXED_LEN_BYTE_ARRAY", 20, 0, 9), b"\xff" * 9),
    ("127", decimal("BYTE_ARRAY", 38, 0), b"\x7f"),
    ("128", decimal("BYTE_ARRAY", 38, 0), b"\x00\x80"),
    ("-128", decimal("BYTE_ARRAY", 38, 0), b"\x80"),
    ("-129", decimal("BYTE_ARRAY", 38, 0), b"\xff\x7f"),
    ("0", decimal("BYTE_ARRAY", 38, 5), b"\x00"),
    ("9" * 600, decimal("BYTE_ARRAY", 600, 0), (10**600 - 1).to_bytes(250, "big")),
    ("1e39", DOUBLE, struct.pack("<d", 1e39)),
    *(
        (text, column("BYTE_ARRAY", kind), text.encode())
        for text in ("", " spaced ", "0x41", "Zoë", "𝄞", "line\nbreak")
        for kind in ("STRING", "ENUM", "JSON")
    ),
    (b"caf\xe9".decode("utf-8", "surrogateescape"), STRING, b"caf\xe9"),  # as it comes from the command line
    ("0x00ff", BINARY, b"\0\xff"),
    ("0X0a 0B", BINARY, b"\n\v"),
    ("0x", BINARY, b""),
    ("text", BINARY, b"text"),
    ("", BINARY, b""),
    ("0x0102030405", FIVE_BYTES, b"\x01\x02\x03\x04\x05"),
    ("hello", FIVE_BYTES, b"hello"),
    *((day, DATE, struct.pack("<i", since_epoch(day, 1) // 86_400)) for day in DAYS),
    ("00:00:00.0010", time("MILLIS"), struct.pack("<i", 1)),
    *(
        (
            f"2024-02-29T13:45:30{zone}",
            timestamp("MICROS"),
            struct.pack("<q", since_epoch("2024-02-29T13:45:30", 10**6)),
        )
        for zone in ZONES
    ),
    ("1970-01-01", INT96, struct.pack("<qi", 0, 2440588)),
    ("2000-01-01T12:00:00.000000001Z", INT96, struct.pack("<qi", 43_200 * 10**9 + 1, 2451545)),
    ("1969-12-31T23:00-02:00", INT96, struct.pack("<qi", 3600 * 10**9, 2440588)),
    ("1969-12-31", INT96, struct.pack("<qi", 0, 2440587)),
    ("0x" + "01" * 12, INT96, b"\x01" * 12),
    *(
        (text, UUID, uuid.UUID(ID).bytes)
        for text in (ID, ID.upper(), ID.replace("-", ""), f"{{{ID}}}", f" {ID} ", "0x" + uuid.UUID(ID).hex)
    ),
    ("0x" + "0f" * 12, INTERVAL, b"\x0f" * 12),
]


@pytest.mark.parametrize(("text", "of", "data"), cases(ENCODED))
def test_a_value_is_encoded_as_the_column_stores_it_however_it_is_written(text: str, of: Column, data: bytes) -> None:
    assert encoded(text, of) == data


IMPOSSIBLE: Final = [
    *((text, INT32, "") for text in ("9" * 5000, "0x" + "f" * 5000, "1e999999999", "-1e400", "2147483648")),
    *((text, INT32, "") for text in ("1.5", "1e-99999")),
    *(  # not rounded away
        (f"5.{'0' * zeros}1", of, "") for zeros in (300, 5000) for of in (INT32, decimal("BYTE_ARRAY", 38, 2))
    ),
    ("1.234", decimal("INT32", 9, 2), ""),
    ("123456789", decimal("INT32", 9, 2), ""),
    ("1e9", decimal("INT32", 0, 2), ""),
    ("1e19", decimal("INT64", 18, 0), ""),
    ("128", decimal("FIXED_LEN_BYTE_ARRAY", 0, 0, 1), ""),
    ("1e999999999", decimal("BYTE_ARRAY", 38, 0), ""),
    ("1e-999999999", decimal("BYTE_ARRAY", 38, 0), ""),
    ("9" * 5000, decimal("BYTE_ARRAY", 38, 0), ""),
    ("1e39", FLOAT, ""),
    ("65536", FLOAT16, ""),
    ("0x01020304", FIVE_BYTES, "holds 5 bytes, not 4"),
    ("h", FIVE_BYTES, "can't hold 1 byte"),
    ("hellos", FIVE_BYTES, "can't hold 6 bytes"),
    ("+5881580-07-12", DATE, "can't hold"),
    ("-5877641-06-22", DATE, "can't hold"),
    ("9" * 5000 + "-01-01", DATE, "can't hold"),
    ("294247-01-11", timestamp("MICROS"), "can't hold"),
    ("+292278994-08-17T07:12:55.808Z", timestamp("MILLIS"), "can't hold"),
    ("9999999999-01-01", timestamp("MILLIS"), "can't hold"),
    ("+6000000-01-01", INT96, "can't hold"),
    ("-6000000-01-01", INT96, "can't hold"),
    ("00:00:00.0001", time("MILLIS"), ""),
    ("2024-01-01T00:00:00.0000001", timestamp("MICROS"), ""),
    *(("0x01", of, "") for of in (INT96, UUID, INTERVAL)),
]


@pytest.mark.parametrize(("text", "of", "reason"), cases(IMPOSSIBLE))
def test_what_the_column_cannot_hold_exactly_is_impossible(text: str, of: Column, reason: str) -> None:
    literal = literals.parse(text, of)
    assert literal.impossible
    assert reason in literal.impossible
    assert literal.encodings == ()


@pytest.mark.parametrize(("of", "code"), [(FLOAT16, "e"), (FLOAT, "f"), (DOUBLE, "d")])
def test_floats_are_the_nearest_the_column_holds(of: Column, code: str) -> None:
    for text in ("1.5", "-2", "0.1", "1e-3", "inf", "-Infinity", " 7 "):
        assert encoded(text, of) == struct.pack(f"<{code}", float(text))
    assert literals.parse("0.1", of).order_key == struct.unpack(f"<{code}", struct.pack(f"<{code}", 0.1))[0]


@pytest.mark.parametrize("text", ["0", "-0.0", "0e5", "1e-999", "-1e-999"])
@pytest.mark.parametrize(("of", "code"), [(FLOAT16, "e"), (FLOAT, "f"), (DOUBLE, "d")])
def test_a_zero_looks_for_both_zeros(of: Column, code: str, text: str) -> None:
    assert set(literals.parse(text, of).encodings) == {struct.pack(f"<{code}", 0.0), struct.pack(f"<{code}", -0.0)}


@pytest.mark.parametrize("of", [FLOAT16, FLOAT, DOUBLE], ids=label)
def test_nan_has_no_answer_and_too_large_a_float_is_impossible(of: Column) -> None:
    literal = literals.parse("NaN", of)
    assert literal.unknowable
    assert literal.encodings == ()
    assert literals.parse("1e999", of).impossible
    assert literals.parse("-1e999", of).impossible


@pytest.mark.parametrize(
    ("text", "days"),
    [  # as DuckDB counts them; the last two are the ends of INT32, as java.time has them
        ("10000-01-01", 2932897),
        ("20240-01-01", 6672980),
        ("+20240-01-01", 6672980),
        ("020240-01-01", 6672980),
        ("+2024-02-29", 19782),
        ("0000-12-31", -719163),
        ("0001-12-31 (BC)", -719163),
        ("0001-12-31 BC", -719163),
        ("-0001-12-31", -719528 - 1),
        ("0044-03-15 (BC)", -735160),
        ("-0043-03-15", -735160),
        ("+5881580-07-11", (1 << 31) - 1),
        ("-5877641-06-23", -(1 << 31)),
    ],
)
def test_years_beyond_1_to_9999_are_dates_too(text: str, days: int) -> None:
    assert encoded(text, DATE) == struct.pack("<i", days)
    micros = days * 86_400 * 10**6
    if abs(micros) < 1 << 63:
        assert encoded(text, timestamp("MICROS")) == struct.pack("<q", micros)
        assert encoded(f"{text} 00:00:01+00", timestamp("MICROS")) == struct.pack("<q", micros + 10**6)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("13:45:30Z", "13:45:30"),
        ("13:45:30 UTC", "13:45:30"),
        ("13:45:30.250+02:00", "11:45:30.250"),
        ("01:00+0200", "23:00"),
        ("23:30-01", "00:30"),
    ],
)
def test_a_time_in_utc_may_have_a_zone_which_is_taken_off(text: str, utc: str) -> None:
    for unit in ("MILLIS", "MICROS", "NANOS"):
        assert encoded(text, time(unit)) == encoded(utc, time(unit))


@pytest.mark.parametrize("of", [time("MICROS", utc=False), timestamp("MICROS", utc=False)], ids=label)
def test_a_zone_for_a_wall_clock_is_refused_with_the_reason(of: Column) -> None:
    text = "12:00+02:00" if of.logical == "TIME(MICROS,local)" else "2024-01-01 12:00+02:00"
    with pytest.raises(LiteralError, match="the column holds wall-clock time of an unknown zone") as caught:
        literals.parse(text, of)
    assert "without a zone" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("00:00", 0),
        ("9:05", 32_700 * 10**9),
        ("13:45:30", 49_530 * 10**9),
        ("13:45:30.250", 49_530_250 * 10**6),
        ("23:59:59,999", 86_399_999 * 10**6),
    ],
)
def test_times_are_in_the_columns_unit(text: str, nanos: int) -> None:
    assert encoded(text, time("MILLIS")) == struct.pack("<i", nanos // 10**6)
    assert encoded(text, time("MICROS")) == struct.pack("<q", nanos // 1000)
    assert encoded(text, time("NANOS", utc=False)) == struct.pack("<q", nanos)


@pytest.mark.parametrize(("unit", "per_second"), [("MILLIS", 10**3), ("MICROS", 10**6), ("NANOS", 10**9)])
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-02-29", "2024-02-29"),
        ("2024-02-29T13:45", "2024-02-29T13:45"),
        ("2024-02-29 13:45:30.250", "2024-02-29T13:45:30.250"),
        ("1969-12-31T23:59:59.999", "1969-12-31T23:59:59.999"),
        ("1700-01-01T00:00:00", "1700-01-01T00:00:00"),
    ],
)
def test_timestamps_are_in_the_columns_unit(unit: str, per_second: int, text: str, moment: str) -> None:
    expected = struct.pack("<q", since_epoch(moment, per_second))
    for utc in (True, False):
        assert encoded(text, timestamp(unit, utc=utc)) == expected


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-02-29T01:00+02:00", "2024-02-28T23:00"),
        ("2024-12-31T23:30:00-0130", "2025-01-01T01:00"),
        ("2024-01-01T00:00 +05", "2023-12-31T19:00"),
        ("0001-01-01T00:00+14:00", "-"),
    ],
)
def test_a_zone_is_taken_off(text: str, utc: str) -> None:
    of = timestamp("MILLIS")
    expected = -62135596800000 - 14 * 3_600_000 if utc == "-" else since_epoch(utc, 1000)
    assert encoded(text, of) == struct.pack("<q", expected)


def test_moments_beyond_the_nanoseconds_of_64_bits_are_impossible() -> None:
    for text in ("2263-01-01", "1677-01-01"):
        assert literals.parse(text, timestamp("NANOS")).impossible
        assert encoded(text, timestamp("MICROS")) == struct.pack("<q", since_epoch(text, 10**6))


def test_booleans_have_no_answer() -> None:
    assert literals.parse("true", BOOLEAN).unknowable


MALFORMED = [
    *((text, INT32) for text in ("", "x", "1,5", "1_000", "nan", "inf", "0xzz", "--1", "1 2")),
    *((text, decimal("INT32", 9, 2)) for text in ("", "x", "NaN", "Infinity", "1_0", "0x1")),
    *((text, of) for text in ("", "x", "1_0", "0x1", "1,5") for of in (FLOAT, DOUBLE, FLOAT16)),
    *(
        (text, DATE)
        for text in ("", "2024-02-30", "29.02.2024", "0x1", "19000", "+10001-02-29", "0000-01-01 BC", "-1-01-01")
    ),
    *((text, DATE) for text in ("0044-03-15 AD", "-0044-03-15 (BC)", "２０２４-01-01", "1000000001-02-29", "BC")),
    *((text, time("MICROS")) for text in ("", "24:00", "12:60", "12:00:60", "12", "12:00:00.1234567890", "noon")),
    *(
        (text, timestamp("MICROS"))
        for text in ("", "2024-13-01", "2024-01-01T25:00", "1704067200", "2024-01-01T", "2024-01-01T00:00+24:00")
    ),
    ("2024-01-01T00:00+00:60", timestamp("MICROS")),
    *((text, time("MICROS")) for text in ("12:00+24:00", "Z", "+02:00", "12Z")),
    *((text, time("MICROS", utc=False)) for text in ("12:00Z", "12:00+02:00")),
    *((text, timestamp("MICROS", utc=False)) for text in ("2024-01-01T00:00Z", "2024-01-01T00:00:00+02:00")),
    *((text, UUID) for text in ("", ID[:-1], ID + "0", "x" * 32, "0xzz")),
    *((text, BINARY) for text in ("0x0", "0xzz")),
    *((text, INTERVAL) for text in ("", "1 day", "0xzz")),
    *((text, INT96) for text in ("", "0xzz", "yesterday")),
    *(("\ud800", of) for of in EVERY if of is not BOOLEAN),
]


@pytest.mark.parametrize(("text", "of"), [pytest.param(t, c, id=f"{label(c)} {t!a}") for t, c in MALFORMED])
def test_text_that_is_no_value_of_the_type_is_an_error_that_shows_one(text: str, of: Column) -> None:
    with pytest.raises(LiteralError) as caught:
        literals.parse(text, of, path="data.parquet")
    assert caught.value.path == "data.parquet"
    assert "column c" in caught.value.reason
    example = (caught.value.hint or "").removeprefix("write it like ").partition(",")[0]
    assert literals.parse(example, of).text == example


def test_the_type_is_named_as_a_person_knows_it() -> None:
    assert literals.type_name(decimal("INT32", 9, 2)) == "DECIMAL(9,2)"
    assert literals.type_name(INT64) == "INT64"
    assert literals.kind_of(decimal("INT32", 9, 2)) == "DECIMAL"
    assert literals.kind_of(INT64) == "INT64"


WIDER = {
    ("DOUBLE", "FLOAT"): (("0.5", "0.5"), ("0.10000000149011612", "0.1"), ("-inf", "-inf"), ("-0.0", "0")),
    ("DOUBLE", "INT32"): (("3", "3"), ("3.0", "3"), ("-2e3", "-2000"), ("-0.0", "0")),
    ("TIMESTAMP", "DATE"): (("2024-02-29", "2024-02-29"), ("2024-02-29T00:00:00.000", "2024-02-29")),
}
NOT_THERE = {
    ("DOUBLE", "FLOAT"): ("0.1", "1e300", "1e-300"),
    ("DOUBLE", "INT32"): ("3.5", "1e300", "inf", "nan", "2147483648"),
    ("TIMESTAMP", "DATE"): ("2024-02-29T00:00:00.000001", "2024-02-29 12:00", "99999999-01-01"),
}


def narrow(wide: str, kind: str) -> Column:
    """A column of a file from before the table's type was widened."""
    physical = "INT32" if kind == "DATE" else kind
    return Column(path="c", index=0, physical=physical, logical="DATE" if kind == "DATE" else None, wide=wide)


@pytest.mark.parametrize("types", WIDER)
def test_a_value_of_a_widened_column_is_the_equal_value_of_the_narrower_type(types: tuple[str, str]) -> None:
    column = narrow(*types)
    for text, in_file in WIDER[types]:
        found = literals.parse(text, column)
        assert (found.text, found.encodings) == (text, literals.parse(in_file, replace(column, wide=None)).encodings)
    for text in NOT_THERE[types]:
        found = literals.parse(text, column)
        assert found.impossible is not None
        assert not found.encodings


@pytest.mark.parametrize("types", WIDER)
def test_what_is_no_value_of_the_wider_type_is_an_error_that_names_it(types: tuple[str, str]) -> None:
    with pytest.raises(LiteralError, match=f"'0x1f' is not a value of column c, {types[0]}"):
        literals.parse("0x1f", narrow(*types))
