"""Which columns names and globs select takes work by the number of columns, not by its square."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from support.tables import write

from bloomcli.commands import columns
from bloomcli.formats.registry import open_file
from bloomcli.storage.local.source import LocalSource


@pytest.mark.parametrize("exclude", [(), ("c0",)])
def test_sets_of_columns_are_compared_once_for_all_columns(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, exclude: tuple[str, ...]
) -> None:
    compared = []

    class Counted(set[int]):
        """A set that counts the elements that its differences look at."""

        def __sub__(self, other: Any) -> Any:
            compared.append(len(self))
            return Counted(set(self) - set(other))

    path = tmp_path / "wide.parquet"
    write(path, pa.table({f"c{n}": [1] for n in range(300)}))
    with LocalSource(str(path), path) as source:
        found = open_file(source).columns
        monkeypatch.setattr(columns, "set", Counted, raising=False)
        chosen = columns.select(found, ["*"], path=str(path), exclude=exclude)
    assert len(chosen) == 300 - len(exclude)
    assert sum(compared) <= 5 * 300
