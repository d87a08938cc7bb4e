"""Delete files of Iceberg tables are checked before rows are hidden by them. No session is needed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bloomcli.datasets.record_shape import RecordField
from bloomcli.errors import CorruptFile
from bloomcli.tables.deleted_rows import delete_rows

SHAPE = (RecordField(name="pos", type=pa.int64(), names=("pos",)),)


def test_a_delete_file_whose_page_does_not_fit_its_checksum_hides_no_row(tmp_path: Path) -> None:
    path = tmp_path / "deletes.parquet"
    table = pa.table({"pos": pa.array([10**9 + n for n in range(100)], pa.int64())})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    (rows,) = delete_rows(str(path), "parquet", SHAPE)
    assert rows.field("pos").to_pylist() == table["pos"].to_pylist()
    data = bytearray(path.read_bytes())
    data[data.index((10**9 + 50).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="page integrity"):
        list(delete_rows(str(path), "parquet", SHAPE))
