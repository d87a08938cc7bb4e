"""Which engines read filters, by name; and what their ways of looking values up come to for a column.

What is known of each is in `bloomcli.rules.reader_table`: `validate --readers` and `add --readers` share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from bloomcli.errors import UsageError, near_names
from bloomcli.model.file import Column
from bloomcli.rules.reader_table import ROWS
from bloomcli.rules.reader_types import BY_PRECISION, DECIMAL_WIDTH, Evidence, Reader

READERS: Final[dict[str, Reader]] = {row.name: row for row in ROWS}
"""Every reader by its name."""

_BY_ANY_NAME: Final = {name: row for row in ROWS for name in (row.name, *row.aliases)}

_DOUBLE_BYTES: Final = 8


def reader(name: str) -> Reader:
    """The reader of this name or alias, in any case. Raises UsageError, with near names, for an unknown one."""
    found = _BY_ANY_NAME.get(name.strip().lower().replace("_", "-"))
    if found is not None:
        return found
    near = near_names(name.strip().lower(), _BY_ANY_NAME, n=3, cutoff=0.5)
    known = "known ones: " + ", ".join(READERS)
    raise UsageError(f"no reader {name!r}", hint=f"did you mean {' or '.join(near)}? {known}" if near else known)


def named(names: Iterable[str], file_format: str) -> list[Reader]:
    """The readers of these names that look into filters of a format, each once, in the order named.

    Raises UsageError for an unknown name.
    """
    found = {who.name: who for who in map(reader, names)}
    return [who for who in found.values() if file_format in who.probes]


def everyone(file_format: str, *, tables: bool) -> list[Reader]:
    """Every reader that looks into filters of a format in its present release.

    Args:
        file_format: as `FilterFile.format`.
        tables: also those that read files through a table's schema only.
    """
    return [
        who for who in ROWS if file_format in who.probes and not who.superseded and (tables or not who.tables_only)
    ]


def superseded(file_format: str) -> list[Reader]:
    """Old releases that look into filters of a format."""
    return [who for who in ROWS if file_format in who.probes and who.superseded]


def evidence(rule: str, found: Sequence[Reader]) -> str:
    """By what it is known of some readers that they break a rule: how, of which versions, and what was seen."""
    return "; ".join(told(who.wrong_about[rule]) for who in found)


def told(fact: Evidence) -> str:
    """A fact as a sentence."""
    return f"{fact.kind.value}, {fact.version}: {fact.text}"


def refusing(rule: str) -> str:
    """Who refuses filters that break a rule, and who misreads them: ``Arrow C++ refuses it, Impala misreads it``."""
    refuse = [who.title for who in ROWS if rule in who.refuses]
    misread = [who.title for who in ROWS if rule in who.misreads]
    said = [
        f"{' and '.join(titles)} {verb}{'s' if len(titles) == 1 else ''} it"
        for titles, verb in ((refuse, "refuse"), (misread, "misread"))
        if titles
    ]
    return ", ".join(said)


def decimal_bytes(precision: int) -> int:
    """Bytes of the shortest two's complement that holds every decimal of so many digits. Source: the Parquet
    format's LogicalTypes.md, DECIMAL."""
    return int(10**precision - 1).bit_length() // 8 + 1


def reads_double(who: Reader, column: Column) -> bool:
    """Whether a reader takes a Parquet column of decimals for DOUBLE."""
    return who.decimal_digits is not None and column.precision > who.decimal_digits


def decimal_width(who: Reader, column: Column) -> int | None:
    """The width in bytes at which a reader hashes the decimals of a Parquet column that is stored in bytes.

    None where it hashes them as they are stored, or doesn't look them up: in INT32 and INT64 no reader errs.
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
