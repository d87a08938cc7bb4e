"""Paimon on Spark 3.5 writes tables, and finds every row by the index files that `fold` and `add --replace` wrote."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support import spark35
from support.spark35 import Session

import bloomcli
from bloomcli.engine_filters.paimon.index_file import Embedded, IndexFile
from bloomcli.model.file import Presence

pytestmark = pytest.mark.interop

ROWS: Final = 300
FILES: Final = 2
VALUES: Final = {
    "text": ("string", "concat('keyé ', {id})"),
    "raw": ("binary", "encode(concat('r', {id}), 'utf-8')"),
    "tiny": ("tinyint", "cast({id} % 256 - 128 as tinyint)"),
    "small": ("smallint", "cast({id} * 7 - 900 as smallint)"),
    "whole": ("int", "cast({id} * 3 - 450 as int)"),
    "big": ("bigint", "({id} - 100) * 10000000019"),
    "real": ("float", "cast({id} / 7 - 20 as float)"),
    "wide": ("double", "{id} / 7D - 20"),
    "day": ("date", "date_add(date'1969-01-01', cast({id} * 9 as int))"),
    "micro": ("timestamp", "timestamp_micros(({id} - 100) * 86399000017)"),
}
"""The type of each column, and the value of a row."""
ASKED: Final = [column for column in VALUES if column not in {"tiny", "small"}]
"""Columns in which no two rows have the same value. Paimon 0.9 ends with an exception for a condition on `small`."""


def made(spark: Session, table: str, files: int, columns: list[str], **options: str) -> None:
    """Make a table with filters of these columns, and insert several times, so that it has as many files."""
    names = ", ".join(f"{column} {VALUES[column][0]}" for column in columns)
    properties = {"file.format": "parquet", "file-index.bloom-filter.columns": ",".join(columns)} | options
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(f"create table {table} ({names}) tblproperties ({listed})")
    for at in range(files):
        values = ", ".join(VALUES[column][1].format(id="id") for column in columns)
        spark.sql(f"insert into {table} select {values} from range({at * ROWS}, {at * ROWS + ROWS}, 1, 1)")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session with the tables ``d.beside`` and ``d.manifest``, named by where their filters lie."""
    folder = tmp_path_factory.mktemp("paimon")
    with spark35.session("paimon", folder) as session:
        session.sql("create database paimon.d")
        session.sql("use paimon.d")
        beside = {"file-index.in-manifest-threshold": "1 B", "file-index.bloom-filter.text.items": str(ROWS)}
        made(session, "beside", FILES, list(VALUES), **beside)
        few = {f"file-index.bloom-filter.{column}.items": str(ROWS) for column in ("text", "whole")}
        made(session, "manifest", 1, ["text", "whole"], **few)
        yield session


def files(spark: Session, table: str) -> list[Path]:
    """The data files of a table, in the order of their rows."""
    found = (spark.folder / "warehouse" / "d.db" / table / "bucket-0").glob("*.parquet")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def rows_found(spark: Session, rows: list[int]) -> dict[str, int]:
    """For each column, the number of rows that Paimon finds by the values of these rows."""
    counts = []
    for column in ASKED:
        values = ", ".join(VALUES[column][1].format(id=f"{row}L") for row in rows)
        counts.append(f"select '{column}', count(*) from beside where {column} in ({values})")
    return dict(spark.sql(" union all ".join(counts)).rows)


def test_filters_beside_files_are_those_of_paimon_and_paimon_uses_them_as_they_are_written_again(
    spark: Session,
) -> None:
    paths = files(spark, "beside")
    assert len(paths) == FILES
    rows = [0, 1, 77, 299, 300, 450, 598]
    there = dict.fromkeys(ASKED, len(rows))
    for path in paths:
        shown = {one.column: one for one in bloomcli.inspect(path).engine_filters}
        assert {column: one.problem for column, one in shown.items()} == dict.fromkeys(VALUES)
        assert (shown["text"].sized_for, shown["big"].sized_for) == (ROWS, 1_000_000)
        proof = bloomcli.validate(path, deep=True)
        assert {one.id for one in proof.findings} == {"engine-filter-oversized"}
        assert (proof.filters_checked, proof.values_checked) == (len(VALUES), len(VALUES) * ROWS)
    assert rows_found(spark, rows) == there

    sizes = [Path(f"{path}.index").stat().st_size for path in paths]
    for path in paths:
        bloomcli.fold(path, in_place=True)
    folded = [Path(f"{path}.index").stat().st_size for path in paths]
    assert max(folded) * 100 < min(sizes)
    assert rows_found(spark, rows) == there
    for path in paths:
        bloomcli.add(path, list(VALUES), fpp=0.0001, replace=True, in_place=True)
        assert bloomcli.validate(path, deep=True).findings == ()
    assert [Path(f"{path}.index").stat().st_size for path in paths] > folded
    assert rows_found(spark, rows) == there

    first = Path(f"{paths[0]}.index")
    index = IndexFile(Embedded("", first.read_bytes()))
    for column in ("text", "micro"):
        first.write_bytes(index.with_filters({column: struct.pack(">i", 3) + bytes(180)}))
        (found,) = bloomcli.validate(paths[0], deep=True).findings
        assert (found.id, found.column) == ("engine-filter-misses", column)
        assert rows_found(spark, [7, 407]) == dict.fromkeys(ASKED, 2) | {column: 1}
    first.unlink()
    assert [one.id for one in bloomcli.validate(paths[0]).findings] == ["engine-filter-missing"]
    bloomcli.add(paths[0], list(VALUES), replace=True, in_place=True)
    assert rows_found(spark, [7, 407]) == dict.fromkeys(ASKED, 2)


@pytest.mark.parametrize(("column", "form"), [("text", "keyé {}x"), ("whole", "{}")])
def test_paimon_plans_a_file_exactly_if_the_filter_in_the_manifest_may_have_the_value(
    spark: Session, column: str, form: str
) -> None:
    (path,) = files(spark, "manifest")
    assert {one.place for one in bloomcli.inspect(path).engine_filters} == {"manifest"}
    assert bloomcli.validate(path, deep=True).findings == ()
    texts = [form.format(number) for number in range(1, 120, 3)]  # no row has them, and the bounds include them
    possible = [one.presence is Presence.MAYBE for one in bloomcli.probe(path, texts, column=column).engine_filters]
    typed = VALUES[column][0]
    planned = [spark.sql(f"select * from manifest where {column} = cast('{t}' as {typed})").partitions for t in texts]
    assert [bool(count) for count in planned] == possible
    assert 0 < sum(possible) < len(texts) // 2
