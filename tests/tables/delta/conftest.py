"""A Delta table for each test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.delta_tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """A table that doesn't exist yet. Its path has characters that URIs encode."""
    return Lake(spark, tmp_path / "t ü%41#")
