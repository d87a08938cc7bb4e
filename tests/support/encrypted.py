"""Parquet files encrypted by pyarrow, with keys that exist only here."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


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


def write_encrypted(path: Path, table: pa.Table, *, rows: int = 50, **options: Any) -> Path:
    """Write a table with the master key `footer`. The options are those of EncryptionConfiguration."""
    options = {"encryption_algorithm": "AES_GCM_V1"} | options
    config = pe.EncryptionConfiguration(footer_key="footer", cache_lifetime=timedelta(minutes=5), **options)
    properties = pe.CryptoFactory(OpenKms).file_encryption_properties(pe.KmsConnectionConfig(), config, str(path))
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties, compression="none") as writer:
        writer.write_table(table, row_group_size=rows)
    return path
