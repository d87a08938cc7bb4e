"""Splits a log of queries into statements: text with semicolons, or lines of JSON with a statement under "query".

Examples for reports show predicates and statements without the values of the user's queries.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from bloomcli.errors import UsageError
from bloomcli.storage.base import Source

PARSER_ERRORS: Final = (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, LookupError)
"""The exceptions that the parsers and writers of sqlglot's 30 dialects raise."""
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
    except PARSER_ERRORS:
        return node.key  # the kind of predicate


def beginning(text: str) -> str:
    """The beginning of a text that isn't a statement, up to its first quote, with `?` in place of each number."""
    line = " ".join(_COMMENT.sub(" ", text).split())
    quote = _QUOTE.search(line)
    return _shortened(_NUMBER.sub("?", line if quote is None else f"{line[: quote.start()]}..."))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 3]}..."


_READ_BYTES: Final = 1 << 20
MOST_CHARACTERS: Final = 1 << 20
"""The length of the longest statement, or line of JSON. Longer ones count as unreadable, to bound the memory."""
_LINE_END: Final = re.compile(r";[ \t\r]*\n")
_EXAMPLE_CHARACTERS: Final = 1000


class Statement(NamedTuple):
    """The text of a statement, or of several statements in one line of JSON."""

    text: str
    problem: str | None = None
    """The reason for which the text isn't a statement; `text` is then its beginning. None if it may be a
    statement."""


def statements(source: Source, dialect: Dialect) -> Iterator[Statement]:
    """Yield the statements of a file in order, in bounded memory.

    Raises:
        UsageError: the file isn't text, or is one array of JSON.
        UnreadableError: the store can't read it.
    """
    texts = _texts(source)
    first = next((text for text in texts if text.strip()), "")
    chunks = chain([first], texts)
    match first.lstrip()[:1]:
        case "{":
            yield from _of_lines(chunks)
        case "[":
            raise UsageError(
                "the log is an array of JSON, and lines of JSON are read, each an object with the key query",
                path=source.path,
                hint="jq -c '.[]' writes an object a line",
            )
        case _:
            yield from split(chunks, boundaries(dialect))


def _texts(source: Source) -> Iterator[str]:
    """Yield the file's text in pieces. Bytes that aren't UTF-8 become lone surrogates, as `values.literals`
    expects."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    for offset in range(0, source.size, _READ_BYTES):
        data = source.read_at(offset, min(_READ_BYTES, source.size - offset))
        if b"\0" in data:
            raise UsageError(
                "the log isn't text in UTF-8",
                path=source.path,
                offset=offset + data.index(b"\0"),
                hint="a log is SQL statements that end in semicolons, or lines of JSON with a statement under query",
            )
        yield decoder.decode(data, final=offset + _READ_BYTES >= source.size)


def _of_lines(chunks: Iterable[str]) -> Iterator[Statement]:
    """Yield the statements of lines of JSON."""
    for line in _lines(chunks):
        if len(line) > MOST_CHARACTERS:
            yield Statement("", "the line is too long")
        elif line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                yield Statement("", "the line isn't JSON")
                continue
            query = record.get("query") if isinstance(record, dict) else None
            if isinstance(query, str):
                yield from _statement(query)
            else:
                yield Statement("", "the line has no text under query")


def _lines(chunks: Iterable[str]) -> Iterator[str]:
    """Yield lines without their ends; of a line that is too long, only the beginning."""
    rest = ""
    for chunk in chunks:
        *whole, last = (rest + chunk).split("\n")
        yield from whole
        rest = last[: MOST_CHARACTERS + 1]
    yield rest


def boundaries(dialect: Dialect) -> re.Pattern[str]:
    """A pattern that finds the tokens which decide where statements end.

    The group ``end`` is a semicolon between statements, the group ``open`` a quote or comment that isn't closed. A
    match without a group is a whole text, name or comment.
    """
    tokens = dialect.tokenizer_class
    backslash = "\\" in tokens._STRING_ESCAPES
    whole, opened = [], []

    def add(start: str, end: str, *, escaped: bool) -> None:
        opening, closing, last = re.escape(start), re.escape(end), re.escape(end[0])
        inside = rf"[^{last}\\]++|\\." if escaped else rf"[^{last}]++"
        doubled = f"|{closing}{closing}" if start == end else ""
        within = "" if len(end) == 1 else f"|(?!{closing}){last}"
        whole.append(f"{opening}(?:{inside}{doubled}{within})*+{closing}")
        opened.append(opening)

    quotes = {**tokens._QUOTES, **tokens._IDENTIFIERS}
    for start, end in sorted(quotes.items(), key=lambda pair: -len(pair[0])):
        add(start, end, escaped=backslash and start in tokens._QUOTES)
    if tokens.HEREDOC_STRINGS:
        whole.append(r"(?P<tag>\$\w*\$).*?(?P=tag)")
        opened.append(r"\$\w*\$")
    for start, comment_end in tokens._COMMENTS.items():
        if comment_end is None:
            whole.append(rf"{re.escape(start)}[^\n]*+")
        else:
            whole.append(rf"{re.escape(start)}.*?{re.escape(comment_end)}")
            opened.append(re.escape(start))
    return re.compile(f"(?:{'|'.join(whole)})|(?P<open>{'|'.join(opened)})|(?P<end>;)", re.DOTALL)


def split(chunks: Iterable[str], pattern: re.Pattern[str]) -> Iterator[Statement]:
    """Yield the statements of a text that arrives in pieces.

    After a quote that isn't closed, or a statement that is too long, the next statement begins after the next
    semicolon at the end of a line.
    """
    rest, skipping = "", False
    for chunk in chunks:
        rest += chunk
        if skipping:
            rest, skipping = _behind_line_end(rest)
        if skipping:
            continue
        complete, rest = _complete(rest, pattern, last=False)
        yield from complete
        if len(rest) > MOST_CHARACTERS:
            yield Statement(rest[:_EXAMPLE_CHARACTERS], "a quote isn't closed, or the statement is too long")
            rest, skipping = _behind_line_end(rest)
    while rest and not skipping:
        complete, rest = _complete(rest, pattern, last=True)
        yield from complete
        if rest:
            yield Statement(rest[:_EXAMPLE_CHARACTERS], "a quote isn't closed")
            rest, skipping = _behind_line_end(rest)


def _statement(text: str) -> Iterator[Statement]:
    if len(text) > MOST_CHARACTERS:
        yield Statement(text[:_EXAMPLE_CHARACTERS], "the statement is too long")
    elif text.strip():
        yield Statement(text)


def _behind_line_end(text: str) -> tuple[str, bool]:
    """The text after the first semicolon at the end of a line, and False; or the end of the text, and True, if there
    is no such semicolon."""
    match = _LINE_END.search(text)
    return (text[-2:], True) if match is None else (text[match.end() :], False)


def _complete(text: str, pattern: re.Pattern[str], *, last: bool) -> tuple[list[Statement], str]:
    """The complete statements at the beginning of a text, and the remaining text."""
    complete: list[Statement] = []
    start = 0
    for match in pattern.finditer(text):
        if match["open"] or (match.end() == len(text) and not last and not match["end"]):
            return complete, text[start:]
        if match["end"]:
            complete += _statement(text[start : match.start()])
            start = match.end()
    if last:
        return [*complete, *_statement(text[start:])], ""
    return complete, text[start:]
