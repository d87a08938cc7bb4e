"""Reads values from a file with one value on each line, some MiB at a time, or from a column of CSV or Parquet.

The values are an Arrow array of UTF-8 bytes, in which a value takes 10 to 50 bytes.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.find_values import VALUES_MOST, Values
from bloomcli.commands.value_frames import VALUES_COLUMN, chosen_column, column_texts, texts_of
from bloomcli.errors import LiteralError, UnreadableError, UsageError
from bloomcli.formats.arrays import SourceStream, binaries
from bloomcli.model.paths import shown
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.os_errors import hint, reason
from bloomcli.storage.registry import LOCAL, open_source, store_of

_PARQUET_START: Final = b"PAR1"
_DELIMITERS: Final = ",;\t|"


def lines_of(data: bytes) -> pa.LargeBinaryArray:
    """The lines of a text without its byte order mark: without empty lines and carriage returns."""
    lines = pc.split_pattern(binaries([data]), "\n").values
    if b"\r" in data:
        lines = pc.if_else(pc.ends_with(lines, "\r"), pc.binary_slice(lines, 0, -1), lines)
    return lines.take(pc.indices_nonzero(pc.binary_length(lines)))  # a comparison with 0 would import pandas


_BLOCK_BYTES: Final = 8 << 20
_LINE_MOST: Final = 128 << 20
"""Most bytes of a line. Pages with longer values aren't read, and a stream without line breaks may have no end."""
_GZIP: Final = b"\x1f\x8b"
_GZIP_HINT: Final = "it is compressed: `gzip -dc FILE | bloom find --values-from - ...`"


def values_of(path: str, column: str | None = None, searched: str = "") -> Values:
    """The values of a file; ``-`` is standard input.

    A line is a value, without its line end and the file's byte order mark. Empty lines are left out. A Parquet file
    and, with `column`, a CSV file has the values in a column.

    Args:
        path: the file.
        column: the column of the values.
        searched: the column that is searched, whose name a header may have.

    Raises:
        UnreadableError: the file can't be read.
        UsageError: the file isn't UTF-8, has a line that is too long, has no such column or a header and no column is
            named, or has no values or more than `VALUES_MOST`.
    """
    blocks = _blocks(path)
    first = next(blocks, b"")
    if column is not None or first.startswith(_PARQUET_START):
        return Values(_of_column(path, first, blocks, column))
    _check_no_table(path, first, searched)
    texts = _joined(_lines(path, chain([first], blocks)), path)
    if not len(texts):
        raise UsageError("the file has no values", path=path, hint="write one in each line")
    # a pipe can't be read twice
    again = path != "-" and (store_of(path) is not LOCAL or Path(local_path(path)).is_file())
    return Values(texts, path if again else None)


def _of_column(path: str, first: bytes, rest: Iterable[bytes], column: str | None) -> pa.LargeBinaryArray:
    """The values of a file's column. Raises as `values_of`."""
    if first.startswith(_PARQUET_START):
        whole = b"".join((first, *rest)) if path == "-" else None
        arrays: Iterable[pa.Array] = _parquet_column(path, whole, column)
    else:
        arrays = _csv_column(path, b"".join((first, *rest)), column or "").chunks
    texts = _joined(map(texts_of, arrays), path)
    if not len(texts):
        raise UsageError("the column has no values", path=path)
    return texts


def with_line(error: LiteralError, values: Values) -> LiteralError:
    """Add the line that has the value to an error. Returns the error unchanged if the file can't be read any more."""
    if values.file is None or error.text is None:
        return error
    try:
        line = _line_of(error.text, values.file)
    except (UnreadableError, UsageError):
        return error
    if line is None:
        return error
    reason = f"{error.reason}; line {line} of {shown(values.file)} has it"
    return LiteralError(reason, text=error.text, path=error.path, hint=error.hint)


@lru_cache(maxsize=16)  # the same value makes many files fail
def _line_of(text: str, path: str) -> int | None:
    """The number, from 1, of the first line that equals a text; None if the file has changed, and no line does."""
    pattern = re.compile(rb"^" + re.escape(text.encode("utf-8", "surrogateescape")) + rb"\r?$", re.MULTILINE)
    before = 0
    for lines in _whole_lines(path, _blocks(path)):
        data = lines if before else lines.removeprefix(BOM_UTF8)
        match = pattern.search(data)
        if match is not None:
            return before + data.count(b"\n", 0, match.start()) + 1
        before += lines.count(b"\n")
    return None


def values_given(values: Any, column: str | None = None) -> Values:
    """The values that a function of Python is given: one or several, Arrow data, a series, a column of a data frame.

    Raises UsageError for a value without a usual text form, for too many values, and as `arrow_of`.
    """
    return Values(_joined([column_texts(values, column)], None))


def _joined(arrays: Iterable[pa.LargeBinaryArray], path: str | None) -> pa.LargeBinaryArray:
    """Join arrays. Raises UsageError for more than `VALUES_MOST` values."""
    parts, count = [pa.nulls(0, pa.large_binary())], 0  # `pa.array` imports pandas
    for array in arrays:
        parts.append(array)
        count += len(array)
        if count > VALUES_MOST:
            raise UsageError(
                f"more than {VALUES_MOST:,} values, which one machine doesn't look up",
                path=path,
                hint="bloomcli.spark.find(spark, paths, frame, column=...) finds the values of a frame of any size",
            )
    return pa.concat_arrays(parts)


def _blocks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file. Raises UnreadableError."""
    try:
        if path != "-" and store_of(path) is not LOCAL:
            with open_source(path) as source:
                for at in range(0, source.size, _BLOCK_BYTES):
                    yield source.read_at(at, min(_BLOCK_BYTES, source.size - at))
            return
        file = sys.stdin.buffer if path == "-" else open(local_path(path), "rb", buffering=0)  # noqa: PTH123, SIM115
        with nullcontext() if path == "-" else file:
            while data := file.read(_BLOCK_BYTES):
                yield data
        if data is None:  # another program that shares the stream made it non-blocking
            raise UnreadableError("can't be read: it is non-blocking, and has no data yet", path=path)
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        cause = error if isinstance(error, OSError) else OSError(str(error))
        raise UnreadableError(f"can't be read: {reason(cause)}", path=path, hint=hint(cause)) from None


def _lines(path: str, blocks: Iterable[bytes]) -> Iterator[pa.LargeBinaryArray]:
    """Yield the complete lines of each block. Raises UsageError for bytes that aren't UTF-8, and for long lines."""
    offset, line, first = 0, 1, True
    for lines in _whole_lines(path, blocks):
        try:
            lines.decode()
        except UnicodeDecodeError as error:
            at = line + lines.count(b"\n", 0, error.start)
            raise UsageError(
                f"line {at} isn't UTF-8",
                path=path,
                offset=offset + error.start,
                hint=_GZIP_HINT
                if first and lines.startswith(_GZIP)
                else "write binary values as 0x0fff, and text as UTF-8: `iconv -t UTF-8` converts it",
            ) from None
        yield lines_of(lines.removeprefix(BOM_UTF8) if first else lines)  # a later mark is part of a value
        first = False
        offset += len(lines)
        line += lines.count(b"\n")


def _whole_lines(path: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Split the bytes of a file after line ends. Raises UsageError for a line longer than `_LINE_MOST`."""
    waiting: list[bytes] = []
    size = offset = 0
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            whole = b"".join((*waiting, block[:end]))
            offset += len(whole)
            yield whole
            waiting, size = [], 0
        waiting.append(block[end:])
        size += len(block) - end
        if size > _LINE_MOST:
            raise UsageError(
                f"a line has more than {_LINE_MOST:,} bytes, which no value has",
                path=path,
                offset=offset,
                hint="write one value in each line",
            )
    if size:
        yield b"".join(waiting)


def _parquet_column(path: str, data: bytes | None, column: str | None) -> Iterator[pa.Array]:
    """Yield the values of a Parquet file's column in parts.

    Args:
        path: the file.
        data: its bytes, if it was standard input; else None.
        column: a leaf path; the only one if None.

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


def _csv_column(path: str, data: bytes, column: str) -> pa.ChunkedArray:
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


def _check_no_table(path: str, data: bytes, searched: str) -> None:
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
