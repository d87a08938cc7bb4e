"""Opens an index of filters, compares its files with listed ones, and looks values up.

Requests to a store: the first reads the tail, with the footer and the tables of a small index; another reads longer
tables; another the rows of bits of a value; and another the ends of the files that may have it. With `END_BYTES`, the
first request has the tables of 100,000 row groups.

Files are compared by size, and by tag or modification time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bloomcli.errors import BloomError, CorruptFile, UnknownColumn, UnknownFormat, UnsupportedError, near_names
from bloomcli.index.bits import ColumnBits, units_with
from bloomcli.index.ends import Ends
from bloomcli.index.layout import BITS, END_SIZES, ENDS, FILES, UNITS, VERSION, Layout, read_properties
from bloomcli.index.puffin import Blob, damaged, number_of, read_footer, rebuild
from bloomcli.index.tables import ALWAYS, FILTER, FREE, NEVER, Files, Units, read_units
from bloomcli.model.index import BlobFacts, IndexedColumn, IndexedColumnFacts, IndexFacts
from bloomcli.storage.base import FileEntry, Fingerprint, Source
from bloomcli.storage.listing import spelling
from bloomcli.storage.registry import store_of
from bloomcli.words import counted

END_BYTES: Final = 2 << 20
"""Bytes of an index's end that are read when it is opened for a search: enough for the tables of 100,000 row groups.
The larger request takes as long as a second request for tables that are longer than the usual tail."""
_TOGETHER_BYTES: Final = 16 << 20
"""Limit up to which all tables are read in one request."""


RowGroups = list[tuple[int, int]]
"""Row groups, ordered: the position of the file in `Index.files`, and the row group's number in the file."""


class ColumnBlobs(NamedTuple):
    """The blobs of a column's bits and units."""

    bits: Blob
    layout: Layout
    units: Blob
    field: str
    """The field path of the units' blob."""


class Index:
    """An open index. Several threads may look values up.

    Attributes:
        source: the file.
        paths: the columns for which the index was built, also those that no file has.
        columns: the columns, in each type that they have in files.
        fpp: the false-positive rate that the index was built for.
        created_by: the program that wrote the index.
        files: the indexed files.
    """

    def __init__(self, source: Source) -> None:
        """Read the footer and the table of files. The index doesn't close the source.

        Raises:
            CorruptFile: the file is damaged, or isn't an index.
            UnsupportedError: it was written for a later version of the format.
        """
        self.source = source
        self._footer = read_footer(source)
        self.paths, self.fpp = self._read_properties()
        self.created_by = self._footer.properties.get("created-by", "")
        self._columns, files, at = self._read_blobs()
        self.columns: tuple[IndexedColumn, ...] = tuple(self._columns)
        ends = self._end_blobs()
        tables = [files, *(bits.units for bits in self._columns.values()), *(blob for blob, _ in ends[1:])]
        self._tables_at = min(blob.offset for blob in tables)
        length = max(blob.offset + blob.length for blob in tables) - self._tables_at
        self._tables = source.read_at(self._tables_at, length) if length <= _TOGETHER_BYTES else None
        self.files = Files(source.path, files, self._table(files), f"blobs[{at}]")
        self._units: dict[IndexedColumn, Units] = {}
        self._ends = None
        if ends:
            blob, sizes = ends
            self._ends = Ends(source, blob, sizes, self._table(sizes[0]), self.files)

    def ends(self, files: Iterable[int], most: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the packed ends of files, as `bloomcli.index.ends.Ends.read`. Raises CorruptFile."""
        return iter(()) if self._ends is None else self._ends.read(files, most)

    def types(self, path: str) -> tuple[IndexedColumn, ...]:
        """The column in each of its types; empty if no file has it. Raises UnknownColumn if it isn't indexed."""
        if path not in self.paths:
            near = near_names(path, self.paths)
            raise UnknownColumn(
                f"column {path} isn't in the index, which has {', '.join(self.paths)}",
                path=self.source.path,
                hint=f"did you mean {near[0]}?" if near else rebuild(self.source.path, (*self.paths, path)),
            )
        return tuple(column for column in self.columns if column.path == path)

    def possible(self, column: IndexedColumn, hashes: bytes) -> RowGroups:
        """The row groups that may have one of some values.

        Reads only the rows of a few hashes; for many, the bits in their order, in bounded memory. The answers
        are those of the filters at the common size.

        Args:
            column: one of `columns`.
            hashes: XXH64 of the values' plain encodings, uint64s in native order, as `WantedValues.hashes`.

        Raises:
            CorruptFile: the bits don't match their checksums.
        """
        return self._row_groups(column, units_with(self.bits(column), hashes) & self._with_values(column))

    def with_values(self, column: IndexedColumn) -> RowGroups:
        """The row groups with any value: these may have NaN, and other values that aren't in filters."""
        return self._row_groups(column, self._with_values(column))

    def having(self, column: IndexedColumn) -> frozenset[int]:
        """Positions of the files that have a column in this type."""
        return frozenset(self.units(column).file.tolist()) - {-1}

    def facts(self) -> IndexFacts:
        """The facts that `index inspect` reports. Reads no bits."""
        return IndexFacts(
            path=self.source.path,
            bytes=self.source.size,
            created_by=self.created_by,
            fpp=self.fpp,
            files=len(self.files),
            row_groups=sum(self.files.row_groups),
            rows=self.files.rows,
            data_bytes=self.files.data_bytes,
            columns=tuple(map(self._column_facts, self.columns)),
            blobs=tuple(
                BlobFacts(type=blob.type, offset=blob.offset, length=blob.length, codec=blob.codec)
                for blob in self._footer.blobs
            ),
        )

    def units(self, column: IndexedColumn) -> Units:
        """The units of a column by their slots. Raises CorruptFile."""
        units = self._units.get(column)
        if units is None:
            at = self._columns[column]
            data = self._table(at.units)
            units = read_units(self.source.path, at.units, data, self.files, at.layout.slots, at.field)
            self._units[column] = units
        return units

    def layout(self, column: IndexedColumn) -> Layout:
        """The shape of a column's bits."""
        return self._columns[column].layout

    def bits(self, column: IndexedColumn) -> ColumnBits:
        """A column's bits."""
        at = self._columns[column]
        return ColumnBits(self.source, at.bits.offset, at.layout, self.paths)

    def _with_values(self, column: IndexedColumn) -> NDArray[np.bool_]:
        """For each slot, whether its row group has values."""
        return np.isin(self.units(column).state, (FILTER, ALWAYS))

    def _row_groups(self, column: IndexedColumn, chosen: NDArray[Any]) -> RowGroups:
        """The row groups of the slots that are chosen."""
        units, slots = self.units(column), np.flatnonzero(chosen)
        return sorted(zip(units.file[slots].tolist(), units.row_group[slots].tolist(), strict=True))

    def _column_facts(self, column: IndexedColumn) -> IndexedColumnFacts:
        layout, units = self.layout(column), self.units(column)
        states = np.bincount(units.state, minlength=NEVER + 1).tolist()
        rates = units.fpp[units.state == FILTER].tolist()
        return IndexedColumnFacts(
            column=column.path,
            physical=column.type.physical,
            logical=column.type.logical,
            row_groups=states[FILTER] + states[ALWAYS] + states[NEVER],
            filters=states[FILTER],
            always=states[ALWAYS],
            never=states[NEVER],
            free_slots=states[FREE],
            filter_bytes=layout.filter_bytes,
            fpp=sum(rates) / len(rates) if rates else None,
            bytes=layout.nbytes,
            lookup_bytes=8 * layout.stride,
            slab_bytes=layout.slab_bytes,
        )

    def _table(self, blob: Blob) -> bytes:
        if self._tables is None:
            return self.source.read_at(blob.offset, blob.length)
        start = blob.offset - self._tables_at
        return self._tables[start : start + blob.length]

    def _wrong(self, reason: str, field: str) -> CorruptFile:
        return damaged(self.source.path, reason, offset=self._footer.start, field=field)

    def _read_properties(self) -> tuple[tuple[str, ...], float]:
        """Read the indexed columns, and the rate."""
        properties = self._footer.properties
        version = number_of(properties.get(VERSION), 1 << 31)
        if version is None:
            raise UnknownFormat(
                "it is a Puffin file, but no index of filters",
                path=self.source.path,
                offset=self._footer.start,
                field=f"properties.{VERSION}",
                hint=rebuild(self.source.path),
            )
        if version != 1:
            raise UnsupportedError(
                f"the index is of version {version}, which is later than 1",
                path=self.source.path,
                offset=self._footer.start,
                field=f"properties.{VERSION}",
                hint=f"a later version of bloom reads it; {rebuild(self.source.path)}",
            )
        try:
            paths = json.loads(properties.get("columns", ""))
            fpp = float(properties.get("fpp", ""))
        except (ValueError, RecursionError):
            raise self._wrong("the columns aren't JSON, or the rate isn't a number", "properties.columns") from None
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise self._wrong("it isn't a list of names", "properties.columns")
        if not 0 < fpp < 1:
            raise self._wrong("it isn't a rate", "properties.fpp")
        return tuple(paths), fpp

    def _end_blobs(self) -> list[tuple[Blob, str]]:
        """The blobs of files' ends and of their sizes, with their field paths; empty if the index has none."""
        kinds = ENDS, END_SIZES
        blobs = [(blob, f"blobs[{at}]") for at, blob in enumerate(self._footer.blobs) if blob.type in kinds]
        blobs.sort(key=lambda pair: kinds.index(pair[0].type))
        if blobs and tuple(blob.type for blob, _ in blobs) != kinds:
            raise self._wrong("it has several blobs of ends, or ends without their sizes", "blobs")
        return blobs

    def _read_blobs(self) -> tuple[dict[IndexedColumn, ColumnBlobs], Blob, int]:
        """The columns in the order of their numbers, and the blob of files with its position."""
        path, files = self.source.path, []
        bits: dict[int, tuple[IndexedColumn, Layout, Blob]] = {}
        units: dict[int, tuple[Blob, str]] = {}
        for at, blob in enumerate(self._footer.blobs):
            field = f"blobs[{at}]"
            if blob.type == FILES:
                files.append((blob, at))
            elif blob.type == BITS:
                number, column, layout = read_properties(path, blob, field)
                if number in bits or column.path not in self.paths:
                    raise self._wrong("the column comes twice, or isn't an indexed one", f"{field}.properties")
                bits[number] = column, layout, blob
            elif blob.type == UNITS:
                number_found = number_of(blob.properties.get("column-number"), 1 << 31)
                if number_found is None or number_found in units:
                    raise self._wrong(
                        "it isn't a column's number, or comes twice", f"{field}.properties.column-number"
                    )
                units[number_found] = blob, field
        if len(files) != 1:
            raise self._wrong(f"it has {counted(len(files), 'table')} of files", "blobs")
        if bits.keys() != units.keys():
            raise self._wrong("a column has bits without units, or units without bits", "blobs")
        columns = {
            column: ColumnBlobs(blob, layout, *units[at]) for at, (column, layout, blob) in sorted(bits.items())
        }
        if len(columns) != len(bits):
            raise self._wrong("a column comes twice in a type", "blobs")
        return columns, *files[0]


class NoAnswer(Enum):
    """Why an index has no answer for a file."""

    UNKNOWN = "it doesn't have the file, or not with the column"
    CHANGED = "the file changed since"


class FreshnessCheck:
    """Compares listed files with an index. It caches directories: make one for each command."""

    def __init__(self, index: Index) -> None:
        self._files = index.files
        self._spell = spelling()

    def found(self, item: FileEntry) -> tuple[int, Fingerprint] | NoAnswer:
        """The position of a listed file in `Index.files` and its fingerprint when it was indexed, or why the index
        has no answer for it."""
        at = None if item.problem is not None or item.skipped else self._files.position(self._spell(item.path))
        if at is None:
            return NoAnswer.UNKNOWN
        indexed = self._files.fingerprint(at)
        return (at, indexed) if _is_same(indexed, item) else NoAnswer.CHANGED


def _is_same(indexed: Fingerprint, item: FileEntry) -> bool:
    """Whether a listed file is the one that was indexed. Sends a request if the listing has neither time nor tag."""
    listed: Fingerprint | None = Fingerprint(item.size, item.mtime_ns, tag=item.tag)
    if not item.mtime_ns and not item.tag:
        try:
            listed = store_of(item.path).fingerprint(item.path)
        except BloomError:  # opening the file raises it
            return False
    return listed is not None and indexed.has_content_of(listed)
