"""Shell completion: columns of the files on the command line, readers, rules and keys of a policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from bloomcli.errors import BloomError
from bloomcli.hints import listed
from bloomcli.rules import RULES
from bloomcli.rules.readers import READERS
from bloomcli.storage.os_errors import convert_os_errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_LOOKED_AT: Final = 1000
"""Maximum number of entries of a directory to search for a data file, because the user waits."""


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete files, which the shell itself does."""
    del ctx, param
    return [_item(incomplete, type="file")]


def complete_columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete leaf columns of the first file on the command line, or of the first file in a directory. For --select
    also the columns of its partition."""
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.names import partition_of
    from bloomcli.storage.registry import open_source

    # before an option without its value, Click leaves the arguments unparsed; those of `find` may begin with a value
    parameters = (ctx.params.get(name) for name in ("file", "files"))
    named = [path for value in parameters for path in ([value] if isinstance(value, str) else value or ())]
    for path in named or ctx.args:
        with suppress(BloomError), convert_os_errors(path):
            first = _first_file(path)
            with open_source(first) as source:
                paths = [column.path for column in open_file(source).columns]
            paths += partition_of(first) if param.name == "select" else ()
            return _offered(incomplete, map(listed, paths) if param.multiple else paths, several=param.multiple)
    return []


def complete_readers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of engines, also after commas."""
    del ctx, param
    return _offered(incomplete, READERS, several=True)


def complete_reports(*forms: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """A function that completes the forms of ``--report FORM=FILE``."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        return [_item(f"{form}=") for form in forms if f"{form}=".startswith(incomplete)]

    return complete


def complete_explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the arguments of ``--explain``: rules and keys of a policy."""
    from bloomcli.policy.policy_keys import PAGES

    del ctx, param
    titles = {**{rule.id: rule.title for rule in RULES.values()}, **{key: page.title for key, page in PAGES.items()}}
    return [_item(name, help=title) for name, title in titles.items() if name.startswith(incomplete)]


def _first_file(path: str) -> str:
    """The path itself, or the first data file in it. Raises BloomError."""
    from bloomcli.formats.registry import known_suffix
    from bloomcli.storage.listing import is_dataset
    from bloomcli.storage.registry import store_of

    if not is_dataset([path]):
        return path
    files = [item.path for item in islice(store_of(path).list(path), _LOOKED_AT) if not item.skipped]
    return next(filter(known_suffix, files), files[0] if files else path)


def _offered(incomplete: str, names: Iterable[str], *, several: bool) -> list[CompletionItem]:
    r"""The names that complete the text, or the part after its last comma; ``\,`` is a comma within a name."""
    last = re.split(r"(?<!\\),", incomplete)[-1] if several else incomplete
    before = incomplete.removesuffix(last)
    # a name with a line break would become two names, and an escape sequence would act on the terminal
    return [_item(before + name) for name in names if name.startswith(last) and name.isprintable()]


def _item(value: str, **more: Any) -> CompletionItem:
    from click.shell_completion import CompletionItem  # only a shell that completes needs it

    return CompletionItem(value, **more)
