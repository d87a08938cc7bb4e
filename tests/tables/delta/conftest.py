"""Settings for tables of a few rows: plans that aren't compiled start in a fraction of the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from support.delta_tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SMALL: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


@pytest.fixture(scope="package")
def small(spark: SparkSession) -> Iterator[None]:
    """The settings, for the tests of this folder that have tables."""
    before = {key: spark.conf.get(key, None) for key in _SMALL}
    for key, value in _SMALL.items():
        spark.conf.set(key, value)
    yield
    for key, kept in before.items():
        if kept is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, kept)


@pytest.fixture
def lake(spark: SparkSession, small: None, tmp_path: Path) -> Lake:
    """A table that doesn't exist yet. Its path has characters that URIs encode."""
    return Lake(spark, tmp_path / "t ü%41#")
