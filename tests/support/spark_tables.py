"""Starts the Spark that Iceberg and Delta support, with both: `servers/install.py` installs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.servers import install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_JAVA: Final = (
    "-Xms1g -Xmn400m -XX:MetaspaceSize=400m -Djdk.lang.Process.launchMechanism=VFORK"
    " -XX:Tier3InvocationThreshold=60 -XX:Tier3MinInvocationThreshold=30 -XX:Tier3CompileThreshold=400"
    " -XX:Tier3BackEdgeThreshold=10000 -XX:Tier0InvokeNotifyFreqLog=5 -XX:Tier0BackedgeNotifyFreqLog=8"
)
"""Beside the options of all short sessions. The initial sizes of heap and metadata are so small by default that
garbage collection takes a tenth of the time. Hadoop starts a chmod for each file that it writes: with VFORK Java
starts it in one step. A quarter of the time of these sessions, which plan thousands of statements, was in code that
wasn't compiled yet: compiled after a third of the usual calls, they take 0.91 of the processor time, after a tenth
as before. In sessions of half a minute it makes no difference."""
SMALL: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.ui.explainMode": "codegen",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
"""For tables of a few rows: plans that aren't compiled start in a fraction of the time. Spark describes their code,
which is empty, in less time than the plans, for a page that nobody opens. With the last setting, Delta writes its log
without checksum files, for each of which Hadoop would start four programs."""
CLASS_PATHS: Final = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
"""The setting for the jars of Iceberg and Delta. The loader of ``spark.jars`` doesn't share classes."""
ROOT: Final = Path(__file__).parents[2]
_EXTENSIONS: Final = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)


def home() -> Path:
    """The folder with ``site`` (PySpark 4.1 and its Java) and ``jars``."""
    return install.INSTALLATIONS["spark-tables"].folder


def choose_spark() -> None:
    """Let this process import that PySpark, before it has imported another one."""
    if "pyspark" not in sys.modules:
        sys.path.insert(0, str(home() / "site"))


def missing() -> str | None:
    """The missing requirement of these tests; None if they can run."""
    if install.program("spark-tables") is None:
        return "Spark 4.1 with Iceberg and Delta: python tests/support/servers/install.py spark-tables"
    import pyspark

    if not Path(pyspark.__file__).is_relative_to(home()):
        return "a process of its own for Spark 4.1: pytest tests/tables"
    return None


def session(
    folder: Path, *, cores: int = 2, conf: dict[str, str] | None = None, more: Sequence[str] = ()
) -> SparkSession:
    """A session that writes only below `folder`: ``ice`` is an Iceberg catalog, ``spark_catalog`` is Delta's; `more`
    as in `engines.java_home`."""
    from support.engines import WORKERS, java_home, worker_python

    os.environ["JAVA_HOME"] = str(java_home(folder, short=True, more=more))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = str(worker_python(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join((str(home() / "site"), str(ROOT)))
    from pyspark.sql import SparkSession

    settings = {
        **dict([WORKERS]),
        **dict.fromkeys(CLASS_PATHS, os.pathsep.join(map(str, sorted((home() / "jars").glob("*.jar"))))),
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.sql.catalog.ice.cache-enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.log.level": "ERROR",
        **(conf or {}),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bloomcli-tables")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
