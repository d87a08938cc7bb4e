"""Compares names of tables and columns in statements by the rules of the dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlglot.dialects.dialect import NormalizationStrategy

from bloomcli.model.file import Column

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect


class Name(NamedTuple):
    """One part of a qualified name."""

    text: str
    quoted: bool


class Names:
    """Compares names, and finds the columns of the table in question.

    Attributes:
        known: whether the columns of the table are known.
    """

    def __init__(self, dialect: Dialect, columns: Iterable[str | Column] | None) -> None:
        strategy = dialect.normalization_strategy
        self._exact = strategy is NormalizationStrategy.CASE_SENSITIVE
        self._exact_quoted = self._exact or strategy in {
            NormalizationStrategy.LOWERCASE,
            NormalizationStrategy.UPPERCASE,
        }
        self.known = columns is not None
        self.types: dict[str, Column] = {}
        """The columns whose types are known, by their paths."""
        self._paths: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        self._leaves: dict[str, list[str]] = {}
        for column in columns or ():
            path = column if isinstance(column, str) else column.path
            if not isinstance(column, str):
                self.types[path] = column
            self._paths[path] = path
            self._folded.setdefault(path.casefold(), path)
            parts = path.split(".")
            for length in range(1, len(parts)):
                self._leaves.setdefault(".".join(parts[:length]).casefold(), []).append(path)

    def key(self, name: Name) -> str:
        """A text that is the same for equal names."""
        return name.text if self._exact or (self._exact_quoted and name.quoted) else name.text.casefold()

    def same(self, a: Name, b: Name) -> bool:
        """Whether two names are equal."""
        if a.text == b.text:
            return True
        if self._exact or (self._exact_quoted and (a.quoted and b.quoted)):
            return False
        return a.text.casefold() == b.text.casefold()

    def begins(self, name: Name) -> bool:
        """Whether a column of the table has this name, or begins with it and a dot."""
        folded = name.text.casefold()
        if folded in self._leaves:
            return True
        return name.text in self._paths or (not self._exact and folded in self._folded)

    def column(self, parts: Sequence[Name]) -> str | None:
        """The path of a leaf column: as in the statement if the columns aren't known; None if the column doesn't
        exist."""
        path = ".".join(part.text for part in parts)
        if not self.known or path in self._paths:
            return path
        return None if self._exact else self._folded.get(path.casefold())

    def group(self, parts: Sequence[Name]) -> str | None:
        """The single leaf column of a group, or the group's path if it has several; None if the group doesn't
        exist."""
        path = ".".join(part.text for part in parts)
        leaves = self._leaves.get(path.casefold())
        if leaves is None:
            return None
        return leaves[0] if len(leaves) == 1 else path
