"""The columns of what `find` finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.commands.record_columns import distinct_fields
from bloomcli.model.paths import shown

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("path", "stripe", "row_group", "row", "value", "record")
"""The columns of what is found: the file, the stripe (null in formats without stripes), the row group (in a stripe
counted within it), the row's number in the file from 0 on, the value as it was given (binary), and the row, a struct
of the selected columns."""

Emit = Callable[["pa.RecordBatch"], None]
"""Takes rows that were found, with `COLUMNS`."""


def batch_of(
    path: str,
    stripe: int | None,
    row_groups: pa.Int64Array,
    rows: pa.Int64Array,
    texts: pa.LargeBinaryArray,
    records: pa.RecordBatch,
) -> pa.RecordBatch:
    """Rows of a file, with `COLUMNS`; one entry of each array for each row."""
    return batch_of_files([path], [len(rows)], stripe, row_groups, rows, texts, records)


def batch_of_files(
    paths: Sequence[str],
    counts: Sequence[int],
    stripe: int | None,
    row_groups: pa.Int64Array,
    rows: pa.Int64Array,
    texts: pa.LargeBinaryArray,
    records: pa.RecordBatch,
) -> pa.RecordBatch:
    """Rows of several files, so many of one file after the other; as `batch_of`."""
    import pyarrow as pa

    from bloomcli.formats.arrays import binaries, repeated

    count = len(rows)
    names: list[bytes] = []
    for path, of_path in zip(paths, counts, strict=True):
        names += [shown(path).encode("utf-8", "backslashreplace")] * of_path
    columns = [
        binaries(names).cast(pa.string()),
        pa.nulls(count, pa.int64()) if stripe is None else repeated(stripe, count),
        row_groups,
        rows,
        texts,
        pa.StructArray.from_arrays(records.columns, fields=distinct_fields(records.schema)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))
