"""A file of few row groups, which are all sampled, gets clear recommendations: only the choice of values is
random."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli

USEFUL = ("id", "user.email", "user.name")
MEASURES = ("amount", "created")
"""They would save as much, and nobody knows whether queries look them up."""

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(2))
def test_every_useful_column_of_a_small_file_is_recommended_with_a_narrow_interval(fixtures: Path, seed: int) -> None:
    report = bloomcli.advise(fixtures / "parquet" / "orders.parquet", seed=seed)
    columns = {column.column: column for column in report.columns}
    assert "unknown" not in {column.reason_id for column in report.columns}
    assert {name for name, column in columns.items() if column.recommended} == set(USEFUL)
    assert {name for name, column in columns.items() if column.reason_id == "seldom-looked-up"} == set(MEASURES)
    for name in (*USEFUL, *MEASURES):
        saved = columns[name].saved_bytes
        assert saved.high - saved.low <= 0.1 * saved.estimate


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_intervals_of_files_with_few_row_groups_contain_no_0_where_filters_save(tmp_path: Path, groups: int) -> None:
    rng = np.random.default_rng(groups)
    rows = 8_000
    table = pa.table(
        {
            "id": rng.permutation(rows * groups * 5)[: rows * groups],
            "trace": [f"{a:016x}{b:016x}" for a, b in rng.integers(0, 1 << 62, (rows * groups, 2))],
            "payload": [rng.bytes(60) for _ in range(rows * groups)],
        }
    )
    pq.write_table(table, tmp_path / "small.parquet", row_group_size=rows)
    columns = {column.column: column for column in bloomcli.advise(tmp_path / "small.parquet").columns}
    for name in ("id", "trace"):
        saved = columns[name].saved_bytes
        assert columns[name].recommended, columns[name].reason
        assert saved.high - saved.low <= 0.1 * saved.estimate


def test_absent_texts_read_all_row_groups_of_a_column_of_random_ids_today(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ids = [f"{value:016x}" for value in rng.integers(0, 1 << 62, 8000)]
    pq.write_table(pa.table({"trace": ids}), tmp_path / "traces.parquet", row_group_size=2000)
    (column,) = bloomcli.advise(tmp_path / "traces.parquet").columns
    assert column.absent.today.row_groups.estimate > 0.95
    assert "instead of 4 for one that it doesn't have" in column.reason


@pytest.mark.parametrize(("rows", "stated"), [(3, True), (40, True), (3, False)])
def test_a_filter_of_one_value_per_row_group_can_go_where_validate_says_that_it_saves_nothing(
    tmp_path: Path, rows: int, stated: bool
) -> None:
    path = str(tmp_path / "f.parquet")
    table = pa.table({"tenant": [number * 4 // rows for number in range(rows)]})
    pq.write_table(table, path, row_group_size=rows if rows == 3 else 10, write_statistics=stated)
    if rows == 3:
        pq.write_table(pa.table({"tenant": [5] * rows}), path, write_statistics=stated)
    bloomcli.add(path, ["tenant"], in_place=True)
    (column,) = bloomcli.advise(path).columns
    policy = tmp_path / "bloom.toml"
    policy.write_text("max-fpp = 0.5")
    found = {finding.id for file in [bloomcli.validate(path, policy=str(policy))] for finding in file.findings}
    assert (column.existing.judgement == "not-worth", "profit-constant" in found) == (stated, stated)
