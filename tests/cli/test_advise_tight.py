"""`advise` with readers that take filters of any size: it recommends tight sizes, and the command makes them."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from support.cli import Bloom

import bloomcli

pytestmark = pytest.mark.slow


@pytest.fixture
def orders(fixtures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(fixtures / "parquet" / "orders.parquet", tmp_path / "orders.parquet"))


def test_tight_sizes_are_those_that_the_printed_command_makes(bloom: Bloom, orders: Path) -> None:
    text = orders.with_name("advice.txt")
    arguments = ["--readers", "spark,duckdb", "--format", "json", "--report", f"text={text}"]
    report = json.loads(bloom("advise", str(orders), *arguments).out)
    assert report["size"] == "tight"
    assert report["tight_saves"] == 0
    words = shlex.split(report["command"])
    assert words[words.index("--size") + 1] == "tight"
    assert "sizes are tight" in text.read_text()
    added = bloom(*words[1:])
    assert added.code == 0, added.err
    for column in report["columns"]:
        if column["recommended"]:
            sizes = [one.bitset_bytes for one in bloomcli.inspect(orders, columns=[column["column"]]).filters]
            predicted = column["filter_bytes"]["estimate"]
            assert sum(size or 0 for size in sizes) == pytest.approx(predicted, rel=0.1)
            assert column["present"]["with_filter"]["row_groups"]["estimate"] == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("readers", [[], ["--readers", "spark,arrow"]])
def test_sizes_are_powers_of_two_unless_all_named_readers_take_any(
    bloom: Bloom, orders: Path, readers: list[str]
) -> None:
    text = orders.with_name("advice.txt")
    done = bloom("advise", str(orders), *readers, "--format", "json", "--report", f"text={text}")
    report = json.loads(done.out)
    assert report["size"] == "power-of-two"
    assert "--size" not in report["command"]
    added = [column for column in report["columns"] if column["recommended"]]
    rates = [rate for column in added for rate in column["rates"] if rate["fpp"] == column["fpp"]]
    saved = [rate["filter_bytes"]["estimate"] - rate["tight_bytes"] for rate in rates]
    assert report["tight_saves"] == pytest.approx(sum(saved), abs=1)
    assert report["tight_saves"] > 1000
    assert ("tight sizes make the filters" in text.read_text()) is (not readers)
