"""Spark, orc-core and ORC C++ read the filters that we wrote: what ORC alone has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from conftest import need
from pyarrow import orc
from support import orc_hashes, spark_lookups
from support.orcspark import STRIDE, filters, hadoop_path, types_frame, write, write_vectors
from support.spark_lookups import NUMBERS, ROWS, Files, cell, equals, scan

import bloomcli
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.model.file import Presence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

COLUMNS = [column for column in spark_lookups.COLUMNS if column != "blob"]
STRIDED = {"orc__row__index__stride": STRIDE}


@pytest.fixture
def files(looked_up: Callable[[str], Files]) -> Files:
    """Rows as ORC."""
    return looked_up("orc")


@pytest.fixture(scope="module")
def java(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows with orc-core's filters."""
    path = tmp_path_factory.mktemp("orc-core") / "java.orc"
    return write(spark_lookups.rows(spark), path, **filters(COLUMNS, 0.0001), **STRIDED)


def pushdown(spark: SparkSession, on: bool) -> None:
    """Whether filters go down to orc-core."""
    spark_lookups.pushdown(spark, "orc", on)


def test_orc_core_loses_short_decimals_of_an_unreleased_version_by_its_own_filters(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It hashes them as numbers, and looks their texts up: such filters are not trusted here."""
    frame = spark.range(0, ROWS, numPartitions=1).selectExpr(
        "cast(id / 4.0 as decimal(12, 4)) as short", "cast(id / 4.0 as decimal(19, 4)) as long"
    )
    columns = ["short", "long"]
    path = write(frame, tmp_path / "f", orc__write__format="UNSTABLE-PRE-2.0", **filters(columns, 0.001), **STRIDED)
    found = {}
    for column in columns:
        condition = f"{column} = {ROWS // 8}.25"
        pushdown(spark, False)
        assert len(spark.read.orc(str(path)).where(condition).collect()) == 1
        pushdown(spark, True)
        found[column] = len(spark.read.orc(str(path)).where(condition).collect())
    assert found == {"short": 0, "long": 1}
    presence = {c: bloomcli.probe(path, [f"{ROWS // 8}.25"], column=c).totals[0].presence for c in columns}
    assert presence == {"short": Presence.UNKNOWN, "long": Presence.MAYBE}
    dumped = bloomcli.dump(path, column="short")
    bits = KirschMitzenmacherFilter(dumped.bitset, dumped.facts.hash_functions or 0)
    assert all(bits.check(orc_hashes.orc_long(n * 2500)) for n in range(STRIDE))


def java_filters(spark: SparkSession, path: Path, column: int) -> list[Any]:
    """orc-core's filters of a column, as its own reader reads and decodes them, stripe by stripe."""
    jvm = spark._jvm
    core = jvm.org.apache.orc
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    reader = core.OrcFile.createReader(hadoop_path(spark, path), core.OrcFile.readerOptions(conf))
    rows = reader.rows()
    try:
        width = reader.getSchema().getMaximumId() + 1
        wanted = spark.sparkContext._gateway.new_array(jvm.boolean, width)
        for i in range(width):
            wanted[i] = True
        category = reader.getSchema().findSubtype(column).getCategory()
        found = []
        for stripe in range(reader.getStripes().size()):
            index = rows.readRowIndex(stripe, wanted, wanted)
            entries = index.getBloomFilterIndex()[column]
            encoding = rows.readStripeFooter(reader.getStripes().get(stripe)).getColumns(column)
            kind = index.getBloomFilterKinds()[column]
            found += [
                core.util.BloomFilterIO.deserialize(
                    kind, encoding, reader.getWriterVersion(), category, entries.getBloomFilter(group)
                )
                for group in range(entries.getBloomFilterCount())
            ]
        return found
    finally:
        rows.close()
        reader.close()


@pytest.mark.parametrize(
    ("column", "index", "test"), [("id", 1, "testLong"), ("name", 3, "testString"), ("d", 10, "testDouble")]
)
def test_orc_cores_own_reader_finds_every_value(
    spark: SparkSession, files: Files, column: str, index: int, test: str
) -> None:
    found = java_filters(spark, files.ours, index)
    assert len(found) == ROWS // STRIDE
    for group, bloom in enumerate(found):
        numbers = [*NUMBERS[group * STRIDE : (group + 1) * STRIDE : 9]]
        assert all(getattr(bloom, test)(cell(column, n)) for n in numbers)
        assert sum(getattr(bloom, test)(cell(column, n + 1)) for n in numbers) < 3


@pytest.mark.parametrize("codec", ["zstd", "zlib", "snappy", "lz4", "none"])
def test_orc_core_and_arrow_read_every_type_as_before_in_every_compression(
    spark: SparkSession, tmp_path: Path, codec: str
) -> None:
    options = {"orc__stripe__row__count": STRIDE, **STRIDED}
    bare = write(types_frame(spark, 2500), tmp_path / "bare.orc", codec, **options)
    ours = tmp_path / "ours.orc"
    leaves = ["big", "text", "huge", "moment", "tags._elem", "counts._key", "deep._elem.y"]
    bloomcli.add(bare, leaves, output=ours)
    core = spark._jvm.org.apache.orc
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    descriptions = []
    for path in (bare, ours):
        reader = core.OrcFile.createReader(hadoop_path(spark, path), core.OrcFile.readerOptions(conf))
        stripes = [stripe.getNumberOfRows() for stripe in reader.getStripes()]
        descriptions.append(
            (reader.getSchema().toString(), stripes, reader.getNumberOfRows(), reader.getContentLength())
        )
        assert sum(s.getLength() for s in reader.getStripes()) + 3 == reader.getContentLength()
        reader.close()
    assert descriptions[0][:3] == descriptions[1][:3]
    assert descriptions[0][1] == [1024, 1024, 452]
    assert descriptions[0][3] < descriptions[1][3]
    assert len(java_filters(spark, ours, 5)) == 5
    table = orc.read_table(ours)
    assert table.equals(orc.read_table(bare))
    assert orc.ORCFile(ours).schema.equals(orc.ORCFile(bare).schema, check_metadata=True)
    columns = [name for name in table.column_names if name not in {"counts", "deep"}]  # maps can't be subtracted
    left, right = (spark.read.orc(str(path)).select(columns) for path in (bare, ours))
    assert left.exceptAll(right).count() == right.exceptAll(left).count() == 0


def test_a_filtered_dataset_read_by_arrow_gives_the_same_rows(files: Files) -> None:
    for n in (0, 1718, 1719):
        bare, ours = (ds.dataset(path, format="orc").to_table(filter=ds.field("id") == n) for path in files[1:])
        assert ours.equals(bare)
        assert ours.num_rows == (n % 2 == 0)


def test_orc_cpp_skips_row_groups_by_our_filters(files: Files) -> None:
    """PyORC hands predicates to ORC C++, which then gives the rows of the row groups that are left."""
    try:
        import pyorc
        from pyorc.predicates import PredicateColumn
    except ImportError:
        need(False, "PyORC")
    kinds = {"id": pyorc.TypeKind.LONG, "small": pyorc.TypeKind.INT, "name": pyorc.TypeKind.STRING}
    for column, kind in kinds.items():
        for n, left in ((1718, STRIDE), (1719, 0), (5001, 0), (7000, STRIDE)):
            for path, count in ((files.bare, ROWS), (files.ours, left)):
                with path.open("rb") as opened:
                    predicate = PredicateColumn(kind, column) == cell(column, n)
                    rows = list(pyorc.Reader(opened, predicate=predicate, column_names=[column]))
                assert sum(value == cell(column, n) for (value,) in rows) == (n % 2 == 0)
                assert len(rows) == count


def test_rows_that_orc_cpps_own_filters_lose_come_back_with_replaced_ones(
    spark: SparkSession, fixtures: Path, tmp_path: Path
) -> None:
    """ORC C++ hashes tinyints that it has overwritten: an engine that trusts its filters loses rows."""
    theirs, ours = fixtures / "orc" / "cpp_types.orc", tmp_path / "ours.orc"
    bloomcli.add(theirs, ["tiny"], output=ours, replace=True)
    missing = {
        int(text)
        for finding in bloomcli.validate(theirs, columns=["tiny"], deep=True).findings
        for text in finding.missing
    }
    assert missing
    for number in missing:
        counts = []
        for path, on in ((theirs, False), (theirs, True), (ours, True)):
            pushdown(spark, on)
            counts.append(spark.read.orc(str(path)).select("tiny").where(f"tiny = {number}").count())
        assert counts == [1, 0, 1]


@pytest.mark.parametrize("column", COLUMNS)
def test_spark_skips_with_our_filters_what_it_skips_with_those_of_orc_core(
    spark: SparkSession, files: Files, java: Path, column: str
) -> None:
    pushdown(spark, True)
    for n in (1718, 1719, 5001):
        condition = equals(column, n)
        assert scan(spark, java, condition) == scan(spark, files.ours, condition)


def test_probe_says_what_spark_skips(spark: SparkSession, files: Files) -> None:
    pushdown(spark, True)
    said = bloomcli.probe(files.ours, ["1718", "1719", "5001", "7000"], column="id")
    assert [t.presence for t in said.totals] == [Presence.MAYBE, Presence.ABSENT, Presence.ABSENT, Presence.MAYBE]
    for total in said.totals:
        read = scan(spark, files.ours, f"id = {total.value}")[1]
        assert read == (total.row_groups - total.skipped_row_groups) * STRIDE


def decrypted(spark: SparkSession, path: Path, *, key: bool) -> list[str]:
    """A file's rows by orc-core, with or without the key that `write_vectors` encrypts by."""
    jvm = spark._jvm
    options = jvm.org.apache.orc.OrcFile.readerOptions(jvm.org.apache.hadoop.conf.Configuration(False))
    if key:
        algorithm = jvm.org.apache.orc.EncryptionAlgorithm.valueOf("AES_CTR_128")
        options = options.setKeyProvider(
            jvm.org.apache.orc.InMemoryKeystore().addKey("pii", algorithm, bytes(range(16)))
        )
    reader = jvm.org.apache.orc.OrcFile.createReader(hadoop_path(spark, path), options)
    batch = reader.getSchema().createRowBatch()
    rows = reader.rows()
    found: list[str] = []
    while rows.nextBatch(batch):
        found += batch.toString().splitlines()[1:]  # a line of types, then one a row
    rows.close()
    return found


def test_encrypted_columns_are_still_read_where_others_got_filters(spark: SparkSession, tmp_path: Path) -> None:
    """Encrypted streams are found by the lengths of those before them, filters among these."""
    ids, texts = list(range(5000)), [f"secret {i}".encode() for i in range(5000)]
    path = write_vectors(
        spark, tmp_path / "f", "struct<id:bigint,secret:string,more:bigint>", [ids, texts, ids[::-1]],
        encrypted="secret", orc__row__index__stride=STRIDE,
    )  # fmt: skip
    before = {key: decrypted(spark, path, key=key) for key in (True, False)}
    assert before[True][7] == '[7, "secret 7", 4992]'
    assert before[False][7] == "[7, null, 4992]"
    report = bloomcli.add(path, ["*"], output=tmp_path / "out.orc", fpp=0.0001)
    assert {c.column: c.action for c in report.changes} == {"id": "add", "more": "add", "secret": "keep"}
    for key in (True, False):
        assert decrypted(spark, tmp_path / "out.orc", key=key) == before[key]
    pushdown(spark, True)
    rows, read = scan(spark, tmp_path / "out.orc", "more = 4321")
    assert ([row.id for row in rows], read) == ([678], STRIDE)
    assert bloomcli.validate(tmp_path / "out.orc", deep=True).ok
    bloomcli.remove(tmp_path / "out.orc", output=tmp_path / "back")
    assert decrypted(spark, tmp_path / "back", key=True) == before[True]
