"""What a team asks of its files' filters: limits, severities, rules switched off, the engines that read them.

A policy has a part for all files and parts for some, by globs of paths; within each, parts for columns. For one
file they come to one `FilePolicy`: later parts win over earlier ones, a column's over its file's. Policies are
plain data: they go to other processes with their tasks.

What adds up: required columns, and the parts of columns. What the last part that says it decides: limits, severities,
reasons, readers (all of them at once), the table's schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from bloomcli.errors import UsageError
from bloomcli.model.file import Finding, Severity
from bloomcli.policy.globs import Globs, place

if TYPE_CHECKING:
    from bloomcli.policy.table_schema import TableSchema

_T = TypeVar("_T")

_NONE: Final[Mapping[str, str]] = {}
_NO_SEVERITY: Final[Mapping[str, Severity]] = {}


class Limits(NamedTuple):
    """What is asked of filters; None and False where nothing is."""

    require: bool = False
    """There must be a filter in every row group with values."""
    max_fpp: float | None = None
    """Highest measured false-positive rate, 0 to 1."""
    max_oversize: float | None = None
    """How many times as large as its values need a filter may be; at least 1."""


class ColumnPart(NamedTuple):
    """What is asked of the columns that any of `names` (dotted leaf paths, globs) matches."""

    names: tuple[str, ...]
    limits: Limits
    off: Mapping[str, str] = _NONE
    """Rules switched off for these columns, each with its reason."""


class Part(NamedTuple):
    """What is asked of some files."""

    paths: tuple[str, ...] = ()
    """Globs of paths relative to the policy's folder; none means all files."""
    require: tuple[str, ...] = ()
    """Leaf paths or globs that must have a filter in every row group with values."""
    max_fpp: float | None = None
    max_oversize: float | None = None
    severity: Mapping[str, Severity] = _NO_SEVERITY
    off: Mapping[str, str] = _NONE
    """Rules switched off, each with its reason."""
    columns: tuple[ColumnPart, ...] = ()
    readers: tuple[str, ...] | None = None
    """Engines that read the files; None where the part doesn't say."""
    table: TableSchema | None = None


class FilePolicy(NamedTuple):
    """What is asked of one file."""

    require: tuple[str, ...] = ()
    max_fpp: float | None = None
    max_oversize: float | None = None
    severity: Mapping[str, Severity] = _NO_SEVERITY
    off: Mapping[str, str] = _NONE
    columns: tuple[ColumnPart, ...] = ()
    readers: tuple[str, ...] = ()
    table: TableSchema | None = None
    readers_said: bool = False
    """Some part says who reads the file, if only that nobody does."""
    advice: bool = False
    """Also look for filters that can't profit: a policy was given."""

    def limits(self, column: str) -> Limits:
        """What is asked of one column's filters (but for `require`, which names may be globs of many)."""
        fpp, oversize, required = self.max_fpp, self.max_oversize, False
        for part in self.columns:
            if matches(part.names, column):
                fpp = fpp if part.limits.max_fpp is None else part.limits.max_fpp
                oversize = oversize if part.limits.max_oversize is None else part.limits.max_oversize
                required = required or part.limits.require
        return Limits(require=required, max_fpp=fpp, max_oversize=oversize)

    def required(self) -> tuple[str, ...]:
        """Names and globs of all columns that must have filters."""
        return (*self.require, *(n for part in self.columns if part.limits.require for n in part.names))

    def judge(self, finding: Finding) -> Finding:
        """The finding at the policy's severity, and with the reason where its rule is switched off."""
        off = self.off.get(finding.id)
        for part in self.columns:
            if finding.column is not None and finding.id in part.off and matches(part.names, finding.column):
                off = part.off[finding.id]
        return replace(finding, severity=self.severity.get(finding.id, finding.severity), off=off)


def matches(names: Iterable[str], column: str) -> bool:
    """Whether any of the names is the column's, or is a glob that matches it: as commands take columns."""
    return any(column == name or fnmatchcase(column, name) for name in names)


class _Matched:
    """What a policy's globs came to so far. Left behind where the policy goes to another process."""

    __slots__ = ("globs", "merged")

    def __init__(self) -> None:
        self.globs: tuple[Globs, ...] | None = None
        """Of each part, and last of what is excluded."""
        self.merged: dict[tuple[int, ...], FilePolicy] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (_Matched, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A team's policy."""

    path: str | None = None
    """Where it was read from, as the user named it; None for one made of options."""
    base: str = ""
    """Folder that its globs of paths are relative to."""
    whole: Part = field(default_factory=Part)
    """For all files."""
    files: tuple[Part, ...] = ()
    """For some files; later ones win."""
    exclude: tuple[str, ...] = ()
    """Globs of paths that are not looked at."""
    _matched: _Matched = field(default_factory=_Matched, init=False, repr=False, compare=False)

    def for_file(self, path: str) -> FilePolicy:
        """What is asked of this file; the same object for all files that the same parts are about.

        Args:
            path: as it was named or found: absolute, relative to the working folder, or a URI.
        """
        key: tuple[int, ...] = ()
        if self.files:
            *parts, _ = self._globs()
            spot = place(path, self.base)
            key = tuple(i for i, globs in enumerate(parts) if globs.match(*spot))
        merged = self._matched.merged.get(key)
        if merged is None:
            merged = _merge((self.whole, *(self.files[i] for i in key)), advice=self.path is not None)
            self._matched.merged[key] = merged
        return merged

    def excludes(self, path: str) -> bool:
        """The policy says that this file is not looked at. Takes paths as `for_file` does."""
        return bool(self.exclude) and self._globs()[-1].match(*place(path, self.base))

    def _globs(self) -> tuple[Globs, ...]:
        """Compiled once, and only where there are any."""
        matched = self._matched
        if matched.globs is None:
            matched.globs = tuple(Globs(globs, self.base) for globs in (*(p.paths for p in self.files), self.exclude))
        return matched.globs


def _merge(parts: Sequence[Part], *, advice: bool) -> FilePolicy:
    """The parts that are about a file as one; later ones win."""
    fpp = oversize = table = None
    readers: tuple[str, ...] = ()
    for part in parts:
        fpp = fpp if part.max_fpp is None else part.max_fpp
        oversize = oversize if part.max_oversize is None else part.max_oversize
        table = table if part.table is None else part.table
        readers = readers if part.readers is None else part.readers
    return FilePolicy(
        require=tuple(dict.fromkeys(name for part in parts for name in part.require)),
        max_fpp=fpp,
        max_oversize=oversize,
        severity={rule: severity for part in parts for rule, severity in part.severity.items()},
        off={rule: reason for part in parts for rule, reason in part.off.items()},
        columns=tuple(column for part in parts for column in part.columns),
        readers=readers,
        table=table,
        readers_said=any(part.readers is not None for part in parts),
        advice=advice,
    )


def with_options(
    policy: Policy,
    *,
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table: TableSchema | None = None,
) -> Policy:
    """The policy as the options of one run change it.

    What is typed is what is wanted now: a limit, readers or a table's schema take the place of the policy's
    everywhere, for all files, some files and columns. Required columns come on top of the policy's, for all files.
    Excluded files, severities and rules that are switched off stay as the policy has them: their reasons still hold.

    Raises:
        UsageError: a limit out of range, an unknown reader.
    """
    if max_fpp is not None and not 0 < max_fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {max_fpp}")
    if max_oversize is not None and not 1 <= max_oversize < float("inf"):
        raise UsageError(f"a filter may be at least once as large as its values need, not {max_oversize} times")
    engines: tuple[str, ...] | None = None
    if readers:
        from bloomcli.rules.readers import reader

        engines = tuple(dict.fromkeys(reader(name).name for name in readers))

    def part(old: Part, first: bool) -> Part:
        return old._replace(
            require=tuple(dict.fromkeys((*old.require, *require))) if first else old.require,
            max_fpp=_instead(old.max_fpp, max_fpp, first),
            max_oversize=_instead(old.max_oversize, max_oversize, first),
            readers=_instead(old.readers, engines, first),
            table=_instead(old.table, table, first),
            columns=tuple(c._replace(limits=limits(c.limits)) for c in old.columns),
        )

    def limits(old: Limits) -> Limits:
        return old._replace(
            max_fpp=_instead(old.max_fpp, max_fpp, False),
            max_oversize=_instead(old.max_oversize, max_oversize, False),
        )

    return replace(policy, whole=part(policy.whole, True), files=tuple(part(p, False) for p in policy.files))


def _instead(old: _T | None, option: _T | None, first: bool) -> _T | None:
    """An option stands in the first part; later ones then say nothing of their own."""
    if option is None:
        return old
    return option if first else None
