"""The engines that read Parquet return the same rows before and after `bloom repair`, and skip pages by its indexes.

The files have what readers have had faults with: lists, NaN, unsigned numbers, FLOAT16, pages of nulls alone.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support import clickhouse, engine_scans, footers, patches, skipped_rows
from support.other_writers import WRITERS
from support.thrift import Fields

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

ROWS: Final = 3_000
BOTH: Final = ("page-index", "statistics")

WHERE: Final = (
    *(f"n = {n}" for n in (0, 299, 300, 1499, 2999, 3000)),
    "u64 = 9223372036854775807",
    "u64 = 9223372036854775808",
    "u64 > 9223372036854775807 AND n < 1510",
    "u32 = 2147483647",
    "u32 = 2147483648",
    "u8 = 200",
    "i8 = -1",
    "s = 'n0001501'",
    "s IS NULL AND n > 2980",
    "dec = -1",
    "dec = 1499",
    "f = -99.75",
    "f = 649.75",
    "nans = 100.25",
    "z = 0",
    "flag AND n < 1510",
    "part IS NULL AND n < 3",
    "part = 2999",
    "few = 'v2' AND n < 2005",
    "empty = '' AND n = 5",
    "n BETWEEN 1190 AND 1210",
)
"""Conditions in the SQL of every engine. Whole rows are compared, lists too."""


def table() -> pa.Table:
    at = range(ROWS)
    pairs = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]))
    return pa.table(
        {
            "n": pa.array(at, pa.int64()),
            "u64": pa.array([2**63 - 1500 + i for i in at], pa.uint64()),
            "u32": pa.array([2**31 - 1500 + i for i in at], pa.uint32()),
            "u8": pa.array([i // 12 for i in at], pa.uint8()),
            "i8": pa.array([i // 12 - 125 for i in at], pa.int8()),
            "s": [f"n{i:07}" if i % 7 else None for i in at],
            "long": ["é" * 60 + f"{i:07}" for i in at],
            "dec": pa.array([Decimal(i - 1500) for i in at], pa.decimal128(20, 0)),
            "f": [math.nan if i % 100 == 0 else i / 4 - 100 for i in at],
            "nans": [math.nan if 600 <= i < 1300 else i / 4 for i in at],
            "z": [-0.0 if i % 2 else 0.0 for i in at],
            "flag": [i > 1500 for i in at],
            "part": pa.array([None if i < 1400 else i for i in at], pa.int32()),
            "few": [f"v{i // 1000}" for i in at],
            "empty": ["" if i < 1500 else "x" for i in at],
            "list": pa.array([[i, None] if i % 3 else ([] if i % 2 else None) for i in at], pa.list_(pa.int32())),
            "pairs": pa.array([[{"a": i, "b": [str(i)] * (i % 4)}] * (i % 3) for i in at], pairs),
            "pair": pa.array(
                [{"x": i if i % 5 else None} if i % 11 else None for i in at], pa.struct({"x": pa.int64()})
            ),
            "ts": pa.array([dt.datetime(1969, 12, 31) + dt.timedelta(minutes=i) for i in at], pa.timestamp("us")),
        }
    )


LAYOUTS: Final[dict[str, dict[str, Any]]] = {
    "version 1": {"compression": "snappy"},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
}


@pytest.fixture(scope="module", params=LAYOUTS)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(a file without page index and statistics, the same file with them)."""
    folder = tmp_path_factory.mktemp("repaired")
    bare, ours = folder / "bare.parquet", folder / "ours.parquet"
    pq.write_table(
        table(),
        bare,
        row_group_size=1300,
        data_page_size=2048,
        write_batch_size=100,
        max_rows_per_page=300,
        write_statistics=False,
        **LAYOUTS[request.param],
    )
    report = bloomcli.repair(bare, add=BOTH, output=ours)
    indexes = [one for one in report.structures if one.structure == "column_index" and one.action == "add"]
    assert all(one.pages > 1 for one in indexes)
    assert not bloomcli.validate(ours, deep=True, columns=["*"]).findings
    return bare, ours


def duckdb_rows(path: Path, where: str) -> list[Any]:
    import duckdb

    return duckdb.execute(f"SELECT * FROM '{path}' WHERE {where}").fetchall()


def datafusion_rows(path: Path, where: str, *, pushdown: bool) -> tuple[list[Any], str]:
    """The rows of a file that meet a condition, and the metrics of the scan."""
    import datafusion

    pushed = "datafusion.execution.parquet.pushdown_filters"
    context = datafusion.SessionContext(datafusion.SessionConfig().set(pushed, str(pushdown).lower()))
    context.register_parquet("t", str(path))
    frame = context.sql(f"SELECT * FROM t WHERE {where}")
    rows = [row for batch in frame.collect() for row in batch.to_pylist()]
    return rows, repr(frame.execution_plan().collect_metrics())


def polars_rows(path: Path, where: str) -> list[Any]:
    import polars as pl

    return pl.scan_parquet(path).sql(f"SELECT * FROM self WHERE {where}").collect().rows()


SAME: Final[dict[str, Callable[[Path, str], list[Any]]]] = {
    "duckdb": duckdb_rows,
    "datafusion": lambda path, where: datafusion_rows(path, where, pushdown=False)[0],
    "datafusion with pushdown": lambda path, where: datafusion_rows(path, where, pushdown=True)[0],
    "polars": polars_rows,
}


def assert_same(rows: Callable[[Path, Any], list[Any]], files: tuple[Path, Path], conditions: Sequence[Any]) -> None:
    """Both files give the same rows for every condition, and some rows for nearly all."""
    before, after = ([sorted(map(repr, rows(path, where))) for where in conditions] for path in files)
    assert [where for where, *both in zip(conditions, before, after, strict=True) if both[0] != both[1]] == []
    assert sum(map(bool, before)) >= len(conditions) - 4


@pytest.mark.parametrize("reader", SAME)
def test_a_reader_with_sql_gives_the_same_rows(files: tuple[Path, Path], reader: str) -> None:
    assert_same(SAME[reader], files, WHERE)


def test_arrow_gives_the_same_rows(files: tuple[Path, Path]) -> None:
    values = {"n": 299, "s": "n0001501", "part": 2999, "f": -99.75, "u64": pa.scalar(2**63, pa.uint64())}
    conditions = [*(ds.field(column) == value for column, value in values.items()), ds.field("pair", "x") == 2999]
    assert_same(lambda path, where: ds.dataset(path).to_table(filter=where).to_pylist(), files, conditions)


def test_datafusion_skips_pages_by_the_new_index(files: tuple[Path, Path]) -> None:
    pruned = re.compile(r"page_index_rows_pruned\{[^}]*\}=([\d.]+) ?(K?) total → ([\d.]+) ?(K?) matched")

    def left(path: Path) -> list[float]:
        """(rows, rows that may meet the condition) by the page index."""
        metrics = datafusion_rows(path, "n = 299", pushdown=True)[1]
        sums = [0.0, 0.0]
        for total, thousands, matched, more in pruned.findall(metrics):
            sums[0] += float(total) * (1000 if thousands else 1)
            sums[1] += float(matched) * (1000 if more else 1)
        return sums

    assert left(files[0]) == [0, 0]  # it has no page index
    total, matched = left(files[1])
    assert (total, matched) == (1300, 300)  # the statistics rule the other row groups out


@pytest.mark.parametrize("files", ["version 2"], indirect=True)
def test_clickhouse_gives_the_same_rows_and_skips_pages(files: tuple[Path, Path]) -> None:
    with clickhouse.running() as server:
        read = "SELECT {} FROM file('{}', Parquet) WHERE {}"
        assert_same(lambda path, where: server.ask(read.format("*", path, where)).rows, files, WHERE)
        pages = [server.ask(read.format("n, s, list", path, "n = 299")).read_pages for path in files]
        assert pages[1] == 3 < pages[0]  # one of each column


@pytest.mark.spark
@pytest.mark.parametrize("files", ["version 2"], indirect=True)
def test_spark_gives_the_same_rows_and_skips_pages(spark: SparkSession, files: tuple[Path, Path]) -> None:
    from support import spark_scan

    spark.conf.set("spark.sql.parquet.filterPushdown", "true")
    read: dict[str, list[int]] = {where: [] for where in WHERE}

    def rows(path: Path, where: str) -> list[Any]:
        scanned, count = spark_scan.scan(spark.read.parquet(str(path)), where)
        read[where].append(count)
        return scanned

    assert_same(rows, files, WHERE)
    for where in ("n = 299", "s = 'n0001501'"):
        assert read[where] == [1300, 300]  # dictionaries rule the other row groups out


def harmed(data: bytes) -> bytes:
    """A file in whose last row group every other column has a maximum that is the minimum, and so has a page of it.
    The columns between them have no statistics and no page index."""
    group = footers.tree(data)[footers.ROW_GROUPS][1].values[patches.LAST]
    columns = [
        chunk[footers.META_DATA][1][patches.PATH][1].values[0].decode() for chunk in group[footers.COLUMNS][1].values
    ]
    indexed = [footers.COLUMN_INDEX_OFFSET in chunk for chunk in group[footers.COLUMNS][1].values]
    for column, has_index in list(zip(columns, indexed, strict=True))[::2]:
        data = patches.bounds(column, MAX_VALUE="MIN_VALUE", MAX="MIN")(data)
        if has_index:
            data = patches.page_bounds(column, 1, patches.MAXS, patches.MINS)(data)

    def strip(metadata: Fields) -> None:
        for number in range(1, len(columns), 2):
            chunk = footers.chunk(metadata, patches.LAST, number)
            for field in range(footers.OFFSET_INDEX_OFFSET, footers.CRYPTO_METADATA):
                chunk.pop(field, None)
            chunk[footers.META_DATA][1].pop(footers.STATISTICS, None)

    return footers.edited(data, strip)


class JavaFile:
    """What parquet-java understands of the last row group of a file."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        java, parquet = spark._jvm.java.util, spark._jvm.org.apache.parquet
        source = parquet.hadoop.util.HadoopInputFile.fromPath(
            spark._jvm.org.apache.hadoop.fs.Path(path.as_uri()), spark.sparkContext._jsc.hadoopConfiguration()
        )
        self.reader = parquet.hadoop.ParquetFileReader.open(source)
        number = self.reader.getRowGroups().size() - 1
        block = self.reader.getRowGroups().get(number)
        self.rows: int = block.getRowCount()
        self.chunks = {chunk.getPath().toDotString(): chunk for chunk in block.getColumns()}
        self._store = self.reader.getColumnIndexStore(number)
        self._api, self._get = parquet.filter2.predicate.FilterApi, parquet.filter2.compat.FilterCompat.get
        self._calculate = parquet.internal.filter2.columnindex.ColumnIndexFilter.calculateRowRanges
        self._set_of, self._longs = java.Collections.singleton, java.stream.LongStream.of
        self._to_set = java.stream.Collectors.toSet()

    def ranges(self, column: str, kind: str, value: Any) -> set[int]:
        """The rows that the column index leaves for a value in Java's form, or None for nulls."""
        maker = {"INT32": "int", "INT64": "long", "FIXED_LEN_BYTE_ARRAY": "binary"}.get(kind, kind.lower())
        there = getattr(self._api, f"{maker}Column")(column)
        if value is None:
            wanted = self._api.eq(there, None)
        else:  # in a set, because Py4J passes a small number on as an Integer
            values = self._longs(value).boxed().collect(self._to_set) if kind == "INT64" else self._set_of(value)
            wanted = getattr(self._api, "in")(there, values)
        path = self._set_of(self.chunks[column].getPath())
        found = self._calculate(self._get(wanted), self._store, path, self.rows).toString()
        pairs = re.findall(r"\[(\d+), (\d+)\]", found)
        return {row for first, last in pairs for row in range(int(first), int(last) + 1)}


def java_text(value: Any) -> str:
    """A value as parquet-java writes it by the column's type."""
    match value:
        case bool():
            return str(value).lower()
        case bytes():
            return f"0x{value.hex().upper()}"
        case dt.datetime():
            return f"{value:%Y-%m-%dT%H:%M:%S.%f}+0000"
    return str(value)


def bounded(values: list[Any]) -> list[Any]:
    """The values that bounds are about: neither nulls nor NaN."""
    return [value for value in values if value is not None and not (isinstance(value, float) and math.isnan(value))]


def expected(page: list[Any]) -> list[str]:
    """The null count and the bounds of a page, as parquet-java writes them."""
    known = bounded(page)
    bounds = [java_text(min(known)), java_text(max(known))] if known else ["<none>", "<none>"]
    return [str(page.count(None)), *bounds]


def table_of(text: str) -> list[list[str]]:
    """The cells of the pages' lines in a text of parquet-java about an index."""
    lines = [line for line in text.splitlines() if line.startswith("page-")]
    return [[cell.strip() for cell in re.split(r"\s{2,}", line.strip())] for line in lines]


ORDERS: Final = {"ASCENDING": sorted, "DESCENDING": lambda values: sorted(values, reverse=True), "UNORDERED": list}


@pytest.mark.spark
@pytest.mark.parametrize("writer", skipped_rows.WRITERS)
def test_parquet_java_understands_what_was_mended_and_what_was_added(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    from support import spark_scan

    path = tmp_path / "f.parquet"
    path.write_bytes(harmed(skipped_rows.WRITERS[writer]()))
    rows = pq.read_table(path)
    assert bloomcli.validate(path, deep=True, columns=["*"]).findings
    mended = bloomcli.repair(path, in_place=True).structures
    added = bloomcli.repair(path, in_place=True, add=BOTH).structures
    assert {one.action for one in (*mended, *added)} >= {"replace", "add"}
    java = JavaFile(spark, path)
    group = rows.slice(rows.num_rows - java.rows)
    for column, chunk in java.chunks.items():
        values = group[column].to_pylist()
        known = bounded(values)
        statistics, kind = chunk.getStatistics(), chunk.getPrimitiveType().getPrimitiveTypeName().toString()
        assert statistics.getNumNulls() == values.count(None), column
        if column != "real":  # parquet-java doesn't believe bounds where it doesn't know of NaN
            found = [statistics.minAsString(), statistics.maxAsString()]
            assert found == [java_text(min(known)), java_text(max(known))], column
            if kind != "FLOAT":  # which Py4J can't pass on
                greatest = {row for row, value in enumerate(values) if value == max(known)}
                left = java.ranges(column, kind, statistics.genericGetMax())
                assert left >= greatest, column
        starts = [int(line[3]) for line in table_of(java.reader.readOffsetIndex(chunk).toString())]
        pages = [values[start:end] for start, end in zip(starts, [*starts[1:], java.rows], strict=True)]
        index = java.reader.readColumnIndex(chunk)
        text = index.toString()
        assert [line[1:4] for line in table_of(text)] == [expected(page) for page in pages], column
        order = ORDERS[text.split("\n", 1)[0].rpartition(" ")[2]]
        for end in (min, max):
            ends = [end(bounded(page)) for page in pages if bounded(page)]
            assert ends == order(ends), column
        if None in values:
            nulls = {
                row
                for start, page in zip(starts, pages, strict=True)
                if None in page
                for row in range(start, start + len(page))
            }
            assert java.ranges(column, kind, None) == nulls, column
        if column == "up":
            assert left == set(range(starts[-1], java.rows))
    java.reader.close()
    found_rows, read = spark_scan.scan(spark.read.parquet(str(path)), f"up = {rows.num_rows - 1}")
    assert [row["id"] for row in found_rows] == rows["id"].to_pylist()[-1:]
    assert read == java.rows - starts[-1]


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, engine_scans.Engine]]:
    with engine_scans.running() as found:
        yield found


UNREADABLE: Final = {"datafusion": {"int128"}, "polars": {"decimal50", "d76", "interval"}, "arrow": {"int128"}}
INCOMPARABLE: Final = {"arrow": {"float16", "f16", "uuid"}, "datafusion": {"interval"}}
"""Columns that a reader doesn't read, or has no equality for, with page indexes or without."""


READERS: Final = ("duckdb", "datafusion", "clickhouse")
OTHERS: Final = [("polars", "arrow_integers"), ("polars", "duckdb"), ("arrow", "polars"), ("arrow", "clickhouse")]


@pytest.mark.parametrize(("reader", "writer"), [*((r, w) for w in WRITERS for r in READERS), *OTHERS])
def test_a_reader_finds_every_type_of_every_writer(
    tmp_path: Path, engines: dict[str, engine_scans.Engine], writer: str, reader: str
) -> None:
    engine = engines[reader]
    columns = [c for c in WRITERS[writer].columns if c not in UNREADABLE.get(reader, ())]
    bare, ours = tmp_path / "bare.parquet", tmp_path / "ours.parquet"
    WRITERS[writer].write(bare, 0, columns)
    bloomcli.repair(bare, add=BOTH, output=ours)
    assert not bloomcli.validate(ours, deep=True, columns=["*"]).findings
    for column in columns:
        if column in INCOMPARABLE.get(reader, ()):
            continue
        number, literal = next(iter(engine.literals(bare, column, (1718, 2048, 3998)).items()))
        expected = engine.equal(bare, column, literal).rows
        assert number in expected
        assert engine.equal(ours, column, literal).rows == expected, (column, literal)
