"""A filter alone in a file: header and bitset, nothing else. Parquet's test data has such files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.filters import hashes
from bloomcli.formats.answer import Lookup, UnitFacts
from bloomcli.formats.base import DeepCheck, FilterFile, Plan, Repair, Tick
from bloomcli.formats.parquet import bloom_filter
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.bloom_filter import DRAFT_REASON, unknown_kind
from bloomcli.formats.parquet.spec import Location
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump

_COLUMN = Column(path="(filter)", index=0, physical="BYTE_ARRAY")


def is_bare(source: Source) -> bool:
    """Whether the file consists of a filter header of any variant and exactly its bitset."""
    if not limits.FILTER_MIN_BYTES < source.size <= limits.FILTER_MAX_BYTES + parquet_limits.FILTER_HEADER_MAX_BYTES:
        return False
    head = source.read_at(0, min(source.size, parquet_limits.FILTER_HEADER_MAX_BYTES))
    try:
        header = bloom_filter.parse_header(head, Location(source.path, 0, "header"))
    except CorruptFile:
        return False
    return header.algorithm == "BLOCK" and header.header_bytes + header.num_bytes == source.size


class BareFilter(FilterFile):
    """A filter whose column isn't known. Values are looked up as the bytes of their text, or as hex (0x...)."""

    format = "parquet-filter"
    rows = 0
    row_group_count = 1
    column_count = 1

    def __init__(self, source: Source) -> None:
        self.source = source
        data = source.read_at(0, source.size)
        self.header = bloom_filter.parse_header(data, Location(source.path, 0, "header"))
        self.raw = data[: self.header.header_bytes]
        self._unknown = unknown_kind(self.header)
        bitset = data[self.header.header_bytes :]
        try:
            self.bits = bloom_filter.filter_class(self.header.variant).from_bytes(bitset)
        except ValueError as error:
            raise CorruptFile(str(error), path=source.path, offset=0, field="header.numBytes") from None

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
        bare = FilterFacts(
            row_group=0,
            column=_COLUMN.path,
            physical=_COLUMN.physical,
            logical=None,
            offset=0,
            length=self.source.size,
        )
        if self._unknown is not None:
            return replace(bare, problem=self._unknown[0])
        ndv = self.bits.ndv_estimate
        return replace(
            bare,
            header_bytes=self.header.header_bytes,
            bitset_bytes=self.bits.nbytes,
            blocks=self.bits.blocks,
            algorithm=self.header.algorithm,
            hash=self.header.hash,
            compression=self.header.compression,
            ndv_estimate=ndv,
            fill=self.bits.fill,
            fpp=self.bits.fpp,
            bits_per_value=self.bits.nbytes * 8 / ndv if ndv else None,
            variant=self.header.variant,
            untrusted=DRAFT_REASON if self.header.draft else None,
        )

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """The filter's bits."""
        from bloomcli.model.inspect import FilterDump

        del column
        if row_group or stripe:
            raise UsageError("a bare filter has no row groups", path=self.source.path)
        return FilterDump(path=self.source.path, facts=self._facts(), header=self.raw, bitset=bytes(self.bits.bitset))

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the filter, or the reason why it can't be used. Rows, statistics and bytes aren't known."""
        del column, units
        function = hashes.parquet_draft if self.header.draft else hashes.parquet
        yield UnitFacts(
            row_group=0,
            rows=0,
            chunk_bytes=0,
            row_group_bytes=0,
            bits=self.bits if self._unknown is None else None,
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
        if self.header.draft:
            wrong.append((DRAFT_REASON, "filter-draft"))
        for reason, name in wrong:
            yield Finding(id=name, severity=Severity.ERROR, message=reason, column=_COLUMN.path, offset=0)

    def units(self) -> Sequence[int]:
        """No units: the file has no values."""
        return []

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Raise UnsupportedError: the file has no values to check the filter against."""
        del columns, tick, units, threads
        raise self._alone("no values to check it against")

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Raise UnsupportedError: the file has no columns."""
        del columns, rule, replace, missing
        raise self._alone("no columns to add filters for")

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Raise UnsupportedError: without its filter, the file would be empty."""
        del columns
        raise self._alone("no data to leave")

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Raise UnsupportedError: the file has no data."""
        del columns, rule
        raise self._alone("no data")

    def plan_repair(self, columns: set[int] | None, repair: Repair) -> Plan:
        """Raise UnsupportedError: the file has no columns."""
        del columns, repair
        raise self._alone("no columns to repair")

    def _alone(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"a bare filter: the file has {what}", path=self.source.path, hint="give the Parquet file itself"
        )
