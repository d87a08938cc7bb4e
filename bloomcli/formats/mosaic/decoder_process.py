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


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Report whether the package can be imported, then reply to requests until the sender ends."""
    try:
        import mosaic

        package: Any = mosaic.MosaicReader
    except (ImportError, AttributeError, OSError):  # not installed, another package of this name, no native library
        send(replies, b"H", b"no package")
        return
    send(replies, b"H")
    reading = threading.Lock()
    reader: Any = None

    def read_at(offset: int, length: int) -> bytes:
        with reading:  # the package may call from several threads
            send(replies, b"R", RANGE.pack(offset, length))
            return receive(requests)[1]

    while True:
        try:
            kind, data = receive(requests)
        except EOFError:
            return
        try:
            if kind == b"O":
                opened = json.loads(data)
                if reader is not None:
                    reader.close()
                    reader = None
                reader = package.from_input_file(read_at, opened["size"])
                reader.project(opened["columns"])
                send(replies, b"K")
            elif kind == b"S":
                _send_batch(replies, _no_rows(reader.schema))
            else:
                _send_batch(replies, reader.read_row_group(*NUMBER.unpack(data)))
        except (RuntimeError, ValueError, OSError, MemoryError) as error:
            send(replies, b"E", (str(error) or type(error).__name__).encode("utf-8", "replace"))


def _no_rows(schema: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _send_batch(replies: IO[bytes], batch: Any) -> None:
    import pyarrow as pa

    batch.validate()
    send(replies, b"B")
    with pa.ipc.new_stream(replies, batch.schema) as stream:
        stream.write_batch(batch)
    replies.flush()


def main() -> None:
    """Serve on standard input and output. Native code can't write to them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1):
        os.dup2(nothing, standard)
    with os.fdopen(requests, "rb") as request_file, os.fdopen(replies, "wb") as reply_file:
        try:
            serve(request_file, reply_file)
        except BrokenPipeError:
            os._exit(0)  # the reader has ended: closing would also fail
