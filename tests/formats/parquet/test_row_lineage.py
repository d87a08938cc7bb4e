"""Every reader reads the row lineage columns, and nothing else in the file changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from support.encrypted import OpenKms, write_encrypted

import bloomcli
from bloomcli.commands import add, remove
from bloomcli.commands.change import Target, change_where_needed
from bloomcli.commands.options import AddOptions, RemoveOptions
from bloomcli.errors import UnsupportedError
from bloomcli.formats.keys import Keys
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.model.change import ChangeReport
from bloomcli.model.schema import RowLineage
from bloomcli.storage.registry import open_source

FIRST = 1 << 40
NEW = ("_row_id", "_last_updated_sequence_number")


def table(rows: int) -> pa.Table:
    columns = {"id": range(rows), "s": [f"s{i % 7}" for i in range(rows)], "l": [[i, None] for i in range(rows)]}
    return pa.table(columns, schema=pa.schema([("id", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int32()))]))


def numbered(path: Path, columns: tuple[str, ...] = ("id",), **more: Any) -> Path:
    """The file with the columns and with filters, as the task for a table's file writes it."""
    output = path.with_name("new.parquet")
    options = AddOptions(columns=columns, **more)
    target = Target(output=str(output), lineage=RowLineage(FIRST, 77))
    assert isinstance(change_where_needed(path, add.Request(options, where_missing=True), target), ChangeReport)
    return output


def parquet(path: Path, rows: int, **more: Any) -> Path:
    target = path / "old.parquet"
    pq.write_table(table(rows), target, **more)
    return target


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize(
    ("rows", "group"),
    [(1, 1), (2, 1), (129, 129), (130, 130), (5000, 1700), pytest.param(300_000, 100_000, marks=pytest.mark.slow)],
)
def test_every_row_has_its_number_and_the_other_columns_their_bytes(
    tmp_path: Path, rows: int, group: int, index: bool
) -> None:
    old = parquet(tmp_path, rows, row_group_size=group, write_page_index=index)
    new = numbered(old)
    found = pq.read_table(new)
    assert found.drop_columns(NEW).equals(table(rows))
    assert found["_row_id"].equals(pa.chunked_array([range(FIRST, FIRST + rows)]).cast(pa.int64()))
    assert found["_last_updated_sequence_number"].unique().to_pylist() == [77]
    before, after = pq.read_metadata(old), pq.read_metadata(new)
    assert [field_id(after, name) for name in NEW] == [2147483540, 2147483539]
    with open_source(str(old)) as source:
        start = read_footer(source).start
    assert new.read_bytes()[:start] == old.read_bytes()[:start]
    for number in range(before.num_row_groups):
        one, other = before.row_group(number), after.row_group(number)
        for column in range(3):
            assert one.column(column).statistics == other.column(column).statistics
            assert one.column(column).data_page_offset == other.column(column).data_page_offset
        chunks = [other.column(column) for column in (4, 3)]
        assert all(chunk.has_offset_index == chunk.has_column_index == index for chunk in chunks)
        assert other.total_byte_size == one.total_byte_size + sum(chunk.total_uncompressed_size for chunk in chunks)
        assert other.column(3).statistics.min == FIRST + number * group
    assert bloomcli.validate(new, deep=True).ok


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_the_columns_of_an_encrypted_file_are_encrypted(tmp_path: Path, algorithm: str) -> None:
    old, keys = tmp_path / "old.parquet", Keys(kms=OpenKms)
    options = {"uniform_encryption": True, "encryption_algorithm": algorithm}
    write_encrypted(old, table(130), index=True, **options)
    with open_source(old) as source:
        start = ParquetFile(source, keys).footer.start
    new = numbered(old, keys=keys, readers=("spark",))
    assert new.read_bytes()[:start] == old.read_bytes()[:start]
    properties = pe.CryptoFactory(OpenKms).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    found = pq.ParquetFile(new, decryption_properties=properties).read()
    assert found.drop_columns(NEW).equals(table(130))
    assert found["_row_id"].to_pylist() == list(range(FIRST, FIRST + 130))
    checked = bloomcli.validate(new, deep=True, columns=["*"], keys=keys)
    assert (checked.findings, checked.filters_checked) == ((), 3)
    entries = bloomcli.inspect(new, indexes=True, columns=["_row_id"], keys=keys).index
    assert [entry.min for entry in entries] == [str(FIRST + start) for start in (0, 50, 100)]
    (changed := bytearray(new.read_bytes()))[start + 20] ^= 1
    new.write_bytes(changed)
    rows = bloomcli.find(new, [FIRST], column="_row_id", keys=keys)
    assert list(rows) == []
    assert "page header can't be decrypted" in str(rows.report.errors)


@pytest.mark.parametrize("options", [{"plaintext_footer": True, "column_keys": {"one": ["id"]}}])
def test_a_file_with_a_signed_footer_gets_no_columns(tmp_path: Path, options: dict[str, Any]) -> None:
    old = write_encrypted(tmp_path / "old.parquet", table(130), **options)
    with pytest.raises(UnsupportedError, match="can't get the row lineage columns"):
        numbered(old, keys=Keys(kms=OpenKms), readers=("spark",))


def field_id(metadata: pq.FileMetaData, name: str) -> int:
    text = str(metadata.schema)
    found = re.search(rf"field_id=(-?\d+) {name}\b", text)
    assert found is not None, text
    return int(found.group(1))


@pytest.mark.interop
@pytest.mark.parametrize("arrow_schema", [True, False])
def test_other_readers_read_the_file(tmp_path: Path, arrow_schema: bool) -> None:
    import arro3.io
    import chdb
    import datafusion
    import duckdb
    import polars as pl

    rows = 5000
    old = parquet(tmp_path, rows, row_group_size=1700, write_page_index=True, store_schema=arrow_schema)
    new = str(numbered(old))
    ids = list(range(FIRST, FIRST + rows))
    assert pl.read_parquet(new)["_row_id"].to_list() == ids
    assert pa.table(arro3.io.read_parquet(new).read_all())["_row_id"].to_pylist() == ids
    context = datafusion.SessionContext()
    context.register_parquet("new", new)
    asked = f"select id, l from {{}} where _row_id = {ids[4321]}"
    assert context.sql(asked.format("new")).to_pylist() == [{"id": 4321, "l": [4321, None]}]
    assert duckdb.sql(asked.format(f"'{new}'")).fetchall() == [(4321, [4321, None])]
    count = f"select count(), sum(_row_id - {FIRST}), sum(id) from file('{new}')"
    assert chdb.query(count).data().strip() == f"{rows},{sum(range(rows))},{sum(range(rows))}"


def test_a_file_that_has_the_columns_gets_no_others(tmp_path: Path) -> None:
    once = numbered(parquet(tmp_path, 1000))
    again = numbered(once.rename(tmp_path / "once.parquet"), ("s",))
    assert pq.read_schema(again).names == ["id", "s", "l", *NEW]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"_row_id": [1, None], "_last_updated_sequence_number": [1, 1]}, "no _row_id of their own"),
        ({"_row_id": [1, 2]}, "not the other row lineage column"),
    ],
)
def test_files_whose_rows_would_get_other_numbers_are_refused(
    tmp_path: Path, columns: dict[str, list[int | None]], reason: str
) -> None:
    path = tmp_path / "old.parquet"
    pq.write_table(pa.table({"id": [1, 2], **columns}), path)
    with pytest.raises(UnsupportedError, match=reason):
        numbered(path)
    assert not (tmp_path / "new.parquet").exists()


def test_removing_the_filters_keeps_the_columns(tmp_path: Path) -> None:
    new = numbered(parquet(tmp_path, 1000))
    options = RemoveOptions(columns=["*"])
    output = tmp_path / "removed.parquet"
    change_where_needed(new, remove.Request(options), Target(output=str(output), lineage=RowLineage(FIRST, 77)))
    assert bloomcli.inspect(output).filters == ()
    assert pq.read_table(output).equals(pq.read_table(new))
