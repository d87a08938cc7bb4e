"""Arrow C++ reads what we wrote: equal tables, equal metadata but for the filters, which it sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.tables import CASES, write

import bloomcli

pytestmark = pytest.mark.interop

REPEATS = 6
LAYOUTS: dict[str, dict[str, Any]] = {
    "pages of version 1": {"compression": "snappy"},
    "pages of version 2 with page indexes": {"page_version": 2, "compression": "zstd", "write_page_index": True},
    "page indexes and checksums": {"write_page_index": True, "write_page_checksum": True, "dictionary": False},
}


def table() -> pa.Table:
    """All cases at one length."""
    arrays = {name: case.array(REPEATS) for name, case in CASES.items()}
    shortest = min(len(array) for array in arrays.values())
    return pa.table({name: array.slice(0, shortest) for name, array in arrays.items()})


@pytest.fixture(scope="module", params=LAYOUTS)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("arrow")
    bare = write(folder / "bare.parquet", table(), rows=7, **LAYOUTS[request.param])
    bloomcli.add(bare, ["*"], output=folder / "ours.parquet", readers="arrow")
    return bare, folder / "ours.parquet"


def test_the_tables_are_equal(files: tuple[Path, Path]) -> None:
    bare, ours = (pq.read_table(path, page_checksum_verification=True) for path in files)
    assert ours.equals(bare)
    assert ours.schema.equals(bare.schema, check_metadata=True)
    ours.validate(full=True)


def test_arrow_shows_our_filter_in_each_chunk(files: tuple[Path, Path]) -> None:
    ours = pq.read_metadata(files[1])
    shown = [
        (group, chunk.path_in_schema, chunk.bloom_filter_offset, chunk.bloom_filter_length)
        for group in range(ours.num_row_groups)
        for chunk in map(ours.row_group(group).column, range(ours.num_columns))
    ]
    assert shown == [(f.row_group, f.column, f.offset, f.length) for f in bloomcli.inspect(files[1]).filters]


def test_nothing_else_in_the_metadata_has_changed(files: tuple[Path, Path]) -> None:
    def bare(path: Path) -> dict[str, Any]:
        metadata = pq.read_metadata(path).to_dict()
        del metadata["serialized_size"]
        for group in metadata["row_groups"]:
            for chunk in group["columns"]:
                for key in ("bloom_filter_offset", "bloom_filter_length"):
                    chunk.pop(key, None)
        return dict(metadata)

    assert repr(bare(files[1])) == repr(bare(files[0]))  # by text, since a NaN isn't equal to itself


@pytest.mark.parametrize("column", ["int64", "string", "decimal128_28", "timestamp_us"])
def test_a_filtered_read_gives_the_same_rows(files: tuple[Path, Path], column: str) -> None:
    for stored in set(table()[column].drop_null().to_pylist()):
        scalar = pa.scalar(stored, table().schema.field(column).type)
        bare, ours = (pq.read_table(path, filters=[(column, "==", scalar)], columns=[column]) for path in files)
        assert ours.num_rows > 0
        assert ours.equals(bare)
