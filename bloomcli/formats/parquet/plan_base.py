"""The base of plans of changes to Parquet files: splices the footer, and checks the finished file.

The footer alone determines which bytes of the original the new file keeps. They are therefore copied while other
threads decode columns. Filters follow the body, in row-group, then schema order. Only the size and the digest of
written filters are kept, so that memory doesn't grow with the number of filters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import WriteError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import ChangeResult, PlanBase
from bloomcli.formats.parquet import earlier_file, extension, footer_check, splice
from bloomcli.formats.parquet.filter_header import load
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey, Footer, read_footer
from bloomcli.formats.parquet.variants import CURRENT, write_header
from bloomcli.storage.base import KeptRange, Pieces, PlacedBytes, Source
from bloomcli.words import counted, were

if TYPE_CHECKING:
    from bloomcli.model.change import FilterChange

HEADER_BOUND: Final = 32
"""The maximum size of a filter's header."""


class _FilterDigest(NamedTuple):
    """The size and the digest of a written filter, which `verify` compares."""

    bytes: int
    """The filter's size with its header."""
    digest: int
    """The XXH64 of the bitset."""


def refuse_signed(footer: Footer) -> None:
    """Raise UnsupportedError if the footer is signed: every change breaks the signature."""
    if (error := footer.signed_error) is not None:
        raise error


class Change(PlanBase):
    """A change to a file: removes the filters of some chunks, may add others, and verifies the finished file."""

    def __init__(self, filters: Filters, removed: set[ChunkKey], *, puts: bool, appends: bool = False) -> None:
        """`removed`: the chunks whose filters are removed. `puts`: the change adds filters, new or folded ones.

        `appends`: keep the whole file, with its footer, and append filters and footer.
        """
        refuse_signed(filters.footer)
        if removed:
            extension.refuse(filters.footer)
        if puts:
            footer_check.refuse_damaged_footer(filters.source, filters.footer, removed)
        self.filters = filters
        self.removed = removed
        self.lengths = filters.unwritten_lengths if removed else {}
        filters.source.will_read(filters.headers(None, unwritten=True))
        self.appends = appends
        self._earlier: int | None = None
        """The size of an earlier version of the file, if the change restores it."""
        self.keep = splice.plan(filters.footer, {}, removed, self.lengths, appends=appends).keep
        self.bytes_to_copy = sum(length for _, length in self.keep)
        self.variant = CURRENT
        self._new: dict[ChunkKey, _FilterDigest] = {}
        self._filter_bytes = 0

    def outline(self) -> Iterator[KeptRange | int]:
        """Yield the ranges that are kept, then the maximum size of filters and footer."""
        yield from itertools.starmap(KeptRange, self.keep)
        yield self.new_bytes_bound

    def give_back(self) -> None:
        """Plan to restore an earlier version of the file, if only the removed filters were appended to it."""
        plan = splice.plan(self.filters.footer, {}, self.removed, self.lengths)
        self._earlier = earlier_file.earlier_size(self.filters.source, self.filters.footer, self.removed, plan.tail)
        if self._earlier is not None:
            self.keep = ((0, self._earlier - len(plan.tail)),)
            self.bytes_to_copy = self._earlier - len(plan.tail)

    def put(self, key: ChunkKey, bits: SplitBlockFilter, *, early: bool = False) -> Pieces:
        """Yield the next filter. With `early`, the body isn't complete yet, and the filter is placed after it."""
        header = write_header(bits.nbytes, self.variant)
        at = self.bytes_to_copy + self._filter_bytes
        self._new[key] = _FilterDigest(len(header) + bits.nbytes, kernels.xxh64(bits.bitset))
        self._filter_bytes += len(header) + bits.nbytes
        if early:
            yield PlacedBytes(at, header)
            yield PlacedBytes(at + len(header), bits.bitset)
        else:
            yield header
            yield bits.bitset

    def finish(self, changes: Iterable[FilterChange], decoded: int, remarks: tuple[str, ...] = ()) -> Pieces:
        """Check the patched footer, and yield it."""
        footer, new = self.filters.footer, self._new
        sizes = {key: written.bytes for key, written in new.items()}
        write_lengths = self.variant == CURRENT
        plan = splice.plan(
            footer, sizes, self.removed, self.lengths, write_lengths=write_lengths, appends=self.appends
        )
        if self._earlier is not None:
            plan = plan._replace(keep=tuple(self.keep), unreclaimed=0)
        moved = not self.appends and (len(plan.keep) > 1 or plan.copied_bytes != footer.start)
        splice.check(footer, plan.footer, self.removed | new.keys(), moved)

        def verify(written: Source) -> None:
            if written.size != plan.total_bytes:
                raise WriteError(
                    f"{counted(written.size, 'byte')} {were(written.size)} written, {plan.total_bytes} were planned"
                )
            again = read_footer(written)
            if again.raw != plan.footer:
                raise WriteError("the footer that was written isn't the one that was planned")
            written.will_read((offset, new[key].bytes) for key, offset in plan.offsets.items())
            keys = again.chunk_keys({key.column for key in plan.offsets})
            chunks = {(key.row_group, key.column): key for key in keys}
            for key, offset in plan.offsets.items():
                chunk = again.chunk(chunks[key.row_group, key.column])
                loaded = load(written, chunk, again.start)
                if loaded.offset != offset or kernels.xxh64(loaded.bits.bitset) != new[key].digest:
                    raise WriteError(f"the filter at {offset} isn't the one that was built")
                del loaded  # the next one may be as large

        yield plan.tail
        self._result = ChangeResult(
            changes=tuple(changes),
            bytes_decoded=decoded,
            verify=verify,
            bytes_unreclaimed=plan.unreclaimed,
            remarks=remarks,
        )
