"""Keys of a file's values compare with those of a table's metadata, whatever the types of both."""

from __future__ import annotations

import math
import struct
from decimal import Decimal

import pytest

from bloomcli.model.file import Column
from bloomcli.model.table_statistics import Key, Kind
from bloomcli.values.keys import comparable, key_of, kind_of_column, parse_key, text_of

DAY = 86_400 * 10**9
INT = Column(path="c", index=0, physical="INT32")
SIX = Column(path="c", index=0, physical="INT96")


@pytest.mark.parametrize(
    ("column", "encoded", "kind", "text"),
    [
        (INT, struct.pack("<i", -7), Kind.NUMBER, "-7"),
        (Column(path="c", index=0, physical="BOOLEAN"), b"\1", Kind.BOOLEAN, "true"),
        (Column(path="c", index=0, physical="FLOAT"), struct.pack("<f", 0.5), Kind.NUMBER, "0.5"),
        (Column(path="c", index=0, physical="INT32", logical="DECIMAL(5,2)", scale=2), struct.pack("<i", -150),
         Kind.NUMBER, "-1.50"),
        (Column(path="c", index=0, physical="FIXED_LEN_BYTE_ARRAY", type_length=3, logical="DECIMAL(5,2)", scale=2),
         b"\xff\xff\x6a", Kind.NUMBER, "-1.50"),
        (Column(path="c", index=0, physical="INT32", logical="DATE"), struct.pack("<i", 20758), Kind.DATE,
         "2026-11-01"),
        (Column(path="c", index=0, physical="INT32", logical="TIME(MILLIS,UTC)", unit="MILLIS"),
         struct.pack("<i", 1500), Kind.TIME, "00:00:01.5"),
        (Column(path="c", index=0, physical="INT64", logical="TIMESTAMP(MILLIS,UTC)", unit="MILLIS", utc=True),
         struct.pack("<q", 1500), Kind.INSTANT, "1970-01-01T00:00:01.5Z"),
        (Column(path="c", index=0, physical="INT64", logical="TIMESTAMP(NANOS)", unit="NANOS", utc=False),
         struct.pack("<q", 1500), Kind.TIMESTAMP, "1970-01-01T00:00:00.0000015"),
        (SIX, struct.pack("<qi", 10**9, 2440589), Kind.INSTANT, "1970-01-02T00:00:01Z"),
        (Column(path="c", index=0, physical="BYTE_ARRAY", logical="STRING"), b"x\xc3\xa9", Kind.BYTES, "0x78c3a9"),
    ],
)  # fmt: skip
def test_a_value_has_a_key_of_its_kind(column: Column, encoded: bytes, kind: Kind, text: str) -> None:
    key = key_of(encoded, column)
    assert key is not None
    assert kind_of_column(column) is kind
    assert text_of(key, kind) == text


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("7", Kind.NUMBER, Decimal(7)),
        ("TRUE", Kind.BOOLEAN, 1),
        ("1970-01-02", Kind.DATE, DAY),
        ("1970-01-02", Kind.TIMESTAMP, DAY),
        ("1970-01-01T01:00:00.5+01:00", Kind.INSTANT, 500_000_000),
        ("00:00:01", Kind.TIME, 10**9),
        ("é", Kind.TEXT, b"\xc3\xa9"),
        ("00ff", Kind.BYTES, b"\0\xff"),
    ],
)
def test_a_text_of_a_table_s_metadata_has_the_same_key(text: str, kind: Kind, key: Key) -> None:
    assert parse_key(text, kind) == key


@pytest.mark.parametrize(
    ("text", "kind"),
    [("x", Kind.NUMBER), ("NaN", Kind.NUMBER), ("yes", Kind.BOOLEAN), ("2026-13-01", Kind.DATE), ("0", Kind.BYTES)],
)
def test_what_is_no_value_of_the_kind_is_an_error(text: str, kind: Kind) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        parse_key(text, kind)


def test_floating_point_numbers_are_rounded_as_in_files() -> None:
    single = Column(path="c", index=0, physical="FLOAT")
    assert parse_key("0.1", Kind.NUMBER, float_bytes=4) == key_of(struct.pack("<f", 0.1), single)
    assert parse_key("0.1", Kind.NUMBER, float_bytes=8) == 0.1
    assert parse_key("NaN", Kind.NUMBER, float_bytes=8) is None
    assert parse_key("-Infinity", Kind.NUMBER, float_bytes=4) == -math.inf


def test_bytes_that_are_no_value_have_no_key() -> None:
    assert [key_of(b"\1\2", column) for column in (INT, SIX)] == [None, None]
    assert key_of(b"", Column(path="c", index=0, physical="BOOLEAN")) is None
    assert key_of(struct.pack("<f", math.nan), Column(path="c", index=0, physical="FLOAT")) is None


def test_only_kinds_with_a_common_order_compare() -> None:
    assert comparable(Kind.DATE, Kind.TIMESTAMP)
    assert comparable(Kind.BYTES, Kind.TEXT)
    assert not comparable(Kind.TIMESTAMP, Kind.INSTANT)
    assert not comparable(None, Kind.NUMBER)
    assert not comparable(Kind.TEXT, Kind.NUMBER)
    assert kind_of_column(Column(path="c", index=0, physical="VOID")) is None


def test_a_key_without_a_text_of_its_kind_is_shown_as_a_number() -> None:
    assert text_of(-5, Kind.TIME) == "-5"
    assert text_of(b"a\xff", Kind.TEXT) == repr("a\\xff")
    assert text_of(Decimal("1.50"), Kind.NUMBER) == "1.50"
