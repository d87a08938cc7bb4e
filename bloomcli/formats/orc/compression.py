"""ORC's compression: a stream is a run of chunks, each with a header of three bytes.

    u24 LE: length << 1 | isOriginal | bytes, compressed unless isOriginal

A chunk decompresses to at most the postscript's block size. ZLIB is raw deflate, SNAPPY and LZ4 are raw blocks.
Metadata has the same form. A chunk is stored uncompressed if compression doesn't shrink it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.words import are, counted

HEADER: Final = 3
"""Bytes of a chunk's header."""
_KNOWN: Final = ("ZLIB", "SNAPPY", "LZ4", "ZSTD", "BROTLI")
_DEFAULT_BLOCK: Final = 256 << 10


class Codec(NamedTuple):
    """The compression of a file's streams."""

    name: str
    block_size: int
    """Maximum uncompressed bytes of a chunk."""
    path: str

    def decompress(
        self, data: bytes, offset: int, field: str, ceiling: int = orc_limits.FILTER_STREAM_MAX_BYTES
    ) -> bytes:
        """Decompress a whole stream; `offset` is its offset in the file.

        Raises CorruptFile for impossible chunks, UnsupportedError for LZO and
        for streams that decompress to more than `ceiling` bytes.
        """
        if self.name == "NONE":
            return data
        out = bytearray()
        for chunk in self.chunks(data, offset, field):
            if len(out) + len(chunk) > ceiling:
                raise UnsupportedError(
                    f"a stream of more than {counted(ceiling, 'byte')}", path=self.path, offset=offset, field=field
                )
            out += chunk
        return bytes(out)

    def chunks(self, data: bytes, offset: int, field: str) -> Iterator[bytes | memoryview]:
        """Yield a whole stream's bytes, chunk by chunk; an uncompressed stream in blocks of the same size."""
        view = memoryview(data)
        if self.name == "NONE":
            yield from (view[at : at + self.block_size] for at in range(0, len(data), self.block_size))
            return
        unpacker = Unpacker(self)
        at = 0
        while at < len(data):
            length, original = self.header(view[at : at + HEADER], len(data) - at, offset + at, field)
            start = at + HEADER
            chunk = view[start : start + length]
            yield chunk if original else unpacker.block(chunk, offset + at, field)
            at = start + length

    def metadata(self, data: bytes, offset: int, field: str) -> bytes:
        """Decompress a metadata message. Its size is limited to a multiple of its size on disk.

        Raises as `decompress`.
        """
        most = max(orc_limits.METADATA_FREE_BYTES, orc_limits.METADATA_RATIO * len(data))
        return self.decompress(data, offset, field, min(most, limits.FOOTER_MAX_BYTES))

    def header(self, data: bytes | memoryview, left: int, offset: int, field: str) -> tuple[int, bool]:
        """Return a chunk's length, and whether it is uncompressed. `left`: bytes to the stream's end."""
        if left < HEADER:
            raise self.fault("a chunk's header is cut off", offset, field)
        head = int.from_bytes(data, "little")
        length = head >> 1
        if length > left - HEADER:
            raise self.fault(
                f"a chunk of {counted(length, 'byte')} runs past its stream, {left - HEADER}"
                f" {are(left - HEADER)} left",
                offset,
                field,
            )
        return length, bool(head & 1)

    def most_bytes(self, length: int) -> int:
        """The maximum decompressed size of `length` bytes: a chunk has at least one byte after its header."""
        return length if self.name == "NONE" else length // (HEADER + 1) * self.block_size

    def compress(self, data: bytes) -> bytes:
        """A stream of chunks of the file's block size that decompresses to `data`."""
        packer = Packer(self)
        packer.write(data)
        return b"".join(packer.finish())

    def chunk(self, block: bytes | bytearray) -> bytes:
        """Return a chunk with its header; the bytes unchanged if the file isn't compressed."""
        if self.name == "NONE":
            return bytes(block)
        packed = self._compressed(bytes(block))
        original = len(packed) >= len(block)
        chosen = block if original else packed
        return (len(chosen) << 1 | original).to_bytes(HEADER, "little") + chosen

    def _compressed(self, block: bytes) -> bytes:
        self.refuse_unknown(0, "")
        if self.name == "ZLIB":
            return zlib.compress(block, wbits=-zlib.MAX_WBITS)
        if self.name == "ZSTD":
            import zstandard

            return zstandard.ZstdCompressor().compress(block)
        import cramjam

        if self.name == "SNAPPY":
            return bytes(cramjam.snappy.compress_raw(block))
        if self.name == "LZ4":
            return bytes(cramjam.lz4.compress_block(block, store_size=False))
        return bytes(cramjam.brotli.compress(block))

    def refuse_unknown(self, offset: int, field: str) -> None:
        """Raise UnsupportedError for an unknown codec."""
        if self.name not in _KNOWN:
            raise UnsupportedError(
                f"the codec {self.name}",
                path=self.path,
                offset=offset,
                field=field,
                hint="rewrite the file with another compression",
            )

    def fault(self, reason: str, offset: int, field: str) -> CorruptFile:
        """An error about a chunk."""
        return CorruptFile(
            reason,
            path=self.path,
            offset=offset,
            field=field,
            hint="the file is damaged; get it from its source again",
        )


class Packer:
    """Compresses a stream as it is written."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._block = bytearray()
        self._packed: list[bytes] = []
        self.checksum = 0
        """A checksum of the uncompressed bytes; set by `finish`."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        view = memoryview(data)
        while view:
            part = view[: self._codec.block_size - len(self._block)]
            self._block += part
            view = view[len(part) :]
            if len(self._block) == self._codec.block_size:
                self._put()

    def finish(self) -> list[bytes]:
        """The whole stream, in pieces."""
        if self._block:
            self._put()
        return self._packed

    def _put(self) -> None:
        self._packed.append(self._codec.chunk(self._block))
        self.checksum = next_checksum(self.checksum, self._block)
        self._block = bytearray()


def next_checksum(before: int, chunk: bytes | bytearray | memoryview) -> int:
    """The checksum of a stream's chunks up to this one, from the checksum of the chunks before it."""
    return (before * 0x9E3779B185EBCA87 + kernels.xxh64(chunk) + 1) & ((1 << 64) - 1)


class Unpacker:
    """Decompresses chunks, one after the other. Not thread-safe."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._unpack: Callable[[bytes | memoryview], bytes] | None = None

    def block(self, chunk: bytes | memoryview, offset: int, field: str) -> bytes:
        """Decompress a chunk. Allocates at most the block size, regardless of the chunk's header.

        Raises CorruptFile, UnsupportedError.
        """
        if self._unpack is None:
            self._codec.refuse_unknown(offset, field)
            self._unpack = _unpack_by(self._codec.name, self._codec.block_size)
        try:
            return self._unpack(chunk)
        except Exception as error:  # noqa: BLE001  each library raises its own errors, some undocumented
            reason = str(error) or type(error).__name__
            raise self._codec.fault(
                f"a chunk can't be decompressed into the block size of"
                f" {counted(self._codec.block_size, 'byte')} ({reason})",
                offset,
                field,
            ) from None


def _unpack_by(name: str, block_size: int) -> Callable[[bytes | memoryview], bytes]:
    """Return a function that decompresses chunks. It is reused, because making it may cost more than a call."""
    if name == "ZLIB":

        def inflate(chunk: bytes | memoryview) -> bytes:
            unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
            block = unpacker.decompress(chunk, block_size)
            if unpacker.unconsumed_tail or not unpacker.eof:
                raise ValueError("it is cut off or larger than the file's block size")
            return block

        return inflate
    if name == "ZSTD":
        import zstandard

        context = zstandard.ZstdDecompressor()

        def zstd(chunk: bytes | memoryview) -> bytes:
            if zstandard.frame_content_size(chunk) > block_size:
                raise ValueError("it is larger than the file's block size")
            return context.decompress(chunk, max_output_size=block_size)

        return zstd
    import cramjam

    into = {
        "SNAPPY": cramjam.snappy.decompress_raw_into,
        "LZ4": cramjam.lz4.decompress_block_into,
        "BROTLI": cramjam.brotli.decompress_into,
    }[name]
    room = bytearray(block_size)
    return lambda chunk: bytes(memoryview(room)[: into(chunk, room)])


def codec_of(postscript: Any, path: str, offset: int) -> Codec:
    """The codec that a postscript names. Raises CorruptFile, UnsupportedError."""
    name = spec.name_of("CompressionKind", postscript.compression)
    if name.startswith("CODE"):
        raise UnsupportedError(
            f"compression kind {postscript.compression} is not known", path=path, offset=offset, field="compression"
        )
    size = postscript.compression_block_size or _DEFAULT_BLOCK
    if size > orc_limits.BLOCK_MAX_BYTES:
        raise CorruptFile(
            f"a compression block size of {counted(size, 'byte')} can't be: a chunk's header has 23 bits"
            f" for its length",
            path=path,
            offset=offset,
            field="compression_block_size",
        )
    return Codec(name, size, path)
