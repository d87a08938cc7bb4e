"""Opens encrypted files: the footer in plain text, and a view of the file in which every module is plain.

The view has the size of the file, and every chunk, page, page index and filter lies where it lies in the file. A
module is longer than its plain bytes: the rest is an unknown binary field at the end of the Thrift structure in front
of them (a page's or a filter's header, a page index), which every reader skips. What reads pages, filters and page
indexes thus doesn't know about encryption. Columns whose key isn't known stay as they are, and their chunks stay
`encrypted`.

Nothing is believed before it is authenticated: a footer in plain text has a signature, which the footer's key checks.

    PARE ... | FileCryptoMetaData | footer module | int32 LE length of both | PARE
    PAR1 ... | FileMetaData | signature (28)      | int32 LE length of both | PAR1

Source: the Parquet format's Encryption.md (5.4, 5.5).
"""

from __future__ import annotations

import hmac
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile, KeyMissing, UnsupportedError
from bloomcli.formats.base import FilterProblem
from bloomcli.formats.keys import Keys, key_hint
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.bloom_filter import plaintext_problem
from bloomcli.formats.parquet.encryption import (
    LENGTH_BYTES,
    MODULE_BYTES,
    NONCE_BYTES,
    SIGNATURE_BYTES,
    Algorithm,
    Cipher,
    Encryption,
    KeyRing,
    Kind,
    WrongModule,
    algorithm_of,
    module_length,
)
from bloomcli.formats.parquet.footer import (
    COLUMN_INDEX,
    FILTER,
    PAGES,
    UNSIGNED_HINT,
    Footer,
    regions,
)
from bloomcli.formats.parquet.page_index import offset_index
from bloomcli.formats.parquet.pages import BAD_CHECKSUM, WINDOW, BadChecksum, PageHeader, parse
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.model.file import ChunkKey
from bloomcli.storage.base import KeptRange, Pieces, Source
from bloomcli.storage.sources import CountingSource
from bloomcli.words import counted

_CHANGED: Final = "give the key that the file was written with, or get the file from its source again"


def open_encrypted(
    source: Source, start: int, stored: bytes, keys: Keys, *, plaintext_footer: bool
) -> tuple[Footer, Source]:
    """The footer, and the source from which the rest is read: `source`, or the view.

    Args:
        source: the file.
        start: where the footer starts.
        stored: its bytes.
        keys: the keys.
        plaintext_footer: whether it is in plain text, with a signature.

    Raises:
        CorruptFile: the file was cut off or changed, or a key is another one.
        UnsupportedError: the footer is encrypted, and its key isn't known; or `cryptography` isn't installed.
        UsageError: the AAD prefix isn't known; the KMS refuses.
    """
    if plaintext_footer:
        footer = Footer(source.path, source.size, start, stored)
        algorithm, ring, cipher = _signed(footer, keys)
        metadata = footer.top.binary("footer_signing_key_metadata")
    else:
        algorithm, ring, cipher, metadata = _encrypted(source.path, start, stored, keys)
        footer = opened_footer(source.path, source.size, start, stored, cipher, plaintext_footer=False)
    encryption = Encryption(
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
        stored=footer.raw,
        footer_key_id=ring.wanted(metadata),
        footer_cipher=cipher,
        ciphers={},
        key_ids={},
        closed={},
        unused=sorted(keys.column_keys),
        external_material=ring.external,
    )
    footer = _with_columns(footer, encryption, ring)
    return footer, PlainSource(source, footer) if encryption.ciphers else source


_Opened = tuple[Algorithm, KeyRing, Cipher | None]


def _signed(footer: Footer, keys: Keys) -> _Opened:
    """The algorithm and the keys of a file whose footer is in plain text, after the signature was checked."""
    ring, end = KeyRing(keys, footer.path), footer.top.end
    stored = footer.raw[end:]
    if len(stored) != SIGNATURE_BYTES:
        raise CorruptFile(
            f"the footer's signature has {counted(len(stored), 'byte')}, not {SIGNATURE_BYTES}",
            path=footer.path,
            offset=footer.start + end,
            hint=UNSIGNED_HINT,
        )
    key = ring.footer_key(footer.top.binary("footer_signing_key_metadata"))
    if keys == Keys():  # what is in plain text can be read without keys
        union = footer.top.struct("encryption_algorithm", "EncryptionAlgorithm")
        return Algorithm((union and union.member()) or "an unknown algorithm", b""), ring, None
    algorithm = algorithm_of(footer.top, keys)
    if key is None:
        return algorithm, ring, None
    cipher = Cipher(key, algorithm)
    opened_footer(footer.path, footer.file_bytes, footer.start, footer.raw, cipher, plaintext_footer=True)
    return algorithm, ring, cipher


def opened_footer(
    path: str, file_bytes: int, start: int, stored: bytes, cipher: Cipher, *, plaintext_footer: bool
) -> Footer:
    """A footer as it is stored, in plain text: its signature or its tag was checked. Raises CorruptFile."""
    crypto = "FileMetaData" if plaintext_footer else "FileCryptoMetaData"
    end = Struct(crypto, stored, 0, Location(path, start, "")).end
    try:
        if not plaintext_footer:
            stored = cipher.decrypt(stored[end:], Kind.FOOTER)
        elif not hmac.compare_digest(cipher.signature(stored[:end], stored[end:][:NONCE_BYTES]), stored[end:]):
            raise WrongModule(
                "the footer's signature isn't that of its bytes by this key: the key or the AAD prefix is another"
                " one, or the footer was changed"
            )
    except WrongModule as error:
        reason = str(error) if plaintext_footer else f"the footer can't be decrypted: {error}"
        raise CorruptFile(reason, path=path, offset=start + end, hint=_CHANGED) from None
    return Footer(path, file_bytes, start, stored)


def _encrypted(path: str, start: int, stored: bytes, keys: Keys) -> tuple[Algorithm, KeyRing, Cipher, bytes | None]:
    """The algorithm and the keys of a file whose footer is encrypted, and the metadata of the footer's key."""
    crypto = Struct("FileCryptoMetaData", stored, 0, Location(path, start, ""))
    ring, metadata = KeyRing(keys, path), crypto.binary("key_metadata")
    key = ring.footer_key(metadata)
    if key is None:
        raise KeyMissing(
            "the footer is encrypted, and its key isn't given",
            path=path,
            offset=start,
            hint=key_hint(ring.wanted(metadata)),
        )
    algorithm = algorithm_of(crypto, keys)
    return algorithm, ring, Cipher(key, algorithm), metadata


def _with_columns(footer: Footer, encryption: Encryption, ring: KeyRing) -> Footer:
    """The footer with the metadata of the columns whose keys are known in plain text."""
    all_encrypted = encryption.algorithm.aad is None and not encryption.plaintext_footer  # DuckDB
    for key in footer.chunk_keys():
        chunk = footer.chunk_struct(key)
        crypto = chunk.struct("crypto_metadata", "ColumnCryptoMetaData")
        if crypto is None and not all_encrypted:
            continue
        path = _path_of(footer, key)
        own = None if crypto is None else crypto.struct("ENCRYPTION_WITH_COLUMN_KEY", "EncryptionWithColumnKey")
        if own is not None and path in encryption.unused:
            encryption.unused.remove(path)
        metadata = None if own is None else own.binary("key_metadata")
        encryption.key_ids.setdefault(path, encryption.footer_key_id if own is None else ring.wanted(metadata))
        footer_cipher = encryption.footer_cipher
        column_key = (
            footer_cipher.key if own is None and footer_cipher is not None else ring.column_key(path, metadata)
        )
        if column_key is None:
            encryption.closed[key.column] = path
            continue
        ordinal = footer.group_struct(key.row_group).integer("ordinal")
        cipher = Cipher(column_key, encryption.algorithm, (key.row_group if ordinal is None else ordinal, key.column))
        encryption.ciphers[key] = cipher
    return with_plain_columns(footer, encryption)


def _path_of(footer: Footer, key: ChunkKey) -> str:
    """The path of a chunk's column; empty if the schema has no such column."""
    return footer.columns[key.column].path if key.column < len(footer.columns) else ""


def with_plain_columns(footer: Footer, encryption: Encryption) -> Footer:
    """The footer with the metadata of the chunks that have a cipher in plain text. Raises CorruptFile."""
    parts: list[bytes] = []
    at = 0
    for key in footer.chunk_keys():
        cipher = encryption.ciphers.get(key)
        if cipher is not None:
            chunk = footer.chunk_struct(key)
            parts += footer.raw[at : chunk.start], _plain_chunk(chunk, cipher, _path_of(footer, key))
            at = chunk.end
    plain_footer = (
        footer
        if not parts
        else Footer(footer.path, footer.file_bytes, footer.start, b"".join([*parts, footer.raw[at:]]))
    )
    plain_footer.encryption = encryption
    return plain_footer


_ABOUT_ENCRYPTION: Final = 8
"""ColumnChunk: the first field about encryption, which are its last ones."""


def _plain_chunk(chunk: Struct, cipher: Cipher, column: str) -> bytes:
    """A ColumnChunk with its metadata in plain text, and without the fields about encryption and unknown ones. Raises
    CorruptFile."""
    spans = {number: span for number, span in chunk.spans.items() if 0 < number < _ABOUT_ENCRYPTION}
    fields = {number: (kind, chunk.data[start:end]) for number, (kind, _, start, end) in spans.items()}
    module = chunk.binary("encrypted_column_metadata")
    if module is not None:
        try:
            plaintext = cipher.decrypt(module, Kind.COLUMN_METADATA)
        except WrongModule as error:
            raise CorruptFile(
                f"the metadata of a chunk of column {column} can't be decrypted: {error}",
                path=chunk.location.path,
                offset=chunk.location.base + chunk.start,
                field=chunk.location.field,
                hint=_CHANGED,
            ) from None
        fields[spec.field_ids("ColumnChunk")["meta_data"]] = (
            spec.STRUCT,
            _trimmed(plaintext, "ColumnMetaData", chunk.location),
        )
    return spec.struct(fields)


def _trimmed(plaintext: bytes, name: str, location: Location) -> bytes:
    """A decrypted structure without the bytes after it."""
    return plaintext[: Struct(name, plaintext, 0, location).end]


_FILLER: Final = 1000
"""The id of the field that fills a structure up: the format's own have less than 100, its extension 32767."""
_FILLER_HEAD: Final = bytes([spec.BINARY]) + spec.zigzag(_FILLER)
_FILLER_LENGTH_BYTES: Final = 5


def _filled(structure: bytes, size: int) -> bytes:
    """A structure with a field at its end by which it has `size` bytes."""
    return structure[:-1] + _filler(size - len(structure))


@lru_cache(maxsize=64)  # most pages of a chunk have the same
def _filler(size: int) -> bytes:
    """A field that adds `size` bytes to a structure, and the structure's end. The field's length always has five
    bytes."""
    room = size - len(_FILLER_HEAD) - _FILLER_LENGTH_BYTES
    groups = (
        room & 0x7F | 0x80,
        room >> 7 & 0x7F | 0x80,
        room >> 14 & 0x7F | 0x80,
        room >> 21 & 0x7F | 0x80,
        room >> 28,
    )
    return _FILLER_HEAD + bytes(groups) + bytes(room + 1)


def _is_plain_filter(raw: bytes, location: Location) -> bool:
    """Whether bytes are a filter in plain text, as arrow-rs writes them for encrypted columns."""
    try:
        header = Struct("BloomFilterHeader", raw, 0, location)
        return header.end + header.required_int("numBytes") == len(raw)
    except CorruptFile:
        return False


class _Page(NamedTuple):
    """A page in the file: where its header's module starts, what follows it, and the page's end."""

    start: int
    body: int
    end: int
    ordinal: int | None
    """None for the dictionary."""


_Plain = tuple[bytes, bytes]
"""Plain bytes: of the Thrift structure that is filled up, and of what follows it."""


def _cut(plaintext: _Plain, start: int, stop: int) -> tuple[memoryview, memoryview]:
    """A range of plain bytes, in two parts."""
    head, body = memoryview(plaintext[0]), memoryview(plaintext[1])
    return head[start:stop], body[max(start - len(head), 0) : max(stop - len(head), 0)]


class _Window:
    """Stored bytes of a region. Small pages are read several at a time, because they are all needed up to `stop`."""

    def __init__(self, read: Callable[[int, int], bytes], end: int, stop: int, ahead: int) -> None:
        """`end`: the region's. `stop`: the end of the range of which plain bytes are wanted. `ahead`: most bytes that
        are read at a time, unless a page has more."""
        self._read, self._end, self.stop, self._ahead = read, end, stop, ahead
        self._start, self._data = 0, memoryview(b"")

    def take(self, at: int, size: int) -> memoryview:
        """The bytes at an offset. The caller has checked that the region has them."""
        if not self._start <= at <= at + size <= self._start + len(self._data):
            ahead = min(self._ahead, self.stop - at, self._end - at)
            self._start, self._data = at, memoryview(self._read(at, max(size, ahead)))
        return self._data[at - self._start : at - self._start + size]


class _Region:
    """Bytes of the file that hold the modules of one chunk."""

    def __init__(self, start: int, end: int, kind: str, key: ChunkKey, cipher: Cipher, column: str) -> None:
        self.start, self.end, self.kind, self.key, self.cipher = start, end, kind, key, cipher
        self.name = kind.replace("_", " ")
        self.pages: list[_Page] = []
        """The pages that are known, in order; from the chunk's first page on."""
        self.places: list[tuple[int, int]] | None = None
        """The offset and ordinal of each data page, by the offset index; None before they are looked for."""
        self.column = column
        self.field = key.field


_KEPT_BYTES: Final = 32 << 20
_AHEAD_BYTES: Final = 64 << 10
"""Bytes that one request to a store reads with a page's header, and of small pages at a time."""
_HEADER_BYTES: Final = 512
"""More than the module of a page's header has, unless it has long bounds."""


class PlainSource(CountingSource):
    """The view of a file in which the modules of the columns whose keys are known are plain. Closes the file.

    A read that goes on after the pages of a chunk has the file's own bytes there: pages are read chunk by chunk.
    """

    def __init__(self, original: Source, footer: Footer) -> None:
        super().__init__(original)
        self.original = original
        self._footer = footer
        self._all_regions: list[_Region] | None = None
        self._starts: list[int] = []
        self._kept: OrderedDict[int, _Plain] = OrderedDict()
        self._kept_bytes = 0
        self._mutex = threading.RLock()

    @property
    def stored(self) -> Source:
        """The file as it is stored."""
        return self.original.stored

    def pieces(self, pieces: Pieces) -> Pieces:
        """Convert pieces as the original does: they are those of the file with its modules encrypted."""
        return self.original.pieces(pieces)

    def outline(self, outline: Iterable[KeptRange | int]) -> Iterable[KeptRange | int]:
        """Convert an outline as the original does."""
        return self.original.outline(outline)

    def _read(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        at, end = offset, offset + length
        while at < end:
            region = self._region(at)
            if region is not None and not (parts and region.kind == PAGES):
                stop = min(end, region.end)
                parts.append(self._plain(region, at, stop))
            else:
                stop = min(end, self._next(at))
                parts.append(super()._read(at, stop - at))
            at = stop
        return b"".join(parts)

    def _regions(self) -> list[_Region]:
        with self._mutex:
            if self._all_regions is None:
                footer, encryption = self._footer, self._footer.encryption
                ciphers = {} if encryption is None else encryption.ciphers
                self._all_regions = [
                    _Region(*region, ciphers[region.key], footer.columns[region.key.column].path)
                    for region in regions(footer, self._unwritten)
                    if region.key in ciphers
                ]
                self._starts = [region.start for region in self._all_regions]
            return self._all_regions

    def _unwritten(self, key: ChunkKey) -> int | None:
        """The length of a filter for which the metadata have none: that of its two modules."""
        at = self._footer.metadata(key).bloom_filter_offset or 0
        try:
            header = module_length(self.original.read_at(at, LENGTH_BYTES))
            return header + module_length(self.original.read_at(at + header, LENGTH_BYTES))
        except CorruptFile:
            return None

    def _region(self, at: int) -> _Region | None:
        """The region in which an offset lies."""
        all_regions = self._regions()
        for index in range(bisect_right(self._starts, at) - 1, -1, -1):
            if all_regions[index].end > at:
                return all_regions[index]
            if all_regions[index].kind == PAGES:
                break
        return None

    def _next(self, at: int) -> int:
        """Where the next region starts after an offset."""
        index = bisect_right(self._starts, at)
        return self._starts[index] if index < len(self._starts) else self.size

    def _plain(self, region: _Region, start: int, stop: int) -> bytes:
        if region.kind != PAGES:
            whole = self._once(region.start, partial(self._structure, region))
            return b"".join(_cut(whole, start - region.start, stop - region.start))
        parts: list[bytes | memoryview] = []
        window = _Window(super()._read, region.end, stop, _AHEAD_BYTES if self.request_bytes else WINDOW)
        at = start
        while at < stop:
            page, header = self._page_at(region, at, window)
            at = page.end
            if start <= page.start and at <= stop and page.start not in self._kept:  # read once, as a rule
                parts += self._page(region, page, header, window)
                continue
            plaintext = self._once(page.start, partial(self._page, region, page, header, window))
            parts += _cut(plaintext, max(start - page.start, 0), stop - page.start)
        return b"".join(parts)

    def _once(self, at: int, decrypt: Callable[[], _Plain]) -> _Plain:
        """Plain bytes by their offset, kept for the next reads: large pages and filters are read in parts."""
        with self._mutex:
            if at in self._kept:
                self._kept.move_to_end(at)
                return self._kept[at]
        plaintext = decrypt()
        with self._mutex:
            if at not in self._kept:
                self._kept[at] = plaintext
                self._kept_bytes += sum(map(len, plaintext))
            while len(self._kept) > 1 and self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= sum(map(len, self._kept.popitem(last=False)[1]))
        return plaintext

    def _decrypt(
        self, region: _Region, module: bytes | memoryview, at: int, kind: Kind, page: int | None = None
    ) -> bytes:
        """Raises CorruptFile."""
        try:
            return region.cipher.decrypt(module, kind, page)
        except WrongModule as error:
            what = kind.name.lower().replace("_", " ").replace("filter bitset", "filter")
            raise self._fault(region, f"the {what} can't be decrypted: {error}", at) from None

    def _fault(self, region: _Region, reason: str, at: int) -> CorruptFile:
        if region.kind == FILTER:  # it is one filter's fault
            return FilterProblem(reason, path=self.path, offset=at, field=region.field, id="filter-header")
        return CorruptFile(reason, path=self.path, offset=at, field=region.field, hint=_CHANGED)

    def _structure(self, region: _Region) -> _Plain:
        """A filter or a page index."""
        size = region.end - region.start
        if size > limits.FILTER_MAX_BYTES + 2 * parquet_limits.FILTER_HEADER_MAX_BYTES:
            raise UnsupportedError(
                f"a {region.name} has {counted(size, 'byte')}, and at most "
                f"{limits.FILTER_MAX_BYTES} are decrypted at once",
                path=self.path,
                offset=region.start,
                field=region.field,
            )
        raw = super()._read(region.start, size)
        location = Location(self.path, region.start, region.field)
        if region.kind != FILTER:
            name, kind = (
                ("ColumnIndex", Kind.COLUMN_INDEX)
                if region.kind == COLUMN_INDEX
                else ("OffsetIndex", Kind.OFFSET_INDEX)
            )
            return _filled(_trimmed(self._decrypt(region, raw, region.start, kind), name, location), size), b""
        first = module_length(raw) if size >= LENGTH_BYTES else 0
        rest = memoryview(raw)[first:]
        if first > size - LENGTH_BYTES or module_length(rest[:LENGTH_BYTES]) != len(rest):
            if not _is_plain_filter(raw, location):
                raise self._fault(region, "the filter isn't two modules of its length", region.start)
            raise plaintext_problem(self.path, region.start, region.field, region.column)
        header = self._decrypt(region, raw[:first], region.start, Kind.FILTER_HEADER)
        bits = self._decrypt(region, rest, region.start + first, Kind.FILTER_BITSET)
        return _filled(_trimmed(header, "BloomFilterHeader", location), size - len(bits)), bits

    def _page_at(self, region: _Region, at: int, window: _Window) -> tuple[_Page, PageHeader | None]:
        """The page in which an offset lies."""
        with self._mutex:
            pages = region.pages
            index = len(pages) - 1
            if pages and pages[index].start > at:
                index = bisect_right(pages, at, key=lambda page: page.start) - 1
            if index >= 0 and pages[index].end > at:
                return pages[index], None
            if region.places is None:
                region.places = []
                if index < 0 or at > pages[index].end:  # not the next page: the pages between are skipped
                    region.places = self._places(region)
            place = bisect_right(region.places, (at, 1 << 16)) - 1
            if place >= 0 and (index < 0 or region.places[place][0] >= pages[index].end):
                page, header = self._measured(region, *region.places[place], window)
                if page.end > at:
                    pages.insert(index + 1, page)
                    return page, header
            position = pages[index].end if index >= 0 else region.start
            last = pages[index].ordinal if index >= 0 else None  # only the first page can be the dictionary
            number = 0 if last is None else last + 1
            while True:
                page, header = self._measured(region, position, number, window)
                index += 1
                pages.insert(index, page)
                if page.end > at:
                    return page, header
                position, number = page.end, number + (page.ordinal is not None)

    def _places(self, region: _Region) -> list[tuple[int, int]]:
        try:
            index = offset_index(self, self._footer, region.key)
        except (CorruptFile, UnsupportedError):  # reading it reports it
            return []
        located = () if index is None else index.page_locations or ()
        places: list[tuple[int, int]] = []
        at = self._footer.metadata(region.key).data_page_offset
        for number, (offset, size, _) in enumerate(located):
            if offset != at or size <= 0 or not region.start <= offset < region.end:
                break  # a page without values may be left out, and the ordinals of those behind it aren't known
            places.append((offset, number))
            at += size
        return places

    def _measured(self, region: _Region, at: int, number: int, window: _Window) -> tuple[_Page, PageHeader]:
        """The page that starts at an offset; its data page's ordinal is `number` unless it is the dictionary."""
        room = region.end - at
        if room < MODULE_BYTES:
            raise self._fault(region, "the chunk's pages end before its bytes do", at)
        raw = window.take(at, min(room, _AHEAD_BYTES if self.request_bytes else _HEADER_BYTES))
        length = module_length(raw)
        if not MODULE_BYTES < length <= min(room, parquet_limits.PAGE_HEADER_MAX_BYTES):
            raise self._fault(
                region, f"a page header's module of {counted(length, 'byte')}, where {room} are left", at
            )
        module = raw[:length] if length <= len(raw) else window.take(at, length)
        header = self._header(region, module, at, number)
        packed = header.required("compressed_page_size")
        if not region.cipher.has_aad and room - length >= LENGTH_BYTES:  # DuckDB writes the size before encryption
            packed = module_length(window.take(at + length, LENGTH_BYTES))
        if packed > room - length:
            raise self._fault(region, f"a page of {counted(packed, 'byte')}, where {room - length} are left", at)
        ordinal = None if header.kind == "DICTIONARY_PAGE" else number
        return _Page(at, at + length, at + length + packed, ordinal), header

    def _header(self, region: _Region, module: memoryview, at: int, number: int | None) -> PageHeader:
        """A page's header. Only the first page can be the dictionary."""
        if at == region.start and number in {0, None}:
            try:
                header = self._parsed(region, region.cipher.decrypt(module, Kind.DICTIONARY_PAGE_HEADER), at)
            except WrongModule:
                pass
            else:
                if header.kind == "DICTIONARY_PAGE" and header.has_head:
                    return header
        return self._parsed(region, self._decrypt(region, module, at, Kind.DATA_PAGE_HEADER, number), at)

    def _parsed(self, region: _Region, plaintext: bytes, at: int) -> PageHeader:
        location = Location(self.path, at, region.field)
        try:
            header = parse(plaintext, 0, len(plaintext))
        except kernels.CompactError as error:
            raise location.fault(error.reason, error.offset) from None
        header.location = location
        return header

    def _page(self, region: _Region, page: _Page, header: PageHeader | None, window: _Window) -> _Plain:
        """A page in plain bytes: its header, which fills what the modules have more, and its body."""
        most = parquet_limits.PAGE_WHOLE_MAX_BYTES
        if page.end - page.body > most:
            raise UnsupportedError(
                f"an encrypted page has {counted(page.end - page.body, 'byte')}, and at most {most} are decrypted at"
                " once",
                path=self.path,
                offset=page.start,
                field=region.field,
            )
        raw = window.take(page.start, page.end - page.start)
        body = raw[page.body - page.start :]
        is_dictionary = page.ordinal is None
        if header is None:
            module = raw[: page.body - page.start]
            header = self._header(region, module, page.start, page.ordinal)
            if (header.kind == "DICTIONARY_PAGE") != is_dictionary:
                raise self._fault(region, "the page changed while it was read", page.start)
        levels = self._plain_levels(header, body)
        kind = Kind.DICTIONARY_PAGE if is_dictionary else Kind.DATA_PAGE
        plaintext = bytes(body[:levels]) + self._decrypt(region, body[levels:], page.body, kind, page.ordinal)
        crc = header.crc
        if crc is not None:  # parquet-java and Arrow compute it of the encrypted bytes
            if all(crc & 0xFFFFFFFF != zlib.crc32(each) for each in (body, plaintext)):
                raise BadChecksum(BAD_CHECKSUM, path=self.path, offset=page.start, field=region.field, hint=_CHANGED)
            crc = zlib.crc32(plaintext)
            crc -= crc >> 31 << 32
        return _filled(header.repacked(len(plaintext), crc), len(raw) - len(plaintext)), plaintext

    @staticmethod
    def _plain_levels(header: PageHeader, body: memoryview) -> int:
        """The bytes of levels in front of the module: parquet-java doesn't encrypt those of version 2's pages."""
        if len(body) >= LENGTH_BYTES and module_length(body) == len(body):
            return 0
        if header.kind != "DATA_PAGE_V2" or not header.has_head:
            return 0
        return sum(header.required_of_head(f"{which}_levels_byte_length") for which in ("definition", "repetition"))
