"""Engines that read filters, and the values that each of them looks up wrongly. Each fact has its source.

A reader hashes the literal of a query. If its bytes differ from those that the writer hashed for the equal value in
the file, the filter answers "absent" and rows are lost. "Measured" means that the engine ran on files with and
without the filter; ``tests/interop/test_reader_rules.py`` repeats that for the engines that can run in the tests.
"""

from __future__ import annotations

from typing import Final

from bloomcli.rules.reader_libraries import LIBRARIES
from bloomcli.rules.reader_orc import ORC_ONLY
from bloomcli.rules.reader_sizes import ANY_SIZE
from bloomcli.rules.reader_types import (
    ALGORITHM,
    BY_PRECISION,
    COMPRESSION,
    DECIMAL_WIDTH,
    FLOAT16,
    HASH,
    INTERVAL,
    MILLIS,
    NEGATIVE_ZERO,
    NO_LENGTH,
    NOT_POWER_OF_TWO,
    SINGLE_BLOCK,
    TOO_LARGE,
    WIDENED,
    Reader,
    measured,
    source,
    thread,
)

_PARQUET: Final = frozenset({"parquet"})
_ORC: Final = frozenset({"orc"})
_BOTH: Final = _PARQUET | _ORC
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})


_AUGUST: Final = "main of August 2026"
_SHORT_READS: Final = thread(
    "parquet-java 1.14.0 to 1.15.2",
    "parquet-java#3249: filters without a bloom_filter_length may be read only in part",
)

ROWS: Final = (
    Reader(
        name="spark",
        title="Spark",
        aliases=("pyspark", "spark-sql"),
        probes=_BOTH,
        known=measured(
            "Spark 4.3 (parquet-java 1.17, orc-core 2.3)",
            "its Parquet predicates have each file's own types, so widened columns, decimals of any width and"
            " milliseconds are looked up correctly",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "Spark 4.3",
                "`c = 0.0` on a Parquet or ORC column with only -0.0 returns no rows with the filter and all rows"
                " without it",
            )
        },
        misreads={NO_LENGTH: _SHORT_READS},
        dictionary=True,
        zeros=_FLOATS,
        any_size=ANY_SIZE["spark"],
    ),
    Reader(
        name="parquet-java",
        title="parquet-java",
        aliases=("parquet-mr", "parquet-hadoop"),
        probes=_PARQUET,
        known=measured(
            f"parquet-java 1.17 and its {_AUGUST}",
            "BloomFilterImpl.java; SchemaCompatibilityValidator rejects a predicate whose width differs from the"
            " file's before a lookup",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "parquet-java 1.17",
                "BloomFilterImpl.java, visit(Eq) and visit(In): NaN literals are not looked up, zeros are hashed"
                " unchanged",
            )
        },
        misreads={NO_LENGTH: _SHORT_READS},
        dictionary=True,
        zeros=_FLOATS | {"FLOAT16"},
        any_size=ANY_SIZE["parquet-java"],
    ),
    Reader(
        name="trino",
        title="Trino",
        probes=_BOTH,
        known=source(
            _AUGUST,
            "TupleDomainParquetPredicate.checkInBloomFilter and TupleDomainOrcPredicate.checkInBloomFilter; in"
            " Parquet unless parquet.use-bloom-filter is off, in ORC only if its ORC Bloom filters are enabled. It"
            " doesn't look up decimals, timestamps and CHAR",
        ),
        wrong_about={
            NEGATIVE_ZERO: source(
                _AUGUST,
                "TupleDomainParquetPredicate.checkInBloomFilter: REAL and DOUBLE literals are hashed unchanged; in"
                " ORC testDouble and testFloat do the same",
            ),
            WIDENED: source(
                f"{_AUGUST}; trino#30544 is open",
                "TupleDomainParquetPredicate.checkInBloomFilter: the literal is hashed at the width of the table's"
                " type, regardless of the file's type; rows are lost unless the statistics make the query fail first",
            ),
        },
        refuses={TOO_LARGE: source(_AUGUST, "a filter above 128 MiB makes the query fail")},
        dictionary=True,
        zeros=_FLOATS,
        widths={
            **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "INT32"),
            "BIGINT": "INT64",
            "FLOAT": "FLOAT",
            "DOUBLE": "DOUBLE",
        },
        any_size=ANY_SIZE["trino"],
    ),
    *ORC_ONLY,
    Reader(
        name="iceberg",
        title="Iceberg",
        aliases=("spark-iceberg", "iceberg-java"),
        probes=_BOTH,
        known=source(
            f"{_AUGUST} (7f879b1136)",
            "ParquetBloomRowGroupFilter.java, used by Spark and Flink on Iceberg tables if the file has field ids or"
            " the table has a name mapping; ORC through orc-core. It doesn't look up INT32 columns of type long, or"
            " TIME in milliseconds; it looks up FLOAT columns of type double correctly",
        ),
        wrong_about={
            NEGATIVE_ZERO: source(
                _AUGUST, "ParquetBloomRowGroupFilter.shouldRead: FLOAT and DOUBLE literals are hashed unchanged"
            ),
            MILLIS: source(
                _AUGUST,
                "ParquetBloomRowGroupFilter.shouldRead: for INT64 and TIMESTAMP the literal's microseconds are"
                " hashed, regardless of the file's unit (for statistics: iceberg#18173)",
            ),
            DECIMAL_WIDTH: source(
                _AUGUST,
                "ParquetBloomRowGroupFilter.shouldRead: decimals in bytes are hashed at"
                " TypeUtil.decimalRequiredBytes(precision), regardless of the column's length",
            ),
        },
        tables_only=True,
        dictionary=True,
        zeros=_FLOATS,
        decimal_width=BY_PRECISION,
        any_size=ANY_SIZE["iceberg"],
    ),
    Reader(
        name="duckdb",
        title="DuckDB",
        aliases=("duckdb-2",),
        probes=_PARQUET,
        known=measured(
            "DuckDB 2.0.0",
            "fields of structs are looked up too; both zeros, milliseconds, decimals of up to 38 digits at any"
            " width, mixed INT32 and INT64 files and read_parquet(schema=...) all return every row",
        ),
        wrong_about={
            FLOAT16: measured(
                "DuckDB 1.4.4, 1.5.5 and 2.0.0",
                "FLOAT16 columns are read as FLOAT and looked up by 4 bytes, so an equality returns no row",
            ),
            DECIMAL_WIDTH: measured(
                "DuckDB 2.0.0",
                "decimals of more than 38 digits are read as DOUBLE and looked up by 8 bytes, so an equality returns"
                " no row",
            ),
            INTERVAL: measured(
                "DuckDB 2.0.0",
                "in files with the key duckdb.interval_bloom_filter, intervals are looked up in a normal form, in"
                " which a day has 24 hours and a month 30 days",
            ),
        },
        decimal_digits=38,
        any_size=ANY_SIZE["duckdb"],
    ),
    Reader(
        name="duckdb-1",
        title="DuckDB 1",
        aliases=("duckdb-1.4", "duckdb-1.5"),
        probes=_PARQUET,
        known=measured("DuckDB 1.4.4 and 1.5.5", "`=` and IN are looked up"),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "DuckDB 1.4.4 and 1.5.5",
                "also in duckdb#23829: `c = 0.0` on stored -0.0 returns no rows; correct in 2.0.0",
            ),
            FLOAT16: measured("DuckDB 1.4.4 and 1.5.5", "FLOAT16 columns are looked up by the 4 bytes of a FLOAT"),
        },
        superseded=True,
        zeros=_FLOATS,
        any_size=ANY_SIZE["duckdb-1"],
    ),
    Reader(
        name="datafusion",
        title="DataFusion",
        aliases=("datafusion-55",),
        probes=_PARQUET,
        known=measured(
            "DataFusion 55",
            "decimals of any width and columns with a wider table type return every row; FLOAT16, decimals of more"
            " than 38 digits, 8- and 16-bit integers, dates, times, timestamps and fields of structs aren't looked"
            " up",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "DataFusion 55.0",
                "`c = 0.0` on stored -0.0 returns no rows with the filter and all rows without it;"
                " BloomFilterStatistics.check_scalar hashes the unchanged literal",
            )
        },
        zeros=_FLOATS,
        any_size=ANY_SIZE["datafusion"],
    ),
    Reader(
        name="datafusion-54",
        title="DataFusion up to 54",
        probes=_PARQUET,
        known=measured(
            "DataFusion 52.3 and 54.1",
            "-0.0 doesn't equal 0.0 there, with and without filters, so filters lose no such rows",
        ),
        wrong_about={
            DECIMAL_WIDTH: measured(
                "DataFusion 52.3 and 54.1",
                "datafusion#22994: decimals in FIXED_LEN_BYTE_ARRAY are hashed as 16 bytes, so only those of"
                " precision 36 to 38 from Arrow's writers are found; correct in 55",
            ),
        },
        superseded=True,
        decimal_width=16,
        any_size=ANY_SIZE["datafusion-54"],
    ),
    Reader(
        name="impala",
        title="Impala",
        probes=_BOTH,
        known=source(
            _AUGUST,
            "parquet-bloom-filter-util.cc: INT32, INT64, FLOAT, DOUBLE and STRING are looked up if the table's type"
            " has the file's width; decimals, dates and timestamps aren't looked up; ORC through ORC C++"
            " (hdfs-orc-scanner.cc)",
        ),
        wrong_about={
            NEGATIVE_ZERO: source(
                _AUGUST,
                "parquet-bloom-filter-util.cc, BytesToParquetFloatingPoint: the unchanged literal is PLAIN-encoded"
                " and hashed",
            ),
            SINGLE_BLOCK: source(
                _AUGUST,
                "parquet-bloom-filter.cc, ParquetBloomFilter::Init: the number of blocks is at least two, regardless"
                " of the bitset's size; only a debug build checks that they agree",
            ),
        },
        refuses={TOO_LARGE: source(_AUGUST, "ValidateBloomFilterHeader: at most 128 MiB")},
        misreads={
            NOT_POWER_OF_TWO: source(
                _AUGUST,
                "ParquetBloomFilter::Init: the number of blocks is rounded down to a power of two, so values are"
                " looked up in the wrong blocks; only a debug build checks that they agree",
            )
        },
        dictionary=True,
        zeros=_FLOATS,
    ),
    Reader(
        name="clickhouse",
        title="ClickHouse",
        aliases=("chdb",),
        probes=_BOTH,
        known=measured(
            "ClickHouse 26.9",
            "Parquet: integers are hashed at the file's width, strings and fixed-length bytes unchanged; floats,"
            " decimals, UUIDs, dates and timestamps aren't looked up. ORC through ORC C++, unless"
            " input_format_orc_filter_push_down is off",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "ClickHouse 26.9",
                "`c = 0` on an ORC column with only -0.0 returns no rows with the filter and all rows without it",
            )
        },
        zeros=_FLOATS,
        zeros_in=_ORC,
        refuses={
            rule: source(
                "its main of 2026", "Reader.cpp: an unknown algorithm, hash or compression makes the query fail"
            )
            for rule in (ALGORITHM, HASH, COMPRESSION)
        },
        issues=(
            measured(
                "ClickHouse 26.9",
                "a query or table with a type that changes values (UInt16 for UInt32, Int8 for UInt8, Bool for"
                " Int64, FixedString for shorter strings) loses the rows of these values"
                " (ClickHouse#121077 is open)",
            ),
            thread(
                "ClickHouse up to 26.8",
                "ClickHouse#112580: a search for a type's default doesn't find nulls that are read as it; correct in"
                " 26.9 (measured)",
            ),
        ),
        any_size=ANY_SIZE["clickhouse"],
    ),
    Reader(
        name="starrocks",
        title="StarRocks",
        probes=_PARQUET,
        known=thread("StarRocks since 3.5", "Parquet filters of external tables are looked up"),
        issues=(thread("StarRocks 3.5.10", "starrocks#69898: predicates with OR over Paimon tables lose rows"),),
        any_size=ANY_SIZE["starrocks"],
    ),
    Reader(
        name="doris",
        title="Doris",
        probes=_PARQUET,
        known=thread("Doris since 2025", "Parquet filters are looked up for `=` and IN"),
        issues=(
            thread(
                "Doris before doris#65489",
                "doris#65487: the filter of a column's first row group is also used for the later row groups",
            ),
            thread(
                "Doris before doris#67249, which is open",
                "doris#67249: within AND or OR, a value of one column is looked up in another column's filter",
            ),
        ),
        any_size=ANY_SIZE["doris"],
    ),
    *LIBRARIES,
)
"""Every reader."""
