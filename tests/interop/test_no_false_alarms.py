"""Files as their engines wrote them: no false finding, for all types, layouts and codecs.

True alarms are asserted as such: parquet-java's boolean filters, and what ORC C++ hashes wrongly (tinyint, char,
fractions of seconds before 1970), each in the row groups that plain Python finds wrong as well.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import orcfiles
from support.groundtruth import orc_lost
from support.mutants import OriginalFile, flipped, is_set, mutation
from support.orcwalk import Orc
from support.sparkfiles import LEAVES, filters, timestamps_as, types_frame
from support.sparkfiles import write as write_spark
from support.tables import CASES, COMPRESSIONS, MAP, write

import bloomcli
from bloomcli.model.validate import Finding, ValidateReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop


def looked(path: Path, filters: int | None = None, *, values: bool = True) -> ValidateReport:
    """A deep report that agrees with the shallow one on everything but values."""
    shallow, deep = bloomcli.validate(path), bloomcli.validate(path, deep=True)
    by_values = {"value-missing", "filter-stray-bits", "filter-not-checked", "statistics-bounds", "page-index-counts"}
    both = [[f for f in report.findings if f.id not in by_values] for report in (shallow, deep)]
    assert both[0] == both[1]
    assert deep.filters_checked == shallow.filters_checked
    assert (deep.filters_checked > 0) if filters is None else (deep.filters_checked == filters)
    assert (deep.values_checked > 0) is values
    return deep


NANS: Final = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], "<u8").view("<f8")
"""NaNs of different bits."""
REALS: Final = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, 0.1, None]
BLOBS: Final = [b"", b"\xff\xfe", b"\0", b"\x80" * 40, None, "ü".encode("latin-1")]
FAR: Final = [
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23),
    None,
]


def special() -> pa.Table:
    """Every case of the suites, and difficult values."""

    def again(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[i % len(values)] for i in range(60)], kind)

    cases = {name: again(case.values, case.type) for name, case in CASES.items()}
    return pa.table(
        {
            **cases,
            "map": pa.concat_arrays([MAP] * 15),
            "double": again(REALS, pa.float64()),
            "float": again(REALS, pa.float32()),
            "nans": pa.array(np.resize(NANS, 60)),
            "blob": again(BLOBS, pa.binary()),
            "far": again(FAR, pa.timestamp("us")),
            "reals": again([[-0.0, 1.0], [], None, [0.0], [math.nan, None]], pa.list_(pa.float64())),
            "minus": again([-0.0], pa.float64()),
            "deep": again(
                [[{"m": [("k", [b"", None])], "s": {"x": None}}], None, [None]],
                pa.list_(
                    pa.struct(
                        [("m", pa.map_(pa.string(), pa.list_(pa.binary()))), ("s", pa.struct([("x", pa.int8())]))]
                    )
                ),
            ),
        }
    )


def leaf_paths(table: pa.Table) -> list[str]:
    """Leaf columns as Parquet names them, but of type null, boolean."""
    with pa.BufferOutputStream() as out:
        pq.write_table(table.slice(0, 0), out)
        schema = pq.read_metadata(pa.BufferReader(out.getvalue())).schema
    return [schema.column(i).path for i in range(len(schema)) if schema.column(i).physical_type != "BOOLEAN"]


LAYOUTS: Final[list[dict[str, Any]]] = [
    *(
        {"compression": codec, "page_version": i % 2 + 1, "dictionary": i % 3 > 0}
        for i, codec in enumerate(COMPRESSIONS)
    ),
    {"dictionary_pagesize_limit": 64, "data_page_size": 64, "write_batch_size": 4},
    {"write_page_index": True, "rows": 1000, "store_schema": False},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join(map(str, layout.values())))
def test_arrow_cpp(layout: dict[str, Any], tmp_path: Path) -> None:
    table = special()
    blooms = {leaf: {"ndv": 20, "fpp": 0.05} for leaf in leaf_paths(table)}
    path = write(tmp_path / "f.parquet", table, blooms=blooms, **{"rows": 25, **layout})
    groups = pq.read_metadata(path).num_row_groups
    assert looked(path, len(blooms) * groups).findings == ()


@pytest.mark.parametrize("rows", [[], [0], [3, 0, 2]])
def test_arrow_cpp_without_rows(rows: list[int], tmp_path: Path) -> None:
    table = special().select(["int64", "string", "double", "list"])
    blooms = {leaf: {"ndv": 20, "fpp": 0.05} for leaf in leaf_paths(table)}
    with pq.ParquetWriter(tmp_path / "f.parquet", table.schema, bloom_filter_options=blooms) as writer:
        for count in rows:
            writer.write_table(table.slice(1, count))
    assert looked(tmp_path / "f.parquet", len(blooms) * len(rows), values=any(rows)).findings == ()


DUCK: Final = """
SELECT (i % 9)::TINYINT a, (i % 9)::UTINYINT b, (i % 9 * 99)::SMALLINT c, (i % 9)::USMALLINT d, (i % 9)::INTEGER e,
       (i % 9)::UINTEGER f, (i % 9)::BIGINT g, (i % 9)::UBIGINT h, (i % 9)::HUGEINT hu,
       ([0::DOUBLE, -0.0::DOUBLE, 'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::DOUBLE, 0.1::DOUBLE])[i % 6 + 1] x,
       ([0::FLOAT, 'nan'::FLOAT, 1.5::FLOAT])[i % 3 + 1] y,
       (-0.0)::DOUBLE z, (i % 9 / 8)::DECIMAL(4, 1) de, (i % 9)::DECIMAL(18, 3) df, (i % 9)::DECIMAL(38, 5) dg,
       ['', 'a', NULL, 'ü', repeat('x', 400)][i % 5 + 1] s, ['\\xFF\\xFE'::BLOB, ''::BLOB][i % 2 + 1] t,
       DATE '1969-12-25' + (i % 9)::INTEGER k, TIMESTAMP '1969-12-31 23:59:59.5' + to_microseconds(i % 9) l,
       make_timestamp_ns(i % 9 - 4) ln, '1970-01-01 00:00:00.007'::TIMESTAMP_MS lm, '1969-01-01'::TIMESTAMP_S ls,
       TIMESTAMPTZ '2024-01-01 00:00:00+02' + to_hours(i % 9) m, TIME '01:02:03.004' + to_seconds(i % 9) n,
       to_days((i % 9 * 20)::INTEGER) + to_hours(i % 5 * 30) + to_months((i % 3)::INTEGER) o,
       md5((i % 9)::VARCHAR)::UUID p, (i % 2 = 0) bo, ['p', 'q'][i % 2 + 1]::ENUM('p', 'q') en,
       [i % 9, NULL] li, [[i % 3], []] ll, {'a': i % 9, 'b': ['u']} st, MAP {'k' || i % 9: i % 3} ma,
       NULL::INTEGER no, [NULL, 'w' || i % 9][i % 2 + 1] ha
FROM range(3000) t(i)
"""


@pytest.mark.parametrize(
    ("codec", "version"),
    [("uncompressed", "V1"), ("snappy", "V2"), ("gzip", "V1"), ("zstd", "V2"), ("lz4_raw", "V1"), ("brotli", "V2")],
)
def test_duckdb(codec: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    options = f"FORMAT parquet, ROW_GROUP_SIZE 2048, COMPRESSION {codec}, PARQUET_VERSION {version}"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"COPY ({DUCK}) TO '{path}' ({options})")
    report = looked(path)
    assert report.findings == ()
    assert report.filters_checked >= 2 * 30


def test_intervals_of_duckdb_may_be_normalised_and_no_other_bit_may_be_set(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    query = "SELECT to_days((i % 4 * 45)::INTEGER) + to_hours(i % 3 * 20) + to_months((i % 2)::INTEGER) AS c"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({query} FROM range(1000) t(i)) TO '{path}' (FORMAT parquet)")
    whole = OriginalFile.of(path, tmp_path)
    (fact,) = whole.sound
    assert whole.known == frozenset()
    span = whole.bits(fact)
    for bit in range(span.start * 8, span.stop * 8):
        if not is_set(whole.data, bit):
            with mutation(f"bit {bit - span.start * 8}"):
                whole.flipped_bit(fact, flipped(whole.data, bit), cleared=False)


@pytest.mark.parametrize(
    ("version", "dictionary", "statistics"),
    [("1.0", "true", "page"), ("1.0", "false", "none"), ("2.0", "true", "none"), ("2.0", "false", "page")],
)
def test_arrow_rs(version: str, dictionary: str, statistics: str, tmp_path: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    table = special().drop_columns(["null", "float16", "date64", "decimal32", "decimal64"])  # it has no such types
    path = tmp_path / "f.parquet"
    context = datafusion.SessionContext()
    context.register_record_batches("t", [table.to_batches()])
    context.sql("SET datafusion.execution.target_partitions = 1").collect()
    context.sql(
        f"COPY (SELECT * FROM t) TO '{path}' STORED AS parquet OPTIONS ('format.max_row_group_size' '25',"
        f" 'format.bloom_filter_on_write' 'true', 'format.bloom_filter_ndv' '20',"
        f" 'format.writer_version' '{version}',"
        f" 'format.dictionary_enabled' '{dictionary}', 'format.statistics_enabled' '{statistics}')"
    ).collect()
    findings = looked(path).findings
    # arrow-rs takes a page with as many nulls as rows for one with only nulls
    assert {f.id for f in findings} <= {"page-index-counts"}
    assert bool(findings) == (statistics == "page")
    for finding in findings:
        assert finding.column is not None
        assert ".list." in finding.column
    items = [item for row in table["list_of_structs"].to_pylist() for item in row or () if item]
    assert any(item["leaf"] == 1.5 for item in items)
    rows = [
        row for row in table["list_of_structs"].to_pylist() if any(item and item["leaf"] == 1.5 for item in row or ())
    ]
    found = bloomcli.find(path, 1.5, column="list_of_structs.list.item.leaf", select="list_of_structs")
    assert sum(batch.num_rows for batch in found) == len(rows), found.report


def places(findings: Iterator[Finding] | tuple[Finding, ...], column: str) -> set[tuple[int | None, int | None]]:
    """Stripes and row groups of the missing values of a column."""
    return {(f.stripe, f.row_group) for f in findings if f.column == column and f.id == "value-missing"}


@pytest.mark.parametrize(("codec", "dictionary"), [(c, float(n % 2)) for n, c in enumerate(orcfiles.COMPRESSIONS)])
def test_orc_cpp_by_pyarrow(codec: str, dictionary: float, tmp_path: Path) -> None:
    """With filters on every column, including compound and boolean columns."""
    plain = orcfiles.everything(230).append_column("reals", pa.array(np.resize([0.0, -0.0, math.nan, 1.5], 230)))
    day = pa.array([dt.datetime(1969, 12, 1) + dt.timedelta(days=i % 60, microseconds=i * 1003) for i in range(230)])
    table = plain.append_column("near", day)
    table = table.append_column("tiny", pa.array([i % 250 - 125 for i in range(230)], pa.int8()))
    options = {"compression": codec, "dictionary_key_size_threshold": dictionary, "stride": 50, "stripe_size": 4096}
    path = orcfiles.write(tmp_path / "f", table, blooms=range(60), **{**options, "batch_size": 100})
    report = looked(path)
    wrong = {}
    hashes: dict[str, Callable[[Any], int]] = {n: orcfiles.CASES[n].hash for n in ("int8", "int16", "float64")}
    hashes |= {"tiny": orcfiles.long_hash, **dict.fromkeys(("timestamp", "near"), orcfiles.CASES["timestamp"].hash)}
    for name, hashed in hashes.items():
        values = set(orc.ORCFile(path).read()[name].to_pylist()) - {None}
        wrong[name] = orc_lost(path, name, {v: hashed(v) for v in values})
        assert places(report.findings, name) == wrong[name]
    assert wrong["tiny"]
    assert wrong["near"]
    assert wrong["int16"] == wrong["float64"] == set()
    moments = {("value-missing", name) for name in ("timestamp", "timestamp_tz", "near")}
    rules = ("filter-untrusted", "value-missing", "filter-stray-bits")
    bytes_ = {(id_, name) for id_ in rules for name in ("int8", "tiny")}
    moments |= {("statistics-bounds", name) for _, name in moments}  # before 1970, they are rounded up
    assert {(f.id, f.column) for f in report.findings} <= moments | bytes_


def test_orc_cpp_by_pyarrow_after_1970_and_without_tinyint(tmp_path: Path) -> None:
    """Values that ORC C++ hashes correctly have no findings."""
    table = orcfiles.everything(230).drop_columns(["int8", "timestamp", "timestamp_tz"])
    moments = [dt.datetime(1970, 1, 1) + dt.timedelta(days=i, microseconds=i * 1003) for i in range(230)]
    table = table.append_column("moment", pa.array(moments, pa.timestamp("ns")))
    path = orcfiles.write(tmp_path / "f", table, blooms=range(60), stride=50)
    assert looked(path).findings == ()


@pytest.mark.parametrize("rows", [0, 1])
def test_orc_cpp_with_few_rows(rows: int, tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([None] * rows, pa.int64()),
            "s": pa.array([""] * rows, pa.string()),
            "b": pa.array([True] * rows, pa.bool_()),
        }
    )
    path = orcfiles.write(tmp_path / "f", table, blooms=range(4))
    assert looked(path, 4 * rows, values=rows > 0).findings == ()


def test_orc_cpp_by_pyorc(tmp_path: Path) -> None:
    """Wrong are those of `char` (where a value is shorter than the type), and of lists and maps: where a batch has
    no nulls, ListColumnWriter and MapColumnWriter insert nothing."""
    import pyorc

    schema = "struct<id:bigint,code:char(4),short:varchar(4),flag:boolean,x:double,l:array<string>,m:map<string,int>>"
    with (
        (tmp_path / "f").open("wb") as opened,
        pyorc.Writer(opened, schema, row_index_stride=1000, bloom_filter_columns=list(range(11))) as rows,
    ):
        for i in range(2500):
            lists = [f"e{i}", None] if i % 3 else []
            rows.write((i, f"c{i % 300}", f"v{i % 90}", i % 2 == 0, i / 8, lists, {f"k{i}": i % 7}))
    report = looked(tmp_path / "f")
    lists = {(name, column) for name in ("filter-all-zero", "value-missing") for column in ("l", "m")}
    assert {(f.id, f.column) for f in report.findings if f.counts} == {
        ("filter-untrusted", "code"),
        ("value-missing", "code"),
    }
    assert {(f.id, f.column) for f in report.findings if not f.counts} == lists
    padded = {v: orcfiles.text_hash(v) for v in (f"c{i % 300}".ljust(4) for i in range(2500))}
    assert places(report.findings, "code") == orc_lost(tmp_path / "f", "code", padded)
    assert not any(any(bits) for column in ("l", "m") for _, bits in Orc(tmp_path / "f").bitsets(0, column))


def hard_frame(spark: SparkSession) -> Any:
    """Spark's types, and values that are hard: zeros of both signs, NaN, infinities, empty and broken texts."""
    rows = [
        (REALS[i % 9], REALS[(i + 3) % 9], -0.0, BLOBS[i % 6], ["", "a", None][i % 3], [REALS[i % 9]])
        for i in range(300)
    ]
    hard = spark.createDataFrame(
        [(i, *row) for i, row in enumerate(rows)],
        "i int, d double, f float, minus double, b binary, s string, l array<double>",
    )
    from pyspark.sql import functions

    typed = types_frame(spark, range(300)).coalesce(1).withColumn("i", functions.monotonically_increasing_id())
    return typed.join(hard, "i").repartition(1).sortWithinPartitions("i")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("codec", "stamps", "dictionary"),
    [
        ("uncompressed", "TIMESTAMP_MICROS", False),
        ("snappy", "TIMESTAMP_MILLIS", True),
        ("gzip", "INT96", False),
        ("zstd", "TIMESTAMP_MILLIS", False),
        ("lz4_raw", "INT96", True),
    ],
)
def test_parquet_java(spark: SparkSession, codec: str, stamps: str, dictionary: bool, tmp_path: Path) -> None:
    """Its boolean's filter is the one that is wrong, in each row group."""
    timestamps_as(spark, stamps)
    version = "PARQUET_2_0" if dictionary else "PARQUET_1_0"
    options = {"parquet__enable__dictionary": dictionary, "parquet__writer__version": version}
    path = write_spark(
        hard_frame(spark),
        tmp_path / "f.parquet",
        **filters(2048, compression=codec, parquet__block__row__count__limit=150, **options),
    )
    report = looked(path)
    assert {(f.id, f.column) for f in report.findings} == {("filter-boolean", "flag")}
    assert [f.row_group for f in report.findings] == [0, 1]
    if not dictionary:
        assert report.filters_checked == 2 * (len(LEAVES) + 1 + 7)


@pytest.mark.spark
def test_parquet_java_with_adaptive_filters(spark: SparkSession, tmp_path: Path) -> None:
    """It builds several sizes and keeps the smallest that serves."""
    options = {"parquet__bloom__filter__adaptive__enabled": True, "parquet__bloom__filter__candidates__number": 4}
    path = write_spark(hard_frame(spark), tmp_path / "f.parquet", **filters(1 << 16, **options))
    report = looked(path)
    assert {(f.id, f.column) for f in report.findings} == {("filter-boolean", "flag")}
    assert {f.bitset_bytes for f in bloomcli.inspect(path).filters if f.column != "flag"} == {4096}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("codec", "zone"),
    [
        ("none", "UTC"),
        ("zlib", "America/Los_Angeles"),
        ("snappy", "UTC"),
        ("lz4", "America/Los_Angeles"),
        ("zstd", "America/Los_Angeles"),
    ],
)
def test_orc_core(spark: SparkSession, codec: str, zone: str, tmp_path: Path) -> None:
    """Nothing is wrong, in any column."""
    from support import orcspark

    frame = orcspark.types_frame(spark, 2500).selectExpr(
        "*",
        "element_at(array(0D, -0D, double('nan'), double('inf'), 1.5D), cast(pmod(tiny, 5) + 1 as int)) d",
        "-0D as minus",
        "unhex('fffe') as broken",
        "'' as nothing",
    )
    every = (*orcspark.ALL, "d", "minus", "broken", "nothing")
    small = {"orc__row__index__stride": orcspark.STRIDE, "orc__stripe__row__count": 1500}
    with orcspark.java_zone(spark, zone):
        path = orcspark.write(frame, tmp_path / "f.orc", codec, **orcspark.filters(every), **small)
    report = looked(path)
    assert report.findings == ()
    assert report.values_checked > 2500 * 20


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["char(5)", "varchar(5)", "string", "binary", "tinyint", "date", "boolean"])
def test_orc_core_of_other_types(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    from support import orcspark

    numbers: list[Any] = [0, 1, None, 1, 0]
    texts: list[Any] = [b"", b"ab", None, b"abcde", "ü".encode()]
    values = texts if "char" in kind or kind in {"string", "binary"} else numbers
    wanted = {"orc__bloom__filter__columns": "c", "orc__bloom__filter__fpp": 0.01}
    path = orcspark.write_vectors(spark, tmp_path / "f.orc", f"struct<c:{kind}>", [values], **wanted)
    assert looked(path, values=kind != "boolean").findings == ()
