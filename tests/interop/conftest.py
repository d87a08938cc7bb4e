"""Files that Spark wrote, for several modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

import pytest
from support import spark_lookups

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def looked_up(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], spark_lookups.Files]:
    """The files of a format, written once."""
    return cache(partial(spark_lookups.files, spark, tmp_path_factory.mktemp("lookups")))
