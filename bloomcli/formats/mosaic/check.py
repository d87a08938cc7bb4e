"""What can be wrong with a Mosaic file's filters: structure from the metadata, soundness from the values."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Final

from bloomcli.formats.base import DeepCheck, Tick
from bloomcli.formats.deep_check import Rebuilt, add_missing, lost_values, stray_bits
from bloomcli.formats.mosaic import values
from bloomcli.formats.mosaic.describe import column_name, facts, problem_facts
from bloomcli.formats.mosaic.filter_header import HINT_REPLACE, FilterProblem, LoadedFilter
from bloomcli.formats.mosaic.footer import FilterPlace, RowGroup
from bloomcli.formats.mosaic.splice import overlaps
from bloomcli.model.file import FilterFacts, Finding, Severity

if TYPE_CHECKING:
    from bloomcli.formats.mosaic.file import MosaicFile

_HINT_REMOVE: Final = "`bloom remove` takes it out"
_NOT_OURS: Final = ("filter-column", "filter-type")
"""Filters that can't be written anew."""


def _finding(
    file: MosaicFile,
    place: FilterPlace,
    id: str,  # noqa: A002  it is the finding's id
    severity: Severity,
    message: str,
    *,
    offset: int | None = None,
    missing: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        id=id,
        severity=severity,
        message=message,
        row_group=place.row_group,
        column=column_name(file.footer, place),
        offset=place.offset if offset is None else offset,
        hint=_HINT_REMOVE if id in _NOT_OURS else HINT_REPLACE,
        missing=missing,
    )


def examine(file: MosaicFile, columns: set[int] | None) -> Iterator[FilterFacts | Finding]:
    """The filters; and headers, lengths, offsets, overlaps, filters that hold nothing, columns with two filters."""
    seen: set[tuple[int, int]] = set()
    for place in file.places(columns):
        key = (place.row_group, place.column)
        if key in seen:
            yield _finding(
                file,
                place,
                "filter-duplicate",
                Severity.WARNING,
                "a second filter of the same column and row group: readers use the first",
            )
        seen.add(key)
        try:
            loaded = file.load(place)
        except FilterProblem as problem:
            yield problem_facts(file.footer, place, problem)
            yield _finding(file, place, problem.id, Severity.ERROR, problem.reason, offset=problem.offset)
        else:
            yield facts(file.footer, loaded)
            yield from _sound(file, loaded)
    for first, second in overlaps(file.footer):
        owner = second if second.filter is not None else first
        assert owner.filter is not None  # noqa: S101  one of them is a filter
        if columns is None or owner.filter.column in columns:
            yield _finding(
                file,
                owner.filter,
                "filter-overlap",
                Severity.ERROR,
                f"{second.what} at {second.start} overlaps {first.what} at {first.start} to {first.end}",
            )


def _sound(file: MosaicFile, loaded: LoadedFilter) -> Iterator[Finding]:
    place = loaded.place
    if loaded.trailing:
        yield _finding(
            file,
            place,
            "filter-trailing-bytes",
            Severity.WARNING,
            f"the index counts {loaded.trailing} bytes to the filter that are not part of it",
        )
    group = file.footer.row_groups[place.row_group]
    count = group.present(place.column)
    if loaded.bits.set_bits == 0 and count > 0 and place.column in group.statistics:
        yield _finding(
            file,
            place,
            "filter-all-zero",
            Severity.ERROR,
            f"no bit is set, though the row group has {count} values: a reader loses all of them",
        )


def deep(
    file: MosaicFile, columns: set[int] | None, tick: Tick, units: Container[int] | None = None
) -> Iterator[DeepCheck]:
    """Every value of every column that has a readable filter, looked up in it."""
    reader: values.ColumnReader | None = None
    before: list[int] = []
    try:
        for group in file.footer.row_groups:
            if units is not None and group.ordinal not in units:
                continue
            found = _readable(file, group, columns)
            if not found:
                continue
            chosen = sorted({f.place.column for f in found})
            if reader is None or chosen != before:  # as a rule all row groups have filters of the same columns
                if reader is not None:
                    reader.close()
                    reader = None
                reader, before = values.ColumnReader(file.footer, [file.footer.columns[c] for c in chosen]), chosen
            yield from _deep_group(file, reader.row_group(group), found)
            tick(file.bytes_of(group, set(chosen)))
    finally:
        if reader is not None:
            reader.close()


def _readable(file: MosaicFile, group: RowGroup, columns: set[int] | None) -> list[LoadedFilter]:
    found: list[LoadedFilter] = []
    for place in group.filters:
        if columns is None or place.column in columns:
            try:
                found.append(file.load(place))
            except FilterProblem:
                continue  # structure reports it
    return found


def _deep_group(file: MosaicFile, hashes: dict[int, values.Hashed], found: list[LoadedFilter]) -> Iterator[DeepCheck]:
    for loaded in found:
        hashed = hashes[loaded.place.column]
        again = Rebuilt(loaded.bits, values.zero_hashes(file.footer.columns[loaded.place.column]))
        again.insert(hashed.hashes, hashed.count, has_zero=hashed.has_zero)
        if not again.lost():
            stray = again.stray()
            yield DeepCheck(
                values=hashed.count,
                finding=_finding(file, loaded.place, "filter-stray-bits", Severity.WARNING, stray_bits(stray))
                if stray
                else None,
            )
            continue
        flags = bytearray(hashed.count)
        lost = loaded.bits.check_hashes(hashed.hashes, hashed.count, flags)
        missing: list[str] = []
        add_missing(missing, flags, hashed.value)
        yield DeepCheck(
            values=hashed.count,
            finding=_finding(
                file,
                loaded.place,
                "value-missing",
                Severity.ERROR,
                lost_values(lost, hashed.count),
                missing=tuple(missing),
            ),
        )
