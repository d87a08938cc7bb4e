"""Decodes row groups with paimon-mosaic in a separate process; see `decoder_process`.

Processes are reused for the next file, except those that ended or were stopped during a request.
"""

from __future__ import annotations

import atexit
import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import IO, Any, Final, cast

from bloomcli.concurrency import close_pipe
from bloomcli.errors import CorruptFile, UnreadableError, UnsupportedError, install
from bloomcli.formats.mosaic.decoder_process import NUMBER, RANGE, receive, send

_HINT_ENDED: Final = "the data is damaged, or decoding it takes more memory than there is"
_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from bloomcli.formats.mosaic.decoder_process import main; main()"
)
_ENDING_SECONDS: Final = 5.0

ReadAt = Callable[[int, int], bytes]


class _Process:
    """One process and the pipes to it."""

    def __init__(self, path: str) -> None:
        self.modules = tuple(sys.path)
        debug = bool(os.environ.get("BLOOM_DEBUG"))
        try:
            self._process = subprocess.Popen(  # noqa: S603  this Python, with code of ours
                [sys.executable, "-I", "-c", _START, json.dumps(self.modules)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,  # a forked process must find nothing to flush
                stderr=None if debug else subprocess.DEVNULL,
                env=os.environ | ({} if debug else {"RUST_BACKTRACE": "0"}),
            )
        except OSError as error:
            kind = UnsupportedError if error.errno == errno.EAGAIN else UnreadableError
            raise kind(
                "paimon-mosaic decodes columns in a separate process, which can't be started: "
                f"{(error.strerror or str(error)).lower()}",
                path=path,
                hint="`ulimit -u`, or the container's pids.max, says how many processes and threads there may be"
                if kind is UnsupportedError
                else None,
            ) from None
        self.requests = cast("IO[bytes]", self._process.stdin)
        self._replies = cast("io.FileIO", self._process.stdout)
        self.replies: IO[bytes] = io.BufferedReader(self._replies)

    def close(self, *, at_once: bool = False) -> int | None:
        """End the process, if it hasn't ended. Returns the number of the signal that ended it before, if any."""
        code = self._process.poll()
        if at_once:
            self._process.kill()
        for pipe in (self.requests, self.replies):
            close_pipe(pipe)
        try:
            ended = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            ended = self._process.wait()
        code = ended if code is None and not at_once else code
        return -code if code is not None and code < 0 else None

    def disown(self) -> None:
        """After a fork, in the child: release the process, which belongs to the parent."""
        self._process.returncode = 0  # nothing to wait for
        close_pipe(self.requests)
        close_pipe(self._replies)


class _PackageError(Exception):
    """The text of the package's error."""


class _Pool:
    """Keeps the idle and the busy processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: list[_Process] = []

    def take(self, path: str) -> _Process:
        """Return a ready process. Raises UnsupportedError if the package isn't installed, UnreadableError."""
        with self._lock:
            modules = tuple(sys.path)
            fitting = next((p for p in self._idle if p.modules == modules), None)
            if fitting is not None:
                self._idle.remove(fitting)
                self._busy.append(fitting)
                return fitting
        process = _Process(path)
        try:
            kind, data = receive(process.replies)
        except EOFError:
            error = _ended_error(process.close())
            error.path = path
            raise error from None
        except BaseException:
            process.close(at_once=True)
            raise
        if kind != b"H" or data:
            process.close()
            raise UnsupportedError(
                "Mosaic columns are decoded by paimon-mosaic, which isn't installed",
                path=path,
                hint=install("mosaic"),
            )
        with self._lock:
            self._busy.append(process)
        return process

    def release(self, process: _Process, *, reusable: bool) -> None:
        """Remove a process from the busy ones. One without open requests is kept for the next file."""
        with self._lock:
            self._busy.remove(process)
            if reusable:
                self._idle.append(process)

    def close_idle(self) -> None:
        """End the idle processes."""
        with self._lock:
            waiting, self._idle = self._idle, []
        for process in waiting:
            process.close()

    def disown(self) -> None:
        """After a fork, in the child: forget the parent's processes."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        for process in (*self._idle, *self._busy):
            process.disown()
        self._idle, self._busy = [], []


def _ended_error(number: int | None) -> UnreadableError:
    how = "" if number is None else f" by {signal.Signals(number).name}"
    return UnreadableError(f"the process that decodes it was ended{how}", hint=_HINT_ENDED)


POOL: Final = _Pool()
atexit.register(POOL.close_idle)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.disown)


def check(path: str) -> None:
    """Check that columns can be decoded. Raises UnsupportedError if the package isn't installed, UnreadableError."""
    POOL.release(POOL.take(path), reusable=True)


class Decoder:
    """Decodes chosen columns of one file, row group by row group, for one thread."""

    def __init__(self, path: str, read_at: ReadAt, size: int, columns: Sequence[str]) -> None:
        """Open the file for the package.

        Args:
            path: the file, for errors.
            read_at: reads bytes of the file that the package sees.
            size: bytes of that file.
            columns: names of the columns to decode.

        Raises:
            UnsupportedError: the package isn't installed.
            UnreadableError: its process can't be started; or, without a path, ended before it replied.
            CorruptFile: the package refuses the file; without a path.
            BloomError: what `read_at` raised, with a path.
        """
        self._read_at = read_at
        self._process: _Process | None = POOL.take(path)
        self._request(b"O", json.dumps({"size": size, "columns": list(columns)}).encode())

    def row_group(self, ordinal: int) -> Any:
        """A row group's columns as an Arrow record batch. Raises as the constructor does."""
        return self._request(b"G", NUMBER.pack(ordinal))

    def no_rows(self) -> Any:
        """All columns of the file as a record batch without rows. Raises as the constructor does."""
        return self._request(b"S", b"")

    def close(self) -> None:
        """Keep the process for the next file."""
        process, self._process = self._process, None
        if process is not None:
            POOL.release(process, reusable=True)

    def _request(self, kind: bytes, data: bytes) -> Any:
        process = self._process
        if process is None:
            raise _ended_error(None)
        try:
            send(process.requests, kind, data)
            return self._reply(process)
        except (EOFError, BrokenPipeError):
            self._process = None
            POOL.release(process, reusable=False)
            raise _ended_error(process.close()) from None
        except _PackageError as error:
            raise CorruptFile(str(error)) from None
        except BaseException:  # the request has no reply
            self._process = None
            POOL.release(process, reusable=False)
            process.close(at_once=True)
            raise

    def _reply(self, process: _Process) -> Any:
        while True:
            kind, data = receive(process.replies)
            if kind == b"R":
                send(process.requests, b"D", self._read_at(*RANGE.unpack(data)))
            elif kind == b"K":
                return None
            elif kind == b"B":
                return _batch(process.replies)
            else:
                raise _PackageError(data.decode("utf-8", "replace"))


def _batch(stream: IO[bytes]) -> Any:
    """Read the only batch of an Arrow stream, and the stream to its end."""
    import pyarrow as pa

    try:
        with pa.ipc.open_stream(stream) as reader:
            batch = reader.read_next_batch()
            for _ in reader:  # reads the mark of the stream's end
                pass
    except (pa.ArrowInvalid, OSError, StopIteration):
        raise EOFError from None
    return batch
