"""Converts values for lookups: to the bytes that chunks may store for them, and to their hashes for an index.

This module imports little: a lookup in an index takes less time than importing the code that reads pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.answer import Lookup
from bloomcli.formats.base import HashedValues
from bloomcli.formats.parquet.bloom_filter import draft_hash
from bloomcli.model.file import Column
from bloomcli.values.literals import Literal, kind_of

if TYPE_CHECKING:
    import pyarrow as pa

_PHYSICAL: Final = frozenset(
    ("BOOLEAN", "INT32", "INT64", "INT96", "INT128", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
)
_LOGICAL: Final = frozenset(
    ("STRING", "CHAR", "ENUM", "JSON", "BSON", "UUID", "INTEGER", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "INTERVAL")
) | {"FLOAT16", "UNKNOWN", "GEOMETRY", "GEOGRAPHY"}
"""The logical types whose values can be hashed."""
_DECIMAL_BYTES: Final = 17
"""Bytes of the longest decimal: 128 bits, and one byte for the sign."""


def stored_forms(literal: Literal, column: Column) -> tuple[bytes, ...]:
    """The PLAIN bytes that a chunk may have stored for a literal.

    A DECIMAL in a BYTE_ARRAY should be as short as possible, but the specification doesn't require it. Writers that
    repeat the sign byte store other bytes, and so another hash, for the same number.
    """
    if column.physical != "BYTE_ARRAY" or kind_of(column) != "DECIMAL":
        return literal.encodings
    return tuple(
        (b"\xff" if shortest[0] & 0x80 else b"\0") * more + shortest
        for shortest in literal.encodings
        for more in range(max(_DECIMAL_BYTES - len(shortest), 0) + 1)
    )


def lookups_of(literals: Sequence[Literal], column: Column, *, draft: bool = False) -> Sequence[Lookup]:
    """The literals with their hashes.

    The result is cached for all row groups, and for files with the same column: `advise` looks up thousands of values
    in each row group.

    Args:
        literals: values of the column's type.
        column: a column of this type.
        draft: for filters of the 2018 drafts, which hash with Murmur3 instead of XXH64.
    """
    return _lookups(tuple(literals), column, draft)


@lru_cache(maxsize=64)
def _lookups(literals: tuple[Literal, ...], column: Column, draft: bool) -> Sequence[Lookup]:
    forms = [stored_forms(literal, column) for literal in literals]
    every = [form for some in forms for form in some]
    hashes = iter(map(draft_hash, every) if draft else _hashes(every))
    return [
        Lookup(
            literal.impossible,
            literal.unknowable,
            encodings,
            tuple(islice(hashes, len(encodings))),
            without_filter=literal.unknowable,
        )
        for literal, encodings in zip(literals, forms, strict=True)
    ]


def _hashes(forms: Sequence[bytes]) -> Sequence[int]:
    """The XXH64 of each form."""
    offsets = array("q", accumulate(map(len, forms), initial=0)).tobytes()
    hashes = bytearray(8 * len(forms))
    kernels.hash_binary(offsets, b"".join(forms), len(forms), hashes)
    return memoryview(hashes).cast("Q")


def hashed_values(texts: pa.LargeBinaryArray, column: Column) -> HashedValues:
    """Hash values of a column for a lookup in an index.

    In addition to Parquet's types, an index has INT128, for nanoseconds beyond 64 bits, and CHAR, texts whose
    trailing blanks have no meaning.

    Raises:
        LiteralError: a text isn't a value of the column's type.
        UnsupportedError: this version can't hash values of the column's type.
    """
    if column.physical not in _PHYSICAL or (column.logical is not None and kind_of(column) not in _LOGICAL):
        raise UnsupportedError(f"values of {column.physical} {column.logical or ''} can't be looked up in an index")
    from bloomcli.formats import wanted_values

    if kind_of(column) == "CHAR":
        column = replace(column, logical="STRING")
        texts = wanted_values.without_blanks(texts)
    wanted = wanted_values.wanted(texts, column, lambda literal: stored_forms(literal, column), "")
    booleans = len(wanted.forms) > 0 and not wanted.hashes
    return HashedValues(wanted.hashes, unhashed=booleans or wanted.nan is not None)
