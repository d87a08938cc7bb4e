"""A bitset as a NumPy file: a split-block one as (blocks, 8) little-endian unsigned 32-bit words, others as longs.

Source: the NPY format, version 1.0 (numpy.lib.format). The bitset's own bytes follow the header as they are.
"""

from __future__ import annotations

from typing import Final

_MAGIC: Final = b"\x93NUMPY\x01\x00"
_ALIGNMENT: Final = 64


def header(nbytes: int, *, blocks: bool) -> bytes:
    """The header of a bitset's array; its length is a multiple of 64 bytes."""
    kind, shape = ("<u4", f"({nbytes // 32}, 8)") if blocks else ("<u8", f"({nbytes // 8},)")
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    padding = -(len(_MAGIC) + 2 + len(text) + 1) % _ALIGNMENT
    text += b" " * padding + b"\n"
    return _MAGIC + len(text).to_bytes(2, "little") + text
