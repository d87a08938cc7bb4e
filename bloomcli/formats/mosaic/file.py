"""An open Mosaic file, with the operations of all commands."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from bloomcli import kernels, limits
from bloomcli.formats.answer import WRONG, Bits, Contents, Lookup, ReadBudget, UnitFacts
from bloomcli.formats.base import FilterBounds, FilterProblem
from bloomcli.formats.located_file import LocatedFile, delegated
from bloomcli.formats.mosaic import describe, dictionary, schema, statistics
from bloomcli.formats.mosaic.bloom_filter import Filters, unfilterable
from bloomcli.formats.mosaic.footer import Footer, RowGroup
from bloomcli.formats.mosaic.schema import COMPOUND, MosaicColumn
from bloomcli.model.file import Column
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal, not_boolean


class MosaicFile(LocatedFile):
    """An open Mosaic file. Opening reads footer, schema and row-group index; filters are read on demand. `FilterFile`
    says what its methods do."""

    format = "mosaic"
    footer: Footer
    filters: Filters

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = Footer(source)
        self.filters = Filters(self.footer)
        self.rows = sum(group.rows for group in self.footer.row_groups)
        self.row_group_count = len(self.footer.row_groups)
        self.column_count = len(self.footer.columns)

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """Version, schema and buckets."""
        return describe.details(self.footer)

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Every column, in name-sorted order."""
        return [schema.column_of(c) for c in self.footer.columns]

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """The columns that aren't lists or maps."""
        return [
            replace(schema.column_of(c), unfilterable=unfilterable(c))
            for c in self.footer.columns
            if c.kind not in COMPOUND
        ]

    def literal_column(self, column: Column) -> Column:
        return schema.literal_column(self.footer.columns[column.index])

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the facts of each row group. A column's bytes are those of its bucket, which is read as a whole."""
        budget = ReadBudget(limits.PROBED_DICTIONARIES_MAX_BYTES)
        mosaic = self.footer.columns[column.index]
        typed = schema.literal_column(mosaic)
        lookups = [self._lookup(literal, mosaic) for literal in literals]
        hashed = [value for lookup in lookups for value in lookup.hashes]
        groups = [g for g in self.footer.row_groups if units is None or g.ordinal in units]
        self.source.will_read(self.filters.ranges_to_look_up(column.index, hashed, groups))
        for group in groups:
            yield self.unit(group, mosaic, len(hashed))._replace(
                lookups=lookups,
                stats_skip=statistics.skips(group, literals, mosaic, typed),
                dictionary_excludes=dictionary.lookup_of(self.footer, group, mosaic, budget),
            )

    def unit(self, group: RowGroup, mosaic: MosaicColumn, hashes: int) -> UnitFacts:
        """The facts of a row group, for lookups of a number of hashes. A column's bytes are those of its bucket."""
        location, own = self.filters.preferred(group, mosaic.index), statistics.bound_hashes(group, mosaic)
        bits: Bits | None = None
        problem = None
        if location is not None:
            try:
                bits = self.filters.load_for(location, hashes + len(own))
                if not all(map(bits.check, own)):
                    bits, problem = None, WRONG
            except FilterProblem as error:
                bits, problem = None, error.reason
        low, high = statistics.bounds(group, mosaic)
        contents = Contents.VALUES if group.non_null(mosaic.index) else Contents.ONLY_NULLS
        return UnitFacts(
            row_group=group.ordinal,
            rows=group.rows,
            chunk_bytes=group.bucket_bytes(mosaic.bucket),
            row_group_bytes=group.data_bytes,
            contents=contents if group.rows else Contents.NOTHING,
            bits=bits,
            problem=problem,
            low=low,
            high=high,
        )

    def row_group_rows(self) -> Sequence[int]:
        return [group.rows for group in self.footer.row_groups]

    indexed_column = delegated("index_input", "indexed_column", "footer")

    def _lookup(self, literal: Literal, column: MosaicColumn) -> Lookup:
        width = schema.WIDTHS.get(column.family)
        encodings = tuple(encoded[:width] for encoded in literal.encodings)
        if column.family == "BOOLEAN" and not encodings:
            raise not_boolean(literal, schema.column_of(column), self.source.path)
        unknowable = None if encodings else literal.unknowable  # filters of booleans answer
        return Lookup(literal.impossible, unknowable, encodings, tuple(map(kernels.xxh64, encodings)))

    def total_bytes(self) -> int:
        return sum(group.data_bytes for group in self.footer.row_groups)

    def without_filter(self, column: Column) -> list[int]:
        return [
            g.ordinal for g in self.footer.row_groups if g.rows and self.filters.preferred(g, column.index) is None
        ]

    def filter_bounds(self, column: Column) -> Iterator[FilterBounds]:
        """The statistics' bounds in each row group with a filter."""
        mosaic = self.footer.columns[column.index]
        for group in self.footer.row_groups:
            if self.filters.preferred(group, column.index) is not None:
                yield FilterBounds(group.ordinal, None, *statistics.bounds(group, mosaic))
