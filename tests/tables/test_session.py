"""The session of these tests starts in the way that they are timed for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_java_takes_its_classes_from_the_archives_that_were_made_for_it(spark: SparkSession) -> None:
    """Java ignores an archive that doesn't fit, and is silent about it."""
    context: Any = spark.sparkContext
    process = Path(f"/proc/{context._gateway.proc.pid}")
    options = process.joinpath("cmdline").read_text().split("\0")
    chosen = [option for option in options if option.startswith("-XX:SharedArchiveFile=")]
    if not chosen:
        pytest.skip("the archives of classes were made after this session began: needs a second run")
    mapped = process.joinpath("maps").read_text()
    assert [archive for archive in chosen[-1].partition("=")[2].split(":") if archive not in mapped] == []
