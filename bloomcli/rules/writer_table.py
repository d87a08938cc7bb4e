"""Programs that write wrong metadata, what is wrong, and how it is recognized. Each fact has its source.

A reader skips rows by minima and maxima, null counts and indexes. Where they are wrong, it loses rows. "Measured"
means that the program wrote a file, and that its values were looked up; ``tests/rules/test_writers.py`` repeats that
for the files among the fixtures.

Facts with another detection than the writer's name and version need no code that knows the writer: the file
contradicts itself, or the part is never relied on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from bloomcli.model.file import Column
from bloomcli.rules.reader_table import Evidence, measured, source, thread

Version = tuple[int, ...]


class Part(StrEnum):
    """A part of a file's metadata from which readers conclude which values are there."""

    BOUNDS = "bounds of row groups"
    FILE_BOUNDS = "bounds of the file"
    """ORC: the footer's statistics. `inspect` shows them; nothing is skipped by them."""
    EXACT_BOUNDS = "bounds of row groups, as values"
    """A bound is taken for one of the row group's values: its filter must have it."""
    NULL_COUNT = "null counts of row groups"
    PAGE_BOUNDS = "column index"
    OFFSETS = "offset index"
    DICTIONARY_OFFSET = "offset of the dictionary"
    PAGE_NULLS = "null counts of page headers"
    SIZES = "size statistics"
    FILTER = "filters"
    DELTAS = "deltas of pages"
    """The numbers of a page in DELTA_BINARY_PACKED: not all readers decode them."""


class Detection(StrEnum):
    """How the fault is recognized in a file."""

    WRITER = "the writer's name and version"
    CONTRADICTION = "a contradiction in the file, whoever wrote it"
    ALWAYS = "never relied on, whoever wrote it"


class WriterFault(NamedTuple):
    """One part of the metadata that a writer gets wrong."""

    writer: str
    """The usual spelling, for messages."""
    part: Part
    evidence: Evidence
    """`Evidence.version` has the versions that are known to be wrong; `Evidence.text` what is wrong."""
    detection: Detection
    created_by: str | None = None
    """A regular expression for the start of the file's created_by. Its groups, if any, are the version's numbers.
    None if files don't name the writer. It decides whether the part is believed only where `detection` is WRITER."""
    before: Version | None = None
    """The first version without the fault; None if all versions have it, or the name has no version."""
    columns: Callable[[Column], bool] = lambda _: True
    """Whether the fault concerns a column."""
    which: str = "all"
    """The columns that it concerns, in words."""

    def made(self, created_by: str) -> bool:
        """Whether a version with the fault wrote a file."""
        match = None if self.created_by is None else re.match(self.created_by, created_by)
        if match is None:
            return False
        return self.before is None or tuple(int(number or 0) for number in match.groups()) < self.before


_BYTES: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_FIXED_16: Final = ("FIXED_LEN_BYTE_ARRAY", 16, None)
"""The type of a 128-bit integer, which has no logical type."""


def _decimal_in_bytes(column: Column) -> bool:
    return column.physical in _BYTES and (column.logical or "").startswith("DECIMAL")


def _text(column: Column) -> bool:
    return column.logical == "STRING"


def _local_timestamp(column: Column) -> bool:
    return (column.logical or "").startswith("TIMESTAMP") and column.utc is False


_POLARS_1: Final = r"Polars$"
"""Polars 1 doesn't write its version."""
_PARQUET_CPP: Final = r"parquet-cpp(?!-arrow)"
_PARQUET_CPP_ARROW: Final = r"parquet-cpp-arrow version (\d+)"
_PARQUET_RS: Final = r"parquet-rs version (\d+)"
_XITONGSYS: Final = r"parquet-go version latest"
_PARQUETJS: Final = r"parquet\.js|@dsnp/parquetjs"
_PARQUET_NET: Final = r"Parquet\.Net "
_CLICKHOUSE: Final = r"ClickHouse"
_PARQUET_MR: Final = r"parquet-mr"
_BAD_ORC_CPP: Final = r"ORC C\+\+(?: (?:1\.7\.0|1\.6\.(?:\d|1[01]))(?:-[^,]*)?)?,"
"""Files of versions before 1.6.11 don't state the version."""
_ORC_CPP_FILTERS: Final = r"ORC C\+\+(?![^,]*filters by bloomcli)"
_ORC_CPP: Final = r"ORC C\+\+(?: (\d+)\.(\d+)\.(\d+)[^,]*)?,"
_ORC_DECIMAL64: Final = r"ORC Java.*, writer version 6$"
_ORC_ORIGINAL: Final = r"(?:ORC Java|writer 0).*, writer version 0$"

DICTIONARIES_OF_VALUES: Final = ("parquet-mr ",)
"""The start of created_by of writers that add an entry to a dictionary when they write a value. Arrow C++ and DuckDB
write the dictionary of an array or a type, of which a row group may have few values. Other writers aren't known."""

ROWS: Final = (
    WriterFault(
        writer="Polars",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "Polars 1.30 to 1.39.3",
            "a page of floats with a NaN: null_pages is true and null_counts 0; DuckDB 2.0.1 loses the page's rows,"
            " too (parquet-java#3457)",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_POLARS_1,
        which="FLOAT, DOUBLE",
    ),
    WriterFault(
        writer="Polars",
        part=Part.BOUNDS,
        evidence=measured(
            "Polars 1.3.0, 1.33.1 and 1.38.1; polars#29347",
            "the bounds of pages are merged by an unsigned comparison: 1 to 7 for pages that hold -2; DuckDB 2.0.1,"
            " DataFusion 55 and Polars lose the rows, too",
        ),
        detection=Detection.WRITER,
        created_by=_POLARS_1,
        columns=_decimal_in_bytes,
        which="decimals in bytes",
    ),
    WriterFault(
        writer="Polars",
        part=Part.NULL_COUNT,
        evidence=measured(
            "Polars 1.38.1, not 1.33.1; polars#29321",
            "the null count is multiplied by the number of pages, so it can be the number of values or more, in a"
            " row group with values",
        ),
        detection=Detection.WRITER,
        created_by=_POLARS_1,
    ),
    WriterFault(
        writer="Polars",
        part=Part.BOUNDS,
        evidence=measured(
            "Polars 2.1.0", "bounds of Int128 and UInt128 are big-endian, the values little-endian, of unknown sign"
        ),
        detection=Detection.WRITER,
        created_by=r"Polars ",
        columns=lambda column: (column.physical, column.type_length, column.logical) == _FIXED_16,
        which="fixed 16 bytes without a logical type",
    ),
    WriterFault(
        writer="Polars",
        part=Part.BOUNDS,
        evidence=measured(
            "Polars 0.20.31, 1.9.0; mended after 1.36.1 (polars#25886)",
            "of two pages' bounds of which one begins with the other, the first page's is taken: 00 to zz for pages"
            " that hold zzzz; DataFusion 55 and Polars 2.1 lose the rows, too",
        ),
        detection=Detection.WRITER,
        created_by=_POLARS_1,
        columns=lambda column: column.physical == "BYTE_ARRAY" and not _decimal_in_bytes(column),
        which="BYTE_ARRAY",
    ),
    WriterFault(
        writer="Polars",
        part=Part.BOUNDS,
        evidence=thread(
            "Polars 0.16, by arrow2; polars#7842",
            "a maximum is below values; such files have no column_orders, without which min_value and max_value"
            " aren't used",
        ),
        detection=Detection.ALWAYS,
        created_by=r"Arrow2 - Native Rust implementation of Arrow",
    ),
    WriterFault(
        writer="parquet-mr, Impala, Polars",
        part=Part.DICTIONARY_OFFSET,
        evidence=measured(
            "parquet-mr 1.2 to 1.11, Impala 1, Polars to 1.38; PARQUET-1850",
            "dictionary_page_offset is absent, and data_page_offset is the dictionary's: 179 of 2,702 public files",
        ),
        detection=Detection.CONTRADICTION,
        which="columns with a dictionary",
    ),
    WriterFault(
        writer="Polars",
        part=Part.BOUNDS,
        evidence=thread(
            "Polars before 0.20.32; polars#15323 and polars#16683",
            "bounds of UInt64 are compared signed: the minimum is above the maximum",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_POLARS_1,
        which="UINT_64",
    ),
    WriterFault(
        writer="Arrow C++",
        part=Part.BOUNDS,
        evidence=source(
            "parquet-cpp, and Arrow C++ before 4.0; PARQUET-1655, parquet-java#1615",
            "decimals are compared byte by byte, each as a signed number: 255 to 300 for 1, 255, 300 and 384",
        ),
        detection=Detection.WRITER,
        created_by=_PARQUET_CPP_ARROW,
        before=(4,),
        columns=_decimal_in_bytes,
        which="decimals in bytes",
    ),
    WriterFault(
        writer="parquet-cpp",
        part=Part.BOUNDS,
        evidence=source("all; parquet-java#1615", "decimals are compared like those of Arrow C++ before 4.0"),
        detection=Detection.WRITER,
        created_by=_PARQUET_CPP,
        columns=_decimal_in_bytes,
        which="decimals in bytes",
    ),
    WriterFault(
        writer="Arrow C++",
        part=Part.NULL_COUNT,
        evidence=measured(
            "4.0.1, correct from 6.0 on; ARROW-12513",
            "a dictionary array with nulls gets the null count 0: 0 for 472 nulls in h2oai_group_small.parquet of"
            " DuckDB's tests",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_CPP_ARROW,
        before=(6,),
    ),
    WriterFault(
        writer="Arrow C++",
        part=Part.NULL_COUNT,
        evidence=thread(
            "before 6.0, PARQUET-2067; in structs 25.0.1 (26.0.1 measured: correct), arrow#51097",
            "nulls for null and empty lists aren't counted",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_CPP_ARROW,
        before=(26,),
        columns=lambda column: column.max_repetition_level > 0,
        which="columns in lists and maps",
    ),
    WriterFault(
        writer="Arrow C++",
        part=Part.SIZES,
        evidence=measured(
            "22.0.0 and 26.0.1",
            "values that begin the value before them are left out of unencoded_byte_array_data_bytes: 7 for five abc"
            " and five abcd",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_CPP_ARROW,
        which="BYTE_ARRAY in DELTA_BYTE_ARRAY",
    ),
    WriterFault(
        writer="Arrow C++, parquet-java",
        part=Part.PAGE_NULLS,
        evidence=thread(
            "Arrow C++ before 12.0, arrow#34326; parquet-java to 1.17, parquet-java#3585",
            "num_nulls of data pages of version 2 is any number, or -1, in columns without statistics",
        ),
        detection=Detection.ALWAYS,
    ),
    WriterFault(
        writer="parquet-java",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "1.13.0-SNAPSHOT, datapage_v1-*-checksum.parquet of parquet-testing",
            "pages that are written with empty statistics: null_pages is true and null_counts -1",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_PARQUET_MR,
    ),
    WriterFault(
        writer="arrow-rs",
        part=Part.NULL_COUNT,
        evidence=thread("May 2021; arrow-rs#306", "the null count of a column of nulls is 0"),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_RS,
        before=(5,),
    ),
    WriterFault(
        writer="arrow-rs",
        part=Part.PAGE_BOUNDS,
        evidence=thread(
            "before 53.0; arrow-rs#6310",
            "where some pages have only nulls, a page with values can be without bounds",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_PARQUET_RS,
    ),
    WriterFault(
        writer="arrow-go",
        part=Part.BOUNDS,
        evidence=measured(
            "18.0.0-SNAPSHOT, out_of_range_stats.parquet of DuckDB's tests",
            "bounds of unsigned integers of 8 bits are sign-extended: 4,294,967,295 for 255",
        ),
        detection=Detection.CONTRADICTION,
        created_by=r"parquet-go version \d",
        which="UINT_8, UINT_16",
    ),
    WriterFault(
        writer="arrow-rs",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "DataFusion 55",
            "a page with as many nulls as rows is said to have only nulls; in a list, it can have values, too",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_RS,
        which="columns in lists and maps",
    ),
    WriterFault(
        writer="arrow-rs",
        part=Part.BOUNDS,
        evidence=thread(
            "arrow-rs to 59; arrow-rs#10860 and arrow-rs#11073",
            "decimals of different lengths are compared as bytes: 1 to 3 for 1, 3 and 256",
        ),
        detection=Detection.WRITER,
        created_by=_PARQUET_RS,
        columns=lambda column: column.physical == "BYTE_ARRAY" and _decimal_in_bytes(column),
        which="decimals in BYTE_ARRAY",
    ),
    WriterFault(
        writer="arrow-rs",
        part=Part.BOUNDS,
        evidence=thread(
            "arrow-rs before 5.2; arrow-rs#641",
            "shorter byte arrays are taken for smaller; such files have no column_orders, without which min_value and"
            " max_value aren't used",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUET_RS,
        which="BYTE_ARRAY",
    ),
    WriterFault(
        writer="segmentio/parquet-go",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "August 2022, not April 2023; segmentio/parquet-go#495",
            "maxima are cut to 16 bytes (a setting) and not incremented, so that `West Oakland (WO` excludes `West"
            " Oakland (WOAK)`; DataFusion 55 loses the rows, too; the files don't state the version",
        ),
        detection=Detection.WRITER,
        created_by=r"github\.com/segmentio/parquet-go",
        columns=lambda column: column.physical in _BYTES,
        which="BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY",
    ),
    WriterFault(
        writer="parquet-go/parquet-go",
        part=Part.PAGE_BOUNDS,
        evidence=measured("0.32.0", "maxima that begin with sixteen 0xFF are cut there and can't be incremented"),
        detection=Detection.ALWAYS,
        created_by=r"github\.com/parquet-go/parquet-go",
        which="BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY",
    ),
    WriterFault(
        writer="xitongsys/parquet-go",
        part=Part.OFFSETS,
        evidence=measured(
            "1.6.2, and issue206.parquet of parquet-go's tests; xitongsys/parquet-go#623",
            "the sizes in the offset index leave out the page headers",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_XITONGSYS,
    ),
    WriterFault(
        writer="parquetjs",
        part=Part.OFFSETS,
        evidence=measured("@dsnp/parquetjs 1.8.8", "the first row of every page is 0 in the offset index"),
        detection=Detection.CONTRADICTION,
        created_by=_PARQUETJS,
    ),
    WriterFault(
        writer="parquetjs",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "@dsnp/parquetjs 1.8.8, parquetjs",
            "pages with values have no bounds, or null_pages is true, or there is no null_pages",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_PARQUETJS,
    ),
    WriterFault(
        writer="xitongsys/parquet-go",
        part=Part.NULL_COUNT,
        evidence=measured(
            "1.6.2; xitongsys/parquet-go#567", "the null count of a column of nulls isn't that of its values"
        ),
        detection=Detection.CONTRADICTION,
        created_by=_XITONGSYS,
    ),
    WriterFault(
        writer="parquet-dotnet",
        part=Part.OFFSETS,
        evidence=measured(
            "test-delta-binary-packed.parquet of parquet-dotnet's tests, which names no writer",
            "the sizes in the offset index are those of the values alone: 14 bytes for 59",
        ),
        detection=Detection.CONTRADICTION,
    ),
    WriterFault(
        writer="parquetjs",
        part=Part.BOUNDS,
        evidence=measured(
            "parquetjs",
            "a minimum is above values; such files have no column_orders, without which min_value and max_value"
            " aren't used",
        ),
        detection=Detection.ALWAYS,
        created_by=_PARQUETJS,
        which="BSON",
    ),
    WriterFault(
        writer="hyparquet-writer",
        part=Part.BOUNDS,
        evidence=measured(
            "0.6.1 and 0.12.0, not 0.16.10; hyparquet-writer#38",
            "bounds of decimals are floating-point numbers before they were scaled; the files have no column_orders,"
            " without which min_value and max_value aren't used",
        ),
        detection=Detection.ALWAYS,
        created_by=r"hyparquet",
        which="decimals",
    ),
    WriterFault(
        writer="ClickHouse",
        part=Part.PAGE_BOUNDS,
        evidence=measured(
            "25.8.2; correct from 25.8.23, 26.1.12, 26.3.10 and 26.4.1 on; ClickHouse#103039",
            "bounds of more than 4096 bytes are written as the empty text, which is taken for the maximum",
        ),
        detection=Detection.ALWAYS,
        created_by=_CLICKHOUSE,
        which="BYTE_ARRAY",
    ),
    WriterFault(
        writer="ClickHouse",
        part=Part.BOUNDS,
        evidence=thread(
            "before 25.8; ClickHouse#83754",
            "decimals are compared unsigned: the minimum is above the maximum where both signs occur",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_CLICKHOUSE,
        which="decimals in bytes",
    ),
    WriterFault(
        writer="cuDF",
        part=Part.NULL_COUNT,
        evidence=thread(
            "before 21.12; cudf#9221", "the null count is a large number, more than the row group has values"
        ),
        detection=Detection.CONTRADICTION,
    ),
    WriterFault(
        writer="parquet-dotnet",
        part=Part.BOUNDS,
        evidence=measured(
            "4.25.0, the file corrupt_stats.parquet of DuckDB's tests; which version mends it isn't known",
            "bounds of local timestamps are moved by the zone of the machine: 04:00 for 12:00",
        ),
        detection=Detection.WRITER,
        created_by=_PARQUET_NET,
        columns=_local_timestamp,
        which="local timestamps",
    ),
    WriterFault(
        writer="parquet-dotnet",
        part=Part.NULL_COUNT,
        evidence=thread("6.0.0-pre.3; parquet-dotnet#735", "the null count is negative"),
        detection=Detection.CONTRADICTION,
        created_by=_PARQUET_NET,
    ),
    WriterFault(
        writer="DuckDB",
        part=Part.EXACT_BOUNDS,
        evidence=thread(
            "before 2.0 (2.0.1 measured: correct); duckdb#22548 and duckdb#20014",
            "bounds of an ENUM are those of the type, and bounds of infinities are the largest finite numbers; both"
            " are bounds, but no values",
        ),
        detection=Detection.WRITER,
        created_by=r"DuckDB version v(\d+)",
        before=(2,),
        columns=lambda column: column.physical in {"BYTE_ARRAY", "FLOAT", "DOUBLE"},
        which="BYTE_ARRAY, FLOAT, DOUBLE",
    ),
    WriterFault(
        writer="DuckDB",
        part=Part.DELTAS,
        evidence=measured(
            "2.0.1, with parquet_version V2",
            "INT32 deltas have more than 32 bits: Arrow C++ and DataFusion refuse the page, ClickHouse reads other"
            " values, DuckDB and Polars the right ones",
        ),
        detection=Detection.WRITER,
        created_by=r"DuckDB version v",
        columns=lambda column: column.physical == "INT32",
        which="INT32",
    ),
    WriterFault(
        writer="parquet-mr, parquet-cpp, Hive, Impala",
        part=Part.BOUNDS,
        evidence=source(
            "before parquet-format 2.4; PARQUET-251, PARQUET-686, PARQUET-1025",
            "the deprecated min and max have a signed order for all types",
        ),
        detection=Detection.ALWAYS,
        which="all but signed INT32 and INT64",
    ),
    WriterFault(
        writer="parquet-mr, parquet-cpp",
        part=Part.BOUNDS,
        evidence=source(
            "before PARQUET-1246, and pyarrow 0.8",
            "a bound is NaN, and the other one may leave values out",
        ),
        detection=Detection.ALWAYS,
        which="FLOAT, DOUBLE, FLOAT16",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.BOUNDS,
        evidence=source(
            "writer version 0 (Hive before 0.14); HIVE-8732, Trino's OrcMetadataReader",
            "texts are compared by their UTF-16 units, which order characters above U+FFFF otherwise than UTF-8",
        ),
        detection=Detection.WRITER,
        created_by=_ORC_ORIGINAL,
        columns=_text,
        which="STRING, CHAR, VARCHAR",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.FILE_BOUNDS,
        evidence=source(
            "writer version 0 (Hive before 0.14); HIVE-8732",
            "bounds of stripes are merged wrongly",
        ),
        detection=Detection.WRITER,
        created_by=_ORC_ORIGINAL,
        columns=lambda column: column.logical in {"STRING", "DATE"},
        which="texts and dates",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.BOUNDS,
        evidence=source(
            "1.5.0 to 1.5.5 (writer version 6); ORC-517",
            "bounds of decimals of at most 18 digits include 0, which may be no value: 0 to 300 for 100 and 300",
        ),
        detection=Detection.WRITER,
        created_by=_ORC_DECIMAL64,
        columns=lambda column: (column.logical or "").startswith("DECIMAL"),
        which="decimals",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.NULL_COUNT,
        evidence=measured(
            "2.3.0 without a row index; Hive's minor compaction (HIVE-20604, trino#4622)",
            "number_of_values is 0 and has_null false, in a file or a row group with values",
        ),
        detection=Detection.CONTRADICTION,
        created_by=r"ORC Java",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.NULL_COUNT,
        evidence=measured(
            "2.3.0 (Spark 4.3)",
            "has_null of a struct's fields is false where only the struct is null; Spark, ClickHouse and PyORC lose"
            " these rows for IS NULL (`reader-null-structs`)",
        ),
        detection=Detection.ALWAYS,
        created_by=r"ORC Java",
        which="fields of structs",
    ),
    WriterFault(
        writer="ORC C++",
        part=Part.FILTER,
        evidence=source(
            "1.6.0 to 1.6.11 and 1.7.0; ORC-1024, Reader.cc, BAD_CPP_BLOOM_FILTER_VERSIONS",
            "values are hashed inconsistently",
        ),
        detection=Detection.WRITER,
        created_by=_BAD_ORC_CPP,
    ),
    WriterFault(
        writer="ORC C++",
        part=Part.FILTER,
        evidence=measured(
            "2.2.2, and in the source from 1.6.0 to 2.3.1",
            "an eighth of the TINYINTs is hashed after bytes were written over them, and CHARs with other bytes for"
            " their blanks",
        ),
        detection=Detection.WRITER,
        created_by=_ORC_CPP_FILTERS,
        columns=lambda column: column.bit_width == 8 or (column.type_name or "").startswith("char("),
        which="TINYINT, CHAR",
    ),
    WriterFault(
        writer="ORC C++",
        part=Part.BOUNDS,
        evidence=measured(
            "pyarrow's",
            "bounds of texts end at a zero byte, and lowest timestamps before 1970 are rounded towards zero",
        ),
        detection=Detection.ALWAYS,
        created_by=r"ORC C\+\+",
        which="STRING, CHAR, VARCHAR, TIMESTAMP",
    ),
    WriterFault(
        writer="ORC C++",
        part=Part.BOUNDS,
        evidence=source(
            "before 1.7.5; ORC-1151",
            "with a time zone other than UTC, bounds are converted by the offset of another time",
        ),
        detection=Detection.WRITER,
        created_by=_ORC_CPP,
        before=(1, 7, 5),
        columns=_local_timestamp,
        which="TIMESTAMP",
    ),
    WriterFault(
        writer="ORC C++",
        part=Part.BOUNDS,
        evidence=source(
            "before 2.1.0, on processors whose char has no sign, such as ARM; ORC-1725",
            "bytes are compared unsigned: 0 to 255 for -1 and 0",
        ),
        detection=Detection.CONTRADICTION,
        created_by=_ORC_CPP,
        before=(2, 1, 0),
        which="TINYINT",
    ),
    WriterFault(
        writer="ORC Java, ORC C++",
        part=Part.BOUNDS,
        evidence=source(
            "ORC Java before 1.6.4, ORC-611; ORC C++ before 1.7, ORC-663",
            "bounds are cut to milliseconds, below the maximum",
        ),
        detection=Detection.ALWAYS,
        which="TIMESTAMP",
    ),
    WriterFault(
        writer="ORC Java",
        part=Part.BOUNDS,
        evidence=source(
            "before 1.3.2 (writer version below 6); ORC-135",
            "bounds are in local time, without the writer's zone",
        ),
        detection=Detection.ALWAYS,
        which="TIMESTAMP",
    ),
    WriterFault(
        writer="cuDF",
        part=Part.BOUNDS,
        evidence=thread(
            "23.10; cudf#14325", "the nanoseconds of bounds are no nanoseconds, and the bounds in local time differ"
        ),
        detection=Detection.ALWAYS,
        which="TIMESTAMP in ORC",
    ),
    WriterFault(
        writer="ORC Java, Trino",
        part=Part.BOUNDS,
        evidence=measured(
            "all; trino#30187",
            "texts of a CHAR are compared with their blanks in some writers and without them in others, which order"
            " bytes below the blank differently",
        ),
        detection=Detection.ALWAYS,
        which="CHAR",
    ),
)
"""Every known fault."""


_FILES_AT_A_TIME: Final = 64


@lru_cache(maxsize=_FILES_AT_A_TIME)
def faults(created_by: str | None) -> tuple[WriterFault, ...]:
    """Return the faults of the writer of a file that only its name and version, in created_by, show."""
    return tuple(row for row in ROWS if row.detection is Detection.WRITER and row.made(created_by or ""))


def fault_of(created_by: str | None, part: Part, column: Column) -> WriterFault | None:
    """Return why a part of the metadata of a column isn't believed; None if it is."""
    return next((row for row in faults(created_by) if row.part is part and row.columns(column)), None)


def has_fault(created_by: str | None, part: Part, column: Column) -> bool:
    """Return whether the writer of a file is known to get a part of a column's metadata wrong, however the fault is
    recognized."""
    return any(row.part is part and row.made(created_by or "") and row.columns(column) for row in ROWS)


def dictionaries_hold_values_only(created_by: str | None) -> bool:
    """Return whether every entry of a dictionary is a value of its chunk."""
    return any((created_by or "").startswith(start) for start in DICTIONARIES_OF_VALUES)
