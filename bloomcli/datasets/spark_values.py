"""The values of `find` on Spark that are few enough for the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.datasets.spark import java_error
from bloomcli.datasets.spark_types import arrow_type
from bloomcli.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

SHARED_BYTES: Final = 64 << 20
"""Of values that are broadcast, at most. They are on the driver for a moment."""
_SHARED_PIECES: Final = 1 << 10
_LONG_BYTES: Final = 1 << 10
"""For which a text is taken where only the number of texts is known."""
_COUNTED: Final = ("InMemoryRelation", "Range")
"""Nodes of Spark's plans whose number of rows is known."""


class Forms(NamedTuple):
    """How values go to executors."""

    blocks_of: Callable[..., Iterator[pa.RecordBatch]]
    """Makes rows with one column, a block of values, of batches of values: of at most `most` bytes each. Runs on
    executors."""
    unpacked: Callable[[bytes], pa.Array]
    """The values of a block."""


def few_of(chosen: DataFrame, forms: Forms) -> list[bytes] | None:
    """The values, each once, as blocks; None if they have more than `SHARED_BYTES`, or may be so many pieces."""
    values = _collected(chosen, forms)
    if values is None or values.nbytes > SHARED_BYTES:
        return None
    batch = pa.record_batch([pc.unique(values)], ["value"])
    return [block for blocks in forms.blocks_of([batch]) for block in blocks.column(0).to_pylist()]


def _collected(chosen: DataFrame, forms: Forms) -> pa.ChunkedArray | None:
    """The values where they are few. Spark knows how many they are, or they come in pieces, and no more than fit:
    estimates can be far too low."""
    known = _known_bytes(chosen)
    if known is not None and known <= SHARED_BYTES:
        return chosen.toArrow().column(0)
    pieces = partial(forms.blocks_of, most=SHARED_BYTES // _SHARED_PIECES)
    found = chosen.mapInArrow(pieces, "block binary").limit(_SHARED_PIECES).collect()
    if len(found) == _SHARED_PIECES:
        return None
    arrays = [forms.unpacked(bytes(row[0])) for row in found]
    return pa.chunked_array(arrays) if arrays else pa.chunked_array([], pa.null())


def _known_bytes(chosen: DataFrame) -> int | None:
    """The bytes of a column's values, at most, where Spark needn't estimate their number: of values that the driver
    or a cache has, and of ranges, with filters. A text is taken for a long one."""
    with suppress(java_error()):
        node = chosen._jdf.queryExecution().optimizedPlan()
        while node.nodeName() in {"Filter", "Project"}:
            node = node.children().head()
        kind = node.nodeName()
        each = _most_bytes(chosen.schema[0].dataType)
        if kind == "LocalRelation":
            return int(node.data().size()) * each
        if kind not in _COUNTED or (kind == _COUNTED[0] and not node.cacheBuilder().isCachedColumnBuffersLoaded()):
            return None
        rows = node.stats().rowCount()
        if rows.isDefined():
            cached = int(str(node.stats().sizeInBytes())) if each == _LONG_BYTES else 0  # texts may be longer
            return max(int(str(rows.get())) * each, cached)
    return None


def _most_bytes(kind: DataType) -> int:
    """Bytes of a value of a type in Arrow; of texts and of binary values, those of long ones."""
    arrow = arrow_type(kind)
    try:
        return max(int(arrow.bit_width) // 8, 1)
    except ValueError:
        return _LONG_BYTES
