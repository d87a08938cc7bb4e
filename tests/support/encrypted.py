"""Parquet files encrypted by pyarrow, with keys that exist only here."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.encryption import MODULE_BYTES, Kind, module_length
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.storage.registry import open_source


class OpenKms(pe.KmsClient):
    """A key service that hides nothing: wrapping is base64."""

    def __init__(self, config: Any) -> None:  # noqa: ARG002  pyarrow's signature
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:  # noqa: ARG002
        """The key in base64."""
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:  # noqa: ARG002
        """The key from base64."""
        return base64.b64decode(wrapped_key)


MASTERS: Final = {"footer": b"0123456789012345", "one": b"1234567890123450", "two": b"2345678901234501"}
"""Master keys by their names."""


class WrappingKms(OpenKms):
    """Wraps by AES-GCM as parquet-java's InMemoryKMS does."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        """Nonce, ciphertext and tag in base64; the AAD is the master key's name."""
        nonce = os.urandom(12)
        sealed = AESGCM(MASTERS[master_key_identifier]).encrypt(nonce, key_bytes, master_key_identifier.encode())
        return base64.b64encode(nonce + sealed)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        """The key that was wrapped."""
        raw = base64.b64decode(wrapped_key)
        return AESGCM(MASTERS[master_key_identifier]).decrypt(raw[:12], raw[12:], master_key_identifier.encode())


class LocalKms(WrappingKms):
    """Wraps as parquet-java's LocalWrapKmsClient does."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        """JSON with what `WrappingKms` returns."""
        inner = super().wrap_key(key_bytes, master_key_identifier).decode()
        return json.dumps({"masterKeyVersion": "NO_VERSION", "encryptedKey": inner}).encode()

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        """The key that was wrapped."""
        return super().unwrap_key(json.loads(wrapped_key)["encryptedKey"], master_key_identifier)


def write_encrypted(
    path: Path,
    table: pa.Table,
    *,
    rows: int = 50,
    index: bool = False,
    dictionary: bool = True,
    kms: type[pe.KmsClient] = OpenKms,
    layout: Mapping[str, Any] = {},
    **options: Any,
) -> Path:
    """Write a table with the master key `footer`. The options are those of EncryptionConfiguration; `index`: with a
    page index; `dictionary`: with dictionaries; `layout`: more options of the writer."""
    options = {"encryption_algorithm": "AES_GCM_V1"} | options
    config = pe.EncryptionConfiguration(footer_key="footer", cache_lifetime=timedelta(minutes=5), **options)
    properties = pe.CryptoFactory(kms).file_encryption_properties(pe.KmsConnectionConfig(), config, str(path))
    more: dict[str, Any] = {"compression": "none", "write_page_index": index, "use_dictionary": dictionary, **layout}
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties, **more) as writer:
        writer.write_table(table, row_group_size=rows)
    return path


FILES: Final = Path(__file__).parents[2] / "fixtures" / "encrypted"
DIGITS: Final = b"0123456789012345", b"1234567890123450", b"1234567890123451"
"""The keys of Apache's test data: of the footer, and of two columns."""


def counted(size: int, first: int, last: int | None = None) -> bytes:
    """A key of digits that go on counting from `first`; with its last byte if that is another one."""
    key = bytes((first + i) % 10 for i in range(size))
    return key if last is None else key[:-1] + bytes([last])


_JAVA: Final = {"kf": counted(16, 0), "kc1": counted(16, 1, 0), "kc2": counted(16, 1, 1)}
_SPARK: Final = {
    "footerkey": counted(16, 0)[:10] + bytes(range(10, 16)),
    "colkey1": (b"\0\1\2" * 6)[:16],
    "colkey2": b"\1" * 16,
}
_TESTING: Final = dict(zip(("kf", "kc1", "kc2"), DIGITS, strict=True))

KEYS: Final[dict[str, dict[str, Any]]] = {
    "java_columns_ctr": {"keys": _JAVA},
    "java_columns_gcm": {"keys": _JAVA},
    "java_columns_gcm_aes256_aad_stored": {
        "footer_key": counted(32, 0),
        "column_keys": {"id": counted(32, 1, 0), "name": counted(32, 1, 1)},
        "aad_prefix": b"tester",
    },
    "java_columns_gcm_plaintext_footer": {"keys": _JAVA},
    "java_uniform_gcm": {"keys": _JAVA},
    "spark_columns_double": {"keys": _SPARK},
    "spark_columns_external": {"keys": _SPARK},
    "pyarrow_columns_plaintext_footer_nofilter": {"keys": _TESTING},
    "pyarrow_uniform_gcm_aad_not_stored_nofilter": {"footer_key": DIGITS[0], "aad_prefix": b"tester"},
    "polars_columns_nofilter": {"footer_key": DIGITS[0], "column_keys": {"id": DIGITS[1], "name": DIGITS[2]}},
    "polars_uniform_nofilter": {"footer_key": DIGITS[0]},
    "duckdb_uniform": {"footer_key": DIGITS[0]},
    "encrypt_columns_and_footer_bloom_filter": {"keys": _TESTING},
}
"""The keys of each file of `fixtures/encrypted`, as `bloomcli.Keys` takes them."""


def file(name: str) -> Path:
    """A file of `fixtures/encrypted`."""
    return FILES / f"{name}.parquet"


def rows_by_arrow(name: str) -> list[dict[str, Any]]:
    """The rows of a file that has one key, as pyarrow reads them."""
    given = KEYS[name]
    prefix = {"aad_prefix": given["aad_prefix"]} if "aad_prefix" in given else {}
    properties = pe.create_decryption_properties(given.get("footer_key") or given["keys"]["kf"], **prefix)
    found: list[dict[str, Any]] = pq.read_table(file(name), decryption_properties=properties).to_pylist()
    return found


def empty_filters(path: Path, keys: Keys) -> None:
    """Encrypt zeros in place of each filter's bits."""
    with open_source(path) as source:
        file = ParquetFile(source, keys)
        encryption = file.footer.encryption
        assert encryption is not None
        found = [(c.row_group, c.column.index, c.bloom_filter_offset or 0) for c in file.filters.locations(None)]
        ciphers = encryption.ciphers
    data = bytearray(path.read_bytes())
    for row_group, column, at in found:
        at += module_length(data[at : at + 4])
        size = module_length(data[at : at + 4])
        cipher = ciphers.get((row_group, column))
        if cipher is not None:  # otherwise the column is in plain text
            data[at : at + size] = cipher.encrypt(bytes(size - MODULE_BYTES), Kind.FILTER_BITSET)
    path.write_bytes(data)
