"""Text of `advise`: the columns that get filters, the other columns, and the commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.advice import AdviseReport, ColumnAdvice, Interval
from bloomcli.model.file import TIGHT
from bloomcli.report.human import count, rate, seconds, size
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Pairs, Style, line
from bloomcli.rules.readers import reader
from bloomcli.words import are, plural

_UNSERVED_SHOWN: Final = 8
_FAILED_SHOWN: Final = 5
_NO_STATISTICS: Final = "-"


def advice(report: AdviseReport) -> Iterator[Block]:
    """Yield the facts of the run, the columns that get filters, the other columns, and the commands."""
    yield Pairs(tuple(_facts(report)))
    recommended = [column for column in report.columns if column.recommended]
    others = [column for column in report.columns if not column.recommended]
    yield Gap()
    if recommended:
        yield line(f"add filters to {plural(len(recommended), 'column')}:", Style.GOOD)
        yield _to_add(recommended)
        yield from _sizes(report)
    else:
        yield line("no new filter is recommended", Style.GOOD)
    if others:
        yield Gap()
        yield line(f"leave {plural(len(others), 'column')} as {'it is' if len(others) == 1 else 'they are'}:")
        yield _to_leave(others)
    yield from _page_indexes(report)
    yield from _unserved(report)
    yield from _failed(report)
    yield from _commands(report)


def _facts(report: AdviseReport) -> Iterator[tuple[str, Cell]]:
    files, groups = plural(report.files, "file"), plural(report.row_groups, "row group")
    yield "files", Cell(f"{files}, {groups}, {plural(report.rows, 'row')}, {size(report.bytes)}")
    yield "values", Cell(_sample(report))
    titles = ", ".join(reader(name).title for name in report.readers)
    yield "readers", Cell(titles or "any that read files as they are (--readers names yours)")
    log = report.queries
    if log is not None:
        unreadable = f", {log.unreadable:,} can't be read" if log.unreadable else ""
        about = f"{log.about_table:,} {are(log.about_table)} about these files"
        yield "queries", Cell(f"{plural(log.statements, 'statement')}, {about}{unreadable}")
    if report.budget_bytes is not None and report.budget_used is not None:
        gap = report.budget_gap or 0.0
        best = "no other choice saves more" if gap < 5e-5 else f"another choice saves at most {rate(gap)} more"
        yield "budget", Cell(f"{size(report.budget_bytes)}; {size(report.budget_used)} used, {best}")
    yield "took", Cell(seconds(report.seconds))


def _sample(report: AdviseReport) -> str:
    if report.sampled_row_groups >= report.row_groups:
        return "from all row groups" if report.row_groups else "there are no row groups"
    files = f"in {report.sampled_files:,} of {plural(report.files, 'file')}"
    of = plural(report.row_groups, "row group")
    return f"from {report.sampled_row_groups:,} of {of}, {files} (seed {report.seed})"


def _sizes(report: AdviseReport) -> Iterator[Block]:
    """Yield the bytes that tight sizes save, or say that sizes are tight."""
    if report.size == TIGHT:
        yield line("sizes are tight: the smallest that meet the rate; all named readers take any size")
    elif report.tight_saves and not report.readers:
        yield line(
            f"tight sizes save {size(report.tight_saves)} of these, if your readers take any size:"
            " `bloom advise --readers ...`, `bloom add --size tight --readers ...`"
        )


def _to_add(columns: Sequence[ColumnAdvice]) -> Grid:
    queried = any(column.lookups is not None for column in columns)
    grid = Grid(
        (
            Head("column"),
            Head("type", rank=6),
            Head("filter size", figures=True),
            Head("of files", figures=True, rank=3),
            Head("FPP", figures=True, rank=1),
            *([Head("lookups", figures=True, rank=2)] * queried),
            Head("saved", figures=True),
            Head("95 % interval", figures=True, rank=5),
            Head("time to add", figures=True, rank=4),
            Head("because", prose=True),
        ),
        complete="--format csv",
        legend=[
            ("saved", "saved: bytes that a lookup (`=`) reads less than today, those of the filters deducted."),
        ],
    )
    for column in columns:
        time = column.seconds_to_add
        grid.add(
            column.column,
            column.type,
            _bytes(column.filter_bytes),
            rate(column.filter_share),
            rate(column.fpp),
            *([count(column.lookups)] * queried),
            _bytes(column.saved_bytes),
            interval(column.saved_bytes),
            "-" if time is None else seconds(time.estimate),
            column.reason,
        )
    return grid


def _to_leave(columns: Sequence[ColumnAdvice]) -> Grid:
    grid = Grid((Head("column"), Head("because", prose=True)), complete="--format csv")
    for column in columns:
        bad = column.reason_id == "loses-rows"
        grid.add(column.column, Cell(column.reason, Style.WARN if bad else Style.PLAIN))
    return grid


def _page_indexes(report: AdviseReport) -> Iterator[Block]:
    """Yield the columns for which a page index pays, with the bytes that a lookup reads in a row group."""
    paying = [(c.column, c.page_index) for c in report.columns if c.page_index is not None and c.page_index.pays]
    if not paying:
        return
    yield Gap()
    yield line(
        f"a page index pays for {plural(len(paying), 'column')}; a lookup reads in a row group that it can't skip:"
    )
    grid = Grid(
        (Head("column"), Head("today", figures=True), Head("with a page index", figures=True)),
        complete="--format csv",
    )
    for name, gain in paying:
        grid.add(name, size(round(gain.bytes)), size(round(gain.with_index)))
    yield grid


def _bytes(figure: Interval | None) -> str:
    return _NO_STATISTICS if figure is None else size(round(figure.estimate))


def interval(figure: Interval | None) -> str:
    """Format the ends of an interval of bytes: ``1.0 to 1.2 MiB``, ``exact``."""
    if figure is None:
        return _NO_STATISTICS
    low, high = size(round(figure.low)), size(round(figure.high))
    if low == high:
        return "exact" if figure.low == figure.high else f"about {low}"
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(' ' + unit) else low} to {high}"


def _unserved(report: AdviseReport) -> Iterator[Block]:
    log = report.queries
    if log is None or not log.unserved:
        return
    yield Gap()
    predicates = plural(sum(one.count for one in log.unserved), "predicate")
    yield line(f"{predicates} of the queries can't use a filter:")
    grid = Grid(
        (Head("kind"), Head("column"), Head("number", figures=True), Head("example", prose=True)),
        complete="--format json",
    )
    for one in log.unserved[:_UNSERVED_SHOWN]:
        grid.add(one.kind, one.column or "several", count(one.count), one.example)
    yield grid
    if len(log.unserved) > _UNSERVED_SHOWN:
        yield line(f"... and {plural(len(log.unserved) - _UNSERVED_SHOWN, 'kind')} more: --format json", indent=2)


def _failed(report: AdviseReport) -> Iterator[Block]:
    if not report.failed:
        return
    yield Gap()
    yield line(f"{plural(len(report.failed), 'file')} could not be read:", Style.BAD)
    for path, why in report.failed[:_FAILED_SHOWN]:
        yield line(why if path in why else f"{path}: {why}", indent=2)
    if len(report.failed) > _FAILED_SHOWN:
        yield line(f"... and {plural(len(report.failed) - _FAILED_SHOWN, 'file')} more: --format json", indent=2)


def _commands(report: AdviseReport) -> Iterator[Block]:
    if report.in_table is not None and (report.command is not None or report.upkeep is not None):
        yield Gap()
        yield line(f"the files aren't changed in place: {report.in_table}")
        commands = f"{report.command} {report.upkeep}"
        if "--table" in commands:
            unnamed = (
                "; put the table's name for CATALOG.DATABASE.TABLE" if "CATALOG.DATABASE.TABLE" in commands else ""
            )
            yield line(f"--table lets the table commit the change, to all its data files{unnamed}")
    for title, lines in (
        ("to add them", report.command),
        ("to add page indexes", report.page_index_command),
        ("to fold or remove existing filters", report.upkeep),
    ):
        if lines is not None:
            yield Gap()
            yield line(f"{title}:")
            for command in lines.split("\n"):
                yield line(command, Style.TITLE, indent=2, whole=True)
