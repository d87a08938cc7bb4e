"""The columns of the rows that `find` returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from bloomcli.commands.record_columns import distinct_fields
from bloomcli.model.paths import shown

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("path", "stripe", "row_group", "row", "value", "record")
"""The columns: the file, the stripe (null in formats without stripes), the row group (ORC: its number in the stripe),
the row's number in the file from 0, the value as given (UTF-8 in binary; see `with_texts`), and the record, a struct
of the selected columns."""

Emit = Callable[["pa.RecordBatch"], None]
"""A function that takes rows with `COLUMNS`."""


def with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with the values as text: bytes that aren't UTF-8 become U+FFFD."""
    if not hasattr(batch, "schema"):  # `plain_search.PlainRows`, which has texts, and needs no Arrow
        return batch
    import pyarrow as pa

    at = COLUMNS.index("value")
    values = batch.column(at)
    try:
        texts = values.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()], pa.large_string())
    return batch.set_column(at, "value", texts)


def batch_of(
    path: str,
    stripe: int | None,
    row_groups: pa.Int64Array,
    rows: pa.Int64Array,
    texts: pa.LargeBinaryArray,
    records: pa.RecordBatch,
) -> pa.RecordBatch:
    """Make the rows of a file, with `COLUMNS`. Each array has one entry for each row."""
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
    """Make the rows of several files, as `batch_of`. `counts`: the number of rows of each file, in order."""
    import pyarrow as pa

    from bloomcli.formats.arrays import binaries, repeated

    count = len(rows)
    names: list[bytes] = []
    for path, rows_of_path in zip(paths, counts, strict=True):
        names += [shown(path).encode("utf-8", "backslashreplace")] * rows_of_path
    columns = [
        binaries(names).cast(pa.string()),
        pa.nulls(count, pa.int64()) if stripe is None else repeated(stripe, count),
        row_groups,
        rows,
        texts,
        pa.StructArray.from_arrays(records.columns, fields=distinct_fields(records.schema)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))
