"""Makes the header of a NumPy file with a bitset. A split-block bitset has the shape (blocks, 8) and little-endian
unsigned 32-bit words; others are one-dimensional, with little-endian unsigned 64-bit words.

Source: the NPY format, version 1.0 (numpy.lib.format). The bitset's bytes follow the header unchanged.
"""

from __future__ import annotations

from typing import Final

_MAGIC: Final = b"\x93NUMPY\x01\x00"
_ALIGNMENT: Final = 64


def header(nbytes: int, *, blocks: bool) -> bytes:
    """Return the header for a bitset of `nbytes` bytes. The header's length is a multiple of 64 bytes."""
    kind, shape = ("<u4", f"({nbytes // 32}, 8)") if blocks else ("<u8", f"({nbytes // 8},)")
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    padding = -(len(_MAGIC) + 2 + len(text) + 1) % _ALIGNMENT
    text += b" " * padding + b"\n"
    return _MAGIC + len(text).to_bytes(2, "little") + text
