"""Writes an index of filters: a new one, or an update of an old one."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bloomcli.errors import BloomError, UnsupportedError, UsageError, WriteError
from bloomcli.filters.sizing import BLOCK_BYTES
from bloomcli.index.bits import ColumnBits, windows
from bloomcli.index.filters import Rates, Spool, rates
from bloomcli.index.layout import BITS, END_SIZES, ENDS, FILES, UNITS, VERSION, Layout, properties
from bloomcli.index.puffin import MAGIC, Blob, footer_bytes
from bloomcli.index.reader import Index
from bloomcli.index.tables import (
    ALWAYS,
    FILTER,
    FREE,
    NEVER,
    Units,
    end_sizes_table,
    files_table,
    packed,
    units_table,
)
from bloomcli.limits import FILTER_MAX_BYTES, INDEX_SLOTS_MAX
from bloomcli.model.index import ChunkState, IndexedChunk, IndexedColumn, IndexedFile
from bloomcli.storage.base import Fingerprint, Pieces, Source
from bloomcli.storage.registry import store_of
from bloomcli.version import __version__

_WINDOW_BYTES: Final = 64 << 20
"""Bytes of the transposed bits in memory at a time. A build holds these, and the tables of units."""
_STATES: Final = {ChunkState.FILTER: FILTER, ChunkState.ALWAYS: ALWAYS, ChunkState.NEVER: NEVER}


class _NewUnits(NamedTuple):
    """The new units of a column, in the order in which they were added."""

    files: array[int]
    """Positions among the new files."""
    row_groups: array[int]
    states: array[int]
    bitsets: array[int]
    """Numbers in the spool; -1 without a filter."""


class _Plan(NamedTuple):
    """A column of the new index."""

    column: IndexedColumn
    layout: Layout
    units: Units
    old: ColumnBits | None
    dropped: Sequence[int]
    always: Sequence[int]
    bitsets: Sequence[tuple[int, int]]


class _EmptySource(Source):
    """The source of a new index: an empty file."""

    size = 0
    fingerprint = Fingerprint(0, 0)

    def __init__(self, path: str) -> None:
        self.path = path

    def _current(self) -> Fingerprint:
        return self.fingerprint

    def _read(self, offset: int, length: int) -> bytes:
        del offset, length
        return b""


class IndexWriter:
    """Collects files and their chunks in any order, and writes their index.

    Bitsets are kept in a temporary file, because the common size of a column's filters is only known at the end. Not
    safe for several threads. Use it as a context manager, which removes the temporary file.

    Args:
        columns: the paths of the indexed columns.
        fpp: the mean false-positive rate that the common size of a column's filters meets, as far as they allow.
        old: an open index to update, with the same columns.

    Raises:
        UsageError: the old index has other columns.
    """

    def __init__(self, columns: Sequence[str], *, fpp: float, old: Index | None = None) -> None:
        if not 0 < fpp < 1:
            raise ValueError(f"a rate is between 0 and 1, not {fpp}")
        if old is not None and set(old.paths) != set(columns):
            raise UsageError(
                f"the index has the columns {', '.join(old.paths)}, not {', '.join(columns)}",
                path=old.source.path,
                hint="`bloom index build` makes an index of other columns",
            )
        self._paths = tuple(dict.fromkeys(columns)) if old is None else old.paths
        self._fpp, self._old = fpp, old
        self._spool, self._ends = Spool(), Spool()
        self._rates: list[NDArray[np.float32]] = []
        self._kept: list[int] = []
        self._files: list[IndexedFile] = []
        self._names: set[str] = set()
        self._new = defaultdict[IndexedColumn, _NewUnits](
            lambda: _NewUnits(array("i"), array("i"), array("B"), array("i"))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def keep(self, files: Iterable[int]) -> None:
        """Keep files of the old index, by their positions in `Index.files`. The others are dropped."""
        if self._old is None:
            raise ValueError("the writer has no old index")
        for position in files:
            if not 0 <= position < len(self._old.files):
                raise ValueError(f"the old index has no file {position}")
            self._claim(self._old.files[position].path)
            self._kept.append(position)

    def add(self, file: IndexedFile, chunks: Iterable[IndexedChunk], end: bytes = b"") -> None:
        """Add a file with its chunks of the indexed columns. A file without chunks has no value.

        Args:
            file: the file.
            chunks: its chunks of the indexed columns.
            end: its packed end (`bloomcli.index.ends`); empty to keep none.

        Raises:
            ValueError: the path was kept or added before, the file doesn't have a chunk's row group, the index
                doesn't have a chunk's column, a chunk comes twice, or its bitset isn't a number of blocks.
            WriteError: the temporary directory is full.
        """
        chunk_list = list(chunks)
        keys = {(chunk.row_group, chunk.column.path) for chunk in chunk_list}
        if len(keys) != len(chunk_list):
            raise ValueError(f"a chunk of {file.path} comes twice")
        for chunk in chunk_list:
            if not 0 <= chunk.row_group < len(file.rows):
                raise ValueError(f"{file.path} has no row group {chunk.row_group}")
            if chunk.column.path not in self._paths:
                raise ValueError(f"column {chunk.column.path} isn't indexed")
            if (chunk.bitset is not None) != (chunk.state is ChunkState.FILTER):
                raise ValueError("a chunk has a bitset if its state is FILTER, and only then")
            size = BLOCK_BYTES if chunk.bitset is None else len(chunk.bitset)
            if not 0 < size <= FILTER_MAX_BYTES or size % BLOCK_BYTES:
                raise ValueError(f"a bitset is a positive multiple of {BLOCK_BYTES} bytes, not {size}")
        self._claim(file.path)
        position = len(self._files)
        self._files.append(file)
        self._ends.add(end)
        for chunk in chunk_list:
            new = self._new[chunk.column]
            number = -1
            if chunk.bitset is not None:
                number = self._spool.add(chunk.bitset)
                self._rates.append(rates(chunk.bitset))
            new.files.append(position)
            new.row_groups.append(chunk.row_group)
            new.states.append(_STATES[chunk.state])
            new.bitsets.append(number)

    def write(self, path: str, *, overwrite: bool, force: bool = False) -> int:
        """Write the index through `Store.replace`; returns its size in bytes. Can be called once.

        An old index must be unchanged when the new one takes its name: of two updates at the same time, one is
        refused.

        Args:
            path: the index, as a user names it.
            overwrite: replace an existing file; needed for an update in place.
            force: as in `Store.replace`.

        Raises:
            UsageError: the file exists, and `overwrite` is false.
            SourceChanged: another program changed the old index.
            CorruptFile: the old index is damaged.
            UnsupportedError: too many files, row groups or columns for an index.
            WriteError: the index can't be written. No file is left behind.
        """
        for spool in (self._spool, self._ends):
            spool.finish()
        source = _EmptySource(path) if self._old is None else self._old.source
        files = [] if self._old is None else [self._old.files[at] for at in self._kept]
        files += self._files
        plans = [self._plan(column) for column in self._columns()]

        def verify(written: Source) -> None:
            try:
                new_index = Index(written)
            except BloomError as error:
                raise WriteError(f"the new index can't be read: {error.reason}", path=path) from None
            if len(new_index.files) != len(files) or len(new_index.columns) != len(plans):
                raise WriteError("the new index has other files or columns", path=path)

        store = store_of(path)
        return store.replace(
            store.normal(path),
            self._pieces(files, plans),
            source=source,
            overwrite=overwrite,
            verify=verify,
            force=force,
        )

    def close(self) -> None:
        """Remove the temporary file. Closing it twice does no harm."""
        self._spool.close()
        self._ends.close()

    def _claim(self, path: str) -> None:
        if path in self._names:
            raise ValueError(f"{path} is in the index already")
        self._names.add(path)

    def _columns(self) -> Iterator[IndexedColumn]:
        """The columns of the old index and of new files, in the order of paths and types."""
        columns = dict.fromkeys([*(() if self._old is None else self._old.columns), *self._new])
        return iter(sorted(columns, key=lambda column: (self._paths.index(column.path), str(column.type))))

    def _plan(self, column: IndexedColumn) -> _Plan:
        """Decide the slots and the common size of a column."""
        old = self._old if self._old is not None and column in self._old.columns else None
        units, dropped, least, filter_rates = self._kept_units(column, old)
        new = self._new[column]
        free = [slot for slot, state in enumerate(units.state) if state == FREE]
        slots = [*free, *range(len(units.file), len(units.file) + len(new.files) - len(free))]
        for values, blank in zip(units, (-1, 0, FREE, 0.0), strict=True):
            values.extend([blank] * (len(slots) - len(free)))
        always, bitsets = [], []
        for slot, file, row_group, state, number in zip(slots, *new, strict=False):
            units.file[slot], units.row_group[slot], units.state[slot] = len(self._kept) + file, row_group, state
            if state == ALWAYS:
                always.append(slot)
            elif state == FILTER:
                bitsets.append((slot, number))
                filter_rates.add(self._rates[number], self._spool.sizes[number] // BLOCK_BYTES)
        while units.state and units.state[-1] == FREE:
            for values in units:
                values.pop()
        if len(units.file) > INDEX_SLOTS_MAX:
            raise UnsupportedError(
                f"an index has at most {INDEX_SLOTS_MAX} row groups of a column",
                hint="build an index for each part of the files",
            )
        level = filter_rates.level(self._fpp, len(units.file), least)
        for slot, number in bitsets:
            units.fpp[slot] = self._rates[number][level]
        bits = None if old is None else old.bits(column)
        return _Plan(column, Layout(1 << level, len(units.file)), units, bits, dropped, always, bitsets)

    def _kept_units(self, column: IndexedColumn, old: Index | None) -> tuple[Units, Sequence[int], int, Rates]:
        """The units of kept files, the slots of the others, the level of the kept filters, and their rates."""
        filter_rates = Rates()
        if old is None:
            return Units(array("i"), array("i"), array("B"), array("f")), (), 0, filter_rates
        position = {before: at for at, before in enumerate(self._kept)}
        file, row_group, state, fpp = (values.tobytes() for values in old.units(column))
        units = Units(array("i", file), array("i", row_group), array("B", state), array("f", fpp))
        level = old.layout(column).blocks.bit_length() - 1
        dropped = []
        for slot, before in enumerate(units.file):
            units.file[slot] = position.get(before, -1)
            if before >= 0 and units.file[slot] < 0:
                dropped.append(slot)
                units.row_group[slot], units.state[slot], units.fpp[slot] = 0, FREE, 0.0
            elif units.state[slot] == FILTER:
                filter_rates.add(units.fpp[slot], 1 << level)
        return units, dropped, level if filter_rates.count else 0, filter_rates

    def _end_pieces(self, sizes: array[int]) -> Iterator[bytes]:
        """Yield the packed ends of kept files and then of new ones; appends the size of each to `sizes`."""
        old = iter(()) if self._old is None else self._old.ends(self._kept)
        following = next(old, None)
        for position in self._kept:
            end = b""
            if following is not None and following[0] == position:
                end, following = following[1], next(old, None)
                yield end
            sizes.append(len(end))
        sizes.extend(self._ends.sizes)
        yield from self._ends.pieces()

    def _pieces(self, files: Sequence[IndexedFile], plans: Sequence[_Plan]) -> Pieces:
        """Yield the new file, a window of bits at a time."""
        blobs: list[Blob] = []
        end = len(MAGIC)

        def add_blob(kind: str, length: int, codec: str | None, blob_properties: Mapping[str, str]) -> None:
            nonlocal end
            blobs.append(Blob(kind, end, length, codec, blob_properties))
            end += length

        def table(kind: str, batch: pa.RecordBatch, extra: Mapping[str, str] = MappingProxyType({})) -> bytes:
            data, table_properties = packed(batch)
            add_blob(kind, len(data), "zstd", {**extra, **table_properties})
            return data

        yield MAGIC
        for number, plan in enumerate(plans):
            length = 0
            for window in windows(
                plan.layout, plan.old, plan.dropped, plan.always, plan.bitsets, self._spool, _WINDOW_BYTES
            ):
                length += len(window)
                yield window
                del window
            add_blob(BITS, length, None, properties(number, plan.column, plan.layout))
        sizes, length = array("i"), 0
        for piece in self._end_pieces(sizes):
            yield piece
            length += len(piece)
        if length:
            add_blob(ENDS, length, None, {})
            yield table(END_SIZES, end_sizes_table(sizes))
        for number, plan in enumerate(plans):
            column_properties = {"column-number": str(number), "column": plan.column.path}
            yield table(UNITS, units_table(plan.units), column_properties)
        yield table(FILES, files_table(files))
        yield footer_bytes(
            blobs,
            {
                VERSION: "1",
                "created-by": f"bloomcli {__version__}",
                "fpp": repr(self._fpp),
                "columns": json.dumps(self._paths, ensure_ascii=False),
            },
        )
