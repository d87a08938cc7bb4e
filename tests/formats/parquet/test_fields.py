"""Footers are patched field by field: unknown fields stay, in any encoding of their headers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.footers import claims, stripped
from support.tables import write
from support.thrift import Fields, Items, Pairs

import bloomcli
from bloomcli.errors import WriteError
from bloomcli.formats.parquet import splice
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.storage.local.source import LocalSource


def table(rows: int = 300) -> pa.Table:
    """Three columns, one of them nested."""
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": [f"n{i % 37}" if i % 5 else None for i in range(rows)],
            "user": [{"price": i / 4} for i in range(rows)],
        }
    )


ALL = ["id", "name", "user.*"]


def original(folder: Path, **options: Any) -> Path:
    options.setdefault("rows", 100)
    return write(folder / "in", table(), **options)


STRANGE: Fields = {1: (thrift.I64, -5), 3: (thrift.LIST, Items(thrift.BINARY, [b"a", b""])), 40: (thrift.TRUE, True)}
UNKNOWN = {
    "binary": (thrift.BINARY, b"from the future"),
    "true": (thrift.TRUE, True),
    "false": (thrift.FALSE, False),
    "double": (thrift.DOUBLE, struct.pack("<d", 2.5)),
    "byte": (thrift.BYTE, 7),
    "struct": (thrift.STRUCT, STRANGE),
    "list": (thrift.LIST, Items(thrift.STRUCT, [STRANGE, {}])),
    "long_list": (thrift.LIST, Items(thrift.I32, list(range(40)))),
    "set": (thrift.SET, Items(thrift.I16, [1, -2])),
    "bools": (thrift.LIST, Items(thrift.TRUE, [True, False, True])),
    "map": (thrift.MAP, Pairs(thrift.BINARY, thrift.STRUCT, [(b"k", STRANGE), (b"", {})])),
    "empty_map": (thrift.MAP, Pairs(0, 0, [])),
}


def put(fields: Fields, number: int, value: tuple[int, Any]) -> None:
    fields[number] = value
    ordered = dict(sorted(fields.items()))
    fields.clear()
    fields.update(ordered)


def with_unknown(value: tuple[int, Any], numbers: tuple[int, ...]) -> Callable[[Fields], None]:
    """An edit that puts unknown fields into every structure on the way to a filter's fields."""

    def last(number: int) -> int:
        """Binary, the last number is the format's extension: `test_parquet_extension` has it."""
        return 32766 if number == 32767 and value[0] == thrift.BINARY else number

    def edit(metadata: Fields) -> None:
        for group in metadata[footers.ROW_GROUPS][1].values:
            for chunk in group[footers.COLUMNS][1].values:
                for number in map(last, numbers):
                    put(chunk[footers.META_DATA][1], number, value)
                put(chunk, 15, value)
                put(chunk, 100, value)
            put(group, 15, value)
            put(group, 3000, value)
        put(metadata, 20, value)
        put(metadata, last(32767), value)

    return edit


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        *((kind, (18, 19, 30, 200)) for kind in UNKNOWN),
        *(("binary", (number,)) for number in (18, 30, 31, 200, 32767)),
    ],
    ids=str,
)
def test_fields_of_the_future_stay_at_every_level(tmp_path: Path, kind: str, numbers: tuple[int, ...]) -> None:
    path = footers.edit_file(original(tmp_path, rows=200), tmp_path / "new", with_unknown(UNKNOWN[kind], numbers))
    bloomcli.add(path, ["id", "name"], output=tmp_path / "out", ndv=10)
    after = (tmp_path / "out").read_bytes()
    assert stripped(after) == footers.split(path.read_bytes())[1]
    assert len(claims(after)) == 4
    bloomcli.remove(tmp_path / "out", output=tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == path.read_bytes()


def long_form(fields: Fields) -> bytes:
    """A struct whose every header spells its field id out, as a writer may."""
    out = bytearray()
    for number, (kind, value) in fields.items():
        if kind in (thrift.TRUE, thrift.FALSE):
            kind = thrift.TRUE if value else thrift.FALSE
        out += bytes([kind]) + thrift.zigzag(number) + long_value(kind, value)
    return bytes(out) + b"\0"


def long_value(kind: int, value: Any) -> bytes:
    if kind == thrift.STRUCT:
        return long_form(value)
    if kind == thrift.LIST and value.kind == thrift.STRUCT:
        return bytes([0xF0 | value.kind]) + thrift.varint(len(value.values)) + b"".join(map(long_form, value.values))
    head = thrift.encode({1: (kind, value)})
    return head[1:-1]


@pytest.mark.parametrize("blooms", [None, {"id": {"ndv": 10}}], ids=["fresh", "replaced"])
def test_a_footer_in_long_form_headers_is_patched_and_comes_back(tmp_path: Path, blooms: Any) -> None:
    plain = original(tmp_path, blooms=blooms).read_bytes()
    body, footer = footers.split(plain)
    path = tmp_path / "long"
    path.write_bytes(footers.join(body, long_form(thrift.parse(footer)[0])))
    assert len(path.read_bytes()) > len(plain)
    bloomcli.add(path, ALL, output=tmp_path / "out", replace=True)
    after = (tmp_path / "out").read_bytes()
    assert len(claims(after)) == 9
    assert pq.read_table(tmp_path / "out").equals(table())
    assert bloomcli.validate(tmp_path / "out", deep=True).findings == ()
    bloomcli.remove(tmp_path / "out", output=tmp_path / "back")
    back = (tmp_path / "back").read_bytes()
    assert not claims(back)
    if blooms is None:
        assert back == path.read_bytes()


def struct_of(fields: bytes) -> Struct:
    return Struct("ColumnMetaData", fields, 0, Location("f", 0, ""))


def set_in(fields: bytes, **values: int | None) -> bytes:
    return splice.apply_edits(fields, splice.set_fields(struct_of(fields), values))


I64, I32, BIN = thrift.I64, thrift.I32, thrift.BINARY
SHAPES: dict[str, Fields] = {
    "empty": {},
    "before": {1: (I32, 2), 11: (I64, 9)},
    "directly_before": {13: (BIN, b"x")},
    "directly_after": {16: (BIN, b"x")},
    "both": {13: (BIN, b"x"), 16: (BIN, b"y"), 17: (thrift.TRUE, True)},
    "far_after": {1: (I32, 2), 30: (thrift.FALSE, False), 31: (I32, 1)},
    "last_short_delta": {13: (I32, 1), 28: (I32, 1), 29: (I32, 2)},
    "long_delta": {2: (I32, 1), 300: (BIN, b""), 301: (I32, 2)},
}


@pytest.mark.parametrize("encode", [thrift.encode, long_form], ids=["short", "long"])
@pytest.mark.parametrize("shape", SHAPES)
def test_set_fields_inserts_replaces_and_takes_out(shape: str, encode: Callable[[Fields], bytes]) -> None:
    fields = SHAPES[shape]
    raw = encode(fields)
    added = set_in(raw, bloom_filter_offset=1 << 40, bloom_filter_length=47)
    assert thrift.parse(added) == (dict(sorted({**fields, 14: (I64, 1 << 40), 15: (I32, 47)}.items())), len(added))
    changed = set_in(added, bloom_filter_offset=5)
    assert thrift.parse(changed)[0] == {**thrift.parse(added)[0], 14: (I64, 5)}
    assert set_in(added, bloom_filter_offset=None, bloom_filter_length=None) == raw
    assert set_in(set_in(raw, bloom_filter_offset=3), bloom_filter_offset=None) == raw
    one_left = set_in(added, bloom_filter_offset=None)
    assert thrift.parse(one_left)[0] == dict(sorted({**fields, 15: (I32, 47)}.items()))


def test_the_patched_footer_is_compared_with_the_original_before_anything_is_written(tmp_path: Path) -> None:
    with LocalSource("in", original(tmp_path)) as source:
        footer = read_footer(source)
    wrong = footer.raw.replace(b"parquet-cpp-arrow", b"parquet-cpp-ARROW")
    assert wrong != footer.raw
    with pytest.raises(WriteError, match="differs from the original"):
        splice.check(footer, wrong, {}, False)
    with pytest.raises(WriteError, match="can't be read"):
        splice.check(footer, footer.raw[: len(footer.raw) // 2], {}, False)
    splice.check(footer, footer.raw, {}, False)  # raises nothing
