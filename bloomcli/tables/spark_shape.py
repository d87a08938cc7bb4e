"""Types of Spark's JSON as Arrow has them."""

from __future__ import annotations

import json
from typing import Any

from bloomcli.datasets import spark_types


def arrow_type(kind: Any) -> Any:
    """The Arrow type that Spark takes for a type, from its JSON in Python; None where there is none."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    field = {"name": "_", "type": kind, "nullable": True, "metadata": {}}
    try:
        return spark_types.arrow_type(StructType.fromJson(json.loads(json.dumps({"fields": [field]})))[0].dataType)
    except (PySparkException, ValueError):
        return None
