"""The interface of filters that engines keep themselves, with the figures, faults and proof that all have in common.

Such a filter is of one column of a whole file, and says "absent" or "maybe" of a value. It has one row of bits or
several: a value may be present if all its k bits are set in a row. The hashes of a value are independent, so that a
row passes a random absent value with probability fill^k, and all rows together with 1 - product of (1 - fill^k).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import pyarrow as pa

from bloomcli import kernels, limits
from bloomcli.errors import UnsupportedError
from bloomcli.filters.kirsch_mitzenmacher import estimate_ndv
from bloomcli.formats.arrays import counting, forms_of
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_search import Candidates, FoundRows
from bloomcli.formats.deep_check import MISSING_SHOWN, add_missing
from bloomcli.formats.wanted_values import comparable, stored_forms
from bloomcli.model.file import Column, EngineFilterFacts
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES
from bloomcli.values.literals import render
from bloomcli.words import are, counted, exact_size

if TYPE_CHECKING:
    from bloomcli.model.probe import BitTrail
    from bloomcli.values.literals import Literal

MISSES: Final = "engine-filter-misses"
DAMAGED: Final = "engine-filter-damaged"
MISSING: Final = "engine-filter-missing"
LABEL: Final = "engine-filter-label"
BOUNDS: Final = "engine-filter-bounds"
OVERFILLED: Final = "engine-filter-overfilled"
OVERSIZED: Final = "engine-filter-oversized"
"""The rules on such filters, for all engines."""

_USEFUL_FPP: Final = 0.01
"""A filter at or below this rate isn't overfilled, whatever rate its writer asked for."""
_OVERFILLED: Final = 2
"""The factor above the rate that was asked for from which a filter is overfilled."""
_OVERSIZED: Final = 4
"""The factor above the values that are there from which a filter is too large."""
_SMALL_BYTES: Final = 16 << 10
"""A filter of at most this size isn't too large: it is read with the footer."""


class BitRow(NamedTuple):
    """One row of a filter's bits: bit i is bit i & 7, the least significant being 0, of byte i >> 3."""

    bitset: bytes
    bits: int
    """m"""
    k: int

    @property
    def fpp(self) -> float:
        """The share of random absent values that the row passes."""
        return float((kernels.count_bits(self.bitset) / self.bits) ** self.k)


def measured(facts: EngineFilterFacts, rows: Sequence[BitRow]) -> EngineFilterFacts:
    """Facts with the figures that follow from a filter's bits."""
    ones = [kernels.count_bits(row.bitset) for row in rows]
    estimates = [estimate_ndv(count, row.bits, row.k) for count, row in zip(ones, rows, strict=True)]
    passed = 1.0
    for row in rows:
        passed *= 1 - row.fpp
    return replace(
        facts,
        bits=rows[0].bits,
        hash_functions=rows[0].k,
        rows=len(rows),
        fill=sum(ones) / sum(row.bits for row in rows),
        fpp=rows[0].fpp if len(rows) == 1 else 1 - passed,
        ndv_estimate=None if None in estimates else sum(filter(None, estimates)),
    )


class EngineFilter(ABC):
    """One filter that an engine keeps.

    Attributes:
        facts: what reports say about the filter. With a `problem`, it rules no value out.
        rows: its bits; empty if they can't be read.
        header: the bytes before the bits of the first row.
        faults: the findings about this filter, besides those of `examine`.
    """

    loses: ClassVar[str]
    """What happens to rows whose value the filter misses: ``an upsert inserts the keys again``."""
    rebuild: ClassVar[str]
    """The hint on a wrong filter: how the engine writes it again."""
    resize: ClassVar[str]
    """The hint on a filter of a wrong size, with ``{values}`` for the number of values."""
    facts: EngineFilterFacts
    rows: Sequence[BitRow] = ()
    header: bytes = b""
    faults: Sequence[Finding] = ()

    @abstractmethod
    def check(self, forms: pa.Array) -> bytearray:
        """For each value, 1 if the filter may have it, or can't say; 0 if it is absent.

        `forms` are values of the column as `bloomcli.formats.wanted_values.WantedValues.forms`, without nulls:
        integers of the column's width, or bytes.
        """

    @abstractmethod
    def trail(self, form: bytes) -> BitTrail:
        """The bits that a value selects, in the first row that has them all, else in the last one. `form`: its PLAIN
        bytes."""

    def outside(self, forms: pa.Array) -> Sequence[str]:
        """The values, as text, that the engine's own bounds leave out; by default it has none."""
        del forms
        return ()

    def may_have(self, literal: Literal, column: Column) -> bool:
        """Whether the filter may have a value. `column`: as `FilterFile.literal_column`."""
        return literal.unknowable is not None or any(self.check(stored_forms(literal.encodings, column)))


class EngineFilters(NamedTuple):
    """The filters that engines keep for a file."""

    filters: Sequence[EngineFilter] = ()
    findings: Sequence[Finding] = ()
    """Faults of the places where filters lie: filters that should be there and aren't."""

    def examine(self) -> Iterator[Finding]:
        """Yield the faults that show without the column's values."""
        yield from self.findings
        for one in self.filters:
            yield from one.faults
            if one.facts.problem is None:
                yield from _sizes(one)


def finding(
    rule: str, facts: EngineFilterFacts, message: str, hint: str | None, missing: Sequence[str] = ()
) -> Finding:
    """A finding about a filter, with the severity of its rule."""
    return Finding(
        id=rule,
        severity=RULES[rule].severity,
        message=f"{facts.kind}: {message}",
        column=facts.column,
        offset=facts.offset if facts.path is None else None,
        hint=hint,
        missing=tuple(missing),
    )


def _sizes(one: EngineFilter) -> Iterator[Finding]:
    facts = one.facts
    values, sized, fpp = facts.values, facts.sized_for, facts.fpp
    if not values or not sized or fpp is None or facts.length is None:
        return
    hint = one.resize.format(values=values)
    there = f"it was sized for {sized:,} values, and the file has {counted(values, 'row')}"
    if fpp > _USEFUL_FPP and fpp > _OVERFILLED * (facts.asked_fpp or 0):
        yield finding(OVERFILLED, facts, f"the measured false-positive rate is {fpp:.2g}; {there}", hint)
    elif facts.length > _SMALL_BYTES and sized > _OVERSIZED * values:
        yield finding(OVERSIZED, facts, f"it takes {exact_size(facts.length)}; {there}", hint)


class Proof(NamedTuple):
    """The outcome of looking up every value of a column in a filter."""

    values: int
    findings: Sequence[Finding]


def prove(file: FilterFile, one: EngineFilter, units: Container[int] | None) -> Proof:
    """Look every value of a filter's column up in it, in these units only (None: all).

    Raises CorruptFile, UnsupportedError: the column can't be read.
    """
    facts = one.facts
    column = next((column for column in file.columns if column.path == facts.column), None)
    if column is None or facts.problem is not None:
        return Proof(0, ())
    typed = file.literal_column(column)
    checked = lost = left_out = 0
    missing: list[str] = []
    beyond: list[str] = []
    for forms in _values(file, column, typed, units):
        flags = one.check(forms)
        checked += len(forms)
        lost += flags.count(0)
        add_missing(missing, flags, lambda at, forms=forms: _text(forms[at].as_py(), typed))  # type: ignore[misc]
        outside = one.outside(forms)
        left_out += len(outside)
        beyond += outside[: MISSING_SHOWN - len(beyond)]
    found = []
    if lost:
        text = f"{lost} of {counted(checked, 'value')} {are(lost)} not in it: {one.loses}"
        found.append(finding(MISSES, facts, text, one.rebuild, missing))
    if left_out:
        text = f"{left_out} of {counted(checked, 'value')} {are(left_out)} outside of {facts.low!r} to {facts.high!r}"
        found.append(finding(BOUNDS, facts, f"{text}: {one.loses}", one.rebuild, beyond))
    return Proof(checked, found)


def _text(form: object, typed: Column) -> str:
    if isinstance(form, bytes):
        return render(form, typed)
    return str(form)


def _values(file: FilterFile, column: Column, typed: Column, units: Container[int] | None) -> Iterator[pa.Array]:
    """The values of a column that aren't null, as `EngineFilter.check` takes them, in batches."""
    if not file.searched:
        raise UnsupportedError(f"columns of {file.format} files can't be read row by row", path=file.source.path)
    search = file.search(column)
    for unit in file.unit_facts(column, (), units):
        candidates = Candidates(unit.row_group, unit.rows, unit.chunk_bytes, counting(0, 0), stripe=unit.stripe)
        for start in range(0, unit.rows, limits.ROWS_PER_BATCH):
            rows = counting(start, min(limits.ROWS_PER_BATCH, unit.rows - start))
            for batch in search.records([FoundRows(candidates, rows)], [column.path]):
                yield comparable(forms_of(batch.column(0).drop_null()), typed)
