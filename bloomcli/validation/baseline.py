"""The baseline: a file of known findings. Only new findings fail a gate.

A finding is identified by its rule, path, column, row group and stripe, not by byte offsets or texts, which change
when a file is written again. A finding about a whole column lists all its row groups, and is known if the baseline
has all of them. Paths are relative to the baseline's folder where possible; links to folders are resolved.

`Coverage` decides whether a run of `validate` would find an earlier run's findings again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from bloomcli.checks import group_ranges
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.model.validate import Finding
from bloomcli.policy.globs import matches, relative_to_base
from bloomcli.policy.policy import FilePolicy, Policy
from bloomcli.rules import RULES, When
from bloomcli.rules.reader_table import INTERVAL, ISSUE, WIDENED
from bloomcli.rules.readers import reader
from bloomcli.storage.listing import spelling
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import folder_of, is_uri, usual_scheme
from bloomcli.storage.os_errors import convert_os_errors, hint, reason
from bloomcli.storage.registry import read_file, write_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The rules, columns and values that a run checks."""

    policy: Policy
    columns: tuple[str, ...] = ()
    """Columns whose filters were checked; none means all."""
    exclude: tuple[str, ...] = ()
    """Columns that get no findings, even if another option names them."""
    require: tuple[str, ...] = ()
    """Columns that must have filters, in addition to those of the policy."""
    values: bool
    """Whether the run reads the values of every row group."""
    table: bool = False
    """Whether the run compares the files with their table's metadata."""

    def covers(self, path: str, format: str | None, id: str, column: str | None) -> bool:  # noqa: A002  the file's, the rule's
        """Whether the run checks a rule in a column of a file."""
        rules = self.policy.for_file(path)
        if _among(column, self.exclude):
            return False
        if id == "filter-required":  # in all columns, even if the other checks are limited to some
            return _among(column, (*rules.required(), *self.require))
        if self.columns and not _among(column, self.columns):
            return False
        match RULES[id].when:
            case When.DEEP:
                return self.values
            case When.TABLE:
                return self.table and self.values  # without the values, it finds fewer faults
            case When.LIMIT:
                limits = rules.limits(column or "")
                return (limits.max_fpp if id == "filter-fpp" else limits.max_oversize) is not None
            case When.POLICY:
                return rules.advice
            case When.READERS:
                if id == INTERVAL and not rules.readers:
                    return self.values  # the file's footer itself names the reader
                return _by_readers(rules, format, id)
        return True


def _among(column: str | None, names: Iterable[str]) -> bool:
    return column is not None and matches(names, column)


def _by_readers(rules: FilePolicy, format: str | None, id: str) -> bool:  # noqa: A002  the file's, the rule's
    """Whether one of the named readers can break the rule."""
    named = [reader(name) for name in rules.readers]
    if id == "profit-dictionary":
        return rules.advice and bool(named) and all(who.dictionary for who in named)
    if id == WIDENED and rules.table is None:
        return False
    if id == ISSUE:
        return format is not None and any(who.issues_of(format) for who in named)
    return any(id in who.wrong_about and format in who.probes for who in named)


_SCHEMA: Final = "bloom/baseline/2"
_OLD: Final = "bloom/baseline/1"
_MAX_BYTES: Final = 256 << 20


class Entry(NamedTuple):
    """The identity of a finding."""

    id: str
    path: str
    column: str | None
    stripe: int | None
    row_group: int | None
    places: str | None = None
    """All row groups or stripes of a finding about several; `stripe` and `row_group` are None then."""


_Key = tuple[str, str, str | None, int | None, int | None, bool]
"""An entry without its `places`, with links in its path resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A file of known findings."""

    path: str
    entries: frozenset[Entry] = frozenset()

    def entry(self, finding: Finding) -> Entry:
        """The finding's entry."""
        path = self.spelled(finding.path or "")
        if finding.places is not None:
            return Entry(finding.id, path, finding.column, None, None, finding.places)
        return Entry(finding.id, path, finding.column, finding.stripe, finding.row_group)

    def spelled(self, path: str) -> str:
        """A file's path as entries spell it."""
        return relative_to_base(local_path(path), self._folder)[0]

    @property
    def _folder(self) -> str:
        return folder_of(self.path)

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, with `known` set for those in the baseline."""
        key = _keyed(self._whole())
        accepted = _runs(self.entries, key)

        def is_known(entry: Entry) -> bool:
            runs = accepted.get(key(entry))
            return runs is not None and (
                entry.places is None or group_ranges.within(group_ranges.read(entry.places), runs)
            )

        return [replace(f, known=f.counts and is_known(self.entry(f))) for f in findings]

    def gone(
        self, findings: Iterable[Finding], looked_at: Collection[str], covered: Callable[[str, Entry], bool]
    ) -> set[Entry]:
        """Entries that are resolved: this run checked for them and didn't find them.

        Args:
            findings: the findings of this run.
            looked_at: paths of the files that the run checked.
            covered: whether the run checked the entry's rule and column in the file of this path.
        """
        whole = self._whole()
        key = _keyed(whole)
        paths = {whole(self.spelled(path)): path for path in looked_at}
        keys = {key(self.entry(f)) for f in findings}
        return {
            e
            for e in self.entries
            if key(e) not in keys and (path := paths.get(key(e)[1])) is not None and covered(path, e)
        }

    def updated(self, findings: Iterable[Finding], gone: Collection[Entry], *, in_part: bool = False) -> Baseline:
        """The baseline with the findings of this run that count, and without resolved entries.

        Args:
            findings: the findings of this run.
            gone: entries to leave out.
            in_part: the run left out row groups, so an entry keeps its row groups and gets those of this run.
        """
        key = _keyed(self._whole())
        kept = self.entries - set(gone)
        today = {self.entry(f) for f in findings if f.counts or f.known}
        keys = {key(e) for e in today}
        runs = _runs((*today, *kept) if in_part else today, key)
        new = {e if e.places is None else e._replace(places=group_ranges.text(runs[key(e)])) for e in today}
        return replace(self, entries=frozenset({e for e in kept if key(e) not in keys} | new))

    def _whole(self) -> Callable[[str], str]:
        """A function that maps all spellings of a file's path, in entries and findings, to one path."""
        spell, folder = spelling(), self._folder

        def whole(path: str) -> str:
            path = path if is_uri(path) else os.path.join(folder, path)  # noqa: PTH118  there are thousands of files
            return usual_scheme(path) if is_uri(path) else spell(path)

        return whole


def _keyed(whole: Callable[[str], str]) -> Callable[[Entry], _Key]:
    def key(entry: Entry) -> _Key:
        return entry.id, whole(entry.path), entry.column, entry.stripe, entry.row_group, entry.places is not None

    return key


def _runs(entries: Iterable[Entry], key: Callable[[Entry], _Key]) -> Mapping[_Key, list[group_ranges.Run]]:
    """The row groups of all entries, by key; empty if the key itself contains the row group."""
    by_key: dict[_Key, list[group_ranges.Run]] = {}
    for entry in entries:
        runs = by_key.setdefault(key(entry), [])
        if entry.places is not None:
            runs += group_ranges.read(entry.places)
    return by_key


def load(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline. Raises UnreadableError; UsageError for a file that isn't a baseline."""
    name = os.fspath(path)
    try:
        data = read_file(name, _MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"it is larger than {_MAX_BYTES} bytes", path=name, hint="it isn't a baseline")
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise UsageError(
            "there is no such baseline", path=name, hint="--update-baseline writes one of today's findings"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError("it isn't UTF-8", path=name, offset=error.start, hint=_HINT) from None
    except OSError as error:
        raise UnreadableError(
            f"can't be read: {reason(error)}", path=name, hint=hint(error) or "check the path"
        ) from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"it isn't JSON: {error}", path=name, hint=_HINT) from None
    if isinstance(document, dict) and document.get("schema") == _OLD:
        raise UsageError(
            "an older version of bloom wrote it, without the row groups of its findings", path=name, hint=_HINT
        )
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise UsageError(f"it isn't a baseline: its schema isn't {_SCHEMA!r}", path=name, hint=_HINT)
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise UsageError("it has no list of findings", path=name, field="findings", hint=_HINT)
    return Baseline(path=name, entries=frozenset(_entry(name, i, item) for i, item in enumerate(findings)))


_HINT: Final = "move it away; --update-baseline then writes it anew"


def _entry(path: str, index: int, item: Any) -> Entry:
    field = f"findings[{index}]"
    if not isinstance(item, dict) or set(item) - set(Entry._fields):
        raise UsageError("not an entry of a baseline", path=path, field=field, hint=_HINT)
    fields: dict[str, Any] = {name: item.get(name) for name in Entry._fields}
    entry = Entry(**fields)
    texts = all(isinstance(text, str) for text in (entry.id, entry.path, entry.column or ""))
    numbers = all(n is None or (isinstance(n, int) and n >= 0) for n in (entry.stripe, entry.row_group))
    if not texts or not numbers or entry.id not in RULES or not _places_are_valid(entry):
        raise UsageError("not an entry of a baseline", path=path, field=field, hint=_HINT)
    return entry


def _places_are_valid(entry: Entry) -> bool:
    """Whether the entry has no `places`, or valid ones and neither a stripe nor a row group."""
    if entry.places is None:
        return True
    if not isinstance(entry.places, str) or entry.stripe is not None or entry.row_group is not None:
        return False
    try:
        return bool(group_ranges.read(entry.places))
    except ValueError:
        return False


def _sort_key(entry: Entry) -> tuple[str, str, str, int, int, str]:
    stripe, row_group = (-1 if n is None else n for n in (entry.stripe, entry.row_group))
    return entry.id, entry.path, entry.column or "", stripe, row_group, entry.places or ""


def text(baseline: Baseline) -> str:
    """The file's text: one entry per line, sorted, so that people can read and merge it."""
    lines = [
        json.dumps({key: value for key, value in entry._asdict().items() if value is not None})
        for entry in sorted(baseline.entries, key=_sort_key)
    ]
    body = ",\n    ".join(lines)
    return f'{{\n  "schema": "{_SCHEMA}",\n  "findings": [' + (f"\n    {body}\n  " if lines else "") + "]\n}\n"


def save(baseline: Baseline) -> None:
    """Write the file atomically. Raises WriteError."""
    with convert_os_errors(baseline.path):
        write_file(baseline.path, text(baseline).encode(), overwrite=True)
