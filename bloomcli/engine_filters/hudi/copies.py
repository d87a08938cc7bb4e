"""The copies of footers' filters in a table's metadata, `.hoodie/metadata/bloom_filters`.

    log file:  blocks of "#HUDI#" | i64 bytes that follow | i32 version | i32 type | map | i64 length | content | ...
               | i64 bytes of the block
    map:       i32 count, then each i32 key | i32 length | bytes; key 0 is the instant of the commit, 1 that of a
               commit that a block of type 0 rolls back
    content:   of data blocks (type 4) an HFile; .hfile files are one, too
    HFile:     blocks of 8 bytes of magic | i32 bytes on disk | i32 bytes unpacked | i64 | u8 | i32 | i32 bytes of
               header and data | data | checksums; data of blocks "DATABLK*" may be packed by gzip
    data:      cells of i32 key length | i32 value length | key | value | u8; the key is u16 length | row | ...
    row:       base64 of the hash of the partition, 12 characters | base64 of the MD5 of the file's name
    value:     Avro's HoodieMetadataRecord, with the filter as base64, as in the footer

All integers are big-endian. The last commit's record of a file counts. Sources: Hudi's
HoodieLogFileReader, AbstractHoodieLogRecordScanner, HoodieMetadataPayload; HBase's HFileBlock, version 3.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import md5
from struct import Struct
from typing import Any, Final, NamedTuple

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.storage import table_files
from bloomcli.storage.base import STEP_BYTES, Kind, Source, TableKind
from bloomcli.storage.lookups import once_per_run, one_call
from bloomcli.storage.managed_tables import table_above
from bloomcli.storage.registry import open_source, store_of
from bloomcli.words import counted, exact_size

_MAGIC: Final = b"#HUDI#"
_DATA: Final = b"DATABLK*"
_BLOCK: Final = Struct(">8siiqbii")
_LONG, _INT, _TWO, _SHORT, _HEAD = Struct(">q"), Struct(">i"), Struct(">ii"), Struct(">H"), Struct(">qii")
_COMMAND_BLOCK, _HFILE_BLOCK = 0, 4
_PARTITION_CHARACTERS: Final = 12
_UNPACKED_MAX: Final = 64 << 20
"""The largest block: Hudi's are closed at some 16 KiB, or after one value that is longer."""
_READ_MAX: Final = 1 << 30
"""Bytes of copies that are compared; a table with more isn't, since they are read whole."""


def _record_type(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


_COPY: Final = {"type": "string", "time": "string", "filter": "bytes", "deleted": "boolean"}
_SCHEMA: Final = _record_type(
    "row",
    {
        **{name: ["null", "string"] for name in "abcde"},
        "key": "string",
        "kind": "int",
        "files": ["null"],
        "copy": ["null", _record_type("copy", _COPY)],
    },
)
"""The first fields of Hudi's HoodieMetadataRecord, as a filter's copy has them."""
_INSTANT: Final = re.compile(r"_(\d+)\.(?:hfile|log\.(\d+).*)$")


class Copy(NamedTuple):
    """The copy of a file's filter."""

    type: str
    text: bytes
    """MD5 of the filter's base64."""
    path: str
    """The file that it lies in."""


def digest(data: bytes) -> bytes:
    """The digest by which filters are compared."""
    return md5(data, usedforsecurity=False).digest()


def copy_of(path: str) -> Copy | None:
    """The copy of a base file's filter; None if the file is in no table, or the table has no copy of it.

    Raises UnreadableError, CorruptFile, UnsupportedError.
    """
    store = store_of(path)
    path = store.link_target(path) or store.normal(path)
    files = _files(store.directory(path))
    name = path.rpartition("/")[2]
    return None if files is None else _copies(*files).get(b64encode(digest(name.encode())).decode())


@once_per_run
def _files(directory: str) -> tuple[str, tuple[str, ...], frozenset[str]] | None:
    """The folder of copies in the table above a directory, its files by their commits, and the names of the timeline;
    None without copies."""
    store = store_of(directory)
    table = table_above(store, store.join(directory, "file"))
    if table is None or table.kind is not TableKind.HUDI:
        return None
    root = store.join(store.join(table.path, ".hoodie"), "metadata")
    if not store.existing(root, {"bloom_filters": Kind.DIRECTORY}):
        return None
    folder = store.join(root, "bloom_filters")
    names = [name for name in store.names(folder) if _INSTANT.search(name)]
    commits = store.join(root, ".hoodie")
    timeline = set(store.names(commits)) if store.existing(root, {".hoodie": Kind.DIRECTORY}) else set()
    if "timeline" in timeline:  # Hudi 1 has the commits there
        timeline.update(store.names(store.join(commits, "timeline")))
    return folder, tuple(sorted(names, key=_order)), frozenset(timeline)


def _order(name: str) -> tuple[str, int]:
    """Base files and log files by their commit; those of one commit by their version."""
    match = _INSTANT.search(name)
    return ("", 0) if match is None else (match[1], int(match[2] or 0))


def _pending(instant: str, timeline: frozenset[str]) -> bool:
    """Whether a commit has begun and not ended."""
    states = {name.removeprefix(instant) for name in timeline if name.startswith(instant)}
    return bool(states) and not any(state.startswith("_") or state in {".deltacommit", ".commit"} for state in states)


@one_call(2)
def _copies(folder: str, names: tuple[str, ...], timeline: frozenset[str]) -> dict[str, Copy]:
    """The copies of all files of a table by base64 of the MD5 of their name."""
    store = store_of(folder)
    copies: dict[str, Copy] = {}
    rolled_back: set[str] = set()
    parts: list[tuple[str, str, int, int]] = []
    left = _READ_MAX
    for name in names:
        with open_source(store.join(folder, name)) as source:
            left -= source.size
            if left < 0:
                raise UnsupportedError(
                    f"the copies of filters take more than {exact_size(_READ_MAX)}: they aren't compared", path=folder
                )
            if name.endswith(".hfile"):
                parts.append((name, _order(name)[0], 0, source.size))
            else:
                parts += ((name, *block) for block in _log_blocks(source, rolled_back))
    for name, instant, start, end in parts:
        if instant in rolled_back or _pending(instant, timeline):
            continue
        with open_source(store.join(folder, name)) as source:
            for row, value in _cells(source, start, end):
                record = _record(value, source.path)
                key = row[_PARTITION_CHARACTERS:].decode("ascii", "replace")
                if record is None:
                    copies.pop(key, None)
                else:
                    copies[key] = record
    return copies


def _fault(source: Source, at: int, reason: str) -> CorruptFile:
    return CorruptFile(f"{reason} in a table's copies of filters", path=source.path, offset=at)


def _read(source: Source, at: int, count: int, end: int) -> bytes:
    if not 0 <= count <= end - at:
        raise _fault(source, at, f"{counted(count, 'byte')} needed, {end - at} there")
    return source.read_at(at, count)


def _log_blocks(source: Source, rolled_back: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the instant, the start and the end of each HFile in a log file. Adds the commits that it rolls back.

    As Hudi does, skips a block that ends behind the file, or not with its length: its writer didn't finish it.
    """
    at = 0
    while at < source.size:
        head = _read(source, at, len(_MAGIC) + 16, source.size)
        if not head.startswith(_MAGIC):
            raise _fault(source, at, "no block")
        length, _, kind = _HEAD.unpack_from(head, len(_MAGIC))
        start = at + len(_MAGIC) + 8
        end = start + length
        if length < 28 or end > source.size or source.read_at(end - 8, 8) != _LONG.pack(length + len(_MAGIC)):
            at = _next_block(source, start)
            continue
        place = start + 8
        (count,) = _INT.unpack(_read(source, place, 4, end))
        place += 4
        texts = {}
        for _ in range(count):  # ends with the block
            key, size = _TWO.unpack(_read(source, place, 8, end))
            texts[key] = _read(source, place + 8, size, end).decode("ascii", "replace")
            place += 8 + size
        (size,) = _LONG.unpack(_read(source, place, 8, end))
        place += 8
        if not 0 <= size <= end - place:
            raise _fault(source, place, f"content of {counted(size, 'byte')}")
        if kind == _HFILE_BLOCK:
            yield texts.get(0, ""), place, place + size
        elif kind == _COMMAND_BLOCK and 1 in texts:
            rolled_back.add(texts[1])
        at = end


def _next_block(source: Source, at: int) -> int:
    """Where the next block begins; the file's end without one."""
    step = STEP_BYTES - len(_MAGIC)
    for start in range(at, source.size, step):
        offset = source.read_at(start, min(STEP_BYTES, source.size - start)).find(_MAGIC)
        if offset >= 0:
            return start + offset
    return source.size


def _cells(source: Source, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield the row and the value of each cell of an HFile."""
    while end - at >= _BLOCK.size:
        magic, on_disk, unpacked, _, _, _, with_header = _BLOCK.unpack(source.read_at(at, _BLOCK.size))
        if magic.startswith(b"TRABLK"):
            return
        if on_disk < 0 or with_header < _BLOCK.size or not 0 <= unpacked <= _UNPACKED_MAX:
            raise _fault(source, at, "a block with impossible sizes")
        if magic == _DATA:
            data = _read(source, at + _BLOCK.size, with_header - _BLOCK.size, end)
            if len(data) != unpacked:
                try:
                    data = zlib.decompressobj(31).decompress(data, unpacked + 1)  # 0 would be no limit
                except zlib.error:
                    raise _fault(source, at, "a block that gzip can't unpack") from None
                if len(data) != unpacked:
                    raise _fault(source, at, f"a block that doesn't unpack to {counted(unpacked, 'byte')}")
            yield from _cells_of(data, source, at)
        at += _BLOCK.size + on_disk


def _cells_of(data: bytes, source: Source, block: int) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at < len(data):
        if len(data) - at < _TWO.size:
            raise _fault(source, block, "a cell that ends early")
        key, value = _TWO.unpack_from(data, at)
        start = at + _TWO.size
        if key < _SHORT.size or value < 0 or key + value >= len(data) - start:
            raise _fault(source, block, "a cell that ends early")
        (row,) = _SHORT.unpack_from(data, start)
        yield data[start + 2 : start + 2 + row], data[start + key : start + key + value]
        at = start + key + value + 1


def _record(value: bytes, path: str) -> Copy | None:
    """The copy in a value; None for that of a deleted file, or if it has no filter."""
    fields = table_files.record(value, _SCHEMA, path, "a Hudi table's copies of filters need", "avro")["copy"]
    return None if fields is None or fields["deleted"] else Copy(fields["type"], digest(fields["filter"]), path)
