"""ORC's compression: a stream is a run of chunks, each with a header of three bytes.

    u24 LE: length << 1 | isOriginal | bytes, compressed unless isOriginal

A chunk decompresses to at most the postscript's block size. ZLIB is raw deflate, SNAPPY and LZ4 are raw
blocks. Metadata is written in the same form: a chunk stays as it is where compressing gains nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import spec

HEADER: Final = 3
"""Bytes of a chunk's header."""
_KNOWN: Final = ("ZLIB", "SNAPPY", "LZ4", "ZSTD", "BROTLI")
_DEFAULT_BLOCK: Final = 256 << 10


class Codec(NamedTuple):
    """How a file's streams are compressed."""

    name: str
    block_size: int
    """Uncompressed bytes of a chunk, at most."""
    path: str

    def decompress(self, data: bytes, offset: int, field: str, ceiling: int = limits.STREAM_MAX_BYTES) -> bytes:
        """A whole stream's bytes; `offset` is where it starts in the file.

        Raises CorruptFile for chunks that contradict themselves or their stream, UnsupportedError for LZO and
        for what decompresses to more than `ceiling`.
        """
        if self.name == "NONE":
            return data
        parts: list[bytes] = []
        unpacker = Unpacker(self)
        at = total = 0
        while at < len(data):
            length, original = self.header(data[at : at + HEADER], len(data) - at, offset + at, field)
            start = at + HEADER
            chunk = data[start : start + length]
            part = chunk if original else unpacker.block(chunk, offset + at, field)
            total += len(part)
            if total > ceiling:
                raise UnsupportedError(
                    f"a stream of more than {ceiling} bytes", path=self.path, offset=offset, field=field
                )
            parts.append(part)
            at = start + length
        return b"".join(parts)

    def header(self, data: bytes | memoryview, left: int, offset: int, field: str) -> tuple[int, bool]:
        """A chunk's length, and whether it is original. `left`: bytes of its stream from the chunk's header on."""
        if left < HEADER:
            raise self.fault("a chunk's header is cut off", offset, field)
        head = int.from_bytes(data, "little")
        length = head >> 1
        if length > left - HEADER:
            raise self.fault(
                f"a chunk of {length} bytes runs past its stream, {left - HEADER} are left", offset, field
            )
        return length, bool(head & 1)

    def most_bytes(self, length: int) -> int:
        """The most that a stream of so many bytes on disk can hold: a chunk takes a byte beside its header."""
        return length if self.name == "NONE" else length // (HEADER + 1) * self.block_size

    def compress(self, data: bytes) -> bytes:
        """A stream of chunks of the file's block size that decompresses to `data`."""
        if self.name == "NONE":
            return data
        out = bytearray()
        for at in range(0, len(data), self.block_size):
            block = data[at : at + self.block_size]
            packed = self._compressed(block)
            original = len(packed) >= len(block)
            chosen = block if original else packed
            out += (len(chosen) << 1 | original).to_bytes(HEADER, "little") + chosen
        return bytes(out)

    def _compressed(self, block: bytes) -> bytes:
        self.refuse_unknown(0, "")
        if self.name == "ZLIB":
            packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            return packer.compress(block) + packer.flush()
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
        """Raise UnsupportedError for a codec that nothing here knows."""
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


class Unpacker:
    """Decompresses chunks, one after the other. Not for several threads at a time."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._unpack: Callable[[bytes | memoryview], bytes] | None = None

    def block(self, chunk: bytes | memoryview, offset: int, field: str) -> bytes:
        """A chunk's bytes. Nothing makes room for more than the block size, whatever the chunk says.

        Raises CorruptFile, UnsupportedError.
        """
        if self._unpack is None:
            self._codec.refuse_unknown(offset, field)
            self._unpack = _unpack_by(self._codec.name, self._codec.block_size)
        try:
            return self._unpack(chunk)
        except Exception as error:  # noqa: BLE001  each library has its own errors, and some say nothing of them
            reason = str(error) or type(error).__name__
            raise self._codec.fault(
                f"a chunk can't be decompressed into the block size of {self._codec.block_size} bytes ({reason})",
                offset,
                field,
            ) from None


def _unpack_by(name: str, block_size: int) -> Callable[[bytes | memoryview], bytes]:
    """What decompresses a chunk by a codec's library; made once, as making it may cost more than using it."""
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
    if size > limits.ORC_BLOCK_MAX_BYTES:
        raise CorruptFile(
            f"a compression block size of {size} bytes can't be: a chunk's header has 23 bits for its length",
            path=path,
            offset=offset,
            field="compression_block_size",
        )
    return Codec(name, size, path)
