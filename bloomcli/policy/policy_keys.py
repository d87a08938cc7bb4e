"""The keys of a policy file: checks the values that tomllib parsed, creates a `Policy`, and explains each key.

``bloom validate --explain KEY`` prints the explanations. docs/policy.md is the reference.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bloomcli.errors import BloomError, UsageError, near_names
from bloomcli.model.file import SIZES, Severity
from bloomcli.policy import globs
from bloomcli.policy.policy import ColumnPart, Limits, Part, Policy
from bloomcli.rules import RULES, rule
from bloomcli.rules.readers import reader
from bloomcli.storage.names import is_uri

if TYPE_CHECKING:
    from bloomcli.policy.table_schema import TableSchema


At = tuple[str | int, ...]
"""A key path: keys and array indexes, the outermost first."""

_PART: Final = (
    "require",
    "max-fpp",
    "max-oversize",
    "size",
    "readers",
    "table-schema",
    "severity",
    "off",
    "columns",
)
"""Keys for all files, and for some files."""
TOP: Final = (*_PART, "exclude", "files")
FILES: Final = ("paths", *_PART)
COLUMN: Final = ("require", "max-fpp", "max-oversize", "off")
_NAME_IT: Final = (
    "`--policy FILE` names the policy, which may then refer to any file; a policy that bloom finds by itself refers "
    "to files below it only, and errors don't show their contents"
)
_NEAR: Final = 0.6
"""The similarity from which a known word is suggested for a mistyped one."""

_KINDS: Final = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "a table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem in a policy file."""

    at: At
    reason: str
    hint: str | None = None


class Keys:
    """Checks the tables of a policy file. Invalid settings go to `problems` and are missing in the result."""

    def __init__(self, base: str, *, readers: bool = False, implicit: bool = False) -> None:
        self.problems: list[Problem] = []
        self._base = base
        self._readers_known = readers
        """Whether options name readers."""
        self._implicit = implicit
        """Whether the user didn't name the file. It may then only refer to files below its directory, and errors
        don't show their contents, because a pull request may have brought it to a machine with other files."""
        self._schemas: dict[str, TableSchema | None] = {}

    def policy(self, table: object, *, path: str) -> Policy:
        """Return the policy of the whole file."""
        keys = self._table(table, (), TOP)
        files = []
        elements = list(self._array(keys, "files", ()))
        for index, element in elements:
            files.append(self._files(element, ("files", index)))
        self._same_files(files, [index for index, _ in elements])
        whole = self._part(keys, ())
        tables = [((), keys), *((("files", index), element) for index, element in elements)]
        self._for_readers([whole, *files], tables)
        return Policy(
            path=path,
            base=self._base,
            whole=whole,
            files=tuple(files),
            exclude=self._globs(keys, "exclude", ()),
        )

    def _for_readers(self, parts: Sequence[Part], tables: Sequence[tuple[At, object]]) -> None:
        """Report a table's schema that has no effect because neither the file nor the options name a reader."""
        if self._readers_known or any(isinstance(table, dict) and table.get("readers") for _, table in tables):
            return
        for part, (at, _) in zip(parts, tables, strict=True):
            if part.table is not None:
                hint = 'readers = ["spark", "trino"], or --readers'
                reason = "no effect: a table's schema applies to readers, and none is set"
                self._wrong((*at, "table-schema"), reason, hint)

    def _files(self, element: object, at: At) -> Part:
        keys = self._table(element, at, FILES)
        if not isinstance(element, dict):
            return Part()
        if not element.get("paths", True):
            self._wrong((*at, "paths"), "an empty list matches no file", "leave [[files]] out for all files")
        elif "paths" not in element:
            hint = 'paths = ["orders/**"]; keys for all files go above the first [[files]]'
            self._wrong(at, "[[files]] without paths", hint)
        elif len(element) == 1:
            self._wrong(at, "no requirements for these files", f"its keys: {', '.join(_PART)}")
        return self._part(keys, at, self._globs(keys, "paths", at))

    def _same_files(self, files: list[Part], indexes: list[int]) -> None:
        first: dict[frozenset[str], int] = {}
        for index, part in zip(indexes, files, strict=True):
            other = first.setdefault(frozenset(part.paths), index)
            if part.paths and other != index:
                reason = f"the same paths as files[{other}]"
                self._wrong(("files", index, "paths"), reason, "merge the two parts")

    def _part(self, keys: Mapping[str, Any], at: At, paths: tuple[str, ...] = ()) -> Part:
        require = self._names(keys, "require", at, "column")
        off = self._off(keys, at)
        return Part(
            paths=paths,
            require=require,
            max_fpp=self._rate(keys, at),
            max_oversize=self._factor(keys, at),
            severity=self._severities(keys, at, off),
            off=off,
            columns=tuple(self._columns(keys, at, require)),
            readers=self._readers(keys, at),
            table=self._schema(keys, at),
            size=self._size(keys, at),
        )

    def _columns(self, keys: Mapping[str, Any], at: At, required: Collection[str]) -> Iterator[ColumnPart]:
        columns = keys.get("columns", {})
        at = (*at, "columns")
        if not isinstance(columns, dict):
            self._wrong(at, f"expected a table, found {_kind(columns)}", '[columns."user.*"]')
            return
        for name, value in columns.items():
            here = (*at, name)
            if not name.strip():
                self._wrong(here, "the column's name is empty")
                continue
            if isinstance(value, dict) and not value:
                self._wrong(here, "no requirements for the column", f"its keys: {', '.join(COLUMN)}")
            part = self._table(value, here, COLUMN)
            wanted = self._true(part, here)
            if wanted and name in required:
                self._wrong((*here, "require"), f"{name!r} is also in the list require", "remove one of them")
            yield ColumnPart(
                names=(name,),
                limits=Limits(require=wanted, max_fpp=self._rate(part, here), max_oversize=self._factor(part, here)),
                off=self._off(part, here),
            )

    def _true(self, keys: Mapping[str, Any], at: At) -> bool:
        value = keys.get("require")
        if value is False:
            hint = "leave it out; for a column that a glob shouldn't require: off.filter-required, with a reason"
            self._wrong((*at, "require"), "false has no effect: required columns accumulate", hint)
        elif value is not None and value is not True:
            self._wrong((*at, "require"), f"expected true, found {_kind(value)}")
        return value is True

    def _rate(self, keys: Mapping[str, Any], at: At) -> float | None:
        value = self._number(keys, "max-fpp", at)
        if value is None or 0 < value < 1:
            return value
        hint = f"for {value:g} %: {value / 100:g}" if 1 <= value < 100 else None
        self._wrong((*at, "max-fpp"), f"a false-positive rate lies between 0 and 1, not at {value:g}", hint)
        return None

    def _factor(self, keys: Mapping[str, Any], at: At) -> float | None:
        value = self._number(keys, "max-oversize", at)
        if value is None or 1 <= value < float("inf"):
            return value
        reason = f"a filter may be at least once as large as its values need, not {value:g} times"
        hint = "leave it out for no limit" if value == float("inf") else None
        self._wrong((*at, "max-oversize"), reason, hint)
        return None

    def _size(self, keys: Mapping[str, Any], at: At) -> str | None:
        value = keys.get("size")
        if value is None or value in SIZES:
            return value
        reason = f"unknown size {value!r}" if isinstance(value, str) else f"expected a size, found {_kind(value)}"
        self._wrong((*at, "size"), reason, " or ".join(SIZES))
        return None

    def _number(self, keys: Mapping[str, Any], key: str, at: At) -> float | None:
        value = keys.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong((*at, key), f"expected a number, found {_kind(value)}")
            return None
        try:
            return float(value)
        except OverflowError:
            self._wrong((*at, key), "a number that is too large")
            return None

    def _off(self, keys: Mapping[str, Any], at: At) -> dict[str, str]:
        off = {}
        for name, reason, here in self._rules(keys, "off", at):
            if not isinstance(reason, str):
                self._wrong(here, f"expected a reason, found {_kind(reason)}", "state why the rule is switched off")
            elif not reason.strip():
                self._wrong(here, "the reason is empty", "state why the rule is switched off")
            else:
                off[name] = reason
        return off

    def _severities(self, keys: Mapping[str, Any], at: At, off: Collection[str]) -> dict[str, Severity]:
        severities = {}
        values = [severity.value for severity in Severity]
        for name, value, here in self._rules(keys, "severity", at):
            if not isinstance(value, str):
                self._wrong(here, f"expected a severity, found {_kind(value)}", ", ".join(values))
            elif value not in values:
                hint = "a rule is switched off in [off], with a reason" if value == "off" else None
                self._wrong(here, f"unknown severity {value!r}", hint or _near(value.lower(), values))
            elif name in off:
                self._wrong(here, "no effect: the rule is also switched off", "remove one of them")
            else:
                severities[name] = Severity(value)
        return severities

    def _rules(self, keys: Mapping[str, Any], key: str, at: At) -> Iterator[tuple[str, object, At]]:
        """Yield the entries of a table whose keys are rules."""
        table = keys.get(key, {})
        if not isinstance(table, dict):
            self._wrong((*at, key), f"expected a table of rules, found {_kind(table)}")
            return
        for name, value in table.items():
            here = (*at, key, name)
            try:
                rule(name)
            except UsageError as error:
                self._wrong(here, error.reason, _location_hint(name) or error.hint)
            else:
                yield name, value, here

    def _readers(self, keys: Mapping[str, Any], at: At) -> tuple[str, ...] | None:
        if "readers" not in keys:
            return None

        names: dict[str, str] = {}
        for name in self._names(keys, "readers", at, "reader"):
            here = (*at, "readers", keys["readers"].index(name))
            try:
                reader_name = reader(name).name
            except UsageError as error:
                self._wrong(here, error.reason, error.hint)
                continue
            if reader_name in names:
                self._wrong(here, f"{name!r} is the same as {names[reader_name]!r}", "remove one of them")
            names.setdefault(reader_name, name)
        return tuple(names)

    def _schema(self, keys: Mapping[str, Any], at: At) -> TableSchema | None:
        value = keys.get("table-schema")
        if value is None:
            return None
        at = (*at, "table-schema")
        if not isinstance(value, str):
            self._wrong(at, f"expected a file's name, found {_kind(value)}")
            return None
        if not value.strip():
            self._wrong(at, "the file's name is empty")
            return None
        if value not in self._schemas:
            self._schemas[value] = self._read_schema(value, at)
        return self._schemas[value]

    def _read_schema(self, value: str, at: At) -> TableSchema | None:
        from bloomcli.policy.table_schema import read

        # errors contain the name as written
        path = value if is_uri(value) else os.path.join(self._base, value)  # noqa: PTH118
        if is_uri(path) and ".." in value.split("/"):  # a store takes `..` as a name
            scheme, separator, name = path.partition("://")
            path = scheme + separator + os.path.normpath(name)
        if self._implicit and not is_below(self._base, value):
            self._wrong(at, f"{value!r} isn't below the policy's directory", _NAME_IT)
            return None
        try:
            return read(path)
        except BloomError as error:
            if self._implicit:
                self._wrong(at, f"{value!r} can't be read as a table's schema", _NAME_IT)
            else:
                self._wrong(at, error.message, error.hint)
            return None

    def _globs(self, keys: Mapping[str, Any], key: str, at: At) -> tuple[str, ...]:
        kept: list[str] = []
        for glob in self._names(keys, key, at, "glob"):
            here = (*at, key, keys[key].index(glob))
            reason = globs.problem(glob)
            if reason is not None:
                self._wrong(here, f"invalid glob {glob!r}: {reason}")
            elif not kept and glob.startswith("!"):
                self._wrong(
                    here, f"{glob!r} has no effect: no glob before it includes files", "put such a glob before it"
                )
            else:
                kept.append(glob)
        return tuple(kept)

    def _names(self, keys: Mapping[str, Any], key: str, at: At, noun: str) -> tuple[str, ...]:
        """Return an array of strings without duplicates and empty strings."""
        names: dict[str, None] = {}
        for index, name in self._array(keys, key, at):
            here = (*at, key, index)
            if not isinstance(name, str):
                self._wrong(here, f"expected a {noun}'s name, found {_kind(name)}")
            elif not name.strip():
                self._wrong(here, f"an empty {noun}")
            elif name in names:
                self._wrong(here, f"{name!r} is listed twice", "remove one of them")
            else:
                names[name] = None
        return tuple(names)

    def _array(self, keys: Mapping[str, Any], key: str, at: At) -> Iterator[tuple[int, object]]:
        value = keys.get(key, [])
        if not isinstance(value, list):
            hint = f"{key} = [{value!r}]".replace("'", '"') if isinstance(value, str) else None
            hint = "[[files]], with two brackets" if key == "files" else hint
            self._wrong((*at, key), f"expected an array, found {_kind(value)}", hint)
            return
        yield from enumerate(value)

    def _table(self, value: object, at: At, names: Collection[str]) -> dict[str, Any]:
        """Return the known keys of a table."""
        if not isinstance(value, dict):
            self._wrong(at, f"expected a table, found {_kind(value)}")
            return {}
        for key in value:
            if key not in names:
                dotted = _dotted(key, value[key], at) if names is COLUMN else None
                self._wrong((*at, key), f"unknown key {key!r}", dotted or _key_hint(key, names))
        return {key: item for key, item in value.items() if key in names}

    def _wrong(self, at: At, reason: str, hint: str | None = None) -> None:
        self.problems.append(Problem(at=at, reason=reason, hint=hint))


def is_below(base: str, value: str) -> bool:
    """Whether a relative path, with its links followed, leads to a file below a directory."""
    if is_uri(value) or is_uri(base) or os.path.isabs(value):  # noqa: PTH117
        return False
    try:
        folder, file = os.path.realpath(base), os.path.realpath(os.path.join(base, value))  # noqa: PTH118
        return os.path.commonpath([folder, file]) == folder
    except (OSError, ValueError):  # ValueError: a null byte, or another drive
        return False


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date or time")


def _dotted(key: str, value: object, at: At) -> str | None:
    """Return the hint for ``[columns.user.email]``, in which TOML takes the dots of the column's name for nesting.

    None if the nested table isn't that of a column.
    """
    outer, name = [step for step in at if isinstance(step, str)], key
    while isinstance(value, dict) and not value.keys() & set(COLUMN):
        inner = next((inner for inner in value if isinstance(value[inner], dict)), None)
        if inner is None:
            break
        name += f".{inner}"
        value = value[inner]
    if not isinstance(value, dict) or (value and not value.keys() & set(COLUMN)):
        return None
    *tables, first = outer
    quoted = json.dumps(f"{first}.{name}", ensure_ascii=False)
    return f"dots in a column's name need quotes: [{'.'.join(tables)}.{quoted}]"


def _near(name: str, names: Collection[str]) -> str:
    near = near_names(name, names, n=3, cutoff=_NEAR)
    return f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(names)}"


def _key_hint(key: str, names: Collection[str]) -> str:
    """Return the hint for an unknown key."""
    if key in RULES:
        return f'severity.{key} = "note", or off.{key} = "the reason"'
    return _location_hint(key) or _near(key.lower(), names)


def _location_hint(key: str) -> str | None:
    """Return where a misplaced key belongs: in TOML, keys after a table's header belong to that table."""
    if key == "tool":
        return "[tool.bloom] is for pyproject.toml; here the keys are at the top level"
    if key in FILES[1:]:
        return f"{key} goes above the tables, for all files, or directly below [[files]], for some files"
    if key in TOP:
        return f"{key} goes above the tables, once for the whole policy"
    return "paths belongs to [[files]]" if key == "paths" else None


class KeyPage(NamedTuple):
    """A key of a policy file."""

    title: str
    text: str
    example: str


PAGES: Final[dict[str, KeyPage]] = {
    "require": KeyPage(
        "columns that must have a filter",
        "Columns (leaf paths or globs) that must have a filter in every row group that has values. In"
        " [columns.NAME] the value is true. Required columns accumulate. A missing filter is a finding of"
        " filter-required; `bloom add` without --columns adds it.",
        'require = ["id", "user.*"]',
    ),
    "max-fpp": KeyPage(
        "the highest measured false-positive rate",
        "A rate above 0 and below 1. A filter above it is a finding of filter-fpp. It is also the rate of the"
        " filters that `bloom add` makes, unless --fpp is given.",
        "max-fpp = 0.01",
    ),
    "max-oversize": KeyPage(
        "the largest size of a filter, as a multiple of what it needs",
        "A factor of 1 or more, at the rate of max-fpp, or 0.01. A larger filter is a finding of filter-oversized.",
        "max-oversize = 4",
    ),
    "size": KeyPage(
        "the sizes that `bloom add` gives filters",
        "power-of-two, the default, or tight: any multiple of 32 bytes, a third less on average. Tight sizes need"
        " readers, and all of them have to accept such filters. --size has precedence.",
        'size = "tight"\nreaders = ["spark", "duckdb"]',
    ),
    "readers": KeyPage(
        "the engines that read the files",
        "Filters that one of them looks up wrongly are findings, and `bloom add` leaves such columns out.",
        'readers = ["spark", "trino"]',
    ),
    "table-schema": KeyPage(
        "the file with the table's schema",
        "A path relative to the policy: Spark's or Iceberg's JSON, or DDL. Readers look values up at its types.",
        'table-schema = "schemas/orders.json"',
    ),
    "severity": KeyPage(
        "severities other than the rules' defaults",
        "A table: rule = error, warning or note. Errors and warnings make the check fail, notes don't.",
        '[severity]\nfilter-no-length = "warning"',
    ),
    "off": KeyPage(
        "rules that are switched off",
        "A table: rule = the reason, which reports show with the findings.",
        '[off]\nfilter-not-power-of-two = "only Spark reads these, and it accepts any size"',
    ),
    "columns": KeyPage(
        "requirements for some columns",
        "Tables by column or glob, with require, max-fpp, max-oversize and off.",
        '[columns."user.*"]\nmax-fpp = 0.05',
    ),
    "exclude": KeyPage(
        "files that are not checked",
        "Globs of paths as in .gitignore, relative to the policy's directory. `bloom add` without --columns"
        " leaves these files alone, too.",
        'exclude = ["**/staging/**"]',
    ),
    "files": KeyPage(
        "requirements for some files",
        "Sections with paths and every other key except exclude. Later sections override earlier ones.",
        '[[files]]\npaths = ["archive/**"]\nmax-fpp = 0.05',
    ),
    "paths": KeyPage(
        "the files that a section applies to",
        "Globs of paths as in .gitignore, relative to the policy's directory.",
        '[[files]]\npaths = ["archive/**"]\nmax-fpp = 0.05',
    ),
}
"""By key, in the order of docs/policy.md."""
