"""The libraries and settings that a Spark session needs for a table format, as command-line options."""

from __future__ import annotations

import shlex
from typing import Any, Final

_SPARK: Final = "4.1"
"""The Spark version for which these libraries are built."""
_SETTINGS: Final = {
    "iceberg": (
        "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ),
    "delta": (
        "spark.jars.packages=io.delta:delta-spark_4.1_2.13:4.4.0",
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
    ),
}


def settings(kind: str) -> tuple[str, ...]:
    """The options that set up a session for a format, ``iceberg`` or ``delta``."""
    return tuple(part for setting in _SETTINGS[kind] for part in ("--conf", setting))


def library_hint(session: Any, kind: str, name: str) -> str:
    """The hint for a session without a format's library: a command line with its settings.

    Args:
        session: the session.
        kind: ``iceberg`` or ``delta``.
        name: the table's name.
    """
    command = shlex.join(["bloom", "inspect", "--table", name, *settings(kind)])
    here = str(session.version)
    other = "" if here.startswith(f"{_SPARK}.") else f"`pip install 'pyspark=={_SPARK}.*'`, as this is Spark {here}; "
    return f"{other}`{command}`; in Python, give the settings to SparkSession.builder.config; see docs/tables.md"
