"""Finds the formats' records.

A format is a folder next to this module with a module ``format``, whose ``FORMATS`` are its records. Other packages
add formats by entry points of the group ``bloomcli.formats``; each refers to a tuple of records. They are looked up
only if none of bloom's own formats matches, because reading the metadata of installed packages takes longer than
opening a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Final

from bloomcli.errors import UnsupportedError
from bloomcli.formats.format import Format

ENTRY_POINTS: Final = "bloomcli.formats"
"""The group of entry points by which other packages add formats."""


@cache
def own_formats() -> tuple[Format, ...]:
    """The formats of the folders next to this module, by the folders' names."""
    home = Path(__file__).parent
    folders = sorted(found.parent.name for found in home.glob("*/format.py"))
    found = (import_module(f"{__package__}.{folder}.format").FORMATS for folder in folders)
    return tuple(chain.from_iterable(found))


@cache
def installed_formats() -> tuple[Format, ...]:
    """The formats that other packages add, in the order of their entry points' names.

    Raises UnsupportedError where an entry point doesn't lead to records.
    """
    from importlib.metadata import entry_points

    found: list[Format] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            records = tuple(point.load())
        except (ImportError, AttributeError, TypeError) as error:
            raise UnsupportedError(
                f"the format {point.name!r}, which another package adds as {point.value}, can't be loaded: {error}",
                hint="install that package again, or uninstall it",
            ) from error
        if not all(isinstance(record, Format) for record in records):
            raise UnsupportedError(
                f"the format {point.name!r}, which another package adds as {point.value}, is not a tuple of formats",
                hint="install a release of that package for this release of bloom, or uninstall it",
            )
        found.extend(records)
    return tuple(found)


def formats() -> Iterator[Format]:
    """Every format, bloom's own first. Entry points are read after bloom's own formats are consumed."""
    yield from own_formats()
    yield from installed_formats()


def format_named(name: str) -> Format:
    """The format whose open files have this `FilterFile.format`. Raises KeyError."""
    for record in formats():
        if record.name == name:
            return record
    raise KeyError(name)
