"""Mutates Parquet files: footers and page headers by field, and decompressed pages."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pyarrow as pa

from support import footers, thrift
from support.thrift import Fields, Items, Pairs

INTERESTING: Final = (0, 1, 2, 3, 5, 7, 8, 127, 128, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, 1 << 31)
INTERESTING_64: Final = (*INTERESTING, (1 << 32) - 1, 1 << 40, (1 << 63) - 1)
CODECS: Final = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_INTEGERS: Final = (thrift.I16, thrift.I32, thrift.I64)

# PageHeader and its parts
_TYPE, _UNCOMPRESSED, _COMPRESSED, _CRC, _V1, _DICTIONARY, _V2 = 1, 2, 3, 4, 5, 7, 8
# ColumnMetaData, RowGroup
_CODEC, _TOTAL_UNCOMPRESSED, _TOTAL_COMPRESSED, _INDEX_PAGE, _DICTIONARY_PAGE = 4, 6, 7, 10, 11
_FILE_OFFSET = 5


def number(random: Random, old: int, bits: int = 64) -> int:
    """Another number: a near one, or one at a boundary."""
    near = (old - 1, old + 1, old * 2, old // 2, -old, -1, old ^ 1 << random.randrange(bits))
    value = random.choice((*near, *INTERESTING_64, random.randrange(40)))
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return min(max(value, low), high)


def flip(random: Random, data: bytes) -> bytes:
    """Change, remove or repeat one to three bytes."""
    out = bytearray(data)
    if not out:
        return bytes([random.randrange(256)])
    for _ in range(random.choice((1, 1, 2, 3))):
        at, how = random.randrange(len(out)), random.randrange(10)
        if how < 3:
            out[at] ^= 1 << random.randrange(8)
        elif how < 6:
            out[at] = random.choice((0, 1, 2, 0x0F, 0x7F, 0x80, 0xFE, 0xFF))
        elif how < 8:
            out[at] = random.randrange(256)
        elif how == 8:
            del out[at : at + random.choice((1, 2, 4, 8))]
        else:
            out[at:at] = out[at : at + random.choice((1, 2, 4, 8))]
        if not out:
            break
    return bytes(out)


def _nodes(value: Any, found: list[tuple[Any, Any]]) -> None:
    """(container, key) of every field and element below a struct."""
    if isinstance(value, dict):
        for key, (_, inner) in value.items():
            found.append((value, key))
            _nodes(inner, found)
    elif isinstance(value, Items):
        for place, inner in enumerate(value.values):
            if not isinstance(inner, dict):
                found.append((value.values, place))
            _nodes(inner, found)


def _changed(random: Random, kind: int, value: Any) -> Any:
    if kind in _INTEGERS:
        return number(random, value, {thrift.I16: 16, thrift.I32: 32, thrift.I64: 64}[kind])
    if kind == thrift.BYTE:
        return random.randrange(256)
    if kind in (thrift.TRUE, thrift.FALSE):
        return not value
    if kind in (thrift.BINARY, thrift.DOUBLE):
        changed = flip(random, value)
        return changed[:8].ljust(8, b"\0") if kind == thrift.DOUBLE else changed
    if isinstance(value, Items):
        values = list(value.values)
        how = random.randrange(4)
        if not values or how == 0:
            values = []
        elif how == 1:
            values.pop(random.randrange(len(values)))
        elif how == 2:
            values.insert(random.randrange(len(values) + 1), random.choice(values))
        else:
            random.shuffle(values)
        return Items(value.kind, values)
    return value


def mutate_tree(random: Random, tree: Fields) -> None:
    """Replace or remove a field of a struct, at any depth, or change its type."""
    found: list[tuple[Any, Any]] = []
    _nodes(tree, found)
    container, key = random.choice(found)
    if isinstance(container, list):  # an element
        old = container[key]
        if isinstance(old, bool):
            container[key] = not old
        elif isinstance(old, int):
            container[key] = number(random, old, 32)
        elif isinstance(old, bytes):
            container[key] = flip(random, old)
        return
    kind, value = container[key]
    how = random.randrange(12)
    if how == 0:
        del container[key]
    elif how == 1:  # another type under the same number
        container[key] = random.choice(
            [
                (thrift.I32, random.choice(INTERESTING)),
                (thrift.I64, number(random, 0)),
                (thrift.BINARY, b"x" * random.randrange(5)),
                (thrift.LIST, Items(thrift.I32, [1, 2])),
                (thrift.STRUCT, {1: (thrift.I32, 1)}),
                (thrift.TRUE, True),
                (thrift.MAP, Pairs(thrift.I32, thrift.BINARY, [(1, b"y")])),
            ]
        )
    elif how == 2:  # an unknown field
        container[random.randrange(1, 40)] = (thrift.BINARY, b"unknown")
        ordered = dict(sorted(container.items()))
        container.clear()
        container.update(ordered)
    else:
        container[key] = (kind, _changed(random, kind, value))


@dataclass
class Page:
    """A page: its offset, its column chunk, its header, and its bytes in the file."""

    at: int
    size: int
    group: int
    column: int
    codec: int
    header: Fields
    body: bytes


def pages(data: bytes) -> list[Page]:
    """Every page of every chunk, up to the first header that can't be decoded."""
    metadata = footers.tree(data)
    found = []
    for group, column in footers.places(data):
        meta = footers.meta(metadata, group, column)
        at = min(meta[n][1] for n in (footers.DATA_PAGE_OFFSET, _DICTIONARY_PAGE) if n in meta and meta[n][1] > 0)
        end = at + meta[_TOTAL_COMPRESSED][1]
        while at < end:
            header, body_at = thrift.parse(data, at)
            stop = body_at + header[_COMPRESSED][1]
            found.append(Page(at, stop - at, group, column, meta[_CODEC][1], header, data[body_at:stop]))
            at = stop
    return found


def _levels(page: Page) -> int:
    """Bytes of a version 2 page that aren't compressed."""
    if _V2 not in page.header:
        return 0
    fields = page.header[_V2][1]
    return int(fields.get(5, (0, 0))[1] + fields.get(6, (0, 0))[1])


def mutate_page(random: Random, data: bytes) -> bytes:
    """Mutate a page's header by field, or its decompressed content. Later bytes move, with their offsets."""
    page = random.choice(pages(data))
    header = page.header
    body = page.body
    if random.randrange(2):
        header = thrift.parse(thrift.encode(header))[0]
        mutate_tree(random, header)
    else:
        body = _mutated_body(random, page)
        header = {**header, _COMPRESSED: (thrift.I32, len(body))}
        if random.randrange(4):  # otherwise its checksum shows it
            header.pop(_CRC, None)
    return with_page(data, page, thrift.encode(header) + body)


def _mutated_body(random: Random, page: Page) -> bytes:
    name = CODECS.get(page.codec)
    apart = _levels(page)
    if name is None or random.randrange(8) == 0:
        return flip(random, page.body)
    codec = pa.Codec(name)
    size = page.header[_UNCOMPRESSED][1] - apart
    plain = codec.decompress(page.body[apart:], size, asbytes=True) if size > 0 else b""
    if apart and random.randrange(3) == 0:
        return flip(random, page.body[:apart]) + page.body[apart:]
    changed = flip(random, plain)
    page.header[_UNCOMPRESSED] = (thrift.I32, apart + len(changed))
    return bytes(page.body[:apart]) + codec.compress(changed, asbytes=True)


def with_page(data: bytes, page: Page, new: bytes) -> bytes:
    """The file with other bytes for a page, and with changed offsets of everything after it."""
    grown = len(new) - page.size
    body, _ = footers.split(data)
    body = body[: page.at] + new + body[page.at + page.size :]
    metadata = footers.tree(data)

    def move(fields: Fields, *numbers: int) -> None:
        for n in numbers:
            if n in fields and fields[n][1] > page.at:
                fields[n] = (fields[n][0], fields[n][1] + grown)

    def grow(fields: Fields, n: int) -> None:
        if n in fields:
            fields[n] = (fields[n][0], fields[n][1] + grown)

    for group, column in footers.places(data):
        chunk, meta = footers.chunk(metadata, group, column), footers.meta(metadata, group, column)
        move(chunk, 2, footers.OFFSET_INDEX_OFFSET, footers.COLUMN_INDEX_OFFSET)
        move(meta, footers.DATA_PAGE_OFFSET, _INDEX_PAGE, _DICTIONARY_PAGE, footers.BLOOM_FILTER_OFFSET)
        if (group, column) == (page.group, page.column):
            grow(meta, _TOTAL_COMPRESSED)
            grow(metadata[footers.ROW_GROUPS][1].values[group], 6)
    for group_fields in metadata[footers.ROW_GROUPS][1].values:
        move(group_fields, _FILE_OFFSET)
    return footers.join(body, thrift.encode(metadata))


def mutate_footer(random: Random, data: bytes) -> bytes:
    """Mutate the footer by field."""
    body, footer = footers.split(data)
    metadata, _ = thrift.parse(footer)
    mutate_tree(random, metadata)
    return footers.join(body, thrift.encode(metadata))


def mutate_bytes(random: Random, data: bytes) -> bytes:
    """Mutate bytes anywhere, or remove the start or the end of the file."""
    how = random.randrange(12)
    if how == 0 and len(data) > 12:
        return data[: random.randrange(len(data))]
    at = random.randrange(len(data))
    size = random.choice((4, 16, 64, 256))
    if how == 1:  # a part of the file in another place
        other = random.randrange(len(data))
        return data[:at] + data[other : other + size] + data[at + size :]
    return data[:at] + flip(random, data[at : at + size]) + data[at + size :]


def mutate(random: Random, data: bytes) -> bytes:
    """Apply one mutation. Raises the error of a file whose metadata an earlier mutation has damaged."""
    way = random.choice((mutate_footer, mutate_footer, mutate_page, mutate_page, mutate_page, mutate_bytes))
    return way(random, data)
