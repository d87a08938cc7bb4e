"""The session that the tests of tables use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_it_has_iceberg_and_delta(spark: SparkSession, folder: Path) -> None:
    spark.sql("create table ice.db.session (id bigint) using iceberg")
    spark.sql("insert into ice.db.session select id from range(10)")
    spark.sql(f"create table delta.`{folder}` (id bigint) using delta")
    spark.sql(f"insert into delta.`{folder}` select id from range(20)")
    assert (spark.table("ice.db.session").count(), spark.table(f"delta.`{folder}`").count()) == (10, 20)
