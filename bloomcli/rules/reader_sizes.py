"""Readers that accept Parquet filters of any number of blocks, with evidence. `reader_table` refers to this table.

Files with filters of 1, 2, 3, 5, 29, 31, 33, 379, 1,000, 65,537 and 1,310,721 blocks of 32 bytes were read.
"Measured" means that each query for a stored value returned its row, and that the row groups of absent values were
skipped where the filter excludes them. ``tests/interop/test_filter_sizes.py`` repeats that with some of the sizes for
the engines that run in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomcli.rules.reader_types import Evidence, measured, source

_AUGUST: Final = "main of August 2026"
_ROWS: Final = "filters of 1 to 1,310,721 blocks: every row is returned, and absent values skip row groups"
_VALUES: Final = "filters of 1 to 1,310,721 blocks: every value is found, and absent ones aren't"


ANY_SIZE: Final[Mapping[str, Evidence]] = {
    "spark": measured("Spark 4.1.4 and 4.3.0 (parquet-java 1.16 and 1.17)", _ROWS),
    "parquet-java": measured("parquet-java 1.16 and 1.17, through Spark", _ROWS),
    "trino": source(
        _AUGUST, "BloomFilterStore.getBloomFilter: the bitset is given to parquet-java's BlockSplitBloomFilter"
    ),
    "iceberg": source(_AUGUST, "ParquetBloomRowGroupFilter looks values up in parquet-java's BlockSplitBloomFilter"),
    "duckdb": measured("DuckDB 2.0.0", _ROWS),
    "duckdb-1": measured("DuckDB 1.4.4 and 1.5.5", f"{_ROWS} by parquet_bloom_probe"),
    "datafusion": measured("DataFusion 55.0 (arrow-rs)", _ROWS),
    "datafusion-54": measured("DataFusion 54.1 (arrow-rs)", _ROWS),
    "clickhouse": measured("ClickHouse 26.9", _ROWS),
    "starrocks": source(
        _AUGUST,
        "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks, by"
        " 2^32; reading it checks no power of two",
    ),
    "doris": source(
        _AUGUST,
        "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks, by"
        " 2^32; its comment says that no power of two is assumed",
    ),
    "arrow-rs": measured("arrow-rs of DataFusion 54.1 and 55.0", _ROWS),
    "arrow-go": measured("Arrow Go 18.8", _VALUES),
    "parquet-go": measured("parquet-go 0.32", _VALUES),
    "hyparquet": source("hyparquet 1.31", "bloom.js, readBloomFilter: any multiple of 32 bytes"),
}
"""By the reader's name."""
