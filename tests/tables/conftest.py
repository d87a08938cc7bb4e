"""A Spark session with Iceberg and Delta, of the Spark version that both support, in a separate process.

`tests/support/servers/install.py` installs that Spark, its Java and the jars; `tests/check.py` runs this folder
separately, because a process can import only one PySpark.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import need
from support import engines, spark_tables
from support.servers import clients, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

spark_tables.choose_spark()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the catalogs ``ice`` (Iceberg, Hadoop) and ``spark_catalog`` (Delta)."""
    missing = spark_tables.missing()
    need(missing is None, str(missing))
    session = spark_tables.session(tmp_path_factory.mktemp("tables"), conf=spark_tables.SMALL)
    yield session
    engines.end(session)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a Delta table."""
    return tmp_path / "table"


@pytest.fixture
def bucket(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a bucket of MinIO. Drivers' and executors' Python has the credentials."""
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    server, name = running.minio(), f"lake-{secrets.token_hex(6)}"
    clients.s3(server).create_bucket(Bucket=name)
    for variable, value in clients.s3_environment(server, server.url).items():
        monkeypatch.setenv(variable, value)
        monkeypatch.setitem(spark.sparkContext.environment, variable, value)
    return name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings of unclosed sockets: PySpark 4.1 leaves them to the garbage collector."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def pytest_report_header() -> str:
    """The Python path's PySpark."""
    return f"tables: Spark of {next((p for p in sys.path if 'spark-tables' in p), 'this environment')}"
