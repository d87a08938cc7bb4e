"""Values in parts, for `find` of more values than are held in memory.

    texts, in parts  ->  converted parts, one set for each type of column  ->  of each file and part: what is left
    (temporary file)     (temporary file)                                      (memory, then temporary file)

A search holds one part, and the values that a part leaves for row groups: those that filters and statistics don't
rule out. Of a row group with more of them than a part has, the column is read once for each so many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.columns import kind_of
from bloomcli.compact.batches import StoredBatches
from bloomcli.formats.finding import Candidates, Wanted
from bloomcli.formats.registry import hash_for_index
from bloomcli.storage.os_errors import in_temporary_file

if TYPE_CHECKING:
    from bloomcli.formats.base import FilterFile
    from bloomcli.formats.finding import ColumnSearch
    from bloomcli.formats.indexed import HashedValues
    from bloomcli.model.file import Column

PART_VALUES: Final = 1 << 20
"""Values of a part, at most."""
PART_BYTES: Final = 64 << 20
"""Bytes of a part's texts, about."""
_HELD_BYTES: Final = 32 << 20
"""Bytes of the values that are left for the row groups of a file, and in memory."""
_NAN, _NAN_OWNER, _KEYED = b"nan", b"nan owner", b"keyed"


class _Stored(StoredBatches):
    """Batches of values. `add` raises WriteError."""

    def __init__(self) -> None:
        with in_temporary_file("values"):
            super().__init__()

    def add(self, batch: pa.RecordBatch) -> int:
        """Write a batch; gives its position. Raises WriteError where there is no room in the temporary directory."""
        with in_temporary_file("values"):
            return super().add(batch)


class ValueParts:
    """Values in parts. Each is converted once for each type of column that files have.

    Args:
        parts: texts, of at most `PART_VALUES` each.

    Raises:
        WriteError: there is no room in the temporary directory.

    Attributes:
        count: of the values.
        file: the path of the file that they come from.
    """

    file: str | None = None

    def __init__(self, parts: Iterable[pa.LargeBinaryArray]) -> None:
        self._texts = _Stored()
        self.count = 0
        for part in parts:
            self._texts.add(pa.record_batch([part], ["text"]))
            self.count += len(part)
        self._lock = Lock()
        self._converted: dict[object, StoredBatches] = {}

    @property
    def texts(self) -> pa.LargeBinaryArray:
        """All values, in memory."""
        return pa.concat_arrays([self._texts[at].column(0) for at in range(len(self._texts))])

    def distinct(self) -> pa.LargeBinaryArray:
        """The different texts, in the order in which they came: for a column that has few different values."""
        parts = [pc.unique(self._texts[at].column(0)) for at in range(len(self._texts))]
        return pc.unique(pa.concat_arrays(parts))

    def hashed(self, column: Column) -> Iterator[HashedValues]:
        """The values as an index has those of a column, part by part. Raises LiteralError."""
        return (hash_for_index(self._texts[at].column(0), column) for at in range(len(self._texts)))

    def of(self, file: FilterFile, column: Column, search: ColumnSearch) -> StoredBatches:
        """The values as a file's column stores them, a batch for each part. Raises LiteralError."""
        key = kind_of(file, column)
        with self._lock:
            if key not in self._converted:
                self._converted[key] = self._convert(search)
            return self._converted[key]

    def _convert(self, search: ColumnSearch) -> StoredBatches:
        out, first = _Stored(), 0
        for at in range(len(self._texts)):
            texts = self._texts[at].column(0)
            out.add(_stored(search.wanted(texts), first))
            first += len(texts)
        return out


def _stored(wanted: Wanted, first: int) -> pa.RecordBatch:
    """A part as it is kept, with an entry for each form: `form`; `text`, the value as it was given; `owner`, its
    position among all values; `hash`; and `key`, if it isn't the form. The schema's metadata have the text that is
    NaN, and whether there are keys. `first`: the position of the part's first value among all."""
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
    return pa.record_batch(list(columns.values()), list(columns)).replace_schema_metadata(metadata)


def _nan_of(batch: pa.RecordBatch) -> tuple[bytes, int] | None:
    found = batch.schema.metadata
    return (found[_NAN], int(found[_NAN_OWNER])) if _NAN in found else None


def wanted_of(batch: pa.RecordBatch, nan: tuple[bytes, int] | None, *, keyed: bool) -> Wanted:
    """Values as a search takes them. Each form has its own text."""
    texts = batch.column("text")
    names = batch.schema.names
    keys: Any = None
    if keyed:
        keys = batch.column("key").to_pylist() if "key" in names else batch.column("form")
    return Wanted(
        texts=texts if nan is None else pa.concat_arrays([texts, pa.array([nan[0]], pa.large_binary())]),
        forms=batch.column("form"),
        owners=pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(texts))), 1),
        hashes=batch.column("hash").buffers()[1].to_pybytes()[: 8 * len(texts)] if "hash" in names else b"",
        keys=keys,
        nan=None if nan is None else len(texts),
    )


class PartedSearch:
    """The search of a file for values in parts.

    Args:
        search: of the file's column.
        parts: as `ValueParts.of` gives them.
    """

    def __init__(self, search: ColumnSearch, parts: StoredBatches) -> None:
        self._search = search
        self._parts = parts
        self._held: dict[tuple[int | None, int], list[pa.RecordBatch | int]] = {}
        """Of each row group what each part leaves: batches, or their positions in the file."""
        self._bytes = 0
        self._file: StoredBatches | None = None

    def candidates(self) -> list[Candidates]:
        """Of each row group whether it may have a value. `forms` is empty if not; else its positions mean nothing."""
        found: list[Candidates] = []
        for number in range(len(self._parts)):
            part = self._parts[number]
            nan = _nan_of(part)
            wanted = wanted_of(part, nan, keyed=bool(part.schema.metadata[_KEYED]))
            for at, candidates in enumerate(self._search.candidates(wanted)):
                some = pa.array([0][: len(candidates.forms)], pa.int64())  # a slice would keep the whole array
                if number == 0:
                    found.append(candidates._replace(forms=some))
                    self._held[candidates.stripe, candidates.row_group] = []
                elif candidates.possible:
                    found[at] = found[at]._replace(
                        forms=some if len(some) else found[at].forms,
                        nan=found[at].nan or candidates.nan,
                        trusted=found[at].trusted and candidates.trusted,
                    )
                if candidates.possible:
                    self._keep(candidates, part.take(candidates.forms), nan if candidates.nan else None)
        return found

    def _keep(self, candidates: Candidates, batch: pa.RecordBatch, nan: tuple[bytes, int] | None) -> None:
        held = self._held[candidates.stripe, candidates.row_group]
        metadata = dict(batch.schema.metadata)
        if nan is None:
            metadata = {_KEYED: metadata[_KEYED]}
        batch = batch.replace_schema_metadata(metadata)
        self._bytes += batch.nbytes
        if self._bytes <= _HELD_BYTES:
            held.append(batch)
            return
        if self._file is None:
            self._file = _Stored()
        held.append(self._file.add(batch))

    def rounds(self, candidates: Candidates) -> Iterator[tuple[Wanted, pa.Int64Array]]:
        """The values that a row group may have, so many at a time, and of each text its position among all values."""
        waiting: list[pa.RecordBatch] = []
        count = 0
        for item in self._held[candidates.stripe, candidates.row_group]:
            batch = self._batch(item)
            if waiting and count + batch.num_rows > PART_VALUES:
                yield _round(waiting)
                waiting, count = [], 0
            waiting.append(batch)
            count += batch.num_rows
        if waiting:
            yield _round(waiting)

    def _batch(self, item: pa.RecordBatch | int) -> pa.RecordBatch:
        return self._file[item] if isinstance(item, int) and self._file is not None else item


def _round(batches: Sequence[pa.RecordBatch]) -> tuple[Wanted, pa.Int64Array]:
    keyed = all(batch.schema.metadata[_KEYED] for batch in batches)
    nan = next((found for found in map(_nan_of, batches) if found is not None), None)
    alike = len({tuple(batch.schema.names) for batch in batches}) == 1
    names = [name for name in ("form", "text", "owner", "key") if name in batches[0].schema.names]
    if not alike:  # of some parts the keys are the forms
        keyed, names = False, ["form", "text", "owner"]
    columns = [pa.concat_arrays([batch.column(name) for batch in batches]) for name in names]
    joined = pa.record_batch(columns, names)
    owners = joined.column("owner")
    if nan is not None:
        owners = pa.concat_arrays([owners, pa.array([nan[1]], pa.int64())])
    return wanted_of(joined, nan, keyed=keyed), owners


def first_of_each(
    rows: Sequence[pa.Int64Array], owners: Sequence[pa.Int64Array], texts: Sequence[pa.LargeBinaryArray]
) -> tuple[pa.Int64Array, pa.LargeBinaryArray]:
    """Rows that several rounds have found, in order and each once, with the first of its values."""
    found = pa.table([pa.concat_arrays(rows), pa.concat_arrays(owners)], ["row", "owner"])
    order = pc.sort_indices(found, [("row", "ascending"), ("owner", "ascending")])
    ordered = found.column("row").take(order).combine_chunks()
    new = pc.not_equal(ordered[1:], ordered[:-1])
    kept = pc.indices_nonzero(pa.concat_arrays([pa.array([True]), new]))
    return ordered.take(kept), pa.concat_arrays(texts).take(order.take(kept))
