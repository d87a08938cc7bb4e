"""Sums up the footer's statistics and the stripes' footers by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomcli.formats.column_facts import NO_BOUNDS, Bounds, ColumnFacts, merged_bounds
from bloomcli.formats.orc import spec, statistics
from bloomcli.formats.orc.bloom_filter import UTF8, LoadedStream
from bloomcli.formats.orc.footer import INDEX_KINDS, Footer
from bloomcli.formats.orc.schema import OrcType, column_of, literal_column
from bloomcli.formats.orc.statistics import missing_bounds
from bloomcli.rules.writer_table import Part

CONTRADICTED: Final = "no filter has the file's own minimum or maximum: the filters or the statistics are wrong"

_DICTIONARIES: Final = ("DICTIONARY", "DICTIONARY_V2")
_TIMESTAMPS: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT")
_SHORTENED: Final = ("STRING", "CHAR", "VARCHAR")


class Contradictions:
    """Finds columns whose filters don't have the file's own minimum or maximum, in any row group.

    Then either the filters or the statistics are wrong. A column is compared if it has filters that can be trusted in
    every stripe.
    """

    def __init__(self, footer: Footer) -> None:
        self._footer = footer
        self._missing: dict[int, set[str]] = {}
        self._stripes: dict[int, set[int]] = {}

    def compare(self, stripe: int, loaded: LoadedStream) -> None:
        """Look the file's bounds up in the filters of a column in a stripe."""
        column = loaded.stream.column
        if loaded.untrusted is not None or loaded.stream.kind != UTF8:
            return
        self._stripes.setdefault(column, set()).add(stripe)
        orc = self._footer.types[column]
        missing = self._missing.get(column)
        if missing is None:
            missing = self._missing[column] = {"minimum", "maximum"}
        if not missing:
            return
        stats = _statistics(self._footer, column)
        typed = literal_column(orc)
        for bits in loaded.filters:
            missing &= {which for which, _ in missing_bounds(stats, orc, typed, bits)}
            if not missing:
                return

    def contradicted(self, column: int) -> bool:
        """Whether a bound of the file is in no filter of the column."""
        stripes = {s.ordinal for s in self._footer.stripes if s.rows}
        return bool(self._missing.get(column)) and self._stripes.get(column, set()) >= stripes


class _ColumnStorage:
    """The storage of one column in all stripes."""

    __slots__ = ("bytes", "dictionaries", "encodings", "stripes")

    def __init__(self) -> None:
        self.bytes = 0
        self.encodings: dict[str, None] = {}
        self.dictionaries: list[int] = []
        self.stripes = 0


def column_facts(footer: Footer, columns: set[int] | None, contradictions: Contradictions) -> Iterator[ColumnFacts]:
    """Yield the facts of these columns (None: all but structs), in schema order. Raises CorruptFile."""
    chosen = [t for t in footer.types if t.kind != "STRUCT" and (columns is None or t.id in columns)]
    stored = {t.id: _ColumnStorage() for t in chosen}
    for stripe in footer.stripes:
        streams = footer.stripe_footer(stripe)
        encodings = streams.message.columns
        for column, found in stored.items():
            found.stripes += 1
            found.bytes += sum(s.length for s in streams.of_column(column) if s.kind not in INDEX_KINDS)
            if column < len(encodings):
                name = spec.name_of("EncodingKind", encodings[column].kind)
                found.encodings[name] = None
                if name in _DICTIONARIES:
                    found.dictionaries.append(encodings[column].dictionary_size)
    for orc in chosen:
        facts = _facts(footer, orc, stored[orc.id])
        yield facts._replace(bounds=Bounds(problem=CONTRADICTED)) if contradictions.contradicted(orc.id) else facts


def _facts(footer: Footer, orc: OrcType, stored: _ColumnStorage) -> ColumnFacts:
    typed = literal_column(orc)
    encrypted = orc.id in footer.encrypted_columns
    values, nulls = (None, None) if encrypted else _counts(footer, orc)
    everywhere = stored.stripes and len(stored.dictionaries) == stored.stripes and not encrypted
    return ColumnFacts(
        column_of(orc),
        typed,
        encodings=() if encrypted else tuple(stored.encodings),
        compression=("encrypted",) if encrypted else (footer.codec.name,),
        values=values,
        nulls=nulls,
        compressed_bytes=None if encrypted else stored.bytes,
        distinct=max(stored.dictionaries) if everywhere else None,
        distinct_from="dictionary" if everywhere else None,
        bounds=NO_BOUNDS if encrypted or orc.fault is not None else _bounds(footer, orc),
    )


def _statistics(footer: Footer, column: int) -> Any | None:
    """The file's statistics of a column. Those of an encrypted column describe its mask."""
    if column >= len(footer.message.statistics):
        return None
    raw = footer.message.statistics[column]
    found = spec.parse("ColumnStatistics", raw, footer.path, footer.footer_at, f"statistics[{column}]")
    if footer.rows:
        statistics.believe((found,), footer.types[column], footer.created_by, Part.FILE_BOUNDS)
    return found


def _counts(footer: Footer, orc: OrcType) -> tuple[int | None, int | None]:
    """(values, nulls), None if unknown. A column in a struct has a value or a null for each value of the struct."""
    found = _statistics(footer, orc.id)
    if found is None or not found.HasField("number_of_values"):
        return None, None
    known = int(found.number_of_values)
    if found.HasField("has_null") and not found.has_null:
        return known, 0
    above = footer.ancestors(orc)
    if not above or above[-1].kind != "STRUCT" or above[-1].id in footer.encrypted_columns:
        return None, None
    parent = _statistics(footer, above[-1].id)
    if parent is None or not parent.HasField("number_of_values") or parent.number_of_values < known:
        return None, None
    return int(parent.number_of_values), int(parent.number_of_values) - known


def _bounds(footer: Footer, orc: OrcType) -> Bounds:
    found = _statistics(footer, orc.id)
    if found is None or (found.HasField("number_of_values") and found.number_of_values == 0):
        return NO_BOUNDS
    low, high = statistics.bounds(found, orc)
    if low is None and high is None:
        return NO_BOUNDS
    low_exact = high_exact = None
    if orc.kind in _TIMESTAMPS:  # rounded to milliseconds, down and up
        low_exact = high_exact = False
    elif orc.kind in _SHORTENED:
        low_exact = found.string_statistics.HasField("minimum")
        high_exact = found.string_statistics.HasField("maximum")
    merged = merged_bounds((low,), (high,), literal_column(orc), ((low_exact,), (high_exact,)))
    if orc.kind == "CHAR":  # stored and compared with blanks, looked up without them
        low, high = (None if b is None else b.rstrip(b" ") for b in (merged.low, merged.high))
        return merged._replace(low=low, high=high)
    return merged
