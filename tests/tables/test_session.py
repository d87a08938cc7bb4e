"""The session of these tests starts in the way that they are timed for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import need
from support import spark_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_java_takes_its_classes_from_the_archives_that_were_made_for_it(spark: SparkSession) -> None:
    """Java ignores an archive that doesn't fit, and is silent about it."""
    (*_, archives) = spark_start.options() or [""]
    need(bool(archives), "the archives of classes: python tests/support/spark_start.py tables")
    context: Any = spark.sparkContext
    mapped = Path(f"/proc/{context._gateway.proc.pid}/maps").read_text()
    assert [archive for archive in archives.partition("=")[2].split(":") if archive not in mapped] == []
