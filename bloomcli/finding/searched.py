"""Sums up what was done with a file in steps: for one block of values after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from bloomcli.formats.finding import Candidates, Wanted
    from bloomcli.model.find import FileFound


def may_have(found: Candidates, indexed: frozenset[int] | None) -> bool:
    """Whether a row group may have values, by an index too."""
    return found.possible and (indexed is None or found.indexed_unit in indexed)


def owners_of(found: Candidates, wanted: Wanted) -> pa.Int64Array:
    """The positions of the values that a row group may have."""
    owners = wanted.owners.take(found.forms)
    if found.nan and wanted.nan is not None:
        owners = pa.concat_arrays([owners, pa.array([wanted.nan], pa.int64())])
    return owners


def with_columns(batch: pa.RecordBatch, made: Mapping[str, pa.Array]) -> pa.RecordBatch:
    names = batch.schema.names
    columns = [made[name] if name in made else batch.column(at) for at, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def summed(parts: list[FileFound]) -> FileFound:
    """What was done with a file in several steps."""
    last = parts[-1]
    groups = sorted({group for part in parts for group in part.row_groups_possible})
    return replace(
        last,
        row_groups_possible=tuple(groups),
        row_groups_read=max(part.row_groups_read for part in parts),
        pages_read=sum(part.pages_read for part in parts),
        pages_left_out=max(part.pages_left_out for part in parts),
        rows=max(part.rows for part in parts),
        bytes_read=sum(part.bytes_read for part in parts),
    )
