"""The cached columns of a schema are those of its bytes, and errors are raised again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.tables import write

from bloomcli.errors import CorruptFile
from bloomcli.formats.parquet import schema
from bloomcli.formats.parquet.footer import Footer, read_footer
from bloomcli.storage.registry import open_source


def footer_of(path: Path, *names: str) -> Footer:
    """The footer of a file with integer columns."""
    write(path, pa.table({name: pa.array([1], pa.int32()) for name in names}), store_schema=False)
    with open_source(path) as source:
        return read_footer(source)


def paths(footer: Footer) -> list[str]:
    return [column.path for column in schema.leaf_columns(footer.top)]


def test_files_of_one_schema_share_its_columns(tmp_path: Path) -> None:
    first, second = (footer_of(tmp_path / f"{n}.parquet", "a", "b") for n in range(2))
    assert schema.leaf_columns(first.top) is schema.leaf_columns(second.top)


def test_each_schema_has_its_own_columns(tmp_path: Path) -> None:
    first, second = footer_of(tmp_path / "1.parquet", "a", "b"), footer_of(tmp_path / "2.parquet", "a", "c")
    assert [paths(first), paths(second), paths(first)] == [["a", "b"], ["a", "c"], ["a", "b"]]


def test_a_damaged_schema_is_an_error_each_time(tmp_path: Path) -> None:
    whole = footer_of(tmp_path / "1.parquet", "name_a")
    paths(whole)
    before = b"\x25\x02\x18\x06name_a"  # repetition_type 1, and the name
    assert whole.raw.count(before) == 1
    damaged = Footer("x", 1000, 500, whole.raw.replace(before, b"\x25\x0e\x18\x06name_a"))
    for _ in range(2):
        with pytest.raises(CorruptFile, match="repetition type 7"):
            paths(damaged)
    assert paths(whole) == ["name_a"]
