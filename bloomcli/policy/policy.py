"""A team's requirements for the filters of its files: limits, severities, disabled rules, and the engines that read
the files.

A policy has a part for all files, and parts for some files by path globs; each has parts for columns. For one file,
they merge into a `FilePolicy`: later parts override earlier ones, and a column's part overrides its file's. Policies
are plain data and are pickled with the tasks of other processes.

Required columns and the parts for columns accumulate. For limits, severities, reasons, readers (as a whole) and the
table's schema, the last part that sets them decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bloomcli.errors import UsageError
from bloomcli.model.file import Severity
from bloomcli.policy.globs import Globs, matches, relative_to_base
from bloomcli.rules.readers import reader

if TYPE_CHECKING:
    from bloomcli.model.validate import Finding
    from bloomcli.policy.table_schema import TableSchema

_NONE: Final[Mapping[str, str]] = {}
_NO_SEVERITY: Final[Mapping[str, Severity]] = {}


class Limits(NamedTuple):
    """Requirements for filters; None and False mean no requirement."""

    require: bool = False
    """Every row group with values must have a filter."""
    max_fpp: float | None = None
    """The highest allowed false-positive rate, measured, 0 to 1."""
    max_oversize: float | None = None
    """The largest allowed ratio of a filter's size to the size that its values need; at least 1."""


class ColumnPart(NamedTuple):
    """Requirements for the columns that any of `names` (dotted leaf paths, globs) matches."""

    names: tuple[str, ...]
    limits: Limits
    off: Mapping[str, str] = _NONE
    """Rules switched off for these columns, each with its reason."""


class Part(NamedTuple):
    """Requirements for some files."""

    paths: tuple[str, ...] = ()
    """Path globs relative to the policy's directory; empty means all files."""
    require: tuple[str, ...] = ()
    """Leaf paths or globs that must have a filter in every row group with values."""
    max_fpp: float | None = None
    max_oversize: float | None = None
    severity: Mapping[str, Severity] = _NO_SEVERITY
    off: Mapping[str, str] = _NONE
    """Rules switched off, each with its reason."""
    columns: tuple[ColumnPart, ...] = ()
    readers: tuple[str, ...] | None = None
    """Engines that read the files; None if the part doesn't set them."""
    table: TableSchema | None = None
    size: str | None = None
    """One of `bloomcli.model.file.SIZES`: the sizes that `add` gives filters; None if the part doesn't set them."""


_SETTINGS: Final = ("max_fpp", "max_oversize", "readers", "table", "size")
"""The fields of a part of which the last part that sets them decides."""


class FilePolicy(NamedTuple):
    """Requirements for one file."""

    require: tuple[str, ...] = ()
    max_fpp: float | None = None
    max_oversize: float | None = None
    severity: Mapping[str, Severity] = _NO_SEVERITY
    off: Mapping[str, str] = _NONE
    columns: tuple[ColumnPart, ...] = ()
    readers: tuple[str, ...] = ()
    table: TableSchema | None = None
    readers_given: bool = False
    """A part sets the readers of the file, possibly to an empty list."""
    size: str | None = None
    advice: bool = False
    """Also check whether filters are useful. True with a policy file."""

    def limits(self, column: str) -> Limits:
        """Return the requirements for one column's filters, without those in `FilePolicy.require`."""
        fpp, oversize, required = self.max_fpp, self.max_oversize, False
        for part in self.columns:
            if matches(part.names, column):
                fpp = fpp if part.limits.max_fpp is None else part.limits.max_fpp
                oversize = oversize if part.limits.max_oversize is None else part.limits.max_oversize
                required = required or part.limits.require
        return Limits(require=required, max_fpp=fpp, max_oversize=oversize)

    def required(self) -> tuple[str, ...]:
        """Return the names and globs of all columns that must have filters."""
        return (*self.require, *(n for part in self.columns if part.limits.require for n in part.names))

    def judge(self, finding: Finding) -> Finding:
        """Return the finding with the policy's severity, and with the reason if its rule is switched off."""
        severity = self.severity.get(finding.id, finding.severity)
        return replace(finding, severity=severity, off=self._reason_off(finding.id, finding.column))

    def counts(self, rule: str, severity: Severity, column: str | None = None) -> bool:
        """Return whether a finding would make `validate` fail, as `Finding.counts` does after `judge`.

        Args:
            rule: the rule's id.
            severity: the finding's severity; the policy may have another one.
            column: the leaf path of the finding's column.
        """
        return self.severity.get(rule, severity) is not Severity.NOTE and self._reason_off(rule, column) is None

    def _reason_off(self, rule: str, column: str | None) -> str | None:
        """Return why the rule is switched off, None if it isn't."""
        off = self.off.get(rule)
        for part in self.columns:
            if column is not None and rule in part.off and matches(part.names, column):
                off = part.off[rule]
        return off


class _GlobCache:
    """A cache of compiled globs and merged parts. It is not pickled with the policy."""

    __slots__ = ("globs", "merged")

    def __init__(self) -> None:
        self.globs: tuple[Globs, ...] | None = None
        """The globs of each part, then those of `exclude`."""
        self.merged: dict[tuple[int, ...], FilePolicy] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return (_GlobCache, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A team's policy."""

    path: str | None = None
    """The policy's file, as the user wrote it; None for a policy from options."""
    base: str = ""
    """The directory that path globs are relative to."""
    whole: Part = field(default_factory=Part)
    """The part for all files."""
    files: tuple[Part, ...] = ()
    """The parts for some files; later ones override earlier ones."""
    exclude: tuple[str, ...] = ()
    """Path globs of files that are not checked."""
    _cache: _GlobCache = field(default_factory=_GlobCache, init=False, repr=False, compare=False)

    @property
    def requires(self) -> bool:
        """Whether any file has to have a filter."""
        parts = (self.whole, *self.files)
        return any(part.require or any(column.limits.require for column in part.columns) for part in parts)

    def for_file(self, path: str) -> FilePolicy:
        """Return the requirements for a file. Files with the same parts get the same object.

        Args:
            path: an absolute path, a path relative to the working directory, or a URI.
        """
        key: tuple[int, ...] = ()
        if self.files:
            *parts, _ = self._globs()
            located = relative_to_base(path, self.base)
            key = tuple(i for i, globs in enumerate(parts) if globs.match(*located))
        merged = self._cache.merged.get(key)
        if merged is None:
            merged = _merge((self.whole, *(self.files[i] for i in key)), advice=self.path is not None)
            self._cache.merged[key] = merged
        return merged

    def excludes(self, path: str) -> bool:
        """Return whether the policy excludes a file. `path` is as in `for_file`."""
        return bool(self.exclude) and self._globs()[-1].match(*relative_to_base(path, self.base))

    def _globs(self) -> tuple[Globs, ...]:
        """Compile the globs at the first use."""
        matched = self._cache
        if matched.globs is None:
            matched.globs = tuple(Globs(globs, self.base) for globs in (*(p.paths for p in self.files), self.exclude))
        return matched.globs


def _merge(parts: Sequence[Part], *, advice: bool) -> FilePolicy:
    """Merge the parts that match a file; later ones override earlier ones."""
    last: dict[str, Any] = {}
    for part in parts:
        last |= {name: value for name in _SETTINGS if (value := getattr(part, name)) is not None}
    return FilePolicy(
        require=tuple(dict.fromkeys(name for part in parts for name in part.require)),
        severity={rule: severity for part in parts for rule, severity in part.severity.items()},
        off={rule: reason for part in parts for rule, reason in part.off.items()},
        columns=tuple(column for part in parts for column in part.columns),
        readers_given="readers" in last,
        advice=advice,
        **last,
    )


def with_options(
    policy: Policy,
    *,
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table: TableSchema | None = None,
    size: str | None = None,
) -> Policy:
    """Return the policy with the options of one run applied.

    A limit, readers, a size or a table's schema replace those of the policy in every part, for all files, some files
    and columns. Excluded files, required columns, severities and rules that are switched off stay unchanged, because
    their reasons still apply.

    Raises:
        UsageError: a limit is out of range, or a reader is unknown.
    """
    if max_fpp is not None and not 0 < max_fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {max_fpp}")
    if max_oversize is not None and not 1 <= max_oversize < float("inf"):
        raise UsageError(f"a filter may be at least once as large as its values need, not {max_oversize} times")
    engines = tuple(dict.fromkeys(reader(name).name for name in readers)) or None
    options = {"max_fpp": max_fpp, "max_oversize": max_oversize, "readers": engines, "table": table, "size": size}
    overrides: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    no_limits: dict[str, Any] = dict.fromkeys({"max_fpp", "max_oversize"} & overrides.keys())

    def part(old: Part, settings: dict[str, Any]) -> Part:
        columns = tuple(c._replace(limits=c.limits._replace(**no_limits)) for c in old.columns)
        return old._replace(columns=columns, **settings)

    elsewhere = dict.fromkeys(overrides)  # the part for all files has them, and the others don't set them
    return replace(policy, whole=part(policy.whole, overrides), files=tuple(part(p, elsewhere) for p in policy.files))
