"""Hadoop's checksum files: `.NAME.crc` contains the checksums of the file NAME in the same directory.

Layout (hadoop-common, ChecksumFileSystem): "crc\\0", u32 BE bytes per checksum, then a u32 BE checksum of each chunk
of that many bytes; the last chunk may be shorter. The checksums are CRC32, which Hadoop's local file system reads, or
CRC32C; the first checksum shows which. A file without this header isn't a checksum file; Hadoop ignores it too.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnreadableError
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.os_errors import read_file, reason

MAGIC: Final = b"crc\0"
_HEAD: Final = 8
_SUM: Final = 4
_CHUNK_BYTES: Final = 512
"""Bytes per checksum: Hadoop's default."""

_READ_BYTES: Final = 4 << 20

Algorithm = Callable[[bytes, int], bytes]
"""Computes the concatenated checksums of the chunks of data, from the data and the bytes per chunk."""


def _crc32_chunks(data: bytes, size: int) -> bytes:
    view = memoryview(data)  # slices of bytes would be copies, which takes four times as long
    sums = [zlib.crc32(view[at : at + size]) for at in range(0, len(view), size)]
    return struct.pack(f">{len(sums)}I", *sums)


class Checksums(NamedTuple):
    """The checksums of a file's chunks, in order."""

    chunk: int
    """Bytes per checksum."""
    algorithm: Algorithm
    sums: bytes

    def pack(self) -> bytes:
        """The bytes of the checksum file."""
        return MAGIC + struct.pack(">I", self.chunk) + self.sums


def checksum_file_of(file: Path) -> Path:
    """The path of a file's checksum file."""
    return file.with_name(f".{file.name}.crc")


def load(checksum_file: Path) -> bytes | None:
    """The content of a checksum file; None if it doesn't exist.

    Raises:
        UnreadableError: it exists, and can't be read.
    """
    try:
        return read_file(checksum_file)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except OSError as error:
        if os.path.lexists(checksum_file):
            raise UnreadableError(
                f"the checksums can't be read: {reason(error)}",
                path=str(checksum_file),
                hint="a changed file has to get new ones; check who may read them",
            ) from None
        return None  # the name is too long: no file can have it


def parse(data: bytes, start: Callable[[int], bytes]) -> Checksums | None:
    """Decode a checksum file; None if it isn't one.

    Args:
        data: the content.
        start: reads a number of bytes (fewer if the file is shorter) from the start of the file that it belongs to.
            The first chunk determines the algorithm.
    """
    if len(data) < _HEAD or not data.startswith(MAGIC):
        return None
    (chunk,) = struct.unpack(">I", data[len(MAGIC) : _HEAD])
    if not 1 <= chunk <= _READ_BYTES:
        return None
    first, sums = start(chunk), data[_HEAD:]
    castagnoli = bool(first) and sums[:_SUM] == kernels.crc32c_chunks(first, chunk)
    return Checksums(chunk=chunk, algorithm=kernels.crc32c_chunks if castagnoli else _crc32_chunks, sums=sums)


def _start(source: LocalSource) -> Callable[[int], bytes]:
    return lambda count: source.read_at(0, min(count, source.size))


def _first_difference(source: LocalSource, checksums: Checksums) -> int | None:
    """The offset of the first chunk that doesn't match its checksum; the file's size if there are too many checksums;
    None if all match."""
    step = max(_READ_BYTES // checksums.chunk, 1) * checksums.chunk
    for at in range(0, source.size, step):
        sums = checksums.algorithm(source.read_at(at, min(step, source.size - at)), checksums.chunk)
        index = at // checksums.chunk * _SUM
        expected = checksums.sums[index : index + len(sums)]
        if sums != expected:
            wrong = next(i for i in range(0, len(sums), _SUM) if sums[i : i + _SUM] != expected[i : i + _SUM])
            return at + wrong // _SUM * checksums.chunk
    return source.size if len(checksums.sums) > -(-source.size // checksums.chunk) * _SUM else None


def verified_checksums(source: LocalSource) -> Checksums | None:
    """A file's checksums, each compared with its chunk; None if it has no checksum file. Reads the whole file.

    Without the comparison, new checksums would hide damage that the old ones reveal.

    Raises:
        CorruptFile: a chunk doesn't match its checksum.
        SourceChanged: the file was replaced or changed during the comparison.
        UnreadableError: the checksums can't be read.
    """
    checksum_file = checksum_file_of(Path(os.path.realpath(source.local_path)))
    data = load(checksum_file)
    checksums = None if data is None else parse(data, _start(source))
    if checksums is None:
        return None
    wrong = _first_difference(source, checksums)
    if wrong is not None:
        source.check_unchanged()  # the checksums may be those of a file that replaced this one
        raise CorruptFile(
            f"the file doesn't match its checksums ({checksum_file.name})",
            path=source.path,
            offset=wrong,
            hint="get both from their source again; if the file is known to be right, remove the checksums",
        )
    return checksums


def fits(source: LocalSource, data: bytes) -> bool:
    """Whether a checksum file's content matches the current content of this file."""
    checksums = parse(data, _start(source))
    return (
        checksums is not None
        and len(checksums.sums) == -(-source.size // checksums.chunk) * _SUM  # needs no read
        and _first_difference(source, checksums) is None
    )


def new_checksum_file(old: bytes, final: Path, new: Path, checksums: Checksums | None, prefix: int) -> bytes:
    """The checksum file of new content, with the chunk size and algorithm of the old one.

    Args:
        old: the checksum file of the content that is replaced.
        final: the file with that content, if it exists.
        new: the file with the new content.
        checksums: verified checksums of the content that the new one was made from.
        prefix: number of bytes at the start that are the same in both; their checksums are copied.
    """

    def start(count: int) -> bytes:
        try:
            with final.open("rb") as file:
                return file.read(count)
        except OSError:
            return b""

    kind = parse(old, start) or Checksums(chunk=_CHUNK_BYTES, algorithm=_crc32_chunks, sums=b"")
    done = 0
    if checksums is not None and (checksums.chunk, checksums.algorithm) == (kind.chunk, kind.algorithm):
        done = prefix // kind.chunk
    parts = [checksums.sums[: done * _SUM]] if checksums is not None else []
    step = max(_READ_BYTES // kind.chunk, 1) * kind.chunk
    with LocalSource(str(new), new) as file:
        rest = range(done * kind.chunk, file.size, step)
        parts += [kind.algorithm(file.read_at(at, min(step, file.size - at)), kind.chunk) for at in rest]
    return Checksums(chunk=kind.chunk, algorithm=kind.algorithm, sums=b"".join(parts)).pack()
