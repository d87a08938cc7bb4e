"""Mosaic's metadata: varints, byte-pair encoded names, types and their literals, statistics."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import MOSAIC
from support.mosaicfiles import read, write
from support.thrift import varint

import bloomcli
from bloomcli import kernels
from bloomcli.errors import CorruptFile
from bloomcli.formats.mosaic.file import MosaicFile
from bloomcli.formats.mosaic.schema import Schema, literal_column, read_schema
from bloomcli.formats.mosaic.spec import Cursor
from bloomcli.storage.registry import open_source


def cursor(data: bytes) -> Cursor:
    return Cursor(data, base=100, path="f.mosaic", field="here")


def parsed(data: bytes) -> Schema:
    return read_schema(cursor(data))


@given(st.integers(0, 2**32 - 1))
def test_a_varint_of_32_bits_is_read_as_it_was_written(value: int) -> None:
    assert kernels.encoded_varint(value) == varint(value)
    there = cursor(varint(value) + b"\xff")
    assert (there.varint("x"), there.remaining) == (value, 1)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_zigzag_number_is_signed(value: int) -> None:
    assert cursor(varint(value << 1 if value >= 0 else (-value << 1) - 1)).zigzag("x") == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "a varint doesn't end"),
        (b"\x80\x80", "a varint doesn't end"),
        (b"\xff" * 6, "more than 5 bytes"),
        (b"\xff\xff\xff\xff\x1f", "more than 32 bits"),
    ],
)
def test_a_varint_that_does_not_end_or_is_too_large_is_named_with_its_place(data: bytes, reason: str) -> None:
    there = cursor(b"\x01" + data)
    there.byte("something")
    with pytest.raises(CorruptFile, match=f"the count: .*{reason}") as caught:
        there.varint("the count")
    assert (caught.value.offset, caught.value.field, caught.value.path) == (101, "here", "f.mosaic")


def test_columns_are_in_the_order_of_their_names_and_buckets_share_them_out(tmp_path: Path) -> None:
    names = ["d", "b", "Z", "ü", "a", "c", "aa"]
    table = pa.table({name: [1] for name in names})
    path = write(tmp_path / "f.mosaic", table, num_buckets=3)
    with open_source(path) as source:
        file = MosaicFile(source)
    assert [c.path for c in file.columns] == sorted(names) == [c.name for c in file.footer.columns]
    assert [c.index for c in file.columns] == list(range(7))
    assert [c.bucket for c in file.footer.columns] == [i * 3 // 7 for i in range(7)]
    assert [file.columns[i].path for i in file.footer.schema.order] == names == read(path).column_names


def test_every_type_has_its_name_and_the_type_that_literals_take() -> None:
    with open_source(MOSAIC / "released_types.mosaic") as source:
        columns = MosaicFile(source).footer.columns
    shown = {c.name: c.type_name for c in columns}
    assert shown == {
        "big": "INT64",
        "blob": "BYTES",
        "cents": "DECIMAL(9,2)",
        "counts": "MAP<STRING,INT32>",
        "day": "DATE",
        "flag": "BOOLEAN",
        "label": "STRING",
        "micro": "TIMESTAMP(6)",
        "milli": "TIMESTAMP(3)",
        "money": "DECIMAL(38,4)",
        "nano": "TIMESTAMP(9)",
        "nothing": "STRING",
        "real": "FLOAT",
        "same": "STRING",
        "small": "INT16",
        "tags": "LIST<STRING>",
        "text": "STRING",
        "time": "TIME(3)",
        "tiny": "INT8",
        "whole": "INT32",
        "wide": "DOUBLE",
        "zoned": "TIMESTAMP_LTZ(6,UTC)",
    }
    typed = {c.name: (literal_column(c).physical, literal_column(c).logical) for c in columns}
    assert typed["tiny"] == ("INT32", "INTEGER(8,signed)")
    assert typed["zoned"] == ("INT64", "TIMESTAMP(MICROS)")
    assert typed["cents"] == ("INT128", "DECIMAL(9,2)")
    assert typed["money"] == ("INT128", "DECIMAL(38,4)")
    assert typed["blob"] == ("BYTE_ARRAY", None)


def test_rules_may_stand_for_earlier_rules() -> None:
    # 0x80 = "ab", 0x81 = 0x80 0x80, 0x82 = 0x81 "c"
    rules = bytes([3]) + b"ab" + bytes([0x80, 0x80]) + bytes([0x81]) + b"c"
    data = bytes([1, 1, 1]) + rules + bytes([0, 2, 0x82, 0x80]) + bytes([4, 0])
    assert [c.name for c in parsed(data).columns] == ["ababcab"]
    assert parsed(data).rules == 3


INT = bytes([4, 1])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "columns: a varint doesn't end"),
        (varint(1 << 30) + b"\1\0", "columns: 1073741824 are claimed, 2 bytes are left"),
        (bytes([1, 0, 0, 0, 1]) + b"a" + INT, "0 buckets for 1 column"),
        (bytes([1, 2, 0, 0, 1]) + b"a" + INT, "2 buckets for 1 column"),
        (bytes([1, 1, 2, 0, 1]) + b"a" + INT, "unknown encoding 2"),
        (bytes([1, 1, 0, 1, 1]) + b"a" + INT, "1 byte of a name of 0 is shared"),
        (bytes([1, 1, 0, 0, 9]) + b"a" + INT, "a name: 9 bytes are claimed, 3 are left"),
        (bytes([1, 1, 0, 0, 1, 0xFF]) + INT, "isn't UTF-8"),
        (bytes([1, 1, 0, 0, 0]) + INT, "a column without a name"),
        (bytes([2, 1, 0, 0, 1]) + b"a" + INT + bytes([1, 0]) + INT, "two columns are called 'a'"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([20, 1]), "the type 20 isn't known"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([4]), "nullability: 1 byte is claimed, 0 are left"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([14, 1, 39, 0]), "a decimal of 39 digits"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([17, 1, 6, 200, 1]), "a time zone: 200 bytes are claimed"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([18, 1, 0] * 400), "nests deeper than 256"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + bytes([19, 1, 0, 0, 18, 1, 0, 4, 1, 0, 4, 1]), "keys of the type LIST"),
        (bytes([1, 1, 1, 1, 0x80]) + b"a" + bytes([0, 1, 0x80]) + INT, "rule 0 of the names is made of rules that"),
        (bytes([1, 1, 1, 1]) + b"ab" + bytes([0, 1, 0x81]) + INT, "a name uses rule 1, there are 1"),
        (bytes([1, 1, 1, 200, 1]) + b"ab" * 200 + bytes([0, 1, 0x81]) + INT, "200 rules for names"),
        (bytes([1, 1, 0, 0, 1]) + b"a" + INT + bytes([2]), "no permutation"),
        (
            bytes([1, 1, 0, 0, 1]) + b"a" + INT + bytes([0x80]),
            "a position in the original order: a varint doesn't end",
        ),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptFile, match=reason) as caught:
        parsed(data)
    assert caught.value.field is not None
    assert caught.value.offset is not None


def test_rules_that_double_a_name_128_times_allocate_nothing() -> None:
    rules = b"ab" + b"".join(bytes([0x80 + i, 0x80 + i]) for i in range(126))
    data = bytes([1, 1, 1, 127]) + rules + bytes([0, 1, 0xFE]) + INT
    with pytest.raises(CorruptFile, match="a name takes more than 67108864 bytes"):
        parsed(data)


def test_names_that_each_share_a_long_beginning_are_bounded_together() -> None:
    long = 1 << 20
    head = varint(90) + bytes([1, 0]) + bytes([0]) + varint(long) + b"a" * long + INT
    data = head + b"".join(varint(long - i - 1) + bytes([1, 0x62]) + INT for i in range(89))
    with pytest.raises(CorruptFile, match="names take more than 67108864 bytes"):
        parsed(data)


def test_statistics_of_every_type_rule_values_out() -> None:
    path = MOSAIC / "released_types.mosaic"
    beyond = {
        "tiny": ("127", None),
        "small": ("-30001", "29900"),
        "whole": ("-9000001", "-9000000"),
        "big": ("-1", "5000000000"),
        "real": ("-25.5", "-25"),
        "wide": ("1e9", "0"),
        "day": ("2024-02-28", "2024-02-29"),
        "time": ("00:00:00", "00:00:01.007"),
        "cents": ("-0.25", "0.25"),
        "text": ("text ü", "text 100 ü"),
        "milli": ("2024-02-29T11:59:59", "2024-02-29T12:00:00.001"),
        "micro": ("2024-02-29T12:00:01", "2024-02-29T12:00:00.000001"),
        "nano": ("2023-11-14T22:13:19", "2023-11-14T22:13:20.000000001"),
        "zoned": ("2024-02-29T11:00:00Z", "2024-02-29T13:00:00Z"),
        "nothing": ("x", None),
    }
    for column, (outside, inside) in beyond.items():
        values = [v for v in (outside, inside) if v is not None]
        totals = bloomcli.probe(path, values, column=column).totals
        assert totals[0].stats_skipped_row_groups == (3 if column != "tiny" else 1), column
        if inside is not None:
            assert totals[1].stats_skipped_row_groups == 2, column
