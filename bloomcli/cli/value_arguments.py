"""Divides the arguments of `probe` and `find` into paths and values, and refuses arguments that could be either.

Both take ``PATH [VALUE...]``, the order of the functions in Python. `find` also takes ``VALUE PATH...``, as grep
does, if only arguments after the first are names of files.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import iglob
from typing import Final

import click
from click.core import ParameterSource

from bloomcli.errors import UnreadableError, UsageError
from bloomcli.formats.registry import known_suffix
from bloomcli.hints import argument, command_line, quoted
from bloomcli.hints import listed as escaped
from bloomcli.storage.names import has_wildcard, is_uri
from bloomcli.storage.os_errors import path_exists

_ENDING: Final = re.compile(r"\.[^\W\d]\w*$")
"""The suffix of data files of any format. Formats of other packages are loaded only if a name has one."""

_PATHS_SHOWN: Final = 20
"""Hints with more paths than this contain a pattern instead, or no path."""


def split(
    arguments: Sequence[str], values: Sequence[str], *, listed: bool, from_file: bool
) -> tuple[list[str], list[str]]:
    """Divide arguments into paths and values.

    Args:
        arguments: the arguments of the command, without options.
        values: the values of `--value`. If there are any, all arguments are paths.
        listed: `--files-from` names files. Without `--value`, all arguments are values.
        from_file: `--values-from` names a file with values. All arguments are paths, except with `--files-from`.

    Raises:
        UsageError: an argument can be a path as well as a value. The hint is an unambiguous command line.
    """
    if not arguments and not listed:
        raise click.UsageError("Missing argument 'PATH...'.")
    if values:
        return list(arguments), list(values)
    if listed:
        _refuse_paths([], arguments)
        return [], list(arguments)
    if from_file:
        _refuse_values(arguments)
        return list(arguments), []
    first, *rest = arguments
    _refuse_paths([first], rest)
    return [first], rest


def split_in_any_order(
    arguments: Sequence[str], values: Sequence[str], *, listed: bool, from_file: bool
) -> tuple[list[str], list[str]]:
    """Divide the arguments of `find` into paths and values: ``PATH [VALUE...]``, or ``VALUE PATH...``.

    The value comes first if the first argument isn't the name of a file and a later one is: it exists, is a URI of a
    store, a pattern with matches, or ends like a data file. If none is, an argument with a slash or a wildcard is the
    path, and of equals the first one.

    Args: as `split`; with `listed`, paths may follow a value.

    Raises:
        UsageError: no value, or names of files in the places of paths and values.
        UnreadableError: no argument is a path or looks like one.
    """
    if values and from_file:
        raise UsageError("--value and --values-from exclude each other", hint="leave one of them out")
    if not arguments and not (listed and (values or from_file)):
        raise click.UsageError(f"Missing argument '{'VALUE' if listed else 'PATH...'}'.")
    if values or from_file:
        return list(arguments), list(values)
    first, *rest = arguments
    if _is_path(first, stores=True):
        if not rest:
            column = shlex.quote(click.get_current_context().params["column"])
            hint = f"bloom find {quoted(first)} VALUE -c {column}"
            raise UsageError("no value to find follows the path", path=first, hint=hint)
        _refuse_paths([first], rest, stores=True)
        return [first], rest
    if any(_is_path(word, stores=True) for word in rest):
        return rest, [first]
    if listed:
        return [], list(arguments)
    if not rest:
        raise click.UsageError("Missing argument 'PATH...'.")
    if _names_files(first):
        return [first], rest
    if any(map(_names_files, rest)):
        return rest, [first]
    reason = f"no such file or directory, and no argument after it is one: {', '.join(rest)}"
    raise UnreadableError(reason, path=first, hint="the path comes before the values")


def _refuse_paths(paths: Sequence[str], values: Sequence[str], *, stores: bool = False) -> None:
    """Raise UsageError if a value is the name of a file, for example because the shell expanded a pattern."""
    file_values = [value for value in values if _is_path(value, stores=stores)]
    if not file_values:
        return
    left = [value for value in values if value not in file_values]
    what = "is the name of an existing file or directory" if path_exists(file_values[0]) else "ends like a data file"
    if stores and not path_exists(file_values[0]) and not _ends_like_data(file_values[0]):
        what = "is a URI of a store, or a pattern of existing files"
    reason = f"the value {file_values[0]!r} {what}, so it can also be a path"
    if not left and len(file_values) > 1 and all(map(path_exists, file_values)):
        raise UsageError(
            f"no values to {_command_name()}: all arguments are names of files", hint="name values with --value VALUE"
        )
    if stores and not left and _looks_like_data(file_values[0]) > _looks_like_data(paths[0]):
        paths, values = file_values, paths
    exchanged = [path for path in paths if not _names_files(path)]
    left = [*exchanged, *left]
    # the remaining arguments are values; the others come from a pattern that the shell expanded
    named = [*(path for path in paths if path not in exchanged), *file_values]
    raise UsageError(reason, hint=_command(named, left) if left else _command(paths, values))


def _refuse_values(paths: Sequence[str]) -> None:
    """Raise UsageError if arguments next to `--values-from` are values."""
    first, *rest = paths
    values = [p for p in rest if not _names_files(p)]
    if values:
        raise UsageError(
            f"with --values-from all arguments are paths, and {values[0]!r} isn't a file",
            hint=_command([first, *(p for p in rest if p not in values)], values),
        )


def _names_files(text: str) -> bool:
    """Whether a text is a path, or the URI or the pattern of files."""
    return _is_path(text) or not set(text).isdisjoint("/*?[")


def _ends_like_data(text: str) -> bool:
    """Whether a text ends like the name of a data file."""
    return _ENDING.search(text) is not None and known_suffix(text)


def _looks_like_data(text: str) -> bool:
    """Whether the name of an existing file is more probably that of data than a value: a directory or a data file."""
    return _ends_like_data(text) or os.path.isdir(text) or "/" in text  # noqa: PTH112  text in, bool out


def _command_name() -> str:
    return click.get_current_context().info_name or ""


def _is_path(text: str, *, stores: bool = False) -> bool:
    """Whether a text is the name of a file, or ends like one. Raises UnreadableError if the system can't tell.

    Args:
        text: the argument.
        stores: URIs of stores (except those of HTTP, which can be values) and patterns with matches are names, too.
    """
    if _ends_like_data(text):
        return True
    if stores and is_uri(text) and not text.startswith("http"):
        return True
    if stores and has_wildcard(text) and any(iglob(text)):  # noqa: PTH207  text in
        return True
    return text != "" and "\0" not in text and path_exists(os.path.abspath(text))  # noqa: PTH100  the whole path, for the error


def _command(paths: Sequence[str], values: Sequence[str]) -> str:
    """The running command with these paths and values, quoted for a shell."""
    if len(paths) > _PATHS_SHOWN:
        pattern = _pattern(paths)
        if pattern is None:
            return "name values with --value VALUE"
        paths = [pattern]
    context = click.get_current_context()
    words = ["bloom", _command_name(), *map(argument, paths)]
    for parameter in context.command.params:
        on_command_line = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if isinstance(parameter, click.Option) and on_command_line:
            words += _option(parameter, context.params[parameter.name or ""])
    return command_line([*words, *(word for value in values for word in ("-v", value))])


def _pattern(paths: Sequence[str]) -> str | None:
    """The pattern FOLDER/*.SUFFIX that matches exactly these files; None if there is none."""
    folder, name = os.path.split(paths[0])
    pattern = f"*{os.path.splitext(name)[1]}"  # noqa: PTH122  text in, text out
    named = {os.path.relpath(path, folder or ".") for path in paths}
    if set(folder) & set("*?[") or any(name.startswith(("_", ".")) for name in named):
        return None
    try:
        matches = {name for name in os.listdir(folder or ".") if fnmatchcase(name, pattern)}  # noqa: PTH208  as above
    except OSError:  # a hint needs no reason
        return None
    return os.path.join(folder, pattern) if matches == named else None  # noqa: PTH118  as above


def _option(option: click.Option, value: object) -> list[str]:
    """An option with its value as words of a command line."""
    name = option.opts[0]
    if option.is_flag:
        return [name]
    if isinstance(value, tuple):
        return [word for item in value for word in (name, escaped(str(item)))]
    return [name, str(value)]
