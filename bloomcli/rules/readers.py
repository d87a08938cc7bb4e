"""Finds engines by name, and decides how they look up values of a column in filters, and what filters do for each: it
gains by them, dictionaries serve it already, or it never looks.

`bloomcli.rules.reader_table` contains the facts about each engine, for `validate --readers` and `add --readers`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bloomcli.errors import UsageError, near_names
from bloomcli.model.file import Column, decimal_bytes
from bloomcli.rules.reader_table import (
    ALP,
    BY_PRECISION,
    DECIMAL_WIDTH,
    ENCRYPTED_COLUMN,
    KINDS_IN,
    NOT_POWER_OF_TWO,
    ROWS,
    VARIANT_FIELD,
    Evidence,
    Reader,
)
from bloomcli.words import plural, size

if TYPE_CHECKING:
    from bloomcli.model.reader_use import ReaderUse

READERS: Final[dict[str, Reader]] = {row.name: row for row in ROWS}
"""Every reader by its name."""

_BY_ANY_NAME: Final = {name: row for row in ROWS for name in (row.name, *row.aliases)}

_DOUBLE_BYTES: Final = 8


def reader(name: str) -> Reader:
    """Return the reader with this name or alias, in any case. Raises UsageError, with similar names, if unknown."""
    who = _BY_ANY_NAME.get(name.strip().lower().replace("_", "-"))
    if who is not None:
        return who
    near = near_names(name.strip().lower(), _BY_ANY_NAME, n=3, cutoff=0.5)
    offer = "readers: " + ", ".join(READERS)
    raise UsageError(f"unknown reader {name!r}", hint=f"did you mean {' or '.join(near)}? {offer}" if near else offer)


def named(names: Iterable[str], file_format: str) -> list[Reader]:
    """Return the readers with these names that use filters of a format, each once, in the order of the names.

    Raises UsageError for an unknown name.
    """
    by_name = {who.name: who for who in map(reader, names)}
    return [who for who in by_name.values() if file_format in who.probes]


def everyone(file_format: str, *, tables: bool) -> list[Reader]:
    """Return every reader whose current release uses filters of a format.

    Args:
        file_format: as in `FilterFile.format`.
        tables: include readers that read files only through a table's schema.
    """
    return [
        who for who in ROWS if file_format in who.probes and not who.superseded and (tables or not who.tables_only)
    ]


def superseded(file_format: str) -> list[Reader]:
    """Return the old releases that use filters of a format."""
    return [who for who in ROWS if file_format in who.probes and who.superseded]


def evidence(rule: str, wrong: Sequence[Reader]) -> str:
    """Return the evidence that readers break a rule: kind, versions and observation."""
    return "; ".join(evidence_text(who.wrong_about[rule]) for who in wrong)


def evidence_text(fact: Evidence) -> str:
    """Return a fact as a sentence."""
    return f"{fact.kind.value}, {fact.version}: {fact.text}"


def refusing(rule: str) -> str:
    """Return which readers refuse or misread filters that break a rule: ``Arrow C++ refuses it, Impala misreads
    it``."""
    refuse = [who.title for who in ROWS if rule in who.refuses]
    misread = [who.title for who in ROWS if rule in who.misreads]
    parts = [
        f"{' and '.join(titles)} {verb}{'s' if len(titles) == 1 else ''} it"
        for titles, verb in ((refuse, "refuse"), (misread, "misread"))
        if titles
    ]
    return ", ".join(parts)


def any_size_refusal(who: Reader, file_format: str) -> str | None:
    """Return why a reader can't use filters of any number of blocks, with the evidence; None if it accepts them."""
    for verb, facts in (("misreads", who.misreads), ("refuses", who.refuses)):
        if NOT_POWER_OF_TWO in facts:
            return f"{who.title} {verb} such filters ({evidence_text(facts[NOT_POWER_OF_TWO])})"
    if file_format in who.probes and who.any_size is None:
        return f"it isn't known whether {who.title} takes such filters"
    return None


def reads_double(who: Reader, column: Column) -> bool:
    """Return whether a reader reads a Parquet column of decimals as DOUBLE."""
    return who.decimal_digits is not None and column.precision > who.decimal_digits


def decimal_width(who: Reader, column: Column) -> int | None:
    """Return the width in bytes at which a reader hashes the decimals of a Parquet column that is stored as bytes.

    None if it hashes the stored bytes or doesn't look up decimals. No reader has this bug with INT32 and INT64.
    """
    if not column.precision or DECIMAL_WIDTH not in who.wrong_about:
        return None
    in_bytes = column.physical in {"FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"}
    if in_bytes and reads_double(who, column):
        return _DOUBLE_BYTES
    if who.decimal_width is None:
        return None
    if column.physical == "FIXED_LEN_BYTE_ARRAY":
        return who.decimal_width or decimal_bytes(column.precision)
    if column.physical == "BYTE_ARRAY" and who.decimal_width == BY_PRECISION:
        return decimal_bytes(column.precision)
    return None


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
    """The properties of the column, as `FilterFile.properties` gives them."""


def uses(who: Reader, formats: Collection[str], columns: Iterable[Encoded]) -> tuple[ReaderUse, ...]:
    """What filters of these columns do for a reader; one item for each verdict and reason.

    Args:
        who: the reader.
        formats: the formats of the files.
        columns: the columns.
    """
    from bloomcli.model.reader_use import ReaderUse  # only `advise` and `trial` need it

    groups: dict[tuple[str, str], list[str]] = {}
    for column in columns:
        groups.setdefault(_verdict(who, formats, column), []).append(column.column)
    return tuple(
        ReaderUse(reader=who.name, title=who.title, verdict=verdict, columns=tuple(names), reason=reason)
        for (verdict, reason), names in groups.items()
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
