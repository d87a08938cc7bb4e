"""The container of an index: a Puffin file. Source: the Apache Iceberg Puffin specification, version 1.

    PFA1 | blobs | PFA1 | footer payload, JSON | its size, int32 | flags, 4 bytes | PFA1

The payload has a checksum of itself among its properties, `CHECKSUM`: XXH64 of the payload with 16 zeros in place of
the checksum's hexadecimal digits.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnknownFormat, UnsupportedError
from bloomcli.hints import listed, quoted
from bloomcli.limits import INDEX_FOOTER_MAX_BYTES
from bloomcli.storage.base import Source
from bloomcli.words import counted

MAGIC: Final = b"PFA1"
CHECKSUM: Final = "footer-xxh64"
_ENDING: Final = 12
"""Bytes after the payload: its size, flags, magic."""
_DIGITS: Final = re.compile(rb'"footer-xxh64":"([0-9a-f]{16})"')
_NUMBER: Final = re.compile(r"(0|[1-9][0-9]{0,17})")
_COMPRESSED: Final = 1
"""The flag of a compressed payload."""


class Blob(NamedTuple):
    """A blob, as the footer describes it."""

    type: str
    offset: int
    length: int
    codec: str | None
    properties: Mapping[str, str]


class Footer(NamedTuple):
    """A footer."""

    blobs: Sequence[Blob]
    properties: Mapping[str, str]
    start: int
    """The offset of the payload."""


def damaged(
    path: str, reason: str, *, offset: int | None = None, field: str | None = None, columns: Sequence[str] = ()
) -> CorruptFile:
    """The error of a damaged index. Its hint is the command that rebuilds it."""
    return CorruptFile(reason, path=path, offset=offset, field=field, hint=rebuild(path, columns))


def rebuild(path: str, columns: Sequence[str] = ()) -> str:
    """The hint with the command that rebuilds an index."""
    names = shlex.quote(",".join(map(listed, columns))) if columns else "COLUMN"
    return f"`bloom index build DIRECTORY -c {names} -o {quoted(path)} --overwrite` rebuilds it"


_BUILD: Final = "`bloom index build DIRECTORY -c COLUMN -o FILE` builds one"


def footer_bytes(blobs: Sequence[Blob], properties: Mapping[str, str]) -> bytes:
    """A footer, from its magic to the file's end. Raises UnsupportedError if it is too large."""
    described = [
        {
            "type": blob.type,
            "fields": [],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": blob.offset,
            "length": blob.length,
            **({} if blob.codec is None else {"compression-codec": blob.codec}),
            "properties": dict(blob.properties),
        }
        for blob in blobs
    ]
    # the checksum is first, so that no text of a user precedes it
    content = {"properties": {CHECKSUM: "0" * 16, **properties}, "blobs": described}
    payload = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogateescape")
    digits = b"%016x" % kernels.xxh64(payload)
    payload = payload.replace(b'"footer-xxh64":"' + b"0" * 16, b'"footer-xxh64":"' + digits, 1)
    if len(payload) > INDEX_FOOTER_MAX_BYTES:
        raise UnsupportedError("too many columns for an index", hint="build an index for each part of the columns")
    return b"".join((MAGIC, payload, len(payload).to_bytes(4, "little"), bytes(4), MAGIC))


def read_footer(source: Source) -> Footer:
    """Read the footer of a Puffin file.

    Raises:
        UnknownFormat: it isn't a Puffin file.
        CorruptFile: the footer is damaged, or describes blobs that the file doesn't have.
        UnsupportedError: the footer is compressed.
    """
    path, size = source.path, source.size
    if size < len(MAGIC) * 2 + _ENDING:
        raise UnknownFormat(f"no index: it has only {counted(size, 'byte')}", path=path, hint=_BUILD)
    ending = source.read_at(size - _ENDING, _ENDING)
    if ending[8:] != MAGIC:
        has_magic = source.read_at(0, len(MAGIC)) == MAGIC
        raise UnknownFormat(
            "an index that is cut off: its last bytes aren't PFA1" if has_magic else "no index",
            path=path,
            offset=size - len(MAGIC),
            hint=rebuild(path) if has_magic else _BUILD,  # the file may be a data file
        )
    if ending[4] & _COMPRESSED:
        raise UnsupportedError(
            "the footer is compressed, which no index is",
            path=path,
            offset=size - 8,
            field="Flags",
            hint=rebuild(path),
        )
    if any(ending[4:8]):
        raise damaged(path, "unknown flags", offset=size - 8, field="Flags")
    length = int.from_bytes(ending[:4], "little", signed=True)
    start = size - _ENDING - length
    if not 0 < length <= INDEX_FOOTER_MAX_BYTES or start < len(MAGIC) * 2:
        raise damaged(
            path, f"a footer can't have {counted(length, 'byte')}", offset=size - _ENDING, field="FooterPayloadSize"
        )
    data = source.read_at(start - len(MAGIC), length + len(MAGIC))
    if data[: len(MAGIC)] != MAGIC:
        raise damaged(path, "the footer doesn't begin with PFA1", offset=start - len(MAGIC), field="Magic")
    return _parsed(path, data[len(MAGIC) :], start)


def _parsed(path: str, payload: bytes, start: int) -> Footer:
    checksum = _DIGITS.search(payload)
    if checksum is None:
        raise damaged(path, "the footer has no checksum", offset=start, field=f"properties.{CHECKSUM}")
    if kernels.xxh64(payload[: checksum.start(1)] + b"0" * 16 + payload[checksum.end(1) :]) != int(checksum[1], 16):
        raise damaged(path, "the footer doesn't match its checksum", offset=start, field=f"properties.{CHECKSUM}")
    try:
        content = json.loads(payload.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        detail = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise damaged(path, f"the footer isn't JSON: {detail[:200]}", offset=start, field="FooterPayload") from None
    fields = _Fields(path, start)
    top = fields.mapping(content, "FooterPayload")
    described = top.get("blobs")
    if not isinstance(described, list):
        raise damaged(path, "it isn't a list of blobs", offset=start, field="blobs")
    blobs = [fields.blob(item, f"blobs[{number}]") for number, item in enumerate(described)]
    _check_ranges(path, blobs, start)
    return Footer(blobs, fields.texts(top.get("properties", {}), "properties"), start)


def _check_ranges(path: str, blobs: Sequence[Blob], start: int) -> None:
    """Check that blobs lie between the first magic and the footer's, and don't overlap."""
    spans = sorted((blob.offset, blob.offset + blob.length, number) for number, blob in enumerate(blobs))
    for begin, end, number in spans:
        if begin < len(MAGIC) or end > start - len(MAGIC):
            raise damaged(path, "a blob is outside of the file's body", offset=begin, field=f"blobs[{number}].offset")
    for before, after in pairwise(spans):
        if after[0] < before[1]:
            raise damaged(path, f"it overlaps blob {before[2]}", offset=after[0], field=f"blobs[{after[2]}].offset")


class _Fields:
    """Checks the types of JSON values."""

    def __init__(self, path: str, start: int) -> None:
        self._path, self._start = path, start

    def wrong(self, reason: str, field: str) -> CorruptFile:
        return damaged(self._path, reason, offset=self._start, field=field)

    def mapping(self, value: Any, field: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.wrong("it isn't a JSON object", field)
        return value

    def texts(self, value: Any, field: str) -> dict[str, str]:
        texts = self.mapping(value, field)
        for key, text in texts.items():
            if not isinstance(text, str):
                raise self.wrong("it isn't a text", f"{field}.{key[:100]}")
        return texts

    def number(self, value: Any, field: str) -> int:
        if type(value) is not int or not 0 <= value < 1 << 63:
            raise self.wrong("it isn't a number of bytes", field)
        return value

    def blob(self, value: Any, field: str) -> Blob:
        item = self.mapping(value, field)
        kind, codec = item.get("type"), item.get("compression-codec")
        if not isinstance(kind, str):
            raise self.wrong("it isn't a text", f"{field}.type")
        if codec is not None and not isinstance(codec, str):
            raise self.wrong("it isn't a text", f"{field}.compression-codec")
        return Blob(
            kind,
            self.number(item.get("offset"), f"{field}.offset"),
            self.number(item.get("length"), f"{field}.length"),
            codec,
            self.texts(item.get("properties", {}), f"{field}.properties"),
        )


def number_of(text: str | None, limit: int) -> int | None:
    """Parse a property's number, 0 to `limit`; None if it isn't one."""
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if value <= limit else None
