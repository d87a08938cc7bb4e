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
    if report.places:
        some = f"{report.values_found:,} of {plural(report.values, 'value')} of {report.column}"
        still = f"{are(report.values_found)} still in {where}: in {plural(len(report.places), 'place')}"
        yield Line(Cell(f"{some} {still}", Style.BAD))
        groups: dict[tuple[object, ...], list[Place]] = {}
        for place in report.places:
            groups.setdefault((place.kind, place.part, bool(place.live_rows), place.kept_by, place.ends), []).append(
                place
            )
        for places in groups.values():
            yield Gap()
            yield from _group(places)
        yield Gap()
        yield line("Statements that end this, in this order; then look again:")
        yield from (Line(Cell(f"{text};"), 2, whole=True) for text in report.statements)
        yield from (line(f"note: {note}") for note in report.notes)
    elif report.errors:
        yield line(f"no value was found in what could be searched of {where}")
    else:
        yield Line(
            Cell(f"nothing left: {where} has none of {plural(report.values, 'value')} of {report.column}", Style.GOOD)
        )
    yield Gap()
    yield from (line(f"looked at: {_looked_at(one)}") for one in report.looked_at)
    yield line(f"looked at: {plural(report.metadata_files, 'metadata file')} (manifests, or files of the log)")
    yield from (line(f"not looked at: {text}") for text in report.not_looked_at)
    if report.errors:
        failed = plural(len(report.errors), "file")
        yield line(f"failed: {failed}, in which there may be more; there is no certificate")


def _group(places: list[Place]) -> Iterator[Block]:
    """Places that the same things keep."""
    first = places[0]
    what = {
        "manifest bounds": "least or greatest value in manifests, of data files",
        "log statistics": "least or greatest value in the log, of data files",
        "commit information": "text of a commit",
    }.get(first.kind, first.kind)
    rows = sum(one.rows for one in places)
    live = sum(one.live_rows for one in places)
    facts = [f"{plural(rows, 'row')}, {live:,} not deleted"] if rows else []
    facts += ["the beginning of a value, perhaps of another one"] * first.part
    yield Line(Cell(f"{what}{': ' * bool(facts)}{'; '.join(facts)}", Style.TITLE))
    yield from (Line(Cell(one.path), 2, whole=True) for one in places[:_PATHS])
    if len(places) > _PATHS:
        yield Line(Cell(f"and {len(places) - _PATHS:,} more, which --format json lists"), 2)
    yield Line(Cell(f"kept by: {'; '.join(first.kept_by)}"), 2)


def _looked_at(one: LookedAt) -> str:
    parts = [(one.by_filter, "ruled out by filters or statistics"), (one.by_scan, "read"),
             (one.without_values, "without values, only row numbers")]  # fmt: skip
    return f"{plural(one.files, one.kind)}: " + ", ".join(f"{count:,} {what}" for count, what in parts if count)
