"""An option of a command, written once: its name, its type, its default and its help.

A field of a command's class (`bloomcli.commands.options`) is declared by `option`. The command line makes the Click
option of it (`bloomcli.cli.options.options_of`), and the functions of the package their keyword and its line in the
docstring (`takes_options`). The text names other options as the command line does (``--max-bytes``); docstrings
name their keywords instead (`max_bytes`).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import Any, Final, ParamSpec, TypeVar

from bloomcli.errors import UsageError
from bloomcli.formats.add_options import own_options
from bloomcli.formats.keys import keys_of
from bloomcli.policy.policy import Policy, with_options

P = ParamSpec("P")
R = TypeVar("R")

WORK: Final = "What to work on"
LOOKUPS: Final = "Which lookups"
CHECKS: Final = "What to check"
WRITE: Final = "What to write"
SIZE: Final = "How large"
POLICY: Final = "Policy and readers"
OUTPUT: Final = "Output"
RUN: Final = "How to run"
ENCRYPTION: Final = "Encrypted files"
TABLES: Final = "Tables and Spark"
DRAFTS: Final = "Drafts and old readers"
GROUPS: Final = (WORK, LOOKUPS, CHECKS, WRITE, SIZE, POLICY, OUTPUT, RUN, TABLES, ENCRYPTION, DRAFTS)
"""The groups of options in the help, in order."""

_METADATA: Final = "option"
_WIDTH: Final = 112
"""Columns of a docstring's lines."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How people give an option, and what it is for."""

    help: str
    """One or several sentences. What ends with ``[default: ...]`` says what happens without the option."""
    form: str
    """What values the option takes (`taken`), and how the command line reads them (`bloomcli.cli.options.FORMS`)."""
    metavar: str | None = None
    """The value's name in the help of the command line."""
    flags: tuple[str, ...] = ()
    """The names of the option on the command line; by default ``--name``."""
    choices: tuple[str, ...] = ()
    """The possible values of a ``choice``."""
    least: int | None = None
    """The smallest value of a ``number``."""
    in_cli: bool = True
    """Whether the command line has the option, too, and not only Python's functions."""
    group: str = WORK
    """The group of the help, one of `GROUPS`."""
    common: bool = False
    """Whether the short help (``-h``) shows the option."""


def option(default: Any, help: str, form: str, **more: Any) -> Any:  # noqa: A002  the same word as in Click
    """The field of a dataclass of options. The arguments after the default are the fields of `Option`. With the
    default "", the command line requires the option."""
    metadata = {_METADATA: Option(help=help, form=form, **more)}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def options_in(kind: type) -> Iterator[tuple[str, Option, Any]]:
    """The options of a class, in order: the field's name, the option, and its default."""
    for field in dataclasses.fields(kind):
        if _METADATA in field.metadata:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            yield field.name, field.metadata[_METADATA], default


class Checked:
    """The base of classes of options. An object has only values that its options take, whoever makes it: the command
    line, a function of the package, Spark, or a table's function.

    Raises:
        UsageError: an option has a value that it doesn't take.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check each option, and make a tuple of each that takes one name or several, and a time of a text."""
        for name, opt, default in options_in(type(self)):
            value = getattr(self, name)
            if value is not default:
                object.__setattr__(self, name, taken(name, value, opt))


def taken(name: str, value: Any, opt: Option) -> Any:
    """The value of an option: a tuple if the option takes one name or several, else the value itself.

    Args:
        name: the option's name, for the error.
        value: the value, of any type.
        opt: the option.

    Raises:
        UsageError: the option doesn't take this value.
    """
    if opt.form == "keys":
        return keys_of(value)
    if opt.form == "time" and isinstance(value, str | datetime):
        value = _time(name, value)
    if opt.form in _SEVERAL:
        what, kind = _SEVERAL[opt.form]
        if opt.form == "paths" and hasattr(value, "columns"):  # a frame, which iterates over the names of its columns
            raise UsageError(f"{name} takes {what}, not a {type(value).__name__}")
        items: tuple[Any, ...] = several(value)
        if all(isinstance(item, kind) for item in items):
            return tuple(map(os.fspath, items))
        value = next(item for item in items if not isinstance(item, kind))
    else:
        what, fits = _SINGLE[opt.form]
        if fits(opt, value):
            return value
        what = what.format(least=opt.least, choices=" or ".join(map(repr, opt.choices)))
    raise UsageError(f"{name} takes {what}, not {value!r}")


def _time(name: str, value: str | datetime) -> datetime:
    """A time with its zone, by default UTC. Raises UsageError."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError:
        hint = f"--{name.replace('_', '-')} 2026-11-01T12:00:00Z; without a zone it is in UTC"
        raise UsageError(f"{value!r} is not a time", hint=hint) from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def taken_paths(name: str, value: Any) -> tuple[str, ...]:
    """The paths of an argument that takes one or several. Raises: as `taken`."""
    paths: tuple[str, ...] = taken(name, value, Option(help="", form="paths"))
    return paths


def taken_path(name: str, value: Any) -> str:
    """The path of an argument that takes one. Raises: as `taken`."""
    path: str = os.fspath(taken(name, value, Option(help="", form="file")))
    return path


_SEVERAL: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(("columns", "engines", "names", "trial-readers"), ("a name or several names", str)),
    "paths": ("a path or several paths", str | os.PathLike),
}
"""The forms of options that take several values: what they take, in words, and the type of a single value."""

_WHOLE: Final = 1 << 63
"""The end of whole numbers: those of files and tables have 64 bits."""


def _is_whole(value: object, least: int | None = None) -> bool:
    """Whether a value is a whole number of 64 bits, and not a boolean, which is one in Python."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and (-_WHOLE if least is None else least) <= int(value) < _WHOLE  # type: ignore[call-overload]


def _is_within(value: object, fits: Callable[[float], bool]) -> bool:
    """Whether a value is a number, and fits."""
    return not isinstance(value, bool) and isinstance(value, Real) and fits(float(value))


_PATH: Final = ("a path", lambda _, value: isinstance(value, str | os.PathLike))

_SINGLE: Final[dict[str, tuple[str, Callable[[Option, Any], bool]]]] = {
    "callback": ("a function", lambda _, value: callable(value)),
    "choice": ("{choices}", lambda opt, value: isinstance(value, str) and value in opt.choices),
    "column": ("a name", lambda _, value: isinstance(value, str)),
    "factor": ("a number of 1 or more", lambda _, value: _is_within(value, lambda it: 1 <= it < float("inf"))),
    "file": _PATH,
    "flag": ("True or False", lambda _, value: isinstance(value, bool)),
    "formats": ("a mapping", lambda _, value: isinstance(value, Mapping)),
    "integer": ("a whole number between -2**63 and 2**63", lambda _, value: _is_whole(value)),
    "number": ("a whole number of {least} or more, below 2**63", lambda opt, value: _is_whole(value, opt.least)),
    "output": _PATH,
    "policy": ("a policy or its path", lambda _, value: isinstance(value, Policy | str | os.PathLike)),
    "part": ("a number from 0 to 1", lambda _, value: _is_within(value, lambda it: 0 <= it <= 1)),
    "rate": ("a number between 0 and 1", lambda _, value: _is_within(value, lambda it: 0 < it < 1)),
    "seconds": (
        "a number of seconds above 0",
        lambda _, value: _is_within(value, lambda it: 0 < it < float("inf")),
    ),
    "share": ("a part, such as '5%', or a number", lambda _, value: isinstance(value, str) or _is_whole(value)),
    "size": ("a whole number of {least} bytes or more, below 2**63", lambda opt, value: _is_whole(value, opt.least)),
    "text": ("a text", lambda _, value: isinstance(value, str)),
    "time": ("a time", lambda _, value: isinstance(value, datetime)),
}
"""The other forms: what their options take, in words, and whether one takes a value."""


def split_keywords(kinds: Collection[type], keywords: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The keywords for each of several classes, by their fields."""
    for kind in kinds:
        names = {field.name for field in dataclasses.fields(kind)}
        yield {name: value for name, value in keywords.items() if name in names}


def takes_options(*kinds: type, without: Collection[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare that a function's keywords (``**options``) are the fields of classes of options.

    The function gets a signature with each keyword and its default, and its docstring a line for each in the place of
    ``{options}``. The function is called only with keywords that it has.

    Args:
        kinds: dataclasses whose fields are declared by `option`.
        without: fields that the function doesn't take.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        fields = [field for kind in kinds for field in options_in(kind)]
        own_signature = inspect.signature(function)
        own = [p for p in own_signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        named = {parameter.name for parameter in own}
        hints = {name: hint for kind in kinds for name, hint in typing.get_type_hints(kind).items()}
        if "format_options" in hints:
            for of_format in own_options():
                default, hint = (None, str | None) if of_format.choices else (False, bool)
                fields.append((of_format.name, Option(help=of_format.help, form="formats"), default))
                hints[of_format.name] = hint
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, _, default in fields
            if name not in named and name not in without
        ]
        signature = own_signature.replace(parameters=[*own, *added])

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if unknown := kwargs.keys() - signature.parameters.keys():
                name = min(unknown)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        text = function.__doc__ or ""
        lines = [_line(n, opt.help) for n, opt, _ in fields if n not in without and f"\n        {n}: " not in text]
        checked.__doc__ = text.replace("        {options}", "\n".join(lines))
        checked.__annotations__ = {
            **{name: hint for name, hint in function.__annotations__.items() if name in named or name == "return"},
            **{parameter.name: parameter.annotation for parameter in added},
        }
        return checked

    return declare


def _line(name: str, text: str) -> str:
    """The line of a docstring about a keyword."""
    words = re.sub(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)", lambda match: f"`{match[1].replace('-', '_')}`", text)
    words = re.sub(r"\s+\[default: (.*?)\]", r" By default \1.", words).replace("..", ".")
    return textwrap.indent(textwrap.fill(f"{name}: {words}", _WIDTH - 8, subsequent_indent="    "), "        ")


def several(value: object) -> tuple[object, ...]:
    """The items of a list or another iterable; a string, or anything else, as a single item."""
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def read_policy(
    policy: Policy | str | os.PathLike[str] | None,
    *,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    size: str | None = None,
) -> Policy:
    """The policy, with the settings that options replace.

    Args:
        policy: a policy, or its file; None for an empty policy.
        readers: names of engines; if empty, the policy's.
        table_schema: file with the table's schema; if None, the policy's.
        max_fpp, max_oversize: limits; if None, the policy's.
        size: one of `SIZES`; if None, the policy's.

    Raises:
        UsageError: a figure out of range, an unknown engine, a policy or a schema that can't be read.
    """
    if policy is None:
        policy = Policy()
    elif not isinstance(policy, Policy):
        from bloomcli.policy.policy_file import load

        policy = load(policy, readers=readers)
    if not readers and table_schema is None and max_fpp is None and max_oversize is None and size is None:
        return policy
    table = None
    if table_schema is not None:
        from bloomcli.policy.table_schema import read

        table = read(table_schema)
    return with_options(policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table=table, size=size)
