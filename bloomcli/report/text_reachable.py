"""Text of `find --reachable`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.model.reachable import LookedAt, Place, ReachableReport
from bloomcli.report.layout import Block, Cell, Gap, Line, Style, line
from bloomcli.words import are, plural

_PATHS: Final = 3


def reachable(report: ReachableReport) -> Iterator[Block]:
    """Yield the places that have values, and the statements that end them; or that there are none."""
    where = f"all that {report.table} reaches"
    values = f"{plural(report.values, 'value')} of {report.column}"
    if report.places:
        still = f"{report.values_found:,} of {values} {are(report.values_found)} still in {where}"
        yield Line(Cell(f"{still}: in {plural(len(report.places), 'place')}", Style.BAD))
        groups: dict[tuple[object, ...], list[Place]] = {}
        for one in report.places:
            groups.setdefault((one.kind, one.part, bool(one.live_rows), one.kept_by, one.ends), []).append(one)
        for places in groups.values():
            yield Gap()
            yield from _group(places)
        yield Gap()
        yield line("statements that end this, in this order; look again afterwards:")
        yield from (Line(Cell(f"{text};"), 2, whole=True) for text in report.statements)
        yield from (line(f"note: {note}") for note in report.notes)
    elif report.errors:
        yield line(f"no value was found in what could be searched of {where}")
    else:
        yield Line(Cell(f"nothing left: {where} has none of {values}", Style.GOOD))
    yield Gap()
    yield from (line(f"looked at: {_looked_at(one)}") for one in report.looked_at)
    yield line(f"looked at: {plural(report.metadata_files, 'file')} of metadata")
    yield from (line(f"not looked at: {text}") for text in report.not_looked_at)
    if report.errors:
        yield line(
            f"failed: {plural(len(report.errors), 'file')}, in which there may be more; there is no certificate"
        )


def _group(places: list[Place]) -> Iterator[Block]:
    """Yield places that the same things keep."""
    first, rows = places[0], sum(one.rows for one in places)
    facts = [f"{plural(rows, 'row')}, {sum(one.live_rows for one in places):,} not deleted"] if rows else []
    facts += ["the beginning of a value, perhaps of another one"] if first.part else []
    yield Line(Cell(": ".join((first.kind, *facts)), Style.TITLE))
    yield from (Line(Cell(one.path), 2, whole=True) for one in places[:_PATHS])
    if len(places) > _PATHS:
        yield Line(Cell(f"and {len(places) - _PATHS:,} more, which --format json lists"), 2)
    yield Line(Cell(f"kept by: {'; '.join(first.kept_by)}"), 2)


def _looked_at(one: LookedAt) -> str:
    numbers = (
        (one.by_filter, "ruled out by filters, statistics or schema"),
        (one.by_scan, "read"),
        (one.without_values, "not opened: only row numbers"),
    )
    return f"{one.kind}: {one.files:,}; " + ", ".join(f"{count:,} {what}" for count, what in numbers if count)
