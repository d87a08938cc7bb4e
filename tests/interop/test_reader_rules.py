"""The engines lose the rows that the rules about readers predict, and no others.

Each engine that runs here looks up existing rows twice, with filters and without (or in another way that can't use
them). The lost rows must be those that `bloomcli.checks.readers` predicts for that engine. Trino and Iceberg can't
run here: only their lookup is done, as in their source, with parquet-java's own filters.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from conftest import need
from support import orcfiles
from support.orcspark import hadoop_path
from support.tables import write

import bloomcli
from bloomcli.checks.readers import readers
from bloomcli.errors import UsageError
from bloomcli.formats.registry import open_file
from bloomcli.model.validate import Finding
from bloomcli.policy.table_schema import parse
from bloomcli.storage.registry import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

ROWS = 60
FILTER = {"c": {"ndv": 1000, "fpp": 1e-6}}
"""Arrow C++'s filter, large enough for no value to be there by chance."""
KINDS = {"float32": "float", "float64": "double"}


def zeros(path: Path, zero: float, kind: str) -> Path:
    """A third of the rows is that zero; the filter is by Arrow C++, which inserts it unchanged."""
    array = pa.array(np.array([-5.0, zero, 5.0] * (ROWS // 3), dtype=kind))
    return write(path, {"c": array}, dictionary=False, blooms=FILTER)


def said(path: Path, name: str, table: str | None = None) -> list[Finding]:
    """The rows that bloom predicts a reader loses."""
    with open_source(path) as source:
        file = open_file(source)
        schema = None if table is None else parse(table, "t")
        return list(readers(file, list(file.facts(None)), [name], schema, None))


def ids(path: Path, name: str, table: str | None = None) -> list[str]:
    return [finding.id for finding in said(path, name, table)]


def duck(path: Path, condition: str) -> int:
    with duckdb.connect() as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM '{path}' WHERE {condition}").fetchone() or (None,)
    assert isinstance(count, int)
    return count


DUCK = "duckdb" if int(duckdb.__version__.partition(".")[0]) >= 2 else "duckdb-1"


def test_duckdb_loses_every_half_float_and_no_float(tmp_path: Path) -> None:
    half, single = (zeros(tmp_path / f"{kind}.parquet", 1.5, kind) for kind in ("float16", "float32"))
    for value in (-5.0, 1.5, 5.0):
        assert duck(half, f"c + 0 = {value}") == ROWS // 3
        assert duck(half, f"c = {value}::FLOAT") == 0
        assert duck(single, f"c = {value}::FLOAT") == ROWS // 3
    assert (ids(half, DUCK), ids(single, DUCK)) == (["reader-float16"], [])
    bloomcli.remove(half, in_place=True)
    assert duck(half, "c = 1.5::FLOAT") == ROWS // 3
    assert ids(half, DUCK) == []


def test_duckdb_loses_every_decimal_of_more_than_38_digits_and_none_of_38(tmp_path: Path) -> None:
    values = [Decimal(i) / 4 for i in range(ROWS)]
    for precision, kind in ((38, pa.decimal128), (39, pa.decimal256), (76, pa.decimal256)):
        path = write(tmp_path / f"{precision}.parquet", {"c": pa.array(values, kind(precision, 2))}, blooms=FILTER)
        lost = ids(path, "duckdb") == ["reader-decimal-width"]
        assert lost == (precision > 38)
        for value in (0, 7.25, 14.75):
            assert duck(path, f"c + 0 = {value}") == 1
            assert (duck(path, f"c = {value}") == 0) == lost
        if lost:
            with pytest.raises(UsageError, match="DuckDB looks 8 up, those of a DOUBLE"):
                bloomcli.add(path, ["c"], dry_run=True, replace=True)
        bloomcli.remove(path, in_place=True)
        assert duck(path, "c = 7.25") == 1


LENGTHS = (
    "INTERVAL (i % 50) DAY",
    "INTERVAL (i % 50) HOUR",
    "to_months(i % 7) + to_days(i % 61)",
    "to_days(i % 3) + to_milliseconds(i % 86400000 * 1999)",
    "CASE i % 4 WHEN 0 THEN INTERVAL '24 hours' WHEN 1 THEN INTERVAL '1 day' WHEN 2 THEN INTERVAL '30 days'"
    " ELSE INTERVAL '1 month' END",
    "to_months(2147483647) + to_days((i % 40)::INTEGER)",
    "to_days(2147483647) + to_hours(i % 2 * 240)",
)
"""Intervals of row i; the last DuckDB writes in another form than it reads."""


@pytest.mark.parametrize(("lasts", "encoding"), [*zip(LENGTHS, ["dictionary", "plain"] * 4, strict=False)])
def test_duckdb_gives_the_same_rows_of_intervals_after_add(tmp_path: Path, lasts: str, encoding: str) -> None:
    if DUCK == "duckdb-1":
        pytest.skip("needs DuckDB 2, which looks intervals up")
    path, bare = tmp_path / "iv.parquet", tmp_path / "bare.parquet"
    limit = 100_000 if encoding == "dictionary" else 1
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i, {lasts} AS iv FROM range(3000) t(i)) TO '{path}'"
            f" (FORMAT parquet, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT {limit})"
        )
        bloomcli.remove(path, output=bare)
        bloomcli.add(path, ["iv"], in_place=True, replace=True)
        # every interval that is there, written as it is and in its normal form; and some that aren't
        there = f"SELECT DISTINCT iv FROM '{bare}'"
        asked = [row[0] for row in connection.execute(f"SELECT iv::VARCHAR FROM ({there}) LIMIT 60").fetchall()]
        asked += [
            "40 days",
            "1 month 10 days",
            "25 hours",
            "1 day 01:00:00",
            "720 hours",
            "77 days",
            "3 months 1 day",
        ]
        rows = {text: equal(connection, path, text) for text in asked}
        assert rows == {text: equal(connection, bare, text) for text in asked}
    assert any(rows.values())
    assert bloomcli.validate(path, readers=["duckdb"], deep=True).findings == ()


def equal(connection: duckdb.DuckDBPyConnection, path: Path, text: str) -> int:
    """The number of rows with this interval."""
    (count,) = connection.execute(f"SELECT count(*) FROM '{path}' WHERE iv = INTERVAL '{text}'").fetchone() or (None,)
    assert isinstance(count, int)
    return count


def test_duckdb_skips_row_groups_without_an_interval_by_the_filters_that_add_builds(tmp_path: Path) -> None:
    if DUCK == "duckdb-1":
        pytest.skip("needs DuckDB 2, which looks intervals up")
    path = tmp_path / "iv.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT INTERVAL (i % 50 * 2) DAY AS iv FROM range(3000) t(i)) TO '{path}' (FORMAT parquet)"
        )
        bloomcli.add(path, ["iv"], in_place=True, replace=True, fpp=1e-6)
        for days, excluded in ((40, False), (41, True)):
            probe = (
                f"SELECT bool_and(bloom_filter_excludes) FROM parquet_bloom_probe('{path}', 'iv', to_days({days}))"
            )
            assert connection.execute(probe).fetchone() == (excluded,)


def clickhouse(path: Path, condition: str, *, structure: str = "") -> tuple[int, int]:
    """Rows that ClickHouse gives with its use of filters and without; never by statistics of Parquet."""
    try:
        import chdb
    except ImportError:
        need(False, "chdb")
    kind, setting = (
        ("ORC", "input_format_orc_filter_push_down")
        if path.suffix == ".orc"
        else ("Parquet", "input_format_parquet_bloom_filter_push_down")
    )
    others = ", input_format_parquet_filter_push_down = 0, input_format_parquet_page_filter_push_down = 0"
    read = f"file('{path}', {kind}{structure and f', {structure!r}'})"
    found = [
        int(chdb.query(f"SELECT count() FROM {read} WHERE {condition} SETTINGS {setting} = {on}{others}").bytes())
        for on in (1, 0)
    ]
    return found[0], found[1]


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_clickhouse_loses_negative_zeros_in_orc_and_none_in_parquet(tmp_path: Path, zero: float) -> None:
    values = [-5.0, zero, 5.0] * (ROWS // 3)
    table = {"c": pa.array(values), "f": pa.array(values, pa.float32())}
    path = orcfiles.write(tmp_path / "f.orc", table, blooms=[1, 2])
    lost = ids(path, "clickhouse") == ["reader-negative-zero"] * 2
    assert lost == (struct.pack("d", zero) != bytes(8))
    for column in ("c", "f"):
        assert clickhouse(path, f"{column} = 0") == (0 if lost else ROWS // 3, ROWS // 3)
    bloomcli.add(path, ["c", "f"], in_place=True, replace=True)
    assert ids(path, "clickhouse") == []
    for column in ("c", "f"):
        assert clickhouse(path, f"{column} = 0") == (ROWS // 3, ROWS // 3)
    for kind in KINDS:
        other = zeros(tmp_path / f"{kind}.parquet", zero, kind)
        assert set(ids(other, "clickhouse")) == {"reader-issue"}
        assert clickhouse(other, "c = 0") == (ROWS // 3, ROWS // 3)


@pytest.mark.parametrize(
    ("array", "named", "condition", "rows"),
    [
        (pa.array([70_000] * ROWS, pa.uint32()), "UInt16", "c = 4464", ROWS),
        (pa.array([200] * ROWS, pa.uint8()), "Int8", "c = -56", ROWS),
        (pa.array(["7"] * ROWS), "FixedString(4)", "c = '7'", ROWS),
    ],
    ids=["UInt16", "Int8", "FixedString"],
)
def test_clickhouse_loses_rows_of_types_in_which_values_change_as_the_note_says(
    tmp_path: Path, array: pa.Array, named: str, condition: str, rows: int
) -> None:
    path = write(tmp_path / "f.parquet", {"c": array}, dictionary=False, blooms=FILTER)
    assert clickhouse(path, condition, structure=f"c {named}") == (0, rows)
    notes = [f.message for f in said(path, "clickhouse") if f.id == "reader-issue"]
    assert any(named.partition("(")[0] in note and "measured" in note for note in notes)


@pytest.mark.parametrize("value", ["0", "1"])
def test_clickhouse_finds_nulls_that_are_read_as_a_default(tmp_path: Path, value: str) -> None:
    path = write(tmp_path / "f.parquet", {"c": pa.array([None, 1] * 30, pa.int64())}, dictionary=False, blooms=FILTER)
    assert clickhouse(path, f"c = {value}", structure="c Int64") == (30, 30)


NOON = dt.datetime(2024, 2, 29, 12)
DECIMALS = [Decimal(i) / 100 for i in range(-30, 30)]
COLUMNS = {
    "millis": (pa.array([NOON + dt.timedelta(hours=i) for i in range(ROWS)], pa.timestamp("ms")), "timestamp"),
    "micros": (pa.array([NOON + dt.timedelta(hours=i) for i in range(ROWS)], pa.timestamp("us")), "timestamp"),
    "dec9": (pa.array(DECIMALS, pa.decimal128(9, 2)), "decimal(9,2)"),
    "dec20": (pa.array(DECIMALS, pa.decimal128(20, 2)), "decimal(20,2)"),
    "dec37": (pa.array(DECIMALS, pa.decimal128(37, 2)), "decimal(37,2)"),
    "int": (pa.array(range(ROWS), pa.int32()), "int"),
    "single": (pa.array([i + 0.5 for i in range(ROWS)], pa.float32()), "float"),
}
WIDER = {"int": "bigint", "single": "double", "dec9": "decimal(18,2)", "dec20": "decimal(38,2)"}


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each column, `c`, with the filter by Arrow C++."""
    folder = tmp_path_factory.mktemp("typed")
    return {
        name: write(folder / f"{name}.parquet", {"c": array}, dictionary=False, blooms=FILTER)
        for name, (array, _) in COLUMNS.items()
    }


def literal(name: str, kind: str) -> str:
    """SQL of the value in row 7."""
    value = COLUMNS[name][0][7].as_py()
    return f"timestamp '{value}'" if isinstance(value, dt.datetime) else f"cast({value} as {kind})"


@pytest.mark.parametrize("name", COLUMNS)
def test_duckdb_gives_every_row_of_other_types(typed: dict[str, Path], name: str) -> None:
    assert duck(typed[name], f"c = {literal(name, COLUMNS[name][1])}") == 1
    assert ids(typed[name], DUCK, f"c {WIDER.get(name, 'int')}") == []


def test_duckdb_gives_every_row_of_files_of_mixed_width(typed: dict[str, Path], tmp_path: Path) -> None:
    wide = write(tmp_path / "wide.parquet", {"c": pa.array(range(ROWS), pa.int64())}, blooms=FILTER)
    both = f"read_parquet(['{wide}', '{typed['int']}'], union_by_name = true)"
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT count(*) FROM {both} WHERE c = 7::BIGINT").fetchone() == (2,)


@pytest.fixture(scope="module")
def fusion() -> Callable[[Path, str, pa.Schema | None], tuple[int, int]]:
    """Rows that DataFusion gives with filters and without."""
    try:
        import datafusion
    except ImportError:
        need(False, "DataFusion")

    def count(path: Path, condition: str, schema: pa.Schema | None = None) -> tuple[int, int]:
        found = []
        for on in ("true", "false"):
            config = datafusion.SessionConfig().set("datafusion.execution.parquet.bloom_filter_on_read", on)
            context = datafusion.SessionContext(config)
            context.register_parquet("t", str(path), schema=schema)
            (batch,) = context.sql(f"SELECT count(*) AS n FROM t WHERE {condition}").collect()
            found.append(batch.column(0)[0].as_py())
        return found[0], found[1]

    return count


@pytest.mark.parametrize("name", COLUMNS)
def test_datafusion_loses_rows_of_other_types_where_we_say_so(fusion: Any, typed: dict[str, Path], name: str) -> None:
    lost = ids(typed[name], "datafusion", f"c {WIDER.get(name, 'int')}") != []
    assert fusion(typed[name], f"c = {literal(name, COLUMNS[name][1])}") == (not lost, 1)
    wider = {"int": pa.int64(), "single": pa.float64(), "dec9": pa.decimal128(18, 2), "dec20": pa.decimal128(38, 2)}
    if name in wider:
        schema = pa.schema([("c", wider[name])])
        assert fusion(typed[name], f"c = {literal(name, WIDER[name])}", schema) == (not lost, 1)


def spark_counts(spark: SparkSession, path: Path, condition: str, schema: str | None = None) -> tuple[int, int]:
    """Rows that Spark gives with pushdown and without."""
    kind = path.suffix[1:]
    found = []
    for on in ("true", "false"):
        spark.conf.set(f"spark.sql.{kind}.filterPushdown", on)
        frame = spark.read if schema is None else spark.read.schema(schema)
        found.append(frame.format(kind).load(str(path)).where(condition).count())
    return found[0], found[1]


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    ("reader", "kind"),
    [
        *(("duckdb", kind) for kind in KINDS),
        *(("datafusion", kind) for kind in (*KINDS, "float16")),
        *(pytest.param("spark", kind, marks=pytest.mark.spark) for kind in KINDS),
    ],
)
def test_a_reader_of_parquet_loses_negative_zeros_where_we_say_so(
    request: pytest.FixtureRequest, tmp_path: Path, reader: str, kind: str, zero: float
) -> None:
    path, condition = zeros(tmp_path / "f.parquet", zero, kind), f"c = cast(0.0 as {KINDS.get(kind, 'float')})"

    def counts() -> tuple[int, int]:
        """Rows that the reader gives with filters and without."""
        if reader == "duckdb":
            return duck(path, condition), duck(path, "c + 0 = 0")
        if reader == "datafusion":
            found: tuple[int, int] = request.getfixturevalue("fusion")(path, condition)
            return found
        return spark_counts(request.getfixturevalue("spark"), path, condition)

    name = DUCK if reader == "duckdb" else reader
    lost = ids(path, name) == ["reader-negative-zero"]
    # DuckDB 2 looks zeros of both signs up
    assert lost == (struct.pack("d", zero) != bytes(8) and kind != "float16" and name != "duckdb")
    assert counts() == (0 if lost else ROWS // 3, ROWS // 3)
    bloomcli.add(path, ["c"], in_place=True, replace=True, readers=[name])
    assert ids(path, name) == []
    assert counts() == (ROWS // 3, ROWS // 3)


@pytest.mark.spark
@pytest.mark.parametrize("name", COLUMNS)
def test_spark_gives_every_row_of_other_types_and_under_wider_ones(
    spark: SparkSession, typed: dict[str, Path], name: str
) -> None:
    path = typed[name]
    value = literal(name, COLUMNS[name][1]).replace("timestamp '", "timestamp_ntz '")
    assert spark_counts(spark, path, f"c = {value}") == (1, 1)
    if name in WIDER:
        assert spark_counts(spark, path, f"c = {literal(name, WIDER[name])}", f"c {WIDER[name]}") == (1, 1)
    assert ids(path, "spark", f"c {WIDER.get(name, 'int')}") == []


@pytest.mark.spark
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_orc_core_and_orc_cpp_lose_negative_zeros_where_we_say_so(
    spark: SparkSession, tmp_path: Path, zero: float
) -> None:
    values = [-5.0, zero, 5.0] * (ROWS // 3)
    table = {"c": pa.array(values), "f": pa.array(values, pa.float32()), "n": pa.array([4] * ROWS, pa.int32())}
    path = orcfiles.write(tmp_path / "f.orc", table, blooms=[1, 2, 3])
    negative = struct.pack("d", zero) != bytes(8)
    for name in ("spark", "orc-java", "orc-cpp"):
        assert ids(path, name) == ["reader-negative-zero"] * 2 * negative
    for column, kind in (("c", "double"), ("f", "float")):
        condition = f"{column} = cast('0.0' as {kind})"
        assert spark_counts(spark, path, condition) == (0 if negative else ROWS // 3, ROWS // 3)
    assert pyorc_count(path, 0.0) == (0 if negative else ROWS // 3)
    bloomcli.add(path, ["c", "f"], in_place=True, replace=True)
    assert ids(path, "spark") == []
    assert spark_counts(spark, path, "c = 0d") == (ROWS // 3, ROWS // 3)
    assert pyorc_count(path, 0.0) == ROWS // 3


def pyorc_count(path: Path, value: float) -> int:
    """Equal rows among those of the row groups that ORC C++ doesn't skip."""
    try:
        import pyorc
        from pyorc.predicates import PredicateColumn
    except ImportError:
        need(False, "PyORC")
    with path.open("rb") as opened:
        predicate = PredicateColumn(pyorc.TypeKind.DOUBLE, "c") == value
        return sum(found == value for (found,) in pyorc.Reader(opened, predicate=predicate, column_names=["c"]))


@pytest.mark.spark
def test_orc_core_gives_every_row_under_a_wider_type(spark: SparkSession, tmp_path: Path) -> None:
    table = {
        "n": pa.array(range(ROWS), pa.int32()),
        "f": pa.array([i + 0.5 for i in range(ROWS)], pa.float32()),
        "d": pa.array(DECIMALS, pa.decimal128(9, 2)),
    }
    path = orcfiles.write(tmp_path / "f.orc", table, blooms=[1, 2, 3])
    wider = "n bigint, f double, d decimal(18,4)"
    for condition in ("n = 7", "f = 7.5d", "d = cast(0.07 as decimal(18,4))"):
        assert spark_counts(spark, path, condition, wider) == (1, 1)
    for name in ("spark", "trino", "iceberg"):
        assert ids(path, name, wider) == []


def java_filter(spark: SparkSession, path: Path) -> Any:
    """parquet-java's filter of the first column."""
    hadoop = spark._jvm.org.apache.parquet.hadoop
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    reader = hadoop.ParquetFileReader.open(hadoop.util.HadoopInputFile.fromPath(hadoop_path(spark, path), conf))
    try:
        block = reader.getFooter().getBlocks()[0]
        return reader.getBloomFilterDataReader(block).readBloomFilter(block.getColumns()[0])
    finally:
        reader.close()


def java_rows(spark: SparkSession, path: Path, column: Any, value: Any) -> int:
    """Rows of the row groups that parquet-java's own reader is left with by its filters alone."""
    parquet = spark._jvm.org.apache.parquet
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    source = parquet.hadoop.util.HadoopInputFile.fromPath(hadoop_path(spark, path), conf)
    wanted = parquet.filter2.compat.FilterCompat.get(parquet.filter2.predicate.FilterApi.eq(column, value))
    options = (
        parquet.ParquetReadOptions.builder()
        .withRecordFilter(wanted)
        .useStatsFilter(False)
        .useDictionaryFilter(False)
        .useColumnIndexFilter(False)
        .build()
    )
    reader = parquet.hadoop.ParquetFileReader.open(source, options)
    try:
        return int(reader.getRecordCount())
    finally:
        reader.close()


@pytest.mark.spark
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_parquet_java_loses_negative_zeros_of_every_width_where_we_say_so(
    spark: SparkSession, tmp_path: Path, zero: float
) -> None:
    jvm = spark._jvm
    api = jvm.org.apache.parquet.filter2.predicate.FilterApi
    binary = jvm.org.apache.parquet.io.api.Binary
    literals = {
        "float32": (api.floatColumn("c"), jvm.java.lang.Float.valueOf(0.0)),
        "float64": (api.doubleColumn("c"), 0.0),
        "float16": (api.binaryColumn("c"), binary.fromConstantByteArray(bytes(2))),
    }
    for kind, (column, value) in literals.items():
        path = zeros(tmp_path / f"{kind}.parquet", zero, kind)
        lost = ids(path, "parquet-java") == ["reader-negative-zero"]
        assert lost == (struct.pack("d", zero) != bytes(8))
        if kind == "float32":
            # py4j hands every float over as a Double, so that parquet-java is asked for its look-up only
            assert java_filter(spark, path).findHash(signed_hash(struct.pack("<f", 0.0))) != lost
        else:
            assert java_rows(spark, path, column, value) == (0 if lost else ROWS)
        bloomcli.add(path, ["c"], in_place=True, replace=True, readers=["parquet-java"])
        assert ids(path, "parquet-java") == []


def signed_hash(plain: bytes) -> int:
    import xxhash

    value = xxhash.xxh64_intdigest(plain)
    return value - (value >> 63 << 64)


@pytest.mark.spark
def test_parquet_java_refuses_a_predicate_of_another_width(spark: SparkSession, typed: dict[str, Path]) -> None:
    api = spark._jvm.org.apache.parquet.filter2.predicate.FilterApi
    with pytest.raises(Exception, match="does not match the schema found in file metadata"):
        java_rows(spark, typed["int"], api.longColumn("c"), spark._jvm.java.lang.Long.valueOf(7))
    assert ids(typed["int"], "parquet-java", "c bigint") == []


@pytest.mark.spark
def test_icebergs_look_up_of_microseconds_finds_no_milliseconds(spark: SparkSession, typed: dict[str, Path]) -> None:
    """ParquetBloomRowGroupFilter hashes the literal's microseconds as a long for any INT64 timestamp."""
    moments = COLUMNS["millis"][0].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    for name, found in (("millis", False), ("micros", True)):
        bloom = java_filter(spark, typed[name])
        assert {bloom.findHash(bloom.hash(micros)) for micros in moments} == {found}  # too long for Java's int
        assert (ids(typed[name], "iceberg") == []) == found


def decimal_hashes(spark: SparkSession, path: Path, width: int) -> set[bool]:
    """The filter's answer for each of `DECIMALS`, looked up at a width."""
    bloom = java_filter(spark, path)
    binary = spark._jvm.org.apache.parquet.io.api.Binary
    plain = [int(value * 100).to_bytes(width, "big", signed=True) for value in DECIMALS]
    return {bloom.findHash(bloom.hash(binary.fromConstantByteArray(value))) for value in plain}


@pytest.mark.spark
def test_icebergs_look_up_by_precision_finds_no_wider_decimals(
    spark: SparkSession, typed: dict[str, Path], tmp_path: Path
) -> None:
    """ParquetBloomRowGroupFilter hashes decimals in bytes at the width that their precision needs."""
    wide = tmp_path / "wide.parquet"
    rows = ", ".join(f"({value})" for value in DECIMALS)
    with duckdb.connect() as connection:  # which stores decimals of more than 18 digits in 16 bytes
        connection.execute(
            f"COPY (SELECT c::DECIMAL(20,2) AS c FROM (VALUES {rows}) t(c)) TO '{wide}' (FORMAT parquet)"
        )
    bloomcli.add(wide, ["c"], in_place=True, replace=True)
    for path, width, found in ((wide, 9, False), (typed["dec20"], 9, True), (typed["dec9"], 4, True)):
        assert decimal_hashes(spark, path, width) == {found}
        assert (ids(path, "iceberg") == []) == found
    assert spark_counts(spark, wide, "c = 0.07") == (1, 1)
    assert duck(wide, "c = 0.07::DECIMAL(20,2)") == 1


@pytest.mark.spark
def test_icebergs_look_up_by_precision_finds_no_shorter_decimals(spark: SparkSession, tmp_path: Path) -> None:
    """In BYTE_ARRAY each decimal has as many bytes as its writer gave it, here as few as it needs."""
    parquet = spark._jvm.org.apache.parquet
    path = tmp_path / "f.parquet"
    schema = parquet.schema.MessageTypeParser.parseMessageType("message m { required binary c (DECIMAL(20,2)); }")
    writer = (
        parquet.hadoop.example.ExampleParquetWriter.builder(hadoop_path(spark, path))
        .withType(schema)
        .withDictionaryEncoding(False)
        .build()
    )
    factory = parquet.example.data.simple.SimpleGroupFactory(schema)
    for value in DECIMALS:
        plain = int(value * 100).to_bytes(1, "big", signed=True)
        writer.write(factory.newGroup().append("c", parquet.io.api.Binary.fromConstantByteArray(plain)))
    writer.close()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    bloomcli.add(path, ["c"], in_place=True)
    assert decimal_hashes(spark, path, 9) == {False}
    assert decimal_hashes(spark, path, 1) == {True}
    (finding,) = said(path, "iceberg")
    assert (finding.id, finding.severity.value) == ("reader-decimal-width", "warning")
    assert "hashed at the bytes that each has and Iceberg looks 9 up" in finding.message
    assert ids(path, "datafusion-54") == []
    assert spark_counts(spark, path, "c = 0.07") == (1, 1)


@pytest.mark.spark
def test_trinos_look_up_at_the_tables_width_finds_nothing(spark: SparkSession, typed: dict[str, Path]) -> None:
    """TupleDomainParquetPredicate.checkInBloomFilter hashes a BIGINT as 8 bytes, an INTEGER as 4, a DOUBLE as 8."""
    bloom = java_filter(spark, typed["int"])
    for form, table, found in (("<q", "bigint", False), ("<i", "int", True)):
        assert {bloom.findHash(signed_hash(struct.pack(form, i))) for i in range(ROWS)} == {found}
        assert (ids(typed["int"], "trino", f"c {table}") == []) == found
    bloom = java_filter(spark, typed["single"])
    for form, table, found in (("<d", "double", False), ("<f", "real", True)):
        assert {bloom.findHash(signed_hash(struct.pack(form, i + 0.5))) for i in range(ROWS)} == {found}
        assert (ids(typed["single"], "trino", f"c {table}") == []) == found
