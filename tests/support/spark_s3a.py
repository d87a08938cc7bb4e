"""Spark reads a dataset by s3a, bloom adds filters to it on Spark's executors, and Spark reads it again.

    python -m support.spark_s3a URI VALUE      prints the numbers of rows, and the value's rows, as JSON

`servers/install.py` installs the jars of hadoop-aws and of the parts of AWS's SDK that it needs. The variable
SPARK_S3A_JARS names their folder.

S3A's default stream ("analytics") caches the ETag of an object for all streams of the process, and fails after the
object was replaced. So this program uses the stream without a cache ("classic").
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from support.engines import java_home


def session(folder: Path) -> Any:
    """A local Spark session with s3a, which finds its server by the variables of AWS's tools."""
    os.environ["JAVA_HOME"] = str(java_home(folder, short=True))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(map(str, sorted(Path(os.environ["SPARK_S3A_JARS"]).glob("*.jar")))),
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"],
        "spark.hadoop.fs.s3a.endpoint.region": os.environ["AWS_REGION"],
        "spark.hadoop.fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Read, add, read."""
    uri, value = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="spark-s3a-") as folder:
        spark = session(Path(folder))
        found = {"before": spark.read.parquet(uri).count()}
        from bloomcli.cli import run

        found["code"] = run(["add", uri, "-c", "id", "--in-place", "--engine", "spark"])
        spark.catalog.clearCache()
        rows = spark.read.parquet(uri)
        found["after"] = rows.count()
        found["numbers"] = [row["number"] for row in rows.filter(rows["id"] == value).collect()]
        spark.stop()
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
