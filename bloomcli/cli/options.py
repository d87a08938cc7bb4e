"""Options that several commands share, the types of their values, negative arguments, and the policy file."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

from bloomcli.cli.completion import complete_columns, complete_readers, complete_reports
from bloomcli.cli.grouped import GroupedCommand, GroupedOption, option
from bloomcli.commands.option import DRAFTS, ENCRYPTION, OUTPUT, POLICY, Option, options_in
from bloomcli.errors import UsageError
from bloomcli.formats.add_options import own_options
from bloomcli.formats.format import OptionValues
from bloomcli.formats.keys import Keys
from bloomcli.formats.keys import pairs as key_pairs
from bloomcli.rules.readers import READERS
from bloomcli.storage.os_errors import convert_os_errors

_NEGATIVE: Final = re.compile(r"-(\d|\.\d|inf)", re.IGNORECASE)
_MARK: Final = "\0"
"""The prefix of negative numbers while Click parses. Arguments of a process can't contain it."""


class NegativesCommand(GroupedCommand):
    """A command that takes negative numbers as values, not as options. `unmarked` restores its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Mark arguments that look like negative numbers. No option of such a command does."""
        return super().parse_args(ctx, [_MARK + a if _NEGATIVE.match(a) else a for a in args])


def unmarked(argument: str) -> str:
    """An argument as the user wrote it."""
    return argument.removeprefix(_MARK)


def policy_file(policy: str | None, *, no_policy: bool) -> str | None:
    """The policy file that the option names, or the nearest one; None if there is none. Raises UsageError."""
    if no_policy and policy is not None:
        raise UsageError("--policy and --no-policy exclude each other", hint="leave one of them out")
    if no_policy or policy:
        return policy
    from bloomcli.policy.policy_file import FoundPolicy, find

    with convert_os_errors():
        path = find(Path())
        return None if path is None else FoundPolicy(os.path.relpath(path))


F = TypeVar("F", bound=Callable[..., Any])

_SIZE: Final = re.compile(r"\s*(\d+)\s*(b|k|kb|kib|m|mb|mib)?\s*", re.IGNORECASE)
_UNITS: Final = {"k": 1 << 10, "m": 1 << 20}

PATH: Final = click.Path(readable=False, path_type=str)
"""A file, a directory, or a URI. The code that reads it reports whether it is readable. Options share this object,
because Click translates the name of each new type, which takes longer than the rest of an option."""

FILE: Final = click.Path(readable=False, dir_okay=False, path_type=str)
"""A file or a URI, and not a local directory."""

_PATH_OR_DASH: Final = click.Path(readable=False, allow_dash=True, path_type=str)


def bundle(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine several options into one decorator. The help shows them in this order."""

    def add(function: F) -> F:
        for decorator in reversed(options):
            function = decorator(function)
        return function

    return add


class Size(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of Click only
    """Bytes, with or without a binary unit: ``4096``, ``64KiB``, ``1M``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert text to a number of bytes."""
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a size; write it like 4096, 64KiB or 1MiB", param, ctx)
        return int(match[1]) * _UNITS.get((match[2] or "b")[0].lower(), 1)


class Output(click.Path):
    """A path or URI to write to."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path as the user wrote it. A slash at its end means a directory."""
        from bloomcli.storage.local.paths import local_path

        if os.fspath(value) == "-":
            self.fail(
                "the output can't go to standard output, because it is checked before it gets its name; "
                "name a file (./- for a file of this name)",
                param,
                ctx,
            )
        return local_path(os.fspath(value))


class Fraction(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of Click only
    """A number from 0 to 1, with or without a percent sign: ``0.01``, ``1%``.

    Args:
        name: what it is, for errors.
        fits: whether a number is one.
        problem: the error for other numbers.
    """

    def __init__(self, name: str, fits: Callable[[float], bool], problem: str) -> None:
        self.name, self._fits, self._problem = name, fits, problem

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert text to a number."""
        if isinstance(value, float):
            return value
        try:
            number = float(value.rstrip("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a {self.name}; write it like 0.01 or 1%", param, ctx)
        if not self._fits(number):
            self.fail(f"{self._problem} {value}", param, ctx)
        return number


_RATE: Final = Fraction("rate", lambda it: 0 < it < 1, "a false-positive rate lies between 0 and 1, not at")
_PART: Final = Fraction("share", lambda it: 0 <= it <= 1, "a share is from 0% to 100%, not")


def as_text(argument: str) -> str:
    """Decode the name of a column on the command line as UTF-8, in any locale. Other bytes are unchanged."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeError:
        return argument


def _one_name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    del ctx, param
    return None if value is None else as_text(value)


def split_names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    r"""Split names of options that repeat and take commas, without the spaces around them.

    ``\,`` is a comma within a name, and a backslash before a space at a name's start or end keeps it, as
    `bloomcli.hints.listed` writes them.
    """
    parts = (part for value in values for part in re.split(r"(?<!\\),", as_text(value)))
    kept = (re.sub(r"^\s+|(?<!\\)\s+\Z", "", part) for part in parts)
    names = tuple(re.sub(r"^\\(?=\s)|\\(?=,|\s\Z)", "", part) for part in kept if part)
    if values and not names:  # an empty shell variable must not mean the default
        raise click.BadParameter("it names nothing: give a name, or leave the option out", ctx, param)
    return names


file_argument = click.argument("file", type=PATH)
files_argument = click.argument("files", nargs=-1, metavar="FILE...", type=PATH)


class _ListingOption(GroupedOption):
    """An option whose help lists names, which are loaded only for the help."""

    def __init__(self, *args: Any, names: Callable[[], Iterable[str]], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._names = names

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Do the same as Click, with the names."""
        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} Known: {', '.join(self._names())}.")


def _trial_readers() -> list[str]:
    """The readers that `bloom trial` runs."""
    from bloomcli.trials.readers import ENTRIES

    return [entry.name for entry in ENTRIES]


def _columns(opt: Option) -> dict[str, Any]:
    says_it = "globs" in opt.help or "whole paths" in opt.help
    many = " Repeats and takes commas." if says_it else " Repeats, takes commas and globs."
    comma = r" \, is a comma within a name." if "-c" in opt.flags else ""
    return {
        "multiple": True,
        "callback": split_names,
        "shell_complete": complete_columns,
        "help": _before_default(opt.help, many + comma),
    }


def _before_default(text: str, more: str) -> str:
    """A help text with more sentences in front of its ``[default: ...]``."""
    words, bracket, default = text.partition("  [default:")
    return words + more + bracket + default


FORMS: Final[dict[str, Callable[[Option], dict[str, Any]]]] = {
    "choice": lambda opt: {"type": click.Choice(opt.choices)},
    "column": lambda _: {"callback": _one_name, "shell_complete": complete_columns},
    "columns": _columns,
    "factor": lambda _: {"type": click.FloatRange(min=1)},
    "file": lambda _: {"type": FILE},
    "flag": lambda _: {"is_flag": True},
    "integer": lambda _: {"type": int},
    "names": lambda _: {"multiple": True, "callback": split_names},
    "number": lambda opt: {"type": click.IntRange(min=opt.least)},
    "policy": lambda opt: {
        "type": FILE,
        "help": opt.help + "  [default: the nearest bloom.toml or pyproject.toml with [tool.bloom]]",
    },
    "output": lambda _: {"type": Output()},
    "paths": lambda _: {"multiple": True, "type": PATH},
    "part": lambda _: {"type": _PART},
    "rate": lambda _: {"type": _RATE},
    "engines": lambda _: {
        "cls": _ListingOption,
        "names": lambda: READERS,
        "multiple": True,
        "callback": split_names,
        "shell_complete": complete_readers,
    },
    "trial-readers": lambda _: {
        "cls": _ListingOption,
        "names": _trial_readers,
        "multiple": True,
        "callback": split_names,
    },
    "seconds": lambda _: {"type": float},
    "share": lambda _: {},
    "size": lambda _: {"type": Size()},
    "text": lambda _: {},
    "time": lambda _: {},
}
"""How `click.option` reads the value of each form of option."""


def options_of(kind: type, *, before: str = "", only: Collection[str] | None = None) -> Callable[[F], F]:
    """The options of a command's class (`bloomcli.commands.options`), in the order of its fields.

    Args:
        kind: the class.
        before: words in front of each help text.
        only: the fields to take; by default all.
    """
    fields = [field for field in options_in(kind) if field[1].in_cli and (only is None or field[0] in only)]
    return bundle(*(part for field in fields for part in _decorators(*field, before)))


def _decorators(name: str, opt: Option, default: Any, before: str) -> Iterator[Any]:
    if opt.form == "formats":
        yield format_options
        return
    if opt.form == "keys":
        yield key_options
        return
    flags = opt.flags or ("--" + name.replace("_", "-"),)
    keywords: dict[str, Any] = {
        "metavar": opt.metavar,
        "help": before + opt.help,
        "group": opt.group,
        "common": opt.common,
    }
    keywords |= FORMS[opt.form](opt)
    if default == "":  # there is none
        keywords["required"] = True
    elif not keywords.get("multiple") and default is not None and opt.form != "flag":
        keywords |= {"default": default, "show_default": True}
    yield option(*flags, name, **keywords)
    if opt.form == "policy":
        yield option("--no-policy", is_flag=True, help="Use no policy.", group=POLICY)


def format_option(*choices: str) -> Callable[[F], F]:
    """``--format``; the first choice is the default."""
    return option(
        "-f",
        "--format",
        "form",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="Format of the result on standard output.",
        group=OUTPUT,
        common=True,
    )


def reports_option(*forms: str) -> Callable[[F], F]:
    """``--report FORM=FILE``, which repeats: pairs of a form and a path. The module `reports` checks and writes
    them."""

    def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        reports = []
        for value in values:
            form, equals, path = value.partition("=")
            if not equals or not path or form not in forms:
                raise click.BadParameter(
                    f"{value!r} is not FORM=FILE with FORM one of {', '.join(forms)}", ctx, param
                )
            reports.append((form, path))
        return tuple(reports)

    return option(
        "--report",
        "reports",
        metavar="FORM=FILE",
        multiple=True,
        callback=pairs,
        shell_complete=complete_reports(*forms),
        help=f"Also write the result to a file, as {', '.join(forms[:-1])} or {forms[-1]}; repeats.",
        group=OUTPUT,
        common=True,
    )


def all_option(text: str) -> Callable[[F], F]:
    """``--all`` (``-a``)."""
    return option("-a", "--all", "every", is_flag=True, help=text, group=OUTPUT)


def is_quiet() -> bool:
    """Whether the running command has ``--quiet``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("quiet"))


def was_given(name: str) -> bool:
    """Whether the user gave this option of the running command."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def given_options(but: Collection[str]) -> Iterator[tuple[click.Parameter, str]]:
    """The options that the user gave to the running command, except those of some parameters, and how they are
    spelled."""
    context = click.get_current_context()
    for param in context.command.params:
        if param.name in context.params.keys() - but and was_given(param.name):
            yield param, max(param.opts, key=len)


def files_from_option() -> Callable[[F], F]:
    """``--files-from``: a list of files in a file."""
    return option(
        "--files-from",
        metavar="LIST",
        type=_PATH_OR_DASH,
        help="Also process the files named in LIST, one per line; - is standard input.",
    )


def check_values_column(source: str | None, column: str | None) -> None:
    """Raise UsageError for --values-column without --values-from."""
    if column is not None and source is None:
        raise UsageError("--values-column names a column of --values-from's file", hint="name the file, too")


def value_options(text: str, source_text: str) -> Callable[[F], F]:
    """``--value`` and ``--values-from``: values that aren't arguments."""
    return bundle(
        option("-v", "--value", "values", metavar="VALUE", multiple=True, help=text, common=True),
        option(
            "--values-from",
            "source",
            metavar="FILE",
            type=_PATH_OR_DASH,
            help=source_text,
            common=True,
        ),
        option(
            "--values-column",
            metavar="NAME",
            help="The column of --values-from's CSV file, which has a header, or Parquet file.",
        ),
    )


_KEY_FORMS: Final = "hex:..., base64:..., env:NAME or @FILE"


def key_options(function: F) -> F:
    """Add the options of the keys of encrypted files. The command gets them as one argument, `keys`."""
    several: dict[str, Any] = {"multiple": True, "group": ENCRYPTION}

    @functools.wraps(function)
    def with_keys(*args: Any, **arguments: Any) -> Any:
        options = {name: arguments.pop(name) for name in _KEY_OPTIONS}
        return function(*args, keys=_keys(options), **arguments)

    add: Callable[[F], F] = bundle(
        option("--footer-key", metavar="KEY", help=f"The footer's key: {_KEY_FORMS}.", group=ENCRYPTION),
        option("--column-key", metavar="PATH=KEY", help="The key of a column; repeats.", **several),
        option(
            "--key",
            metavar="ID=KEY",
            help="A key by its id in the files' key metadata, or a master key by its id; repeats.",
            **several,
        ),
        option(
            "--aad-prefix",
            metavar="PREFIX",
            help="The AAD prefix, if the files don't store it: like a key, or text:WORDS.",
            group=ENCRYPTION,
        ),
        option(
            "--kms",
            metavar="MODULE:CLASS",
            help="The key management service: a subclass of pyarrow's KmsClient, on PYTHONPATH.",
            group=ENCRYPTION,
        ),
        option("--kms-config", metavar="NAME=VALUE", help="A setting of the class; repeats.", **several),
    )
    return add(cast("F", with_keys))


_KEY_OPTIONS: Final = ("footer_key", "column_key", "key", "aad_prefix", "kms", "kms_config")


def _keys(options: dict[str, Any]) -> Keys | None:
    """The keys; None if none of the options is given. Raises UsageError."""
    if all(value in (None, ()) for value in options.values()):
        return None
    return Keys(
        footer_key=options["footer_key"],
        column_keys=key_pairs(map(as_text, options["column_key"]), "--column-key"),
        keys=key_pairs(map(as_text, options["key"]), "--key"),
        aad_prefix=options["aad_prefix"],
        kms=options["kms"],
        kms_config=key_pairs(options["kms_config"], "--kms-config"),
    )


def format_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of bloom's own formats. `taken_format_options` collects their values."""
    for opt in reversed(tuple(own_options())):
        kind: dict[str, Any] = {"type": click.Choice(opt.choices)} if opt.choices else {"is_flag": True}
        function = option(opt.flag, opt.name, help=opt.help, group=DRAFTS, **kind)(function)
    return function


def taken_format_options(arguments: dict[str, Any]) -> OptionValues:
    """Take the values of these options out of a command's arguments. Returns those that were given."""
    values = {opt.name: arguments.pop(opt.name) for opt in own_options()}
    return {name: value for name, value in values.items() if value is not None and value is not False}
