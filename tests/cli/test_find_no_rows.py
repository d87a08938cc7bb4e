"""Tables that `bloom find` writes without rows have the same columns as with rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles
from support.cli import Bloom
from support.orcfiles import everything

ABSENT = "-77"


def lake_of(folder: Path, form: str, table: pa.Table) -> Path:
    folder.mkdir()
    (folder / "a.txt").write_text("nothing")
    path = folder / f"b.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "orc":
        orc.write_table(table, path)
    else:
        mosaicfiles.write(path, table)
    return folder


def table_of(form: str) -> pa.Table:
    table = everything(20).append_column("id", pa.array(range(20))).append_column("path", pa.array(["p"] * 20))
    return table.drop(["st", "li", "mp", "ls"]) if form == "mosaic" else table


@pytest.mark.parametrize(
    ("form", "select"),
    [(form, select) for form in ("parquet", "orc", "mosaic") for select in ((), ("--select", "string,id"))]
    + [(form, ("--select", select)) for form in ("parquet", "orc") for select in ("st,li*,date", "st.y")],
)
def test_a_table_without_rows_has_the_columns_that_it_has_with_rows(
    bloom: Bloom, tmp_path: Path, form: str, select: tuple[str, ...]
) -> None:
    lake = lake_of(tmp_path / "lake", form, table_of(form))
    schemas, heads = [], []
    for at, value in enumerate(("7", ABSENT)):
        out = tmp_path / f"{at}.parquet"
        done = bloom("find", "-v", value, lake, "-c", "id", *select, "-f", "parquet", "-o", out)
        assert done.code == at, done.err
        schemas.append(pq.read_schema(out))
        assert pq.read_metadata(out).num_rows == 1 - at
        heads.append(bloom("find", "-v", value, lake, "-c", "id", *select, "-f", "csv").out.splitlines()[0])
    assert schemas[0].equals(schemas[1], check_metadata=True)
    assert heads[0] == heads[1]
    assert len(heads[0].split(",")) > 5


def test_the_columns_are_those_of_the_first_file_that_can_be_searched(bloom: Bloom, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", "parquet", pa.table({"id": [1], "b": [2]}))
    pq.write_table(pa.table({"other": [1]}), lake / "a.parquet")
    pq.write_table(pa.table({"id": [1], "c": [2]}), lake / "c.parquet")
    head = bloom("find", "-v", ABSENT, lake, "-c", "id", "-f", "csv").out
    assert head == "path,stripe,row_group,row,value,id,b\n"


def test_files_without_rows_and_row_groups_have_columns_too(bloom: Bloom, tmp_path: Path) -> None:
    for form in ("parquet", "orc", "mosaic"):
        lake = lake_of(
            tmp_path / form, form, pa.table({"id": pa.array([], pa.int64()), "b": pa.array([], pa.int8())})
        )
        head = bloom("find", "-v", ABSENT, lake, "-c", "id", "-f", "csv").out
        assert head == "path,stripe,row_group,row,value,id,b\n", form


def test_an_index_that_rules_all_files_out_leaves_the_columns(bloom: Bloom, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", "orc", pa.table({"id": [1], "b": [2]}))
    index = tmp_path / "x.idx"
    bloom("index", "build", lake, "-c", "id", "-o", index)
    done = bloom("find", "-v", ABSENT, lake, "-c", "id", "-f", "csv", "--index", index)
    assert (done.code, done.out) == (1, "path,stripe,row_group,row,value,id,b\n")
    assert "index: 1 of 1 file not opened" in done.err


def test_where_no_file_can_be_searched_there_are_the_first_columns(bloom: Bloom, tmp_path: Path) -> None:
    lake = lake_of(tmp_path / "lake", "parquet", pa.table({"id": [1]}))
    out = tmp_path / "hits.parquet"
    done = bloom("find", "-v", "1", lake, "-c", "none", "-f", "parquet", "-o", out)
    assert done.code == 2
    assert pq.read_schema(out).names == ["path", "stripe", "row_group", "row", "value"]
