"""The columns of what `find` finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("path", "stripe", "row_group", "row", "value", "record")
"""The columns of what is found: the file, the stripe (null in formats without stripes), the row group (in a stripe
counted within it), the row's number in the file from 0 on, the value as it was given (binary), and the row, a struct
of the selected columns."""

Emit = Callable[["pa.RecordBatch"], None]
"""Takes rows that were found, with `COLUMNS`."""
