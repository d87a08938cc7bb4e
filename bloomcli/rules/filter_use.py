"""Says what filters do for each reader: it gains by them, dictionaries serve it already, or it never looks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from bloomcli.model.reader_use import ReaderUse
from bloomcli.rules.reader_table import ALP, ENCRYPTED_COLUMN, KINDS_IN, ROWS, VARIANT_FIELD, Reader
from bloomcli.words import plural, size

GAINS: Final = "gains"
DICTIONARIES: Final = "dictionaries"
NEVER_LOOKS: Final = "never-looks"
OVERLOOKED: Final = {
    ALP: "known to read ALP",
    ENCRYPTED_COLUMN: "known to use encrypted filters",
    VARIANT_FIELD: "known to filter by fields of a VARIANT",
}
"""What isn't known of a reader whose `overlooks` has a property of columns."""


def unknown_reason(item: str) -> str:
    """The reason of such a reader."""
    return f"isn't {OVERLOOKED[item]}"


class Encoded(NamedTuple):
    """How the chunks of one column are encoded."""

    column: str
    kind: str
    """The logical type's name without its parameters, else the physical type."""
    row_groups: int
    dictionary_row_groups: int
    """Row groups in which every data page is dictionary-encoded."""
    properties: Collection[str] = ()
    """As `FilterFile.properties`."""


def uses(who: Reader, formats: Collection[str], columns: Iterable[Encoded]) -> tuple[ReaderUse, ...]:
    """What filters of these columns do for a reader; one item for each verdict and reason.

    Args:
        who: the reader.
        formats: the formats of the files.
        columns: the columns.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        found.setdefault(_verdict(who, formats, column), []).append(column.column)
    return tuple(
        ReaderUse(reader=who.name, title=who.title, verdict=verdict, columns=tuple(names), reason=reason)
        for (verdict, reason), names in found.items()
    )


def current(formats: Collection[str]) -> dict[str, Reader]:
    """The readers of files of these formats, by name, in their current releases, without those that need a table."""
    return {
        who.name: who
        for who in ROWS
        if not (who.superseded or who.tables_only) and (not who.probes or who.probes & set(formats))
    }


def _verdict(who: Reader, formats: Collection[str], column: Encoded) -> tuple[str, str]:
    groups, encoded = column.row_groups, column.dictionary_row_groups
    if not set(formats) & who.probes:
        return NEVER_LOOKS, "never looks at filters"
    for item in OVERLOOKED:
        if item in column.properties and item in who.overlooks:
            return NEVER_LOOKS, unknown_reason(item)
    if column.kind in who.overlooks and set(formats) <= KINDS_IN:
        return NEVER_LOOKS, f"looks no {column.kind} up in filters or dictionaries"
    if not who.dictionary or not encoded:
        return GAINS, "skips row groups by filters"
    if encoded < groups:
        rest = f"{groups - encoded:,} of {plural(groups, 'row group')}"
        return GAINS, f"skips row groups by filters where chunks have no dictionary: in {rest}"
    have = "which the row group has" if groups == 1 else f"which all {plural(groups, 'row group')} have"
    if who.dictionary_bytes is not None:
        least = f"of up to {size(who.dictionary_bytes)} as stored"
        return DICTIONARIES, f"looks values up in dictionaries {least}, {have}: filters change nothing for these"
    return DICTIONARIES, f"looks values up in dictionaries, {have}: filters change nothing"
