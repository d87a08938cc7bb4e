"""Text of `advise`: the answer and its commands, the figures by column, the other columns, and the readers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bloomcli.model.advice import SELDOM, AdviseReport, ColumnAdvice, Interval, UnservedPredicate
from bloomcli.model.file import TIGHT, UNVERIFIED
from bloomcli.report.human import column_name, count, seconds
from bloomcli.report.layout import Block, Cell, Columns, Gap, Grid, Head, Pairs, Style, figures, line
from bloomcli.rules.readers import DICTIONARIES, GAINS, NEVER_LOOKS, OVERLOOKED, reader, unknown_reason
from bloomcli.words import are, plural, rate, size

INTERVAL: Final = "95 % interval: of the bytes saved, over all samples of values."
"""What the column of intervals is about."""
_UNSERVED_SHOWN: Final = 8
_FAILED_SHOWN: Final = 5


def advice(report: AdviseReport) -> Iterator[Block]:
    """Yield the answer with its commands, the figures by column, the other columns, the readers, and the facts of the
    run."""
    recommended = [column for column in report.columns if column.recommended]
    seldom = [column for column in report.columns if column.reason_id == SELDOM]
    others = [column for column in report.columns if not column.recommended and column.reason_id != SELDOM]
    yield line(answer(report), Style.GOOD)
    if report.total is not None:
        yield line(cost(report))
    if report.queries is None:
        yield line(NO_QUERIES)
    yield from commands(report)
    if recommended:
        yield Gap()
        yield _by_column(recommended, report)
        yield from _sizes(report)
    if seldom:
        yield Gap()
        names = f"{plural(len(seldom), 'column')} would gain, too, if your queries look"
        them, these = ("it", "a column like this") if len(seldom) == 1 else ("them", "columns like these")
        yield line(f"{names} {them} up by `=`, which is rare for {these}:")
        yield _by_column(seldom, report)
    if others:
        yield Gap()
        yield line(f"leave {plural(len(others), 'column')} as {'it is' if len(others) == 1 else 'they are'}:")
        yield Grid.of(others, TO_LEAVE)
    if report.uses:
        yield Gap()
        yield readers(report)
    yield from _page_indexes(report)
    yield from _unserved(report)
    yield from _failed(report)
    yield Gap()
    yield Pairs(tuple(facts(report)))


def answer(report: AdviseReport) -> str:
    """What lookups read today and with the recommended filters, in one sentence."""
    total = report.total
    if total is None:
        return "no new filter is recommended"
    columns = [column for column in report.columns if column.recommended]
    names = column_name(columns[0]) if len(columns) == 1 else plural(len(columns), "column")
    before, after = size(total.today_bytes), size(total.with_filter_bytes)
    less = _less(total.today_bytes, total.with_filter_bytes)
    mean = "" if len(columns) == 1 else ", on average"
    return f"a lookup of {names} reads {before} today, and {after} with filters ({less}){mean}"


def cost(report: AdviseReport) -> str:
    """What the recommended filters cost, in one sentence; empty without any."""
    total = report.total
    if total is None:
        return ""
    share = "" if total.filter_share is None else f" ({rate(total.filter_share)} of the files)"
    return (
        f"the filters take {size(total.filter_bytes)}{share}, and about {seconds(total.seconds_to_add)} of one"
        " core to build"
    )


NO_QUERIES: Final = (
    "which columns your queries look up isn't known: --queries LOG counts it, and `bloom advise --help` shows how to"
    " get a log"
)


def _less(today: float, then: float) -> str:
    """The change of what is read, as a percentage with its sign: ``-90 %``."""
    share = 1 - then / today if today else 0.0
    return f"{'-' if share >= 0 else '+'}{abs(share):.0%}".replace("%", " %")


def readers(report: AdviseReport) -> Pairs:
    """What filters do for the readers: a line for those of which the same is true of the same columns."""
    names = {column.column: column_name(column) for column in report.columns}
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for use in report.uses:
        groups.setdefault((use.verdict, use.columns, use.reason), []).append(use.title)
    every = {column for use in report.uses for column in use.columns}
    pairs = []
    for (verdict, columns, reason), titles in sorted(groups.items(), key=lambda group: _ORDER.index(group[0][0])):
        where = "" if len(columns) == len(every) else f"{', '.join(names.get(c, c) for c in columns)}: "
        style = Style.GOOD if verdict == GAINS else Style.PLAIN
        if len(titles) == 1:
            pairs.append((titles[0], Cell(where + reason, style)))
        else:
            pairs.append((_UNKNOWN.get(reason, _VERDICTS[verdict]), Cell(where + ", ".join(titles), style)))
    return Pairs(tuple(pairs))


_ORDER: Final = (GAINS, DICTIONARIES, NEVER_LOOKS)
_VERDICTS: Final = {GAINS: "gain", DICTIONARIES: "served by dictionaries", NEVER_LOOKS: "never look"}
_UNKNOWN: Final = {unknown_reason(item): f"not {text}" for item, text in OVERLOOKED.items()}
"""What is said of several readers with such a reason."""


def facts(report: AdviseReport) -> Iterator[tuple[str, Cell]]:
    """Yield the names and values of the run's facts."""
    files, groups = plural(report.files, "file"), plural(report.row_groups, "row group")
    yield "files", Cell(f"{files}, {groups}, {plural(report.rows, 'row')}, {size(report.bytes)}")
    yield "measured", Cell(_sample(report))
    yield "weights", Cell(weights(report))
    titles = ", ".join(reader(name).title for name in report.readers)
    yield "readers", Cell(titles or "any that read files as they are (--readers names yours)")
    if report.policy is not None:
        yield "policy", Cell(report.policy)
    log = report.queries
    if log is not None:
        unreadable = f", {log.unreadable:,} can't be read" if log.unreadable else ""
        about = f"{log.about_table:,} {are(log.about_table)} about these files"
        yield "queries", Cell(f"{plural(log.statements, 'statement')}, {about}{unreadable}")
    if report.budget_bytes is not None and report.budget_used is not None:
        gap = report.budget_gap or 0.0
        best = "no other choice saves more" if gap < 5e-5 else f"another choice saves at most {rate(gap)} more"
        yield "budget", Cell(f"{size(report.budget_bytes)}; {size(report.budget_used)} used, {best}")
    if report.unverified:
        yield "not verified", Cell(f"{plural(report.unverified, 'file')}: {UNVERIFIED}", Style.WARN)
    yield "took", Cell(seconds(report.seconds))


def weights(report: AdviseReport) -> str:
    """What the means of lookups count, as a sentence."""
    share = f"{report.present_share:.0%}".replace("%", " %")
    if report.queries is None:
        return (
            f"{share} of the values looked up are there (--present sets it); each column is looked up equally often"
        )
    return f"columns by their lookups in the queries, values by the queries; of unknown values, {share} are there"


def _sample(report: AdviseReport) -> str:
    if report.sampled_row_groups >= report.row_groups:
        groups = plural(report.row_groups, "row group")
        return (
            f"with a sample of values, looked up in all {groups}" if report.row_groups else "there are no row groups"
        )
    files = f"in {report.sampled_files:,} of {plural(report.files, 'file')}"
    of = plural(report.row_groups, "row group")
    return f"with a sample of values from {report.sampled_row_groups:,} of {of}, {files} (seed {report.seed})"


def _sizes(report: AdviseReport) -> Iterator[Block]:
    """Yield the bytes that tight sizes save, or say that sizes are tight."""
    if report.size == TIGHT:
        yield line("sizes are tight: the smallest that meet the rate; all named readers take any size")
    elif report.tight_saves and not report.readers:
        yield line(
            f"tight sizes make the filters {size(report.tight_saves)} smaller, if all your readers take any size:"
            " --readers names them"
        )


def of_gains(report: AdviseReport) -> Columns[ColumnAdvice]:
    """What a table says of a lookup of each column, before and after, and of what its filters cost."""
    return [
        (Head("column"), column_name),
        (Head("type", rank=5), lambda c: c.type),
        figures("lookups", lambda c: c.lookups, rank=2, shown=report.queries is not None),
        figures("reads today", lambda c: c.today_bytes or 0, size),
        figures("with filters", lambda c: c.with_filter_bytes or 0, size),
        (Head("change", figures=True), lambda c: _less(c.today_bytes or 0.0, c.with_filter_bytes or 0.0)),
        (Head("95 % interval", figures=True, rank=4), lambda c: interval(c.saved_bytes)),
        figures("filters", lambda c: estimate(c.filter_bytes), size),
        figures("FPP", lambda c: c.fpp, rate, rank=3),
        figures("to build", lambda c: estimate(c.seconds_to_add), seconds, rank=1),
    ]


def _by_column(columns: Sequence[ColumnAdvice], report: AdviseReport) -> Grid:
    """What a lookup of each column reads, before and after, and what its filters cost; the last row is the total."""
    grid = Grid.of(columns, [*of_gains(report), (Head("note", prose=True, optional=True), _note)])
    if columns[0].recommended:
        grid.explain(
            "reads today", "reads: compressed bytes of the row groups that a lookup (`=`) reads, and of filters."
        )
        grid.explain("95 % interval", INTERVAL)
    total = report.total
    if total is not None and len(columns) > 1 and columns[0].recommended:
        cells = [
            "all of them",
            "",
            *([count(total.lookups)] * (report.queries is not None)),
            size(total.today_bytes),
            size(total.with_filter_bytes),
            _less(total.today_bytes, total.with_filter_bytes),
            "",
            size(total.filter_bytes),
            "",
            seconds(total.seconds_to_add),
            "",
        ]
        grid.add(*cells[: len(grid.heads)])  # the note's column may be left out
    return grid


def _note(column: ColumnAdvice) -> str:
    """What is said of a recommended column's existing filters."""
    filters = column.existing
    return column.reason if column.recommended and filters is not None and filters.filters else ""


TO_LEAVE: Final[Columns[ColumnAdvice]] = [
    (Head("column"), column_name),
    (
        Head("because", prose=True),
        lambda c: Cell(c.reason, Style.WARN if c.reason_id == "loses-rows" else Style.PLAIN),
    ),
]
"""What a table says of each column that needs no new filter."""


def _page_indexes(report: AdviseReport) -> Iterator[Block]:
    """Yield the columns for which a page index pays, with the bytes that a lookup reads in a row group."""
    paying = [
        (column_name(c), c.page_index) for c in report.columns if c.page_index is not None and c.page_index.pays
    ]
    if not paying:
        return
    yield Gap()
    yield line(
        f"a page index pays for {plural(len(paying), 'column')}; a lookup reads in a row group that it can't skip:"
    )
    grid = Grid((Head("column"), Head("today", figures=True), Head("with a page index", figures=True)))
    for name, gain in paying:
        grid.add(name, size(gain.bytes), size(gain.with_index))
    yield grid


def estimate(figure: Interval | None) -> float | None:
    """The estimate of a figure; None if it is unknown."""
    return None if figure is None else figure.estimate


def interval(figure: Interval | None) -> str:
    """Format the ends of an interval of bytes: ``1.0 to 1.2 MiB``, ``exact``."""
    if figure is None:
        return "-"
    low, high = size(figure.low), size(figure.high)
    if low == high:
        return "exact" if figure.low == figure.high else f"about {low}"
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(' ' + unit) else low} to {high}"


UNSERVED: Final[Columns[UnservedPredicate]] = [
    (Head("kind"), lambda item: item.kind),
    (Head("column"), lambda item: item.column or "several"),
    figures("number", lambda item: item.count),
    (Head("example", prose=True), lambda item: item.example),
]
"""What a table says of each kind of predicates that can't use a filter."""


def _unserved(report: AdviseReport) -> Iterator[Block]:
    log = report.queries
    if log is None or not log.unserved:
        return
    yield Gap()
    predicates = plural(sum(predicate.count for predicate in log.unserved), "predicate")
    yield line(f"{predicates} of the queries can't use a filter:")
    yield Grid.of(log.unserved[:_UNSERVED_SHOWN], UNSERVED, complete="--format json")
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


def _engine_filters(report: AdviseReport) -> Iterator[str]:
    """What a right size of the filters that engines keep would save."""
    for item in report.engine_filters:
        yield (
            f"{item.kind} of {item.column}: {size(item.bytes)} in {plural(item.files, 'file')};"
            f" {size(item.bytes_right)} are enough for {plural(item.values, 'value')} each, the rows of the largest"
            f" file: {item.setting}"
        )


def commands(report: AdviseReport) -> Iterator[Block]:
    """Yield the settings and the command lines that the advice comes to."""
    settings = list(_engine_filters(report))
    if settings:
        yield Gap()
        yield line("filters that the engine should write smaller, by its setting:")
        for text in settings:
            yield line(text, indent=2)
    if report.in_table is not None and (report.command is not None or report.upkeep is not None):
        yield Gap()
        yield line(f"the files aren't changed in place: {report.in_table}")
        commands = f"{report.command} {report.upkeep}"
        if "--table" in commands:
            unnamed = (
                "; put the table's name for CATALOG.DATABASE.TABLE" if "CATALOG.DATABASE.TABLE" in commands else ""
            )
            yield line(f"--table lets the table commit the change, to all its data files{unnamed}")
    partly = any(column.recommended and column.files < report.files for column in report.columns)
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
            if partly and lines == report.command and "--table" not in lines:
                yield line(
                    "it refuses files that lack one of these columns; with a policy, by --policy FILE, it doesn't"
                )
