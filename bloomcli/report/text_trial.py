"""Text of `trial`: whether filters help, how much and whom; a row for each reader, column and kind of value; the lost
rows, and the readers that didn't run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.trial import Quartiles, ReaderTrial, TrialLookups, TrialReport
from bloomcli.report.human import column_name, count, seconds
from bloomcli.report.layout import Block, Cell, Columns, Gap, Grid, Head, Pairs, Style, line
from bloomcli.rules.readers import GAINS
from bloomcli.words import joined, plural, rate, size

_DIFFERENCES_SHOWN: Final = 5
"""The most differences of a reader and column that are shown; JSON has all."""

_COMPARED: Final = {
    "switch": "the file, compared with itself and {switch} off",
    "added": "a temporary copy with filters, compared with the file as it is",
    "removed": "the file, compared with a temporary copy without filters",
    "mixed": "files with filters, compared with files without; either may be temporary copies",
}
"""The two files that a reader compared."""


def trial(report: TrialReport) -> Iterator[Block]:
    """Yield whether filters help, how much and whom; then the files and values, the figures, the differences, and the
    verdict on the rows."""
    ran = [reader for reader in report.readers if reader.lookups]
    yield line(answer(report), Style.GOOD if any(map(saved, ran)) else Style.WARN)
    yield Pairs(tuple((reader.title, Cell(effect(reader))) for reader in ran))
    yield Gap()
    yield Pairs(tuple(facts(report)))
    if ran:
        yield Gap()
        yield _grid(ran)
    notes = list(_notes(report))
    if notes:
        yield Gap()
        yield from notes
    yield Gap()
    yield from faults(report)
    yield _verdict(report, ran)
    yield line(f"took {seconds(report.seconds)}")


_LEAST: Final = 0.02
"""The least share by which a reader has to read less, so that filters help it."""


def answer(report: TrialReport) -> str:
    """Whether filters help the readers that ran, in one sentence."""
    ran = [reader for reader in report.readers if reader.lookups]
    helped = [reader.title for reader in ran if saved(reader)]
    if not ran:
        return "no reader did a lookup"
    if not helped:
        what = ran[0].title if len(ran) == 1 else f"none of {plural(len(ran), 'reader')}"
        return f"filters don't help {what}" if len(ran) == 1 else f"filters help {what}"
    others = [reader.title for reader in ran if not saved(reader)]
    but = f", but not {joined(others)}" if others else ""
    return f"filters help {joined(helped)} to look up {', '.join(names(report))}{but}"


def names(report: TrialReport) -> list[str]:
    """The columns, as reports name them."""
    by_column = {lookups.column: column_name(lookups) for reader in report.readers for lookups in reader.lookups}
    return [by_column.get(column, column) for column in report.columns]


def saved(reader: ReaderTrial) -> bool:
    """Whether a reader read clearly less with filters, by its own metrics."""
    read = _read_in_all(reader)
    return read is not None and read[1] < (1 - _LEAST) * read[0]


def effect(reader: ReaderTrial) -> str:
    """How much filters help a reader, or why they don't, in one sentence."""
    read = _read_in_all(reader)
    why = [use for use in reader.uses if use.verdict != GAINS]
    if read is not None and saved(reader):
        without, other, unit = read
        return f"reads {other:,} instead of {plural(without, unit)} (-{1 - other / without:.1%})".replace("%", " %")
    same = "reads" if read is None else f"reads {plural(read[1], read[2])} with filters and {read[0]:,} without: it"
    if why:
        return why[0].reason if read is None else f"{same} {why[0].reason}"
    times = [lookups.ratio.median for lookups in reader.lookups if lookups.ratio is not None]
    if read is None:
        return "doesn't say what it reads" + (f"; time with filters / without: {max(times):.2f}" if times else "")
    return f"{same} skips as much by statistics, dictionaries, or by nothing"


def _read_in_all(reader: ReaderTrial) -> tuple[int, int, str] | None:
    """What a reader read in all lookups, without filters and with, and the unit; None if it doesn't count it."""
    for unit, pairs in (
        ("row group", [(lookups.row_groups_without, lookups.row_groups_with) for lookups in reader.lookups]),
        ("row", [(lookups.rows_read_without, lookups.rows_read_with) for lookups in reader.lookups]),
    ):
        counts = [(without, other) for without, other in pairs if without is not None and other is not None]
        if counts and len(counts) == len(pairs):
            return sum(without for without, _ in counts), sum(other for _, other in counts), unit
    return None


def faults(report: TrialReport) -> Iterator[Block]:
    """Yield the differences, and the readers and files that failed."""
    shown: dict[tuple[str, str], int] = {}
    for reader in report.readers:
        for difference in reader.differences:
            key = (reader.reader, difference.column)
            shown[key] = shown.get(key, 0) + 1
            if shown[key] <= _DIFFERENCES_SHOWN:
                where = f"{difference.path}: " if len(report.tried) > 1 else ""
                yield line(where + difference.message, Style.BAD)
                if difference.rule is not None:
                    yield from _hint(f"`bloom validate --explain {difference.rule}`")
    left = sum(number - _DIFFERENCES_SHOWN for number in shown.values() if number > _DIFFERENCES_SHOWN)
    if left:
        yield line(f"... and {plural(left, 'more lookup')}: --format json has all of them")
    for reader in report.readers:
        if reader.status == "failed":
            yield line(f"{_name(reader)} failed: {reader.reason}", Style.BAD)
            yield from _hint(reader.hint)
    for path, reason in report.failed:
        yield line(f"{path}: {reason}", Style.BAD)


def _hint(text: str | None) -> Iterator[Block]:
    if text is not None:
        yield line(f"hint: {text}", indent=2)


def facts(report: TrialReport) -> Iterator[tuple[str, Cell]]:
    """Yield the names and values of what was tried."""
    if report.files == 1:
        yield "file", Cell(report.tried[0], Style.TITLE)
    else:
        only = f": {report.tried[0]}" if len(report.tried) == 1 else ""
        yield "files", Cell(f"{len(report.tried):,} of {report.files:,} (seed {report.seed}){only}", Style.TITLE)
    yield "rows", Cell(f"{count(report.rows)} in {plural(report.row_groups, 'row group')}")
    yield "columns", Cell(", ".join(names(report)))
    if report.queries:
        logs = ", ".join(report.queries)
        yield "values", Cell(f"the most frequent of {logs}, up to {report.values:,} of each column")
    else:
        each = "of each column" if len(report.tried) == 1 else "of each column in each file"
        most = f"{report.values:,} present and {report.values:,} absent {each}"
        limit = f", as many as {report.within:.0f} s allow" if report.within is not None else ""
        yield "values", Cell(f"{'up to ' if _has_fewer(report) else ''}{most}{limit} (seed {report.seed})")
    compared = {reader.comparison for reader in report.readers if reader.comparison is not None}
    added = f"added in {'a temporary copy' if len(report.tried) == 1 else 'temporary copies'}, FPP {rate(report.fpp)}"
    existing = "those of the file" if len(report.tried) == 1 else "those of the files"
    if compared:
        yield (
            "filters",
            Cell(added if compared == {"added"} else f"{existing}, or {added}" if "mixed" in compared else existing),
        )


def _has_fewer(report: TrialReport) -> bool:
    """Whether a reader looked up fewer values of a column than `--values`, because the column had no more."""
    for reader in report.readers:
        kinds = {(lookups.column, lookups.kind): lookups.lookups for lookups in reader.lookups}
        wanted = {(column, kind) for column, _ in kinds for kind in ("present", "absent")}
        if any(kinds.get(key, 0) < report.values for key in wanted):
            return True
    return False


def _grid(readers: Sequence[ReaderTrial]) -> Grid:
    all_lookups = [lookups for reader in readers for lookups in reader.lookups]
    in_bytes = any(lookups.bytes_without is not None for lookups in all_lookups)
    in_rows = any(lookups.rows_read_without is not None for lookups in all_lookups)
    counted = in_rows or any(lookups.row_groups_without is not None for lookups in all_lookups)
    timed = any(lookups.ratio is not None for lookups in all_lookups)
    columns = len({lookups.column for lookups in all_lookups}) > 1
    unit = "row groups of all lookups together, or rows," if in_rows else "row groups of all lookups together,"
    legend = [("read without", f"Read: {unit} by the reader's own metrics.")] * counted
    legend += [("time", "Time: with filters / without, the median; the files are in the page cache.")] * timed
    if any(lookups.not_found for lookups in all_lookups):
        legend.append(("rows", "Not found: present values without a row, without filters too; they prove nothing."))
    grid_columns: Columns[tuple[ReaderTrial, TrialLookups]] = [
        (Head("reader"), lambda row: row[0].title),
        (Head("column", most=20, shown=columns), lambda row: column_name(row[1])),
        (Head("values"), lambda row: f"{row[1].lookups:,} {row[1].kind}"),
        (Head("rows"), lambda row: _rows(row[1])),
        (Head("read without", figures=True, shown=counted), lambda row: _read(row[1])[0]),
        (Head("with filters", figures=True, shown=counted), lambda row: _read(row[1])[1]),
        (Head("bytes without", figures=True, rank=2, shown=in_bytes), lambda row: size(row[1].bytes_without)),
        (Head("bytes with", figures=True, rank=2, shown=in_bytes), lambda row: size(row[1].bytes_with)),
        (Head("time", figures=True, shown=timed), lambda row: _time(row[1].ratio)),
        (Head("quartiles", figures=True, rank=3, shown=timed), lambda row: _quartiles(row[1].ratio)),
    ]
    rows = [(reader, lookups) for reader in readers for lookups in reader.lookups]
    return Grid.of(rows, grid_columns, legend=legend)


def _rows(lookups: TrialLookups) -> Cell:
    if lookups.unequal:
        return Cell(f"{lookups.unequal:,} of {lookups.lookups:,} differ", Style.BAD)
    if lookups.not_found:
        return Cell(f"equal, {lookups.not_found:,} not found", Style.WARN)
    return Cell("equal", Style.GOOD)


def _read(lookups: TrialLookups) -> tuple[Cell | str, Cell | str]:
    if lookups.row_groups_without is not None and lookups.row_groups_with is not None:
        fewer = lookups.row_groups_with < lookups.row_groups_without
        without = f"{lookups.row_groups_without:,} of {lookups.row_groups:,}"
        return without, Cell(count(lookups.row_groups_with), Style.GOOD if fewer else Style.PLAIN)
    if lookups.rows_read_without is not None and lookups.rows_read_with is not None:
        fewer = lookups.rows_read_with < lookups.rows_read_without
        without = plural(lookups.rows_read_without, "row")
        return without, Cell(count(lookups.rows_read_with), Style.GOOD if fewer else Style.PLAIN)
    return "-", "-"


def _time(ratio: Quartiles | None) -> str:
    return "-" if ratio is None else f"{ratio.median:.2f}"


def _quartiles(ratio: Quartiles | None) -> str:
    return "-" if ratio is None else f"{ratio.low:.2f} to {ratio.high:.2f}"


_NEVER: Final = "never looks at filters"


def _notes(report: TrialReport) -> Iterator[Block]:
    """Yield the compared files, the reasons for which readers didn't run, and the columns that weren't tried."""
    readers = report.readers
    compared: dict[str, list[str]] = {}
    for reader in readers:
        if reader.lookups and reader.comparison is not None:
            how = _COMPARED[reader.comparison].format(switch=reader.switch)
            compared.setdefault(how if reader.uses_filters else _NEVER, []).append(_name(reader))
    for how, names in compared.items():
        yield line(f"{', '.join(names)}: {'never look at filters' if how == _NEVER and len(names) > 1 else how}")
    for reader in readers:
        if reader.status in {"not-installed", "unsupported", "not-run"}:
            yield line(f"{_name(reader)}: {reader.reason}", Style.WARN)
            yield from _hint(reader.hint)
        elif reader.reason is not None and reader.status != "failed":
            yield line(f"{_name(reader)}: {reader.reason}", Style.WARN)
    for remark in report.remarks:
        yield line(remark, Style.WARN)


def _verdict(report: TrialReport, ran: Sequence[ReaderTrial]) -> Block:
    unequal = [_name(reader) for reader in ran if reader.status == "unequal"]
    if unequal:
        verb = "returns" if len(unequal) == 1 else "return"
        return line(f"{', '.join(unequal)} {verb} other rows with filters than without", Style.BAD)
    if not ran:
        return line("no reader did a lookup", Style.WARN)
    blind = [reader for reader in ran if _found_none(reader)]
    proven = [reader for reader in ran if reader not in blind]
    none = ""
    if blind:
        who = joined([reader.title for reader in blind])
        none = f"{who} found none of the values that are there, which proves nothing"
    if not proven:
        return line(none, Style.WARN)
    lookups = sum(lookups.lookups for reader in proven for lookups in reader.lookups)
    readers = plural(len(proven), "reader")
    equal = f"{readers} returned the same rows with filters and without, in {plural(lookups, 'lookup')}"
    if blind:
        equal += f"; {none}"
    return line(equal, Style.WARN if report.exit_code or blind else Style.GOOD)


def _found_none(reader: ReaderTrial) -> bool:
    """Whether a reader looked up present values, and returned no row for any of them."""
    present = [lookups for lookups in reader.lookups if lookups.kind == "present"]
    return bool(present) and all(lookups.not_found == lookups.lookups for lookups in present)


def _name(reader: ReaderTrial) -> str:
    return reader.title if reader.version is None else f"{reader.title} {reader.version}"
