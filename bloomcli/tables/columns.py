"""Resolves the columns that a user names against a table's schema, on the driver, before any file is opened.

A file may not have a column that was added to the table later. So names are checked against the table here.
Executors get the table's names with the options, and leave out columns that a file doesn't have.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

import pyarrow as pa

from bloomcli.commands.option import read_policy
from bloomcli.commands.options import (
    AddOptions,
    ColumnOptions,
    Options,
    ProbeOptions,
    SurveyOptions,
    ValidateOptions,
    policy_of,
)
from bloomcli.errors import UnknownColumn, UsageError, near_names
from bloomcli.hints import listed
from bloomcli.model.schema import ColumnNames
from bloomcli.policy.globs import matches, only
from bloomcli.policy.policy import ColumnPart, Limits, Policy
from bloomcli.tables.base import FilterRequest, TableSnapshot

_ARROW: Final[Mapping[str, pa.DataType]] = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "date": pa.date32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "short": pa.int16(),
    "string": pa.string(),
    "time": pa.time64("ns"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "variant": pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]),
    "void": pa.null(),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_PARAMETERS: Final = re.compile(r"\(\d+\)$| collate .*")


def arrow_type(kind: Any) -> Any:
    """The Arrow type that Spark uses for a type, which is given as parsed JSON; None if no Arrow type exists."""
    if isinstance(kind, str):
        if (decimal := _DECIMAL.fullmatch(kind)) is not None:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        name = _PARAMETERS.sub("", kind)
        return None if name in {"char", "varchar"} else _ARROW.get(name)
    if kind["type"] == "struct":
        types = [arrow_type(field["type"]) for field in kind["fields"]]
        fields = zip(kind["fields"], types, strict=True)
        return None if None in types else pa.struct([pa.field(f["name"], t, f["nullable"]) for f, t in fields])
    if kind["type"] == "array":
        element = arrow_type(kind["elementType"])
        return None if element is None else pa.list_(pa.field("element", element, kind["containsNull"]))
    if kind["type"] == "map":
        key, value = arrow_type(kind["keyType"]), arrow_type(kind["valueType"])
        return None if None in (key, value) else pa.map_(key, pa.field("value", value, kind["valueContainsNull"]))
    return None


O = TypeVar("O", bound=Options)  # noqa: E741  options

FORMATS: Final = ("parquet", "orc")
"""The formats of data files that can have filters. No table format has Mosaic files."""

_GLOB: Final = frozenset("*?[")
_SHOWN: Final = 8
_RATE: Final = "filter-fpp"
_OF_NEW: Final = "the table's properties give the rate of new filters"


def match_columns(
    table: TableSnapshot, names: Iterable[str], columns: Sequence[str], spelled: Callable[[str], str] | None = None
) -> tuple[str, ...]:
    """The table's columns that names and globs match, in the order of its schema.

    Args:
        table: the table.
        names: the names and globs.
        columns: the table's columns.
        spelled: quotes a name for the option; by default for `--columns`.

    Raises:
        UnknownColumn: a name or a glob matches no column.
    """
    chosen: set[str] = set()
    for name in names:
        paths = {path for path in columns if path == name}
        if not paths and _GLOB & set(name):
            paths = {path for path in columns if fnmatchcase(path, name)}
        if not paths:
            raise UnknownColumn(
                f"the table has no column {name!r}",
                path=table.name,
                hint=column_hint(name, columns, spelled or listed),
            )
        chosen |= paths
    return tuple(path for path in columns if path in chosen)


def check_columns(table: TableSnapshot, options: Options, names: ColumnNames) -> tuple[str, ...]:
    """The table's columns that a command's options choose by name; empty: all.

    Raises:
        UnknownColumn: the options name a column that the table doesn't have.
    """
    columns = [column.path for column in names.columns]
    chosen: tuple[str, ...] = ()
    match options:
        case ProbeOptions():
            chosen = match_columns(table, [] if options.column is None else [options.column], columns, str)
        case SurveyOptions():
            chosen = match_columns(table, options.columns, columns)
        case ColumnOptions():
            chosen = match_columns(table, options.columns, columns)
            if isinstance(options, AddOptions) and not chosen:
                chosen = _required(policy_of(options), columns)
    if isinstance(options, ValidateOptions):
        match_columns(table, options.require, columns)
    if isinstance(options, ColumnOptions | ProbeOptions):
        out = match_columns(table, [name for name in options.exclude if not _GLOB & set(name)], columns)
        chosen = tuple(path for path in chosen if path not in out)
    return chosen


def _required(policy: Policy, columns: Sequence[str]) -> tuple[str, ...]:
    """The table's columns that a policy requires in some file."""
    parts = (policy.whole, *policy.files)
    names = [n for p in parts for n in (*p.require, *(n for c in p.columns if c.limits.require for n in c.names))]
    return tuple(path for path in columns if any(path == name or fnmatchcase(path, name) for name in names))


def choose(
    table: TableSnapshot, options: O, *, from_properties: bool
) -> tuple[dict[str, O], tuple[str, ...], tuple[str, ...]]:
    """Check a command's options against a table; with `from_properties`, add the filters that its properties request.

    Returns:
        The options for files of each format, with the table's column names; the table's columns that they choose by
        name (empty: all); and remarks.

    Raises:
        UsageError: options contradict each other, or the properties request no filter.
        UnknownColumn: the options name a column that the table doesn't have.
    """
    names = table.names()
    if not from_properties:
        options = replace(options.checked(), names=names)
        return dict.fromkeys(FORMATS, options), check_columns(table, options, names), ()
    requested, remarks = _options_from_properties(options, table)
    of_format = {kind: replace(choice.checked(), names=names) for kind, choice in requested.items()}
    chosen = dict.fromkeys(path for choice in of_format.values() for path in check_columns(table, choice, names))
    return of_format, tuple(chosen), remarks


def _options_from_properties(options: O, table: TableSnapshot) -> tuple[dict[str, O], tuple[str, ...]]:
    """Add the filters that the table's properties request to the options, as columns that the policy requires.

    Existing filters needn't meet the properties' rates, which apply to new filters: writers may miss them.

    Returns the options for files of each format for which a filter is requested, and remarks on properties for
    columns that the table doesn't have. Raises UsageError.
    """
    if not isinstance(options, AddOptions | ValidateOptions):
        raise UsageError("the table's properties are for add and validate", path=table.name)
    if isinstance(options, AddOptions) and options.columns:
        raise UsageError(
            "--columns and --from-properties exclude each other", path=table.name, hint="leave one of them out"
        )
    paths = {column.path for column in table.names().columns}
    all_requests = table.filter_requests()
    missing = dict.fromkeys(request.column for request in all_requests if request.column not in paths)
    remarks = tuple(
        f"the table's properties ask for a filter on {column}, a column that the table doesn't have"
        for column in missing
    )
    of_format: dict[str, O] = {}
    for kind in FORMATS:
        requests = [request for request in all_requests if request.column in paths and request.format in {None, kind}]
        if requests:
            of_format[kind] = _with_requests(options, requests)
    if not of_format:
        raise UsageError(
            "the table's properties ask for no filter",
            path=table.name,
            hint="; ".join(remarks) or "name columns with --columns, or require them in a policy",
        )
    return of_format, remarks


def _with_requests(options: O, requests: Sequence[FilterRequest]) -> O:
    """Add requested filters to the policy of the options."""
    if isinstance(options, AddOptions):
        policy = _with_parts(_policy(options), requests, rates=True)
        limits = [request.max_bytes for request in requests if request.max_bytes is not None]
        size = options.max_bytes if options.max_bytes is not None else min(limits, default=None)
        return replace(options, policy=policy, readers=(), table_schema=None, max_bytes=size)
    assert isinstance(options, ValidateOptions)  # noqa: S101  the caller has checked it
    return replace(options, policy=_with_parts(_policy(options), requests, rates=False))


def _policy(options: AddOptions | ValidateOptions) -> Policy:
    """The policy that options name, with their readers and table schema."""
    if isinstance(options.policy, Policy) and not options.readers and options.table_schema is None:
        return options.policy
    return read_policy(options.policy, readers=options.readers, table_schema=options.table_schema)


def _with_parts(policy: Policy, requests: Sequence[FilterRequest], *, rates: bool) -> Policy:
    """Add requested filters to a policy; with `rates`, at their rates for columns that have none in the policy."""
    parts = []
    for request in requests:
        fpp = request.fpp if rates and not _has_rate(policy, request.column) else None
        off = {} if fpp is None else {_RATE: _OF_NEW}
        parts.append(ColumnPart(names=(only(request.column),), limits=Limits(require=True, max_fpp=fpp), off=off))
    return replace(policy, whole=policy.whole._replace(columns=(*policy.whole.columns, *parts)))


def _has_rate(policy: Policy, column: str) -> bool:
    return any(
        part.max_fpp is not None
        or any(c.limits.max_fpp is not None and matches(c.names, column) for c in part.columns)
        for part in (policy.whole, *policy.files)
    )


def column_hint(name: str, columns: Sequence[str], spelled: Callable[[str], str]) -> str:
    """The hint for a column that a table doesn't have."""
    below = [path for path in columns if path.startswith(name + ".")]
    if below:
        return f"{name} is a group; its leaves: {_shown(below, spelled)}"
    near = near_names(name, columns)
    if near:
        return f"did you mean {' or '.join(_in_shell(path, spelled) for path in near)}?"
    return f"the table's columns: {_shown(columns, spelled)}"


def _shown(paths: Sequence[str], spelled: Callable[[str], str]) -> str:
    """The first few columns, as a list for a hint."""
    return ", ".join(_in_shell(p, spelled) for p in paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else "")


def _in_shell(path: str, spelled: Callable[[str], str]) -> str:
    """A column, quoted for the shell; always in quotes if its end would be unclear in a list."""
    if path.replace(".", "").isidentifier():
        return path
    quoted = shlex.quote(spelled(path))
    return quoted if quoted.startswith("'") else f"'{quoted}'"
