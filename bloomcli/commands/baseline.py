"""The baseline: findings that are known, kept in a file beside the policy; only new ones fail a gate.

A finding is told from others by its rule, path, column and place (row group and stripe), not by byte offsets or
words, which change when a file is written again. Paths are relative to the baseline's folder where they can be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from bloomcli.errors import UnreadableError, UsageError
from bloomcli.listing import is_uri, local_path
from bloomcli.model import Finding
from bloomcli.rules import RULES, When

_SCHEMA: Final = "bloom/baseline/1"
_MAX_BYTES: Final = 256 << 20


class Entry(NamedTuple):
    """What tells one finding from others."""

    id: str
    path: str
    column: str | None
    stripe: int | None
    row_group: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A file of known findings."""

    path: str
    entries: frozenset[Entry] = frozenset()

    def entry(self, finding: Finding) -> Entry:
        """The finding's entry."""
        return Entry(finding.id, self.spelled(finding.path or ""), finding.column, finding.stripe, finding.row_group)

    def spelled(self, path: str) -> str:
        """A file's path as entries have it."""
        if is_uri(path):
            return path
        whole = os.path.abspath(local_path(path))  # noqa: PTH100  there are thousands of files
        folder = os.path.abspath(os.path.dirname(self.path))  # noqa: PTH100, PTH120  there are thousands of files
        return whole[len(folder) + 1 :].replace(os.sep, "/") if whole.startswith(folder + os.sep) else whole

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, those in the baseline as known."""
        return [replace(f, known=f.counts and self.entry(f) in self.entries) for f in findings]

    def gone(self, findings: Iterable[Finding], looked_at: Collection[str], *, deep: bool) -> set[Entry]:
        """Entries that would have been found again if they still held: their file, and rule, was looked at."""
        paths = {self.spelled(path) for path in looked_at}
        there = {self.entry(f) for f in findings}
        return {
            e
            for e in self.entries
            if e.path in paths and e not in there and (deep or RULES[e.id].when is not When.DEEP)
        }

    def updated(self, findings: Iterable[Finding], gone: Collection[Entry]) -> Baseline:
        """With today's findings that count, and without those that are gone."""
        today = {self.entry(f) for f in findings if f.counts or f.known}
        return replace(self, entries=frozenset((self.entries - set(gone)) | today))


def load(path: str | os.PathLike[str]) -> Baseline:
    """Read a baseline. Raises UnreadableError, UsageError for a file that isn't one."""
    name = os.fspath(path)
    try:
        if Path(name).stat().st_size > _MAX_BYTES:
            raise UsageError(f"it is larger than {_MAX_BYTES} bytes", path=name, hint="it isn't a baseline")
        text = Path(name).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            "there is no such baseline", path=name, hint="--update-baseline writes one of today's findings"
        ) from None
    except UnicodeDecodeError as error:
        raise UsageError("it isn't UTF-8", path=name, offset=error.start, hint=_HINT) from None
    except OSError as error:
        raise UnreadableError(f"can't be read: {error.strerror or error}", path=name, hint="check the path") from None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"it isn't JSON: {error}", path=name, hint=_HINT) from None
    if not isinstance(document, dict) or document.get("schema") != _SCHEMA:
        raise UsageError(f"it isn't a baseline: its schema isn't {_SCHEMA!r}", path=name, hint=_HINT)
    found = document.get("findings")
    if not isinstance(found, list):
        raise UsageError("it has no list of findings", path=name, field="findings", hint=_HINT)
    return Baseline(path=name, entries=frozenset(_entry(name, i, item) for i, item in enumerate(found)))


_HINT: Final = "move it away; --update-baseline then writes it anew"


def _entry(path: str, index: int, item: Any) -> Entry:
    field = f"findings[{index}]"
    if not isinstance(item, dict) or set(item) - set(Entry._fields):
        raise UsageError("not an entry of a baseline", path=path, field=field, hint=_HINT)
    fields: dict[str, Any] = {name: item.get(name) for name in Entry._fields}
    entry = Entry(**fields)
    texts = all(isinstance(text, str) for text in (entry.id, entry.path, entry.column or ""))
    numbers = all(n is None or (isinstance(n, int) and n >= 0) for n in (entry.stripe, entry.row_group))
    if not texts or not numbers or entry.id not in RULES:
        raise UsageError("not an entry of a baseline", path=path, field=field, hint=_HINT)
    return entry


def _order(entry: Entry) -> tuple[str, str, str, int, int]:
    stripe, row_group = (-1 if n is None else n for n in (entry.stripe, entry.row_group))
    return entry.id, entry.path, entry.column or "", stripe, row_group


def text(baseline: Baseline) -> str:
    """The file's text: an entry a line, sorted, so that it can be read and merged."""
    lines = [
        json.dumps({key: value for key, value in entry._asdict().items() if value is not None})
        for entry in sorted(baseline.entries, key=_order)
    ]
    body = ",\n    ".join(lines)
    return f'{{\n  "schema": "{_SCHEMA}",\n  "findings": [' + (f"\n    {body}\n  " if lines else "") + "]\n}\n"
