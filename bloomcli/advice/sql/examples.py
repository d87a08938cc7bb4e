"""Formats predicates and statements as examples for reports, without the values of the user's queries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

_MOST_CHARACTERS: Final = 160
_LITERALS: Final = (exp.Literal, exp.HexString, exp.BitString, exp.ByteString, exp.National, exp.RawString)
_COMMENT: Final = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_NUMBER: Final = re.compile(r"(?<![\w.])[+-]?\.?\d[\w.]*")
_QUOTE: Final = re.compile(r"['\"`$]|/\*|--")


def example(node: exp.Expr, dialect: Dialect) -> str:
    """A predicate as SQL of the dialect, with `?` in place of each literal."""
    copy = node.copy()
    for part in list(copy.find_all(*_LITERALS)):
        if part is copy:
            return "?"
        part.replace(exp.Var(this="?"))
    try:
        return _shortened(copy.sql(dialect, comments=False))
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError):
        return node.key  # the kind of predicate


def beginning(text: str) -> str:
    """The beginning of a text that isn't a statement, up to its first quote, with `?` in place of each number."""
    plain = " ".join(_COMMENT.sub(" ", text).split())
    quote = _QUOTE.search(plain)
    return _shortened(_NUMBER.sub("?", plain if quote is None else f"{plain[: quote.start()]}..."))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."
