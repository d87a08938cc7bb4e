"""The forms of values that `find` looks for in ORC files, and their hashes in ORC's filters."""

from __future__ import annotations

import pyarrow as pa

from bloomcli import kernels
from bloomcli.formats.orc import values
from bloomcli.formats.orc.column_reader import TIMESTAMPS
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.value_reader import MOMENT_BYTES
from bloomcli.model.file import Column

_NANOS_PER_MILLI = 1_000_000
_HASH_BYTES = 8


def moment(nanos: int) -> bytes:
    """A timestamp's bytes as `kernels.orc_moments` writes them."""
    millis, rest = divmod(nanos, _NANOS_PER_MILLI)
    wide = (millis & (1 << 64) - 1).to_bytes(8, "little")
    return wide + rest.to_bytes(MOMENT_BYTES - 8, "little")


def is_rounded_otherwise(moment: bytes) -> bool:
    """Whether ORC C++ hashes a timestamp as a millisecond later: before 1970, with a part of a millisecond."""
    millis, rest = moment[: MOMENT_BYTES - 4], moment[MOMENT_BYTES - 4 :]
    return int.from_bytes(millis, "little", signed=True) < 0 and any(rest)


def hashes_of(forms: pa.Array, orc: OrcType, typed: Column) -> bytes:
    """ORC's hashes of forms, uint64s in native order."""
    count = len(forms)
    if not count:
        return b""
    out = bytearray(count * _HASH_BYTES)
    if not pa.types.is_large_binary(forms.type):
        data = memoryview(forms.buffers()[1]).cast("B")
        width = forms.type.bit_width // 8
        if orc.kind in values.FLOATS:
            kernels.orc_hash_double(data, width, forms.offset, count, None, out)
        else:
            kernels.orc_hash_long(data, width, 1, forms.offset, count, None, out)
        return bytes(out)
    hashes = memoryview(out).cast("Q")
    one = bytearray(_HASH_BYTES)
    for at, form in enumerate(forms):
        data = form.as_buffer()
        if orc.kind in TIMESTAMPS:
            kernels.orc_hash_long(memoryview(data).cast("B")[:8], 8, 1, 0, 1, None, one)
            hashes[at] = int.from_bytes(one, "little")
        elif orc.kind == "DECIMAL":
            text = kernels.orc_decimal_text(memoryview(data).cast("B"), typed.scale)
            hashes[at] = kernels.orc_hash_bytes(text)
        elif orc.kind == "CHAR":
            hashes[at] = values.encoded_hash(bytes(data), orc, typed)
        else:
            hashes[at] = kernels.orc_hash_bytes(memoryview(data).cast("B"))
    return bytes(out)
