"""Modules of Parquet's modular encryption, and the keys of a file. One function encrypts, one decrypts, and both know
every module's AAD.

    module   int32 LE length | nonce (12) | ciphertext | tag (16)     AES-GCM
    page     int32 LE length | nonce (12) | ciphertext                AES-CTR, with AES_GCM_CTR_V1
    AAD      prefix | aad_file_unique | type (1) | row group, column, page (int16 LE each; those that the type has)

parquet-java encrypts a buffer that is longer than the Thrift structure in it: what follows the structure is ignored.
DuckDB stores no `aad_file_unique`, and its modules have no AAD at all.

parquet-java's and Arrow's PropertiesDrivenCryptoFactory store "key material" as JSON in the key metadata, or in a
file next to the data. It names a master key of a key management service (KMS), and the data key as this has wrapped
it.

Source: the Parquet format's Encryption.md (4.4, 5.1, 5.2); parquet-java's KeyMaterial, KeyMetadata, FileKeyUnwrapper,
LocalWrapKmsClient and InMemoryKMS.
"""

from __future__ import annotations

import base64
import json
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from os import urandom
from typing import Any, Final, NamedTuple

from bloomcli.errors import BloomError, CorruptFile, UnsupportedError, UsageError, needed
from bloomcli.formats.keys import Keys, key_hint
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.file import ChunkKey
from bloomcli.storage.registry import open_source
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
    """The prefix and the file's own part; None if modules have no AAD."""


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
        self, plaintext: bytes | bytearray, kind: Kind, page: int | None = None, nonce: bytes | None = None
    ) -> bytes:
        """A whole module with these plain bytes, and a nonce of its own unless one is given."""
        nonce = nonce or urandom(NONCE_BYTES)
        if kind in self._by_ctr:
            data = self._counted(nonce, plaintext)
        else:
            data = self._aes.encrypt(nonce, plaintext, self._aad_of(kind, page))
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
    aes_gcm = union.struct(name, "AesGcm")
    assert aes_gcm is not None  # noqa: S101  `member` saw a structure
    unique = aes_gcm.binary("aad_file_unique")
    if unique is None:
        return Algorithm(name, None)
    prefix = aes_gcm.binary("aad_prefix")
    user_prefix = keys.aad_prefix if isinstance(keys.aad_prefix, bytes) else None
    if prefix is not None and user_prefix is not None and prefix != user_prefix:
        raise UsageError(
            "the file stores another AAD prefix than the one that is given: it may be another file of the same keys",
            path=holder.location.path,
        )
    if prefix is None and user_prefix is None and aes_gcm.truth("supply_aad_prefix"):
        raise UsageError(
            "the file doesn't store its AAD prefix",
            path=holder.location.path,
            hint="give it: --aad-prefix text:WORDS, hex:DIGITS or base64:TEXT",
        )
    return Algorithm(name, (prefix or user_prefix or b"") + unique)


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
    """None if the footer's key isn't known; then a signature isn't verified."""
    ciphers: dict[ChunkKey, Cipher]
    """The ciphers of the chunks that are encrypted and whose key is known."""
    key_ids: dict[str, str | None]
    """What the file calls the keys of the encrypted columns, by the columns' paths."""
    closed: dict[int, str]
    """The encrypted columns whose keys aren't known: their paths, by ordinal."""
    unused: list[str]
    """The paths for which keys are given, and which no column with a key of its own has."""
    external_material: bool
    """The keys are wrapped in a file next to the data (`material_path`)."""

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


_MATERIAL: Final = "PKMT1"
_MATERIAL_MOST: Final = 16 << 20
"""The largest file of key material: a few hundred bytes for each column."""


class KeyRing:
    """The keys for one file: those that are given, by place or by what the file calls them, and those that the file
    has wrapped by a master key."""

    def __init__(self, keys: Keys, path: str) -> None:
        self._keys = keys
        self._path = path
        self._clients: dict[tuple[str | None, str | None], Any] = {}
        self._unwrapped: dict[bytes, bytes | None] = {}
        self._instance: tuple[str | None, str | None] = (None, None)
        self._external: Mapping[str, Any] | None = None

    @property
    def external(self) -> bool:
        """Whether key material was read from a file next to the data."""
        return self._external is not None

    def footer_key(self, metadata: bytes | None) -> bytes | None:
        """The footer's key; None if it isn't known. Raises as `_wrapped`."""
        key = self._keys.footer_key
        return key if isinstance(key, bytes) else self._by_metadata(metadata)

    def column_key(self, path: str, metadata: bytes | None) -> bytes | None:
        """A column's key; None if it isn't known. Raises as `_wrapped`."""
        key = self._keys.column_keys.get(path)
        return key if isinstance(key, bytes) else self._by_metadata(metadata)

    def _by_metadata(self, metadata: bytes | None) -> bytes | None:
        if not metadata:
            return None
        key = self._keys.keys.get(metadata.decode("utf-8", "backslashreplace"))
        if isinstance(key, bytes):
            return key
        if metadata not in self._unwrapped:
            material = self._material(metadata)
            self._unwrapped[metadata] = None if material is None else self._wrapped(material)
        return self._unwrapped[metadata]

    def wanted(self, metadata: bytes | None) -> str | None:
        """The id by which ``--key`` gives the key that a file names; None if the file names none that is text."""
        material = _json(metadata) if metadata else None
        try:
            key_material = None if material is None or metadata is None else self._material(metadata)
        except BloomError:
            key_material = None
        name = metadata if key_material is None else _word(key_material, "masterKeyID")
        if not name or (material is not None and key_material is None):
            return None
        text = name if isinstance(name, str) else name.decode("utf-8", "replace")
        return text if text.isprintable() else None

    def _material(self, metadata: bytes) -> Mapping[str, Any] | None:
        """The key material that key metadata hold, or refer to in the file next to the data; None if they are others.

        Raises CorruptFile, and what reading that file raises.
        """
        material = _json(metadata)
        if material is None or material.get("keyMaterialType") != _MATERIAL:
            return None
        if material.get("internalStorage") is not False:
            return material
        reference = _word(material, "keyReference")
        if self._external is None:
            with open_source(material_path(self._path)) as source:
                if source.size > _MATERIAL_MOST:
                    raise self._fault(f"its file has {counted(source.size, 'byte')}")
                self._external = _json(source.read_at(0, source.size))
                if self._external is None:
                    raise self._fault(f"{source.path} isn't a JSON object")
        kept = self._external.get(reference or "")
        inner = _json(kept) if isinstance(kept, str) else None
        if inner is None:
            raise self._fault(f"{material_path(self._path)} has no key {reference!r}")
        return inner

    def _wrapped(self, material: Mapping[str, Any]) -> bytes | None:
        """The data key in a file's key material.

        Double wrapping: the master key wraps a key, which wraps the data key by AES-GCM, with the decoded id of that
        key as AAD. Source: parquet-java's KeyMaterial and FileKeyUnwrapper.

        Raises:
            CorruptFile: the material isn't what it says, or the key is another one.
            UsageError: the KMS refuses.
        """
        if material.get("isFooterKey"):
            self._instance = (_word(material, "kmsInstanceID"), _word(material, "kmsInstanceURL"))
        master, wrapped = _word(material, "masterKeyID"), _word(material, "wrappedDEK")
        if master is None or wrapped is None:
            raise self._fault("it has no masterKeyID or no wrappedDEK")
        if not material.get("doubleWrapping"):
            return self._by_master(master, wrapped)
        key_id, wrapped_key = _word(material, "keyEncryptionKeyID"), _word(material, "wrappedKEK")
        if key_id is None or wrapped_key is None:
            raise self._fault("it has no keyEncryptionKeyID or no wrappedKEK")
        outer = self._by_master(master, wrapped_key)
        return None if outer is None else self._opened(wrapped, outer, self._decoded(key_id))

    def _by_master(self, master: str, wrapped: str) -> bytes | None:
        """A key that a master key wraps: by the given master key, or by the KMS."""
        master_key = self._keys.keys.get(master)
        if isinstance(master_key, bytes):
            local = _json(wrapped)  # LocalWrapKmsClient
            inner = wrapped if local is None else str(local.get("encryptedKey", ""))
            return self._opened(inner, master_key, master.encode())
        if self._instance not in self._clients:
            self._clients[self._instance] = self._keys.client(*self._instance)
        client = self._clients[self._instance]
        if client is None:
            return None
        try:
            key = client.unwrap_key(wrapped, master)
        except Exception as error:  # noqa: BLE001  the class is the user's
            raise UsageError(
                f"the KMS doesn't unwrap a key by the master key {master}: {type(error).__name__}", path=self._path
            ) from None
        if not isinstance(key, bytes) or len(key) not in (16, 24, 32):
            raise UsageError(f"the KMS returns no key for the master key {master}", path=self._path)
        return key

    def _opened(self, wrapped: str, key: bytes, aad: bytes) -> bytes:
        try:
            unwrapped_key = Cipher(key, Algorithm("AES_GCM_V1", None)).opened(self._decoded(wrapped), aad)
        except WrongModule as error:
            raise self._fault(str(error)) from None
        if len(unwrapped_key) not in (16, 24, 32):
            raise self._fault(f"a wrapped key has {counted(len(unwrapped_key), 'byte')}")
        return unwrapped_key

    def _decoded(self, text: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise self._fault("a wrapped key isn't base64") from None

    def _fault(self, reason: str) -> CorruptFile:
        return CorruptFile(
            f"the file's key material can't be used: {reason}",
            path=self._path,
            hint="give the master keys that the file was written with, or get the file from its source again, with "
            f"{material_path(self._path)} if its writer made one",
        )


def material_path(path: str) -> str:
    """The file next to a data file in which parquet-java stores key material that isn't in the data file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}_KEY_MATERIAL_FOR_{name}.json"


def _json(text: bytes | str) -> dict[str, Any] | None:
    """A JSON object; None for anything else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _word(material: Mapping[str, Any], name: str) -> str | None:
    word = material.get(name)
    return word if isinstance(word, str) else None
