"""Spark, orc-core and ORC C++ read the filters that we wrote: what ORC alone has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import orc
from support import orc_hashes, spark_scan
from support.orcspark import STRIDE, filters, hadoop_path, types_frame, write, write_vectors

import bloomcli
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter
from bloomcli.model.file import Presence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.interop]

STRIDED = {"orc__row__index__stride": STRIDE}
ROWS = 4000


def pushdown(spark: SparkSession, on: bool) -> None:
    """Whether filters go down to orc-core."""
    spark.conf.set("spark.sql.orc.filterPushdown", str(on).lower())


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
    columns = [name for name in table.column_names if name not in {"counts", "deep"}]  # maps have no hash
    left, right = (
        spark.read.orc(str(path)).selectExpr(f"sum(xxhash64({', '.join(columns)}) % 1000000007)").collect()
        for path in (bare, ours)
    )
    assert left == right


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
    assert len(missing) > 3
    for number in sorted(missing)[:3]:
        counts = []
        for path, on in ((theirs, False), (theirs, True), (ours, True)):
            pushdown(spark, on)
            counts.append(spark.read.orc(str(path)).select("tiny").where(f"tiny = {number}").count())
        assert counts == [1, 0, 1]


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
    rows, read = spark_scan.scan(spark.read.orc(str(tmp_path / "out.orc")), "more = 4321")
    assert ([row.id for row in rows], read) == ([678], STRIDE)
    assert bloomcli.validate(tmp_path / "out.orc", deep=True).ok
    bloomcli.remove(tmp_path / "out.orc", output=tmp_path / "back")
    assert decrypted(spark, tmp_path / "back", key=True) == before[True]
