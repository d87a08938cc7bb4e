"""The deep check of filters that engines keep: looks every value of a column up in its filter."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from bloomcli import limits
from bloomcli.engine_filters.base import BOUNDS, MISSES, EngineFilter, finding
from bloomcli.errors import UnsupportedError
from bloomcli.formats.arrays import counting, forms_of
from bloomcli.formats.base import FilterFile
from bloomcli.formats.column_search import Candidates, FoundRows
from bloomcli.formats.deep_check import MISSING_SHOWN, add_missing
from bloomcli.formats.wanted_values import comparable
from bloomcli.model.file import Column
from bloomcli.model.validate import Finding
from bloomcli.values.literals import render
from bloomcli.words import are, counted


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
