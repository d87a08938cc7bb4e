"""Types of partition columns, which Spark's tests and those without Spark share."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

NULL: Final = "__HIVE_DEFAULT_PARTITION__"

TYPES: Final[dict[tuple[str, ...], pa.DataType]] = {
    ("1", "02"): pa.int32(),
    ("1", "99999999999"): pa.int64(),
    ("1", "99999999999999999999"): pa.decimal128(20, 0),
    ("99999999999", "99999999999999999999"): pa.decimal128(20, 0),
    ("1e3",): pa.decimal128(4, 0),
    ("1", "1.5"): pa.float64(),
    ("1d", "NaN"): pa.float64(),
    ("9" * 39,): pa.float64(),
    ("99999999999", "1.5"): pa.string(),
    ("1", "x"): pa.string(),
    ("2024-01-01", "2024-02-29"): pa.date32(),
    ("2024-01-01", "2024-01-01 10:00:00.5"): pa.timestamp("us", "UTC"),
    ("2024-01-01", "5"): pa.string(),
    ("2024-02-30",): pa.string(),
    ("2024-01-01T10:00:00",): pa.string(),
    ("2024-1-1",): pa.string(),
    ("1_000",): pa.string(),
    ("true",): pa.string(),
    (NULL, "1"): pa.int32(),
    (NULL, "x"): pa.string(),
}
"""Types of columns by the values of their directories."""
