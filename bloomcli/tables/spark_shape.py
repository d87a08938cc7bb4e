"""Converts types in Spark's JSON to Arrow types."""

from __future__ import annotations

import json
from typing import Any

from bloomcli.datasets import spark_types


def arrow_type(kind: Any) -> Any:
    """The Arrow type that Spark uses for a type, which is given as parsed JSON; None if no Arrow type exists."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    field = {"name": "_", "type": kind, "nullable": True, "metadata": {}}
    try:
        return spark_types.arrow_type(StructType.fromJson(json.loads(json.dumps({"fields": [field]})))[0].dataType)
    except (PySparkException, ValueError):
        return None
