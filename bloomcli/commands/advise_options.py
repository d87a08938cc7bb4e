"""The steps of `advise`: the metadata and values of a file that a task reads.

Extents: all files, metadata  ->  driver draws units  ->  Values: units from which values are sampled
                                                      ->  Lookups: units in which all these values are looked up
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from bloomcli.commands.options import FPP, ColumnOptions, Options
from bloomcli.model.file import Column
from bloomcli.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentOptions(ColumnOptions):
    """The first step of `advise`: read the metadata of all files. Of the units that the driver then draws, the values
    of some are sampled, and looked up in others (`UnitOptions`)."""

    command: ClassVar[str] = "advise"

    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupValues:
    """The values to look up in one column."""

    typed: Column
    """The type in which `values` are encoded."""
    values: tuple[bytes, ...]
    """PLAIN bytes."""
    cells: tuple[int, ...]
    """For each value, the cell whose sums count it."""
    weights: tuple[float, ...]
    cell_count: int
    absent_from: int
    """The first cell of values that are assumed to be absent. A unit that has such a value doesn't count it."""
    absent_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitOptions(Options):
    """The other steps of `advise`: read the values of some units, to sample them, or to look all samples up."""

    command: ClassVar[str] = "advise"

    units: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The units of each file, by the path of its task."""
    columns: Mapping[str, LookupValues | None] = field(default_factory=dict)
    """Leaf paths, with the values to look up. If None, values are sampled from the column, and looked up in their
    unit."""
    rates: tuple[float, ...] = ()
    fpp: float = FPP
    """The rate to which existing filters could be folded."""
    values: int = 0
    """The number of values to sample from a unit."""
    parts: int = 2
    """The number of random parts of a unit's own values. Each part has a cell."""
    sketch_bits: int = 11
    """Base-2 logarithm of the hashes that a sketch keeps."""
    seed: int = 0
    tight: bool = False
    """New filters have tight sizes, because all named readers accept them."""
    dictionary: bool = False
    """All named readers look values up in dictionaries."""
    policy: Policy = field(default_factory=Policy)
