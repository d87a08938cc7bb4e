"""Counts the lookups of a query log, and keeps a bounded number of their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from bloomcli.errors import LiteralError
from bloomcli.model.file import Column
from bloomcli.model.queries import QueriedColumn, UnservedPredicate
from bloomcli.values.literals import kind_of, parse

if TYPE_CHECKING:
    from bloomcli.advice.sql.analysis import ColumnLookup
    from bloomcli.values.sql_constants import Value

MOST_LITERALS: Final = 10_000
"""The most distinct values of a column that are kept."""
_MOST_COLUMNS: Final = 10_000
_TEXTS: Final = {"STRING", "ENUM", "JSON"}


class LiteralSample:
    """The looked-up values of a column: all of them, or a uniform random sample of the lookups.

    Up to `most` distinct values are counted exactly. After that, the sample has `most` lookups: each further lookup
    replaces a random one with the probability that keeps the sample uniform (Vitter's algorithm R, ACM Transactions
    on Mathematical Software 11, 1985).
    """

    def __init__(self, random: Random, most: int = MOST_LITERALS) -> None:
        self._random, self._most = random, most
        self._counts: Counter[str] = Counter()
        self._drawn: list[str] | None = None
        self._seen = 0

    def add(self, text: str) -> None:
        """Add the value of one lookup."""
        self._seen += 1
        if self._drawn is None:
            self._counts[text] += 1
            if len(self._counts) > self._most:
                self._drawn = self._random.sample(list(self._counts), self._most, counts=list(self._counts.values()))
                self._counts.clear()
        else:
            place = self._random.randrange(self._seen)
            if place < self._most:
                self._drawn[place] = text

    @property
    def sampled(self) -> bool:
        """Whether there were more distinct values than are kept."""
        return self._drawn is not None

    def values(self) -> tuple[tuple[str, int], ...]:
        """The values with their counts, the most frequent first."""
        counts = self._counts if self._drawn is None else Counter(self._drawn)
        return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass
class _Column:
    """The counts of one column."""

    values: LiteralSample
    lookups: int = 0
    statements: int = 0
    unknown: int = 0
    """Lookups whose value isn't in the statement."""


class UnservedCounter:
    """Counts the predicates that no filter serves."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str | None]] = Counter()
        self._examples: dict[tuple[str, str | None], str] = {}

    def count(self, unserved: Iterable[tuple[str, str | None, str]]) -> None:
        """Count predicates, each with its kind, its column and an example, which may be empty."""
        for kind, column, example in unserved:
            key = (kind, column)
            if key in self._counts or len(self._counts) < _MOST_COLUMNS:
                self._counts[key] += 1
                if example:
                    self._examples.setdefault(key, example)

    def result(self) -> tuple[UnservedPredicate, ...]:
        """The kinds of predicates with their counts, the most frequent first."""
        ranked = sorted(self._counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or ""))
        return tuple(
            UnservedPredicate(kind=kind, column=column, count=count, example=self._examples.get((kind, column), ""))
            for (kind, column), count in ranked
        )


@dataclass
class LookupCounter:
    """Counts lookups by column.

    Args:
        types: the columns whose types are known, by their paths.
        random: draws the sample of values.
    """

    types: Mapping[str, Column]
    random: Random
    _columns: dict[str, _Column] = field(default_factory=dict)

    def count(self, lookups: Iterable[ColumnLookup], unserved: UnservedCounter) -> None:
        """Count the lookups of a text. Predicates that need a cast count as unserved."""
        looked_up = set()
        for column, values, statement in lookups:
            of_column = self._columns.get(column)
            if of_column is None:
                if len(self._columns) >= _MOST_COLUMNS:
                    continue
                of_column = self._columns[column] = _Column(LiteralSample(self.random))
            typed = self.types.get(column)
            for value in values:
                if value is not None and typed is not None and _casts(typed, value):
                    unserved.count([("expression", column, f"{column} = ?")])
                    continue
                looked_up.add((column, statement))
                of_column.lookups += 1
                if value is None:
                    of_column.unknown += 1
                else:
                    of_column.values.add(_text(value, typed))
        for column, _ in looked_up:
            self._columns[column].statements += 1

    def result(self) -> tuple[QueriedColumn, ...]:
        """The columns that are looked up, those with the most lookups first."""
        found = [(path, column) for path, column in self._columns.items() if column.lookups]
        return tuple(
            QueriedColumn(
                column=path,
                lookups=column.lookups,
                statements=column.statements,
                without_literal=column.unknown,
                literals=column.values.values(),
                sampled=column.values.sampled,
            )
            for path, column in sorted(found, key=lambda item: (-item[1].lookups, item[0]))
        )


def _casts(column: Column, value: Value) -> bool:
    """Whether engines compare with a cast of the column: a text column is compared with a number or a date, or the
    value isn't one of the column's type, such as ``'n/a'`` for a number."""
    texts = kind_of(column) in _TEXTS or (column.physical == "BYTE_ARRAY" and column.logical is None)
    if texts:
        return value.kind in {"number", "time", "boolean"}
    try:
        parse(_text(value, column), column)
    except LiteralError:
        return True
    return False


def _text(value: Value, column: Column | None) -> str:
    """The value as `bloom probe` accepts it for the column."""
    binary = column is not None and column.logical is None and column.physical.endswith("BYTE_ARRAY")
    if binary and value.kind == "text" and value.text[:2].lower() == "0x":  # the text, not bytes in hex
        return f"0x{value.text.encode('utf-8', 'surrogateescape').hex()}"
    return value.text
