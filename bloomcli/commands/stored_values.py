"""Stores the values of a part as a batch with an entry for each form, in ascending order of hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.compact.batches import StoredBatches
from bloomcli.formats.arrays import counting
from bloomcli.formats.finding import WantedValues
from bloomcli.storage.os_errors import convert_temporary_file_errors

_NAN, _NAN_OWNER, _KEYED = b"nan", b"nan owner", b"keyed"


class StoredParts(StoredBatches):
    """Batches of values in a temporary file."""

    def __init__(self) -> None:
        with convert_temporary_file_errors("values"):
            super().__init__()

    def add(self, batch: pa.RecordBatch) -> int:
        """Write a batch; returns its position. Raises WriteError if the temporary directory is full."""
        with convert_temporary_file_errors("values"):
            return super().add(batch)

    def mapped(self, position: int) -> pa.RecordBatch:
        """A batch that is mapped, and not copied to memory. Raises WriteError if the system can't map the file."""
        with convert_temporary_file_errors("values"):
            return super().mapped(position)


def stored(wanted: WantedValues, first: int) -> pa.RecordBatch:
    """Make the batch of a part.

    Its columns are `form`; `text`, the value as given; `owner`, the value's position in all values; `hash`, in
    ascending order; and `key`, if it isn't the form. The schema's metadata have the text that is NaN, and whether the
    values have keys.

    Args:
        wanted: the values of the part.
        first: the position of the part's first value in all values.
    """
    columns = {
        "form": wanted.forms,
        "text": wanted.texts.take(wanted.owners),
        "owner": pc.add(wanted.owners, first),
    }
    if wanted.hashes:
        columns["hash"] = pa.Array.from_buffers(pa.uint64(), len(wanted.forms), [None, pa.py_buffer(wanted.hashes)])
    keyed = wanted.keys is not None
    if isinstance(wanted.keys, list):
        try:
            columns["key"] = pa.array(wanted.keys)
        except (pa.ArrowException, OverflowError):
            keyed = False
    metadata = {_KEYED: b"1" if keyed else b""}
    if wanted.nan is not None:
        metadata |= {_NAN: wanted.texts[wanted.nan].as_py(), _NAN_OWNER: str(first + wanted.nan).encode()}
    batch = pa.record_batch(list(columns.values()), list(columns))
    return _ascending(batch).replace_schema_metadata(metadata)


def _ascending(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Sort the entries by their hashes. The sort is stable."""
    if "hash" not in batch.schema.names:
        return batch
    hashes = batch.column("hash")
    if pc.all(pc.less_equal(hashes[:-1], hashes[1:]), min_count=0).as_py():  # compiled code has sorted them
        return batch
    return batch.take(pc.array_sort_indices(hashes))


def nan_of(batch: pa.RecordBatch) -> tuple[bytes, int] | None:
    """The text of a part that is NaN, and its position in all values; None if no text is."""
    metadata = batch.schema.metadata
    return (metadata[_NAN], int(metadata[_NAN_OWNER])) if _NAN in metadata else None


def wanted_of(batch: pa.RecordBatch, nan: tuple[bytes, int] | None, *, keyed: bool) -> WantedValues:
    """Make the values that a search takes. Each form has its own text."""
    texts = batch.column("text")
    names = batch.schema.names
    keys: Any = None
    if keyed:
        keys = batch.column("key").to_pylist() if "key" in names else batch.column("form")
    return WantedValues(
        texts=texts if nan is None else pa.concat_arrays([texts, pa.array([nan[0]], pa.large_binary())]),
        forms=batch.column("form"),
        owners=counting(0, len(texts)),
        hashes=batch.column("hash").buffers()[1].to_pybytes()[: 8 * len(texts)]
        if "hash" in names and len(texts)
        else b"",
        keys=keys,
        nan=None if nan is None else len(texts),
    )


def is_keyed(batch: pa.RecordBatch) -> bool:
    """Whether the values of a part have an order."""
    return bool(batch.schema.metadata[_KEYED])


def only_nan(batch: pa.RecordBatch, nan: tuple[bytes, int] | None) -> pa.RecordBatch:
    """The batch; without its text that is NaN if `nan` is None."""
    if nan is not None or _NAN not in batch.schema.metadata:
        return batch
    return batch.replace_schema_metadata({_KEYED: batch.schema.metadata[_KEYED]})


def hashes_of(part: pa.RecordBatch) -> memoryview:
    """The hashes of a part's entries: uint64s in ascending order."""
    return memoryview(part.column("hash").buffers()[1] if part.num_rows else b"").cast("B")


def keys_of(part: pa.RecordBatch) -> pa.Array:
    """The keys of a part whose values have an order."""
    return part.column("key" if "key" in part.schema.names else "form")


def selected_entries(
    parts: Sequence[pa.RecordBatch], positions: Sequence[pa.Int64Array | None], limit_bytes: int
) -> WantedValues | None:
    """Take entries of all parts, as values for a search.

    Args:
        parts: one part or more.
        positions: the positions in each part, ascending; None for no entries of it.
        limit_bytes: the limit for the entries' bytes.

    Returns:
        The values; None if they have more bytes.
    """
    batches: list[pa.RecordBatch] = []
    size = 0
    for part, chosen in zip(parts, positions, strict=True):
        if chosen is not None:
            batches.append(part.take(chosen))
            size += batches[-1].nbytes
            if size > limit_bytes:
                return None
    batches = batches or [parts[0].slice(0, 0)]
    names = [name for name in ("form", "text", "hash") if name in batches[0].schema.names]
    joined = pa.record_batch([pa.concat_arrays([b.column(name) for b in batches]) for name in names], names)
    nan = next((found for found in map(nan_of, parts) if found is not None), None)
    wanted = wanted_of(joined, nan, keyed=False)
    if not all(map(is_keyed, parts)):
        return wanted
    if any("key" in batch.schema.names for batch in batches):  # the keys of parts may differ in their types
        return wanted._replace(keys=[key for batch in batches for key in keys_of(batch).to_pylist()])
    return wanted._replace(keys=wanted.forms)
