"""Readers that accept Parquet filters of any number of blocks, with evidence. `reader_table` refers to this table.

Files with filters of 1, 2, 3, 5, 29, 31, 33, 379, 1,000, 65,537 and 1,310,721 blocks of 32 bytes were read.
"Measured" means that each query for a stored value returned its row, and that the row groups of absent values were
skipped where the filter excludes them. ``tests/interop/test_filter_sizes.py`` repeats that with some of the sizes for
the engines that run in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomcli.rules.reader_types import Evidence, Kind

_AUGUST: Final = "main of August 2026"
_ROWS: Final = "filters of 1 to 1,310,721 blocks: every row is returned, and absent values skip row groups"
_VALUES: Final = "filters of 1 to 1,310,721 blocks: every value is found, and absent ones aren't"


def _measured(version: str, text: str) -> Evidence:
    return Evidence(Kind.MEASURED, version, text)


def _source(version: str, text: str) -> Evidence:
    return Evidence(Kind.SOURCE, version, text)


ANY_SIZE: Final[Mapping[str, Evidence]] = {
    "spark": _measured("Spark 4.1.4 and 4.3.0 (parquet-java 1.16 and 1.17)", _ROWS),
    "parquet-java": _measured("parquet-java 1.16 and 1.17, through Spark", _ROWS),
    "trino": _source(
        _AUGUST, "BloomFilterStore.getBloomFilter: the bitset is given to parquet-java's BlockSplitBloomFilter"
    ),
    "iceberg": _source(_AUGUST, "ParquetBloomRowGroupFilter looks values up in parquet-java's BlockSplitBloomFilter"),
    "duckdb": _measured("DuckDB 2.0.0", _ROWS),
    "duckdb-1": _measured("DuckDB 1.4.4 and 1.5.5", f"{_ROWS} by parquet_bloom_probe"),
    "datafusion": _measured("DataFusion 55.0 (arrow-rs)", _ROWS),
    "datafusion-54": _measured("DataFusion 54.1 (arrow-rs)", _ROWS),
    "clickhouse": _measured("ClickHouse 26.9", _ROWS),
    "starrocks": _source(
        _AUGUST,
        "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks, by"
        " 2^32; reading it checks no power of two",
    ),
    "doris": _source(
        _AUGUST,
        "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks, by"
        " 2^32; its comment says that no power of two is assumed",
    ),
    "arrow-rs": _measured("arrow-rs of DataFusion 54.1 and 55.0", _ROWS),
    "arrow-go": _measured("Arrow Go 18.8", _VALUES),
    "parquet-go": _measured("parquet-go 0.32", _VALUES),
    "hyparquet": _source("hyparquet 1.31", "bloom.js, readBloomFilter: any multiple of 32 bytes"),
}
"""By the reader's name."""
