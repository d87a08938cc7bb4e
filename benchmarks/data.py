"""Generates the benchmark files: once for each set of parameters, in batches, from a fixed seed.

    python benchmarks/data.py FOLDER [--rows 5000000]

The ordinary file: 10 columns, zstd, row groups of about 700,000 rows. The wide one: 20,000 column chunks
in 100 row groups of 200 columns, a few rows each, so that it consists mainly of its footer.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS: Final = 5_000_000
WIDE_COLUMNS: Final = 200
WIDE_GROUPS: Final = 100

GROUPS: Final = 7
LAKE_GROUPS: Final = 10
LAKE_ROWS: Final = 10_000
"""Rows of a row group of the lake."""
_STATUSES: Final = 1000
_DAY_2024: Final = 1_704_067_200_000_000
_HEX: Final = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_UUID_BYTES: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_DIGITS: Final = [i for i in range(_UUID_BYTES) if i not in _DASHES]


def _strings(text: np.ndarray) -> pa.Array:
    """A string array from rows of bytes of equal length."""
    count, width = text.shape
    offsets = np.arange(count + 1, dtype=np.int32) * width
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text.tobytes())])


def uuids(random: np.random.Generator, count: int) -> pa.Array:
    """`count` random UUIDs as strings of 36 characters."""
    raw = random.integers(0, 256, (count, 16), dtype=np.uint8)
    text = np.full((count, _UUID_BYTES), ord("-"), dtype=np.uint8)
    text[:, _DIGITS[0::2]] = _HEX[raw >> 4]
    text[:, _DIGITS[1::2]] = _HEX[raw & 15]
    return _strings(text)


def _batch(random: np.random.Generator, start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count, dtype=np.int64)
    statuses = pa.array([f"status-{i:04d}" for i in range(_STATUSES)])
    noise = pa.array([f"session {i:x} of customer {i * 7919 % 65_521}" for i in range(20_000)])
    return pa.table(
        {
            "id": ids * 1_000_003 % (1 << 40),
            "uuid": uuids(random, count),
            "status": statuses.take(pa.array(random.integers(0, _STATUSES, count))),
            "at": pa.array(_DAY_2024 + ids * 1_000 + random.integers(0, 1_000, count), pa.timestamp("us")),
            "amount": np.round(random.gamma(2.0, 40.0, count), 2),
            "score": random.standard_normal(count),
            "quantity": random.integers(1, 50, count, dtype=np.int32),
            "customer": random.integers(0, 200_000, count, dtype=np.int64),
            "note": noise.take(pa.array(random.integers(0, 20_000, count))),
            "flags": random.integers(0, 1 << 31, count, dtype=np.int32),
        }
    )


def ordinary(folder: Path, rows: int = ROWS) -> Path:
    """The file of 10 columns; made if it doesn't exist."""
    path = folder / f"ordinary-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        random = np.random.default_rng(20_240_101)
        group = -(-rows // GROUPS)
        first = _batch(random, 0, min(group, rows))
        with pq.ParquetWriter(partial, first.schema, compression="zstd") as writer:
            writer.write_table(first, row_group_size=group)
            for start in range(group, rows, group):
                writer.write_table(_batch(random, start, min(group, rows - start)), row_group_size=group)
        partial.rename(path)
    return path


def wide(folder: Path) -> Path:
    """The file of 20,000 column chunks, without filters; made if it doesn't exist."""
    path = folder / f"wide-{WIDE_COLUMNS}x{WIDE_GROUPS}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        names = [f"column_{i:03d}" for i in range(WIDE_COLUMNS)]
        schema = pa.schema([(name, pa.int64() if i % 2 else pa.string()) for i, name in enumerate(names)])
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
            for group in range(WIDE_GROUPS):
                numbers = list(range(group * 4, group * 4 + 4))
                strings = [f"value {n}" for n in numbers]
                writer.write_table(
                    pa.table([numbers if i % 2 else strings for i in range(WIDE_COLUMNS)], schema=schema)
                )
        partial.rename(path)
    return path


def lake_ids(number: int) -> np.ndarray:
    """The column `id` of a file of the lake: random, so that no minimum and maximum excludes a value."""
    return np.random.default_rng(number).integers(0, 1 << 60, LAKE_GROUPS * LAKE_ROWS)


def lake(folder: Path, files: int) -> Path:
    """Files of 10 row groups and 6 columns, with filters on `id`; missing files are made, in 17 ms each."""
    folder = folder / "lake"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = folder / f"{number:05}.parquet"
        if path.exists():
            continue
        ids = lake_ids(number)
        random, rows = np.random.default_rng(number + files), len(ids)
        table = pa.table(
            {
                "id": ids,
                "at": np.arange(number * rows, (number + 1) * rows),
                "country": random.integers(0, 100, rows),
                "amount": random.integers(0, 10**6, rows),
                "status": random.integers(0, 4, rows),
                "price": random.normal(size=rows).round(2),
            }
        )
        partial = path.with_suffix(".partial")
        pq.write_table(
            table,
            partial,
            row_group_size=LAKE_ROWS,
            use_dictionary=["country", "status"],
            bloom_filter_options={"id": {"ndv": LAKE_ROWS, "fpp": 0.01}},
        )
        partial.rename(path)
    return folder


def main() -> None:
    """Make both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    for path in (ordinary(options.folder, options.rows), wide(options.folder)):
        print(f"{path}  {path.stat().st_size / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
