"""Adds filters and page indexes to a file and removes them, mends statistics, and changes nothing else.

    original:   body                       | footer | length | PAR1
    with add:   body | new parts           | footer'| length | PAR1

A store that can only append to an object keeps the whole original; the part between body and filters is then unused:

    original:   body | footer | length | PAR1
    with add:   body | footer | length | PAR1 | new parts | footer'| length | PAR1

The body is copied unchanged. The footer's bytes are patched: the compact protocol is walked, and only the fields that
locate the parts (bloom_filter_offset and bloom_filter_length in ColumnMetaData, those of page indexes in
ColumnChunk), and fields of Statistics that are mended, are inserted, replaced or removed. The header of the next
field changes too, because compact headers store the distance to the previous field. All other bytes of the footer,
including fields that our IDL doesn't have, stay the same.

Removing the fields restores the bytes from before they were inserted. It doesn't restore values for chunks
without a filter: 0 or -1, which some writers write (PARQUET-1979), or a length without an offset.

Removed filters are cut out if they lie at the file's end among filters and page indexes; the bytes after them move
up, and the offsets of page indexes change. Elsewhere (between row groups) their bytes stay in the file, unused,
because pages can't move: their offsets are also in the page indexes, while those of filters and page indexes are only
in the footer.

`earlier_size` finds the earlier version of a file in an object store that can only append to whole objects:

    body | footer | length | PAR1 | filters | footer'| length | PAR1

The earlier file ends with the first PAR1 after the body. It may itself have been made from an earlier one.

A change of an encrypted file is planned and checked by the footer in plain text, as for every file. Only what it
changes is encrypted again: the metadata of changed chunks, and the footer, or its signature. Each new module has a
nonce of its own, because a second text with the nonce of the first would give both away. Pages, page indexes,
FileCryptoMetaData and the modules of other chunks stay byte for byte. If a footer in plain text has a shortened copy
of a chunk's metadata next to the encrypted ones, the copy also says where the filter is. Source: the Parquet format's
Encryption.md (5.1 to 5.5).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import CorruptFile, WriteError
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.encryption import MODULE_BYTES, Cipher, Encryption, Kind, WrongModule
from bloomcli.formats.parquet.footer import (
    COLUMN_INDEX,
    FILTER,
    OFFSET_INDEX,
    PAGES,
    Footer,
    Region,
    read_footer,
    read_stored,
    regions,
)
from bloomcli.formats.parquet.spec import Location, Struct, zigzag
from bloomcli.model.file import ChunkKey
from bloomcli.storage.base import Fingerprint, Source

OFFSET: Final = "bloom_filter_offset"
LENGTH: Final = "bloom_filter_length"
_FIELDS: Final = {FILTER: (OFFSET, LENGTH)} | {
    kind: (f"{kind}_offset", f"{kind}_length") for kind in (COLUMN_INDEX, OFFSET_INDEX)
}
"""The fields that locate each kind of part: of a filter in ColumnMetaData, of a page index in ColumnChunk."""
_OF_CHUNK: Final = (*_FIELDS[COLUMN_INDEX], *_FIELDS[OFFSET_INDEX])
_OF_ROW_GROUP: Final = ("sorting_columns", "num_rows")
STATISTICS: Final = "statistics"
COLUMN_ORDERS: Final = "column_orders"
_MENDED: Final = (
    *(*_OF_CHUNK, OFFSET, STATISTICS),
    *("geospatial_statistics", "encodings", "encoding_stats", "size_statistics", "num_values"),
)
"""The fields of a chunk that `repair` changes."""
_SHORT_MAX: Final = 15

Value = int | bytes | Sequence[Any]
"""The value of a field, as `spec.field` takes it: a number or a boolean, bytes, a list, or an encoded structure."""

Values = Mapping[str, Value | None]
"""New values of fields by name; None removes a field."""

Changed = Mapping[ChunkKey | None, Collection[str]]
"""The fields that are changed in each chunk; those of FileMetaData under None. ``statistics.null_count`` is a field
of the chunk's Statistics."""


class Part(NamedTuple):
    """A filter, a column index or an offset index of a column chunk."""

    kind: str
    """`FILTER`, `COLUMN_INDEX` or `OFFSET_INDEX`."""
    key: ChunkKey


class Edit(NamedTuple):
    """Replace raw[start:end] by `new`."""

    start: int
    end: int
    new: bytes


class Splice(NamedTuple):
    """The layout of the new file: ranges of the old body, then new parts, then the footer and its tail."""

    keep: tuple[tuple[int, int], ...]
    """(offset, length) of the ranges that are copied from the original, in order."""
    new_bytes: int
    """Filters, with their headers, and page indexes, written after the copied ranges."""
    footer: bytes
    unreclaimed: int
    """Bytes of parts that are no longer used but could not be cut out."""
    unused: tuple[Region, ...]
    """The regions that share no byte with other parts: the file has no use for their bytes."""
    offsets: dict[Part, int]
    """The offset of each new part in the new file."""
    changed: Changed
    """The fields that the new footer sets or leaves out."""

    @property
    def tail(self) -> bytes:
        """FileMetaData, its length, the magic, of a file that isn't encrypted."""
        return self.footer + len(self.footer).to_bytes(4, "little") + spec.MAGIC

    @property
    def copied_bytes(self) -> int:
        """Bytes copied from the original."""
        return sum(length for _, length in self.keep)


def _header(kind: int, number: int, previous: int, *, long_form: bool = False) -> bytes:
    delta = number - previous
    if not long_form and 0 < delta <= _SHORT_MAX:
        return bytes([delta << 4 | kind])
    return bytes([kind]) + zigzag(number)


def set_fields(struct: Struct, values: Values) -> list[Edit]:
    """Edits that set fields of a structure; None removes a field.

    Headers keep their form (a long one stays long), so that removing a field restores the bytes from before it was
    inserted.
    """
    ids = spec.field_ids(struct.name)
    wanted = {
        ids[name]: None if value is None else spec.field(struct.name, name, value) for name, value in values.items()
    }
    if all(value is None and number not in struct.spans for number, value in wanted.items()):
        return []
    pending = sorted(n for n, value in wanted.items() if value is not None and n not in struct.spans)
    edits: list[Edit] = []
    old_previous = new_previous = 0
    inserted = b""

    def insert_below(bound: int | None) -> None:
        nonlocal inserted, new_previous
        while pending and (bound is None or pending[0] < bound):
            number = pending.pop(0)
            value = wanted[number]
            assert value is not None  # noqa: S101  only fields with a value are pending
            inserted += _header(value[0], number, new_previous) + value[1]
            new_previous = number

    for number, raw_span in sorted(struct.spans.items(), key=lambda item: item[1][1]):
        span = spec.Span(*raw_span)
        inserted = b""
        insert_below(number)
        long_form = struct.data[span.header] >> 4 == 0
        if number in wanted:
            value = wanted[number]
            new = b"" if value is None else _header(value[0], number, new_previous, long_form=long_form) + value[1]
            edits.append(Edit(span.header, span.end, inserted + new))
            if value is not None:
                new_previous = number
        else:
            if inserted or new_previous != old_previous:
                header = _header(span.kind, number, new_previous, long_form=long_form)
                edits.append(Edit(span.header, span.start, inserted + header))
            new_previous = number
        old_previous = number
    inserted = b""
    insert_below(None)
    if inserted:
        edits.append(Edit(struct.end - 1, struct.end - 1, inserted))
    return edits


def apply_edits(raw: bytes, edits: list[Edit]) -> bytes:
    """Apply edits that don't overlap."""
    out, position = [], 0
    for edit in sorted(edits):
        if edit.start < position:
            raise ValueError("edits overlap")
        out += [raw[position : edit.start], edit.new]
        position = edit.end
    out.append(raw[position:])
    return b"".join(out)


def _edits_of(footer: Footer, key: ChunkKey | None, values: Values) -> list[Edit]:
    """Edits that set fields of a chunk's structures; of FileMetaData if `key` is None."""
    if key is None:
        return set_fields(footer.top, values)
    of_chunk = {name: value for name, value in values.items() if name in _OF_CHUNK}
    of_statistics = {
        name.removeprefix(f"{STATISTICS}."): value
        for name, value in values.items()
        if name.startswith(f"{STATISTICS}.")
    }
    of_group = {name: value for name, value in values.items() if name in _OF_ROW_GROUP}
    names = {*of_chunk, *of_group}
    of_metadata = {name: value for name, value in values.items() if name not in names and "." not in name}
    chunk = footer.chunk_struct(key)
    edits = set_fields(chunk, of_chunk)
    if of_group:
        edits += set_fields(footer.group_struct(key.row_group), of_group)
    if all(value is None for value in values.values()) and chunk.span("meta_data") is None:
        return edits  # the chunk's metadata are encrypted
    metadata = footer.meta_struct(key)
    statistics = metadata.struct(STATISTICS, "Statistics")
    if statistics is not None:
        edits += set_fields(statistics, of_statistics)
    elif any(value is not None for value in of_statistics.values()):
        empty = Struct("Statistics", b"\0", 0, metadata.location.at(STATISTICS))
        of_metadata[STATISTICS] = apply_edits(b"\0", set_fields(empty, of_statistics))
    return edits + set_fields(metadata, of_metadata)


def _without(footer: Footer, fields: Changed) -> bytes:
    """The footer without these fields."""
    edits: list[Edit] = []
    for key, names in fields.items():
        edits += _edits_of(footer, key, dict.fromkeys(names))
    return apply_edits(footer.raw, edits)


def plan(
    footer: Footer,
    new: Mapping[Part, int],
    removed: Collection[Part],
    filter_lengths: Mapping[ChunkKey, int],
    *,
    values: Mapping[ChunkKey | None, Values] | None = None,
    write_lengths: bool = True,
    appends: bool = False,
) -> Splice:
    """Lay out the new file.

    Args:
        footer: the original's footer.
        new: the size of each new filter, header included, and page index, in the order in which they are written.
        removed: the existing parts that are removed or replaced.
        filter_lengths: the sizes (header included) of all existing filters for which the metadata have none; a filter
            in `removed` without a known size stays in the file, unused.
        values: other fields to set in the metadata of chunks, and of the file.
        write_lengths: write bloom_filter_length; False for the drafts of 2018, which had no such field.
        appends: keep the whole file, with its footer and the removed parts.

    Returns the plan; nothing is written.
    """
    claims: list[Region] = []
    if removed:  # otherwise nothing is cut, and the other chunks needn't be read
        # claims after the data are wrong: no bytes there can be cut or moved
        claims = regions(footer, filter_lengths.get)
        claims = [r for r in claims if r.kind == PAGES or r.start < footer.start]
        # like pages, filters whose location is encrypted can't be moved
        claims = [r._replace(kind=PAGES) if r.kind == FILTER and footer.sealed(r.key) else r for r in claims]
    movable = movable_start(claims, footer.start) if removed else footer.start
    cuts, unreclaimed, unused = _cuts(claims, removed, movable)
    body = footer.file_bytes if appends else footer.start
    if appends:
        unreclaimed += body - footer.start + sum(end - start for start, end in cuts)
        cuts = []
    keep, position = [], 0
    for start, end in cuts:
        keep.append((position, start - position))
        position = end
    keep.append((position, body - position))
    keep = [(start, length) for start, length in keep if length]
    wanted: dict[ChunkKey | None, dict[str, Value | None]] = {}
    for key, fields in (values or {}).items():
        wanted[key] = dict(fields)
    offsets: dict[Part, int] = {}
    end = sum(length for _, length in keep)
    for part, length in new.items():
        has_length = part.kind != FILTER or write_lengths
        fields = dict(zip(_FIELDS[part.kind], (end, length if has_length else None), strict=True))
        wanted.setdefault(part.key, {}).update(fields)
        offsets[part] = end
        end += length
    for part in removed:
        if part not in new:
            wanted.setdefault(part.key, {}).update(dict.fromkeys(_FIELDS[part.kind]))
    changed: Changed = {key: [_stripped(footer, key, name) for name in fields] for key, fields in wanted.items()}
    for part, offset in _moves(claims, cuts):
        if part not in removed:
            wanted.setdefault(part.key, {})[_FIELDS[part.kind][0]] = offset
    edits = [edit for key, fields in wanted.items() for edit in _edits_of(footer, key, fields)]
    return Splice(
        keep=tuple(keep),
        new_bytes=sum(new.values()),
        footer=apply_edits(footer.raw, edits),
        unreclaimed=unreclaimed,
        unused=tuple(unused),
        offsets=offsets,
        changed=changed,
    )


def _stripped(footer: Footer, key: ChunkKey | None, name: str) -> str:
    """The field that is left out of both footers before they are compared: of new Statistics, all of them."""
    if key is None or not name.startswith(STATISTICS) or footer.meta_struct(key).span(STATISTICS) is not None:
        return name
    return STATISTICS


def _cuts(
    claims: list[Region], removed: Collection[Part], movable: int
) -> tuple[list[tuple[int, int]], int, list[Region]]:
    """(merged ranges to cut, bytes of removed parts that stay in the file, those of these parts that share no byte
    with others). `claims` are sorted by start."""
    kept = [r for r in claims if Part(r.kind, r.key) not in removed]
    starts = [r.start for r in kept]
    reach = [0, *accumulate((r.end for r in kept), max)]  # reach[n]: the end of the first n ranges that stay
    cuts: list[tuple[int, int]] = []
    unreclaimed = 0
    unused: list[Region] = []
    for region in claims:
        if Part(region.kind, region.key) not in removed:
            continue
        shared = reach[bisect_left(starts, region.end)] > region.start
        if region.start < movable or shared:
            unreclaimed += region.end - region.start
            if not shared:
                unused.append(region)
        elif cuts and region.start <= cuts[-1][1]:
            cuts[-1] = (cuts[-1][0], max(cuts[-1][1], region.end))
        else:
            cuts.append((region.start, region.end))
    return cuts, unreclaimed, unused


def _moves(claims: list[Region], cuts: list[tuple[int, int]]) -> Iterator[tuple[Part, int]]:
    """Yield the parts that lie after a cut, and their new offsets."""
    ends = [end for _, end in cuts]
    shifts = [0, *accumulate(end - start for start, end in cuts)]
    for region in claims:
        shift = shifts[bisect_right(ends, region.start)]
        if shift and region.kind != PAGES:
            yield Part(region.kind, region.key), region.start - shift


_LOCATIONS: Final = (*_FIELDS[FILTER], _FIELDS[COLUMN_INDEX][0], _FIELDS[OFFSET_INDEX][0])
"""The fields of a chunk that a cut changes."""


def check(old: Footer, raw: bytes, changed: Changed, moved: bool) -> None:
    """Parse the new footer, and prove that it equals the old one without the changed fields.

    If cuts moved page indexes or filters (`moved`), the locations of all are removed from both footers too.
    """
    try:
        new = Footer(old.path, old.file_bytes, old.start, raw)
        left_out: dict[ChunkKey | None, set[str]] = {key: set(names) for key, names in changed.items()}
        for key in old.chunk_keys() if moved else ():
            left_out.setdefault(key, set()).update(_LOCATIONS)
        same = _without(new, left_out) == _without(old, left_out)
    except CorruptFile as error:
        raise WriteError(f"the patched footer can't be read: {error.reason}", path=old.path) from error
    if not same:
        raise WriteError(
            "the patched footer differs from the original in more than was planned; nothing was written",
            path=old.path,
            hint="please report this file's footer",
        )


def differs_only_in_filters(first: Footer, second: Footer, columns: set[int] | None) -> bool:
    """Whether two footers are equal except for filters of these columns (all if None)."""

    def claims(footer: Footer, columns: set[int] | None) -> list[tuple[ChunkKey, int | None]]:
        """The chunks whose metadata have a filter's offset or length, with the length."""
        chunks = ((key, footer.metadata(key)) for key in footer.chunk_keys(columns))
        locations = ((key, metadata.bloom_filter_offset, metadata.bloom_filter_length) for key, metadata in chunks)
        return [(key, length) for key, offset, length in locations if (offset, length) != (None, None)]

    def stripped(footer: Footer) -> bytes:
        return _without(footer, {key: _FIELDS[FILTER] for key, _ in claims(footer, columns)})

    if stripped(first) == stripped(second):
        return True

    rest = set() if columns is None else set(range(len(first.columns))) - columns
    # if filters were cut out, the bytes after them have moved
    first_rest, second_rest = (
        _without(each, dict.fromkeys(each.chunk_keys(), _LOCATIONS)) for each in (first, second)
    )
    return claims(first, rest) == claims(second, rest) and first_rest == second_rest


def differs_only_in_structures(first: Footer, second: Footer) -> bool:
    """Whether two footers are equal except for what `repair` mends, and what moves if it is replaced."""

    def rest(footer: Footer) -> bytes:
        fields: dict[ChunkKey | None, Collection[str]] = {None: (COLUMN_ORDERS, "num_rows")}
        for key in footer.chunk_keys():  # those of a row group are left out with its first chunk
            fields[key] = _MENDED if key.column else (*_MENDED, *_OF_ROW_GROUP)
        return _without(footer, fields)

    return rest(first) == rest(second)


def movable_start(claims: list[Region], end: int) -> int:
    """Return the start of the contiguous filters and page indexes that end at `end`, the footer's start.

    They begin after the last unclaimed bytes, whose content is unknown, so that they must not move.
    """
    start = end
    pages_end = max((r.end for r in claims if r.kind == PAGES), default=len(spec.MAGIC))
    for region in sorted((r for r in claims if r.kind != PAGES), key=lambda r: r.end, reverse=True):
        if region.end == start and region.start >= pages_end:
            start = region.start
        elif region.end > start and region.start < start:
            break  # claims overlap: these bytes can belong to others too
    return start


_MOST: Final = 100
"""The maximum number of earlier footers that are read."""


def earlier_size(source: Source, footer: Footer, removed: set[ChunkKey], tail: bytes) -> int | None:
    """The size in bytes of the earlier file that the file becomes without some filters; None if there is none.

    That is a file that ends with `tail`, byte for byte, and contains everything that the tail refers to.

    Args:
        source: the file.
        footer: its footer.
        removed: the chunks whose filters are removed.
        tail: footer, length and magic of the file without these filters.
    """
    claims = regions(footer, lambda _: None)
    needed = max((c.end for c in claims if c.kind != FILTER or c.key not in removed), default=len(spec.MAGIC))
    waiting = [start for start in _starts(claims, removed) if start <= footer.start]
    ends: set[int] = set()
    while waiting and len(ends) < _MOST:
        end = waiting.pop()
        if end in ends or end - len(tail) < needed:
            continue
        ends.add(end)
        if source.read_at(end - len(tail), len(tail)) == tail:
            return end
        try:
            earlier = read_footer(_Beginning(source, end))
            waiting += [start for start in _starts(regions(earlier, lambda _: None), None) if start < end]
        except CorruptFile:
            continue  # no footer ends here
    return None


def _starts(claims: list[Region], keys: set[ChunkKey] | None) -> Iterator[int]:
    """Yield the starts of filters (of any chunk if None) that follow no other range that the footer locates."""
    ends = {claim.end for claim in claims}
    for claim in claims:
        if claim.kind == FILTER and (keys is None or claim.key in keys) and claim.start not in ends:
            yield claim.start


class _Beginning(Source):
    """The first bytes of a file, as a file."""

    def __init__(self, source: Source, size: int) -> None:
        self.path, self.size, self._source = source.path, size, source
        self.fingerprint = source.fingerprint  # of the whole file

    def _current(self) -> Fingerprint:
        return self.fingerprint

    def _read(self, offset: int, length: int) -> bytes:
        return self._source.read_at(offset, length)


_KINDS: Final = {
    FILTER: (Kind.FILTER_HEADER, Kind.FILTER_BITSET),
    COLUMN_INDEX: (Kind.COLUMN_INDEX,),
    OFFSET_INDEX: (Kind.OFFSET_INDEX,),
}
"""The modules of each kind of part."""


def overhead(footer: Footer, filters: int) -> int:
    """The upper bound of what an encrypted file with this number of new filters has more than a plain one."""
    if footer.encryption is None:
        return 0
    return footer.file_bytes - footer.start + filters * 4 * MODULE_BYTES


def cipher_of(footer: Footer, key: ChunkKey) -> Cipher | None:
    """The cipher of a chunk's modules; None if the chunk isn't encrypted."""
    return None if footer.encryption is None else footer.encryption.ciphers.get(key)


def sealed(footer: Footer, part: Part, plaintext: Sequence[bytes | bytearray]) -> Sequence[bytes | bytearray]:
    """A filter's header and bits, or a page index, as they are stored."""
    cipher = cipher_of(footer, part.key)
    if cipher is None:
        return plaintext
    return [cipher.encrypt(data, kind) for data, kind in zip(plaintext, _KINDS[part.kind], strict=True)]


def digest(footer: Footer, part: Part, stored: bytes) -> int | None:
    """The XXH64 of a page index in plain bytes; None if it can't be decrypted."""
    cipher = cipher_of(footer, part.key)
    try:
        return kernels.xxh64(stored if cipher is None else cipher.decrypt(stored, *_KINDS[part.kind]))
    except WrongModule:
        return None


def same(footer: Footer, planned: bytes) -> bool:
    """Whether a footer is the planned one. What follows it in an encrypted file, a signature or padding, is new."""
    return footer.raw == planned if footer.encryption is None else planned.startswith(_raw(footer.top))


def tail(source: Source, old: Footer, new: bytes) -> bytes:
    """The end of the new file: the footer as it is stored, its length, the magic.

    Args:
        source: the original file.
        old: its footer, in plain text.
        new: the new footer, in plain text.
    """
    encryption = old.encryption
    if encryption is None or encryption.footer_cipher is None:
        raise ValueError("the footer's key isn't known")
    cipher = encryption.footer_cipher
    after = Footer(old.path, old.file_bytes, old.start, new)
    plaintext = b"".join(_sealed(old, after, encryption))
    if not encryption.plaintext_footer:
        return encrypted_tail(source, cipher, plaintext)
    footer = plaintext + cipher.signature(plaintext)
    return footer + len(footer).to_bytes(4, "little") + spec.MAGIC


def encrypted_tail(source: Source, cipher: Cipher, footer: bytes) -> bytes:
    """The end of a file whose footer is encrypted as that of `source` is."""
    start, stored, _ = read_stored(source)
    crypto = Struct("FileCryptoMetaData", stored, 0, Location(source.path, start, ""))
    module = stored[: crypto.end] + cipher.encrypt(footer, Kind.FOOTER)
    return module + len(module).to_bytes(4, "little") + spec.MAGIC_ENCRYPTED


def _sealed(old: Footer, new: Footer, encryption: Encryption) -> Iterator[bytes]:
    """Yield the parts of FileMetaData in which the metadata of encrypted columns are encrypted, without a signature
    and padding."""
    stored = Footer(old.path, old.file_bytes, old.start, encryption.stored)
    at = 0
    for key in new.chunk_keys():
        cipher = encryption.ciphers.get(key)
        if cipher is None:
            continue
        chunk = new.chunk_struct(key)
        yield new.raw[at : chunk.start]
        yield _sealed_chunk(old.chunk_struct(key), chunk, stored.chunk_struct(key), cipher)
        at = chunk.end
    yield new.raw[at : new.top.end]


def _sealed_chunk(old: Struct, new: Struct, stored: Struct, cipher: Cipher) -> bytes:
    """A ColumnChunk as it is stored: the old one with the new one's locations and metadata."""
    raw = stored.data[stored.start : stored.end]
    if _raw(old) == _raw(new):
        return raw
    chunk = Struct("ColumnChunk", raw, 0, stored.location)
    metadata, before = (each.struct("meta_data", "ColumnMetaData") for each in (new, old))
    assert metadata is not None and before is not None  # noqa: S101  its key is known
    fields: dict[str, Value | None] = {name: new.integer(name) for name in _OF_CHUNK}
    edits = []
    if chunk.span("encrypted_column_metadata") is None:
        fields["meta_data"] = _raw(metadata)
    elif _raw(metadata) != _raw(before):
        fields["encrypted_column_metadata"] = cipher.encrypt(_raw(metadata), Kind.COLUMN_METADATA)
        shortened = chunk.struct("meta_data", "ColumnMetaData")
        if shortened is not None:
            edits = set_fields(shortened, {name: metadata.integer(name) for name in (OFFSET, LENGTH)})
    return apply_edits(raw, edits + set_fields(chunk, fields))


def reopened(written: Source, old: Footer) -> tuple[Footer, Source]:
    """The footer of the new file in plain text, and the source from which its filters are read. Raises WriteError."""
    encryption = old.encryption
    if encryption is None:
        return read_footer(written), written
    from bloomcli.formats.parquet.decryption import PlainSource, opened_footer, with_plain_columns

    start, stored, encrypted = read_stored(written)
    cipher = encryption.footer_cipher
    assert cipher is not None  # noqa: S101  `tail` raises
    try:
        footer = opened_footer(written.path, written.size, start, stored, cipher, plaintext_footer=not encrypted)
    except CorruptFile as error:
        raise WriteError(f"the footer that was written can't be read: {error.reason}", path=old.path) from None
    footer = with_plain_columns(footer, replace(encryption, stored=footer.raw))
    return footer, PlainSource(written, footer)


def _raw(struct: Struct) -> bytes:
    return struct.data[struct.start : struct.end]
