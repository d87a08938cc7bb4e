"""Generates policies: a first one for a dataset, and the one that `bloom advise` recommends.

The limits of a first policy are those that the dataset meets. It requires the columns that have filters in all files.
A folder with more filtered columns gets a separate part. Findings that don't depend on a limit are listed at the top.
All other keys are included as comments. A recommended policy contains the columns that need filters, and each one's
rate.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from glob import escape
from itertools import takewhile
from textwrap import wrap
from typing import Final, NamedTuple

from bloomcli.model.dataset import FileRow, Status, SurveyedColumn
from bloomcli.policy import globs
from bloomcli.words import plural

_WIDEST: Final = 100


_ABOUT_KEYS: Final = (
    "#",
    "# Remove the # to enable other keys. `bloom validate --explain RULE` explains a rule, and without RULE",
    "# lists all rules. Columns are leaf paths or globs. Paths are globs as in .gitignore, relative to this",
    "# file's directory.",
    "",
)
"""The end of a policy's head."""
REST: Final = (
    "# Files that are not checked.",
    '# exclude = ["**/staging/**"]',
    "",
    "# Severities other than the rules' defaults: error and warning make the check fail, note doesn't.",
    "[severity]",
    '# filter-no-length = "warning"',
    "",
    "# Rules that are switched off, each with a reason, which reports show with the findings.",
    "[off]",
    '# filter-not-power-of-two = "only Spark reads these, and it accepts any size"',
    "",
    "# Keys for some columns: require, max-fpp, max-oversize and off, as above.",
    '# [columns."user.*"]',
    "# max-fpp = 0.05",
    "",
    "# Keys for some files: paths, and all of the above except exclude. Later parts override earlier ones; required",
    "# columns accumulate.",
    "# [[files]]",
    '# paths = ["archive/**"]',
    "# max-fpp = 0.05",
)
"""Keys that can't be derived from a dataset."""


def reader_lines(readers: Sequence[str], table_schema: str | None) -> Iterator[str]:
    """Yield the keys max-oversize, readers and table-schema, with comments."""
    yield "# The largest ratio of a filter's size to the size that its values need (rule filter-oversized)."
    yield "# max-oversize = 4"
    yield ""
    yield "# The engines that read the files. Columns in which one of them looks values up wrongly are findings"
    yield "# (rules reader-negative-zero, reader-millis, reader-decimal-width, reader-widened, reader-null-structs)."
    yield f"readers = [{', '.join(map(toml_string, readers))}]" if readers else '# readers = ["spark", "trino"]'
    yield ""
    yield "# The table's schema, relative to this file. Readers look up values at its types (rule reader-widened)."
    yield f"table-schema = {toml_string(table_schema)}" if table_schema else '# table-schema = "schemas/orders.json"'
    yield ""


def column_glob(name: str) -> str:
    """Return a column's name as a TOML string. A name that is a glob or looks empty becomes a glob that matches only
    it."""
    return toml_string(escape(name) if name.strip() or not name else f"[{name[0]}]{name[1:]}")


def toml_string(text: str) -> str:
    """Return a TOML string. TOML has JSON's escapes, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def comment(text: str) -> str:
    """Return text for a comment, without line breaks and control characters."""
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return line if len(line) <= _WIDEST else "..." + line[-_WIDEST:]


_COLUMNS_SHOWN: Final = 20
_RATES: Final = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Limits that people set. Few are low: sizes of filters are powers of two, so small filters have rates far below the
requested rate, and the filters of the next file may be twice as full."""
_NONE_MAY: Final = ("filter-boolean", "filter-type")
"""Rules that a column breaks by having a filter. Such a column can't be required."""
NOTHING_REQUIRED: Final = "# none of them has a filter, so it requires nothing yet."
"""The second line of a policy for files without filters."""
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/]*)/(.*)", re.DOTALL)

_Folder = tuple[str, ...]


@dataclass(slots=True)
class _Columns:
    """The filtered columns of some files."""

    only: Sequence[str] = ()
    """Names and globs of the columns that may be required; empty means all."""
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
    """Columns that must not have a filter, with the rule that forbids it."""

    def add(self, row: FileRow) -> None:
        """Add a file."""
        complete = {c.column: None for c in row.seen if c.everywhere}
        kept = complete if not self.files else {c: None for c in self.everywhere if c in complete}
        self.everywhere = kept
        self.files += 1
        for column in row.seen:
            self._count(column, row.path)
        for finding in row.findings:
            if finding.id in _NONE_MAY and finding.column is not None:
                self.none_may[finding.column] = finding.id

    def _count(self, column: SurveyedColumn, path: str) -> None:
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
        """The highest measured rate, rounded up to a limit of `_RATES`; None without rates, or if it is too high."""
        return None if self.worst is None else next((rate for rate in _RATES if rate >= self.worst[0]), None)

    @property
    def required(self) -> list[str]:
        """Columns of `everywhere` that have at least one filter and that a policy can require. In files without rows,
        `everywhere` has all columns."""
        some = (name for name in self.everywhere if self.filters[name])
        return [name for name in some if self.selected(name) and self.why_not(name) is None]

    def selected(self, name: str) -> bool:
        """Return whether `only` selects the column, as in `--columns`: a name takes precedence over a glob."""
        return not self.only or any(
            name == wanted or (wanted not in self.filters and fnmatchcase(name, wanted)) for wanted in self.only
        )

    def why_not(self, name: str) -> str | None:
        """Return why no policy can require the column; None if it can."""
        if not name:
            return "but a policy can't name it"
        return f"but none may have one ({self.none_may[name]})" if name in self.none_may else None


def starter_policy(
    rows: Iterable[FileRow],
    *,
    base: str,
    columns: Sequence[str] = (),
    readers: Sequence[str] = (),
    table_schema: str | None = None,
    of_files: int | None = None,
) -> str:
    """Return the text of a policy.

    Args:
        rows: the rows of the command ``survey``.
        base: the absolute path of the policy's directory, which path globs are relative to.
        columns: leaf paths or globs of the columns that may be required; empty means all. Limits apply to all.
        readers: engines that read the files.
        table_schema: file with the table's schema, relative to `base`.
        of_files: the number of all files, if the rows are a sample.
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
    parts = {
        glob: part
        for glob, part in sorted(folders.items())
        if set(part.required) - set(whole.required) or _lower(part, whole)
    }
    lines = [*_head(whole, formats, failed, of_files), *_failing(done), *_require(whole, parts), *_limits(whole)]
    lines += [*reader_lines(readers, table_schema), *REST]
    for glob, part in parts.items():
        lines += _part(glob, part, whole)
    return "\n".join(lines) + "\n"


def _lower(part: _Columns, whole: _Columns) -> bool:
    return part.limit is not None and (whole.limit is None or part.limit < whole.limit)


def _head(whole: _Columns, formats: Counter[str], failed: Sequence[FileRow], of_files: int | None) -> Iterator[str]:
    files = formats.total()
    kinds = ", ".join(f"{n:,} {name}" for name, n in sorted(formats.items()))
    yield "# The requirements of `bloom validate` for the Bloom filters of these files."
    yield f"# Written by `bloom validate --init` from {plural(files, 'file')}{f' ({kinds})' if kinds else ''}:"
    yield "# it requires the filters that they have." if whole.filters.total() else NOTHING_REQUIRED
    if of_files is not None:
        yield f"# They are a sample of {plural(of_files, 'file')}: the others may have fewer filters."
    if failed:
        yield f"# {plural(len(failed), 'more file')} could not be read, the first: {comment(failed[0].path)}"
    yield from _ABOUT_KEYS


def _failing(rows: Sequence[FileRow]) -> Iterator[str]:
    """Yield the findings that don't depend on a limit: for each rule, their number and the first one."""
    by_rule: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for row in rows:
        for finding in row.findings:
            by_rule[finding.id].append((row.path, finding.column))
    if not by_rule:
        return
    yield "# These files still fail, by findings that don't depend on a limit:"
    for rule, places in by_rule.items():
        path, column = places[0]
        where = comment(path) if column is None else f"{comment(column)} in {comment(path)}"
        yield f"#   {rule}: {plural(len(places), 'finding')}, the first: {where}"
    yield "# Fix them, or switch off a rule below with a reason, or keep the known findings in a --baseline."
    yield ""


def _require(whole: _Columns, parts: dict[str, _Columns]) -> Iterator[str]:
    yield "# Columns that must have a filter in every row group with values (rule filter-required)."
    below = {name for part in parts.values() for name in part.required}
    needed = {*whole.required, *below}
    others = [name for name, files in whole.in_files.items() if files and name not in needed and whole.selected(name)]
    if not whole.required and not others:
        yield "# Without a filter yet. Uncomment require and keep the columns whose values queries look up."
        candidates = [name for name in whole.in_files if name and whole.selected(name)]
        names = ", ".join(map(column_glob, candidates[:_COLUMNS_SHOWN])) or '"id", "user.*"'
        yield f"# require = [{names}]"
        if len(candidates) > _COLUMNS_SHOWN:
            yield f"# {plural(len(candidates) - _COLUMNS_SHOWN, 'more column')}: `bloom inspect --all` shows them"
    else:
        yield from _array(whole, whole.required, others)
    yield ""


def _array(columns: _Columns, required: Collection[str], others: Sequence[str] = ()) -> Iterator[str]:
    """Yield the required columns with their filters, and columns with filters in some row groups only as comments."""
    yield "require = ["
    for name in required:
        rate = f", worst rate {columns.rates[name]:.2g}" if name in columns.rates else ""
        filters, nbytes = plural(columns.filters[name], "filter"), plural(columns.nbytes[name], "byte")
        yield f"  {column_glob(name)}, # {filters}, {nbytes}{rate}"
    for name in others[:_COLUMNS_SHOWN]:
        files = f"in {columns.in_files[name]:,} of {plural(columns.files, 'file')}"
        reason = columns.why_not(name) or "but not in every row group of all"
        yield f"  # {column_glob(name)}, # has filters {files}, {reason}"
    if len(others) > _COLUMNS_SHOWN:
        more = len(others) - _COLUMNS_SHOWN
        yield f"  # {plural(more, 'more column')} {'has' if more == 1 else 'have'} some filters"
    yield "]"


def _limits(whole: _Columns) -> Iterator[str]:
    yield "# The highest measured false-positive rate, 0 to 1 (rule filter-fpp)."
    if whole.worst is None:
        yield "# max-fpp = 0.01"
    else:
        rate, column, path = whole.worst
        yield f"# The worst filter today: {rate:.2g}, of {comment(column)} in {comment(path)}"
        if whole.limit is None:
            yield "# It rules out too few values for a useful limit."
            yield "# max-fpp = 0.01"
        else:
            yield f"max-fpp = {whole.limit:g}"
    yield ""


def _part(glob: str, part: _Columns, whole: _Columns) -> Iterator[str]:
    yield ""
    yield "[[files]]"
    yield f"paths = [{toml_string(glob)}]"
    more = [name for name in part.required if name not in set(whole.required)]
    if more:
        yield from _array(part, more)
    if _lower(part, whole):
        yield f"max-fpp = {part.limit:g}"


def _globs(paths: Sequence[str], base: str) -> list[str | None]:
    """Return for each file the glob of its first folder below the common folder; None if the file is directly in
    that.

    Partitions (``year=2024``) don't count as folders. Files in the policy's directory, elsewhere on this machine, and
    on each remote store have separate common folders.
    """
    located = [_folders(path, base) for path in paths]
    common: dict[str, _Folder] = {}
    for root, folders in located:
        shared = zip(common.get(root, folders), folders, strict=False)
        common[root] = tuple(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], shared))
    patterns: list[str | None] = []
    for root, folders in located:
        depth = len(common[root])
        top = "/".join(map(_glob, folders[: depth + 1]))
        patterns.append(f"{globs.escape(root)}{top}/**" if len(folders) > depth else None)
    return patterns


def _folders(path: str, base: str) -> tuple[str, _Folder]:
    """Return the root of a file's folders (empty: the policy's directory) and their names before a partition's."""
    name, inside = globs.relative_to_base(path, base)
    root = ""
    if (uri := _URI.fullmatch(name)) is not None:
        root, name = f"{uri[1]}/", uri[2]
    elif not inside:
        root, name = "/", name.lstrip("/")
    return root, tuple(takewhile(lambda folder: "=" not in folder, name.split("/")[:-1]))


def _glob(name: str) -> str:
    """Return a folder's name as a glob. Bytes that aren't UTF-8, which TOML can't express, become ``?``."""
    return "".join("?" if "\ud800" <= c <= "\udfff" else globs.escape(c) for c in name)


_WIDTH: Final = 96
"""Width of a reason's lines; `comment` doesn't shorten them."""


class RequiredColumn(NamedTuple):
    """A column that needs filters."""

    column: str
    fpp: float
    """The highest rate that its filters may have."""
    reason: str
    in_all_files: bool = True
    """Whether every file has the column. In a policy, a name must be in every file; a glob may match nothing."""

    @property
    def glob(self) -> str:
        """The column in the policy, as a TOML string."""
        return column_glob(self.column) if self.in_all_files else toml_string(globs.only(self.column))


def recommended_policy(
    required: Sequence[RequiredColumn],
    *,
    files: int,
    readers: Sequence[str] = (),
    table_schema: str | None = None,
    tight: bool = False,
) -> str:
    """Return the text of a policy that requires these filters.

    Args:
        required: the columns, at least one.
        files: the number of files that the recommendation is for.
        readers: engines that read the files.
        table_schema: file with the table's schema, relative to the policy's directory.
        tight: filters have any number of blocks, which all these engines accept.
    """
    return "\n".join(_lines(required, files, readers, table_schema, tight)) + "\n"


def _lines(
    required: Sequence[RequiredColumn], files: int, readers: Sequence[str], table_schema: str | None, tight: bool
) -> Iterator[str]:
    usual = min(column.fpp for column in required)
    yield "# The Bloom filters that these files need, for `bloom add` and `bloom validate`."
    yield f"# Written by `bloom advise` for {plural(files, 'file')}: it requires the filters that are worth their"
    yield "# bytes."
    yield from _ABOUT_KEYS
    yield "# Columns that must have a filter in every row group with values (rule filter-required)."
    yield "require = ["
    for column in required:
        yield from (f"  # {comment(line)}" for line in wrap(column.reason, _WIDTH))
        yield f"  {column.glob},"
    yield "]"
    yield ""
    yield "# The highest measured false-positive rate, 0 to 1 (rule filter-fpp)."
    yield f"max-fpp = {_up(usual):g}"
    yield ""
    if tight:
        yield "# The sizes of new Parquet filters: any number of blocks, which all readers below take."
        yield 'size = "tight"'
        yield ""
    yield from reader_lines(readers, table_schema)
    yield from REST
    for column in required:
        if column.fpp > usual:
            yield ""
            yield f"[columns.{column.glob}]"
            yield f"max-fpp = {_up(column.fpp):g}"


def _up(rate: float) -> float:
    """A measured rate, rounded up to two digits, so that the filters meet it."""
    unit: float = 10.0 ** (math.floor(math.log10(rate)) - 1)
    return min(round(math.ceil(round(rate / unit, 9)) * unit, 12), 0.99)
