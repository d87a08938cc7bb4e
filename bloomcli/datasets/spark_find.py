"""`find` on Spark: tasks on the executors search files for values that come block by block.

    driver      list files -> parts of files        schema of the records
    executors   values -> distinct -> blocks        part x blocks -> rows

Up to 64 MiB of values are broadcast to the executors. More values never reach the driver: every task reads all
blocks, which stay on the executors' disks (`StorageLevel.DISK_ONLY`) until nothing refers to them any more. Rows
reach the driver only for the command line.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.find import COLUMNS
from bloomcli.datasets.spark import importable, java_error, job, job_context, job_error
from bloomcli.datasets.spark_frame import arrow_type
from bloomcli.datasets.value_blocks import Blocks, SharedBlocks, pieces_of, unpacked
from bloomcli.errors import UsageError
from bloomcli.model.find import FileFound

if TYPE_CHECKING:
    from pyspark import RDD, Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_WIRE_BYTES: Final = 8192
"""Bytes of a piece of the stream of results. Spark collects 10,000 rows for Python, whatever their size."""

_STRIPE: Final = "stripe"
"""The only column that may be null: formats other than ORC have no stripes."""

SHARED_BYTES: Final = 64 << 20
"""Most bytes of values that are broadcast. The driver holds them for a moment."""
_SHARED_PIECES: Final = 1 << 10
Part = Any
"""The files of a task, and the job."""

Search = Callable[[Part, Blocks], Iterator["pa.RecordBatch | FileFound"]]
"""Searches the files of a part for values. Yields the rows of each file, and then its result. Must be a module's
function, which executors import."""


def frame(
    session: SparkSession,
    parts: Callable[[pa.Array | None], Sequence[Part]],
    values: DataFrame | pa.ChunkedArray,
    column: str | None,
    *,
    record: pa.DataType,
    search: Search,
) -> DataFrame:
    """The frame of the rows found. Each action on it searches again.

    Args:
        session: a classic session.
        parts: returns the parts to search for these values, each once; None for values that aren't on the driver.
        values: the frame with the values, or the values in a type that Spark uses.
        column: the frame's column; None if it has only one.
        record: the type of the records.
        search: searches a part.

    Raises:
        UsageError: the frame has no such column, or one whose values have no usual form as text.
        UnsupportedError: a session that can't run tasks.
    """
    from pyspark import StorageLevel
    from pyspark.sql.types import BinaryType, StructField, StructType

    context = job_context(session)
    on_driver: pa.ChunkedArray | None = None
    if isinstance(values, pa.ChunkedArray):
        on_driver = values if values.nbytes <= SHARED_BYTES else None
        values = session.createDataFrame(pa.table({"value": values if on_driver is None else values[:0]}))
    chosen = _column_of(values, column)
    schema = _schema_of(chosen.schema[0].dataType, record)
    with importable(context):
        few = few_of(chosen) if on_driver is None else pc.unique(on_driver.drop_null())
        if few is not None:
            pickled_parts = [pickle.dumps(part, 5) for part in parts(few)] if len(few) else []
            if not pickled_parts:
                return session.createDataFrame([], schema)
            pieces = pieces_of([pa.record_batch([few], ["value"])])
            blocks = [block for piece in pieces for block in piece.column(0).to_pylist()]
            shared = context.broadcast((pickled_parts, SharedBlocks(blocks)))
            searched = partial(_of_shared, shared=shared, search=search, arrow=_arrow(schema))
            return session.range(0, len(pickled_parts), 1, len(pickled_parts)).mapInArrow(searched, schema)
        rdd = chosen.distinct().mapInArrow(pieces_of, "block binary").rdd.persist(StorageLevel.DISK_ONLY)
        files = parts(None)
        if not files:
            return session.createDataFrame([], schema)
        stream = partial(_stream, search=search, arrow=_arrow(schema))
        rows = _pairs(context, files, rdd).mapPartitions(stream)
        piece = StructType([StructField("piece", BinaryType(), nullable=False)])
        wire = session.createDataFrame(rows, piece, verifySchema=False)
        return wire.mapInArrow(_batches, schema)


def few_of(chosen: DataFrame) -> pa.Array | None:
    """The distinct values of a frame; None if they have, or may have, more than `SHARED_BYTES`. They are collected in
    pieces up to the limit: Spark's estimates of their number can be far too low."""
    pieces = partial(pieces_of, most=SHARED_BYTES // _SHARED_PIECES)
    collected = chosen.mapInArrow(pieces, "block binary").limit(_SHARED_PIECES).collect()
    arrays = [unpacked(bytes(row[0])) for row in collected]
    if len(collected) == _SHARED_PIECES or sum(array.nbytes for array in arrays) > SHARED_BYTES:
        return None
    return pc.unique(pa.chunked_array(arrays)) if arrays else pa.nulls(0)


def results(
    session: SparkSession, parts: Sequence[Part], blocks: Sequence[bytes], *, search: Search, description: str
) -> Iterator[pa.RecordBatch | FileFound]:
    """Yield the rows of each file, in the order of files, and then its result.

    The executors search all files first, and keep the results on their disks. The driver has one part at a time.

    Args:
        session: a classic session.
        parts: the files, in order.
        blocks: the values.
        search: searches a part.
        description: the job's description in Spark's UI.

    Raises:
        UnsupportedError: a session that can't run tasks, no bloomcli on executors.
        UnreadableError: the Spark job failed.
    """
    from pyspark import StorageLevel
    from pyspark.errors import PySparkException

    context = job_context(session)
    with importable(context), job(session, description):
        pickled = _found(context, parts, blocks, search).persist(StorageLevel.DISK_ONLY)
        try:
            pickled.count()
            for item in pickled.toLocalIterator():
                yield pickle.loads(item)  # noqa: S301  of this run's own executors
        except (PySparkException, java_error()) as error:
            raise job_error(error) from None
        finally:
            with suppress(java_error(), OSError):
                pickled.unpersist()


def _found(context: Any, parts: Sequence[Part], blocks: Sequence[bytes], search: Search) -> RDD[bytes]:
    """The pickled results of each part, for values on the driver."""
    if sum(map(len, blocks)) <= SHARED_BYTES:
        shared = context.broadcast(SharedBlocks(blocks))
        rdd = context.parallelize(parts, len(parts)).flatMap(lambda part: search(part, shared.value.blocks()))
    else:
        rows = context.parallelize([(block,) for block in blocks], 1)
        rdd = _pairs(context, parts, rows).mapPartitions(partial(_searched, search=search))
    return rdd.map(partial(pickle.dumps, protocol=5))  # type: ignore[no-any-return]


def _column_of(values: DataFrame, column: str | None) -> DataFrame:
    """The frame's column without nulls."""
    if column is None:
        if len(values.columns) != 1:
            raise UsageError(
                f"the frame of values has {len(values.columns)} columns", hint="select one: values.select(...)"
            )
        column = values.columns[0]
    quoted = "`" + column.replace("`", "``") + "`"
    chosen = values.select(quoted)
    kind = chosen.schema[0].dataType.typeName()
    if kind in {"array", "map", "struct", "variant", "void"}:
        raise UsageError(f"values of type {kind} can't be found", hint="a column of numbers, texts, dates or times")
    return chosen.where(f"{quoted} IS NOT NULL")  # dropna() would also drop NaN


def _pairs(context: Any, parts: Sequence[Part], blocks: RDD[Any]) -> RDD[Any]:
    """Pair each part with every block: one task for each part, which reads all blocks."""
    files: RDD[Any] = context.parallelize(parts, len(parts))
    return files.cartesian(blocks.coalesce(1))


def _searched(pairs: Iterable[tuple[Part, Any]], search: Search) -> Iterator[pa.RecordBatch | FileFound]:
    """Run a task. Runs on executors."""
    waiting = iter(pairs)
    first = next(waiting, None)
    if first is None:
        return
    part, block = first

    def blocks() -> Iterator[bytes]:
        yield bytes(block[0])
        for _, other in waiting:
            yield bytes(other[0])

    yield from search(part, Blocks(blocks()))


def _of_shared(
    numbers: Iterable[pa.RecordBatch], shared: Broadcast[Any], search: Search, arrow: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts with these numbers, for values that were broadcast. Runs on executors."""
    parts, values = shared.value
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            part = pickle.loads(parts[number])  # noqa: S301  of the driver
            yield from _rows_of(search(part, values.blocks()), arrow)


def _rows_of(stream: Iterable[pa.RecordBatch | FileFound], arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of files. Raises FileFailed for one that can't be searched, which ends the job."""
    for item in stream:
        if isinstance(item, pa.RecordBatch):
            yield item.cast(arrow)
        elif item.error is not None:
            raise FileFailed(f"{item.error} (hint: {item.hint})" if item.hint else item.error)


def _stream(pairs: Iterable[tuple[Part, Any]], search: Search, arrow: pa.Schema) -> Iterator[tuple[bytes]]:
    """The rows of a task as an Arrow IPC stream in pieces. Runs on executors."""
    wire = io.BytesIO()
    with pa.ipc.new_stream(wire, arrow) as writer:
        for rows in _rows_of(_searched(pairs, search), arrow):
            writer.write_batch(rows)
            yield from _pieces(wire)
    yield from _pieces(wire)


def _pieces(wire: io.BytesIO) -> Iterator[tuple[bytes]]:
    """Take the bytes written so far out as rows of one piece each."""
    written = wire.getvalue()
    wire.seek(0)
    wire.truncate()
    return ((written[at : at + _WIRE_BYTES],) for at in range(0, len(written), _WIRE_BYTES))


class _Pieces(io.RawIOBase):
    """A readable stream of the pieces in batches."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._waiting = (piece for batch in batches for piece in batch.column(0).to_pylist())
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, target: Any) -> int:
        """Read the rest of a piece, or the next one."""
        piece = self._rest or next(self._waiting, b"")
        size = min(len(piece), len(target))
        target[:size], self._rest = piece[:size], piece[size:]
        return size


def _batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the rows of a task from the pieces of their stream. Runs on executors."""
    with io.BufferedReader(_Pieces(batches)) as stream:
        if stream.peek(1):
            yield from pa.ipc.open_stream(stream)


class FileFailed(Exception):
    """A file can't be searched. This ends the query, as in Spark's own readers."""


def _schema_of(kind: DataType, record: pa.DataType) -> StructType:
    """The schema of the frame for values of a type."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    kinds = {"path": StringType(), "value": kind, "record": from_arrow_type(record)}
    return StructType([StructField(name, kinds.get(name, LongType()), nullable=name == _STRIPE) for name in COLUMNS])


def _arrow(schema: StructType) -> pa.Schema:
    return pa.schema([pa.field(field.name, arrow_type(field.dataType), field.nullable) for field in schema])
