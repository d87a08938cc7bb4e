"""Values of a data frame in blocks, which executors stream and the driver never holds.

    frame -> distinct values -> blocks of Arrow, on the executors' disks -> each task reads all blocks, one at a time

A task keeps the blocks, converted for the column, in a temporary file without a name. In memory it has one block of
up to `BLOCK_VALUES` values.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.find_values import Conversions, Values
from bloomcli.commands.value_frames import texts_of
from bloomcli.formats.wanted_values import WantedValues
from bloomcli.storage.os_errors import convert_temporary_file_errors

BLOCK_VALUES: Final = 1 << 20
"""Most values of a block, which are looked up together."""
_BLOCK_BYTES: Final = 32 << 20
PIECE_VALUES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 20
"""Approximate bytes of a row of values that is sent to the executors."""


def pieces_of(batches: Iterable[pa.RecordBatch], most: int = _PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Yield rows with one column, `block`: an Arrow IPC stream of values, about `most` bytes. Runs on executors."""
    for batch in batches:
        values = batch.column(0).drop_null()
        at = 0
        while at < len(values):
            size = max(values.nbytes // len(values), 1)
            part = values.slice(at, max(min(PIECE_VALUES, most // size), 1))
            at += len(part)
            yield pa.record_batch([pa.array([packed(part)], pa.binary())], names=["block"])


def packed(values: pa.Array) -> bytes:
    """An array as the bytes of an Arrow IPC stream."""
    batch = pa.record_batch([values], names=["value"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(piece: bytes) -> pa.Array:
    """The array of `packed`'s bytes."""
    with pa.ipc.open_stream(piece) as reader:
        return reader.read_next_batch().column(0)


def _merged(pieces: Iterable[bytes]) -> Iterator[pa.Array]:
    """Yield arrays of up to `BLOCK_VALUES` values and `_BLOCK_BYTES`."""
    waiting: list[pa.Array] = []
    count = size = 0
    for piece in pieces:
        values = unpacked(piece)
        if waiting and (count + len(values) > BLOCK_VALUES or size + values.nbytes > _BLOCK_BYTES):
            yield pa.concat_arrays(waiting)
            waiting, count, size = [], 0, 0
        waiting.append(values)
        count, size = count + len(values), size + values.nbytes
    if waiting:
        yield pa.concat_arrays(waiting)


def searched_texts(values: pa.Array) -> pa.LargeBinaryArray:
    """Values of a frame as texts that `find` takes. Raises UsageError for types without a usual text form."""
    types, kind = pa.types, values.type
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.array([b"0x" + value.hex().encode() for value in values.to_pylist()], pa.large_binary())
    return texts_of(values)


class Block(NamedTuple):
    """Values that are looked up together."""

    given: pa.Array
    """The values in the frame's type."""
    values: Values

    def joined(self, texts: pa.Array) -> pa.Array:
        """The values of these texts in the frame's type."""
        types, kind = pa.types, self.given.type
        if types.is_string(kind) or types.is_large_string(kind):
            return texts.cast(kind)
        if types.is_integer(kind):
            return texts.cast(pa.large_string()).cast(kind)
        return self.given.take(pc.index_in(texts, value_set=self.values.texts))


def block_of(values: pa.Array) -> Block:
    """A block of a frame's values, or of texts."""
    texts = values if pa.types.is_large_binary(values.type) else searched_texts(values)
    return Block(values, Values(texts))


def _temporary() -> IO[bytes]:
    with convert_temporary_file_errors("values"):
        return tempfile.TemporaryFile()  # closed with the task's process, or `Blocks.close`


def _dump(value: object, file: IO[bytes]) -> None:
    with convert_temporary_file_errors("values"):
        pickle.dump(value, file, 5)
        file.flush()


class Blocks:
    """All values of a task. More than one block is in a temporary file.

    Args:
        pieces: the values, as `packed` returns them.

    Raises:
        WriteError: the temporary directory is full.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.only: Block | None = None
        """The block, if all values fit into one."""
        self._file: IO[bytes] | None = None
        self._converted: Conversions[IO[bytes]] = Conversions()
        first: pa.Array | None = None
        for values in _merged(pieces):
            if first is None:
                first = values
                continue
            if self._file is None:
                self._file = _temporary()
                _dump(first, self._file)
            _dump(values, self._file)
        if first is not None and self._file is None:
            self.only = block_of(first)

    @classmethod
    def of(cls, values: Values) -> Blocks:
        """The values of a search in this process: one block, however many they are."""
        blocks = cls(())
        blocks.only = Block(values.texts, values)
        return blocks

    def wanted(
        self, key: object, convert: Callable[[pa.LargeBinaryArray], WantedValues], path: str
    ) -> Iterator[tuple[pa.Array, WantedValues]]:
        """Yield each block's values, and the same values converted for a column: once for each kind of column.

        Args:
            key: the kind of column.
            convert: converts texts.
            path: the file, for errors.

        Raises:
            LiteralError: a text isn't a value of the column.
        """
        yield from self._each(self._converted.of(key, path, lambda: self._convert(convert)))

    def _convert(self, convert: Callable[[pa.LargeBinaryArray], WantedValues]) -> IO[bytes]:
        file = _temporary()
        try:
            for values in self._each(self._file):
                _dump((values, convert(block_of(values).values.texts)), file)
        except BaseException:
            file.close()
            raise
        return file

    def close(self) -> None:
        """Remove the temporary files."""
        for file in (self._file, *self._converted.made()):
            if file is not None:
                file.close()

    @staticmethod
    def _each(file: IO[bytes] | None) -> Iterator[Any]:
        if file is None:
            return
        file.seek(0)
        while True:
            try:
                item = pickle.load(file)  # noqa: S301  this process wrote the file, which has no name
            except EOFError:
                return
            at = file.tell()
            yield item
            file.seek(at)


class SharedBlocks:
    """Values that are broadcast. All tasks of a job in a Python worker share this object, until the worker runs a
    task of another job.

    Args:
        pieces: the values, as `packed` returns them.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces
        self._kept: Blocks | None = None

    def blocks(self) -> Blocks:
        """All values. If they are one block, the next task gets it, too; several are in memory one at a time."""
        blocks = self._kept or Blocks(self._pieces)
        self._kept = None if blocks.only is None else blocks
        return blocks

    def __reduce__(self) -> tuple[type[SharedBlocks], tuple[Sequence[bytes]]]:
        return SharedBlocks, (self._pieces,)
