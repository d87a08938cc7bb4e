"""Columns of Hive's partitions, whose values are in the names of directories: ``day=2024-01-01/part-0.parquet``.

Types and rules are those of Spark's `PartitioningUtils` (inferPartitionColumnValue,
findWiderTypeForPartitionColumn): the values of all directories make a column an int, long, decimal, double, date,
timestamp or string, and a column that a file has, too, keeps its place and gets the directory's name, type and
value. Unlike Spark, which decodes each ``%E4`` to one character, escapes that are UTF-8 are read as such, because
PyArrow and DuckDB write them; timestamps are in UTC; and a column that is null in all directories is a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import reduce
from typing import Final

import pyarrow as pa

from bloomcli.commands.options import FindOptions
from bloomcli.errors import LiteralError, UnsupportedError, UsageError
from bloomcli.formats.arrays import binaries
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import Column
from bloomcli.storage.base import FileEntry
from bloomcli.storage.names import decoded, folder_of, partition_of
from bloomcli.values.literals import parse

_WHOLE: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?\d+\.?\d*([eE][+-]?\d{1,3})?")
_DOUBLE: Final = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?)\s*")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")


def with_partitions(options: FindOptions, listed: Iterable[FileEntry]) -> FindOptions:
    """The options with the types of the partition columns of all files."""
    values: dict[str, dict[str, None]] = {}
    before = ""
    for item in listed:
        folder = item.path.rpartition("/")[0]
        if folder != before or not before:
            before = folder
            for name, value in partition_of(item.path).items():
                values.setdefault(name, {}).update({} if value is None else {value: None})
    return replace(options, partitions=tuple((name, _type_of(texts)) for name, texts in values.items()))


def _type_of(texts: Iterable[str]) -> pa.DataType:
    kinds = [_narrowest(text) for text in texts]
    return reduce(_wider, kinds) if kinds else pa.string()


def _narrowest(text: str) -> pa.DataType:
    """The narrowest type of a text."""
    if _WHOLE.fullmatch(text):
        number = int(text) if len(text) < 50 else 10**50
        if -(1 << 63) <= number < 1 << 63:
            return pa.int32() if -(1 << 31) <= number < 1 << 31 else pa.int64()
    if _DECIMAL.fullmatch(text):
        _, digits, exponent = Decimal(text).as_tuple()
        if isinstance(exponent, int) and exponent >= 0 and len(digits) + exponent <= 38:
            return pa.decimal128(len(digits) + exponent, 0)
    if _DOUBLE.fullmatch(text):
        return pa.float64()
    if _MOMENT.fullmatch(text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return pa.string()
        return pa.timestamp("us", "UTC") if " " in text else pa.date32()
    return pa.string()


def _wider(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """The type of values of two types."""
    if first == second:
        return first
    kinds = {first, second}
    digits = {pa.int32(): 10, pa.int64(): 20}
    if kinds <= digits.keys():
        return pa.int64()
    if all(kind in digits or pa.types.is_decimal(kind) for kind in kinds):
        return pa.decimal128(max(digits.get(kind) or kind.precision for kind in kinds), 0)
    for pair in ({pa.int32(), pa.float64()}, {pa.date32(), pa.timestamp("us", "UTC")}):
        if kinds == pair:
            return max(pair, key=lambda kind: int(kind.bit_width))
    return pa.string()


def _normal(text: str, kind: pa.DataType) -> str:
    """A directory's text as Arrow casts it to a type."""
    types = pa.types
    if types.is_integer(kind):
        return str(int(text))
    if types.is_decimal(kind):
        return f"{Decimal(text):f}"
    if types.is_floating(kind):
        return str(float(text.strip().rstrip("dDfF")))
    if types.is_timestamp(kind):
        return f"{datetime.fromisoformat(text).isoformat()}Z"
    return text


def is_chosen(column: str, select: Sequence[str]) -> bool:
    """Whether names and globs select a partition's column."""
    return not select or any(column == name or fnmatchcase(column, name) for name in select)


class Partition:
    """The partition columns in the records of a file.

    Args:
        path: the file.
        options: the options of `find`, with the types of partition columns.

    Attributes:
        values: the texts of the columns that records have.
    """

    def __init__(self, path: str, options: FindOptions) -> None:
        types = dict(options.partitions)
        self._select = options.select
        self.values = partition_of(path) if types else {}
        self._types = {name: types[name] for name in self.values if name in types and is_chosen(name, options.select)}

    def has_all(self, select: Sequence[str]) -> bool:
        """Whether each of these names and globs selects a column of the partition."""
        return all(any(is_chosen(column, [name]) for column in self._types) for name in select)

    def of(self, column: str) -> tuple[str, str | None] | None:
        """The name and the text of a column, without regard to case; None if the directories don't have it."""
        return next((pair for pair in self.values.items() if pair[0].lower() == column.lower()), None)

    def join(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The records of the file with the partition's columns."""
        if not self._types:
            return records
        own = {name.lower(): name for name in self._types}
        alone = self.has_all(self._select)  # the searched column is read then, because a file has to be read
        fields, columns = [], []
        for field, column in zip(records.schema, records.columns, strict=True):
            if alone and not is_chosen(field.name, self._select):
                continue
            name = own.pop(field.name.lower(), None)
            fields.append(field if name is None else pa.field(name, self._types[name]))
            columns.append(column if name is None else self._repeated(name, records.num_rows))
        for name in own.values():
            fields.append(pa.field(name, self._types[name]))
            columns.append(self._repeated(name, records.num_rows))
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def _repeated(self, name: str, count: int) -> pa.Array:
        text, kind = self.values[name], self._types[name]
        if text is None:
            return pa.nulls(count, kind)
        raw = _normal(text, kind).encode("utf-8", "replace")
        return binaries([raw] * count).cast(pa.string()).cast(kind)  # a scalar would import pandas


def check_column(file: FilterFile, options: FindOptions) -> str | None:
    """The searched column's value in the directories of a file that has the column, too; None if they don't have it.

    Raises UsageError for a partition column that the file doesn't have.
    """
    pair = Partition(file.source.path, options).of(options.column)
    if pair is None or any(column.path.lower() == options.column.lower() for column in file.columns):
        return None if pair is None else pair[1] or ""
    directory = next(p for p in folder_of(file.source.path).split("/") if decoded(p).startswith(f"{pair[0]}="))
    raise UsageError(
        f"{pair[0]} is a partition column: its value is in the name of the directory {directory}, for all rows",
        path=file.source.path,
        hint=f"name the directory {directory} as the path, and look another column up",
    )


def check_values(column: Column, text: str, values: Iterable[str], path: str) -> None:
    """Raise UnsupportedError if values that a file's column has aren't those of its directory, which readers take.

    Args:
        column: the file's column.
        text: the directory's value.
        values: the file's values.
        path: the file.
    """
    for value in values:
        try:
            same = set(parse(value, column).encodings) & set(parse(text, column).encodings)
        except LiteralError:
            same = set()
        if not same:
            raise UnsupportedError(
                f"its column {column.path} has {value!r}, and its directory says {text!r}, which readers take",
                path=path,
                hint="move the file to the directory of its rows",
            )
