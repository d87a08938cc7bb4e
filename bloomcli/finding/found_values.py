"""Counts the rows and the files of each value of a search, and lists the values that weren't found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.find import ALSO, with_texts
from bloomcli.commands.find_values import Values
from bloomcli.formats.arrays import binaries
from bloomcli.formats.wanted_values import xxh64_of
from bloomcli.model.find import ValueFound
from bloomcli.model.paths import shown

LISTED_MOST: Final = 1000
"""Most values whose rows and files are counted one by one, and most values that are listed as not found."""
_PATHS_MOST: Final = 10
"""Most files that are listed for a value."""
_MERGED: Final = 1 << 20
"""Values that are kept, with repetitions, until repetitions are removed."""


class FoundValues:
    """The values that the rows of a search have.

    Args:
        values: the values of the search.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self._listed = values.count <= LISTED_MOST
        self._counted: dict[bytes, ValueFound] = {}
        self._waiting: list[pa.Array] = []
        self._length = self._merged = 0

    def counted(self, path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file with the values as text, and count them. Their number is known at the end."""
        counts: Counter[bytes] = Counter()
        for batch in batches:
            values, also = batch.column("value"), batch.column(ALSO)
            if also.null_count < len(also):
                values = pa.concat_arrays([values, also.flatten()])
            if self._listed:
                different_values, numbers = pc.value_counts(values).flatten()
                for value, rows in zip(different_values.to_pylist(), numbers.to_pylist(), strict=True):
                    counts[value] += rows
            else:
                self._keep(pc.unique(values))
            yield with_texts(batch)
        for value, rows in counts.items():
            before = self._counted.get(value) or ValueFound(value=_text(value))
            paths = before.paths if before.files >= _PATHS_MOST else (*before.paths, shown(path))
            self._counted[value] = ValueFound(
                value=before.value, rows=before.rows + rows, files=before.files + 1, paths=paths
            )

    def _keep(self, values: pa.Array) -> None:
        """Keep values. Removes repetitions when there may be more of them than of different values."""
        self._waiting.append(values)
        self._length += len(values)
        if self._length > 2 * self._merged + _MERGED:
            self._length = self._merged = len(self._different_values())

    def _different_values(self) -> pa.Array:
        """The different values that were found."""
        arrays = [binaries(list(self._counted)), *self._waiting]
        self._waiting = [pc.unique(pa.concat_arrays(arrays))]
        return self._waiting[0]

    def report(self, *, complete: bool) -> dict[str, Any]:
        """The fields of `FindReport` about values.

        Args:
            complete: all rows were looked for: a value without a row isn't in the files that could be searched.
        """
        values = self._different_values()
        fields: dict[str, Any] = {"values_found": len(values)}
        texts = self._values.texts
        if self._listed:
            different = dict.fromkeys(texts.to_pylist())
            each = [self._counted.get(text) or ValueFound(value=_text(text)) for text in different]
            fields["by_value"] = tuple(each if complete else (entry for entry in each if entry.rows))
        if complete:
            fields["values_missing"] = _different(texts) - len(values)
            fields["missing"] = tuple(map(_text, _missing(texts, values)))
        return fields


def _different(texts: pa.LargeBinaryArray) -> int:
    """The number of different texts. Sorted hashes take 24 bytes for a text, a table of texts over a hundred."""
    hashes = pa.Array.from_buffers(pa.uint64(), len(texts), [None, pa.py_buffer(xxh64_of(texts))])
    order = pc.array_sort_indices(hashes)
    ordered = hashes.take(order)
    alike = pc.indices_nonzero(pc.equal(ordered[1:], ordered[:-1]))
    both = (texts.take(some.take(alike)) for some in (order[1:], order[:-1]))
    return len(texts) - (pc.sum(pc.equal(*both)).as_py() or 0)


def _missing(texts: pa.LargeBinaryArray, values: pa.Array) -> list[bytes]:
    """The first texts that aren't among those that were found, each once."""
    lacking = pc.indices_nonzero(pc.invert(pc.is_in(texts, value_set=values)))
    some: dict[bytes, None] = {}
    for at in range(0, len(lacking), LISTED_MOST):
        some |= dict.fromkeys(texts.take(lacking[at : at + LISTED_MOST]).to_pylist())
        if len(some) >= LISTED_MOST:
            break
    return list(some)[:LISTED_MOST]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
