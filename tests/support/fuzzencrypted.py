"""Mutations of encrypted Parquet files that get past the cipher: the footer in plain text is mutated as every file's
is, and then encrypted or signed again by its key. Half of the mutations change the stored bytes instead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from bloomcli.errors import BloomError
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.encryption import Encryption, Kind
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.storage.registry import open_source
from support import footers, fuzzparquet


def mutate(random: Random, data: bytes, keys: dict[str, Any]) -> bytes:
    """The file with one mutation. `keys`: those of `support.encrypted.KEYS`."""
    encryption = _encryption(data, keys) if random.random() < 0.7 else None
    if encryption is None or encryption.footer_cipher is None:
        return fuzzparquet.mutate_bytes(random, data)
    cipher, plain = encryption.footer_cipher, encryption.stored
    body, stored = footers.split(data)
    if encryption.plaintext_footer:
        plain = plain[:-28]
    changed = fuzzparquet.mutate(random, footers.join(body, plain))
    body, plain = footers.split(changed) if changed.endswith(b"PAR1") else (body, changed[len(body) : -8])
    if encryption.plaintext_footer:
        return footers.join(body, plain + cipher.signature(plain))
    crypto = stored[: len(stored) - int.from_bytes(_module(stored), "little") - 4]
    return footers.join(body, crypto + cipher.encrypt(plain, Kind.FOOTER), b"PARE")


def _module(stored: bytes) -> bytes:
    """The length of the footer's module, which ends where the stored footer does."""
    return next(
        stored[at : at + 4]
        for at in range(len(stored) - 4)
        if int.from_bytes(stored[at : at + 4], "little") == len(stored) - at - 4
    )


def _encryption(data: bytes, keys: dict[str, Any]) -> Encryption | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.parquet"
        path.write_bytes(data)
        try:
            with open_source(path) as source:
                return ParquetFile(source, Keys(**keys)).footer.encryption
        except BloomError:
            return None
