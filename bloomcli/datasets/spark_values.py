"""Collects the values of `find` on Spark on the driver, if they are few enough, in blocks that the tasks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.values import texts
from bloomcli.datasets.spark import java_error
from bloomcli.datasets.spark_frame import arrow_type
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


class SharedBlocks:
    """Blocks of values that are broadcast. All tasks of a job in a Python worker share this object, until the worker
    runs a task of another job.

    Args:
        blocks: the blocks.

    Attributes:
        made: a cache that tasks fill for the following tasks. It isn't pickled.
    """

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self._blocks = blocks
        self.made: Any = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._blocks)

    def __reduce__(self) -> tuple[type[SharedBlocks], tuple[Sequence[bytes]]]:
        return SharedBlocks, (self._blocks,)


SHARED_BYTES: Final = 64 << 20
"""Most bytes of values that are broadcast. The driver holds them for a moment."""
_SHARED_PIECES: Final = 1 << 10
_LONG_BYTES: Final = 1 << 10
"""The size that is assumed for a text, if only the number of texts is known."""
_COUNTED: Final = ("InMemoryRelation", "Range")
"""Nodes of Spark's plans with a known number of rows."""


class Forms(NamedTuple):
    """The functions that convert values to blocks and back."""

    blocks_of: Callable[..., Iterator[pa.RecordBatch]]
    """Converts batches of values to rows with one column, a block of values of at most `most` bytes. Runs on
    executors."""
    unpacked: Callable[[bytes], pa.Array]
    """The values of a block."""


def values_frame(spark: SparkSession, values: Any) -> DataFrame:
    """Values as a frame: a frame itself, or one with the texts of Python's values. Raises UsageError."""
    from pyspark.sql import DataFrame

    if isinstance(values, DataFrame):
        return values
    given = texts(values)
    if not given:
        raise UsageError("no values to find", hint="name one or several, or a frame of values")
    return spark.createDataFrame([(text,) for text in given], "value string")


def few_of(chosen: DataFrame, forms: Forms) -> list[bytes] | None:
    """The distinct values as blocks; None if they have, or may have, more than `SHARED_BYTES`."""
    values = _collected(chosen, forms)
    if values is None or values.nbytes > SHARED_BYTES:
        return None
    batch = pa.record_batch([pc.unique(values)], ["value"])
    return [block for blocks in forms.blocks_of([batch]) for block in blocks.column(0).to_pylist()]


def _collected(chosen: DataFrame, forms: Forms) -> pa.ChunkedArray | None:
    """The values, if they are few. If Spark doesn't know their number, they are collected in pieces up to the limit:
    Spark's estimates can be far too low."""
    known = _known_bytes(chosen)
    if known is not None and known <= SHARED_BYTES:
        return chosen.toArrow().column(0)
    pieces = partial(forms.blocks_of, most=SHARED_BYTES // _SHARED_PIECES)
    collected = chosen.mapInArrow(pieces, "block binary").limit(_SHARED_PIECES).collect()
    if len(collected) == _SHARED_PIECES:
        return None
    arrays = [forms.unpacked(bytes(row[0])) for row in collected]
    return pa.chunked_array(arrays) if arrays else pa.chunked_array([], pa.null())


def _known_bytes(chosen: DataFrame) -> int | None:
    """Upper bound of the bytes of a column's values; None if Spark doesn't know their number. Spark knows it
    for values on the driver, in a cache, and of ranges, also with filters. Each text counts as `_LONG_BYTES`."""
    with suppress(java_error()):
        node = chosen._jdf.queryExecution().optimizedPlan()
        while node.nodeName() in {"Filter", "Project"}:
            node = node.children().head()
        kind = node.nodeName()
        value_bytes = _most_bytes(chosen.schema[0].dataType)
        if kind == "LocalRelation":
            return int(node.data().size()) * value_bytes
        if kind not in _COUNTED or (kind == _COUNTED[0] and not node.cacheBuilder().isCachedColumnBuffersLoaded()):
            return None
        rows = node.stats().rowCount()
        if rows.isDefined():
            cached = int(str(node.stats().sizeInBytes())) if value_bytes == _LONG_BYTES else 0  # texts may be longer
            return max(int(str(rows.get())) * value_bytes, cached)
    return None


def _most_bytes(kind: DataType) -> int:
    """Bytes of a value of a type in Arrow; `_LONG_BYTES` for texts and binary values."""
    arrow = arrow_type(kind)
    try:
        return max(int(arrow.bit_width) // 8, 1)
    except ValueError:
        return _LONG_BYTES
