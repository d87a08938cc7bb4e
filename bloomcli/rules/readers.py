"""Engines that read filters, and what each of them looks up wrongly. Facts only, each with where it was found.

A reader hashes the literal of a query. Where it makes other bytes of it than the writer made of the equal value
in the file, the filter says "absent" and rows are lost. "Run" stands for: tried on files by Arrow C++ 26, with
the filter and without; the tests in ``tests/interop/test_reader_rules.py`` do so again where the engine can run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from bloomcli.errors import UsageError, near_names
from bloomcli.model import Column

NEGATIVE_ZERO: Final = "reader-negative-zero"
MILLIS: Final = "reader-millis"
DECIMAL_WIDTH: Final = "reader-decimal-width"
WIDENED: Final = "reader-widened"
FLOAT16: Final = "reader-float16"
SINGLE_BLOCK: Final = "reader-single-block"

_PARQUET: Final = frozenset({"parquet"})
_ORC: Final = frozenset({"orc"})
_BOTH: Final = _PARQUET | _ORC
_NONE: Final[frozenset[str]] = frozenset()
_NOTHING: Final[Mapping[str, str]] = {}
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})

BY_PRECISION: Final = 0
"""A decimal's width is what its precision needs."""


class Reader(NamedTuple):
    """One engine, as far as filters go."""

    name: str
    title: str
    """As people write it, for messages."""
    probes: frozenset[str]
    """Formats whose filters it looks values up in; empty where it never does."""
    known: str
    """Where that is known from: project, version, file or issue."""
    aliases: tuple[str, ...] = ()
    wrong_about: Mapping[str, str] = _NOTHING
    """Rule id -> the evidence, one sentence."""
    dictionary: bool = False
    """It skips row groups by reading the dictionary page of a chunk that is dictionary-encoded throughout."""
    zeros: frozenset[str] = _NONE
    """Types of which it hashes its literal's own zero only: FLOAT, DOUBLE, FLOAT16."""
    decimal_width: int | None = None
    """Bytes at which it hashes decimals stored as bytes; `BY_PRECISION`; None: the column's own, or not at all."""
    widths: Mapping[str, str] = _NOTHING
    """Table type -> physical type at which it hashes, where that isn't the file's; types left out aren't probed."""


_SARGS: Final = "orc-core 2.3, RecordReaderImpl.checkInBloomFilter: the literal's doubleToLongBits alone is tested"

_ROWS: Final = (
    Reader(
        name="spark",
        title="Spark",
        aliases=("pyspark", "spark-sql"),
        probes=_BOTH,
        known="run, Spark 4.3 (parquet-java 1.17, orc-core 2.3); its Parquet predicates are of each file's own types,"
        " so widened columns, decimals of any width and milliseconds are looked up rightly (run)",
        wrong_about={
            NEGATIVE_ZERO: "run, Spark 4.3: `c = 0.0` over a Parquet or ORC column holding only -0.0 gives no rows"
            " with the filter and all of them without"
        },
        dictionary=True,
        zeros=_FLOATS,
    ),
    Reader(
        name="parquet-java",
        title="parquet-java",
        aliases=("parquet-mr", "parquet-hadoop"),
        probes=_PARQUET,
        known="parquet-java 1.17 and its master of August 2026, BloomFilterImpl.java; a predicate of another width"
        " than the file's is refused by SchemaCompatibilityValidator, not looked up",
        wrong_about={
            NEGATIVE_ZERO: "parquet-java, BloomFilterImpl.java, visit(Eq) and visit(In): NaN literals are let pass,"
            " zeros are hashed as they are"
        },
        dictionary=True,
        zeros=_FLOATS | {"FLOAT16"},
    ),
    Reader(
        name="orc-java",
        title="orc-core",
        aliases=("orc-core", "orc"),
        probes=_ORC,
        known="run, orc-core 2.3 through Spark 4.3; where the table's type isn't the file's, predicates are evaluated"
        " only for conversions that SchemaEvolution.isPPDSafeConversion names",
        wrong_about={NEGATIVE_ZERO: _SARGS},
        zeros=_FLOATS,
    ),
    Reader(
        name="orc-cpp",
        title="ORC C++",
        aliases=("orc-c++", "pyorc"),
        probes=_ORC,
        known="run, PyORC 0.12",
        wrong_about={
            NEGATIVE_ZERO: "run, PyORC 0.12; ORC C++, sargs/PredicateLeaf.cc, checkInBloomFilter: testDouble hashes"
            " the literal's own bits"
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="hive",
        title="Hive",
        probes=_ORC,
        known="ORC through orc-core; for Parquet it asks RowGroupFilter for statistics only"
        " (ParquetRecordReaderBase.java, HIVE-29737 is open)",
        wrong_about={NEGATIVE_ZERO: _SARGS},
        zeros=_FLOATS,
    ),
    Reader(
        name="trino",
        title="Trino",
        probes=_BOTH,
        known="Trino, TupleDomainParquetPredicate.checkInBloomFilter and TupleDomainOrcPredicate.checkInBloomFilter;"
        " in ORC only where its ORC Bloom filters are switched on. It looks up no decimals, timestamps or CHAR",
        wrong_about={
            NEGATIVE_ZERO: "Trino, TupleDomainParquetPredicate.checkInBloomFilter: REAL and DOUBLE literals are"
            " hashed as they are; in ORC testDouble and testFloat likewise",
            WIDENED: "trino#30544: the literal is hashed at the width of the table's type, the file's type isn't"
            " looked at; rows are lost where statistics don't make the query fail before",
        },
        dictionary=True,
        zeros=_FLOATS,
        widths={
            **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "INT32"),
            "BIGINT": "INT64",
            "FLOAT": "FLOAT",
            "DOUBLE": "DOUBLE",
        },
    ),
    Reader(
        name="presto",
        title="Presto",
        aliases=("prestodb",),
        probes=_ORC,
        known="PrestoDB, ORC where its ORC Bloom filters are switched on, not REAL; it doesn't read Parquet's"
        " (presto#18230 is open)",
        wrong_about={
            NEGATIVE_ZERO: "PrestoDB, TupleDomainOrcPredicate.checkInBloomFilter: testDouble of the literal as it is"
        },
        zeros=frozenset({"DOUBLE"}),
    ),
    Reader(
        name="iceberg",
        title="Iceberg",
        aliases=("spark-iceberg", "iceberg-java"),
        probes=_BOTH,
        known="Iceberg's main of August 2026 (7f879b1136), ParquetBloomRowGroupFilter.java, used by Spark and Flink"
        " on Iceberg tables; ORC through orc-core. An INT32 column under a long isn't looked up, nor is TIME in"
        " milliseconds; a FLOAT column under a double is, rightly",
        wrong_about={
            NEGATIVE_ZERO: "Iceberg, ParquetBloomRowGroupFilter.shouldRead: FLOAT and DOUBLE literals are hashed as"
            " they are",
            MILLIS: "Iceberg, ParquetBloomRowGroupFilter.shouldRead: for INT64 and TIMESTAMP the literal's"
            " microseconds are hashed, whatever the file's unit (its statistics: iceberg#18173)",
            DECIMAL_WIDTH: "Iceberg, ParquetBloomRowGroupFilter.shouldRead: decimals in bytes are hashed at"
            " TypeUtil.decimalRequiredBytes(precision), whatever the column's length",
        },
        dictionary=True,
        zeros=_FLOATS,
        decimal_width=BY_PRECISION,
    ),
    Reader(
        name="duckdb",
        title="DuckDB",
        aliases=("duckdb-2",),
        probes=_PARQUET,
        known="run, DuckDB 2.0: both zeros, milliseconds, decimals of any width, mixed INT32 and INT64 files and"
        " read_parquet(schema=...) all give every row",
        wrong_about={
            FLOAT16: "run, DuckDB 1.4.4, 1.5.5 and 2.0.0: FLOAT16 columns are read as FLOAT and looked up by 4 bytes,"
            " no equality finds any row"
        },
    ),
    Reader(
        name="duckdb-1",
        title="DuckDB 1",
        aliases=("duckdb-1.4", "duckdb-1.5"),
        probes=_PARQUET,
        known="run, DuckDB 1.4.4 and 1.5.5",
        wrong_about={
            NEGATIVE_ZERO: "run, DuckDB 1.4.4 and 1.5.5, and noted in duckdb#23829: `c = 0.0` over stored -0.0 gives"
            " no rows; right in 2.0.0",
            FLOAT16: "run, DuckDB 1.4.4 and 1.5.5: FLOAT16 columns are looked up by the 4 bytes of a FLOAT",
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="datafusion",
        title="DataFusion",
        aliases=("datafusion-55",),
        probes=_PARQUET,
        known="run, DataFusion 55: decimals of any width and columns under a wider table type give every row; FLOAT16"
        " and timestamps aren't looked up",
        wrong_about={
            NEGATIVE_ZERO: "run, DataFusion 55.0: `c = 0.0` over stored -0.0 gives no rows with the filter and all"
            " without; BloomFilterStatistics.check_scalar hashes the literal as it is"
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="datafusion-54",
        title="DataFusion up to 54",
        probes=_PARQUET,
        known="run, DataFusion 52.3 and 54.1; -0.0 doesn't equal 0.0 there, with filters and without: no filter loses"
        " its rows",
        wrong_about={
            DECIMAL_WIDTH: "datafusion#22994; run, DataFusion 52.3 and 54.1: decimals in FIXED_LEN_BYTE_ARRAY are"
            " hashed as 16 bytes, so that only precisions 36 to 38 of Arrow's writers are found; right in 55",
        },
        decimal_width=16,
    ),
    Reader(
        name="impala",
        title="Impala",
        probes=_BOTH,
        known="Impala's master of August 2026, parquet-bloom-filter-util.cc: looked up only where the table's type"
        " has the file's width, decimals, dates and timestamps never; ORC through ORC C++ (hdfs-orc-scanner.cc)",
        wrong_about={
            NEGATIVE_ZERO: "Impala, parquet-bloom-filter-util.cc, BytesToParquetFloatingPoint: the literal is PLAIN"
            "-encoded and hashed as it is",
            SINGLE_BLOCK: "Impala, parquet-bloom-filter.cc, ParquetBloomFilter::Init: the number of blocks is two at"
            " least, whatever the bitset's size; only a debug build checks that they agree",
        },
        dictionary=True,
        zeros=_FLOATS,
    ),
    Reader(
        name="clickhouse",
        title="ClickHouse",
        aliases=("chdb",),
        probes=_PARQUET,
        known="ClickHouse, parquetBloomFilterHash.cpp: integers are hashed at the file's width, strings as they are;"
        " floats, decimals, dates and timestamps aren't looked up",
    ),
    Reader(
        name="arrow",
        title="Arrow C++",
        aliases=("arrow-cpp", "pyarrow"),
        probes=_NONE,
        known="Arrow C++ 26: filters are read by request of the application only, scans don't look them up",
    ),
    Reader(
        name="polars",
        title="Polars",
        probes=_NONE,
        known="Polars' main of August 2026: polars-parquet can decode filters, polars-io and polars-stream don't ask"
        " it",
    ),
)

READERS: Final[dict[str, Reader]] = {row.name: row for row in _ROWS}
"""Every reader by its name."""

_BY_ANY_NAME: Final = {name: row for row in _ROWS for name in (row.name, *row.aliases)}


def reader(name: str) -> Reader:
    """The reader of this name or alias, in any case. Raises UsageError, with near names, for an unknown one."""
    found = _BY_ANY_NAME.get(name.strip().lower().replace("_", "-"))
    if found is not None:
        return found
    near = near_names(name.strip().lower(), _BY_ANY_NAME, n=3, cutoff=0.5)
    known = "known ones: " + ", ".join(READERS)
    raise UsageError(f"no reader {name!r}", hint=f"did you mean {' or '.join(near)}? {known}" if near else known)


def decimal_bytes(precision: int) -> int:
    """Bytes of the shortest two's complement that holds every decimal of so many digits. Source: the Parquet
    format's LogicalTypes.md, DECIMAL."""
    return int(10**precision - 1).bit_length() // 8 + 1


def decimal_width(who: Reader, column: Column) -> int | None:
    """The width in bytes at which a reader hashes the decimals of a Parquet column that is stored in bytes.

    None where it hashes them as they are stored, or doesn't look them up: in INT32 and INT64 no reader errs.
    """
    if who.decimal_width is None or not column.precision:
        return None
    if column.physical == "FIXED_LEN_BYTE_ARRAY":
        return who.decimal_width or decimal_bytes(column.precision)
    if column.physical == "BYTE_ARRAY" and who.decimal_width == BY_PRECISION:
        return decimal_bytes(column.precision)
    return None
