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

LAYOUTS: dict[str, dict[str, Any]] = {
    "pages of version 1": {"compression": "snappy"},
    "pages of version 2 with page indexes": {"page_version": 2, "compression": "zstd", "write_page_index": True},
    "page indexes and checksums": {"write_page_index": True, "write_page_checksum": True, "dictionary": False},
}


def table() -> pa.Table:
    """All cases at one length."""
    arrays = {name: case.array(6) for name, case in CASES.items()}
    shortest = min(len(array) for array in arrays.values())
    return pa.table({name: array.slice(0, shortest) for name, array in arrays.items()})


def without_filters(path: Path) -> str:
    """The metadata; as text, since a NaN isn't equal to itself."""
    metadata = pq.read_metadata(path).to_dict()
    del metadata["serialized_size"]
    for group in metadata["row_groups"]:
        for chunk in group["columns"]:
            for key in ("bloom_filter_offset", "bloom_filter_length"):
                chunk.pop(key, None)
    return repr(metadata)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_filters_are_added_which_arrow_sees(layout: str, tmp_path: Path) -> None:
    bare, ours = tmp_path / "bare.parquet", tmp_path / "ours.parquet"
    write(bare, table(), rows=7, **LAYOUTS[layout])
    bloomcli.add(bare, ["*"], output=ours, readers="arrow")
    before, after = (pq.read_table(path, page_checksum_verification=True) for path in (bare, ours))
    assert after.equals(before)
    assert after.schema.equals(before.schema, check_metadata=True)
    after.validate(full=True)
    assert without_filters(ours) == without_filters(bare)
    metadata = pq.read_metadata(ours)
    shown = [
        (group, chunk.path_in_schema, chunk.bloom_filter_offset, chunk.bloom_filter_length)
        for group in range(metadata.num_row_groups)
        for chunk in map(metadata.row_group(group).column, range(metadata.num_columns))
    ]
    assert shown == [(f.row_group, f.column, f.offset, f.length) for f in bloomcli.inspect(ours).filters]
