"""A Spark data source: ``spark.read.format("bloom").load(path)`` returns one row for each filter.

Planning only lists files; executors open them. PySpark doesn't pass the columns that a query uses to a data source,
but the user can set a schema on the reader. `pushFilters` isn't implemented: Spark 4.3 applies the first filters that
it pushed to a frame to everything derived from it, so that the union of two selections is one of them twice. The
options ``columns`` and ``path`` limit what is read instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StringType, StructField, StructType

from bloomcli.datasets.hadoop_paths import absolute, portable
from bloomcli.datasets.packing import pack
from bloomcli.datasets.spark_frame import struct, text
from bloomcli.errors import BloomError, UnknownFormat, UsageError
from bloomcli.formats.registry import known_suffix, open_file
from bloomcli.model.file import FilterFacts
from bloomcli.policy.globs import matches
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import expand
from bloomcli.storage.registry import open_source

_MODES: Final = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
_PARTS: Final = 32
_MOST_FILES: Final = 64
"""The most files of a task. More files make more than `_PARTS` tasks."""


def table() -> StructType:
    """The schema: the file, its format, and the fields of `FilterFacts`.

    A file that can't be read also is a row, with its path, and the reason in `problem`; only the path is never null.
    """
    facts = [StructField(f.name, f.dataType, nullable=True) for f in struct(FilterFacts).fields]
    path = StructField("path", StringType(), nullable=False)
    return StructType([path, StructField("format", StringType(), nullable=True), *facts])


class BloomFilters(DataSource):
    """Bloom filters of files as rows.

    Options: ``path`` (or the argument of ``load``, also several), ``columns`` (leaf columns or globs,
    separated by commas), ``exclude`` (columns to leave out), ``partitions`` (the most tasks), ``mode``: with
    ``PERMISSIVE`` an unreadable file is a row with its `problem`, ``DROPMALFORMED`` leaves it out, ``FAILFAST``
    fails the query.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``spark.read.format``."""
        return "bloom"

    def schema(self) -> StructType:
        """All columns."""
        return table()

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns."""
        return _Reader(dict(self.options), schema)


class _Reader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        all_columns = table()
        for field in schema.fields:
            if field.name not in all_columns.names or all_columns[field.name].dataType != field.dataType:
                raise UsageError(
                    f"filters have no column {field.name!r} of type {field.dataType.simpleString()}",
                    hint=f"the columns are: {all_columns.simpleString()}",
                )
        self.names = schema.names
        self.columns, self.exclude = (
            [c.strip() for c in options.get(name, "").split(",") if c.strip()] for name in ("columns", "exclude")
        )
        self.mode = options.get("mode", _MODES[0]).upper()
        if self.mode not in _MODES:
            raise UsageError(f"no mode {self.mode!r}", hint=", ".join(_MODES))
        self.paths: list[str] = [options["path"]] if "path" in options else json.loads(options.get("paths", "[]"))
        if not self.paths:
            raise UsageError("no path to read filters from", hint='spark.read.format("bloom").load(path)')
        parts = options.get("partitions", "")
        if parts and not (parts.isdecimal() and int(parts)):
            raise UsageError(f"a number of partitions is 1 or more, not {parts}")
        self.parts = int(parts or 0)

    def partitions(self) -> Sequence[InputPartition]:
        """Files packed by size into tasks of similar weight. No file is opened."""
        listed = expand([portable(p) for p in self.paths])
        files = [f._replace(path=absolute(f.path)) for f in listed if f.skip_reason is None]
        parts = self.parts or max(_PARTS, -(-len(files) // _MOST_FILES))
        return [InputPartition(tuple(p)) for p in pack(files, lambda f: f.size, parts)] or [InputPartition(())]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Rows of a task's files."""
        for listed in partition.value:
            for row in self._rows(listed):
                yield tuple(text(v) if isinstance(v := row.get(name), str) else v for name in self.names)

    def _rows(self, listed: FileEntry) -> Iterator[dict[str, Any]]:
        try:
            if listed.problem is not None:
                raise listed.problem
            with open_source(listed.path) as source:
                file = open_file(source)
                limited = self.columns or self.exclude
                chosen = {c.index for c in file.columns if self._chosen(c.path)} if limited else None
                for facts in file.facts(chosen):
                    row = {name: getattr(facts, name) for name in FilterFacts.__dataclass_fields__}
                    yield {"path": listed.path, "format": file.format, **row}
        except BloomError as error:
            other = isinstance(error, UnknownFormat) and listed.walked and not known_suffix(listed.path)
            if other or self.mode == "DROPMALFORMED":
                return
            if self.mode == "FAILFAST":
                raise
            yield {"path": listed.path, "problem": error.message}

    def _chosen(self, column: str) -> bool:
        return (not self.columns or matches(self.columns, column)) and not matches(self.exclude, column)
