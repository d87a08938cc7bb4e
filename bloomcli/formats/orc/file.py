"""An open ORC file, with the operations of all commands."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from bloomcli import limits
from bloomcli.errors import UnsupportedError
from bloomcli.formats.answer import WRONG, Contents, Lookup, ReadBudget, UnitFacts
from bloomcli.formats.base import FilterBounds, FooterEntry
from bloomcli.formats.located_file import LocatedFile, delegated
from bloomcli.formats.orc import describe, dictionary, hashes, statistics
from bloomcli.formats.orc.bloom_filter import PROBED, Filters, LoadedStream, Location, kinds_of_option
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.schema import COMPOUND, column_of, literal_column
from bloomcli.formats.orc.table_columns import types_of_table
from bloomcli.model.file import Column, FilterFacts
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal

if TYPE_CHECKING:
    from bloomcli.formats.column_facts import ColumnFacts
    from bloomcli.model.inspect import FilterSummary
    from bloomcli.model.schema import ColumnNames


class OrcFile(LocatedFile):
    """An open ORC file. Opening reads the tail; stripe footers and filters are read on demand. `FilterFile` says what
    its methods do."""

    format = "orc"
    footer: Footer
    filters: Filters
    unfoldable = "ORC's filters are sized by the row index stride and can't be folded"

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = Footer(source)
        self.filters = Filters(self.footer)
        self.rows = self.footer.rows
        self.row_group_count = sum(self.units())
        self.stripes = len(self.footer.stripes)
        self.column_count = sum(t.kind not in COMPOUND for t in self.footer.types)
        self.created_by = self.footer.created_by

    def use_names(self, names: ColumnNames) -> None:
        self.footer.types, self.missing_columns = types_of_table(self.footer, names)

    @property
    def starts(self) -> Sequence[int]:
        """Offsets of the stripes. They move if filter streams before them are added or removed."""
        return [stripe.offset for stripe in self.footer.stripes]

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Every column but structs. Lists, maps and unions can have filters."""
        return [column_of(t) for t in self.footer.types if t.kind != "STRUCT"]

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """Columns that hold values."""
        leaves = [t for t in self.footer.types if t.kind not in COMPOUND]
        return [replace(column_of(t), unfilterable=self.filters.unfilterable.get(t.id)) for t in leaves]

    def footer_entries(self) -> Mapping[str, FooterEntry]:
        """The user metadata. Raises CorruptFile."""
        return {name: FooterEntry(value, self.footer.footer_at) for name, value in self.footer.user_metadata()}

    merged_filters = delegated("describe", "merged_filters")
    indexed_column = delegated("index_input", "indexed_column", "footer")

    def column_facts(self, columns: set[int] | None) -> Iterator[ColumnFacts]:
        """Sum up the statistics and the stripes' footers by column."""
        return describe.column_facts(self.footer, columns, self._contradictions)

    @cached_property
    def _contradictions(self) -> describe.Contradictions:
        return describe.Contradictions(self.footer)

    def compare(self, location: Location, loaded: LoadedStream) -> None:
        """Look the file's bounds up in the filters."""
        self._contradictions.compare(location.streams.stripe.ordinal, loaded)

    def literal_column(self, column: Column) -> Column:
        return literal_column(self.footer.types[column.index])

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        return describe.summary(facts)

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the facts of each row group. Its bytes are its share of its stripe."""
        orc = self.footer.types[column.index]
        typed = literal_column(orc)
        encrypted = orc.id in self.footer.encrypted_columns
        blind = encrypted or orc.fault is not None
        budget = ReadBudget(limits.PROBED_DICTIONARIES_MAX_BYTES)
        hashed = orc.kind in PROBED and not blind
        lookups = [
            Lookup(
                literal.impossible,
                literal.unknowable or hashes.why_hashed_otherwise(literal.encodings, orc),
                literal.encodings,
                tuple(hashes.encoded_hash(form, orc, typed) for form in literal.encodings) if hashed else (),
            )
            for literal in literals
        ]
        self.footer.will_read_stripes()
        stripes = [s for s in self.footer.stripes if units is None or s.ordinal in units]
        self.source.will_read(self.filters.ranges_to_look_up(orc.id, stripes))
        for stripe in stripes:
            streams = self.footer.stripe_footer(stripe)
            loaded, problem = self.filters.usable(stripe, orc)
            index = self.filters.statistics(streams, orc.id)
            entries = dictionary.entries_of(self.footer, streams, orc, budget)
            chunk = sum(s.length for s in self.filters.value_streams(streams, orc.id))
            for group, (rows, stats) in enumerate(zip(self.footer.units(stripe), index, strict=True)):
                bits = loaded.filters[group] if loaded is not None and self.footer.stride else None
                wrong = bits is not None and any(statistics.missing_bounds(stats, orc, typed, bits))
                usable = stats is not None and not blind and orc.kind not in COMPOUND
                low, high = statistics.comparable_bounds(stats, orc) if usable else (None, None)
                yield UnitFacts(
                    stripe=stripe.ordinal,
                    row_group=group,
                    rows=rows,
                    chunk_bytes=chunk * rows // stripe.rows,
                    row_group_bytes=stripe.data_length * rows // stripe.rows,
                    contents=Contents.VALUES if statistics.has_values(stats) else Contents.ONLY_NULLS,
                    type_fault=orc.fault,
                    encrypted=encrypted,
                    bits=None if wrong else bits,
                    problem=WRONG if wrong else problem,
                    lookups=lookups,
                    stats_skip=statistics.skips(stats if usable else None, (low, high), literals, typed),
                    dictionary_excludes=None if encrypted else dictionary.lookup_of(entries, stats, orc, typed),
                    low=low,
                    high=high,
                )

    def row_group_rows(self) -> Sequence[int]:
        """The rows of each stripe."""
        return [stripe.rows for stripe in self.footer.stripes]

    @property
    def unchangeable(self) -> UnsupportedError | None:
        """The error about an unknown version of the format, if the file has one."""
        return self.footer.version_error

    def ranges_to_examine(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """The filters, and the row indexes that they are compared with."""
        for streams, stream in self.filters.locations(columns):
            yield stream.range
            index = streams.find("ROW_INDEX", stream.column)
            if index is not None:
                yield index.range

    def total_bytes(self) -> int:
        return sum(s.data_length for s in self.footer.stripes)

    def without_filter(self, column: Column) -> list[int]:
        """Stripes with rows in which a column has no filters."""
        self.footer.will_read_stripes()
        return [
            s.ordinal
            for s in self.footer.stripes
            if s.rows and self.filters.location(column.index, 0, s.ordinal) is None
        ]

    def filter_bounds(self, column: Column) -> Iterator[FilterBounds]:
        """The row index's bounds in each row group with a filter."""
        orc = self.footer.types[column.index]
        for streams, stream in self.filters.locations({column.index}):
            if stream is self.filters.preferred(streams, orc.id):
                for group, stats in enumerate(self.filters.statistics(streams, orc.id)):
                    if stats is not None:
                        yield FilterBounds(group, streams.stripe.ordinal, *statistics.bounds(stats, orc))

    def uncounted_nulls(self, column: Column) -> Iterator[tuple[int | None, int]]:
        self.footer.will_read_stripes()
        yield from self.part("proof").uncounted_nulls(self.filters, column.index)

    def units(self) -> Sequence[int]:
        return [self.footer.row_groups(s) for s in self.footer.stripes]

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """BLOOM_FILTER_UTF8; for the option "both" also BLOOM_FILTER, where it means the same to old readers."""
        return kinds_of_option(self.footer, self.footer.types[column.index], kind)
