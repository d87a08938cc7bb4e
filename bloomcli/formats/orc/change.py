"""Drafts of changes to an ORC file: filters added, removed. Planned first, carried out stripe by stripe.

While one stripe is written, the next ones are read in other threads, one more than there are threads: none waits
while a stripe is copied. There are fewer where their filters would take more than the ceiling, down to one stripe's:
a stripe's filters lie among its streams, so memory is bounded by those of the largest stripe. To that come as many
stripes of the columns that pyarrow has to decode as there are threads.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from bloomcli import __version__, kernels
from bloomcli.errors import CorruptFile, FilterExists, UnsupportedError, UsageError, WriteError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, functions_for, size_for
from bloomcli.formats.ahead import Ahead, Job
from bloomcli.formats.base import Built, Carried, Pieces, SizeRule, Tick
from bloomcli.formats.orc import spec, values
from bloomcli.formats.orc.arrow_reader import check_name
from bloomcli.formats.orc.column_reader import REPEATED
from bloomcli.formats.orc.filter_header import KINDS, ORIGINAL, UTF8, bad_writer, encode, sound_for_old_readers
from bloomcli.formats.orc.footer import Footer, Stream, Stripe, StripeFooter
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.splice import Layout, NewStream, kept_bytes, rebuild
from bloomcli.model import Column, FilterChange
from bloomcli.source import Source

if TYPE_CHECKING:
    from bloomcli.formats.orc.file import OrcFile

_ENTRY_BOUND: Final = 32
_FOOTER_GROWTH: Final = 64


class _Change(Carried):
    """What the drafts share: refusals, the layout, and the proof that the finished file is what was planned."""

    def __init__(self, file: OrcFile) -> None:
        footer = file.footer
        if footer.message.HasField("encryption"):
            raise UnsupportedError(
                "the file has encrypted columns",
                path=footer.path,
                field="encryption",
                hint="bloom has no keys; let the engine that wrote the file write it with filters",
            )
        if footer.version not in spec.VERSIONS:
            raise UnsupportedError(
                f"file version {'.'.join(map(str, footer.version))}; 0.11 and 0.12 are known",
                path=footer.path,
                field="version",
                hint="rewrite the file with a released writer",
            )
        for before, stripe in itertools.pairwise(footer.stripes):
            if stripe.offset < before.end:
                raise CorruptFile(
                    f"stripe {stripe.ordinal} overlaps the one before it",
                    path=footer.path,
                    offset=stripe.offset,
                    field=stripe.field,
                    hint="the file is damaged; get it from its source again",
                )
        self.file = file
        self.footer = footer
        self.gone: dict[int, set[int]] = {}
        self.bytes_to_decode = 0

    def _count(self) -> None:
        streams = [
            (s.offset, s.length)
            for stripe in self.footer.stripes
            for s in self.file.stripe_footer(stripe).streams
            if s.position in self.gone.get(stripe.ordinal, ())
        ]
        self.bytes_to_copy = kept_bytes(self.footer, streams)

    def verify(self, written: Source, layout: Layout, filters: dict[tuple[int, str, int], int]) -> None:
        """Re-read the finished file: every stripe has the streams that were planned, and the new filters' bytes, by
        their digests (XXH64)."""
        again = Footer(written)
        if len(again.stripes) != len(self.footer.stripes) or again.rows != self.footer.rows:
            raise WriteError("the footer that was written isn't the one that was planned")
        for old, stripe, (offset, new) in zip(self.footer.stripes, again.stripes, layout.stripes, strict=True):
            if (stripe.offset, stripe.index_length, stripe.data_length) != (
                offset,
                new.index_length,
                new.data_length,
            ):
                raise WriteError(f"stripe {stripe.ordinal} isn't where it was planned")
            gone = self.gone.get(stripe.ordinal, set())
            before = self.file.stripe_footer(old)
            after = again.stripe_footer(stripe)
            kept = [(s.kind, s.column, s.length) for s in before.streams if s.position not in gone]
            planned = [(stripe.ordinal, s.kind, s.column) in filters for s in after.streams]
            added = list(itertools.compress(after.streams, planned))
            rest = [s for s, new in zip(after.streams, planned, strict=True) if not new]
            if [(s.kind, s.column, s.length) for s in rest] != kept:
                raise WriteError(f"stripe {stripe.ordinal} lost or gained a stream")
            for stream in added:
                digest = kernels.xxh64(again.read_stream(stream, stripe))
                if digest != filters[stripe.ordinal, stream.kind, stream.column]:
                    raise WriteError(f"the filters at {stream.offset} aren't the ones that were built")


@dataclass(slots=True, kw_only=True)
class _StripeFilters:
    """The filters that were built for one stripe."""

    streams: list[NewStream]
    changes: list[FilterChange]


class AddDraft(_Change):
    """Filters for chosen columns, built from their values, one for each row group."""

    def __init__(
        self, file: OrcFile, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False
    ) -> None:
        super().__init__(file)
        if rule.variant is not None:
            raise UsageError("ORC has no such variants", path=self.footer.path, hint="leave --variant out")
        self.rule = rule
        self.chosen = [file.footer.types[c.index] for c in columns]
        for orc in self.chosen:
            self._refuse(orc)
        if not self.footer.stride:
            raise UnsupportedError(
                "the file has no row index, and readers look at filters only together with it",
                path=self.footer.path,
                field="rowIndexStride",
                hint="write the file with a row index (orc.create.index)",
            )
        repeated = any(t.kind in REPEATED for c in self.chosen for t in self.footer.above(c))
        count = rule.ndv or self.footer.stride
        count = count if repeated else min(count, self.footer.stride)  # a row has a value
        self.bits, self.k = size_for(count, rule.fpp)
        if rule.max_bytes is not None and self.bits > rule.max_bytes * 8:
            self.bits = max(rule.max_bytes // 8, 1) * 64
            self.k = functions_for(count, self.bits)
        self.replace = replace
        self._stopped = False
        self._local = threading.local()
        self._ahead: Ahead[_StripeFilters] | None = None
        self.mended: str | None = None
        bad = bad_writer(self.footer)
        self._todo = {
            s.ordinal: [c for c in self.chosen if not (missing and not bad and self._present(s, c))]
            for s in self.footer.stripes
            if s.rows
        }
        estimate = [self._estimate(s, c) for s in self.footer.stripes for c in self._todo.get(s.ordinal, ())]
        self._dropped = self._drop_untrusted() if bad else []
        self.estimate = (*estimate, *self._dropped)
        self._count()
        groups = sum(self.footer.row_groups(s) for s in self.footer.stripes)
        streams = 2 if rule.kind == "both" else 1
        self.new_bytes_bound = (
            streams * len(self.chosen) * groups * (self.bits * 5 // 4 // 8 + _ENTRY_BOUND)
            + sum(s.footer_length for s in self.footer.stripes)
            + (len(self.footer.stripes) + 1) * _FOOTER_GROWTH * (len(self.chosen) + 1)
            + self.footer.file_bytes
            - self.footer.footer_at
        )

    def _refuse(self, orc: OrcType) -> None:
        reason = self.file.unfilterable.get(orc.id)
        if orc.kind == "BOOLEAN":
            raise UsageError(
                f"column {orc.label} is {reason}",
                path=self.footer.path,
                hint="leave it out of --columns",
            )
        check_name(self.footer, orc)
        if reason is not None:
            raise UnsupportedError(
                f"column {orc.path} is {reason}",
                path=self.footer.path,
                field=f"types[{orc.id}]",
                hint="leave it out of --columns",
            )

    def _present(self, stripe: Stripe, orc: OrcType) -> list[Stream]:
        """The filters that a column has in a stripe."""
        return [s for s in self.file.stripe_footer(stripe).of_column(orc.id) if s.kind in KINDS]

    def _estimate(self, stripe: Stripe, orc: OrcType) -> FilterChange:
        streams = self.file.stripe_footer(stripe)
        if streams.find("ROW_INDEX", orc.id) is None:
            raise UnsupportedError(
                f"column {orc.path} has no row index in stripe {stripe.ordinal}: readers look at filters only "
                "together with it",
                path=self.footer.path,
                offset=stripe.offset,
                field=stripe.field,
            )
        if orc.id >= len(streams.message.columns):
            raise CorruptFile(
                f"stripe {stripe.ordinal} has {len(streams.message.columns)} encodings, none for column {orc.path}",
                path=self.footer.path,
                offset=stripe.offset,
                field=f"{stripe.field}.footer",
                hint="the file is damaged; get it from its source again",
            )
        present = self._present(stripe, orc)
        if present and not self.replace:
            raise FilterExists(
                f"column {orc.path} has filters in stripe {stripe.ordinal} already",
                path=self.footer.path,
                offset=present[0].offset,
                field=f"{stripe.field}.streams[{present[0].position}]",
                hint="--replace builds new ones in place of all present ones",
            )
        self.gone.setdefault(stripe.ordinal, set()).update(s.position for s in present)
        self.bytes_to_decode += _data_bytes(streams, orc)
        return FilterChange(
            stripe=stripe.ordinal,
            row_group=None,
            filters=self.footer.row_groups(stripe),
            column=orc.path,
            action="replace" if present else "add",
            bitset_bytes=self.bits // 8,
            target_fpp=self.rule.fpp,
            source="stripe",
        )

    def _drop_untrusted(self) -> list[FilterChange]:
        """Readers ignore every filter of a bad writer's file, by its software version; ours have to be believed.

        So the version says who wrote the filters, and the other columns' wrong ones, which nobody uses, go.
        """
        old = spec.text(self.footer.message.software_version) or "unknown"
        release, dash, rest = old.partition("-")  # readers look at what is before the dash
        self.mended = f"{release} (filters by bloomcli {__version__}){dash}{rest}"
        chosen = {c.id for c in self.chosen}
        dropped = []
        for streams, stream in self.file.filter_streams(None):
            if stream.column not in chosen:
                self.gone.setdefault(streams.stripe.ordinal, set()).add(stream.position)
                dropped.append(removal(self.file, streams, stream))
        return dropped

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Stripe by stripe: what was there, the new filters, the new stripe footer."""
        layout = Layout(self.footer, self.mended)
        changes: list[FilterChange] = list(self._dropped)
        filters: dict[tuple[int, str, int], int] = {}
        jobs = (Job(self._memory(s), partial(self._build, s, tick)) for s in self.footer.stripes)
        with Ahead(jobs, threads, _held, most=threads + 1) as ahead:
            self._ahead = ahead
            try:
                for stripe in self.footer.stripes:
                    ahead.begin()
                    yield from layout.before(stripe)
                    built = ahead.take()
                    for stream in built.streams:
                        filters[stripe.ordinal, stream.kind, stream.column] = kernels.xxh64(stream.data)
                    changes += built.changes
                    gone = self.gone.get(stripe.ordinal, set())
                    new = rebuild(self.footer, self.file.stripe_footer(stripe), gone, built.streams)
                    del built  # it is in the new stripe, compressed
                    yield from layout.add(new)
            except BaseException:
                self._stopped = True
                raise
        yield from layout.tail()
        self._built = Built(
            changes=tuple(changes),
            bytes_decoded=self.bytes_to_decode,
            remarks=ahead.remarks,
            verify=lambda written: self.verify(written, layout, filters),
        )

    def failed(self) -> bool:
        """Some stripe could not be decoded."""
        return self._ahead is not None and self._ahead.failed()

    def _memory(self, stripe: Stripe) -> int:
        """Bytes that a stripe's filters take at most: built, encoded, compressed."""
        columns = len(self._todo.get(stripe.ordinal, ()))
        streams = 2 if self.rule.kind == "both" else 1
        return (streams + 1) * columns * self.footer.row_groups(stripe) * (self.bits // 8 + _ENTRY_BOUND)

    def _build(self, stripe: Stripe, tick: Tick) -> _StripeFilters:
        """Decode a stripe and build its filters. Each thread has a reader of its own."""
        todo = self._todo.get(stripe.ordinal)
        if not todo:
            return _StripeFilters(streams=[], changes=[])
        reader: values.StripeReader | None = getattr(self._local, "reader", None)
        if reader is None:
            reader = self._local.reader = values.StripeReader(self.file.source, self.footer, self.chosen)
        built: dict[int, list[KirschMitzenmacherFilter]] = {c.id: [] for c in todo}
        counts = dict.fromkeys(built, 0)
        for group in reader.row_groups(stripe):
            if self._stopped:
                break
            for column, filters in built.items():
                hashed = group[column]
                bits = KirschMitzenmacherFilter.empty(self.bits, self.k)
                bits.insert_hashes(hashed.hashes, hashed.count)
                if hashed.has_zero:
                    bits.insert_hashes(values.zero_hashes(), 2)
                bits.insert_hashes(hashed.shifted, len(hashed.shifted) // 8)
                filters.append(bits)
                counts[column] += hashed.count
        streams = self.file.stripe_footer(stripe)
        tick(sum(_data_bytes(streams, c) for c in todo))
        return _StripeFilters(
            changes=[self._changed(stripe, c, built[c.id], counts[c.id]) for c in todo],
            streams=[s for c in todo for s in self._streams(c, built.pop(c.id))],
        )

    def _streams(self, orc: OrcType, filters: list[KirschMitzenmacherFilter]) -> list[NewStream]:
        new = [NewStream(kind=UTF8, column=orc.id, data=encode(UTF8, filters))]
        if self.rule.kind == "both" and sound_for_old_readers(self.footer, orc):
            new.append(NewStream(kind=ORIGINAL, column=orc.id, data=encode(ORIGINAL, filters)))
        return new

    def _changed(
        self, stripe: Stripe, orc: OrcType, filters: list[KirschMitzenmacherFilter], count: int
    ) -> FilterChange:
        rate = max((f.fpp for f in filters), default=0.0)
        replaced = any(
            s.position in self.gone.get(stripe.ordinal, ()) for s in self.file.stripe_footer(stripe).of_column(orc.id)
        )
        return FilterChange(
            stripe=stripe.ordinal,
            row_group=None,
            filters=len(filters),
            column=orc.path,
            action="replace" if replaced else "add",
            bitset_bytes=self.bits // 8,
            values=count,
            fpp=rate,
            target_fpp=self.rule.fpp,
            misses_target=rate > self.rule.fpp,
            source="stripe",
        )


def _held(built: _StripeFilters) -> int:
    return 2 * sum(len(stream.data) for stream in built.streams)  # they are compressed before they are written


def _data_bytes(streams: StripeFooter, orc: OrcType) -> int:
    return sum(s.length for s in streams.of_column(orc.id) if s.kind not in KINDS)


def removal(file: OrcFile, streams: StripeFooter, stream: Stream) -> FilterChange:
    """A filter stream that goes."""
    known = stream.column < len(file.footer.types)
    return FilterChange(
        stripe=streams.stripe.ordinal,
        row_group=None,
        filters=file.footer.row_groups(streams.stripe),
        column=file.footer.types[stream.column].label if known else f"column {stream.column}",
        action="remove",
        bitset_bytes=None,
        old_bitset_bytes=file.bitset_bytes(streams, stream),
    )


class RemoveDraft(_Change):
    """Filters taken out."""

    def __init__(self, file: OrcFile, columns: set[int] | None) -> None:
        super().__init__(file)
        estimate = []
        for stripe in self.footer.stripes:
            streams = file.stripe_footer(stripe)
            gone = [s for s in streams.streams if s.kind in KINDS and (columns is None or s.column in columns)]
            self.gone[stripe.ordinal] = {s.position for s in gone}
            estimate += [removal(file, streams, s) for s in gone]
        self.estimate = tuple(estimate)
        self._count()
        self.new_bytes_bound = (
            self.footer.file_bytes
            - self.footer.footer_at
            + sum(s.footer_length for s in self.footer.stripes)
            + (len(self.footer.stripes) + 1) * _FOOTER_GROWTH
        )

    def pieces(self, threads: int, tick: Tick) -> Pieces:
        """Nothing has to be read but the stripes' footers."""
        del threads, tick
        layout = Layout(self.footer)
        for stripe in self.footer.stripes:
            yield from layout.before(stripe)
            streams = self.file.stripe_footer(stripe)
            yield from layout.add(rebuild(self.footer, streams, self.gone[stripe.ordinal], ()))
        yield from layout.tail()
        self._built = Built(
            changes=self.estimate,
            bytes_decoded=0,
            verify=lambda written: self.verify(written, layout, {}),
        )
