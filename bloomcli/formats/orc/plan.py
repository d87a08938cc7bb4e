"""The plans that add filters to an ORC file, stripe by stripe, and that remove them.

To add filters, one job builds the filters of one column in one stripe. While they are written, other threads build
the next filters, as many at a time as memory allows. To remove them, no column is read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError, CorruptFile, FilterExists, NoValues, UnsupportedError, UsageError, WriteError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, functions_for, size_for
from bloomcli.formats.base import ChangeResult, Plan, Tick
from bloomcli.formats.filters_in_flight import BuildQueue, Job
from bloomcli.formats.orc import hashes, spec
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc.bloom_filter import (
    KINDS,
    Filters,
    Location,
    NewStream,
    badly_hashed,
    encoded,
    kinds_of_option,
    most_bytes,
)
from bloomcli.formats.orc.compression import Packer
from bloomcli.formats.orc.footer import Footer, Stream, Stripe, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.splice import new_file
from bloomcli.formats.orc.values import REPEATED, TIMESTAMPS
from bloomcli.formats.size_rule import SizeRule
from bloomcli.hints import listed
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column
from bloomcli.storage.base import KeptRange, Pieces, Source
from bloomcli.version import __version__
from bloomcli.words import counted

_MARK: Final = re.compile(r"(?<!unknown) \(filters by bloomcli [^)]*\)")
"""What `AddPlan` adds to the software version of a writer that hashed wrongly."""
FOOTER_GROWTH: Final = 64
"""Bytes by which a footer may grow for each entry that changes, at most."""


class Change(Plan):
    """A change to a file that removes the streams at the positions `removed`, by stripe, and verifies the result."""

    def __init__(self, filters: Filters) -> None:
        footer = filters.footer
        footer.refuse_unknown_version()
        for before, stripe in itertools.pairwise(footer.stripes):
            if stripe.offset < before.end:
                raise CorruptFile(
                    f"stripe {stripe.ordinal} overlaps the one before it",
                    **footer.place(stripe),
                    hint="the file is damaged; get it from its source again",
                )
        self.filters = filters
        self.footer = footer
        footer.will_read_stripes()
        self.removed: dict[int, set[int]] = {}
        self.new_version: str | None = None
        self._todo: dict[int, list[OrcType]] = {}
        """The columns that get filters, by stripe."""
        self._dropped: list[FilterChange] = []
        """The filters that are removed and not replaced."""
        self.bytes_to_decode = 0

    def outline(self) -> Iterator[KeptRange | int]:
        """Each stripe's index and data as kept, and an equal share of the new bytes."""
        share = self.new_bytes_bound // (len(self.footer.stripes) + 1)
        for stripe in self.footer.stripes:
            yield KeptRange(stripe.offset, stripe.index_length + stripe.data_length)
            yield share
        yield share

    def _metadata_bound(self, entries: int) -> int:
        """Upper bound of the bytes of the new footers, in each of which so many entries change."""
        before: int = (
            self.footer.file_bytes - self.footer.footer_at + sum(s.footer_length for s in self.footer.stripes)
        )
        return before + (len(self.footer.stripes) + 1) * FOOTER_GROWTH * entries

    def _count(self) -> None:
        """Count the bytes to copy, when `removed` is known."""
        self.bytes_to_copy = self.footer.footer_at
        for stripe in self.footer.stripes:
            removed = self.removed.get(stripe.ordinal, ())
            gone = (s.length for s in self.footer.stripe_footer(stripe).streams if s.position in removed)
            self.bytes_to_copy -= stripe.footer_length + sum(gone)

    def jobs(self, stop: Stop) -> Iterator[Job[_NewFilters]]:
        """Build the new filters of each stripe and column in `_todo`, in order. By default there are none."""
        del stop
        return iter(())

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """The new file, stripe by stripe: kept bytes, new filters, new stripe footer."""
        changes: list[FilterChange] = list(self._dropped)
        filters: dict[tuple[int, str, int], int] = {}
        stop = Stop()
        self.filters.source.will_read(self.reads())
        with BuildQueue(
            self.jobs(stop), threads, lambda built: sum(s.length for s in built.streams), stop, max_jobs=threads + 1
        ) as queue:
            self._queue = queue
            queue.start_jobs()

            def built(stripe: Stripe, column: int) -> Sequence[NewStream]:
                """Return a column's filters in a stripe. Jobs have the order of these calls."""
                queue.start_jobs()
                new_filters = queue.take()
                changes.append(new_filters.change)
                filters.update({(stripe.ordinal, s.kind, column): s.checksum for s in new_filters.streams})
                tick(self._data_bytes(self.footer.stripe_footer(stripe), column))
                return new_filters.streams

            columns = {ordinal: [c.id for c in chosen] for ordinal, chosen in self._todo.items()}
            stripes = yield from new_file(self.footer, self.removed, columns, built, self.new_version)
        self._result = ChangeResult(
            changes=tuple(changes),
            bytes_decoded=self.bytes_to_decode,
            remarks=queue.remarks,
            verify=lambda written: self.verify(written, stripes, filters),
        )

    def _data_bytes(self, streams: StripeFooter, column: int) -> int:
        return sum(s.length for s in self.filters.value_streams(streams, column))

    def verify(self, written: Source, stripes: Sequence[Stripe], filters: dict[tuple[int, str, int], int]) -> None:
        """Re-read the finished file: every stripe has the planned streams, and the new filters have the planned
        bytes.

        `stripes` are the planned ones; `filters` has the checksum of each new filter, by stripe, kind and column.
        """
        again = Footer(written)
        again.will_read_stripes()
        if len(again.stripes) != len(self.footer.stripes) or again.rows != self.footer.rows:
            raise WriteError("the footer that was written isn't the one that was planned")
        for old, stripe, planned_stripe in zip(self.footer.stripes, again.stripes, stripes, strict=True):
            if stripe != planned_stripe:
                raise WriteError(f"stripe {stripe.ordinal} isn't where it was planned")
            removed = self.removed.get(stripe.ordinal, set())
            before = self.footer.stripe_footer(old)
            after = again.stripe_footer(stripe)
            kept = [(s.kind, s.column, s.length) for s in before.streams if s.position not in removed]
            planned = [(stripe.ordinal, s.kind, s.column) in filters for s in after.streams]
            added = list(itertools.compress(after.streams, planned))
            rest = [s for s, new in zip(after.streams, planned, strict=True) if not new]
            if [(s.kind, s.column, s.length) for s in rest] != kept:
                raise WriteError(f"stripe {stripe.ordinal} lost or gained a stream")
            for stream in added:
                if again.stream_checksum(stream, stripe) != filters[stripe.ordinal, stream.kind, stream.column]:
                    raise WriteError(f"the filters at {stream.offset} aren't the ones that were built")


def removal(filters: Filters, location: Location) -> FilterChange:
    """The report about the removal of a filter stream."""
    streams, stream = location
    in_schema = stream.column < len(filters.footer.types)
    return FilterChange(
        stripe=streams.stripe.ordinal,
        row_group=None,
        filters=filters.footer.row_groups(streams.stripe),
        column=filters.footer.types[stream.column].label if in_schema else f"column {stream.column}",
        action="remove",
        bitset_bytes=None,
        old_bitset_bytes=filters.bitset_bytes(location),
    )


_ENTRY_BOUND: Final = 32


class _NewFilters(NamedTuple):
    """The new filters of a column in a stripe."""

    streams: list[NewStream]
    change: FilterChange


class _Size(NamedTuple):
    """The size of every filter of a column."""

    bits: int
    functions: int
    fpp: float
    """The rate that the size is computed for."""
    reports_misses: bool
    """Whether a missed rate is reported: the user or the policy chose the rate, or a cap makes the filter too
    small."""


class AddPlan(Change):
    """Filters for chosen columns, built from their values, one for each row group."""

    def __init__(
        self, filters: Filters, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False
    ) -> None:
        super().__init__(filters)
        self.chosen = [filters.footer.types[i] for i in sorted({c.index for c in columns})]
        for orc in self.chosen:
            self._refuse(orc)
        if not self.footer.stride:
            raise UnsupportedError(
                "the file has no row index, and readers look at filters only together with it",
                path=self.footer.path,
                field="rowIndexStride",
                hint="write the file with a row index (orc.create.index)",
            )
        self.sizes = {c.index: self._size(rule, c) for c in columns}
        self._kinds = {c.id: kinds_of_option(self.footer, c, rule.choice("kind")) for c in self.chosen}
        self.replace = replace
        bad = {c.id for c in self.chosen if badly_hashed(self.footer.created_by, c)}
        self._todo = {
            s.ordinal: [c for c in self.chosen if not (missing and c.id not in bad and self._existing(s, c))]
            for s in self.footer.stripes
            if s.rows
        }
        todo = [(s, c) for s in self.footer.stripes for c in self._todo.get(s.ordinal, ())]
        self._planned = {(s.ordinal, c.id): self._estimate(s, c) for s, c in todo}
        self._dropped = self._drop_from_empty_stripes() + (self._drop_untrusted() if bad and todo else [])
        self.planned = (*self._planned.values(), *self._dropped)
        self._count()
        groups = sum(self.footer.row_groups(s) for s in self.footer.stripes)
        streams = 2 if rule.choice("kind") == "both" else 1
        self.new_bytes_bound = streams * groups * sum(
            self.sizes[c.id].bits * 5 // 4 // 8 + _ENTRY_BOUND for c in self.chosen
        ) + self._metadata_bound(len(self.chosen) + 1)

    def _size(self, rule: SizeRule, column: Column) -> _Size:
        """The size of a column's filters, as orc-core sizes them.

        orc-core sizes filters by the stride, and slightly misses its rate. A filter that has to meet a policy's limit
        is sized for a lower rate.
        """
        limit = rule.limit(column.path)
        rule = rule.of(column.path)
        stride = self.footer.sizing_rows
        repeated = any(t.kind in REPEATED for c in self.chosen for t in self.footer.ancestors(c))
        count = rule.ndv or stride
        count = count if repeated else min(count, stride)  # a row has a value
        bits, functions = size_for(count, rule.fpp if limit is None else limit * orc_limits.RATE_MARGIN)
        capped = rule.max_bytes is not None and bits > rule.max_bytes * 8
        if rule.max_bytes is not None and capped:
            bits = max(rule.max_bytes // 8, 1) * 64
            functions = functions_for(count, bits)
        return _Size(bits, functions, rule.fpp, capped or not rule.by_default)

    def _refuse(self, orc: OrcType) -> None:
        reason = self.filters.unfilterable.get(orc.id)
        if reason is not None:
            error: type[BloomError] = UsageError if orc.kind == "BOOLEAN" else UnsupportedError
            hint = f"--exclude {listed(orc.label)} leaves it out"
            if orc.kind in TIMESTAMPS:
                hint += "; where time zone data are missing, `pip install tzdata` brings them"
            raise error(f"column {orc.label} is {reason}", path=self.footer.path, field=f"types[{orc.id}]", hint=hint)

    def _existing(self, stripe: Stripe, orc: OrcType) -> list[Stream]:
        """The existing filters of a column in a stripe."""
        return [s for s in self.footer.stripe_footer(stripe).of_column(orc.id) if s.kind in KINDS]

    def _estimate(self, stripe: Stripe, orc: OrcType) -> FilterChange:
        streams = self.footer.stripe_footer(stripe)
        if streams.find("ROW_INDEX", orc.id) is None:
            raise UnsupportedError(
                f"column {orc.path} has no row index in stripe {stripe.ordinal}: readers look at filters only "
                "together with it",
                **self.footer.place(stripe),
            )
        if orc.id >= len(streams.message.columns):
            raise CorruptFile(
                f"stripe {stripe.ordinal} has {len(streams.message.columns)} encodings, none for column {orc.path}",
                **self.footer.place(stripe, ".footer"),
                hint="the file is damaged; get it from its source again",
            )
        size = most_bytes(self.footer.row_groups(stripe), self.sizes[orc.id].bits)
        if size > orc_limits.FILTER_STREAM_MAX_BYTES:
            raise UnsupportedError(
                f"the filters of column {orc.path} would take {counted(size, 'byte')} in stripe"
                f" {stripe.ordinal}, more than "
                f"{orc_limits.FILTER_STREAM_MAX_BYTES}",
                **self.footer.place(stripe),
                hint="a higher --fpp or --max-bytes makes them smaller",
            )
        existing = self._replaced(stripe, orc)
        self.bytes_to_decode += self._data_bytes(streams, orc.id)
        return FilterChange(
            stripe=stripe.ordinal,
            row_group=None,
            filters=self.footer.row_groups(stripe),
            column=orc.path,
            action="replace" if existing else "add",
            bitset_bytes=self.sizes[orc.id].bits // 8,
            target_fpp=self.sizes[orc.id].fpp,
            source="stripe",
        )

    def _replaced(self, stripe: Stripe, orc: OrcType) -> list[Stream]:
        """Remove a column's existing filters in a stripe, and return them. Raises FilterExists without `replace`."""
        existing = self._existing(stripe, orc)
        if existing and not self.replace:
            raise FilterExists(
                f"column {orc.path} has filters in stripe {stripe.ordinal} already",
                path=self.footer.path,
                offset=existing[0].offset,
                field=f"{stripe.field}.streams[{existing[0].position}]",
                hint="--replace builds new ones in place of all existing ones",
            )
        self.removed.setdefault(stripe.ordinal, set()).update(s.position for s in existing)
        return existing

    def _drop_from_empty_stripes(self) -> list[FilterChange]:
        """Remove the chosen columns' filters in stripes without rows."""
        empty = [self.footer.stripe_footer(s) for s in self.footer.stripes if not s.rows]
        return [
            removal(self.filters, Location(streams, stream))
            for streams in empty
            for orc in self.chosen
            for stream in self._replaced(streams.stripe, orc)
        ]

    def _drop_untrusted(self) -> list[FilterChange]:
        """Remove the other filters that the writer hashed wrongly, and change the software version.

        Readers ignore such filters by the software version. The new version says that bloomcli wrote the filters, so
        that readers use them.
        """
        old = spec.text(self.footer.message.software_version) or "unknown"
        release, dash, rest = old.partition("-")  # readers parse the part before the dash
        self.new_version = f"{release} (filters by bloomcli {__version__}){dash}{rest}"
        chosen = {c.id for c in self.chosen}
        dropped = []
        for streams, stream in self.filters.locations(None):
            types = self.footer.types[stream.column : stream.column + 1]
            if stream.column not in chosen and all(badly_hashed(self.footer.created_by, orc) for orc in types):
                self.removed.setdefault(streams.stripe.ordinal, set()).add(stream.position)
                dropped.append(removal(self.filters, Location(streams, stream)))
        return dropped

    def reads(self) -> Iterator[tuple[int, int]]:
        """The chosen columns' streams, and their row indexes."""
        for stripe in self.footer.stripes:
            for column in self._todo.get(stripe.ordinal, ()):
                yield from self.filters.value_ranges(self.footer.stripe_footer(stripe), column.id)

    def jobs(self, stop: Stop) -> Iterator[Job[_NewFilters]]:
        """Build the filters of each column in each stripe."""
        todo = ((s, c) for s in self.footer.stripes for c in self._todo.get(s.ordinal, ()))
        return (Job(self._memory(s, c), partial(self._build, s, c, stop)) for s, c in todo)

    def _memory(self, stripe: Stripe, orc: OrcType) -> int:
        """Bytes that building a column's filters in a stripe takes."""
        size = most_bytes(self.footer.row_groups(stripe), self.sizes[orc.id].bits)
        filter_bytes = 3 * self.sizes[orc.id].bits // 8  # the filter, its message, and the message's bytes
        return size * len(self._kinds[orc.id]) + filter_bytes + hashes.memory(self.footer.stripe_footer(stripe), orc)

    def _build(self, stripe: Stripe, orc: OrcType, stop: Stop) -> _NewFilters:
        """Decode a column of a stripe and build its filters."""
        streams = self.footer.stripe_footer(stripe)
        packers = {kind: Packer(self.footer.codec) for kind in self._kinds[orc.id]}
        rate, count, size = 0.0, 0, self.sizes[orc.id]
        index = self.filters.statistics(streams, orc.id)
        hasher = hashes.column_hasher(self.footer, streams, orc, stop)
        for group, rows in enumerate(self.footer.units(stripe)):
            bits = KirschMitzenmacherFilter.empty(size.bits, size.functions)
            before = count
            for batch in hasher.take(rows):
                bits.insert_hashes(batch.hashes, batch.count)
                if batch.has_zero:
                    bits.insert_hashes(hashes.zero_hashes(), 2)
                bits.insert_hashes(batch.other_hashes, len(batch.other_hashes) // 8)
                count += batch.count
            stats = index[group]
            claimed = 0 if stats is None else stats.number_of_values
            if count == before and claimed:
                reason = f"row group {group} holds no value of {orc.label}, and its statistics count {claimed}"
                raise NoValues(reason, column=orc.path, **self.footer.place(stripe))
            rate = max(rate, bits.fpp)
            for kind, packer in packers.items():
                packer.write(encoded(kind, bits))
        missed = size.reports_misses and rate > size.fpp
        change = replace(self._planned[stripe.ordinal, orc.id], values=count, fpp=rate, misses_target=missed)
        new = [NewStream(kind, orc.id, packer.finish(), packer.checksum) for kind, packer in packers.items()]
        return _NewFilters(new, change)


class RemovePlan(Change):
    """The plan that removes filters."""

    def __init__(self, filters: Filters, columns: set[int] | None) -> None:
        super().__init__(filters)
        filters.source.will_read(filters.ranges(columns))  # to report the size of each
        for location in filters.locations(columns):
            self.removed.setdefault(location.streams.stripe.ordinal, set()).add(location.stream.position)
            self._dropped.append(removal(filters, location))
        marked, types = self.footer.created_by, self.footer.types
        left = set[int]() if columns is None else filters.columns() - columns
        if (unmarked := _MARK.sub("", marked)) != marked and not any(badly_hashed(unmarked, types[c]) for c in left):
            self.new_version = _MARK.sub("", spec.text(self.footer.message.software_version))
        self.planned = tuple(self._dropped)
        self._count()
        self.new_bytes_bound = self._metadata_bound(1)
