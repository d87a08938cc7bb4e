"""The engines do with wrong structures what docs/wrong-structures.md says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import skipping_engines
from support.skipping_engines import IN_PROCESS
from support.wrong_structures import cells, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("engine", IN_PROCESS)
def test_an_engine_does_what_the_table_says(engine: str, tmp_path: Path) -> None:
    pytest.importorskip("chdb" if engine == "ClickHouse" else engine.lower())
    with skipping_engines.running(engine) as ask:
        assert cells(ask, tmp_path) == recorded()[engine]


@pytest.mark.slow
def test_spark_does_what_the_table_says(spark: SparkSession, tmp_path: Path) -> None:
    assert cells(skipping_engines.Spark(spark), tmp_path) == recorded()["Spark"]
