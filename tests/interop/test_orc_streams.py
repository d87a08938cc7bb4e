"""add and remove keep every stream except the filters, byte for byte, in every fixture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT
from pyarrow import orc
from support.orcspark import hadoop_path
from support.orcwalk import Orc

import bloomcli
from bloomcli.errors import UnsupportedError
from bloomcli.model.file import Presence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop

# Arrow, which compares the rows, doesn't read geometries
FILES = [
    *(path.name for path in sorted((ROOT / "fixtures" / "orc").glob("*.orc")) if path.name != "java_geometry.orc"),
    *("TestOrcFile.testPredicatePushdown.orc", "bad_bloom_filter_1.6.0.orc", "decimal.orc", "orc_split_elim_new.orc"),
    "TestOrcFile.emptyFile.orc",
]
REFUSED = {"java_no_index.orc": "row index"}
BAD = "bad_bloom_filter_1.6.0.orc"
ENCRYPTED = {"java_encrypted.orc": {"secret"}}
"""Columns that can have no filter, by file: the others' can be added."""


@pytest.fixture(params=[name for name in FILES if name not in REFUSED])
def path(request: pytest.FixtureRequest, corpus: Path, fixtures: Path) -> Path:
    name: str = request.param
    return next(p for p in (fixtures / "orc" / name, corpus / name) if p.exists())


def test_the_list_is_all_that_the_corpus_has(corpus: Path) -> None:
    assert {path.name for path in corpus.glob("*.orc")} <= set(FILES)


def rest(file: Orc) -> Any:
    """Everything except the streams that must stay unchanged: metadata, unknown fields, encodings, rows."""
    footer, postscript = file.rest
    footer.pop(12, None)  # softwareVersion: of a bad writer's file it says who wrote the filters
    return footer, postscript, file.metadata, [(s.rows, s.rest) for s in file.stripes]


def plain(file: Orc, path: Path) -> list[str]:
    """The columns that can have a filter."""
    return [leaf for leaf in file.hashable if leaf not in ENCRYPTED.get(path.name, set())]


@pytest.mark.parametrize("kind", [None, "both"])
def test_every_other_stream_and_field_is_the_same_after_add_and_after_remove(
    path: Path, tmp_path: Path, kind: str | None
) -> None:
    before = Orc(path)
    added, removed = tmp_path / "added.orc", tmp_path / "removed.orc"
    leaves = plain(before, path)
    report = bloomcli.add(path, leaves, output=added, replace=True, kind=kind)
    after = Orc(added)
    ids = {before.columns[leaf] for leaf in leaves}
    for old, new in zip(before.stripes, after.stripes, strict=True):
        assert new.kept == old.kept
        assert {column for of, column in new.filters if of == 8} >= ids
        assert all(new.bloom_encoding(column) == 1 for column in ids)
        assert [(s.kind, s.column) for s in new.streams if s.kind == 8] == sorted(
            (8, s) for _, s in new.filters if _ == 8
        )
    assert rest(after) == rest(before)
    assert len(report.changes) >= len(ids) * len(before.stripes)
    assert bloomcli.validate(added, columns=leaves, deep=True).ok
    assert orc.read_table(added).equals(orc.read_table(path)) or "cpp" in path.name

    bloomcli.remove(added, output=removed)
    last = Orc(removed)
    assert last.kept == before.kept
    assert not any(s.filters for s in last.stripes)
    assert rest(last) == rest(before)
    if not any(s.filters for s in before.stripes) and not path.name.startswith("cpp"):  # whose zlib is another one
        assert removed.read_bytes() == path.read_bytes()


def test_one_column_added_leaves_the_others_filters_alone(path: Path, tmp_path: Path) -> None:
    before = Orc(path)
    if not before.stripes or BAD in path.name:
        return
    column = plain(before, path)[0]
    added = tmp_path / "added.orc"
    bloomcli.add(path, [column], output=added, replace=True, fpp=0.2)
    index = before.columns[column]
    for old, new in zip(before.stripes, Orc(added).stripes, strict=True):
        assert {k: v for k, v in new.filters.items() if k[1] != index} == {
            k: v for k, v in old.filters.items() if k[1] != index
        }
        assert old.filters.get((8, index)) != new.filters[8, index]


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_can_have_no_filters_is_refused_and_nothing_is_written(
    fixtures: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[name]):
        bloomcli.add(fixtures / "orc" / name, ["id"], output=tmp_path / "ours.orc")
    assert list(tmp_path.iterdir()) == []


def test_filters_of_a_bad_writer_are_not_trusted(corpus: Path) -> None:
    report = bloomcli.validate(corpus / BAD, deep=True)
    assert {(f.id, f.column) for f in report.findings} == {("filter-untrusted", "id"), ("filter-untrusted", "name")}
    assert (report.ok, report.values_checked) == (False, 0)
    table = orc.read_table(corpus / BAD)
    for column in ("id", "name"):
        said = bloomcli.probe(corpus / BAD, [str(table[column][0]), "77"], column=column)
        assert {t.presence for t in said.totals} == {Presence.UNKNOWN}


@pytest.mark.spark
def test_replaced_filters_of_a_bad_writer_are_used_by_orc_core(
    spark: SparkSession, corpus: Path, tmp_path: Path
) -> None:
    table = orc.read_table(corpus / BAD)
    ids = table["id"].to_pylist()
    absent = next(n for n in range(min(ids), max(ids)) if n not in ids)
    assert read_for(spark, corpus / BAD, absent) == len(ids)
    ours = tmp_path / "ours.orc"
    bloomcli.add(corpus / BAD, ["id"], output=ours, replace=True)
    assert read_for(spark, ours, absent) == 0
    assert [read_for(spark, ours, n) for n in ids] == [len(ids)] * len(ids)
    assert orc.read_table(ours).equals(table)
    assert bloomcli.validate(ours, deep=True).findings == ()
    said = bloomcli.probe(ours, [str(absent), str(ids[0])], column="id")
    assert [t.presence for t in said.totals] == [Presence.ABSENT, Presence.MAYBE]


def read_for(spark: SparkSession, path: Path, number: int) -> int:
    """Rows of the row groups that orc-core reads for id = number."""
    core, jvm = spark._jvm.org.apache.orc, spark._jvm
    ql = jvm.org.apache.hadoop.hive.ql.io.sarg
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    reader = core.OrcFile.createReader(hadoop_path(spark, path), core.OrcFile.readerOptions(conf))
    kind = getattr(ql, "PredicateLeaf$Type").valueOf("LONG")
    literals = jvm.java.util.stream.LongStream.of(number).boxed().toArray()  # py4j would make an Integer of it
    builder = ql.SearchArgumentFactory.newBuilder().startAnd()
    wanted = getattr(builder, "in")("id", kind, literals).end().build()
    names = spark.sparkContext._gateway.new_array(jvm.java.lang.String, 1)
    names[0] = "id"
    rows = reader.rows(reader.options().searchArgument(wanted, names))
    try:
        batch = reader.getSchema().createRowBatch()
        found = 0
        while rows.nextBatch(batch):
            found += batch.count()
        return found
    finally:
        rows.close()
        reader.close()
