"""Engines that read filters, and what each of them looks up wrongly. Facts only, each with where it was found.

A reader hashes the literal of a query. Where it makes other bytes of it than the writer made of the equal value
in the file, the filter says "absent" and rows are lost. "Measured" stands for: tried on files with the filter and
without; the tests in ``tests/interop/test_reader_rules.py`` do so again where the engine can run.
"""

from __future__ import annotations

from typing import Final

from bloomcli.rules.reader_libraries import LIBRARIES
from bloomcli.rules.reader_orc import ORC_ONLY
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
    Evidence,
    Kind,
    Reader,
)

_PARQUET: Final = frozenset({"parquet"})
_ORC: Final = frozenset({"orc"})
_BOTH: Final = _PARQUET | _ORC
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})


def _measured(version: str, text: str) -> Evidence:
    return Evidence(Kind.MEASURED, version, text)


def _source(version: str, text: str) -> Evidence:
    return Evidence(Kind.SOURCE, version, text)


def _told(version: str, text: str) -> Evidence:
    return Evidence(Kind.THREAD, version, text)


_AUGUST: Final = "main of August 2026"
_SHORT_READS: Final = _told(
    "parquet-java 1.14.0 to 1.15.2",
    "parquet-java#3249: filters whose bloom_filter_length isn't written may be read in part",
)

ROWS: Final = (
    Reader(
        name="spark",
        title="Spark",
        aliases=("pyspark", "spark-sql"),
        probes=_BOTH,
        known=_measured(
            "Spark 4.3 (parquet-java 1.17, orc-core 2.3)",
            "its Parquet predicates are of each file's own types, so widened columns, decimals of any width and"
            " milliseconds are looked up rightly; sizes that are no powers of two too",
        ),
        wrong_about={
            NEGATIVE_ZERO: _measured(
                "Spark 4.3",
                "`c = 0.0` over a Parquet or ORC column holding only -0.0 gives no rows with the filter and all of"
                " them without",
            )
        },
        misreads={NO_LENGTH: _SHORT_READS},
        dictionary=True,
        zeros=_FLOATS,
    ),
    Reader(
        name="parquet-java",
        title="parquet-java",
        aliases=("parquet-mr", "parquet-hadoop"),
        probes=_PARQUET,
        known=_measured(
            f"parquet-java 1.17 and its {_AUGUST}",
            "BloomFilterImpl.java; a predicate of another width than the file's is refused by"
            " SchemaCompatibilityValidator, not looked up",
        ),
        wrong_about={
            NEGATIVE_ZERO: _measured(
                "parquet-java 1.17",
                "BloomFilterImpl.java, visit(Eq) and visit(In): NaN literals are let pass, zeros are hashed as they"
                " are",
            )
        },
        misreads={NO_LENGTH: _SHORT_READS},
        dictionary=True,
        zeros=_FLOATS | {"FLOAT16"},
    ),
    Reader(
        name="trino",
        title="Trino",
        probes=_BOTH,
        known=_source(
            _AUGUST,
            "TupleDomainParquetPredicate.checkInBloomFilter and TupleDomainOrcPredicate.checkInBloomFilter; in"
            " Parquet unless parquet.use-bloom-filter is off, in ORC only where its ORC Bloom filters are switched"
            " on. It looks up no decimals, timestamps or CHAR",
        ),
        wrong_about={
            NEGATIVE_ZERO: _source(
                _AUGUST,
                "TupleDomainParquetPredicate.checkInBloomFilter: REAL and DOUBLE literals are hashed as they are; in"
                " ORC testDouble and testFloat likewise",
            ),
            WIDENED: _source(
                f"{_AUGUST}; trino#30544 is open",
                "TupleDomainParquetPredicate.checkInBloomFilter: the literal is hashed at the width of the table's"
                " type, the file's type isn't looked at; rows are lost where statistics don't make the query fail"
                " before",
            ),
        },
        refuses={TOO_LARGE: _source(_AUGUST, "a filter above 128 MiB is an error of the query")},
        dictionary=True,
        zeros=_FLOATS,
        widths={
            **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "INT32"),
            "BIGINT": "INT64",
            "FLOAT": "FLOAT",
            "DOUBLE": "DOUBLE",
        },
    ),
    *ORC_ONLY,
    Reader(
        name="iceberg",
        title="Iceberg",
        aliases=("spark-iceberg", "iceberg-java"),
        probes=_BOTH,
        known=_source(
            f"{_AUGUST} (7f879b1136)",
            "ParquetBloomRowGroupFilter.java, used by Spark and Flink on Iceberg tables, where the file has field ids"
            " or the table a name mapping; ORC through orc-core. An INT32 column under a long isn't looked up, nor is"
            " TIME in milliseconds; a FLOAT column under a double is, rightly",
        ),
        wrong_about={
            NEGATIVE_ZERO: _source(
                _AUGUST, "ParquetBloomRowGroupFilter.shouldRead: FLOAT and DOUBLE literals are hashed as they are"
            ),
            MILLIS: _source(
                _AUGUST,
                "ParquetBloomRowGroupFilter.shouldRead: for INT64 and TIMESTAMP the literal's microseconds are"
                " hashed, whatever the file's unit (its statistics: iceberg#18173)",
            ),
            DECIMAL_WIDTH: _source(
                _AUGUST,
                "ParquetBloomRowGroupFilter.shouldRead: decimals in bytes are hashed at"
                " TypeUtil.decimalRequiredBytes(precision), whatever the column's length",
            ),
        },
        tables_only=True,
        dictionary=True,
        zeros=_FLOATS,
        decimal_width=BY_PRECISION,
    ),
    Reader(
        name="duckdb",
        title="DuckDB",
        aliases=("duckdb-2",),
        probes=_PARQUET,
        known=_measured(
            "DuckDB 2.0.0",
            "fields of structs are looked up too; both zeros, milliseconds, decimals of up to 38 digits at any"
            " width, mixed INT32 and INT64 files, sizes that are no powers of two and read_parquet(schema=...) all"
            " give every row",
        ),
        wrong_about={
            FLOAT16: _measured(
                "DuckDB 1.4.4, 1.5.5 and 2.0.0",
                "FLOAT16 columns are read as FLOAT and looked up by 4 bytes, no equality finds any row",
            ),
            DECIMAL_WIDTH: _measured(
                "DuckDB 2.0.0",
                "decimals of more than 38 digits are read as DOUBLE and looked up by 8 bytes, no equality finds any"
                " row",
            ),
            INTERVAL: _measured(
                "DuckDB 2.0.0",
                "in files with the key duckdb.interval_bloom_filter intervals are looked up in a normal form, in"
                " which a day has 24 hours and a month 30 days",
            ),
        },
        decimal_digits=38,
    ),
    Reader(
        name="duckdb-1",
        title="DuckDB 1",
        aliases=("duckdb-1.4", "duckdb-1.5"),
        probes=_PARQUET,
        known=_measured("DuckDB 1.4.4 and 1.5.5", "`=` and IN are looked up"),
        wrong_about={
            NEGATIVE_ZERO: _measured(
                "DuckDB 1.4.4 and 1.5.5",
                "also noted in duckdb#23829: `c = 0.0` over stored -0.0 gives no rows; right in 2.0.0",
            ),
            FLOAT16: _measured("DuckDB 1.4.4 and 1.5.5", "FLOAT16 columns are looked up by the 4 bytes of a FLOAT"),
        },
        superseded=True,
        zeros=_FLOATS,
    ),
    Reader(
        name="datafusion",
        title="DataFusion",
        aliases=("datafusion-55",),
        probes=_PARQUET,
        known=_measured(
            "DataFusion 55",
            "decimals of any width, columns under a wider table type and sizes that are no powers of two give every"
            " row; FLOAT16, decimals of more than 38 digits, 8- and 16-bit integers, dates, times, timestamps"
            " and fields of structs aren't looked up",
        ),
        wrong_about={
            NEGATIVE_ZERO: _measured(
                "DataFusion 55.0",
                "`c = 0.0` over stored -0.0 gives no rows with the filter and all without;"
                " BloomFilterStatistics.check_scalar hashes the literal as it is",
            )
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="datafusion-54",
        title="DataFusion up to 54",
        probes=_PARQUET,
        known=_measured(
            "DataFusion 52.3 and 54.1",
            "-0.0 doesn't equal 0.0 there, with filters and without: no filter loses its rows",
        ),
        wrong_about={
            DECIMAL_WIDTH: _measured(
                "DataFusion 52.3 and 54.1",
                "datafusion#22994: decimals in FIXED_LEN_BYTE_ARRAY are hashed as 16 bytes, so that only precisions"
                " 36 to 38 of Arrow's writers are found; right in 55",
            ),
        },
        superseded=True,
        decimal_width=16,
    ),
    Reader(
        name="impala",
        title="Impala",
        probes=_BOTH,
        known=_source(
            _AUGUST,
            "parquet-bloom-filter-util.cc: INT32, INT64, FLOAT, DOUBLE and STRING are looked up, only where the"
            " table's type has the file's width, decimals, dates and timestamps never; ORC through ORC C++"
            " (hdfs-orc-scanner.cc)",
        ),
        wrong_about={
            NEGATIVE_ZERO: _source(
                _AUGUST,
                "parquet-bloom-filter-util.cc, BytesToParquetFloatingPoint: the literal is PLAIN-encoded and hashed"
                " as it is",
            ),
            SINGLE_BLOCK: _source(
                _AUGUST,
                "parquet-bloom-filter.cc, ParquetBloomFilter::Init: the number of blocks is two at least, whatever"
                " the bitset's size; only a debug build checks that they agree",
            ),
        },
        refuses={TOO_LARGE: _source(_AUGUST, "ValidateBloomFilterHeader: at most 128 MiB")},
        misreads={
            NOT_POWER_OF_TWO: _source(
                _AUGUST,
                "ParquetBloomFilter::Init: the number of blocks is rounded down to a power of two, so that values are"
                " looked up in other blocks than theirs; only a debug build checks that they agree",
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
        known=_measured(
            "ClickHouse 26.9",
            "Parquet: integers are hashed at the file's width, strings and fixed-length bytes as they are; floats,"
            " decimals, UUIDs, dates and timestamps aren't looked up; sizes that are no powers of two give every row."
            " ORC through ORC C++, unless input_format_orc_filter_push_down is off",
        ),
        wrong_about={
            NEGATIVE_ZERO: _measured(
                "ClickHouse 26.9",
                "`c = 0` over an ORC column holding only -0.0 gives no rows with the filter and all of them without",
            )
        },
        zeros=_FLOATS,
        zeros_in=_ORC,
        refuses={
            rule: _source(
                "its main of 2026", "Reader.cpp: a filter of another algorithm, hash or compression ends the query"
            )
            for rule in (ALGORITHM, HASH, COMPRESSION)
        },
        issues=(
            _measured(
                "ClickHouse 26.9",
                "a query or table that names a type in which values change (UInt16 over UInt32, Int8 over UInt8,"
                " Bool over Int64, FixedString over shorter strings) loses the rows of these"
                " (ClickHouse#121077 is open)",
            ),
            _told(
                "ClickHouse up to 26.8",
                "ClickHouse#112580: nulls that are read as a type's default aren't found by it; right in 26.9"
                " (measured)",
            ),
        ),
    ),
    Reader(
        name="starrocks",
        title="StarRocks",
        probes=_PARQUET,
        known=_told("StarRocks since 3.5", "Parquet filters of external tables are looked up"),
        issues=(_told("StarRocks 3.5.10", "starrocks#69898: predicates with OR over Paimon tables lose rows"),),
    ),
    Reader(
        name="doris",
        title="Doris",
        probes=_PARQUET,
        known=_told("Doris since 2025", "Parquet filters are looked up for `=` and IN"),
        issues=(
            _told(
                "Doris before doris#65489",
                "doris#65487: the filter of a column's first row group is asked about the later ones too",
            ),
            _told(
                "Doris before doris#67249, which is open",
                "doris#67249: within AND or OR one column's filter is asked about another column's value",
            ),
        ),
    ),
    *LIBRARIES,
)
"""Every reader."""
