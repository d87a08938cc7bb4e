"""Work that must not grow with the square of the columns: walks counted, not seconds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.commands.options import AddOptions
from bloomcli.datasets import task
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.spec import Struct
from bloomcli.model.dataset import Status

COLUMNS = 300


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that footers walk, as they do."""
    seen: list[int] = []
    real = Footer.group_struct

    def counting(self: Footer, index: int) -> Struct:
        seen.append(index)
        return real(self, index)

    monkeypatch.setattr(Footer, "group_struct", counting)
    return seen


def test_a_row_group_is_not_walked_once_per_column(tmp_path: Path, walks: list[int]) -> None:
    file, out = tmp_path / "wide.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({f"c{n}": [n, n + 1] for n in range(COLUMNS)}), file)
    one = task.Task(options=AddOptions(columns=["*"]), path=str(file), size=-1, output=str(out))

    def walked(status: Status) -> int:
        walks.clear()
        row = task.run(one)
        assert row.status is status, row
        return len(walks)

    assert walked(Status.DONE) < COLUMNS / 4
    assert walked(Status.SKIPPED) < COLUMNS / 4
    walks.clear()
    assert bloomcli.validate(out).filters_checked == COLUMNS
    assert 0 < len(walks) < COLUMNS / 4
