"""Computes the longest value of a page before decoding: encodings can repeat long values in few bytes."""

from __future__ import annotations

from typing import Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.page_header import PageHeader
from bloomcli.formats.parquet.pages import ChunkReader, Page, read_page

_INT96_BYTES: Final = 12


def longest(reader: ChunkReader, header: PageHeader, at: int) -> int:
    """The size of the longest value of a page whose values can share bytes: a dictionary, or one in DELTA_BYTE_ARRAY.

    0 for other pages, whose values aren't larger than the page. For types other than BYTE_ARRAY it is their length,
    or 12.

    Args:
        reader: the reader of the chunk; keeps its position.
        header: the page's header.
        at: the page's file offset.

    Raises:
        CorruptFile, UnsupportedError: the page can't be read.
    """
    column = reader.chunk.column
    if column.physical != "BYTE_ARRAY":
        return column.type_length or _INT96_BYTES
    encoding = header.encoding_name()
    if header.kind != "DICTIONARY_PAGE" and encoding != "DELTA_BYTE_ARRAY":
        return 0
    back, reader.position = reader.position, at
    try:
        page = read_page(reader, lambda _: False)
        if page is None or page.body is None:
            return 0
        size, together = _longest(page)
    except kernels.PageError as error:
        raise reader.fault(str(error), at) from None
    finally:
        reader.position = back
    most = parquet_limits.PAGE_SHARED_MAX_BYTES
    if together > most:
        raise UnsupportedError(
            f"a page whose values have {together:.0f} bytes; at most {most} are decoded",
            path=reader.source.path,
            offset=at,
            field=reader.field,
            hint="rewrite the file with smaller pages",
        )
    return size


def _longest(page: Page) -> tuple[int, float]:
    """(size of the longest value, size of all values if they share bytes with the previous one, else 0)."""
    assert page.body is not None  # noqa: S101  none was skipped
    data = page.body.whole()
    if page.dictionary:
        return kernels.longest_plain(data, page.start, page.num_values), 0
    if not page.non_null:
        return 0, 0
    prefixes, suffixes, skipped = kernels.Deltas(), kernels.Deltas(), kernels.Deltas()
    skipped.feed(data, page.start, True)
    if skipped.skip() != kernels.ALL_DONE:
        raise kernels.PageError("a delta block runs past the page's end")
    prefixes.feed(data, page.start, True)
    suffixes.feed(data, skipped.position, True)
    return kernels.longest_delta_byte_array(prefixes, suffixes)
