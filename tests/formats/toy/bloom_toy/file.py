"""A toy file as bloom's commands see it."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bloom_toy import spec
from bloomcli import kernels
from bloomcli.errors import UsageError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.answer import Lookup, UnitFacts
from bloomcli.formats.base import DeepCheck, FilterBounds, FilterFile, Plan, Tick
from bloomcli.formats.deep_check import FilterCheck
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.file import Column, FilterFacts, Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.base import Source
from bloomcli.values.literals import Literal

if TYPE_CHECKING:
    from bloomcli.model.inspect import FilterDump


class ToyFile(FilterFile):
    """An open toy file."""

    format = "toy"

    def __init__(self, source: Source) -> None:
        self.source = source
        self.footer = spec.read_footer(source)
        self.rows = sum(self.footer.rows)
        self.row_group_count = len(self.footer.rows)
        self.column_count = len(self.footer.columns)
        self._columns = [
            Column(path=name, index=index, physical="INT64")
            if kind == spec.INTEGER
            else Column(path=name, index=index, physical="BYTE_ARRAY", logical="STRING")
            for index, (name, kind) in enumerate(self.footer.columns)
        ]

    @property
    def columns(self) -> Sequence[Column]:
        """Every column."""
        return self._columns

    def keys(self, columns: set[int] | None) -> Iterator[spec.Key]:
        """The filters of these columns, by row group, then column."""
        return (key for key in sorted(self.footer.filters) if columns is None or key[1] in columns)

    def filtered_columns(self) -> set[int]:
        """Columns that have a filter."""
        return {column for _, column in self.footer.filters}

    def load(self, key: spec.Key) -> SplitBlockFilter | str:
        """A filter, or why it can't be used."""
        at, length = self.footer.filters[key]
        if length < spec.HEADER.size or length > spec.HEADER.size + (128 << 20):
            return f"a filter of {length} bytes"
        data = self.source.read_at(at, length)
        if spec.HEADER.unpack_from(data)[0] != length - spec.HEADER.size:
            return "the header doesn't say the bitset's length"
        try:
            return SplitBlockFilter(data[spec.HEADER.size :])
        except ValueError as error:
            return str(error)

    def facts_of(self, key: spec.Key) -> FilterFacts:
        """One filter's facts."""
        column, (at, length), bits = self.columns[key[1]], self.footer.filters[key], self.load(key)
        fact = FilterFacts(
            row_group=key[0],
            column=column.path,
            physical=column.physical,
            logical=column.logical,
            offset=at,
            length=length,
            values=self.footer.rows[key[0]],
        )
        if isinstance(bits, str):
            return replace(fact, problem=bits)
        return replace(
            fact,
            header_bytes=spec.HEADER.size,
            bitset_bytes=bits.nbytes,
            blocks=bits.blocks,
            algorithm="BLOCK",
            hash="XXHASH",
            ndv_estimate=bits.ndv_estimate,
            fill=bits.fill,
            fpp=bits.fpp,
        )

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """Every filter of these columns."""
        return map(self.facts_of, self.keys(columns))

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """One filter's bits."""
        from bloomcli.model.inspect import FilterDump

        bits = self.load((row_group, column.index)) if (row_group, column.index) in self.footer.filters else None
        if stripe or not isinstance(bits, SplitBlockFilter):
            raise UsageError(f"no filter of {column.path} in row group {row_group}", path=self.source.path)
        return FilterDump(
            path=self.source.path,
            facts=self.facts_of((row_group, column.index)),
            header=spec.HEADER.pack(bits.nbytes),
            bitset=bytes(bits.bitset),
        )

    def unit_facts(
        self, column: Column, literals: Sequence[Literal], units: Container[int] | None = None
    ) -> Iterator[UnitFacts]:
        """Yield the facts of each row group."""
        lookups = [
            Lookup(lit.impossible, lit.unknowable, lit.encodings, tuple(map(kernels.xxh64, lit.encodings)))
            for lit in literals
        ]
        for group, rows in enumerate(self.footer.rows):
            if units is not None and group not in units:
                continue
            key = (group, column.index)
            bits = self.load(key) if key in self.footer.filters else None
            yield UnitFacts(
                row_group=group,
                rows=rows,
                chunk_bytes=self.footer.chunks[group][column.index][1],
                row_group_bytes=sum(size for _, size in self.footer.chunks[group]),
                bits=bits if isinstance(bits, SplitBlockFilter) else None,
                problem=bits if isinstance(bits, str) else None,
                lookups=lookups,
                stats_skip=[None] * len(lookups),
            )

    def total_bytes(self) -> int:
        """Bytes of all chunks."""
        return sum(size for group in self.footer.chunks for _, size in group)

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Yield every filter, and a finding about each that can't be read or has no bit set."""
        for fact in self.facts(columns):
            yield fact
            if fact.problem is not None:
                yield self._finding(fact, "filter-header", fact.problem)
            elif fact.fill == 0 and fact.values:
                yield self._finding(fact, "filter-all-zero", "no bit is set")

    def _finding(self, fact: FilterFacts, rule: str, message: str, missing: Sequence[str] = ()) -> Finding:
        return Finding(
            id=rule,
            severity=Severity.ERROR,
            message=message,
            row_group=fact.row_group,
            column=fact.column,
            offset=fact.offset,
            missing=tuple(missing),
        )

    def without_filter(self, column: Column) -> list[int]:
        """Row groups in which a column has no filter."""
        return [g for g, rows in enumerate(self.footer.rows) if rows and (g, column.index) not in self.footer.filters]

    def filter_bounds(self, column: Column) -> Iterator[FilterBounds]:
        """No statistics are kept: the bounds aren't known."""
        return (FilterBounds(group, None, None, None) for group, _ in self.keys({column.index}))

    def hashes(self, key: spec.Key) -> array[int]:
        """The hashes of a chunk's values."""
        return array("Q", map(kernels.xxh64, spec.values(self.source, self.footer, *key)))

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Compare every readable filter with one that is built from its column's values."""
        for key in self.keys(columns):
            bits = self.load(key)
            if (units is None or key[0] in units) and isinstance(bits, SplitBlockFilter):
                hashes, check = self.hashes(key), FilterCheck(bits)
                stored = spec.values(self.source, self.footer, *key)
                texts = [text.decode("utf-8", "backslashreplace") for text in stored]
                check.take(hashes.tobytes(), len(hashes), partial(partial, texts.__getitem__))
                yield check.result(partial(self._finding, self.facts_of(key)))
                tick(self.footer.chunks[key[0]][key[1]][1])

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """Bytes of the chunks that have filters."""
        keys = (key for key in self.keys(columns) if units is None or key[0] in units)
        return sum(self.footer.chunks[group][column][1] for group, column in keys)

    def differs_only_in_filters(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Whether another file has the same chunks, and the same filters of other columns."""

        def others(file: ToyFile) -> list[spec.Key]:
            return [] if columns is None else [key for key in file.keys(None) if key[1] not in columns]

        return (
            isinstance(other, ToyFile)
            and self.footer.encoded({}) == other.footer.encoded({})
            and others(self) == others(other)
        )

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Plan to add filters. Raises FilterExists."""
        from bloom_toy import plan

        return plan.adding(self, columns, rule, replace=replace, missing=missing)

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Plan to remove filters."""
        from bloom_toy import plan

        return plan.removing(self, set(self.keys(columns)))

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Plan to fold filters."""
        from bloom_toy import plan

        return plan.folding(self, columns, rule)
