"""Rows that several writers put into Parquet files of two row groups with five pages in each, as far as they can.

Wrong structures are made of these files by `support.patches`.
"""

from __future__ import annotations

import datetime as dt
import struct
import tempfile
from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

GROUP: Final = 100
PAGE: Final = 20
NAN: Final = float("nan")
FIXTURE: Final = Path(__file__).parents[2] / "fixtures" / "parquet" / "spark_pages.parquet"


def values(number: int) -> dict[str, Any]:
    """A row: only `up` is in order, every seventh `text` is null; a page of `gap` has nulls alone."""
    mixed = number * 37 % 200
    return {
        "id": mixed - 100,
        "unsigned": mixed * 20_000_000,
        "real": NAN if mixed % 10 == 0 else mixed / 4 - 20,
        "half": float(mixed % 100 - 50),
        "text": None if number % 7 == 0 else f"text number {mixed:03d}",
        "money": Decimal(mixed - 100) / 4,
        "flag": mixed % 2 == 0,
        "fixed": struct.pack(">I", mixed * 21_000_000),
        "list": None if number % 5 == 0 else [mixed, None, mixed + 1][: number % 4],
        "up": number,
        "gap": None if number % GROUP < PAGE else mixed,
        "word": f"word {mixed % 8}",
        "price": mixed / 4 - 20,
        "ratio": mixed / 4 - 20,
        "wide": mixed << 56,
        "cents": Decimal(mixed - 100) / 4,
        "day": dt.date(2020, 1, 1) + dt.timedelta(mixed),
        "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=mixed),
        "long": f"{mixed:03d} is the number of this long text",
    }


def table() -> pa.Table:
    """The rows of both row groups."""
    schema = pa.schema(
        {
            "id": pa.int64(),
            "unsigned": pa.uint32(),
            "real": pa.float64(),
            "half": pa.float16(),
            "text": pa.string(),
            "money": pa.decimal128(20, 2),
            "flag": pa.bool_(),
            "fixed": pa.binary(4),
            "list": pa.list_(pa.int64()),
            "up": pa.int32(),
            "gap": pa.int64(),
            "word": pa.string(),
            "price": pa.float64(),
            "ratio": pa.float32(),
            "wide": pa.uint64(),
            "cents": pa.decimal128(9, 2),
            "day": pa.date32(),
            "at": pa.timestamp("us", "UTC"),
            "long": pa.string(),
        }
    )
    return pa.Table.from_pylist([values(number) for number in range(2 * GROUP)], schema)


def by_arrow(rows: pa.Table) -> bytes:
    """The rows by Arrow C++. Only the first pages of `long` use its dictionary."""
    out = pa.BufferOutputStream()
    pq.write_table(
        rows,
        out,
        row_group_size=GROUP,
        max_rows_per_page=PAGE,
        write_batch_size=PAGE,
        compression="none",
        use_dictionary=["word", "long"],
        dictionary_pagesize_limit=1000,
        write_page_index=True,
        store_schema=False,
        sorting_columns=[pq.SortingColumn(rows.column_names.index("up"))],
    )
    return out.getvalue().to_pybytes()


def _common() -> pa.Table:
    """The columns that all engines read."""
    return table().drop_columns(["half", "list"])


def _by_duckdb(target: Path) -> None:
    import duckdb

    duckdb.from_arrow(_common()).write_parquet(str(target), row_group_size=2048)  # its smallest: one row group


def _by_polars(target: Path) -> None:
    import polars as pl

    frame = pl.DataFrame(_common())
    frame.write_parquet(target, statistics="full", row_group_size=GROUP, data_page_size=PAGE * 5, compression="zstd")


def _by_datafusion(target: Path) -> None:
    from datafusion import ParquetWriterOptions, SessionContext

    options = ParquetWriterOptions(
        max_row_group_size=GROUP,
        write_batch_size=PAGE,
        data_page_row_count_limit=PAGE,
        dictionary_enabled=False,
        allow_single_file_parallelism=False,
    )
    SessionContext().from_arrow(_common(), name="t").write_parquet_with_options(str(target), options)


def _written(write: Callable[[Path], None]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "file.parquet")
        write(target)
        return target.read_bytes()


WRITERS: Final[dict[str, Callable[[], bytes]]] = {
    "Arrow": cache(lambda: by_arrow(_common())),
    "Spark": cache(FIXTURE.read_bytes),
    "DuckDB": cache(partial(_written, _by_duckdb)),
    "DataFusion": cache(partial(_written, _by_datafusion)),
    "Polars": cache(partial(_written, _by_polars)),
}
"""The rows by each writer: Arrow C++, parquet-java through Spark, DuckDB, arrow-rs through DataFusion, and Polars."""
