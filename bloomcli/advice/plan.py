"""Draws two samples of all units of all files: value units, whose values are sampled, and lookup units, in which the
values are looked up. They are independent random samples without replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from bloomcli.advice.column_metadata import UnitKey
from bloomcli.commands.sampling import chosen, share
from bloomcli.datasets.task import Task
from bloomcli.model.advice import FileExtents

FILES_MOST: Final = 20_000
"""The most files whose metadata are read. Of more files, that many are chosen at random."""
_UNITS: Final = 50
_UNITS_LEAST: Final = 8
_BYTES: Final = 256 << 20
"""The approximate compressed bytes of a sample of units, if the options don't set its size."""
_VALUES: Final = 1024
_VALUES_LEAST: Final = 16
_VALUES_MOST: Final = 4096
_LOOKUPS: Final = 50_000
"""The approximate number of lookups for one column: the fewer units, the more values of each."""
_COLUMNS_VALUES: Final = 200_000
"""The approximate number of values of all columns."""
_PARTS: Final = (2, 32)
_PARTS_IN_ALL: Final = 64
_SKETCHES_BYTES: Final = 64 << 20
_SKETCH_BITS: Final = (8, 12)


class Plan(NamedTuple):
    """The sampled units of a run, and the numbers of values."""

    value_units: Mapping[int, tuple[int, ...]]
    """The units whose values are sampled, by the positions of their files."""
    lookup_units: Mapping[int, tuple[int, ...]]
    """The units in which the values are looked up, by the positions of their files."""
    values: int
    """The number of values that are sampled in each value unit."""
    sketch_bits: int
    parts: int
    """The number of random parts that a unit's values are divided into, to measure the variance within a unit."""

    @property
    def sampled(self) -> set[UnitKey]:
        """The units of both samples."""
        return {
            (file, unit)
            for units in (self.value_units, self.lookup_units)
            for file, found in units.items()
            for unit in found
        }


def some_files(tasks: Sequence[Task], seed: int) -> list[int]:
    """The positions of the files whose metadata are read: all files, or `FILES_MOST` random ones."""
    if len(tasks) <= FILES_MOST:
        return list(range(len(tasks)))
    return sorted(chosen([task.path for task in tasks], share(str(FILES_MOST)), seed))


def plan(paths: Mapping[int, str], files: Mapping[int, FileExtents], sample: str | None, seed: int) -> Plan:
    """Draw both samples. Units without rows aren't drawn."""
    units = [
        (position, number) for position, file in files.items() for number, count in enumerate(file.units) if count
    ]
    first, last = min(paths.values(), default=""), max(paths.values(), default="")
    start = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)  # where paths differ
    names = [f"{paths[position][start:]}:{number}" for position, number in units]
    text = str(_default(units, files)) if sample is None else sample
    drawn = [
        chosen([f"{side}:{name}" for name in names], share(text), seed) if units else set()
        for side in ("values", "filters")
    ]
    count = max(len(drawn[0]), 1)
    columns = max((len(file.columns) for file in files.values()), default=1)
    of_column = min(_VALUES_MOST, _LOOKUPS // count, _COLUMNS_VALUES // max(columns, 1))
    bits = (_SKETCHES_BYTES // (8 * 2 * count * max(columns, 1))).bit_length() - 1
    return Plan(
        value_units=_by_file(units, drawn[0]),
        lookup_units=_by_file(units, drawn[1]),
        values=max(max(of_column, _VALUES) // count, _VALUES_LEAST),
        sketch_bits=min(max(bits, _SKETCH_BITS[0]), _SKETCH_BITS[1]),
        parts=min(max(_PARTS_IN_ALL // count, _PARTS[0]), _PARTS[1]),
    )


def _default(units: Sequence[UnitKey], files: Mapping[int, FileExtents]) -> int:
    """The number of units in a sample: 50, or fewer if they are large."""
    total = sum(sum(file.row_group_bytes) for file in files.values())
    mean = total / max(len(units), 1)
    return min(_UNITS, max(_UNITS_LEAST, int(_BYTES / max(mean, 1.0))))


def _by_file(units: Sequence[UnitKey], drawn: set[int]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for at in sorted(drawn):
        found.setdefault(units[at][0], []).append(units[at][1])
    return {file: tuple(numbers) for file, numbers in found.items()}
