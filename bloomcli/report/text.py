"""Reports as people read them: layout only, every figure comes from the report.

Each function takes a report and yields blocks (:mod:`bloomcli.report.layout`) for ``render.write``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from bloomcli.model import (
    BitTrail,
    ChangeReport,
    FilterChange,
    FilterDump,
    FilterFacts,
    Finding,
    InspectReport,
    Presence,
    ProbeReport,
    Severity,
    ValidateReport,
    ValueTotals,
    Verdict,
)
from bloomcli.report.human import count, plural, rate, seconds, share, size
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Line, Pairs, Style, line

PRESENCE_STYLE: Final = {
    Presence.ABSENT: Style.GOOD,
    Presence.MAYBE: Style.WARN,
    Presence.NO_FILTER: Style.DIM,
    Presence.UNKNOWN: Style.DIM,
}
SEVERITY_STYLE: Final = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.WARN,
    Severity.NOTE: Style.DIM,
}


# inspect


def inspect(report: InspectReport) -> Iterator[Block]:
    """The file, then one row a filter; filters that can't be read say why below the table."""
    headers = {_header(f) for f in report.filters if f.problem is None}
    yield Pairs(tuple(_file_facts(report, headers)))
    if not report.filters:
        yield Gap()
        yield line("No Bloom filters. `bloom add FILE --columns NAME -o OUT` adds some.")
        return
    yield Gap()
    yield _filter_grid(report.filters, with_header=len(headers) > 1)
    broken = [f for f in report.filters if f.problem is not None]
    if broken:
        yield Gap()
        for facts in broken:
            yield line(f"row group {facts.row_group}, {facts.column}: {facts.problem}", Style.BAD)


def _file_facts(report: InspectReport, headers: set[str]) -> Iterator[tuple[str, Cell]]:
    yield "file", Cell(report.path, Style.TITLE)
    yield "size", Cell(f"{size(report.file_bytes)} ({count(report.file_bytes)} bytes)")
    yield "rows", Cell(f"{count(report.rows)} in {plural(report.row_groups, 'row group')}")
    yield "columns", Cell(count(report.columns))
    yield "created by", Cell(report.created_by or "-")
    if report.filters:
        text = f"{count(len(report.filters))}, {size(report.filter_bytes)}"
        text += f" ({share(report.filter_bytes, report.file_bytes)} of the file)"
        if report.unreadable:
            text += f", {count(report.unreadable)} unreadable"
        yield "filters", Cell(text)
    else:
        yield "filters", Cell("none")
    if len(headers) == 1:
        yield "all filters", Cell(next(iter(headers)))


def _header(facts: FilterFacts) -> str:
    return f"{facts.algorithm or '?'}, {facts.hash or '?'}, {facts.compression or '?'}"


def _type(physical: str, logical: str | None) -> str:
    return f"{physical} ({logical})" if logical else physical


def _filter_grid(filters: Iterable[FilterFacts], *, with_header: bool) -> Grid:
    grid = Grid(
        (
            Head("row group", figures=True),
            Head("column"),
            Head("type"),
            Head("offset", figures=True),
            Head("size", figures=True),
            Head("blocks", figures=True),
            *([Head("header")] if with_header else []),
            Head("NDV", figures=True),
            Head("fill", figures=True),
            Head("FPP", figures=True),
            Head("bits/value", figures=True),
        )
    )
    for facts in filters:
        bits = facts.bits_per_value
        if facts.problem is None:
            header = Cell(_header(facts))
            column = Cell(facts.column)
        else:
            header = Cell("unreadable", Style.BAD)
            column = Cell(facts.column, Style.BAD)
        grid.add(
            str(facts.row_group),
            column,
            _type(facts.physical, facts.logical),
            str(facts.offset),
            "-" if facts.length is None else size(facts.length),
            count(facts.blocks),
            *([header] if with_header else []),
            "-" if facts.ndv_estimate is None else "~" + count(facts.ndv_estimate),
            rate(facts.fill),
            rate(facts.fpp),
            "-" if bits is None else f"{bits:.1f}" if bits < 1e6 else f"{bits:.1e}",
        )
    return grid


# dump


def hex_dump(dump: FilterDump) -> Iterator[str]:
    """The bitset as text: comment lines with ``#``, then one block a line, its eight words as hex numbers.

    The words are numbers (bit 0 is the last digit's lowest), not bytes in file order.
    """
    facts = dump.facts
    yield f"# {Cell(dump.path).text}: row group {facts.row_group}, {Cell(facts.column).text}, {_header(facts)}"
    yield f"# header {dump.header.hex()}"
    blocks = len(dump.bitset) // 32
    yield f"# {plural(blocks, 'block')} from byte {facts.offset + len(dump.header)}: index, then words 0 to 7"
    digits = len(str(max(blocks - 1, 0)))
    words = memoryview(dump.bitset)
    for index in range(blocks):
        block = words[32 * index : 32 * index + 32]
        text = " ".join(block[4 * w : 4 * w + 4][::-1].hex() for w in range(8))
        yield f"{index:>{digits}}  {text}"


# probe


def probe(report: ProbeReport) -> Iterator[Block]:
    """Every row group's answer, the trails where they were asked for, then a summary line a value."""
    yield Pairs(
        (
            ("file", Cell(report.path, Style.TITLE)),
            ("column", Cell(f"{report.column}, {_type(report.physical, report.logical)}")),
            ("row groups", Cell(f"{count(report.row_groups)}, {size(report.total_bytes)} compressed")),
        )
    )
    if report.verdicts:
        yield Gap()
        yield _verdict_grid(report)
    for verdict in report.verdicts:
        if verdict.trail:
            yield Gap()
            yield from _trails(report.column, verdict)
    if report.totals:
        yield Gap()
    for totals in report.totals:
        yield line(_summary(report.column, totals), PRESENCE_STYLE[totals.presence])


def _verdict_grid(report: ProbeReport) -> Grid:
    several = len(report.totals) > 1
    reasons = any(v.reason for v in report.verdicts)
    grid = Grid(
        (
            *([Head("value")] if several else []),
            Head("row group", figures=True),
            Head("filter says"),
            Head("min/max says"),
            Head("rows", figures=True),
            Head("bytes", figures=True),
            *([Head("why")] if reasons else []),
        )
    )
    for verdict in report.verdicts:
        grid.add(
            *([verdict.value] if several else []),
            str(verdict.row_group),
            Cell(verdict.presence.value, PRESENCE_STYLE[verdict.presence]),
            {True: Cell("absent", Style.GOOD), False: Cell("maybe", Style.WARN), None: Cell("-")}[
                verdict.stats_skip
            ],
            count(verdict.rows),
            size(verdict.row_group_bytes),
            *([verdict.reason or ""] if reasons else []),
        )
    return grid


def _trails(column: str, verdict: Verdict) -> Iterator[Block]:
    yield line(
        f"row group {verdict.row_group}, {column} = {verdict.value}: {verdict.presence.value}", Style.TITLE
    )
    for trail in verdict.trail:
        yield line(f"hashed {plural(len(trail.hashed), 'byte')} {trail.hashed.hex() or '(empty)'}", indent=2)
        yield line(f"hash 0x{trail.hash:016x}, block {trail.block}", indent=2)
        yield line(_bits(trail), indent=2)


def _bits(trail: BitTrail) -> str:
    words = [
        f"{word}:{bit}{'' if there else ' (not set)'}"
        for word, (bit, there) in enumerate(zip(trail.bits, trail.present, strict=True))
    ]
    verdict = "all set" if all(trail.present) else f"{sum(trail.present)} of {len(trail.present)} set"
    return f"word:bit {', '.join(words)}; {verdict}"


def _summary(column: str, totals: ValueTotals) -> str:
    name = f"{column} = {totals.value}"
    groups = plural(totals.row_groups, "row group")
    skipped = plural(totals.skipped_row_groups, "row group")
    if totals.presence is Presence.ABSENT:
        text = f"{name}: absent everywhere; a reader may skip all {groups}, {size(totals.skipped_bytes)}"
    elif totals.skipped_row_groups:
        text = (
            f"{name}: absent in {totals.skipped_row_groups:,} of {groups};"
            f" a reader may skip {skipped}, {size(totals.skipped_bytes)}"
        )
    else:
        answer = {
            Presence.MAYBE: "maybe present in every one of",
            Presence.NO_FILTER: "no filter to ask in",
            Presence.UNKNOWN: "the filters can't tell in",
        }.get(totals.presence, "not ruled out in")
        text = f"{name}: {answer} {groups}; a reader can't skip any by filter"
    text += f" (min/max alone: {totals.stats_skipped_row_groups:,})"
    if totals.gain_row_groups:
        text += f"; gain {plural(totals.gain_row_groups, 'row group')}, {size(totals.gain_bytes)}"
    elif totals.skipped_row_groups:
        text += "; no gain over min/max"
    return text + (f" ({totals.reason})" if totals.reason else "")


# add, remove, fold


def change(report: ChangeReport) -> Iterator[Block]:
    """One row a filter, then what was written (or would be), and which filters miss their target."""
    if report.changes:
        yield _change_grid(report)
        yield Gap()
    yield line(_outcome(report), Style.WARN if report.dry_run else Style.TITLE)
    yield line(_effort(report))
    missing = [c for c in report.changes if c.misses_target]
    if missing:
        names = ", ".join(sorted({c.column for c in missing}))
        yield line(
            f"{plural(len(missing), 'filter')} too small for the target false-positive rate: {names}", Style.WARN
        )


def _change_grid(report: ChangeReport) -> Grid:
    changes = report.changes
    old = any(c.old_bitset_bytes is not None for c in changes)
    # What the command never fills in gets no column.
    values, fpp, target, source = (
        any(getattr(c, name) is not None for c in changes) for name in ("values", "fpp", "target_fpp", "source")
    )
    new = report.command != "remove"
    heads = [Head("row group", figures=True), Head("column"), Head("action")]
    heads += [Head("old size", figures=True)] * old
    heads += [Head("size, at most" if report.dry_run else "size", figures=True)] * new
    heads += [Head("values", figures=True)] * values
    heads += [Head("FPP", figures=True)] * fpp
    heads += [Head("target", figures=True)] * target
    heads += [Head("read from")] * source
    grid = Grid(tuple(heads))
    for item in changes:
        cells: list[Cell | str] = [str(item.row_group), item.column, item.action]
        cells += [_size(item.old_bitset_bytes)] * old
        cells += [_size(item.bitset_bytes)] * new
        cells += [count(item.values)] * values
        cells += [Cell(rate(item.fpp), Style.WARN if item.misses_target else Style.PLAIN)] * fpp
        cells += [rate(item.target_fpp)] * target
        cells += [item.source or "-"] * source
        grid.add(*cells)
    return grid


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)


_DONE: Final = {
    "add": "added",
    "replace": "replaced",
    "remove": "removed",
    "fold": "folded",
    "keep": "kept as they are",
}


def _tally(changes: Iterable[FilterChange]) -> str:
    actions = Counter(c.action for c in changes)
    return ", ".join(f"{plural(n, 'filter')} {_DONE.get(action, action)}" for action, n in actions.items())


def _outcome(report: ChangeReport) -> str:
    tally = _tally(report.changes) or "no filters to change"
    before, after = report.bytes_before, report.bytes_after
    sizes = f"{size(before)} -> {'at most ' if report.dry_run and after > before else ''}{size(after)}"
    if before and after != before:
        sizes += f" ({'+' if after > before else '-'}{share(abs(after - before), before)})"
    if report.dry_run:
        return f"dry run, nothing written: {report.path}: {tally}, {sizes}"
    return f"wrote {report.output}: {tally}, {sizes}"


def _effort(report: ChangeReport) -> str:
    verb = "would decode" if report.dry_run else "decoded"
    copied = "copy" if report.dry_run else "copied"
    return (
        f"{verb} {size(report.bytes_decoded)} of column data, {copied} {size(report.bytes_copied)} as they are"
        + ("" if report.dry_run else f", took {seconds(report.seconds)}")
    )


# validate


def validate(report: ValidateReport, *, policy: str = "", scope: str = "") -> Iterator[Block]:
    """Findings, the worst first, then what was and what wasn't checked.

    Args:
        policy: the policy that was asked for, as options (``--require id``); empty for none.
        scope: the columns that the check was limited to; empty for all.
    """
    for severity in Severity:
        found = [f for f in report.findings if f.severity is severity]
        if found:
            yield line(f"{plural(len(found), severity.value)}", SEVERITY_STYLE[severity])
            for finding in found:
                yield from _finding(finding)
            yield Gap()
    checked = f"checked {plural(report.filters_checked, 'filter')}"
    checked += f" of {scope}" if scope else ""
    checked += f": structure, {plural(report.values_checked, 'value')} looked up" if report.deep else ": structure"
    checked += f", policy ({policy})" if policy else ""
    left = []
    if not report.deep:
        left.append("that no value is missing (--deep)")
    if not policy:
        left.append("any policy (--require, --max-fpp)")
    checked += f"; not checked: {', '.join(left)}" if left else ""
    style = Style.GOOD if report.ok else Style.BAD
    yield line(f"{report.path}: {'ok' if report.ok else 'not ok'}, {seconds(report.seconds)}", style)
    yield line(checked)


def _finding(finding: Finding) -> Iterator[Line]:
    places = []
    if finding.row_group is not None:
        places.append(f"row group {finding.row_group}")
    if finding.column is not None:
        places.append(finding.column)
    if finding.offset is not None:
        places.append(f"byte {finding.offset}")
    where = f" ({', '.join(places)})" if places else ""
    yield line(f"{finding.id}: {finding.message}{where}", SEVERITY_STYLE[finding.severity], indent=2)
    if finding.missing:
        yield line("missing: " + ", ".join(finding.missing), indent=4)
    if finding.hint:
        yield line("hint: " + finding.hint, indent=4)
