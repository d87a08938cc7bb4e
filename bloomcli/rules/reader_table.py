"""Readers and engines, what they look up wrongly, and which sizes of filters they read. Each fact has its source.

A reader hashes the literal of a query. If its bytes differ from those that the writer hashed for the equal value in
the file, the filter answers "absent" and rows are lost. "Measured" means that the engine ran on files with and
without the filter; ``tests/interop/test_reader_rules.py`` repeats that for the engines that can run in the tests.

For the sizes, files with filters of 1, 2, 3, 5, 29, 31, 33, 379, 1,000, 65,537 and 1,310,721 blocks of 32 bytes were
read. "Measured" then means that each query for a stored value returned its row, and that the row groups of absent
values were skipped where the filter excludes them. ``tests/interop/test_filter_sizes.py`` repeats that with some of
the sizes for the engines that run in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

NEGATIVE_ZERO: Final = "reader-negative-zero"
MILLIS: Final = "reader-millis"
DECIMAL_WIDTH: Final = "reader-decimal-width"
WIDENED: Final = "reader-widened"
FLOAT16: Final = "reader-float16"
SINGLE_BLOCK: Final = "reader-single-block"
INTERVAL: Final = "reader-interval"
NULL_STRUCTS: Final = "reader-null-structs"
ENCRYPTED: Final = "reader-encrypted"
ISSUE: Final = "reader-issue"
ALGORITHM: Final = "filter-algorithm"
HASH: Final = "filter-hash"
COMPRESSION: Final = "filter-compression"
NOT_POWER_OF_TWO: Final = "filter-not-power-of-two"
NO_LENGTH: Final = "filter-no-length"
TOO_LARGE: Final = "filter-too-large"

ALP: Final = "ALP"
"""Columns with values that ALP encodes. Measured: Spark 4.3, DuckDB 2.0.1, DataFusion 55, ClickHouse 26.9, Arrow C++
26 and Polars 2.1 end with an error; hyparquet 1.33 alone reads them."""
ENCRYPTED_COLUMN: Final = "encrypted"
"""Encrypted columns. Measured: Spark 4.3 and parquet-java 1.17 look their filters up, DuckDB 2.0.1 fails."""
VARIANT_FIELD: Final = "VARIANT"
"""Fields of a shredded VARIANT. Measured: Spark 4.3 and DuckDB 2.0.1 read every row group for a value that its
statistics and its filter exclude. ClickHouse 26.9 reads a VARIANT as the tuple of its leaves, and skips."""
NEWER: Final = frozenset({ALP, ENCRYPTED_COLUMN, VARIANT_FIELD})
"""Properties of Parquet columns that a reader isn't known to cope with, unless its row says so."""

BY_PRECISION: Final = 0
"""The width of a decimal follows from its precision."""


class Kind(StrEnum):
    """The kind of evidence for a fact."""

    MEASURED = "measured"
    """The engine ran on files with and without the filter."""
    SOURCE = "source"
    """The engine's source shows it; the engine didn't run."""
    THREAD = "thread"
    """An issue or a pull request reports it; it was not verified. Results in a note at most."""


class Evidence(NamedTuple):
    """One fact about an engine."""

    kind: Kind
    version: str
    """The versions that the fact applies to."""
    text: str
    """The observation and its source, as a sentence without a period."""


def measured(version: str, text: str) -> Evidence:
    """A fact that was measured."""
    return Evidence(Kind.MEASURED, version, text)


def source(version: str, text: str) -> Evidence:
    """A fact that was read in the source."""
    return Evidence(Kind.SOURCE, version, text)


def thread(version: str, text: str) -> Evidence:
    """A fact that was reported in a thread."""
    return Evidence(Kind.THREAD, version, text)


_NOTHING: Final[Mapping[str, Evidence]] = {}
_NONE: Final[frozenset[str]] = frozenset()
_PARQUET: Final = frozenset({"parquet"})
_ORC: Final = frozenset({"orc"})
_BOTH: Final = _PARQUET | _ORC
KINDS_IN: Final = _PARQUET
"""The formats in which readers overlook the types of their `overlooks`."""
_NO_WIDTHS: Final[Mapping[str, str]] = {}


class Reader(NamedTuple):
    """One engine and its use of filters."""

    name: str
    title: str
    """The usual spelling, for messages."""
    probes: frozenset[str]
    """The formats in whose filters it looks up values by itself; empty if it doesn't."""
    known: Evidence
    """The values that it looks up."""
    aliases: tuple[str, ...] = ()
    wrong_about: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that rows are lost. A thread alone isn't enough."""
    refuses: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that it rejects such a filter: it ignores the filter or fails."""
    any_size: Evidence | None = None
    """Evidence that it accepts Parquet filters of any number of blocks; None if it refuses or misreads some, if that
    is unknown, or if it doesn't use filters."""
    misreads: Mapping[str, Evidence] = _NOTHING
    """Rule id -> evidence that it looks up values wrongly in such a filter. `add` never writes such filters."""
    issues: tuple[Evidence, ...] = ()
    """Faults in Parquet files that can't be detected in them: faults of some queries or of types in a query, and
    reports in threads."""
    tables_only: bool = False
    """It reads files only through a table's schema."""
    superseded: bool = False
    """An old release: a newer one has fewer of these bugs, or none."""
    dictionary: bool = False
    """It skips row groups by the dictionary page of a chunk whose pages are all dictionary-encoded."""
    dictionary_bytes: int | None = None
    """The largest stored, so compressed, size of a dictionary in which it does so; None if there is no limit."""
    overlooks: frozenset[str] = NEWER
    """Types and properties (`NEWER`) of Parquet columns whose values it looks up in no filter and no dictionary."""
    zeros: frozenset[str] = _NONE
    """Types for which it looks up a zero only with the literal's sign: FLOAT, DOUBLE, FLOAT16."""
    zeros_in: frozenset[str] = _BOTH
    """The formats that `zeros` applies to."""
    decimal_width: int | None = None
    """The width in bytes at which it hashes decimals that are stored as bytes, or `BY_PRECISION`; None for the
    column's own width or no lookup."""
    decimal_digits: int | None = None
    """It reads decimals that are stored as bytes and have more digits than this as DOUBLE; None if it doesn't."""
    widths: Mapping[str, str] = _NO_WIDTHS
    """Table type -> physical type at which it hashes, if that isn't the file's. It doesn't look up other types."""

    def loses_zeros(self, kind: str, file_format: str) -> bool:
        """Return whether it looks up a zero only with the literal's sign in columns of this kind."""
        return kind in self.zeros and file_format in self.zeros_in

    def issues_of(self, file_format: str) -> tuple[Evidence, ...]:
        """Return its faults in a format that can't be detected in files."""
        return self.issues if file_format in _PARQUET else ()


_ROWS: Final = "filters of 1 to 1,310,721 blocks: every row is returned, and absent values skip row groups"
_VALUES: Final = "filters of 1 to 1,310,721 blocks: every value is found, and absent ones aren't"
_NOVEMBER: Final = "the releases of November 2026"
_AUGUST: Final = "main of August 2026"
_ONLY_ON_REQUEST: Final = "filters are read only through the API, scans don't use them"
_SARGS: Final = source(
    "orc-core 2.3", "RecordReaderImpl.checkInBloomFilter: the literal's doubleToLongBits alone is tested"
)
_DENIED_NULLS: Final = measured(
    "Spark 4.3 (orc-core 2.3), PyORC 0.12, ClickHouse 26.9",
    "`s.a IS NULL` finds 0 of 500 rows whose struct is null, and 500 without pushdown, in files of ORC Java",
)
_FLOATS: Final = frozenset({"FLOAT", "DOUBLE"})
_MOMENTS: Final = frozenset({"TIMESTAMP", "INT96"})
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
            " milliseconds are looked up correctly. Encrypted filters are used, those in plain text ignored",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "Spark 4.3",
                "`c = 0.0` on a Parquet or ORC column with only -0.0 returns no rows with the filter and all rows"
                " without it",
            ),
            NULL_STRUCTS: _DENIED_NULLS,
        },
        misreads={NO_LENGTH: _SHORT_READS},
        dictionary=True,
        zeros=_FLOATS,
        overlooks=frozenset({ALP, VARIANT_FIELD}),
        any_size=measured("Spark 4.1.4 and 4.3.0 (parquet-java 1.16 and 1.17)", _ROWS),
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
        overlooks=frozenset({ALP}),
        any_size=measured("parquet-java 1.16 and 1.17, through Spark", _ROWS),
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
        overlooks=NEWER | _MOMENTS | {"DECIMAL"},
        any_size=source(
            _AUGUST, "BloomFilterStore.getBloomFilter: the bitset is given to parquet-java's BlockSplitBloomFilter"
        ),
    ),
    Reader(
        name="orc-java",
        title="orc-core",
        aliases=("orc-core", "orc"),
        probes=_ORC,
        known=measured(
            "orc-core 2.3 through Spark 4.3",
            "if the table's type differs from the file's, predicates are evaluated only for the conversions in"
            " SchemaEvolution.isPPDSafeConversion",
        ),
        wrong_about={NEGATIVE_ZERO: _SARGS._replace(kind=Kind.MEASURED), NULL_STRUCTS: _DENIED_NULLS},
        zeros=_FLOATS,
    ),
    Reader(
        name="orc-cpp",
        title="ORC C++",
        aliases=("orc-c++", "pyorc"),
        probes=_ORC,
        known=measured("PyORC 0.12", "by search arguments of the application"),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "PyORC 0.12",
                "sargs/PredicateLeaf.cc, checkInBloomFilter: testDouble hashes the literal's own bits",
            ),
            NULL_STRUCTS: _DENIED_NULLS,
        },
        zeros=_FLOATS,
    ),
    Reader(
        name="hive",
        title="Hive",
        probes=_ORC,
        known=source(
            _AUGUST,
            "ORC through orc-core; for Parquet, also in the vectorised reader, it uses RowGroupFilter with statistics"
            " only (ParquetRecordReaderBase.java, HIVE-29737 is open)",
        ),
        wrong_about={NEGATIVE_ZERO: _SARGS},
        zeros=_FLOATS,
    ),
    Reader(
        name="presto",
        title="Presto",
        aliases=("prestodb",),
        probes=_ORC,
        known=source(
            _AUGUST,
            "ORC if its ORC Bloom filters are enabled, except REAL; it doesn't read those of Parquet (presto#18230 is"
            " open)",
        ),
        wrong_about={
            NEGATIVE_ZERO: source(
                _AUGUST, "TupleDomainOrcPredicate.checkInBloomFilter: testDouble of the unchanged literal"
            )
        },
        zeros=frozenset({"DOUBLE"}),
    ),
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
        any_size=source(
            _AUGUST, "ParquetBloomRowGroupFilter looks values up in parquet-java's BlockSplitBloomFilter"
        ),
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
            ENCRYPTED: measured(
                "DuckDB 2.0.1",
                "`Computed AES tag differs from read AES tag`, or, in its own files, an INTERNAL error, after which"
                " the database has to be opened again; the same columns are read without filters",
            ),
        },
        decimal_digits=38,
        any_size=measured("DuckDB 2.0.0", _ROWS),
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
        any_size=measured("DuckDB 1.4.4 and 1.5.5", f"{_ROWS} by parquet_bloom_probe"),
    ),
    Reader(
        name="datafusion",
        title="DataFusion",
        aliases=("datafusion-55",),
        probes=_PARQUET,
        known=measured(
            "DataFusion 55",
            "no encrypted files; decimals of any width and columns with a wider table"
            " type return every row; FLOAT16, decimals of more"
            " than 38 digits, 8- and 16-bit integers, dates, times, timestamps and fields of structs aren't looked"
            " up. It takes sorting_columns, which state the order within each row group, for the order of the whole"
            " file: if the row groups themselves aren't in this order, ORDER BY returns rows in a wrong order, and"
            " with LIMIT other rows",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "DataFusion 55.0",
                "`c = 0.0` on stored -0.0 returns no rows with the filter and all rows without it;"
                " BloomFilterStatistics.check_scalar hashes the unchanged literal",
            )
        },
        zeros=_FLOATS,
        overlooks=NEWER | _MOMENTS | {"FLOAT16", "DATE", "TIME"},
        any_size=measured("DataFusion 55.0 (arrow-rs)", _ROWS),
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
        any_size=measured("DataFusion 54.1 (arrow-rs)", _ROWS),
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
        overlooks=NEWER | _MOMENTS | {"DECIMAL", "DATE"},
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
            "Parquet, unencrypted: integers are hashed at the file's width, strings and"
            " fixed-length bytes unchanged; floats, decimals, UUIDs, dates and timestamps aren't looked up. Before"
            " filters, the same types are looked up in dictionaries of up to 1 MiB as stored"
            " (input_format_parquet_dictionary_filter_push_down). ORC through ORC C++, unless"
            " input_format_orc_filter_push_down is off",
        ),
        wrong_about={
            NEGATIVE_ZERO: measured(
                "ClickHouse 26.9",
                "`c = 0` on an ORC column with only -0.0 returns no rows with the filter and all rows without it",
            ),
            NULL_STRUCTS: _DENIED_NULLS,
        },
        dictionary=True,
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
        dictionary_bytes=1 << 20,
        overlooks=frozenset({ALP, ENCRYPTED_COLUMN})
        | _MOMENTS
        | {"FLOAT", "DOUBLE", "FLOAT16", "DECIMAL", "UUID", "DATE"},
        any_size=measured("ClickHouse 26.9", _ROWS),
    ),
    Reader(
        name="starrocks",
        title="StarRocks",
        probes=_PARQUET,
        known=thread("StarRocks since 3.5", "Parquet filters of external tables are looked up"),
        issues=(thread("StarRocks 3.5.10", "starrocks#69898: predicates with OR over Paimon tables lose rows"),),
        any_size=source(
            _AUGUST,
            "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks,"
            " by 2^32; reading it checks no power of two",
        ),
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
        any_size=source(
            _AUGUST,
            "ParquetBlockSplitBloomFilter::test_hash: the block is the hash's upper half times the number of blocks,"
            " by 2^32; its comment says that no power of two is assumed",
        ),
    ),
    Reader(
        name="arrow-rs",
        title="arrow-rs",
        aliases=("parquet-rs", "arro3"),
        probes=_NONE,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=measured("arrow-rs of DataFusion 54.1 and 55.0", _ROWS),
    ),
    Reader(
        name="arrow",
        title="Arrow C++",
        aliases=("arrow-cpp", "pyarrow"),
        probes=_NONE,
        known=measured("Arrow C++ 26", f"{_ONLY_ON_REQUEST}; encrypted files are read"),
        refuses={
            NOT_POWER_OF_TWO: measured(
                "Arrow C++ 26",
                "BloomFilterReader: `Given length of bitset is illegal`, an exception, for 3 to 1,310,721 blocks;"
                " pyarrow has no function that reads filters, and scans don't look at them",
            ),
            TOO_LARGE: source("Arrow C++ 26", "BlockSplitBloomFilter: at most 128 MiB"),
        },
    ),
    Reader(
        name="arrow-go",
        title="Arrow Go",
        probes=_NONE,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=measured("Arrow Go 18.8", _VALUES),
    ),
    Reader(
        name="parquet-go",
        title="parquet-go",
        aliases=("segmentio-parquet",),
        probes=_NONE,
        known=measured(
            _NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found. It writes any number of blocks"
        ),
        any_size=measured("parquet-go 0.32", _VALUES),
    ),
    Reader(
        name="hyparquet",
        title="hyparquet",
        probes=_NONE,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=source("hyparquet 1.31", "bloom.js, readBloomFilter: any multiple of 32 bytes"),
    ),
    Reader(
        name="velox",
        title="Velox",
        aliases=("gluten",),
        probes=_NONE,
        known=source(_AUGUST, "its Parquet reader doesn't support filters"),
        refuses={
            NOT_POWER_OF_TWO: source(
                "newer branches",
                "BlockSplitBloomFilter::init, which ParquetData::rowGroupBloomFilterMightMatch calls in branches that"
                " look filters up: an exception; the row group is read as if it had no filter",
            ),
        },
    ),
    Reader(
        name="polars",
        title="Polars",
        probes=_NONE,
        known=measured(
            "Polars 2.1",
            "polars-parquet can decode filters, but polars-io and polars-stream don't use it; files"
            " encrypted by AES-GCM are read",
        ),
    ),
)
"""Every reader."""
