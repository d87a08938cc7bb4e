r"""Writes reports as CSV: a header row, then one row per filter, file, value, finding, column of `advise`, or reader.

Unknown fields are empty. An interval is three fields: X, X_low and X_high. Control characters in names are
written as escapes (``\n``, ``\x1b``, ``\u2028``) and ``\`` as ``\\``, so that each row is one line and terminals and
CI logs don't interpret it. JSON has the original names.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, TextIO, get_type_hints

from bloomcli.model.advice import AdviseReport, ColumnAdvice, ExistingFilters, Interval, PageIndexGain
from bloomcli.model.change import ChangeReport, FilterChange, StructureChange
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.file import FilterFacts, IndexEntry, PageFacts
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import FilterDump, InspectReport
from bloomcli.model.probe import ProbeReport, ValueTotals, Verdict
from bloomcli.model.trial import ReaderTrial, TrialLookups, TrialReport
from bloomcli.model.validate import Finding
from bloomcli.report.human import csv_field

HEADER: Final = ("path", *(f.name for f in fields(FilterFacts)), "kind", "place")
"""The file's path, then the fields of FilterFacts, named as in JSON, then two of EngineFilterFacts. A filter that an
engine keeps has those that are in both."""


_NESTED: Final = ("findings", "totals", "by_column", "filter_facts", "engine_filters")
ROW_HEADER: Final = tuple(f.name for f in fields(FileRow) if f.name not in _NESTED)
"""The fields of FileRow, except those that contain rows themselves."""


ANSWERS_HEADER: Final = ("path", "status", *(f.name for f in fields(ValueTotals)), "error")
"""For `probe` on many files: the file's path and status, the fields of ValueTotals, and the error."""

VERDICTS_HEADER: Final = ("path", *(f.name for f in fields(Verdict) if f.name != "trail"))
"""For `probe` on one file: its path, then the fields of Verdict, except the bits."""


CHANGES_HEADER: Final = ("path", "output", "dry_run", *(f.name for f in fields(FilterChange)))
"""For `add`, `remove` and `fold` on one file: the file, the written file, and the fields of FilterChange."""

STRUCTURES_HEADER: Final = ("path", "output", "dry_run", *(f.name for f in fields(StructureChange)))
"""For `repair` on one file: the file, the written file, and the fields of StructureChange."""

_FINDING: Final = tuple(f.name for f in fields(Finding) if f.name not in {"path", "missing"})
FINDINGS_HEADER: Final = ("path", "status", *_FINDING, "counts")
"""For `validate`: the file and its status, and the fields of Finding, except the missing values. A file that could
not be checked has a row that counts, with its error as the message."""


def write_changes(report: ChangeReport, stream: TextIO) -> None:
    """Write the report of `add`, `remove` or `fold` on one file, one row per filter or stripe's filters; of `repair`,
    one row per structure."""
    file = [report.path, report.output, report.dry_run]
    header, changes = (
        (STRUCTURES_HEADER, report.structures) if report.command == "repair" else (CHANGES_HEADER, report.changes)
    )
    rows = ([*file, *(_plain(getattr(change, name), "; ") for name in header[3:])] for change in changes)
    write_table(header, rows, stream)


def write_findings(report: GateReport, stream: TextIO) -> None:
    """Write the report of `validate`, one row per finding and per file that could not be checked."""
    statuses = {row.path: row.status for row in report.rows}
    failed = (row for row in report.rows if row.status is Status.FAILED)
    rows: list[list[object]] = [
        [f.path, statuses.get(f.path or ""), *(getattr(f, name) for name in _FINDING), f.counts]
        for f in report.findings
    ]
    for row in failed:
        finding = {"severity": "error", "message": row.error, "hint": row.hint}
        rows.append([row.path, row.status, *(finding.get(name) for name in _FINDING), True])
    write_table(FINDINGS_HEADER, rows, stream)


def write_words(dump: FilterDump, stream: TextIO) -> None:
    """Write a filter's bits, one row per block with its eight words; per word of 64 bits for a filter without blocks.

    Words are hexadecimal numbers with ``0x``, so that programs that read numbers as floats don't round them.
    """
    blocks = dump.facts.blocks is not None
    size, per_row = (4, 8) if blocks else (8, 1)
    header = ("block", *(f"word{n}" for n in range(8))) if blocks else ("index", "word")
    words = [
        f"0x{int.from_bytes(dump.bitset[at : at + size], 'little'):0{2 * size}x}"
        for at in range(0, len(dump.bitset), size)
    ]
    rows = ([at // per_row, *words[at : at + per_row]] for at in range(0, len(words), per_row))
    write_table(header, rows, stream)


def write_verdicts(report: ProbeReport, stream: TextIO) -> None:
    """Write the report of `probe`, one row per row group and value."""
    rows = ([report.path, *(getattr(v, name) for name in VERDICTS_HEADER[1:])] for v in report.verdicts)
    write_table(VERDICTS_HEADER, rows, stream)


def _write_answers(report: DatasetReport, stream: TextIO) -> None:
    """Write the report of `probe` on many files, one row per file and value, and one for a file without answers."""
    names = ANSWERS_HEADER[2:-1]
    rows = (
        [row.path, row.status, *(None if totals is None else getattr(totals, name) for name in names), row.error]
        for row in report.rows
        for totals in row.totals or (None,)
    )
    write_table(ANSWERS_HEADER, rows, stream)


def write_rows(report: DatasetReport, stream: TextIO, *, every: bool = False) -> None:
    """Write a dataset's report: one row per file; for `probe`, one row per file and value.

    For `inspect`, if `every` is true, one row per filter, as for one file. A file that can't be read has a row with
    its error as the problem, so that every file is in the report.
    """
    if report.command == "inspect" and every:
        write_table(HEADER, _filter_rows(report), stream)
        return
    if report.command == "probe":
        _write_answers(report, stream)
        return
    write_table(ROW_HEADER, ([_plain(getattr(row, name)) for name in ROW_HEADER] for row in report.rows), stream)


def _filter_rows(report: DatasetReport) -> Iterator[list[object]]:
    for row in report.rows:
        for facts in (*row.filter_facts, *row.engine_filters):
            yield [row.path, *(getattr(facts, name, None) for name in HEADER[1:])]
        if row.error is not None:
            yield [row.path, *(row.error if name == "problem" else None for name in HEADER[1:])]


def write(report: InspectReport, stream: TextIO) -> None:
    """Write the report of `inspect`, one row per filter. Lines end with a newline only."""
    every = (*report.filters, *report.engine_filters)
    rows = ([report.path, *(getattr(facts, name, None) for name in HEADER[1:])] for facts in every)
    write_table(HEADER, rows, stream)


def write_parts(report: InspectReport, stream: TextIO, *, pages: bool) -> None:
    """Write the pages of a column, or the entries of its indexes, one row each."""
    kind: type = PageFacts if pages else IndexEntry
    names = [f.name for f in fields(kind)]
    rows = (
        [report.path, *(_plain(getattr(item, name)) for name in names)]
        for item in (report.pages if pages else report.index)
    )
    write_table(["path", *names], rows, stream)


def _plain(value: object, between: str = " ") -> object:
    return between.join(map(str, value)) if isinstance(value, tuple) else value


def write_table(header: Sequence[str], rows: Iterable[list[object]], stream: TextIO) -> None:
    """Write a header row and rows."""
    writer = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(header)
    for row in rows:
        fields = [csv_field(value) if isinstance(value, str) else value for value in row]
        # GitHub's runner takes a line that starts with :: for a command; a quote at the start prevents that
        starts_command = str(fields[0]).lstrip().startswith("::")
        (quoting if starts_command else writer).writerow(fields)


_GAINS: Final = ("present", "absent", "queried")
_NESTED_FACTS: Final = {"existing": ExistingFilters, "page_index": PageIndexGain}
_LEFT_OUT: Final = ("rates", *_GAINS, *_NESTED_FACTS)
_HINTS: Final = get_type_hints(ColumnAdvice)
_INTERVALS: Final = frozenset(name for name, hint in _HINTS.items() if hint == Interval | None)
_COSTS: Final = ("today", "with_filter")
_FIGURES: Final = ("row_groups", "bytes")


def write_advice(report: AdviseReport, stream: TextIO) -> None:
    """Write the report: the fields of ColumnAdvice, named as in JSON, then those of its lookups and its filters."""
    write_table(ADVICE_HEADER, ([value for _, value in _advice(column)] for column in report.columns), stream)


def _advice(column: ColumnAdvice | None) -> Iterator[tuple[str, object]]:
    """Yield the names of a row's fields with their values; None has the same names."""
    for field in fields(ColumnAdvice):
        if field.name not in _LEFT_OUT:
            value = getattr(column, field.name, None)
            yield from _ends(field.name, value) if field.name in _INTERVALS else [(field.name, _plain(value))]
    for name in _GAINS:
        gain = getattr(column, name, None)
        yield f"{name}_values", getattr(gain, "values", None)
        for cost in _COSTS:
            for figure in _FIGURES:
                yield from _ends(f"{name}_{cost}_{figure}", getattr(getattr(gain, cost, None), figure, None))
    for name, kind in _NESTED_FACTS.items():
        nested = getattr(column, name, None)
        yield from ((f"{name}_{field.name}", getattr(nested, field.name, None)) for field in fields(kind))


def _ends(name: str, value: Interval | None) -> Iterator[tuple[str, object]]:
    yield name, getattr(value, "estimate", None)
    yield from ((f"{name}_{end}", getattr(value, end, None)) for end in ("low", "high"))


ADVICE_HEADER: Final = tuple(name for name, _ in _advice(None))


_READER: Final = ("reader", "version", "status", "uses_filters", "comparison")
_LOOKUPS: Final = tuple(field.name for field in fields(TrialLookups))
_QUARTILES: Final = ("seconds_without", "seconds_with", "ratio")


def write_trial(report: TrialReport, stream: TextIO) -> None:
    """Write the report of `trial`. A reader that compared nothing has a row with the reason."""
    rows = (
        [value for _, value in _trial(reader, lookups)]
        for reader in report.readers
        for lookups in reader.lookups or (None,)
    )
    write_table(TRIAL_HEADER, rows, stream)


def _trial(reader: ReaderTrial | None, lookups: TrialLookups | None) -> Iterator[tuple[str, object]]:
    """Yield the names of a row's fields with their values; None has the same names."""
    yield from ((name, getattr(reader, name, None)) for name in _READER)
    yield from ((name, getattr(lookups, name, None)) for name in _LOOKUPS if name not in _QUARTILES)
    for name in _QUARTILES:
        times = getattr(lookups, name, None)
        yield from ((f"{name}_{part}", getattr(times, part, None)) for part in ("low", "median", "high"))
    yield "reason", getattr(reader, "reason", None)


TRIAL_HEADER: Final = tuple(name for name, _ in _trial(None, None))


WRITERS: Final[dict[str, Callable[[Any, TextIO], None]]] = {
    **dict.fromkeys(("add", "remove", "fold", "repair"), write_changes),
    "advise": write_advice,
    "dataset": write_rows,
    "inspect": write,
    "probe": write_verdicts,
    "trial": write_trial,
    "validate": write_findings,
}
"""What writes each command's report."""
