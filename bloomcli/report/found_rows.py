"""Writes the rows of `find`, file by file and batch by batch, in one of its formats."""

from __future__ import annotations

import json
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from bloomcli.commands.find import COLUMNS, distinct
from bloomcli.errors import UnsupportedError
from bloomcli.model.find import FileFound
from bloomcli.report.human import CUT, csv_field, value_text
from bloomcli.report.layout import Cell, Gap, Grid, Head, Style
from bloomcli.report.render import columns_of, write

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from bloomcli.finding.lake import Search

    RecordType = Callable[[], pa.StructType | None]

OF_FILES: Final = ("text", "jsonl", "json", "paths")
"""The formats that can list files instead of rows."""
_TABLE_ROWS: Final = 1000
"""Rows of a table. More make further tables, because the widths of columns are known at the end of each."""
_CELL_WIDTH: Final = 40
"""The most terminal cells of a text in a table on a terminal."""
_QUOTE: Final = '"'
_QUOTED: Final = re.compile(r'[",\r\n]|^\s|\s$')
"""What makes a cell of CSV need quotes."""


class Writer(ABC):
    """Writes rows. `close` ends the output."""

    @abstractmethod
    def rows(self, batch: pa.RecordBatch) -> None:
        """Write rows, with the columns `bloomcli.commands.find.COLUMNS` and the values as text."""

    def file(self, file: FileFound) -> None:  # noqa: B027  most formats have nothing to do
        """Called for a file with rows, after all of its rows. By default nothing happens."""

    def searched(self, record_type: RecordType) -> None:  # noqa: B027  as above
        """Called after all files, with a function that returns the record's type. By default nothing happens."""

    def close(self) -> None:  # noqa: B027  as above
        """Write the end."""


class Lines(Writer):
    """One line for each row: an object of JSON, or text.

    Args:
        write: writes lines.
        as_json: objects, for programs.
    """

    def __init__(self, write: Callable[[str], object], *, as_json: bool) -> None:
        self._write, self._as_json = write, as_json

    def rows(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        for row in rows_of(batch):
            record = json.dumps(row["record"], allow_nan=False, ensure_ascii=self._as_json)
            if self._as_json:
                self._write(json.dumps(row, allow_nan=False))
            else:
                stripe = "" if row["stripe"] is None else f"stripe {row['stripe']}, "
                self._write(f"{row['path']}: row {row['row']} ({stripe}row group {row['row_group']}): {record}")


class Files(Writer):
    """One line for each file with rows, or that may have some.

    Args:
        write: writes lines.
        as_json: objects with the row groups.
    """

    def __init__(self, write: Callable[[str], object], *, as_json: bool) -> None:
        self._write, self._as_json = write, as_json

    def rows(self, batch: pa.RecordBatch) -> None:
        """Do nothing: only files are written."""

    def file(self, file: FileFound) -> None:
        """Write a file."""
        if not self._as_json:
            self._write(file.path)
            return
        groups, stripes = list(file.row_groups_possible), list(file.stripes_possible)
        self._write(json.dumps({"path": file.path, "row_groups": groups, "stripes": stripes or None}))


class _FirstFile(NamedTuple):
    """The record type of the first file with rows, which all others must have."""

    path: str
    type: pa.StructType

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _FirstFile:
        """The file of a batch."""
        return cls(batch.column("path")[0].as_py(), batch.schema.field("record").type)


class Csv(Writer):
    r"""CSV, with the record's columns after the others. Lists and structs are JSON; a null is an empty cell, an empty
    text is a pair of quotes. A record's column with the name of another column is `record.NAME`. Control characters
    of names and texts are escapes, as in the other CSV reports (`bloomcli.report.csv`); in JSON they are JSON's.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._first: _FirstFile | None = None

    def rows(self, batch: pa.RecordBatch) -> None:
        """Write rows. Raises UnsupportedError for a file whose columns differ from the first one's."""
        if self._first is None:
            self._first = _FirstFile.of(batch)
            self._head(self._first.type)
        for row in rows_of(_like_first(batch, self._first)):
            record = row.pop("record")
            self._line([*row.values(), *record.values()])

    def searched(self, record_type: RecordType) -> None:
        """Write the names of the columns if there were no rows."""
        if self._first is None:
            self._head(record_type() or ())

    def _head(self, fields: Iterable[pa.Field]) -> None:
        """Write the columns' names."""
        others = COLUMNS[:-1]
        self._line([*others, *(_not_twice(field.name, others) for field in fields)])

    def _line(self, values: Iterable[Any]) -> None:
        text = ",".join(map(_cell, values))
        if text.lstrip().startswith("::"):  # a command of GitHub's runner; a quote before it prevents that
            path, separator, rest = text.partition(",")
            text = f'"{path}"{separator}{rest}'
        self._stream.write(text + "\n")


class Table(Writer):
    """Aligned columns: path, row and the record's columns, for people. Files with other columns begin a new table.

    On a terminal, columns that don't fit are left out, the last ones first, and long texts are cut, which a line
    below the table says; elsewhere tables are complete, unless COLUMNS is set.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream, self._most = stream, sys.maxsize if columns_of(stream) is None else _CELL_WIDTH
        self._heads: tuple[Head, ...] = ()
        self._rows: list[tuple[Cell, ...]] = []
        self._written = False

    def rows(self, batch: pa.RecordBatch) -> None:
        """Keep rows, and write full tables."""
        own = [Head("path", path=True), Head("row", figures=True)]
        fields = batch.schema.field("record").type
        for at, field in enumerate(fields):
            number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            figures = number or pa.types.is_decimal(field.type)
            own.append(Head(csv_field(_not_twice(field.name, ("path", "row"))), figures=figures, rank=at + 1))
        if tuple(own) != self._heads:
            self.close()
            self._heads = tuple(own)
        for row in rows_of(batch):
            values = [row["path"], row["row"], *row["record"].values()]
            self._rows.append((Cell(values[0]), *map(self._cell, values[1:])))
            if len(self._rows) == _TABLE_ROWS:
                self.close()

    def _cell(self, value: Any) -> Cell:
        if value is None:
            return Cell("NULL", Style.DIM)
        return Cell(
            value_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), self._most)
        )

    def close(self) -> None:
        """Write the rows since the last table."""
        if self._rows:
            grid = Grid(self._heads, self._rows, complete="--format jsonl")
            grid.explain(CUT, f"{CUT} marks a text that is cut; --format jsonl has all of it.")
            write([Gap(), grid] if self._written else [grid], self._stream)  # type: ignore[arg-type]
            self._rows, self._written = [], True


class Parquet(Writer):
    """A Parquet file; `record` is a struct in it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._writer: pq.ParquetWriter | None = None
        self._first: _FirstFile | None = None

    def rows(self, batch: pa.RecordBatch) -> None:
        """Write rows. Raises UnsupportedError for a file whose columns differ from the first one's."""
        first = self._first = self._first or _FirstFile.of(batch)
        writer = self._writer or self._begin(first.type)
        batch = _like_first(batch, first)
        try:
            writer.write_table(pa.Table.from_batches([batch]).cast(writer.schema))
        except pa.ArrowException as error:
            raise _differs(batch, first, _converted(batch, first, error)) from None

    def searched(self, record_type: RecordType) -> None:
        """Begin the file if there were no rows, with the same columns as with rows."""
        if self._writer is None:
            self._begin(record_type())

    def _begin(self, record: pa.StructType | None) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(self._stream, _schema(record), compression="zstd")
        return self._writer

    def close(self) -> None:
        """Write the footer."""
        (self._writer or self._begin(None)).close()


def _schema(record: pa.StructType | None) -> pa.Schema:
    """The columns of rows with records of this type; without `record` if no file could be searched."""
    kinds = [pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.large_string()]
    if record is not None:
        kinds.append(record)
    return pa.schema(list(zip(COLUMNS, kinds, strict=False)))


def table(batches: Sequence[pa.RecordBatch], record_type: RecordType) -> pa.Table:
    """The rows as one table, with all columns that the records have.

    Raises UnsupportedError if types of a column don't go together."""
    if not batches:
        return _schema(record_type()).empty_table()
    try:
        return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
    except pa.ArrowException as error:
        raise UnsupportedError(
            f"the files' columns have types that don't go together: {error}",
            hint="select names columns that have one type in all files; batches have each file's own types",
        ) from None


def _not_twice(name: str, others: Sequence[str]) -> str:
    """The name of a record's column beside other columns."""
    return f"record.{name}" if name in others else name


def _like_first(batch: pa.RecordBatch, first: _FirstFile) -> pa.RecordBatch:
    """Bring the record's columns into the first file's order. Raises UnsupportedError for other columns."""
    record = batch.column("record")
    names, wanted = [field.name for field in record.type], [field.name for field in first.type]
    if names == wanted:
        return batch
    if sorted(names) != sorted(wanted) or len(set(names)) < len(names):
        lacks = [name for name in wanted if name not in names]
        has = [name for name in names if name not in wanted]
        differences = [f"it {verb} {', '.join(some)}" for verb, some in (("lacks", lacks), ("also has", has)) if some]
        raise _differs(
            batch, first, ", and ".join(differences) or f"{', '.join(names)} instead of {', '.join(wanted)}"
        )
    fields = [record.type.field(name) for name in wanted]
    moved = pa.StructArray.from_arrays([record.field(name) for name in wanted], fields=fields)
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], moved], names=list(COLUMNS))


def _converted(batch: pa.RecordBatch, first: _FirstFile, error: Exception) -> str:
    """Describe the columns that don't convert to the first file's types."""
    differences = []
    for field, column in zip(first.type, batch.column("record").flatten(), strict=True):
        try:
            column.cast(field.type)
        except pa.ArrowException:
            values = " with values that don't convert" if pa.types.is_primitive(column.type) else ""
            differences.append(f"{field.name} is {column.type}{values}, and {field.type} there")
    return ", ".join(differences) or " ".join(str(error).split())


def _differs(batch: pa.RecordBatch, first: _FirstFile, how: str) -> UnsupportedError:
    return UnsupportedError(
        f"its columns aren't those of the first file with rows, {first.path}: {how}; the search ends here, and its"
        " output isn't complete",
        path=batch.column("path")[0].as_py(),
        hint="--select names columns that all files have; --format jsonl takes any",
    )


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows as objects of JSON."""
    columns = [_values(batch.column(name)) for name in COLUMNS]
    for path, stripe, row_group, row, value, record in zip(*columns, strict=True):
        yield {
            "path": path,
            "stripe": stripe,
            "row_group": row_group,
            "row": row,
            "value": value,
            "record": _jsonable(record),
        }


def _values(array: pa.Array) -> list[Any]:
    """Convert Arrow values to Python: text that isn't UTF-8 with replacements, times out of range as text."""
    try:
        values: list[Any] = array.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException):
        pass
    else:
        return values
    kind = array.type
    if pa.types.is_struct(kind):
        names = distinct([field.name for field in kind])
        rows = zip(*map(_values, array.flatten()), strict=True)
        valid = array.is_valid().to_pylist()
        return [dict(zip(names, row, strict=True)) if bit else None for row, bit in zip(rows, valid, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        return [_values(item.values) if item.is_valid else None for item in array]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        raw = array.cast(pa.large_binary()).to_pylist()
        return [None if text is None else text.decode("utf-8", "replace") for text in raw]
    texts: list[Any] = array.cast(pa.string()).to_pylist()
    return texts


def _jsonable(value: Any) -> Any:
    """A value of Arrow as JSON: binary as 0x..., times and decimals as text, NaN and infinities as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return "0x" + value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case dict():
            return {str(key): _jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
    return str(value)


def _cell(value: Any) -> str:
    """A value of JSON as a cell of CSV. The standard library's writer gives null and the empty text the same cell."""
    if value is None:
        return ""
    text = csv_field(value) if isinstance(value, str) else _json_cell(value)
    return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if not text or _QUOTED.search(text) else text


def _json_cell(value: Any) -> str:
    r"""A value as ASCII JSON, in which runners find no command: ``##`` is ``#\u0023``, and DEL an escape, too."""
    return json.dumps(value).replace("##", r"#\u0023").replace("\x7f", r"\u007f")


def write_all(
    search: Search, writer: Writer, *, of_files: bool, maybe: bool, before: Callable[[], object] | None = None
) -> None:
    """Search, and write the results.

    Args:
        search: the search.
        writer: the writer of a format.
        of_files: write each file with rows, and no rows.
        maybe: with `of_files`, write each file that may have rows.
        before: called before each write.
    """
    try:
        for file in search.files():
            has_rows = bool(file.found.rows or (maybe and file.found.row_groups_possible))
            if has_rows and before is not None:
                before()
            for batch in () if of_files else file.batches:
                writer.rows(batch)
            if has_rows:
                writer.file(file.found)
        writer.searched(search.record_type)
    finally:
        writer.close()
