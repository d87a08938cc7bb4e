"""Options of `bloom add` for single formats, generated from the formats' records."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from bloomcli.formats.add_options import own_options
from bloomcli.formats.format import Option


def format_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of bloom's own formats. The function gets the given ones as a dict, ``format_options``."""
    found = tuple(own_options())

    @functools.wraps(function)
    def collected(*args: Any, **values: Any) -> int:
        all_of_them = {option.name: values.pop(option.name) for option in found}
        given = {name: value for name, value in all_of_them.items() if value is not None and value is not False}
        return function(*args, **values, format_options=given)

    command: Callable[..., int] = collected
    for option in reversed(found):
        command = _option(option)(command)
    return command


def _option(option: Option) -> Callable[[Callable[..., int]], Callable[..., int]]:
    if not option.choices:
        return click.option(option.flag, option.name, is_flag=True, help=option.help)
    return click.option(option.flag, option.name, type=click.Choice(option.choices), help=option.help)
