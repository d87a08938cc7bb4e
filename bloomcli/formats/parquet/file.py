"""A Parquet file with the operations of the commands: reading, checking and changing its filters.

A filter alone in a file is a `BareFilter`: header and bitset, nothing else. Parquet's test data has such files.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bloomcli import kernels, limits
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import CorruptFile, KeyMissing, UnsupportedError, UsageError
from bloomcli.formats.answer import Contents, Lookup, ReadBudget, UnitFacts
from bloomcli.formats.base import FilterBounds, FilterFile, FooterEntry, Plan, Repair
from bloomcli.formats.keys import Keys
from bloomcli.formats.located_file import LocatedFile
from bloomcli.formats.parquet import describe, page_index, statistics, values
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import (
    DRAFT_REASON,
    Filters,
    LoadedFilter,
    ProbedFilter,
    draft_hash,
    filter_class,
    parse_header,
    unfilterable,
    unknown_kind,
    unreadable,
)
from bloomcli.formats.parquet.dictionary import lookup_of
from bloomcli.formats.parquet.footer import Footer, extension_of, first_page, read_stored
from bloomcli.formats.parquet.index_input import end_ranges
from bloomcli.formats.parquet.lookups import lookups_of
from bloomcli.formats.parquet.pages import header_ranges
from bloomcli.formats.parquet.schema import columns_of_table, schema_tree
from bloomcli.formats.parquet.spec import Location
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.file import Column, ColumnChunk, FilterFacts, IndexEntry, PageFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal, exclusions
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.formats.base import Tree
    from bloomcli.formats.column_search import ColumnSearch
    from bloomcli.model.inspect import FilterDump
    from bloomcli.model.schema import ColumnNames, RowLineage, SchemaNode
    from bloomcli.storage.sources import ExtendedSource


_VARIANT_NULL: Final = b"\0"
_LEGACY: Final = b"org.apache.spark.legacy"
"""The beginning of Spark's keys in files with dates of the Julian calendar, or times before 1900 of a zone's."""


class ParquetFile(LocatedFile):
    """An open Parquet file. Opening reads the tail and the footer; filters are read on demand."""

    format = "parquet"
    unrepairable = None
    footer: Footer
    filters: Filters

    def __init__(self, source: Source, keys: Keys | None = None) -> None:
        self.footer, self.source = _opened(source, keys)
        self.filters = Filters(self.source, self.footer)
        self.rows = self.footer.rows
        self.row_group_count = self.footer.row_group_count
        self.column_count = len(self.footer.columns)
        self.created_by = self.footer.created_by
        encryption = self.footer.encryption
        if encryption is not None:
            self.encrypted_alike = encryption.columns_like_footer

    def use_names(self, names: ColumnNames) -> None:
        """Replace the paths of the leaf columns by the table's."""
        self.footer.columns, self.missing_columns = columns_of_table(self.footer.top, self.footer.columns, names)

    def companion(self, output: str) -> tuple[str, str] | None:
        """The key material that parquet-java stored in a file of its own."""
        encryption = self.footer.encryption
        if encryption is None or not encryption.external_material:
            return None
        from bloomcli.formats.parquet.encryption import material_path

        return material_path(self.source.path), material_path(output)

    def with_lineage(self, lineage: RowLineage) -> ExtendedSource | None:
        """The file with Iceberg's row lineage columns; None if it has them already."""
        from bloomcli.formats.parquet import row_lineage

        return row_lineage.with_lineage(self.source, self.footer, lineage, appends=self.appends_only)

    @property
    def details(self) -> tuple[tuple[str, str], ...]:
        """How the file is encrypted, its calendar, and the footer's extension."""
        encryption, extension = self.footer.encryption, extension_of(self.footer)
        details = () if encryption is None else encryption.details()
        if any((pair.binary("key") or b"").startswith(_LEGACY) for pair in self.footer.key_values()):
            details += (
                ("calendar", "Spark's legacy mode: it reads old dates and times as others than those stored"),
            )
        if extension is None:
            return details
        return *details, ("footer extension", f"field 32767, {plural(extension.bytes, 'byte')}")

    @property
    def columns(self) -> Sequence[Column]:
        """Leaf columns in schema order."""
        return self.footer.columns

    @cached_property
    def leaves(self) -> Sequence[Column]:
        """The columns that can have a filter: in Parquet, all leaf columns."""
        return [replace(c, unfilterable=why) if (why := unfilterable(c)) else c for c in self.footer.columns]

    def footer_entries(self) -> Mapping[str, FooterEntry]:
        """The writer's own keys and values."""
        entries = {}
        for pair in self.footer.key_values():
            key, value, span = pair.text("key"), pair.binary("value"), pair.span("value")
            if key is not None and value is not None and span is not None:
                entries[key] = FooterEntry(value, self.footer.start + span.end - len(value))
        return entries

    def pages(self, column: Column) -> Iterator[PageFacts]:
        """The page headers of the column's chunks."""
        return page_index.headers(self.source, self.footer, column.index)

    def index(self, column: Column) -> Iterator[IndexEntry]:
        """The entries of the column index and the offset index."""
        return page_index.entries(self.source, self.footer, column.index)

    def schema_tree(self) -> Iterator[SchemaNode]:
        """Every element of the schema."""
        orders = self.footer.orders
        for node in schema_tree(self.footer.top):
            order = orders[node.column] if node.column is not None and node.column < len(orders) else None
            usual = order in {None, "TYPE_ORDER"}
            yield node if usual else replace(node, attributes=(("order", str(order)),))

    def footer_tree(self) -> dict[str, Tree]:
        """The whole footer."""
        return self.footer.tree()

    def indexed_facts(self, columns: set[int] | None) -> Iterator[tuple[int, FilterFacts]]:
        """`facts`, each with the ordinal of its column."""
        self.source.will_read(self.filters.ranges(columns))
        for key, offset, metadata in self.footer.filtered(columns):
            facts = describe.examined_facts(self.filters, key, offset, metadata)
            if facts is None:
                yield from self.facts_of(self.footer.chunk(key, metadata))
            else:
                yield key.column, facts

    @property
    def unchangeable(self) -> UnsupportedError | None:
        """The error about a signed footer, if it is signed."""
        return self.footer.signed_error

    def why_unfilterable(self, column: Column) -> str | None:
        """Why filters can't be added to a column: it is encrypted, or compressed with an unsupported codec."""
        return None if self.unchangeable else self.why_unreadable(column)  # a signed file can't be changed at all

    def why_unreadable(self, column: Column) -> str | None:
        """Why a column's values can't be read: it is encrypted, or compressed with an unsupported codec."""
        return unreadable(self.footer, column)

    def with_known_filters(self, columns: set[int] | None) -> set[int] | None:
        """Return columns. Raises UnsupportedError for one whose metadata are encrypted by a key that isn't given."""
        encryption = self.footer.encryption
        if encryption is None or encryption.plaintext_footer:
            return columns
        for index, path in encryption.closed.items():
            if columns is None or index in columns:
                raise KeyMissing(
                    f"column {path} is encrypted, and its key isn't given",
                    path=self.source.path,
                    hint=encryption.hint(path),
                )
        return columns

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits."""
        self.with_known_filters({column.index})
        return super().dump(column, row_group, stripe)

    @property
    def unverified(self) -> bool:
        """Whether the footer is signed, and its key isn't given."""
        return self.footer.signed_error is not None

    def needs_key(self, column: Column) -> bool:
        """Whether a column is encrypted by a key that isn't known."""
        encryption = self.footer.encryption
        return encryption is not None and column.index in encryption.closed

    def is_encrypted(self, column: Column) -> bool:
        """Whether a column is encrypted by a key that is known."""
        encryption = self.footer.encryption
        return encryption is not None and any(key.column == column.index for key in encryption.ciphers)

    def properties(self, column: Column) -> frozenset[str]:
        """What not every reader copes with in a leaf: encryption, ALP, a place in a VARIANT."""
        from bloomcli.rules.reader_table import ALP, ENCRYPTED_COLUMN, VARIANT_FIELD

        keys = self.footer.chunk_keys({column.index}) if column.physical in {"FLOAT", "DOUBLE"} else ()
        flags = {
            ENCRYPTED_COLUMN: self.is_encrypted(column),
            ALP: self.footer.encoded_by(ALP, keys),
            VARIANT_FIELD: column.variant_path is not None,
        }
        return frozenset(name for name, flag in flags.items() if flag)

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the facts of each chunk of the column."""
        lookups = lookups_of(literals, column)
        budget = ReadBudget(limits.PROBED_DICTIONARIES_MAX_BYTES)
        hashed = [value for lookup in lookups for value in lookup.hashes]

        def chunks() -> Iterator[ColumnChunk]:
            every = self.footer.chunks({column.index})
            return (chunk for chunk in every if units is None or chunk.row_group in units)

        self.filters.will_look_up(lambda: ((c, [*hashed, *statistics.hashes(c)]) for c in chunks()))
        for chunk in chunks():
            filter_, problem = self._usable(chunk, len(hashed))
            draft = filter_ is not None and filter_.header.draft
            yield self._unit(chunk, filter_, problem)._replace(
                lookups=lookups_of(literals, column, draft=True) if draft else lookups,
                stats_skip=exclusions(literals, chunk.min_value, chunk.max_value, chunk.column),
                dictionary_excludes=(
                    lookup_of(self.filters, chunk, budget)
                    if chunk.compressed_bytes > self.chunks_read_whole
                    else None
                ),
            )

    def other_types(self, column: Column) -> Mapping[int, str]:
        """The row groups in which the sibling `value` of a shredded VARIANT's leaf isn't known to have only nulls.

        Source: VariantShredding.md, Data Skipping. The VARIANT null, a byte of 0, equals no value. Fields that are
        shredded are never in the `value` of an object that they belong to.
        """
        if column.untyped is None:
            return {}
        reasons, name = {}, self.columns[column.untyped].path
        chunks = zip(self.footer.chunks({column.index}), self.footer.chunks({column.untyped}), strict=True)
        for typed, chunk in chunks:
            others = statistics.non_null_values(chunk)
            if chunk.encrypted or chunk.null_count is None or chunk.num_values != typed.num_values:
                reasons[chunk.row_group] = f"{name} may have values of other types"
            elif others and not chunk.min_value == chunk.max_value == _VARIANT_NULL:
                reasons[chunk.row_group] = f"{name} has {plural(others, 'value')} of other types"
        return reasons

    def page_reads(self, column: Column, unit: int, stop: Stop) -> tuple[int, int] | None:
        """The bytes that a lookup reads without and with a page index."""
        from bloomcli.formats.parquet.repair import page_reads

        return page_reads(self.filters, column, unit, stop)

    def _usable(self, chunk: ColumnChunk, hashes: int) -> tuple[ProbedFilter | None, str | None]:
        """A chunk's filter for the lookup of `hashes` hashes, or why it can't be used; see `Filters.usable`."""
        return self.filters.usable(chunk, lambda c: self.filters.load_for(c, hashes + statistics.MOST))

    def search(self, column: Column) -> ColumnSearch:
        """The search for rows with values of a column, by filters, statistics, dictionaries and the page index."""
        from bloomcli.formats.parquet.search import ParquetSearch

        return ParquetSearch(self, self.filters, column, self.unit_of)

    def row_group_rows(self) -> Sequence[int]:
        """The rows of each row group, by the footer."""
        return [self.footer.row_group(i).rows for i in range(self.row_group_count)]

    def end_ranges(self, columns: Sequence[Column]) -> Sequence[tuple[int, int]]:
        """The footer and the page indexes, where row groups are large."""
        return end_ranges(self.source, self.footer, {column.index for column in columns})

    def unit_of(self, chunk: ColumnChunk, hashes: int) -> UnitFacts:
        """The facts of a chunk, without lookups: `hashes` hashes are looked up in batches later."""
        filter_, problem = self._usable(chunk, hashes)
        if filter_ is not None and filter_.header.draft:  # it has another hash function
            filter_ = None
        return self._unit(chunk, filter_, problem)

    def _unit(self, chunk: ColumnChunk, filter_: ProbedFilter | None, problem: str | None) -> UnitFacts:
        return UnitFacts(
            row_group=chunk.row_group,
            rows=self.footer.row_group(chunk.row_group).rows,
            chunk_bytes=chunk.compressed_bytes,
            row_group_bytes=self.footer.row_group_bytes(chunk.row_group),
            contents=self._contents(chunk),
            encrypted=chunk.encrypted and not chunk.num_values,  # its metadata are encrypted too
            bits=None if filter_ is None else filter_.bits,
            problem=problem,
        )

    def _contents(self, chunk: ColumnChunk) -> Contents:
        if not chunk.num_values:
            # a row has a value or a null in each column: with rows, the number of values is wrong
            return Contents.VALUES if self.footer.row_group(chunk.row_group).rows else Contents.NOTHING
        only_nulls = chunk.null_count is not None and chunk.null_count >= chunk.num_values
        return Contents.ONLY_NULLS if only_nulls else Contents.VALUES

    def unit_starts(self) -> Sequence[int]:
        """The offset of the first page of each row group's first column, where engines take a row group to start."""
        firsts = [self.footer.metadata(key) for key in self.footer.chunk_keys({0})]
        return [
            first_page(metadata.data_page_offset, metadata.dictionary_page_offset)[0]
            for metadata in firsts
            if metadata.data_page_offset is not None
        ]

    def total_bytes(self) -> int:
        """Compressed bytes of all row groups."""
        return sum(self.footer.row_group_bytes(i) for i in range(self.row_group_count))

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Yield the filters, and findings about them and their chunks, about chunks that had a filter, and about the
        footer's number of rows. Raises CorruptFile for a column that readers refuse, with a filter or without."""
        check = self.part("check")
        self.source.will_read(self.ranges_to_examine(columns))
        for key in self.footer.chunk_keys(columns):
            metadata = self.footer.metadata(key)
            offset, length = metadata.bloom_filter_offset, metadata.bloom_filter_length
            if offset is None and length is None:
                continue
            chunk = self.footer.chunk(key, metadata)
            if chunk.bloom_filter_offset is None:
                yield from check.without_location(chunk, offset, length)
                continue
            yield from self.examine_one(check, chunk)
            damaged = check.page_headers(self.filters, chunk)
            if damaged is not None:
                yield damaged
        for key in self.footer.chunk_keys(columns):
            self.footer.check(key, self.footer.metadata(key))
        yield from check.overlaps(self.filters, columns)
        yield from check.closed(self.filters, columns)
        yield from check.unverified(self.filters)
        yield from check.rows(self.filters)

    def ranges_to_examine(self, columns: set[int] | None) -> Iterator[tuple[int, int]]:
        """The filters, and the first page headers of their chunks."""
        yield from self.filters.ranges(columns)
        for chunk in self.filters.locations(columns):
            yield from header_ranges(chunk)

    def without_filter(self, column: Column) -> list[int]:
        """The row groups with values in which the column has no filter."""
        chunks = self.footer.chunks({column.index})
        return [c.row_group for c in chunks if c.bloom_filter_offset is None and statistics.non_null_values(c)]

    def filter_bounds(self, column: Column) -> Iterator[FilterBounds]:
        """The statistics' bounds in each row group with a filter."""
        for chunk in self.filters.locations({column.index}):
            yield FilterBounds(
                chunk.row_group, None, chunk.min_value, chunk.max_value, only_dictionary=chunk.only_dictionary_encoded
            )

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """Row groups whose filter has no normal form of an interval, although the footer promises it."""
        if not values.is_interval(column) or not self.footer.normalises_intervals:
            return ()
        return list(self.part("check").without_normal_forms(self.filters, column))

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters. Raises UnsupportedError, FilterExists, UsageError."""
        from bloomcli.formats.parquet.plan import AddPlan

        return AddPlan(self.filters, columns, rule, replace=replace, missing=missing, appends=self.appends_only)

    def differs_only_in_structures(self, other: FilterFile) -> bool:
        """Whether another file's metadata equal this file's except for statistics and page indexes."""
        if not isinstance(other, ParquetFile):
            return False
        return bool(self.part("splice").differs_only_in_structures(self.footer, other.footer))

    def plan_repair(self, columns: set[int] | None, repair: Repair) -> Plan:
        """Plan to mend or to add statistics and page indexes. Raises UnsupportedError, CorruptFile."""
        from bloomcli.formats.parquet.repair import RepairPlan

        return RepairPlan(self.filters, columns, repair, appends=self.appends_only)


def _opened(source: Source, keys: Keys | None) -> tuple[Footer, Source]:
    """The footer, and the source of the rest: the file's view in plain text if keys open parts of it."""
    start, raw, encrypted = read_stored(source)
    if not encrypted:
        footer = Footer(source.path, source.size, start, raw)
        if keys is not None and source.path in keys.files:
            raise CorruptFile(
                "the file's footer isn't encrypted, and its table's metadata have a key for it: another file is in "
                "its place",
                path=source.path,
            )
        if not footer.signed:
            footer.check_signed()
            return footer, source
    from bloomcli.formats.parquet.decryption import open_encrypted

    return open_encrypted(source, start, raw, (keys or Keys()).of_file(source.path), plaintext_footer=not encrypted)


_COLUMN: Final = Column(path="(filter)", index=0, physical="BYTE_ARRAY")


def is_bare(source: Source) -> bool:
    """Whether the file consists of a filter header of any variant and exactly its bitset."""
    if not limits.FILTER_MIN_BYTES < source.size <= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
        return False
    head = source.read_at(0, min(source.size, parquet_limits.FILTER_HEADER_MAX_BYTES))
    try:
        header = parse_header(head, Location(source.path, 0, "header"))
    except CorruptFile:
        return False
    return header.algorithm == "BLOCK" and header.header_bytes + header.num_bytes == source.size


def _refused(lacks: str) -> Callable[..., Any]:
    """An operation of bare filters that raises UnsupportedError: the file has nothing that it needs."""

    def refuse(self: BareFilter, *_: Any, **options: Any) -> Any:
        del options
        raise UnsupportedError(
            f"a bare filter: the file has {lacks}", path=self.source.path, hint="give the Parquet file itself"
        )

    return refuse


class BareFilter(FilterFile):
    """A filter whose column isn't known. Values are looked up as the bytes of their text, or as hex (0x...)."""

    format = "parquet-filter"
    rows = 0
    row_group_count = 1
    column_count = 1

    def __init__(self, source: Source) -> None:
        self.source = source
        data = source.read_at(0, source.size)
        header = parse_header(data, Location(source.path, 0, "header"))
        self._unknown = unknown_kind(header)
        raw, bitset = data[: header.header_bytes], data[header.header_bytes :]
        try:
            bits = filter_class(header.variant)(bitset)
        except ValueError as error:
            raise CorruptFile(str(error), path=source.path, offset=0, field="header.numBytes") from None
        self._loaded = LoadedFilter(0, header, raw, bits)

    @property
    def columns(self) -> Sequence[Column]:
        """The filter's only column; its name and type aren't known."""
        return [_COLUMN]

    def filtered_columns(self) -> set[int]:
        """The ordinal of the only column, which has the filter."""
        return {0}

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """The filter's facts."""
        del columns
        yield self._facts()

    def _facts(self) -> FilterFacts:
        if self._unknown is None:
            return describe.of_loaded(_COLUMN, 0, None, self._loaded, self._untrusted)
        return FilterFacts(
            row_group=0,
            column=_COLUMN.path,
            physical=_COLUMN.physical,
            offset=0,
            length=self.source.size,
            problem=self._unknown[0],
        )

    @property
    def _untrusted(self) -> str | None:
        return DRAFT_REASON if self._loaded.header.draft else None

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """The filter's bits."""
        from bloomcli.model.inspect import FilterDump

        del column
        if row_group or stripe:
            raise UsageError("a bare filter has no row groups", path=self.source.path)
        header, bitset = describe.raw(self._loaded, row_group)
        return FilterDump(path=self.source.path, facts=self._facts(), header=header, bitset=bitset)

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the filter, or the reason why it can't be used. Rows, statistics and bytes aren't known."""
        del column, units
        function = draft_hash if self._loaded.header.draft else kernels.xxh64
        yield UnitFacts(
            row_group=0,
            rows=0,
            chunk_bytes=0,
            row_group_bytes=0,
            bits=self._loaded.bits if self._unknown is None else None,
            problem=None if self._unknown is None else self._unknown[0],
            lookups=[
                Lookup(v.impossible, v.unknowable, v.encodings, tuple(map(function, v.encodings))) for v in literals
            ],
            stats_skip=[None] * len(literals),
        )

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Yield the filter's facts, and a finding for each fault in its header."""
        yield from self.facts(columns)
        wrong = [] if self._unknown is None else [self._unknown]
        if self._untrusted is not None:
            wrong.append((self._untrusted, "filter-draft"))
        for reason, name in wrong:
            yield Finding(id=name, severity=Severity.ERROR, message=reason, column=_COLUMN.path, offset=0)

    def units(self) -> Sequence[int]:
        """No units: the file has no values."""
        return []

    deep = _refused("no values to check it against")
    plan_add = _refused("no columns to add filters for")
    plan_remove = _refused("no data to leave")
    plan_fold = _refused("no data")
    plan_repair = _refused("no columns to repair")
