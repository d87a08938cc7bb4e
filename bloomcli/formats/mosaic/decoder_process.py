"""The process in which paimon-mosaic decodes, so that its output and its crashes don't reach bloom's own process.

The package's native code prints its panics to standard error and ends the process where memory runs out. `decoder`
starts this module, and answers its reads. Frames in both directions: a byte for the kind, a little-endian u64 for the
number of bytes, and these bytes.

    to this process     O size and columns (JSON)    G number of a row group (u32)    S no rows of all columns
                        D requested bytes
    from this process   H ready, or why not    K done    R offset and length (2 x u64)    E what went wrong
                        B an Arrow stream of one batch follows
"""

from __future__ import annotations

import json
import os
import signal
import struct
import threading
from typing import IO, Any, Final

HEAD: Final = struct.Struct("<cQ")
RANGE: Final = struct.Struct("<QQ")
NUMBER: Final = struct.Struct("<I")


def send(stream: IO[bytes], kind: bytes, data: bytes = b"") -> None:
    """Write one frame."""
    left = memoryview(HEAD.pack(kind, len(data)) + data)
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[bytes, bytes]:
    """Read the next frame: its kind and its bytes. Raises EOFError if the other side has ended."""
    kind, size = HEAD.unpack(_whole(stream, HEAD.size))
    return kind, _whole(stream, size)


def _whole(stream: IO[bytes], size: int) -> bytes:
    data: bytes | None = stream.read(size)
    if data is None or len(data) != size:  # None if the system refuses to wait
        raise EOFError
    return data


class _Server:
    """Replies to requests until the sender ends."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes], package: Any) -> None:
        self._requests = requests
        self._replies = replies
        self._package = package
        self._reading = threading.Lock()
        self._reader: Any = None

    def run(self) -> None:
        """Reply to requests until the sender ends."""
        while True:
            try:
                kind, data = receive(self._requests)
            except EOFError:
                return
            try:
                if kind == b"O":
                    self._open(**json.loads(data))
                    send(self._replies, b"K")
                elif kind == b"S":
                    self._send_no_rows()
                else:
                    self._send(self._reader.read_row_group(*NUMBER.unpack(data)))
            except (RuntimeError, ValueError, OSError, MemoryError) as error:
                send(self._replies, b"E", (str(error) or type(error).__name__).encode("utf-8", "replace"))

    def _read_at(self, offset: int, length: int) -> bytes:
        with self._reading:  # the package may call from several threads
            send(self._replies, b"R", RANGE.pack(offset, length))
            return receive(self._requests)[1]

    def _open(self, size: int, columns: list[str]) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._reader = self._package.MosaicReader.from_input_file(self._read_at, size)
        self._reader.project(columns)

    def _send_no_rows(self) -> None:
        import pyarrow as pa

        schema = self._reader.schema
        self._send(pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema))

    def _send(self, batch: Any) -> None:
        import pyarrow as pa

        batch.validate()
        send(self._replies, b"B")
        with pa.ipc.new_stream(self._replies, batch.schema) as stream:
            stream.write_batch(batch)
        self._replies.flush()


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Report whether the package can be imported, then reply to requests until the sender ends."""
    try:
        import mosaic

        found: Any = mosaic.MosaicReader
    except (ImportError, AttributeError, OSError):  # not installed, another package of this name, no native library
        send(replies, b"H", b"no package")
        return
    del found
    send(replies, b"H")
    _Server(requests, replies, mosaic).run()


def main() -> None:
    """Serve on standard input and output. Native code can't write to them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    with os.fdopen(requests, "rb") as taken, os.fdopen(replies, "wb") as given:
        try:
            serve(taken, given)
        except BrokenPipeError:
            os._exit(0)  # the reader has ended: closing would also fail
