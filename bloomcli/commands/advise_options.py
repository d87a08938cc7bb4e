"""The steps of `advise`: which of a file's metadata and values a task looks at.

Extents: all files, metadata  ->  driver draws units  ->  Values: units that give values
                                                      ->  Lookups: units in which all values are looked up
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bloomcli.commands.options import FPP, ColumnOptions
from bloomcli.commands.options_base import Options
from bloomcli.model.file import Column
from bloomcli.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentOptions(ColumnOptions):
    """Read a file's metadata."""

    command: ClassVar[str] = "advise"

    policy: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupValues:
    """The values that are looked up in one column."""

    typed: Column
    """As `values` are written."""
    values: tuple[bytes, ...]
    """PLAIN bytes."""
    cells: tuple[int, ...]
    """The cell whose sums each value counts in."""
    weights: tuple[float, ...]
    cell_count: int
    absent_from: int
    """The first cell of values that are taken for absent: where a unit has such a value, it doesn't count."""
    absent_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOptions(Options):
    """Read the values of some units."""

    command: ClassVar[str] = "advise"

    units: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of each file, by the path of its task."""
    columns: Mapping[str, LookupValues | None] = field(default_factory=dict)
    """Leaf paths, with the values to look up. None: the column gives values, which are looked up in their unit."""
    rates: tuple[float, ...] = ()
    fpp: float = FPP
    """The rate to which filters that are there could be folded."""
    values: int = 0
    """Values that a unit gives."""
    parts: int = 2
    """Random parts of a unit's own values: each has a cell."""
    sketch_bits: int = 11
    """Base-2 logarithm of the hashes that a sketch keeps."""
    seed: int = 0
    tight: bool = False
    """New filters have tight sizes: all named readers take them."""
    dictionary: bool = False
    """All named readers look values up in dictionaries."""
    policy: Policy | None = None
