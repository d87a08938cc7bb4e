"""A first policy from what a dataset has: text of a bloom.toml whose limits the same dataset meets.

What the files have in common is required; a folder that has more gets a part of its own. What is wrong with the files
whatever the limits are, is told at the top. All else that a policy can say stands there as a comment, to be taken up.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from glob import escape
from itertools import takewhile
from typing import Final

from bloomcli.model.dataset import ColumnSeen, FileRow, Status
from bloomcli.policy import globs

_WIDEST: Final = 100
_COLUMNS_SHOWN: Final = 20
_RATES: Final = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Limits that people set. Few are low: filters are powers of two, so that small ones have rates far below what they
were asked for, and the next file's may be twice as full."""
_NONE_MAY: Final = ("filter-boolean", "filter-type")
"""Rules that a column breaks by having a filter: it can't be required."""
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/]*)/(.*)", re.DOTALL)

_Folder = tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    """What some files have."""

    only: Sequence[str] = ()
    """Names and globs of the columns that may be required; none means all."""
    files: int = 0
    everywhere: dict[str, None] = field(default_factory=dict)
    """Columns with filters in every row group with values of each file, in the first file's order."""
    filters: Counter[str] = field(default_factory=Counter)
    nbytes: Counter[str] = field(default_factory=Counter)
    in_files: Counter[str] = field(default_factory=Counter)
    rates: dict[str, float] = field(default_factory=dict)
    worst: tuple[float, str, str] | None = None
    """The highest measured rate, its column and its file."""
    none_may: dict[str, str] = field(default_factory=dict)
    """Columns that must not have a filter, and the rule that says so."""

    def add(self, row: FileRow) -> None:
        """One more file."""
        complete = {c.column: None for c in row.seen if c.everywhere}
        kept = complete if not self.files else {c: None for c in self.everywhere if c in complete}
        self.everywhere = kept
        self.files += 1
        for column in row.seen:
            self._count(column, row.path)
        for finding in row.findings:
            if finding.id in _NONE_MAY and finding.column is not None:
                self.none_may[finding.column] = finding.id

    def _count(self, column: ColumnSeen, path: str) -> None:
        name = column.column
        self.filters[name] += column.filters
        self.nbytes[name] += column.bitset_bytes
        self.in_files[name] += column.filters > 0
        if column.max_fpp is not None:
            self.rates[name] = max(self.rates.get(name, 0.0), column.max_fpp)
            if self.worst is None or column.max_fpp > self.worst[0]:
                self.worst = (column.max_fpp, name, path)

    @property
    def limit(self) -> float | None:
        """The highest measured rate, rounded up to one that people set; None where there is none, or none that says
        anything."""
        return None if self.worst is None else next((rate for rate in _RATES if rate >= self.worst[0]), None)

    @property
    def required(self) -> list[str]:
        """Columns of `everywhere` that have a filter somewhere: of files without rows all are in it. Those that a
        policy can't require are left out."""
        some = (name for name in self.everywhere if self.filters[name])
        return [name for name in some if self.asked(name) and self.why_not(name) is None]

    def asked(self, name: str) -> bool:
        """The column is one of `only`, as commands take columns: a name goes before the glob that it looks like."""
        return not self.only or any(
            name == wanted or (wanted not in self.filters and fnmatchcase(name, wanted)) for wanted in self.only
        )

    def why_not(self, name: str) -> str | None:
        """Why no policy can require the column."""
        if not name:
            return "but a policy can't name it"
        return f"but none may have one ({self.none_may[name]})" if name in self.none_may else None


def starter(
    rows: Iterable[FileRow],
    *,
    base: str,
    columns: Sequence[str] = (),
    readers: Sequence[str] = (),
    table_schema: str | None = None,
    of_files: int | None = None,
) -> str:
    """The text of a policy.

    Args:
        rows: of the command ``survey``.
        base: the folder that the policy will lie in, absolute: globs of paths start there.
        columns: leaf paths or globs that may be required; none means all. Limits are for all columns all the same.
        readers: engines that read the files.
        table_schema: file with the table's schema, relative to `base`.
        of_files: how many files there are, where the rows are a sample of them.
    """
    whole = _Columns(only=columns)
    folders: dict[str, _Columns] = defaultdict(partial(_Columns, only=columns))
    failed: list[FileRow] = []
    formats: Counter[str] = Counter()
    done = []
    for row in rows:
        if row.status is Status.FAILED:
            failed.append(row)
        elif row.status is not Status.SKIPPED:
            done.append(row)
            whole.add(row)
            formats[row.format or ""] += 1
    for row, glob in zip(done, _globs([row.path for row in done], base), strict=True):
        if glob is not None:
            folders[glob].add(row)
    parts = {glob: part for glob, part in sorted(folders.items()) if _has_more(part, whole)}
    lines = [*_head(formats, failed, of_files), *_failing(done), *_require(whole, parts), *_limits(whole)]
    lines += [*_readers(readers, table_schema), *_REST]
    for glob, part in parts.items():
        lines += _part(glob, part, whole)
    return "\n".join(lines) + "\n"


def _has_more(part: _Columns, whole: _Columns) -> bool:
    return bool(set(part.required) - set(whole.required)) or _lower(part, whole)


def _lower(part: _Columns, whole: _Columns) -> bool:
    return part.limit is not None and (whole.limit is None or part.limit < whole.limit)


def _head(formats: Counter[str], failed: Sequence[FileRow], of_files: int | None) -> Iterator[str]:
    files = formats.total()
    kinds = ", ".join(f"{n:,} {name}" for name, n in sorted(formats.items()))
    yield "# What `bloom validate` asks of these files' Bloom filters."
    yield f"# Written by `bloom validate --init` from {_plural(files)}{f' ({kinds})' if kinds else ''}:"
    yield "# it asks for what they have."
    if of_files is not None:
        yield f"# They are a sample of {_plural(of_files)}: the others may have less."
    if failed:
        yield f"# {len(failed):,} more could not be looked at, the first: {_comment(failed[0].path)}"
    yield "#"
    yield "# Take the # from what else is wanted. `bloom validate --explain RULE` explains a rule, and without RULE"
    yield "# lists them. Columns are leaf paths or globs of them. Paths are globs as in .gitignore, from this file's"
    yield "# folder on."
    yield ""


def _failing(rows: Sequence[FileRow]) -> Iterator[str]:
    """What the files fail today, which no limit helps: rule by rule, the first place of each."""
    by_rule: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for row in rows:
        for finding in row.findings:
            by_rule[finding.id].append((row.path, finding.column))
    if not by_rule:
        return
    yield "# These files fail today all the same, by findings that no limit helps:"
    for rule, places in by_rule.items():
        path, column = places[0]
        where = _comment(path) if column is None else f"{_comment(column)} in {_comment(path)}"
        yield f"#   {rule}: {len(places):,} finding{'' if len(places) == 1 else 's'}, the first of {where}"
    yield "# Mend them, or switch a rule off below with the reason, or keep the known findings in a --baseline."
    yield ""


def _require(whole: _Columns, parts: dict[str, _Columns]) -> Iterator[str]:
    yield "# Columns that must have a filter in every row group with values (rule filter-required)."
    below = {name for part in parts.values() for name in part.required}
    known = {*whole.required, *below}
    others = [name for name, files in whole.in_files.items() if files and name not in known and whole.asked(name)]
    if not whole.required and not others:
        yield '# require = ["id", "user.*"]'
    else:
        yield from _array(whole, whole.required, others)
    yield ""


def _array(columns: _Columns, required: Collection[str], others: Sequence[str] = ()) -> Iterator[str]:
    """The required columns, each with what is there; those with filters in places only as comments."""
    yield "require = ["
    for name in required:
        rate = f", worst rate {columns.rates[name]:.2g}" if name in columns.rates else ""
        yield f"  {_column(name)}, # {columns.filters[name]:,} filters, {columns.nbytes[name]:,} bytes{rate}"
    for name in others[:_COLUMNS_SHOWN]:
        places = f"in {columns.in_files[name]:,} of {_plural(columns.files)}"
        reason = columns.why_not(name) or "but not in every row group of all"
        yield f"  # {_column(name)}, # has filters {places}, {reason}"
    if len(others) > _COLUMNS_SHOWN:
        yield f"  # {len(others) - _COLUMNS_SHOWN:,} more columns have filters in places"
    yield "]"


def _limits(whole: _Columns) -> Iterator[str]:
    yield "# The highest measured false-positive rate, 0 to 1 (rule filter-fpp)."
    if whole.worst is None:
        yield "# max-fpp = 0.01"
    else:
        rate, column, path = whole.worst
        yield f"# The worst filter today: {rate:.2g}, of {_comment(column)} in {_comment(path)}"
        if whole.limit is None:
            yield "# It says nothing about most values: no limit that it meets would be one."
            yield "# max-fpp = 0.01"
        else:
            yield f"max-fpp = {whole.limit:g}"
    yield ""


def _readers(readers: Sequence[str], table_schema: str | None) -> Iterator[str]:
    yield "# How many times as large as its values need a filter may be (rule filter-oversized)."
    yield "# max-oversize = 4"
    yield ""
    yield "# The engines that read the files: where one of them would look values up wrongly is a finding"
    yield "# (rules reader-negative-zero, reader-millis, reader-decimal-width, reader-widened)."
    yield f"readers = [{', '.join(map(_string, readers))}]" if readers else '# readers = ["spark", "trino"]'
    yield ""
    yield "# The table's schema, relative to this file: readers look values up at its types (rule reader-widened)."
    yield f"table-schema = {_string(table_schema)}" if table_schema else '# table-schema = "schemas/orders.json"'
    yield ""


_REST: Final = (
    "# Files that are not looked at.",
    '# exclude = ["**/staging/**"]',
    "",
    "# Rules at another severity than their own: error and warning make the check fail, note doesn't.",
    "[severity]",
    '# filter-no-length = "warning"',
    "",
    "# Rules that are switched off, each with the reason: it is shown where the rule would have applied.",
    "[off]",
    '# filter-not-power-of-two = "only Spark reads these, and takes any size"',
    "",
    "# Columns that differ: require, max-fpp, max-oversize and off, as above.",
    '# [columns."user.*"]',
    "# max-fpp = 0.05",
    "",
    "# Some files only: paths, and all of the above but exclude. Later parts win, required columns add up.",
    "# [[files]]",
    '# paths = ["archive/**"]',
    "# max-fpp = 0.05",
)
"""Keys that a dataset doesn't tell."""


def _part(glob: str, part: _Columns, whole: _Columns) -> Iterator[str]:
    yield ""
    yield "[[files]]"
    yield f"paths = [{_string(glob)}]"
    more = [name for name in part.required if name not in set(whole.required)]
    if more:
        yield from _array(part, more)
    if _lower(part, whole):
        yield f"max-fpp = {part.limit:g}"


def _globs(paths: Sequence[str], base: str) -> list[str | None]:
    """For each file the glob of its top folder: the first that isn't all files'; None where it is in none.

    Partitions (``year=2024``) are no folders of their own. Files in the policy's folder, elsewhere on this machine
    and on each remote store are looked at by themselves.
    """
    places = [_folders(path, base) for path in paths]
    common: dict[str, _Folder] = {}
    for root, folders in places:
        shared = zip(common.get(root, folders), folders, strict=False)
        common[root] = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], shared))
    found: list[str | None] = []
    for root, folders in places:
        depth = len(common[root])
        top = "/".join(map(_glob, folders[: depth + 1]))
        found.append(f"{globs.escape(root)}{top}/**" if len(folders) > depth else None)
    return found


def _folders(path: str, base: str) -> tuple[str, _Folder]:
    """Where a file's folders start (nothing: the policy's folder), and their names up to the first partition's."""
    name, inside = globs.place(path, base)
    root = ""
    if (uri := _URI.fullmatch(name)) is not None:
        root, name = f"{uri[1]}/", uri[2]
    elif not inside:
        root, name = "/", name.lstrip("/")
    return root, tuple(takewhile(lambda folder: "=" not in folder, name.split("/")[:-1]))


def _plural(files: int) -> str:
    return f"{files:,} file{'' if files == 1 else 's'}"


def _glob(name: str) -> str:
    """One folder's name as a glob. What TOML can't hold (bytes that aren't UTF-8) is any character."""
    return "".join("?" if "\ud800" <= c <= "\udfff" else globs.escape(c) for c in name)


def _column(name: str) -> str:
    """A column's name as a policy has it: as a glob that means it alone, where it would be another or seem empty."""
    return _string(escape(name) if name.strip() or not name else f"[{name[0]}]{name[1:]}")


def _string(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """Text of a file within a comment, where no line may break and no control character stand."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= _WIDEST else "..." + plain[-_WIDEST:]
