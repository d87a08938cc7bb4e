"""Writes into encrypted files: the modules of new filters and page indexes, and the changed footer as it is stored.

A change is planned and checked by the footer in plain text, as for every file. Only what it changes is encrypted
again: the metadata of changed chunks, and the footer, or its signature. Each new module has a nonce of its own,
because a second text with the nonce of the first would give both away. Pages, page indexes, FileCryptoMetaData and
the modules of other chunks stay byte for byte.

If a footer in plain text has a shortened copy of a chunk's metadata next to the encrypted ones, the copy also says
where the filter is.

Source: the Parquet format's Encryption.md (5.1 to 5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from bloomcli import kernels
from bloomcli.errors import WriteError
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.encryption import MODULE_BYTES, NONCE_BYTES, Cipher, Encryption, Kind, WrongModule
from bloomcli.formats.parquet.footer import COLUMN_INDEX, FILTER, OFFSET_INDEX, Footer, read_footer, read_stored
from bloomcli.formats.parquet.spec import Location, Struct
from bloomcli.formats.parquet.splice import LENGTH, OF_CHUNK, OFFSET, Part, Value, apply_edits, set_fields
from bloomcli.model.file import ChunkKey
from bloomcli.storage.base import Source

_KINDS: Final = {
    FILTER: (Kind.FILTER_HEADER, Kind.FILTER_BITSET),
    COLUMN_INDEX: (Kind.COLUMN_INDEX,),
    OFFSET_INDEX: (Kind.OFFSET_INDEX,),
}
"""The modules of each kind of part."""


def overhead(footer: Footer, filters: int) -> int:
    """The upper bound of what an encrypted file with this number of new filters has more than a plain one."""
    if footer.encryption is None:
        return 0
    return footer.file_bytes - footer.start + filters * 4 * MODULE_BYTES


def cipher_of(footer: Footer, key: ChunkKey) -> Cipher | None:
    """The cipher of a chunk's modules; None if the chunk isn't encrypted."""
    return None if footer.encryption is None else footer.encryption.ciphers.get(key)


def sealed(footer: Footer, part: Part, plaintext: Sequence[bytes | bytearray]) -> Sequence[bytes | bytearray]:
    """A filter's header and bits, or a page index, as they are stored."""
    cipher = cipher_of(footer, part.key)
    if cipher is None:
        return plaintext
    return [cipher.encrypt(data, kind) for data, kind in zip(plaintext, _KINDS[part.kind], strict=True)]


def digest(footer: Footer, part: Part, stored: bytes) -> int | None:
    """The XXH64 of a page index in plain bytes; None if it can't be decrypted."""
    cipher = cipher_of(footer, part.key)
    try:
        return kernels.xxh64(stored if cipher is None else cipher.decrypt(stored, *_KINDS[part.kind]))
    except WrongModule:
        return None


def same(footer: Footer, planned: bytes) -> bool:
    """Whether a footer is the planned one. What follows it in an encrypted file, a signature or padding, is new."""
    return footer.raw == planned if footer.encryption is None else planned.startswith(_raw(footer.top))


def tail(source: Source, old: Footer, new: bytes) -> bytes:
    """The end of the new file: the footer as it is stored, its length, the magic.

    Args:
        source: the original file.
        old: its footer, in plain text.
        new: the new footer, in plain text.
    """
    encryption = old.encryption
    if encryption is None or encryption.footer_cipher is None:
        raise ValueError("the footer's key isn't known")
    cipher = encryption.footer_cipher
    after = Footer(old.path, old.file_bytes, old.start, new)
    plaintext = b"".join(_sealed(old, after, encryption))
    if not encryption.plaintext_footer:
        return encrypted_tail(source, cipher, plaintext)
    footer = plaintext + cipher.signature(plaintext)
    return footer + len(footer).to_bytes(4, "little") + spec.MAGIC


def encrypted_tail(source: Source, cipher: Cipher, footer: bytes) -> bytes:
    """The end of a file whose footer is encrypted as that of `source` is."""
    start, stored, _ = read_stored(source)
    crypto = Struct("FileCryptoMetaData", stored, 0, Location(source.path, start, ""))
    module = stored[: crypto.end] + cipher.encrypt(footer, Kind.FOOTER)
    return module + len(module).to_bytes(4, "little") + spec.MAGIC_ENCRYPTED


def _sealed(old: Footer, new: Footer, encryption: Encryption) -> Iterator[bytes]:
    """Yield the parts of FileMetaData in which the metadata of encrypted columns are encrypted, without a signature
    and padding."""
    stored = Footer(old.path, old.file_bytes, old.start, encryption.stored)
    at = 0
    for key in new.chunk_keys():
        cipher = encryption.ciphers.get(key)
        if cipher is None:
            continue
        chunk = new.chunk_struct(key)
        yield new.raw[at : chunk.start]
        yield _sealed_chunk(old.chunk_struct(key), chunk, stored.chunk_struct(key), cipher)
        at = chunk.end
    yield new.raw[at : new.top.end]


def _sealed_chunk(old: Struct, new: Struct, stored: Struct, cipher: Cipher) -> bytes:
    """A ColumnChunk as it is stored: the old one with the new one's locations and metadata."""
    raw = stored.data[stored.start : stored.end]
    if _raw(old) == _raw(new):
        return raw
    chunk = Struct("ColumnChunk", raw, 0, stored.location)
    metadata, before = (each.struct("meta_data", "ColumnMetaData") for each in (new, old))
    assert metadata is not None and before is not None  # noqa: S101  its key is known
    values: dict[str, Value | None] = {name: new.integer(name) for name in OF_CHUNK}
    edits = []
    if chunk.span("encrypted_column_metadata") is None:
        values["meta_data"] = _raw(metadata)
    elif _raw(metadata) != _raw(before):
        values["encrypted_column_metadata"] = cipher.encrypt(_raw(metadata), Kind.COLUMN_METADATA)
        shortened = chunk.struct("meta_data", "ColumnMetaData")
        if shortened is not None:
            edits = set_fields(shortened, {name: metadata.integer(name) for name in (OFFSET, LENGTH)})
    return apply_edits(raw, edits + set_fields(chunk, values))


def reopened(written: Source, old: Footer) -> tuple[Footer, Source]:
    """The footer of the new file in plain text, and the source from which its filters are read. Raises WriteError."""
    encryption = old.encryption
    if encryption is None:
        return read_footer(written), written
    from bloomcli.formats.parquet.decryption import PlainSource, with_plain_columns

    start, stored, _ = read_stored(written)
    cipher = encryption.footer_cipher
    assert cipher is not None  # noqa: S101  `tail` raises
    try:
        if not encryption.plaintext_footer:
            crypto = Struct("FileCryptoMetaData", stored, 0, Location(written.path, start, ""))
            stored = cipher.decrypt(stored[crypto.end :], Kind.FOOTER)
        footer = Footer(written.path, written.size, start, stored)
        end = footer.top.end
        if encryption.plaintext_footer and cipher.signature(stored[:end], stored[end:][:NONCE_BYTES]) != stored[end:]:
            raise WrongModule("its signature is another one")
    except WrongModule as error:
        raise WriteError(f"the footer that was written can't be read: {error}", path=old.path) from None
    footer = with_plain_columns(footer, replace(encryption, stored=stored))
    return footer, PlainSource(written, footer)


def _raw(struct: Struct) -> bytes:
    return struct.data[struct.start : struct.end]
