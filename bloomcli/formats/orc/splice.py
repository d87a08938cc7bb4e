"""Puts filters into an ORC file's stripes and takes them out; copies every other stream unchanged.

    stripe:   index streams | data streams | stripe footer

A new filter stream goes next to its column's ROW_INDEX, as orc-core orders streams (by column, then kind).
Data moves, but row-index positions are relative to each stream, so no other stream changes. Stripe footers,
the file footer's stripe list and the postscript are written again, with unknown fields kept;
metadata (stripe statistics) is copied.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.bloom_filter import BLOOM_ENCODING, KINDS, UTF8, NewStream, badly_hashed
from bloomcli.formats.orc.footer import ENCRYPTED_INDEX, INDEX_KINDS, Footer, Stripe, StripeFooter
from bloomcli.storage.base import KeptRange, Piece


def _rebuilt(
    footer: Footer,
    old: StripeFooter,
    removed: set[int],
    columns: Sequence[int],
    built: Callable[[int], Sequence[NewStream]],
) -> Generator[Piece, None, Stripe]:
    """Yield a stripe's pieces: without the streams at the positions in `removed`, and with new ones for `columns`.
    Returns the stripe with its new lengths.

    `columns` are ascending ids. `built` is called for each, in this order, when its new streams are needed.
    """
    message = spec.message("StripeFooter")()
    message.CopyFrom(old.message)
    del message.streams[:]
    stripe = old.stripe
    index_length = data_length = 0
    pending = deque(columns)
    written: set[int] = set()
    kept = KeptRange(stripe.offset, 0)
    in_index = True
    for stream in [*old.streams, None]:
        in_index = in_index and stream is not None and stream.kind in INDEX_KINDS
        # new streams follow the row index of their column, before the streams of the next column, and all precede the
        # encrypted index: readers compute its offset from the end of the streams that aren't encrypted
        last = not in_index or stream is None or stream.kind == ENCRYPTED_INDEX
        while pending and (last or stream is None or pending[0] < stream.column):
            if kept.length:
                yield kept
                kept = KeptRange(kept.offset + kept.length, 0)
            for new in sorted(built(pending.popleft()), key=lambda s: spec.value_of("StreamKind", s.kind)):
                message.streams.add(kind=spec.value_of("StreamKind", new.kind), column=new.column, length=new.length)
                index_length += new.length
                written |= {new.column} if new.kind == UTF8 else set()
                yield from new.packed
        if stream is None or stream.position in removed:
            continue
        message.streams.append(old.message.streams[stream.position])
        if kept.offset + kept.length != stream.offset:
            if kept.length:
                yield kept
            kept = KeptRange(stream.offset, 0)
        kept = KeptRange(kept.offset, kept.length + stream.length)
        if in_index:
            index_length += stream.length
        else:
            data_length += stream.length
    if kept.length:
        yield kept
    # bytes of the stripe that belong to no listed stream (streams of other variants) stay at the end
    rest = stripe.index_length + stripe.data_length - sum(s.length for s in old.streams)
    if rest:
        yield KeptRange(stripe.offset + stripe.index_length + stripe.data_length - rest, rest)
        data_length += rest
    _set_encodings(message, {old.streams[p].column for p in removed}, written)
    packed = footer.codec.compress(message.SerializeToString())
    yield packed
    return stripe._replace(index_length=index_length, data_length=data_length, footer_length=len(packed))


def _set_encodings(message: Any, removed: set[int], written: set[int]) -> None:
    """Set bloomEncoding of columns with a new BLOOM_FILTER_UTF8 stream; clear it where all filters were removed."""
    left = {s.column for s in message.streams if spec.name_of("StreamKind", s.kind) in KINDS}
    for column in removed - left:
        if column < len(message.columns):  # a stream may name a column that doesn't exist
            message.columns[column].ClearField("bloom_encoding")
    for column in written:
        message.columns[column].bloom_encoding = BLOOM_ENCODING


def new_file(
    footer: Footer,
    removed: Mapping[int, set[int]],
    columns: Mapping[int, Sequence[int]],
    built: Callable[[Stripe, int], Sequence[NewStream]],
    software_version: str | None,
) -> Generator[Piece, None, list[Stripe]]:
    """Yield the pieces of a new file, and return its stripes.

    Args:
        footer: the file's footer.
        removed: the positions of the streams that are left out, by stripe.
        columns: ids of the columns that get new streams, ascending, by stripe.
        built: returns the new streams of a column in a stripe. It is called in the order of the file.
        software_version: the field's value in the new footer; None keeps the old one.
    """
    stripes: list[Stripe] = []
    position = consumed = 0  # in the new file and in the original
    for stripe in footer.stripes:
        gap = stripe.offset - consumed  # the file's header, or padding
        if gap:
            yield KeptRange(consumed, gap)
        consumed = stripe.end
        old, gone = footer.stripe_footer(stripe), removed.get(stripe.ordinal, set())
        new = yield from _rebuilt(footer, old, gone, columns.get(stripe.ordinal, ()), partial(built, stripe))
        stripes.append(new._replace(offset=position + gap))
        position = stripes[-1].end
    if consumed < footer.footer_at:  # the rest of the body, and the metadata
        yield KeptRange(consumed, footer.footer_at - consumed)
    message = spec.message("Footer")()
    message.CopyFrom(footer.message)
    for info, stripe in zip(message.stripes, stripes, strict=True):
        info.offset = stripe.offset
        info.index_length = stripe.index_length
        info.data_length = stripe.data_length
        info.footer_length = stripe.footer_length
    if message.HasField("content_length"):
        length = message.content_length + position - consumed
        message.content_length = min(max(length, 0), (1 << 64) - 1)  # the old value may be wrong
    if software_version is not None:
        message.software_version = software_version
    yield file_end(footer, message)
    return stripes


def file_end(footer: Footer, message: Any) -> bytes:
    """The end of a file: another Footer message, and the postscript with its length. Raises CorruptFile."""
    packed: bytes = footer.codec.compress(message.SerializeToString())
    postscript = spec.message("PostScript")()
    postscript.CopyFrom(footer.postscript)
    postscript.footer_length = len(packed)
    raw: bytes = postscript.SerializeToString()
    if len(raw) > spec.POSTSCRIPT_MAX_BYTES:
        raise CorruptFile("the postscript has no room for the footer's length", path=footer.path)
    return packed + raw + bytes([len(raw)])


def metadata_without_filters(
    footer: Footer, stripes: Iterable[StripeFooter], columns: set[int] | None, *, version: bool
) -> list[object]:
    """A file's metadata without the filters of these columns (all if None) and without offsets, for comparison.

    `version`: include the writer's software version, which may decide whether filters are trusted.
    """
    message = spec.message("Footer")()
    message.CopyFrom(footer.message)
    message.ClearField("content_length")
    if not version:
        message.ClearField("software_version")
    for info in message.stripes:
        for name in ("offset", "index_length", "data_length", "footer_length"):
            info.ClearField(name)
    postscript = spec.message("PostScript")()
    postscript.CopyFrom(footer.postscript)
    postscript.ClearField("footer_length")
    metadata: list[object] = [message, postscript]
    for stripe in stripes:
        rest = spec.message("StripeFooter")()
        rest.CopyFrom(stripe.message)
        del rest.streams[:]
        for column, encoding in enumerate(rest.columns):
            if columns is None or column in columns:
                encoding.ClearField("bloom_encoding")
        kept = (s for s in stripe.streams if s.kind not in KINDS or not (columns is None or s.column in columns))
        metadata += [rest, [(s.kind, s.column, s.length) for s in kept]]
    return metadata


def differs_only_in_filters(before: Footer, after: Footer, columns: set[int] | None) -> bool:
    """Whether two files' footers and stripe footers are equal except for the filters of these columns (all if None).

    Adding filters where the writer hashed wrongly removes others of its filters, and changes the software version,
    which is restored when they are removed.
    """
    if len(before.stripes) != len(after.stripes):
        return False
    old, new = before.created_by, after.created_by
    rewritten = any(badly_hashed(old, orc) != badly_hashed(new, orc) for orc in before.types)
    mine, theirs = (
        metadata_without_filters(footer, map(footer.stripe_footer, footer.stripes), removed, version=not rewritten)
        for footer, removed in ((before, None if rewritten else columns), (after, columns))
    )
    return mine == theirs
