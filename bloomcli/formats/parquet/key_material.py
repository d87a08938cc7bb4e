"""The keys for one file: those that the user gives, and those that the file has wrapped by a master key.

parquet-java's and Arrow's PropertiesDrivenCryptoFactory store "key material" as JSON in the key metadata, or in a
file next to the data. It names a master key of a key management service (KMS), and the data key as this has
wrapped it.

Source: parquet-java's KeyMaterial, KeyMetadata, FileKeyUnwrapper, LocalWrapKmsClient and InMemoryKMS.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from bloomcli.errors import BloomError, CorruptFile, UsageError
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.encryption import Algorithm, Cipher, WrongModule
from bloomcli.storage.registry import open_source
from bloomcli.words import counted

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
        given = self._keys.footer_key
        return given if isinstance(given, bytes) else self._by_metadata(metadata)

    def column_key(self, path: str, metadata: bytes | None) -> bytes | None:
        """A column's key; None if it isn't known. Raises as `_wrapped`."""
        given = self._keys.column_keys.get(path)
        return given if isinstance(given, bytes) else self._by_metadata(metadata)

    def _by_metadata(self, metadata: bytes | None) -> bytes | None:
        if not metadata:
            return None
        given = self._keys.keys.get(metadata.decode("utf-8", "backslashreplace"))
        if isinstance(given, bytes):
            return given
        if metadata not in self._unwrapped:
            material = self._material(metadata)
            self._unwrapped[metadata] = None if material is None else self._wrapped(material)
        return self._unwrapped[metadata]

    def wanted(self, metadata: bytes | None) -> str | None:
        """The id by which ``--key`` gives the key that a file names; None if the file names none that is text."""
        material = _json(metadata) if metadata else None
        try:
            found = None if material is None or metadata is None else self._material(metadata)
        except BloomError:
            found = None
        name = metadata if found is None else _word(found, "masterKeyID")
        if not name or (material is not None and found is None):
            return None
        text = name if isinstance(name, str) else name.decode("utf-8", "replace")
        return text if text.isprintable() else None

    def _material(self, metadata: bytes) -> Mapping[str, Any] | None:
        """The key material that key metadata hold, or refer to in the file next to the data; None if they are others.

        Raises CorruptFile, and what reading that file raises.
        """
        found = _json(metadata)
        if found is None or found.get("keyMaterialType") != _MATERIAL:
            return None
        if found.get("internalStorage") is not False:
            return found
        reference = _word(found, "keyReference")
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
        given = self._keys.keys.get(master)
        if isinstance(given, bytes):
            local = _json(wrapped)  # LocalWrapKmsClient
            inner = wrapped if local is None else str(local.get("encryptedKey", ""))
            return self._opened(inner, given, master.encode())
        if self._instance not in self._clients:
            self._clients[self._instance] = self._keys.client(*self._instance)
        client = self._clients[self._instance]
        if client is None:
            return None
        try:
            found = client.unwrap_key(wrapped, master)
        except Exception as error:  # noqa: BLE001  the class is the user's
            raise UsageError(
                f"the KMS doesn't unwrap a key by the master key {master}: {type(error).__name__}", path=self._path
            ) from None
        if not isinstance(found, bytes) or len(found) not in (16, 24, 32):
            raise UsageError(f"the KMS returns no key for the master key {master}", path=self._path)
        return found

    def _opened(self, wrapped: str, key: bytes, aad: bytes) -> bytes:
        try:
            found = Cipher(key, Algorithm("AES_GCM_V1", None)).opened(self._decoded(wrapped), aad)
        except WrongModule as error:
            raise self._fault(str(error)) from None
        if len(found) not in (16, 24, 32):
            raise self._fault(f"a wrapped key has {counted(len(found), 'byte')}")
        return found

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
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _word(material: Mapping[str, Any], name: str) -> str | None:
    found = material.get(name)
    return found if isinstance(found, str) else None
