"""Text reports of `probe`, `add`, `remove`, `fold` and `repair`. Every figure comes from the report.

Each function takes a report and yields blocks of `layout` for `render.write`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bloomcli.model.file import Presence
from bloomcli.report.human import column_name, count, growth, number, row_group_text, seconds, type_text
from bloomcli.report.layout import (
    PRESENCE_STYLE,
    Block,
    Cell,
    Columns,
    Gap,
    Grid,
    Head,
    Pairs,
    Style,
    line,
    planned,
    traffic_line,
    traffic_pairs,
)
from bloomcli.words import plural, rate, size

if TYPE_CHECKING:
    from bloomcli.model.change import ChangeReport, FilterChange, StructureChange
    from bloomcli.model.dataset import FileRow
    from bloomcli.model.probe import BitTrail, ProbeReport, ValueTotals, Verdict


# probe


def probe(report: ProbeReport) -> Iterator[Block]:
    """Yield the answer of every row group, the bits with ``--explain``, then one summary line per value."""
    column = column_name(report)
    yield Pairs(
        (
            ("file", Cell(report.path, Style.TITLE)),
            ("column", Cell(f"{column}, {type_text(report.physical, report.logical)}")),
            ("row groups", Cell(f"{count(report.row_groups)}, {size(report.total_bytes)} compressed")),
            *traffic_pairs(report),
        )
    )
    if report.verdicts:
        yield Gap()
        yield _verdict_grid(report)
    for verdict in report.verdicts:
        if verdict.trail:
            yield Gap()
            where = f"{row_group_text(verdict.stripe, verdict.row_group)}, {column} = {_shown(verdict.value)}"
            yield from _trail_lines(f"{where}: {verdict.presence.value}", verdict.trail)
    for answer in report.engine_filters:
        if answer.trail:
            yield Gap()
            yield from _trail_lines(
                f"{answer.kind}, {column} = {_shown(answer.value)}: {answer.presence.value}", answer.trail
            )
    if report.totals:
        yield Gap()
    for answer in report.engine_filters:
        why = "" if answer.reason is None else f" ({answer.reason})"
        text = f"{answer.kind}, of the whole file: {column} = {_shown(answer.value)}: {answer.presence.value}{why}"
        yield line(text, PRESENCE_STYLE[answer.presence])
    for totals in report.totals:
        yield line(_summary(column, totals), PRESENCE_STYLE[totals.answer])


def _shown(value: str) -> str:
    return value or "''"


_SKIPS: Final = {True: Cell("absent", Style.GOOD), False: Cell("maybe", Style.WARN), None: Cell("-")}
"""The answers of statistics or of a dictionary."""


def _verdict_grid(report: ProbeReport) -> Grid:
    columns: Columns[Verdict] = [
        (Head("value", shown=len(report.totals) > 1), lambda v: _shown(v.value)),
        (Head("stripe", figures=True, optional=True), lambda v: number(v.stripe)),
        (Head("row group", figures=True), lambda v: str(v.row_group)),
        (Head("answer"), lambda v: Cell(v.answer.value, PRESENCE_STYLE[v.answer])),
        (Head("filter says", rank=3), lambda v: Cell(v.presence.value, PRESENCE_STYLE[v.presence])),
        (Head("min/max says", rank=1), lambda v: _SKIPS[v.stats_skip]),
        (Head("dictionary says", rank=2, optional=True), lambda v: _SKIPS[v.dictionary_skip]),
        (Head("rows", figures=True, rank=5), lambda v: count(v.rows)),
        (Head("bytes", figures=True, rank=4), lambda v: size(v.row_group_bytes)),
        (Head("why", prose=True, optional=True), lambda v: v.reason or ""),
    ]
    return Grid.of(report.verdicts, columns)


def _trail_lines(title: str, trails: Sequence[BitTrail]) -> Iterator[Block]:
    yield line(title, Style.TITLE)
    for trail in trails:
        yield line(f"hashed {plural(len(trail.hashed), 'byte')} {trail.hashed.hex() or '(empty)'}", indent=2)
        block = "" if trail.block is None else f", block {trail.block}"
        yield line(f"hash 0x{trail.hash:016x}{block}", indent=2)
        yield line(_bits(trail), indent=2)


def _bits(trail: BitTrail) -> str:
    flat = trail.block is None
    words = [
        f"{'' if flat else f'{word}:'}{bit}{'' if present else ' (not set)'}"
        for word, (bit, present) in enumerate(zip(trail.bits, trail.present, strict=True))
    ]
    verdict = "all set" if all(trail.present) else f"{sum(trail.present)} of {len(trail.present)} set"
    return f"{'bits' if flat else 'word:bit'} {', '.join(words)}; {verdict}"


def _summary(column: str, totals: ValueTotals) -> str:
    name = f"{column} = {_shown(totals.value)}"
    groups = plural(totals.row_groups, "row group")
    absent = plural(totals.absent_row_groups, "row group")
    if totals.answer is Presence.ABSENT:
        skipped = groups if totals.row_groups == 1 else f"all {groups}"
        text = f"{name}: absent everywhere; a reader may skip {skipped}, {size(totals.absent_bytes)}"
    elif totals.absent_row_groups:
        text = (
            f"{name}: absent in {totals.absent_row_groups:,} of {groups};"
            f" a reader may skip {absent}, {size(totals.absent_bytes)}"
        )
    else:
        answer = {
            Presence.MAYBE: "maybe in",
            Presence.NO_FILTER: "no filter in",
            Presence.UNKNOWN: "the filters can't tell in",
        }.get(totals.answer, "not ruled out in")
        where = groups if totals.row_groups == 1 else f"all {groups}"
        text = f"{name}: {answer} {where}; a reader can't skip {'it' if totals.row_groups == 1 else 'any'}"
    text += f" ({_rule_out_text(totals)})"
    if totals.gain_row_groups:
        text += f"; filters save {size(totals.gain_bytes)} of it"
    elif totals.skipped_row_groups:
        text += "; filters save none of it"
    return text + (f" ({totals.reason})" if totals.reason else "")


# add, remove, fold, repair

_LEFT_OUT_SHOWN: Final = 8


def policy_line(policy: str | None) -> Iterator[Block]:
    """Yield the line about the policy file that applied: it may have been found, and not named."""
    if policy is not None:
        yield line(f"policy {policy} applies (--no-policy uses none)")


def change(report: ChangeReport) -> Iterator[Block]:
    """Yield one row per filter, or per column and its structure, then the outcome, remarks, and the filters that miss
    their target."""
    if any(c.reason is None for c in report.changes):
        yield _change_grid(report)
        yield Gap()
    if any(structure.action != "keep" for structure in report.structures):
        yield _structure_grid(report)
        yield Gap()
    if report.output is None and report.remarks and not (report.changes or report.structures or report.bytes_decoded):
        before = "dry run, " if report.dry_run else ""
        yield line(f"{before}nothing written: {report.path}: {'; '.join(report.remarks)}", Style.WARN)
        yield from traffic_line(report, dry_run=report.dry_run)
        return
    yield line(_outcome(report), Style.WARN if report.dry_run else Style.TITLE)
    idle = report.output is None and not report.dry_run
    if not idle:
        yield line(_effort(report))
    yield from policy_line(report.policy)
    yield from traffic_line(report, dry_run=report.dry_run)
    if report.bytes_unreclaimed:
        left = size(report.bytes_unreclaimed)
        if report.bytes_copied == report.bytes_before:
            text = f"{left} stay in the file, unused: the old footer, as this store appends to whole objects only"
        else:
            what = "page indexes" if report.command == "repair" else "filters"
            text = f"{left} of old {what} stay in the file, unused: they lie between row groups, and pages can't move"
        yield line(text)
    for text in report.remarks[idle and report.command == "repair" :]:  # the first one says why nothing was written
        yield line(f"remark: {text}", Style.WARN)
    left_out: dict[str, dict[str, None]] = {}
    kept = [
        (structure.reason, f"{_named(structure.structure)} of {structure.column or 'all columns'}")
        for structure in report.structures
        if structure.action == "keep"
    ]
    for reason, name in (*((item.reason, item.column) for item in report.changes), *kept):
        if reason is not None:
            left_out.setdefault(reason, {})[name] = None
    for reason, group in left_out.items():
        names = list(group)
        columns = ", ".join(names[:_LEFT_OUT_SHOWN]) + (", ..." if len(names) > _LEFT_OUT_SHOWN else "")
        yield line(f"left out: {columns}, {reason}", Style.WARN)
    missing = [c for c in report.changes if c.misses_target]
    if missing:
        short = ", ".join(sorted({c.column for c in missing}))
        yield line(
            f"{plural(len(missing), 'filter')} too small for the target false-positive rate: {short}",
            Style.WARN,
        )


def _change_grid(report: ChangeReport) -> Grid:
    changes = [c for c in report.changes if c.reason is None]
    stripes = any(c.stripe is not None for c in changes)
    bound = ", at most" if report.dry_run and report.command == "add" else ""
    columns: Columns[FilterChange] = [
        (Head("stripe", figures=True, shown=stripes), lambda c: str(c.stripe)),
        (
            Head("row group", figures=True, shown=not stripes),
            lambda c: "all" if c.row_group is None else str(c.row_group),
        ),
        (Head("column"), lambda c: c.column),
        (Head("action", rank=1), lambda c: c.action),
        (Head("filters", figures=True, rank=3, shown=stripes), lambda c: count(c.filters)),
        # figures that the command never sets have no column
        (Head("old size", figures=True, rank=2, optional=True), lambda c: size(c.old_bitset_bytes)),
        (Head(f"size{bound}", figures=True, shown=report.command != "remove"), lambda c: size(c.bitset_bytes)),
        (Head("values", figures=True, rank=4, optional=True), lambda c: count(c.values)),
        (
            Head("FPP", figures=True, optional=True),
            lambda c: Cell(rate(c.fpp), Style.WARN if c.misses_target else Style.PLAIN),
        ),
        (Head("target", figures=True, rank=5, optional=True), lambda c: rate(c.target_fpp)),
        (Head("read from", rank=6, optional=True), lambda c: c.source or "-"),
    ]
    return Grid.of(changes, columns)


_SINGULAR: Final = {
    "statistics": "chunk statistic",
    "size_statistics": "size statistic",
    "encoding_stats": "encoding statistic",
    "sorting_columns": "sort order",
}


def _named(structure: str) -> str:
    return structure.replace("_", " ")


def _structure_grid(report: ChangeReport) -> Grid:
    """One row for the structures of a column that changed in the same way in several row groups."""
    groups: dict[tuple[object, ...], list[StructureChange]] = {}
    for structure in report.structures:
        if structure.action != "keep":
            key = (structure.column, structure.structure, structure.action, structure.problems, structure.reason)
            groups.setdefault(key, []).append(structure)

    def total(alike: Sequence[StructureChange], name: str) -> int:
        return sum(getattr(structure, name) or 0 for structure in alike)

    def lookups(alike: Sequence[StructureChange]) -> str:
        if all(structure.lookup_bytes is None for structure in alike):
            return "-"
        return f"{size(total(alike, 'lookup_bytes'))} of {size(total(alike, 'page_bytes'))}"

    what = "what is wrong" if report.dry_run else "what was wrong"
    if not any(structure.problems for structure in report.structures):
        what = "remark"
    columns: Columns[list[StructureChange]] = [
        (Head("column"), lambda alike: alike[0].column or "all"),
        (Head("structure"), lambda alike: _named(alike[0].structure)),
        (Head("action"), lambda alike: alike[0].action),
        (Head("row groups", figures=True, rank=2), lambda alike: count(len(alike))),
        (Head("pages", figures=True, rank=4), lambda alike: count(total(alike, "pages") or None)),
        (Head("size", figures=True, rank=3), lambda alike: size(total(alike, "bytes") or None)),
        (Head("a lookup reads", rank=1, optional=True), lookups),
        (
            Head(what, prose=True, optional=True),
            lambda alike: "; ".join([*alike[0].problems, *filter(None, [alike[0].reason])]),
        ),
    ]
    return Grid.of(list(groups.values()), columns)


_DONE: Final = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "fold": "folded",
    "keep": "kept unchanged",
}


_PLANNED: Final = _DONE | {"add": "to add", "replace": "to replace", "remove": "to remove", "fold": "to fold"}


def _tally(report: ChangeReport) -> str:
    actions: Counter[tuple[str, str]] = Counter()
    for item in report.changes:
        if item.reason is None:
            actions["filter", item.action] += item.filters
    for structure in report.structures:
        if structure.action != "keep":
            actions[_SINGULAR.get(structure.structure, _named(structure.structure)), structure.action] += 1
    words = _PLANNED if report.dry_run else _DONE
    parts = (f"{plural(n, what)} {words.get(action, action)}" for (what, action), n in actions.items())
    return ", ".join(parts) or ("nothing to change" if report.command == "repair" else "no filters to change")


def _outcome(report: ChangeReport) -> str:
    tally = _tally(report)
    before, after = report.bytes_before, report.bytes_after
    sizes = f"{size(before)} -> {f'{planned(report.command)} ' * (report.dry_run and after != before)}{size(after)}"
    if before and after != before:
        sizes += f" ({growth(before, after)})"
    if report.dry_run:
        return f"dry run, nothing written: {report.path}: {tally}, {sizes}"
    if report.output is None:
        why = report.remarks[0] if report.command == "repair" and report.remarks else tally
        return f"nothing written: {report.path}: {why}"
    return f"wrote {report.output}: {tally}, {sizes}"


def _effort(report: ChangeReport) -> str:
    verb = "would decode" if report.dry_run else "decoded"
    copied = "copy" if report.dry_run else "copied"
    return f"{verb} {size(report.bytes_decoded)} of column data, {copied} {size(report.bytes_copied)} unchanged" + (
        "" if report.dry_run else f", took {seconds(report.seconds)}"
    )


def _rule_out_text(totals: ValueTotals) -> str:
    """Format the numbers of row groups that filters, min/max and dictionaries rule out, each alone. Without the
    filters if they rule out all absent row groups."""
    filters = totals.skipped_row_groups
    parts = [] if filters == totals.absent_row_groups else [f"filters alone: {filters:,}"]
    parts.append(f"min/max alone: {plural(totals.stats_skipped_row_groups, 'row group')}")
    if totals.dictionary_skipped_row_groups:
        parts.append(f"dictionaries: {totals.dictionary_skipped_row_groups:,} more")
    return ", ".join(parts)


def answers(rows: Iterable[FileRow], *, listed: bool) -> Iterator[Block]:
    """Yield a line for each value and, unless a table lists all files, the files that answer maybe.

    Args:
        rows: the files; files without answers don't count.
        listed: whether a table above lists every file with its answers.
    """
    by_value: dict[str, list[ValueTotals]] = {}
    for row in rows:
        for totals in row.totals:
            by_value.setdefault(totals.value, []).append(totals)
    for value, of_files in by_value.items():
        answers = Counter(totals.answer for totals in of_files)
        total = replace(of_files[0], **{name: sum(getattr(totals, name) for totals in of_files) for name in _SUMMED})
        yield line(
            f"{value}: absent in {answers[Presence.ABSENT]:,} of {plural(len(of_files), 'file')};"
            f" a reader may skip {total.absent_row_groups:,} of {plural(total.row_groups, 'row group')},"
            f" {size(total.absent_bytes)}"
            f" ({_rule_out_text(total)})"
        )
        if not listed:
            yield from _files(rows, value, answers)


_SUMMED: Final = (
    *("row_groups", "absent_row_groups", "absent_bytes"),
    *("skipped_row_groups", "stats_skipped_row_groups", "dictionary_skipped_row_groups"),
)
"""The figures of a value that are added up over files."""


def _files(rows: Iterable[FileRow], value: str, answers: Counter[Presence]) -> Iterator[Block]:
    """Yield the files that answer maybe, and how many have no filter or a filter that can't tell."""
    for row in rows:
        if any(totals.value == value and totals.answer is Presence.MAYBE for totals in row.totals):
            yield line(f"maybe: {row.path}", PRESENCE_STYLE[Presence.MAYBE], indent=2)
    for presence in (Presence.NO_FILTER, Presence.UNKNOWN):
        number = answers[presence]
        if number:
            yield line(f"{presence.value}: {plural(number, 'file')}; --files-with-matches lists them, too", indent=2)
