"""Values from a column of a CSV or Parquet file."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.value_frames import VALUES_COLUMN, chosen_column
from bloomcli.errors import UsageError
from bloomcli.formats.arrays import SourceStream
from bloomcli.storage.registry import open_source

PARQUET_START: Final = b"PAR1"
_DELIMITERS: Final = ",;\t|"


def parquet_column(path: str, data: bytes | None, column: str | None) -> Iterator[pa.Array]:
    """Yield the values of a Parquet file's column in parts.

    Args:
        path: the file.
        data: its bytes, if it was standard input; else None.
        column: a leaf path; None: the only one.

    Raises:
        UsageError: no such column, or several and none is named, or a damaged or encrypted file.
        UnreadableError: the file can't be read.
    """
    import pyarrow.parquet as pq

    with open_source(path) if data is None else pa.BufferReader(data) as source:
        stream = source if data is not None else pa.PythonFile(SourceStream(source), "r")
        try:
            file = pq.ParquetFile(stream)
            leaves = [file.schema.column(at).path for at in range(len(file.schema))]
            for batch in file.iter_batches(columns=[chosen_column(leaves, column, path)]):
                yield _leaf(batch.column(0))
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())
            raise UsageError(f"its values can't be read as Parquet: {reason}", path=path) from None


def _leaf(values: pa.Array) -> pa.Array:
    """The values of the only leaf of a nested array."""
    while values.type.num_fields:
        if pa.types.is_struct(values.type):
            (values,) = values.flatten()
        else:
            values = values.flatten()
    return values


def csv_column(path: str, data: bytes, column: str) -> pa.ChunkedArray:
    """The texts of a column of a CSV file with a header, without empty ones.

    The delimiter is the comma, semicolon, tab or bar at which the header has the column. Fields may be quoted.

    Raises:
        UsageError: no such column, two columns of this name, or a file that isn't CSV in UTF-8.
    """
    import pyarrow.csv as pacsv

    headers = {mark: _fields(data, mark) for mark in _DELIMITERS}
    mark, fields = max(headers.items(), key=lambda header: (column in header[1], len(header[1])))
    if fields.count(column) > 1:
        raise UsageError(f"it has {fields.count(column)} columns {column!r}", path=path, hint="rename one of them")
    chosen_column(fields, column, path)
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            parse_options=pacsv.ParseOptions(delimiter=mark, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(include_columns=[column], column_types={column: pa.large_string()}),
        )
    except pa.ArrowException as error:
        raise UsageError(f"it can't be read as CSV: {' '.join(str(error).split())}", path=path) from None
    values = table.column(0)
    return values.filter(pc.binary_length(values).cast(pa.bool_()))  # a comparison with 0 would import pandas


def _fields(data: bytes, mark: str) -> list[str]:
    """The fields of the first line."""
    line = data[: data.find(b"\n") + 1] or data
    return next(csv.reader(io.StringIO(line.decode("utf-8-sig", "replace")), delimiter=mark), [])


def check_no_table(path: str, data: bytes, searched: str) -> None:
    """Raise UsageError if a file with a value on each line is a CSV file with a header.

    Only files named .csv and .tsv are checked. A header has several columns, quotes, or the name of the searched
    column; or it is a text, and the second line a number.
    """
    if not path.lower().endswith((".csv", ".tsv")):
        return
    fields = max((_fields(data, mark) for mark in _DELIMITERS), key=len)
    first, _, rest = data.decode("utf-8-sig", "replace").partition("\n")
    second = rest.partition("\n")[0]
    is_name = first.strip() in {searched, searched.rpartition(".")[2]} and second
    if len(fields) > 1 or first.startswith('"') or is_name or (_is_number(second) and not _is_number(first)):
        name = next((f for f in fields if f in {searched, searched.rpartition(".")[2]}), fields[0] if fields else "")
        raise UsageError(
            f"it is a table with a header ({', '.join(fields[:20])}), and not one value on each line",
            path=path,
            hint=f"{VALUES_COLUMN} {shlex.quote(name)} takes the values of that column",
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
