"""Options of `bloom add` for single formats, generated from the formats' records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from bloomcli.formats.add_options import own_options
from bloomcli.formats.format import Option, OptionValues


def format_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options of bloom's own formats. `taken_format_options` collects their values."""
    for option in reversed(tuple(own_options())):
        function = _option(option)(function)
    return function


def taken_format_options(arguments: dict[str, Any]) -> OptionValues:
    """Take the values of these options out of a command's arguments. Returns those that were given."""
    values = {option.name: arguments.pop(option.name) for option in own_options()}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def _option(option: Option) -> Callable[[Callable[..., int]], Callable[..., int]]:
    if not option.choices:
        return click.option(option.flag, option.name, is_flag=True, help=option.help)
    return click.option(option.flag, option.name, type=click.Choice(option.choices), help=option.help)
