"""The ends of pipes are closed even where the system reports an error."""

from __future__ import annotations

import os

import pytest

from bloomcli.concurrency import close_pipe


def test_what_was_not_written_and_a_reader_that_is_gone_leave_no_end_open() -> None:
    read, write = os.pipe()
    pipe = os.fdopen(write, "wb")
    pipe.write(b"a request")
    os.close(read)
    close_pipe(pipe)  # its last write fails
    assert pipe.closed
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(write)
