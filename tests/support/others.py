"""Another writer, which changes a file while it is replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from bloomcli.storage.local import temporary
from bloomcli.storage.local.hadoop_crc import checksum_file_of
from support.checksums import checksums
from support.replacing import OLD

OTHERS: Final = b"what somebody else has written" * 300


class Others:
    """Another writer, which changes a file in one way, and the check of the result."""

    def __init__(self, file: Path, vouched: bool) -> None:
        self.file = file
        self.sidecar = checksum_file_of(file)
        self.vouched = vouched

    def begin(self) -> None:
        """Write the file before the change."""
        self.file.write_bytes(OLD)
        if self.vouched:
            self.sidecar.write_bytes(checksums(OLD, 512))

    def act(self) -> None:
        """Change the file."""
        raise NotImplementedError

    def finish(self) -> None:
        """Act after the replacement."""

    def check(self) -> None:
        """Read the current content."""
        assert self.file.read_bytes() == OTHERS
        if self.vouched:
            assert self.sidecar.read_bytes() == checksums(OTHERS, 512)


class Renames(Others):
    """Renames a new file to the name, with its checksums if the old one had some, as Hadoop does."""

    def act(self) -> None:
        for path, content in ((self.file, OTHERS), (self.sidecar, checksums(OTHERS, 512))):
            if path == self.file or self.vouched:
                new = path.with_name(path.name + "-new")
                new.write_bytes(content)
                new.replace(path)


def just_before(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Run the first action just before the first exchange, the second just before the second exchange, ..."""
    real, waiting = temporary._rename, list(acts)

    def rename(fd: int, one: Path, other_fd: int, other: Path, flags: int) -> int:
        if flags == temporary._EXCHANGE and waiting:
            waiting.pop(0)()
        return real(fd, one, other_fd, other, flags)

    monkeypatch.setattr(temporary, "_rename", rename)
