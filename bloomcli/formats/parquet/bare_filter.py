"""A filter alone in a file: header and bitset, nothing else. Parquet's test data has such files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.filters import hashes
from bloomcli.formats.base import Answer, DeepCheck, FilterFile, Plan, SizeRule, Spread, Tick, UnitAnswers
from bloomcli.formats.parquet import variants
from bloomcli.formats.parquet.filter_header import DRAFT_REASON, unknown_kind
from bloomcli.formats.parquet.spec import Place
from bloomcli.model.file import BitTrail, Column, FilterDump, FilterFacts, FilterSummary, Finding, Severity
from bloomcli.storage.source import Source
from bloomcli.values.literals import Literal

_COLUMN = Column(path="(filter)", index=0, physical="BYTE_ARRAY")


def is_bare(source: Source) -> bool:
    """Whether the file is a filter header, of whatever variant, and exactly its bitset."""
    if not limits.FILTER_MIN_BYTES < source.size <= limits.FILTER_MAX_BYTES + limits.FILTER_HEADER_MAX_BYTES:
        return False
    head = source.read_at(0, min(source.size, limits.FILTER_HEADER_MAX_BYTES))
    try:
        header = variants.parse_header(head, Place(source.path, 0, "header"))
    except CorruptFile:
        return False
    return header.algorithm == "BLOCK" and header.header_bytes + header.num_bytes == source.size


class BareFilter:
    """One filter whose column isn't known: values are probed as the bytes of their text, or 0x..."""

    format = "parquet-filter"
    stripes: int | None = None
    details: tuple[tuple[str, str], ...] = ()
    rows = 0
    row_group_count = 1
    column_count = 1
    created_by: str | None = None
    unfoldable: str | None = None

    def __init__(self, source: Source) -> None:
        self.source = source
        data = source.read_at(0, source.size)
        self.header = variants.parse_header(data, Place(source.path, 0, "header"))
        self.raw = data[: self.header.header_bytes]
        self._unknown = unknown_kind(self.header)
        bitset = data[self.header.header_bytes :]
        try:
            self.bits = variants.filter_class(self.header.variant).from_bytes(bitset)
        except ValueError as error:
            raise CorruptFile(str(error), path=source.path, offset=0, field="header.numBytes") from None

    @property
    def columns(self) -> Sequence[Column]:
        """One, of unknown name and type."""
        return [_COLUMN]

    @property
    def leaves(self) -> Sequence[Column]:
        """The same."""
        return [_COLUMN]

    def why_not(self, column: Column) -> str | None:
        """Nothing: filters can't be added at all."""
        del column
        return None

    def literal_column(self, column: Column) -> Column:
        """Bytes."""
        return column

    def summary(self, facts: Sequence[FilterFacts]) -> tuple[FilterSummary, ...]:
        """Nothing to sum up."""
        del facts
        return ()

    def filtered_columns(self) -> set[int]:
        """The one."""
        return {0}

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

    def facts(self, columns: set[int] | None) -> Iterator[FilterFacts]:
        """The filter's facts."""
        del columns
        yield self._facts()

    def dump(self, column: Column, row_group: int, stripe: int = 0) -> FilterDump:
        """The filter's bits."""
        del column
        if row_group or stripe:
            raise UsageError("a bare filter has no row groups", path=self.source.path)
        return FilterDump(path=self.source.path, facts=self._facts(), header=self.raw, bitset=bytes(self.bits.bitset))

    def ask(self, column: Column, literals: Sequence[Literal], *, explain: bool) -> Iterator[UnitAnswers]:
        """The filter's answers."""
        del column
        yield UnitAnswers(
            row_group=0,
            rows=0,
            chunk_bytes=0,
            row_group_bytes=0,
            answers=tuple(self._answer(literal, explain=explain) for literal in literals),
        )

    def _answer(self, literal: Literal, *, explain: bool) -> Answer:
        if self._unknown is not None:
            return Answer(
                presence_known=False, present=False, has_filter=True, stats_skip=None, reason=self._unknown[0]
            )
        function = hashes.parquet_draft if self.header.draft else hashes.parquet
        trail = []
        for encoded in literal.encodings:
            value = function(encoded)
            block, bits, present = self.bits.trail(value)
            trail.append(BitTrail(hashed=encoded, hash=value, block=block, bits=bits, present=present))
        return Answer(
            presence_known=True,
            present=any(all(t.present) for t in trail),
            has_filter=True,
            stats_skip=None,
            trail=tuple(trail) if explain else (),
        )

    def total_bytes(self) -> int:
        """There is no data."""
        return 0

    def examine(self, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
        """Of what can be wrong with a filter, what its header alone tells."""
        yield from self.facts(columns)
        if self._unknown is not None:
            reason, name = self._unknown
            yield Finding(id=name, severity=Severity.ERROR, message=reason, column=_COLUMN.path, offset=0)
        if self.header.draft:
            yield Finding(
                id="filter-draft", severity=Severity.ERROR, message=DRAFT_REASON, column=_COLUMN.path, offset=0
            )

    def without_filter(self, column: Column) -> list[int]:
        """None."""
        del column
        return []

    def spread(self, column: Column) -> Iterator[Spread]:
        """Nothing is known of the values."""
        del column
        return iter(())

    def without_normal_forms(self, column: Column) -> Sequence[int]:
        """None: no reader looks for normal forms here."""
        del column
        return ()

    def units(self) -> Sequence[int]:
        """None: there is no data."""
        return []

    def deep(
        self, columns: set[int] | None, tick: Tick, units: Container[int] | None = None, threads: int = 1
    ) -> Iterator[DeepCheck]:
        """Raises UnsupportedError: the values are elsewhere."""
        del columns, tick, units, threads
        raise self._alone("no values to check it against")

    def deep_bytes(self, columns: set[int] | None, units: Container[int] | None = None) -> int:
        """There is no data."""
        del columns, units
        return 0

    def _alone(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"a bare filter: there are {what}", path=self.source.path, hint="give the Parquet file itself"
        )

    def alike(self, other: FilterFile, columns: set[int] | None) -> bool:
        """Never: nothing is there but the filter."""
        del other, columns
        return False

    def encodings(self, column: Column, kind: str | None) -> tuple[str | None, ...]:
        """One kind."""
        del column, kind
        return (None,)

    def plan_add(self, columns: Sequence[Column], rule: SizeRule, *, replace: bool, missing: bool = False) -> Plan:
        """Raises UnsupportedError."""
        del columns, rule, replace, missing
        raise self._alone("no columns to add filters for")

    def plan_remove(self, columns: set[int] | None) -> Plan:
        """Raises UnsupportedError."""
        del columns
        raise self._alone("no data to leave")

    def plan_fold(self, columns: set[int] | None, rule: SizeRule) -> Plan:
        """Raises UnsupportedError."""
        del columns, rule
        raise self._alone("no data beside it")
