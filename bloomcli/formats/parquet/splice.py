"""Adds filters to a file and removes them, and changes nothing else.

    original:   body                       | footer | length | PAR1
    with add:   body | filters             | footer'| length | PAR1

A store that can only append to an object keeps the whole original; the part between body and filters is then unused:

    original:   body | footer | length | PAR1
    with add:   body | footer | length | PAR1 | filters | footer'| length | PAR1

The body is copied unchanged. The footer's bytes are patched: the compact protocol is walked, and only fields 14 and
15 (bloom_filter_offset, bloom_filter_length) of the chosen ColumnMetaData are inserted, replaced or removed. The
header of the next field changes too, because compact headers store the distance to the previous field. All other
bytes of the footer, including fields that our IDL doesn't have, stay the same.

Removing fields 14 and 15 restores the bytes from before they were inserted. It doesn't restore values for chunks
without a filter: 0 or -1, which some writers write (PARQUET-1979), or a length without an offset.

Removed filters are cut out if they lie at the file's end among filters and page indexes; the bytes after them move
up, and the offsets of page indexes change. Elsewhere (between row groups) their bytes stay in the file, unused,
because pages can't move: their offsets are also in the page indexes, while those of filters and page indexes are only
in the footer.

`earlier_size` finds the earlier version of a file in an object store that can only append to whole objects:

    body | footer | length | PAR1 | filters | footer'| length | PAR1

The earlier file ends with the first PAR1 after the body. It may itself have been made from an earlier one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from bloomcli.errors import CorruptFile, WriteError
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import (
    FILTER,
    OFFSET_FIELDS,
    PAGES,
    ChunkKey,
    Footer,
    Region,
    read_footer,
    regions,
)
from bloomcli.formats.parquet.spec import Struct, zigzag
from bloomcli.storage.base import Fingerprint, Source

OFFSET: Final = "bloom_filter_offset"
LENGTH: Final = "bloom_filter_length"
_KINDS: Final = {OFFSET: spec.I64, LENGTH: spec.I32} | dict.fromkeys(OFFSET_FIELDS.values(), spec.I64)


class Edit(NamedTuple):
    """Replace raw[start:end] by `new`."""

    start: int
    end: int
    new: bytes


class Splice(NamedTuple):
    """The layout of the new file: ranges of the old body, then new filters, then the footer and its tail."""

    keep: tuple[tuple[int, int], ...]
    """(offset, length) of the ranges that are copied from the original, in order."""
    filter_bytes: int
    """Headers and bitsets of the new filters, written after the copied ranges."""
    footer: bytes
    unreclaimed: int
    """Bytes of filters that are no longer used but could not be cut out."""
    offsets: dict[ChunkKey, int]
    """The offset of each new filter in the new file."""

    @property
    def tail(self) -> bytes:
        """FileMetaData, its length, the magic."""
        return self.footer + len(self.footer).to_bytes(4, "little") + spec.MAGIC

    @property
    def copied_bytes(self) -> int:
        """Bytes copied from the original."""
        return sum(length for _, length in self.keep)

    @property
    def total_bytes(self) -> int:
        """Size of the new file."""
        return self.copied_bytes + self.filter_bytes + len(self.tail)


def set_fields(struct: Struct, values: dict[str, int | None]) -> list[Edit]:
    """Edits that set integer fields of a structure; None removes a field.

    Headers keep their form (a long one stays long), so that removing a field restores the bytes from before it was
    inserted.
    """
    ids = spec.field_ids(struct.name)
    wanted = {ids[name]: (_KINDS[name], value) for name, value in values.items()}
    if all(value is None and number not in struct.spans for number, (_, value) in wanted.items()):
        return []
    pending = sorted(n for n, (_, value) in wanted.items() if value is not None and n not in struct.spans)
    edits: list[Edit] = []
    old_previous = new_previous = 0
    inserted = b""

    def insert_below(bound: int | None) -> None:
        nonlocal inserted, new_previous
        while pending and (bound is None or pending[0] < bound):
            number = pending.pop(0)
            kind, value = wanted[number]
            assert value is not None  # noqa: S101  only fields with a value are pending
            inserted += spec.field_header(kind, number, new_previous) + zigzag(value)
            new_previous = number

    for number, raw_span in sorted(struct.spans.items(), key=lambda item: item[1][1]):
        span = spec.Span(*raw_span)
        inserted = b""
        insert_below(number)
        long_form = struct.data[span.header] >> 4 == 0
        if number in wanted:
            kind, value = wanted[number]
            new = (
                b""
                if value is None
                else spec.field_header(kind, number, new_previous, long_form=long_form) + zigzag(value)
            )
            edits.append(Edit(span.header, span.end, inserted + new))
            if value is not None:
                new_previous = number
        else:
            if inserted or new_previous != old_previous:
                header = spec.field_header(span.kind, number, new_previous, long_form=long_form)
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


def strip(footer: Footer, keys: set[ChunkKey]) -> bytes:
    """The footer without both filter fields of these chunks."""
    edits: list[Edit] = []
    for key in keys:
        edits += set_fields(footer.meta_struct(key), {OFFSET: None, LENGTH: None})
    return apply_edits(footer.raw, edits)


def plan(
    footer: Footer,
    new: dict[ChunkKey, int],
    removed: set[ChunkKey],
    filter_lengths: dict[ChunkKey, int],
    *,
    write_lengths: bool = True,
    appends: bool = False,
) -> Splice:
    """Lay out the new file.

    Args:
        footer: the original's footer.
        new: the size of each new filter, header included, in the order in which they are written.
        removed: the chunks whose existing filter is removed or replaced.
        filter_lengths: the sizes (header included) of all existing filters for which the metadata have none; a filter
            in `removed` without a known size stays in the file, unused.
        write_lengths: write bloom_filter_length; False for the drafts of 2018, which had no such field.
        appends: keep the whole file, with its footer and the removed filters.

    Returns the plan; nothing is written.
    """
    claims: list[Region] = []
    if removed:  # otherwise nothing is cut, and the other chunks needn't be read
        # claims after the data are wrong: no bytes there can be cut or moved
        claims = regions(footer, filter_lengths.get)
        claims = [r for r in claims if r.kind == PAGES or r.start < footer.start]
    movable = movable_start(claims, footer.start) if removed else footer.start
    cuts, unreclaimed = _cuts(claims, removed, movable)
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
    edits: list[Edit] = []
    offsets: dict[ChunkKey, int] = {}
    end = sum(length for _, length in keep)
    for key, length in new.items():
        edits += set_fields(footer.meta_struct(key), {OFFSET: end, LENGTH: length if write_lengths else None})
        offsets[key] = end
        end += length
    for key in removed - new.keys():
        edits += set_fields(footer.meta_struct(key), {OFFSET: None, LENGTH: None})
    edits += _moves(footer, claims, cuts, removed | new.keys())
    return Splice(
        keep=tuple(keep),
        filter_bytes=sum(new.values()),
        footer=apply_edits(footer.raw, edits),
        unreclaimed=unreclaimed,
        offsets=offsets,
    )


def _cuts(claims: list[Region], removed: set[ChunkKey], movable: int) -> tuple[list[tuple[int, int]], int]:
    """(merged ranges to cut, bytes of removed filters that stay in the file). `claims` are sorted by start."""
    kept = [r for r in claims if not (r.kind == FILTER and r.key in removed)]
    starts = [r.start for r in kept]
    reach = [0, *accumulate((r.end for r in kept), max)]  # reach[n]: the end of the first n ranges that stay
    cuts: list[tuple[int, int]] = []
    unreclaimed = 0
    for region in claims:
        if region.kind != FILTER or region.key not in removed:
            continue
        shared = reach[bisect_left(starts, region.end)] > region.start
        if region.start < movable or shared:
            unreclaimed += region.end - region.start
        elif cuts and region.start <= cuts[-1][1]:
            cuts[-1] = (cuts[-1][0], max(cuts[-1][1], region.end))
        else:
            cuts.append((region.start, region.end))
    return cuts, unreclaimed


def _moves(
    footer: Footer, claims: list[Region], cuts: list[tuple[int, int]], set_already: set[ChunkKey]
) -> list[Edit]:
    """Edits of the offsets of page indexes and kept filters after a cut."""
    edits: list[Edit] = []
    moved: dict[ChunkKey, dict[str, int | None]] = {}
    ends = [end for _, end in cuts]
    shifts = [0, *accumulate(end - start for start, end in cuts)]
    for region in claims:
        shift = shifts[bisect_right(ends, region.start)]
        if not shift or region.kind == PAGES:
            continue
        if region.kind == FILTER:
            if region.key not in set_already:
                edits += set_fields(footer.meta_struct(region.key), {OFFSET: region.start - shift})
        else:
            moved.setdefault(region.key, {})[OFFSET_FIELDS[region.kind]] = region.start - shift
    for key, values in moved.items():
        edits += set_fields(footer.chunk_struct(key), values)
    return edits


def check(old: Footer, raw: bytes, touched: set[ChunkKey], moved: bool) -> Footer:
    """Parse the new footer, and prove that it equals the old one without the filter fields.

    If cuts moved page indexes or other filters (`moved`), their offsets are removed from both footers too.
    """
    try:
        new = Footer(old.path, old.file_bytes, old.start, raw)
        if moved:
            same = _strip_movable(new) == _strip_movable(old)
        else:
            same = strip(new, _translate(new, touched)) == strip(old, touched)
    except CorruptFile as error:
        raise WriteError(f"the patched footer can't be read: {error.reason}", path=old.path) from error
    if not same:
        raise WriteError(
            "the patched footer differs from the original in more than its filters; nothing was written",
            path=old.path,
            hint="please report this file's footer",
        )
    return new


def differs_only_in_filters(one: Footer, other: Footer, columns: set[int] | None) -> bool:
    """Whether two footers are equal except for filters of these columns (None: all)."""
    mine, theirs = ({claim.key for claim in footer.filter_claims(columns)} for footer in (one, other))
    if strip(one, mine) == strip(other, theirs):
        return True

    def kept(footer: Footer) -> list[tuple[int, int, int | None]]:
        rest = () if columns is None else set(range(footer.column_count)) - columns
        return [(key.row_group, key.column, length) for key, _, length, _ in footer.filter_claims(set(rest))]

    # if filters were cut out, the bytes after them have moved
    return kept(one) == kept(other) and _strip_movable(one) == _strip_movable(other)


def _strip_movable(footer: Footer) -> bytes:
    """The footer without any field that a cut changes."""
    edits: list[Edit] = []
    nothing: dict[str, int | None] = dict.fromkeys(OFFSET_FIELDS.values())
    for key in footer.chunk_keys():
        outer = footer.chunk_struct(key)
        if outer.span("meta_data") is not None:
            edits += set_fields(footer.meta_struct(key), {OFFSET: None, LENGTH: None})
        edits += set_fields(outer, nothing)
    return apply_edits(footer.raw, edits)


def _translate(footer: Footer, keys: set[ChunkKey]) -> set[ChunkKey]:
    wanted = {(p.row_group, p.column) for p in keys}
    return {p for p in footer.chunk_keys({c for _, c in wanted}) if (p.row_group, p.column) in wanted}


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
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        end = waiting.pop()
        if end in seen or end - len(tail) < needed:
            continue
        seen.add(end)
        if source.read_at(end - len(tail), len(tail)) == tail:
            return end
        try:
            earlier = read_footer(_Beginning(source, end))
            waiting += [start for start in _starts(regions(earlier, lambda _: None), None) if start < end]
        except CorruptFile:
            continue  # no footer ends here
    return None


def _starts(claims: list[Region], keys: set[ChunkKey] | None) -> Iterator[int]:
    """Yield the starts of filters (None: of any chunk) that follow no other range that the footer locates."""
    ends = {claim.end for claim in claims}
    for claim in claims:
        if claim.kind == FILTER and (keys is None or claim.key in keys) and claim.start not in ends:
            yield claim.start


class _Beginning(Source):
    """The first bytes of a file, as a file."""

    def __init__(self, source: Source, size: int) -> None:
        self.path, self.size, self._source = source.path, size, source

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the whole file."""
        return self._source.fingerprint

    def _current(self) -> Fingerprint:
        return self.fingerprint

    def _read(self, offset: int, length: int) -> bytes:
        return self._source.read_at(offset, length)

    def close(self) -> None:
        """Do nothing: the caller closes the file."""
