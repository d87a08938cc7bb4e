"""Modules of Parquet's modular encryption: one function encrypts, one decrypts, and both know every module's AAD.

    module   int32 LE length | nonce (12) | ciphertext | tag (16)     AES-GCM
    page     int32 LE length | nonce (12) | ciphertext                AES-CTR, with AES_GCM_CTR_V1
    AAD      prefix | aad_file_unique | type (1) | row group, column, page (int16 LE each; those that the type has)

parquet-java encrypts a buffer that is longer than the Thrift structure in it: what follows the structure is ignored.
DuckDB stores no `aad_file_unique`, and its modules have no AAD at all.

Source: the Parquet format's Encryption.md (4.4, 5.1, 5.2).
"""

from __future__ import annotations

import shlex
import struct
import threading
from dataclasses import dataclass
from enum import IntEnum
from os import urandom
from typing import Final, NamedTuple

from bloomcli.errors import UnsupportedError, UsageError, needed
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.file import ChunkKey
from bloomcli.words import counted

LENGTH_BYTES: Final = 4
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
MODULE_BYTES: Final = LENGTH_BYTES + NONCE_BYTES + TAG_BYTES
"""What a module has more than its plain bytes, with AES-GCM."""
SIGNATURE_BYTES: Final = NONCE_BYTES + TAG_BYTES
_ORDINAL_MOST: Final = (1 << 15) - 1
_CTR_START: Final = b"\0\0\0\1"
_AAD_PARTS: Final = tuple(struct.Struct(f"<B{count}h") for count in range(4))


class Kind(IntEnum):
    """The types of modules."""

    FOOTER = 0
    COLUMN_METADATA = 1
    DATA_PAGE = 2
    DICTIONARY_PAGE = 3
    DATA_PAGE_HEADER = 4
    DICTIONARY_PAGE_HEADER = 5
    COLUMN_INDEX = 6
    OFFSET_INDEX = 7
    FILTER_HEADER = 8
    FILTER_BITSET = 9


class WrongModule(Exception):
    """A module can't be decrypted. The reason is for callers, who know its place."""


class Algorithm(NamedTuple):
    """How a file is encrypted."""

    name: str
    """`AES_GCM_V1` or `AES_GCM_CTR_V1`."""
    aad: bytes | None
    """The prefix and the file's own part; None: modules have no AAD."""


class Cipher:
    """Encrypts and decrypts the modules of a column chunk, or the footer, by one key."""

    __slots__ = ("_aad", "_aes", "_by_ctr", "_mutex", "_stream", "_wrong", "key", "ordinals")

    def __init__(self, key: bytes, algorithm: Algorithm, ordinals: tuple[int, ...] = ()) -> None:
        """`ordinals`: those of the chunk's row group and column. Raises UnsupportedError without `cryptography`."""
        with needed("encrypted files need", "encryption"):
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        self._aes = AESGCM(key)
        self._wrong = InvalidTag, ValueError
        self.key = key
        self._aad = algorithm.aad
        self._stream = None
        self._by_ctr: tuple[Kind, ...] = ()
        if algorithm.name == "AES_GCM_CTR_V1":
            from cryptography.hazmat.primitives.ciphers import Cipher as Stream
            from cryptography.hazmat.primitives.ciphers.algorithms import AES
            from cryptography.hazmat.primitives.ciphers.modes import CTR

            # one for all pages, each with its nonce: to make one takes longer than to decrypt 8 KiB
            self._stream = Stream(AES(key), CTR(bytes(NONCE_BYTES) + _CTR_START)).encryptor()
            self._mutex = threading.Lock()
            self._by_ctr = Kind.DATA_PAGE, Kind.DICTIONARY_PAGE
        self.ordinals = ordinals

    @property
    def has_aad(self) -> bool:
        """Whether modules have an AAD: DuckDB's have none."""
        return self._aad is not None

    def decrypt(self, module: bytes | memoryview, kind: Kind, page: int | None = None) -> bytes:
        """The plain bytes of a whole module. `page`: the data page's ordinal. Raises WrongModule."""
        by_ctr, size = kind in self._by_ctr, len(module)
        least = MODULE_BYTES - TAG_BYTES if by_ctr else MODULE_BYTES
        if size < least or module_length(module) != size:
            raise WrongModule(f"it isn't a module of its {counted(size, 'byte')}")
        body = memoryview(module)[LENGTH_BYTES:]  # a copy of a page takes longer than its decryption
        if by_ctr:
            return self._counted(body[:NONCE_BYTES], body[NONCE_BYTES:])
        return self.opened(body, self._aad_of(kind, page))

    def opened(self, body: bytes | memoryview, aad: bytes | None) -> bytes:
        """The plain bytes of nonce, ciphertext and tag, with this AAD. Raises WrongModule."""
        try:
            return self._aes.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], aad)
        except self._wrong:
            raise WrongModule("the key or the AAD prefix is another one, or the bytes were changed") from None

    def encrypt(
        self, plain: bytes | bytearray, kind: Kind, page: int | None = None, nonce: bytes | None = None
    ) -> bytes:
        """A whole module with these plain bytes, and a nonce of its own unless one is given."""
        nonce = nonce or urandom(NONCE_BYTES)
        if kind in self._by_ctr:
            data = self._counted(nonce, plain)
        else:
            data = self._aes.encrypt(nonce, plain, self._aad_of(kind, page))
        return b"".join((struct.pack("<I", NONCE_BYTES + len(data)), nonce, data))

    def signature(self, footer: bytes, nonce: bytes | None = None) -> bytes:
        """The nonce and the tag by which a footer in plain text is signed."""
        module = self.encrypt(footer, Kind.FOOTER, nonce=nonce)
        return module[LENGTH_BYTES : LENGTH_BYTES + NONCE_BYTES] + module[-TAG_BYTES:]

    def _counted(self, nonce: bytes | memoryview, data: bytes | bytearray | memoryview) -> bytes:
        assert self._stream is not None  # noqa: S101  `_by_ctr` names types
        with self._mutex:
            self._stream.reset_nonce(b"".join((nonce, _CTR_START)))
            return self._stream.update(data)

    def _aad_of(self, kind: Kind, page: int | None) -> bytes | None:
        if self._aad is None:
            return None
        numbers = () if kind is Kind.FOOTER else self.ordinals if page is None else (*self.ordinals, page)
        try:
            return self._aad + _AAD_PARTS[len(numbers)].pack(kind, *numbers)
        except struct.error:
            raise WrongModule(f"the AAD numbers row groups, columns and pages up to {_ORDINAL_MOST}") from None


def module_length(start: bytes | bytearray | memoryview) -> int:
    """The bytes of a module with its length field, by its first four bytes. It isn't checked."""
    return LENGTH_BYTES + int(struct.unpack_from("<I", start)[0])


def algorithm_of(holder: Struct, keys: Keys) -> Algorithm:
    """The algorithm that `encryption_algorithm` of FileMetaData or of FileCryptoMetaData states.

    Raises:
        CorruptFile: the field states none.
        UnsupportedError: it is an unknown one.
        UsageError: the AAD prefix isn't stored, and not given.
    """
    union = holder.struct("encryption_algorithm", "EncryptionAlgorithm")
    if union is None:
        raise holder.location.fault(
            f"{holder.name} has no encryption_algorithm", holder.start, "encryption_algorithm"
        )
    name = union.member()
    if name is None:
        raise UnsupportedError("the file is encrypted by an unknown algorithm", path=holder.location.path)
    found = union.struct(name, "AesGcm")
    assert found is not None  # noqa: S101  `member` saw a structure
    unique = found.binary("aad_file_unique")
    if unique is None:
        return Algorithm(name, None)
    prefix = found.binary("aad_prefix")
    given = keys.aad_prefix if isinstance(keys.aad_prefix, bytes) else None
    if prefix is not None and given is not None and prefix != given:
        raise UsageError(
            "the file stores another AAD prefix than the one that is given: it may be another file of the same keys",
            path=holder.location.path,
        )
    if prefix is None and given is None and found.truth("supply_aad_prefix"):
        raise UsageError(
            "the file doesn't store its AAD prefix",
            path=holder.location.path,
            hint="give it: --aad-prefix text:WORDS, hex:DIGITS or base64:TEXT",
        )
    return Algorithm(name, (prefix or given or b"") + unique)


@dataclass(frozen=True, slots=True)
class Encryption:
    """How a file is encrypted, and what its keys open."""

    algorithm: Algorithm
    plaintext_footer: bool
    """The footer is in plain text, with a signature."""
    stored: bytes
    """FileMetaData in plain text, with the columns' metadata as they are stored, and its signature."""
    footer_key_id: str | None
    """What the file calls the footer's key."""
    footer_cipher: Cipher | None
    """None: the footer's key isn't known, and a signature isn't verified."""
    ciphers: dict[ChunkKey, Cipher]
    """The ciphers of the chunks that are encrypted and whose key is known."""
    key_ids: dict[str, str | None]
    """What the file calls the keys of the encrypted columns, by the columns' paths."""
    closed: dict[int, str]
    """The encrypted columns whose keys aren't known: their paths, by ordinal."""
    unused: list[str]
    """The paths for which keys are given, and which no column with a key of its own has."""
    external_material: bool
    """The keys are wrapped in a file next to the data (`key_material.material_path`)."""

    @property
    def columns_like_footer(self) -> frozenset[int]:
        """The ordinals of the columns that are encrypted by AES-GCM with the key of the footer, which is encrypted
        too."""
        own = self.footer_cipher
        if own is None or self.plaintext_footer or self.algorithm.name != "AES_GCM_V1":
            return frozenset()
        return frozenset(key.column for key, cipher in self.ciphers.items() if cipher.key == own.key)

    def details(self) -> tuple[tuple[str, str], ...]:
        """The facts for `bloom inspect`: the algorithm, the footer, and which column is under which key."""
        named = {path: "without a name" if key is None else key for path, key in self.key_ids.items()}
        by = "" if self.footer_key_id is None else f" by {self.footer_key_id}"
        unknown = "not verified: its key isn't given" + (by and f" ({self.footer_key_id})")
        verified = unknown if self.footer_cipher is None else f"verified{by}"
        unknown_keys = set(self.closed.values())
        opened = [f"{path} ({key})" for path, key in named.items() if path not in unknown_keys]
        closed = [f"{path} ({key})" for path, key in named.items() if path in unknown_keys]
        return (
            ("encryption", self.algorithm.name + ("" if self.algorithm.aad is not None else ", without AAD")),
            ("footer signature", verified) if self.plaintext_footer else ("footer", f"encrypted{by}"),
            *((("encrypted columns", _some(opened)),) if opened else ()),
            *((("not readable", f"{_some(closed)}: without the key"),) if closed else ()),
            *((("keys not used", self._unused),) if self.unused else ()),
        )

    @property
    def _unused(self) -> str:
        return f"no column with a key of its own is named {_some(self.unused)}"

    def hint(self, path: str) -> str:
        """How a column's key is given."""
        return key_hint(self.key_ids.get(path), path) + (f"; {self._unused}" if self.unused else "")


_LISTED: Final = 20


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def key_hint(key_id: str | None, column: str | None = None) -> str:
    """The hint with the options by which a key is given: that of a column, or of the footer."""
    option = ["--footer-key", "env:NAME"] if column is None else ["--column-key", f"{column}=env:NAME"]
    named = "" if key_id is None else f", or by the file's name for it, {shlex.join(['--key', f'{key_id}=env:NAME'])}"
    return f"give its key: {shlex.join(option)}{named}"
