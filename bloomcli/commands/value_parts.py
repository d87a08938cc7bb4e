"""Values in parts, for a `find` of more values than fit in memory.

    texts, in parts  ->  converted parts, one set for each type of column  ->  remaining values of each file and part
    (temporary file)     (temporary file)                                      (memory, then temporary file)

A search holds one part, and for each row group the values that filters and statistics don't rule out. If these are
more than a part, the row group's column is read several times, once for each part's number of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.columns import kind_of
from bloomcli.commands.find_values import Conversions
from bloomcli.commands.stored_values import StoredParts, is_keyed, nan_of, only_nan, stored, wanted_of
from bloomcli.commands.value_lookup import ValueLookup
from bloomcli.formats.finding import Candidates, WantedValues
from bloomcli.formats.registry import hash_for_index

if TYPE_CHECKING:
    from bloomcli.formats.base import FilterFile
    from bloomcli.formats.finding import ColumnSearch
    from bloomcli.formats.index_input import HashedValues
    from bloomcli.model.file import Column

PART_VALUES: Final = 1 << 20
"""Most values of a part."""
PART_BYTES: Final = 64 << 20
"""Approximate bytes of a part's texts."""
_HELD_BYTES: Final = 32 << 20
"""Limit for the remaining values of a file in memory. Beyond it, they go to a temporary file."""


class ValueParts:
    """Values to find, in parts. Each part is converted once for each type that the column has in the files.

    Args:
        parts: the texts, at most `PART_VALUES` each.

    Raises:
        WriteError: the temporary directory is full.

    Attributes:
        count: number of values.
        file: the path of the file that the values come from.
    """

    file: str | None = None

    def __init__(self, parts: Iterable[pa.LargeBinaryArray]) -> None:
        self._texts = StoredParts()
        self.count = 0
        for part in parts:
            self._texts.add(pa.record_batch([part], ["text"]))
            self.count += len(part)
        self._converted: Conversions[StoredParts] = Conversions()
        self._booleans: Conversions[WantedValues] = Conversions()
        self._lookups: Conversions[ValueLookup] = Conversions()

    @property
    def texts(self) -> pa.LargeBinaryArray:
        """All values, in memory."""
        return pa.concat_arrays([self._texts[at].column(0) for at in range(len(self._texts))])

    def hashed(self, column: Column) -> Iterator[HashedValues]:
        """Yield the values' hashes as an index has them for a column, part by part. Raises LiteralError."""
        return (hash_for_index(self._texts[at].column(0), column) for at in range(len(self._texts)))

    def of(self, file: FilterFile, column: Column, search: ColumnSearch) -> StoredParts:
        """The values converted for a file's column, a batch for each part. Raises LiteralError."""
        return self._converted.of(kind_of(file, column), file.source.path, lambda: self._convert(search))

    def booleans(self, file: FilterFile, column: Column, search: ColumnSearch) -> WantedValues:
        """The values converted for a column of booleans, at most two. Raises LiteralError."""
        return self._booleans.of(kind_of(file, column), file.source.path, lambda: self._different(search))

    def lookup(self, file: FilterFile, column: Column, search: ColumnSearch) -> ValueLookup:
        """The lookup that determines which values a file may have. Raises LiteralError."""
        parts = self.of(file, column, search)
        return self._lookups.of(kind_of(file, column), file.source.path, lambda: ValueLookup(parts))

    def _different(self, search: ColumnSearch) -> WantedValues:
        """Convert the distinct texts, in order. Raises LiteralError for the first text that isn't a value."""
        texts = pa.array([], pa.large_binary())
        wanted: WantedValues | None = None
        for at in range(len(self._texts)):
            texts = pc.unique(pa.concat_arrays([texts, pc.unique(self._texts[at].column(0))]))
            wanted = search.wanted(texts)
        assert wanted is not None  # noqa: S101  there are two parts or more
        return wanted

    def _convert(self, search: ColumnSearch) -> StoredParts:
        out, first = StoredParts(), 0
        for at in range(len(self._texts)):
            if search.stop is not None:
                search.stop.check()
            texts = self._texts[at].column(0)
            out.add(stored(search.wanted(texts), first))
            first += len(texts)
        return out


class PartedSearch:
    """The search of a file for values in parts.

    Args:
        search: the search of the file's column.
        parts: the values, as `ValueParts.of` returns them.
        maybe: `rounds` isn't going to be called.
    """

    def __init__(self, search: ColumnSearch, parts: StoredParts, *, maybe: bool) -> None:
        self._search = search
        self._maybe = maybe
        self._parts = parts
        self._held: dict[tuple[int | None, int], list[pa.RecordBatch | int]] = {}
        """For each row group, the remaining values of each part: batches, or their positions in the file."""
        self._bytes = 0
        self._file: StoredParts | None = None

    def candidates(self) -> list[Candidates]:
        """Whether each row group may have a value. If not, `forms` is empty; if so, its positions have no meaning.

        Raises Stopped.
        """
        result: list[Candidates] = []
        for number in range(len(self._parts)):
            if self._search.stop is not None:
                self._search.stop.check()
            part = self._parts.mapped(number)
            nan = nan_of(part)
            wanted = wanted_of(part, nan, keyed=is_keyed(part))
            for at, candidates in enumerate(self._search.candidates(wanted)):
                forms = pa.array([0][: len(candidates.forms)], pa.int64())  # a slice would keep the whole array
                if number == 0:
                    result.append(candidates._replace(forms=forms))
                    self._held[candidates.stripe, candidates.row_group] = []
                elif candidates.possible:
                    result[at] = result[at]._replace(
                        forms=forms if len(forms) else result[at].forms,
                        nan=result[at].nan or candidates.nan,
                        trusted=result[at].trusted and candidates.trusted,
                    )
                if candidates.possible and not self._maybe:
                    self._keep(candidates, part.take(candidates.forms), nan if candidates.nan else None)
        return result

    def _keep(self, candidates: Candidates, batch: pa.RecordBatch, nan: tuple[bytes, int] | None) -> None:
        batches = self._held[candidates.stripe, candidates.row_group]
        batch = only_nan(batch, nan)
        self._bytes += batch.nbytes
        if self._bytes <= _HELD_BYTES:
            batches.append(batch)
            return
        if self._file is None:
            self._file = StoredParts()
        batches.append(self._file.add(batch))

    def rounds(self, candidates: Candidates) -> Iterator[tuple[WantedValues, pa.Int64Array]]:
        """Yield the values that a row group may have, up to a part's number at a time, and their positions."""
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


def _round(batches: Sequence[pa.RecordBatch]) -> tuple[WantedValues, pa.Int64Array]:
    keyed = all(map(is_keyed, batches))
    nan = next((found for found in map(nan_of, batches) if found is not None), None)
    same_columns = len({tuple(batch.schema.names) for batch in batches}) == 1
    names = [name for name in ("form", "text", "owner", "key") if name in batches[0].schema.names]
    if not same_columns:  # parts without a column of keys use the forms as keys
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
    """Sort the rows of several rounds, and keep each once, with the first of its values."""
    entries = pa.table([pa.concat_arrays(rows), pa.concat_arrays(owners)], ["row", "owner"])
    order = pc.sort_indices(entries, [("row", "ascending"), ("owner", "ascending")])
    ordered = entries.column("row").take(order).combine_chunks()
    is_first = pc.not_equal(ordered[1:], ordered[:-1])
    first_rows = pc.indices_nonzero(pa.concat_arrays([pa.array([True]), is_first]))
    return ordered.take(first_rows), pa.concat_arrays(texts).take(order.take(first_rows))
