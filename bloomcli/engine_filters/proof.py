"""The deep check of filters that engines keep: looks every value of a column up in its filter."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from bloomcli import limits
from bloomcli.engine_filters.base import BOUNDS, MISSES, NOT_CHECKED, NOT_LOOKED_UP, EngineFilter, finding
from bloomcli.errors import UnsupportedError
from bloomcli.formats.arrays import counting
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_search import Candidates, FoundRows
from bloomcli.formats.deep_check import MISSING_SHOWN, add_missing
from bloomcli.model.file import Column
from bloomcli.model.validate import Finding
from bloomcli.values.literals import render
from bloomcli.words import are, counted

_SHOWN: Final = 80
"""Characters of a bound in a message."""


class Proof(NamedTuple):
    """The outcome of looking up every value of a column in a filter."""

    values: int
    findings: Sequence[Finding]


def prove(file: FilterFile, filter_: EngineFilter, units: Container[int] | None) -> Proof:
    """Look every value of a filter's column up in it, in these units only (all if None).

    Raises CorruptFile, UnsupportedError: the column can't be read.
    """
    facts = filter_.facts
    column = next((column for column in file.columns if column.path == facts.column), None)
    if facts.problem == NOT_LOOKED_UP or (column is None and facts.problem is None):
        why = facts.problem or "the file doesn't have the column"
        return Proof(0, [finding(NOT_CHECKED, facts, f"nothing is proven: {why}", None)])
    if column is None or facts.problem is not None:
        return Proof(0, ())
    typed = file.literal_column(column)
    checked = lost = left_out = 0
    missing: list[str] = []
    beyond: list[str] = []
    for values in column_values(file, column, units):
        flags = filter_.check_values(values, typed)
        checked += len(values)
        lost += flags.count(0)
        add_missing(missing, flags, lambda at, values=values: _text(values[at], typed))  # type: ignore[misc]
        outside = filter_.outside(values)
        left_out += len(outside)
        beyond += outside[: MISSING_SHOWN - len(beyond)]
    findings = []
    if lost:
        text = f"{lost} of {counted(checked, 'value')} {are(lost)} not in it: {filter_.loses}"
        findings.append(finding(MISSES, facts, text, filter_.rebuild, missing))
    if left_out:
        ends = f"{str(facts.low)[:_SHOWN]!r} to {str(facts.high)[:_SHOWN]!r}"
        text = f"{left_out} of {counted(checked, 'value')} {are(left_out)} outside of {ends}"
        findings.append(finding(BOUNDS, facts, f"{text}: {filter_.loses}", filter_.rebuild, beyond))
    return Proof(checked, [*findings, *filter_.elsewhere(file)])


def _text(value: pa.Scalar, typed: Column) -> str:
    if pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type):
        return render(value.as_py(), typed)
    return str(value.cast(pa.string()).as_py())


def column_values(file: FilterFile, column: Column, units: Container[int] | None = None) -> Iterator[pa.Array]:
    """The values of a column that aren't null, in batches. Raises CorruptFile, UnsupportedError."""
    if not file.searched:
        raise UnsupportedError(f"columns of {file.format} files can't be read row by row", path=file.source.path)
    search = file.search(column)
    for unit in file.unit_facts(column, (), units):
        candidates = Candidates(unit.row_group, unit.rows, unit.chunk_bytes, counting(0, 0), stripe=unit.stripe)
        for start in range(0, unit.rows, limits.ROWS_PER_BATCH):
            rows = counting(start, min(limits.ROWS_PER_BATCH, unit.rows - start))
            for batch in search.records([FoundRows(candidates, rows)], [column.path]):
                yield batch.column(0).drop_null()
