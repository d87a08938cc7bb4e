"""A first policy from what a dataset has: text of a bloom.toml that the same dataset passes.

What the files have in common is required; a folder that has more gets a part of its own. All else that a policy can
say stands there as a comment, to be taken up.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from bloomcli.rows import ColumnSeen, FileRow, Status
from bloomcli.rules import globs

_WIDEST: Final = 100
_COLUMNS_SHOWN: Final = 20
_RATES: Final = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Limits that people set. Few are low: filters are powers of two, so that small ones have rates far below what they
were asked for, and the next file's may be twice as full."""
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/]*)/(.*)", re.DOTALL)

_Folder = tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    """What some files have."""

    files: int = 0
    everywhere: dict[str, None] = field(default_factory=dict)
    """Columns with filters in every row group with values of each file, in the first file's order."""
    filters: Counter[str] = field(default_factory=Counter)
    nbytes: Counter[str] = field(default_factory=Counter)
    in_files: Counter[str] = field(default_factory=Counter)
    rates: dict[str, float] = field(default_factory=dict)
    worst: tuple[float, str, str] | None = None
    """The highest measured rate, its column and its file."""

    def add(self, row: FileRow) -> None:
        """One more file."""
        complete = {c.column: None for c in row.seen if c.everywhere}
        kept = complete if not self.files else {c: None for c in self.everywhere if c in complete}
        self.everywhere = kept
        self.files += 1
        for column in row.seen:
            self._count(column, row.path)

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
        """Columns of `everywhere` that have a filter somewhere: of files without rows all are in it."""
        return [name for name in self.everywhere if self.filters[name]]


def starter(rows: Iterable[FileRow], *, base: str) -> str:
    """The text of a policy.

    Args:
        rows: of the command ``survey``.
        base: the folder that the policy will lie in, absolute: globs of paths start there.
    """
    whole = _Columns()
    folders: dict[str, _Columns] = defaultdict(_Columns)
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
    lines = [*_head(formats, failed), *_require(whole, parts), *_limits(whole), *_REST]
    for glob, part in parts.items():
        lines += _part(glob, part, whole)
    return "\n".join(lines) + "\n"


def _has_more(part: _Columns, whole: _Columns) -> bool:
    return bool(set(part.required) - set(whole.required)) or _lower(part, whole)


def _lower(part: _Columns, whole: _Columns) -> bool:
    return part.limit is not None and (whole.limit is None or part.limit < whole.limit)


def _head(formats: Counter[str], failed: Sequence[FileRow]) -> Iterator[str]:
    files = formats.total()
    kinds = ", ".join(f"{n:,} {name}" for name, n in sorted(formats.items()))
    yield "# What `bloom validate` asks of these files' Bloom filters."
    yield f"# Written by `bloom validate --init` from {_plural(files)}{f' ({kinds})' if kinds else ''}:"
    yield "# it asks for what they have."
    if failed:
        yield f"# {len(failed):,} more could not be read, the first: {_comment(failed[0].path)}"
    yield "#"
    yield "# Take the # from what else is wanted. `bloom validate --explain RULE` explains a rule, and without RULE"
    yield "# lists them. Columns are leaf paths or globs of them. Paths are globs as in .gitignore, from this file's"
    yield "# folder on."
    yield ""


def _require(whole: _Columns, parts: dict[str, _Columns]) -> Iterator[str]:
    yield "# Columns that must have a filter in every row group with values (rule filter-required)."
    below = {name for part in parts.values() for name in part.required}
    others = [name for name in whole.in_files if whole.in_files[name] and name not in {*whole.required, *below}]
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
        yield f"  {_string(name)}, # {columns.filters[name]:,} filters, {columns.nbytes[name]:,} bytes{rate}"
    for name in others[:_COLUMNS_SHOWN]:
        places = f"in {columns.in_files[name]:,} of {_plural(columns.files)}"
        yield f"  # {_string(name)}, # has filters {places}, but not in every row group of all"
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


_REST: Final = (
    "# How many times as large as its values need a filter may be (rule filter-oversized).",
    "# max-oversize = 4",
    "",
    "# The engines that read the files: where one of them would look values up wrongly is a finding",
    "# (rules reader-negative-zero, reader-millis, reader-decimal-width, reader-widened).",
    '# readers = ["spark", "trino"]',
    "",
    "# The table's schema, relative to this file: readers look values up at its types (rule reader-widened).",
    '# table-schema = "schemas/orders.json"',
    "",
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


def _string(text: str) -> str:
    """A TOML string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    """Text of a file within a comment, where no line may break and no control character stand."""
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return plain if len(plain) <= _WIDEST else "..." + plain[-_WIDEST:]
