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
import re
import textwrap
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from bloomcli.formats.add_options import own_options

P = ParamSpec("P")
R = TypeVar("R")

_METADATA: Final = "option"
_WIDTH: Final = 112
"""Columns of a docstring's lines."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How people give an option, and what it is for."""

    help: str
    """One or several sentences. What ends with ``[default: ...]`` says what happens without the option."""
    form: str
    """How the command line reads the value: a key of `bloomcli.cli.options.FORMS`. Empty: Python's functions only."""
    metavar: str | None = None
    """The value's name in the help of the command line."""
    flags: tuple[str, ...] = ()
    """The names of the option on the command line; by default ``--name``."""
    choices: tuple[str, ...] = ()
    """The possible values of a ``choice``."""
    least: int | None = None
    """The smallest value of a ``number``."""


def option(
    default: Any,
    help: str,  # noqa: A002  the same word as in Click
    form: str = "",
    *,
    metavar: str | None = None,
    flags: tuple[str, ...] = (),
    choices: tuple[str, ...] = (),
    least: int | None = None,
) -> Any:
    """The field of a dataclass of options. See `Option` for the arguments. With the default "", the command line
    requires the option."""
    shown = Option(help=help, form=form, metavar=metavar, flags=flags, choices=choices, least=least)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: default, metadata={_METADATA: shown})
    return dataclasses.field(default=default, metadata={_METADATA: shown})


def options_in(kind: type) -> Iterator[tuple[str, Option, Any]]:
    """The options of a class, in order: the field's name, the option, and its default."""
    for field in dataclasses.fields(kind):
        if _METADATA in field.metadata:
            default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            yield field.name, field.metadata[_METADATA], default


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
        taken = [one for kind in kinds for one in options_in(kind)]
        plain = inspect.signature(function)
        own = [p for p in plain.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        named = {parameter.name for parameter in own}
        hints = {name: hint for kind in kinds for name, hint in typing.get_type_hints(kind).items()}
        if "format_options" in hints:
            for of_format in own_options():
                default, hint = (None, str | None) if of_format.choices else (False, bool)
                taken.append((of_format.name, Option(help=of_format.help, form=""), default))
                hints[of_format.name] = hint
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            for name, _, default in taken
            if name not in named and name not in without
        ]
        signature = plain.replace(parameters=[*own, *added])

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if unknown := kwargs.keys() - signature.parameters.keys():
                name = min(unknown)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        text = function.__doc__ or ""
        lines = [_line(n, one.help) for n, one, _ in taken if n not in without and f"\n        {n}: " not in text]
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
