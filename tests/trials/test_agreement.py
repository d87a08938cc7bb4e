"""What `advise` predicts is what `trial` measures, on the same files and for the same readers."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.model.trial import TrialReport
from bloomcli.report.text_trial import effect, saved

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("one_process")]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Orders whose ids and users min/max can't exclude, and whose days are sorted."""
    chance = random.Random(7)
    rows = 20_000
    table = pa.table(
        {
            "order_id": [chance.getrandbits(48) for _ in range(rows)],
            "user": [f"user-{chance.randrange(5000):05d}" for _ in range(rows)],
            "day": [at // 100 for at in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "orders.parquet", row_group_size=1000, use_dictionary=["user"])
    return tmp_path / "orders.parquet"


def shares(report: TrialReport, column: str, kind: str) -> tuple[float, float]:
    """The shares of the row groups that DuckDB reads without filters and with them."""
    (found,) = [one for one in report.readers[0].lookups if (one.column, one.kind) == (column, kind)]
    assert found.row_groups_without is not None
    assert found.row_groups_with is not None
    return found.row_groups_without / found.row_groups, found.row_groups_with / found.row_groups


def test_advise_and_trial_agree_on_the_row_groups_that_duckdb_reads(lake: Path) -> None:
    advised = {one.column: one for one in bloomcli.advise(lake, readers=["duckdb"]).columns}
    tried = bloomcli.trial(lake, columns=list(advised), readers=["duckdb"], values=30, runs=0)
    for name in ("order_id", "user", "day"):
        for kind in ("present", "absent"):
            gain = getattr(advised[name], kind)
            if name == "day" and kind == "absent":
                continue  # all days between the first and the last are there: trial looks up later ones
            expected = gain.today.row_groups.estimate, gain.with_filter.row_groups.estimate
            assert shares(tried, name, kind) == pytest.approx(expected, abs=0.12), (name, kind)
    assert saved(tried.readers[0]) == any(one.recommended for one in advised.values())


@pytest.mark.parametrize(("column", "dictionary"), [("user", True), ("order_id", False)])
def test_both_give_the_same_verdict_on_a_reader(lake: Path, column: str, dictionary: bool) -> None:
    readers = ["duckdb", "polars", "datafusion", "chdb"]
    advised = bloomcli.advise(lake, columns=column, readers=readers)
    tried = bloomcli.trial(lake, columns=column, readers=readers, values=2, runs=0)
    verdicts = {use.reader: (use.verdict, use.columns) for use in advised.uses}
    assert verdicts["clickhouse"][0] == ("dictionaries" if dictionary else "gains")
    assert {use.reader: (use.verdict, use.columns) for reader in tried.readers for use in reader.uses} == verdicts
    for reader in tried.readers:
        (use,) = reader.uses
        assert saved(reader) == (use.verdict == "gains"), effect(reader)
