"""A decoder of ORC files in plain Python, from the specification: tail, stripes, streams. Independent of bloomcli."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import cramjam
import pyarrow as pa

from support.thrift import read_varint

INDEX_KINDS: Final = (4, 6, 7, 8, 9)
FILTER_KINDS: Final = (7, 8)
UTF8: Final = 8
CODECS: Final = ("none", "zlib", "snappy", "lzo", "lz4", "zstd")
_STRUCT, _LIST, _MAP, _UNION = 12, 10, 11, 13
_BOOLEAN = 0
_BLOCK_MAX_BYTES: Final = 1 << 23
"""The largest compression block: its size and a bit have 24 bits."""

Message = dict[int, list[Any]]
"""Field number -> values: integers for varints, bytes for everything else."""


def message(data: bytes) -> Message:
    """A protobuf message, one level deep."""
    found: Message = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
            found[tag >> 3].append(value)
            continue
        if kind == 2:
            size, at = read_varint(data, at)
        else:
            size = {1: 8, 5: 4}[kind]
        found[tag >> 3].append(data[at : at + size])
        assert len(found[tag >> 3][-1]) == size, "the message is cut off"
        at += size
    return found


def varints(data: bytes) -> list[int]:
    """A packed repeated field."""
    found, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found


def repeated(of: Message, field: int) -> list[int]:
    """A repeated integer, packed or not."""
    return [v for item in of.get(field, []) for v in (varints(item) if isinstance(item, bytes) else [item])]


def one(of: Message, field: int, default: Any = 0) -> Any:
    """An optional field."""
    return of[field][-1] if of.get(field) else default


def _chunk(data: bytes, codec: str) -> bytes:
    if codec == "zlib":
        return zlib.decompress(data, wbits=-15)
    if codec == "snappy":
        size, _ = read_varint(data, 0)
        return bytes(pa.Codec("snappy").decompress(data, decompressed_size=size, asbytes=True))
    if codec == "lz4":
        out = bytearray(_BLOCK_MAX_BYTES)
        return bytes(out[: cramjam.lz4.decompress_block_into(data, out)])
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        return bytes(stream.read())


def decompress(data: bytes, codec: str) -> bytes:
    """A stream of compression chunks."""
    if codec == "none":
        return data
    out, at = b"", 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        part = data[at + 3 : at + 3 + (head >> 1)]
        out += part if head & 1 else _chunk(part, codec)
        at += 3 + (head >> 1)
    return out


@dataclass(frozen=True)
class Stream:
    """A stream on disk."""

    kind: int
    column: int
    raw: bytes

    @property
    def is_filter(self) -> bool:
        """BLOOM_FILTER or BLOOM_FILTER_UTF8."""
        return self.kind in FILTER_KINDS


@dataclass(frozen=True)
class Stripe:
    """A stripe: its rows, its streams in order, its footer, and whether its lengths match those of its streams."""

    offset: int
    rows: int
    streams: list[Stream]
    footer: Message
    index_length: int
    data_length: int

    @property
    def kept(self) -> list[Stream]:
        """Every stream that isn't a filter."""
        return [s for s in self.streams if not s.is_filter]

    @property
    def filters(self) -> dict[tuple[int, int], bytes]:
        """Filter streams by (kind, column)."""
        return {(s.kind, s.column): s.raw for s in self.streams if s.is_filter}

    @property
    def rest(self) -> Message:
        """The footer without its streams, and without bloomEncoding."""
        found = {k: v for k, v in self.footer.items() if k != 1}
        encodings = [message(item) for item in self.footer.get(2, [])]
        found[2] = [{k: v for k, v in e.items() if k != 3} for e in encodings]
        return found

    def bloom_encoding(self, column: int) -> int | None:
        """ColumnEncoding.bloomEncoding."""
        found: int | None = one(message(self.footer[2][column]), 3, None)
        return found


class Orc:
    """A file's parts.

    Attributes:
        codec: the name of its compression.
        footer: the Footer message; `postscript` likewise.
        metadata: the bytes between the stripes and the footer.
        stripes: in order.
    """

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        size = self.data[-1]
        self.postscript = message(self.data[-1 - size : -1])
        assert self.postscript[8000] == [b"ORC"]
        self.codec = CODECS[one(self.postscript, 2)]
        footer_at = len(self.data) - 1 - size - one(self.postscript, 1)
        self.footer = message(decompress(self.data[footer_at : len(self.data) - 1 - size], self.codec))
        self.stripes = [self._stripe(message(item)) for item in self.footer.get(3, [])]
        end = max(
            [3] + [message(i)[1][0] + sum(one(message(i), f) for f in (2, 3, 4)) for i in self.footer.get(3, [])]
        )
        self.metadata = self.data[end:footer_at]
        self.stride = one(self.footer, 8)

    def _stripe(self, info: Message) -> Stripe:
        offset, index, body, tail, rows = (one(info, n) for n in (1, 2, 3, 4, 5))
        at = offset + index + body
        footer = message(decompress(self.data[at : at + tail], self.codec))
        streams, place = [], offset
        for item in map(message, footer.get(1, [])):
            size = one(item, 3)
            streams.append(Stream(one(item, 1), one(item, 2), self.data[place : place + size]))
            place += size
        assert place == at, "the streams don't fill the stripe"
        indexed = sum(len(s.raw) for s in streams if s.kind in INDEX_KINDS)
        assert indexed == index, "the index streams don't fill the index"
        return Stripe(offset, rows, streams, footer, index, body)

    @property
    def rest(self) -> tuple[Message, Message]:
        """Footer and postscript without the fields that change with a stream: positions, lengths."""
        footer = {k: v for k, v in self.footer.items() if k not in {2, 3}}
        infos = [{k: v for k, v in message(i).items() if k not in {1, 2, 4}} for i in self.footer.get(3, [])]
        postscript = {k: v for k, v in self.postscript.items() if k != 1}
        return footer | {3: infos}, postscript

    @property
    def kept(self) -> list[list[Stream]]:
        """Every stripe's streams except the filters."""
        return [s.kept for s in self.stripes]

    @property
    def columns(self) -> dict[str, int]:
        """Column ids by dotted path, as orc-core names them."""
        return dict(self._paths(0, ()))

    def _paths(self, index: int, steps: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        kind = message(self.footer[4][index])
        children = repeated(kind, 2)
        yield ".".join(steps), index
        names = [n.decode() for n in kind.get(3, [])]
        names = {_LIST: ["_elem"], _MAP: ["_key", "_value"], _STRUCT: names}.get(one(kind, 1)) or list(
            map(str, range(len(children)))
        )
        for child, name in zip(children, names, strict=True):
            yield from self._paths(child, (*steps, name))

    def kind(self, column: int) -> int:
        """The number of a type's kind."""
        found: int = one(message(self.footer[4][column]), 1)
        return found

    @property
    def hashable(self) -> list[str]:
        """Paths of the leaves that can have filters: no booleans, no columns of a union."""
        paths = self.columns
        unions = [path for path, column in paths.items() if self.kind(column) == _UNION]
        compound = {_STRUCT, _LIST, _MAP, _UNION, _BOOLEAN}
        return [
            path
            for path, column in paths.items()
            if self.kind(column) not in compound and not any(path.startswith(f"{union}.") for union in unions)
        ]

    def payload(self, stripe: int, column: str, kind: int = UTF8) -> bytes:
        """A filter stream, decompressed."""
        return decompress(self.stripes[stripe].filters[kind, self.columns[column]], self.codec)

    def bitsets(self, stripe: int, column: str, kind: int = UTF8) -> list[tuple[int, bytes]]:
        """(k, bits) of every row group's filter."""
        entries = [message(item) for item in message(self.payload(stripe, column, kind))[1]]
        return [(one(e, 1), one(e, 3, b"") or b"".join(e.get(2, []))) for e in entries]
