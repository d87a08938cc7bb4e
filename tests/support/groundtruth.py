"""The actual content of a file's row groups, by Arrow and the reference filters, for comparison with findings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from support import orcfiles
from support.orcwalk import Orc

_LISTS = {"list", "element", "key_value", "item", "array", "_elem"}


def parquet_values(path: Path) -> dict[tuple[int, str], list[Any]]:
    """The leaf values of each (row group, column), nulls left out."""
    opened = pq.ParquetFile(path)
    paths = [opened.schema.column(i).path for i in range(len(opened.schema))]
    found = {}
    for group in range(opened.num_row_groups):
        table = opened.read_row_group(group)
        for leaf in paths:
            found[group, leaf] = list(_leaves(_listed(table[leaf.split(".")[0]]), leaf.split(".")[1:]))
    return found


def _listed(column: Any) -> list[Any]:
    """Python values; the stored values for types that Python can't represent exactly or as text."""
    if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
        column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    listed: list[Any] = column.to_pylist()
    return listed


def _leaves(values: Any, steps: list[str]) -> Iterator[Any]:
    """The leaf values of lists, structs and maps."""
    for value in values:
        if value is None:
            continue
        if isinstance(value, list):
            yield from _leaves(value, [s for i, s in enumerate(steps) if i or s not in _LISTS])
        elif isinstance(value, tuple) and len(value) == 2 and steps:  # a map's entry
            below = [s for s in steps if s not in _LISTS]
            yield from _leaves([value[below[0] not in {"key", "_key"}]], below[1:])
        elif isinstance(value, dict):
            below = steps[1:] if steps[0] in _LISTS and steps[0] not in value else steps
            yield from _leaves([value[below[0]]], below[1:])
        else:
            yield value


def negative_zero(values: list[Any]) -> bool:
    """Whether -0.0 is among the values."""
    return any(isinstance(v, float) and v == 0 and math.copysign(1, v) < 0 for v in values)


def orc_lost(path: Path, column: str, hashes: dict[Any, int]) -> set[tuple[int, int]]:
    """(Stripe, row group) in which ORC's own filter lacks a value of a column, in plain Python.

    `hashes`: of each value, as Arrow reads it.
    """
    walked, opened = Orc(path), orc.ORCFile(path)
    found = set()
    for stripe in range(len(walked.stripes)):
        values = pa.table(opened.read_stripe(stripe, columns=[column]))[column].to_pylist()
        for group, (k, bits) in enumerate(walked.bitsets(stripe, column)):
            for value in set(values[group * walked.stride :][: walked.stride]) - {None}:
                places = orcfiles.places(hashes[value], len(bits) * 8, k)
                if not all(bits[p >> 3] >> (p & 7) & 1 for p in places):
                    found.add((stripe, group))
    return found
