"""Lists a column's bucket in each row group, and the row-group index's facts about the column."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.mosaic import statistics
from bloomcli.formats.mosaic.footer import Footer
from bloomcli.formats.mosaic.schema import COMPOUND, literal_column
from bloomcli.model.file import Column, IndexEntry, PageFacts
from bloomcli.values.literals import decode_bound, render


def buckets(footer: Footer, column: int) -> Iterator[PageFacts]:
    """Yield the column's bucket in each row group that has it. Several columns share a bucket."""
    wanted = footer.columns[column].bucket
    for group in footer.row_groups:
        for bucket in group.buckets:
            if bucket.id == wanted:
                yield PageFacts(
                    row_group=group.ordinal,
                    kind=bucket.layout,
                    offset=bucket.offset,
                    compressed_bytes=bucket.size,
                    uncompressed_bytes=bucket.unpacked or None,
                    values=group.rows,
                    bucket=bucket.id,
                )


def index(footer: Footer, column: int) -> Iterator[IndexEntry]:
    """Yield the column's statistics in each row group that has them."""
    mosaic = footer.columns[column]
    typed = None if mosaic.kind in COMPOUND else literal_column(mosaic)
    for group in footer.row_groups:
        found = group.statistics.get(column)
        if found is not None:
            low, high = statistics.plain(found.minimum, mosaic), statistics.plain(found.maximum, mosaic)
            yield IndexEntry(
                row_group=group.ordinal,
                values=group.rows,
                nulls=found.nulls,
                only_nulls=found.nulls >= group.rows,
                min=_text(low, typed),
                max=_text(high, typed),
            )


def _text(bound: bytes | None, typed: Column | None) -> str | None:
    if bound is None or typed is None or decode_bound(bound, typed) is None:
        return None
    return render(bound, typed)
