"""The base of plans of changes to Parquet files: splices the footer, and checks the finished file.

The footer alone determines which bytes of the original the new file keeps, so that they are copied while other
threads decode columns. Filters come after the body, in row-group, then schema order. Of a filter that was written,
only size and digest are kept, so that memory doesn't grow with the number of filters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError, WriteError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.base import ChangeResult, PlanBase
from bloomcli.formats.parquet import earlier_file, extension, footer_check, splice
from bloomcli.formats.parquet.filter_header import load
from bloomcli.formats.parquet.filters import Filters
from bloomcli.formats.parquet.footer import ChunkKey, Footer, read_footer
from bloomcli.formats.parquet.variants import CURRENT, write_header
from bloomcli.named_tuple import NamedTuple
from bloomcli.storage.base import KeptRange, Pieces, PlacedBytes, Source
from bloomcli.words import counted, were

if TYPE_CHECKING:
    from bloomcli.model.change import FilterChange

HEADER_BOUND: Final = 32
"""Bytes of a filter's header, at most."""


class _FilterDigest(NamedTuple):
    """Size and digest of a filter that was written, by which `verify` recognises it."""

    bytes: int
    """Header included."""
    digest: int
    """XXH64 of the bitset."""


def refuse_signed(footer: Footer) -> None:
    """Raise UnsupportedError where a change to the footer breaks its signature."""
    if footer.signed:
        raise UnsupportedError(
            "the footer is signed: any change to it breaks the signature",
            path=footer.path,
            field="encryption_algorithm",
            hint="bloom has no keys; let the engine that wrote the file write it with filters",
        )


class Change(PlanBase):
    """A change to a file: removes the filters of the chunks `removed`, and verifies the finished file."""

    def __init__(self, filters: Filters, removed: set[ChunkKey], *, puts: bool, appends: bool = False) -> None:
        """`removed` are the chunks whose filters go; the change `puts` filters into the file, new or folded ones.

        A change that `appends` keeps the whole file, with its footer, and lays filters and footer behind it.
        """
        refuse_signed(filters.footer)
        if removed:
            extension.refuse(filters.footer)
        if puts:
            footer_check.refuse_damaged(filters.source, filters.footer, removed)
        self.filters = filters
        self.removed = removed
        self.lengths = filters.unwritten_lengths if removed else {}
        filters.source.will_read(filters.headers(None, unwritten=True))
        self.appends = appends
        self._earlier: int | None = None
        """The bytes of an earlier file that this one was made of, if the change gives it back."""
        self.keep = splice.plan(filters.footer, {}, removed, self.lengths, appends=appends).keep
        self.bytes_to_copy = sum(length for _, length in self.keep)
        self.variant = CURRENT
        self._new: dict[ChunkKey, _FilterDigest] = {}
        self._filter_bytes = 0

    def outline(self) -> Iterator[KeptRange | int]:
        """What is kept, then filters and footer."""
        yield from itertools.starmap(KeptRange, self.keep)
        yield self.new_bytes_bound

    def give_back(self) -> None:
        """If nothing but removed filters was appended to an earlier file, plan to give that file back."""
        plan = splice.plan(self.filters.footer, {}, self.removed, self.lengths)
        self._earlier = earlier_file.find_size(self.filters.source, self.filters.footer, self.removed, plan.tail)
        if self._earlier is not None:
            self.keep = ((0, self._earlier - len(plan.tail)),)
            self.bytes_to_copy = self._earlier - len(plan.tail)

    def put(self, key: ChunkKey, bits: SplitBlockFilter, *, early: bool = False) -> Pieces:
        """The next filter. With `early`, the body isn't complete yet, and the filter is placed behind it."""
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
        """Yield the patched footer, after checking it."""
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
