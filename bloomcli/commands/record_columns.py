"""The columns of the records that `find` returns, and their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bloomcli.commands.columns import select
from bloomcli.commands.options import FindOptions
from bloomcli.formats.base import FilterFile

if TYPE_CHECKING:
    import pyarrow as pa


def selected(file: FilterFile, options: FindOptions) -> list[str] | None:
    """The paths of the columns of a record; None for all. Raises UnknownColumn."""
    if not options.select:
        return None
    leaves = file.columns
    tops = {name for name in options.select if any(c.path.startswith(f"{name}.") for c in leaves)}
    named = [name for name in options.select if name not in tops and name not in file.missing_columns]
    found = {c.index for c in select(leaves, named, path=file.source.path)} if named else set()
    found |= {c.index for c in leaves if any(c.path.startswith(f"{top}.") for top in tops)}
    return [c.path for c in leaves if c.index in found]


def distinct(names: Sequence[str]) -> list[str]:
    """The names, made unique: repetitions of a name become ``NAME_1``, ``NAME_2``, ..."""
    found: dict[str, None] = {}
    for name in names:
        number, new = 0, name
        while new in found or (number and new in names):
            number += 1
            new = f"{name}_{number}"
        found[new] = None
    return list(found)


def distinct_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """A record's fields with unique names, because a struct with two fields of one name can't be read by name."""
    given = list(fields)
    names = distinct([field.name for field in given])
    return [field if field.name == name else field.with_name(name) for field, name in zip(given, names, strict=True)]
