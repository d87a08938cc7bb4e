"""Values to find as an Arrow array of UTF-8 bytes, in which a value takes 10 to 50 bytes."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.commands.values import Value, texts
from bloomcli.errors import UsageError
from bloomcli.formats.arrays import binaries


def texts_of(values: Value | Sequence[Value] | pa.Array) -> pa.LargeBinaryArray:
    """The texts of Python or Arrow values. Raises UsageError for a value without a usual text form."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        return binaries([text.encode("utf-8", "surrogateescape") for text in texts(values)])
    kind = values.type
    try:
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return pc.cast(pc.cast(values.drop_null(), pa.large_string()), pa.large_binary())
    except pa.ArrowException as error:
        raise UsageError(f"the values can't be read: {error}") from None
    return texts_of(values.drop_null().to_pylist())


def lines_of(data: bytes) -> pa.LargeBinaryArray:
    """The lines of a file, without empty lines, the byte order mark and carriage returns."""
    text = binaries([data.removeprefix(BOM_UTF8)])
    lines = pc.split_pattern(text, "\n").values
    if b"\r" in data:
        lines = pc.if_else(pc.ends_with(lines, "\r"), pc.binary_slice(lines, 0, -1), lines)
    return lines.filter(pc.greater(pc.binary_length(lines), 0))
