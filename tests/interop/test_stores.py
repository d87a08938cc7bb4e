"""Other engines read objects that bloom wrote from the store itself: the same rows, and the row of a value.

The object's body is copied by the store, and only its tail is uploaded: a reader of the whole object
shows whether the two fit.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from support.s3_place import S3Place
from support.servers import clients, install, running

import bloomcli

pytestmark = [pytest.mark.interop, pytest.mark.servers]

_ROWS: Final = 700_000
_PROBED: Final = 4711
"""The row whose value is looked up."""


class Written(NamedTuple):
    """An object that bloom has added a filter to."""

    place: S3Place
    key: str
    value: int
    """A value of the column id, in one row."""
    total: int
    """The sum of the column number over all rows."""

    @property
    def host(self) -> str:
        """The server's address, without a scheme."""
        return str(self.place.client.meta.endpoint_url).partition("://")[2]

    @property
    def name(self) -> str:
        """The bucket and the key."""
        return f"{self.place.bucket}/{self.key}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """An object of several parts in MinIO, with a filter that was added in place."""
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    path = tmp_path_factory.mktemp("interop") / "data.parquet"
    ids = np.random.default_rng(3).integers(0, 1 << 62, _ROWS)
    table = pa.table({"id": ids, "number": np.arange(_ROWS)})
    pq.write_table(table, path, row_group_size=_ROWS // 4, compression="none", use_dictionary=False)
    with pytest.MonkeyPatch.context() as patched:
        place = S3Place(running.minio(), patched)
        place.put("data.parquet", path.read_bytes())
        bloomcli.add(place.path("data.parquet"), ["id"], in_place=True)
        data = place.get("data.parquet")
        assert data is not None
        assert len(data) > path.stat().st_size, "it has filters"
        yield Written(place, "lake/data.parquet", int(ids[_PROBED]), int(np.arange(_ROWS).sum()))


def by_pyarrow(written: Written) -> tuple[int, list[int]]:
    """By Arrow's S3 file system."""
    from pyarrow import fs

    secret = {"access_key": written.place.server.user, "secret_key": written.place.server.secret}
    store = fs.S3FileSystem(**secret, endpoint_override=written.host, scheme="http", region="us-east-1")
    table = pq.read_table(written.name, filesystem=store)
    found = pq.read_table(written.name, filesystem=store, filters=[("id", "=", written.value)])
    return pa.compute.sum(table["number"]).as_py(), found["number"].to_pylist()


def by_polars(written: Written) -> tuple[int, list[int]]:
    """By object_store, which Polars brings."""
    import polars as pl

    options = {
        "aws_access_key_id": written.place.server.user,
        "aws_secret_access_key": written.place.server.secret,
        "aws_endpoint_url": written.place.server.url,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    scan = pl.scan_parquet(f"s3://{written.name}", storage_options=options)
    total = scan.select(pl.col("number").sum()).collect().item()
    return total, scan.filter(pl.col("id") == written.value).collect()["number"].to_list()


def by_datafusion(written: Written) -> tuple[int, list[int]]:
    """By object_store, which DataFusion brings."""
    import datafusion
    from datafusion.object_store import AmazonS3

    context = datafusion.SessionContext()
    store = AmazonS3(
        bucket_name=written.place.bucket,
        region="us-east-1",
        access_key_id=written.place.server.user,
        secret_access_key=written.place.server.secret,
        endpoint=written.place.server.url,
        allow_http=True,
    )
    context.register_object_store("s3://", store, written.place.bucket)
    context.register_parquet("t", f"s3://{written.name}")
    total = context.sql("SELECT sum(number) AS total FROM t").to_pylist()[0]["total"]
    return total, [
        row["number"] for row in context.sql(f"SELECT number FROM t WHERE id = {written.value}").to_pylist()
    ]


def by_clickhouse(written: Written) -> tuple[int, list[int]]:
    """By the table function s3."""
    import chdb

    server = written.place.server
    table = f"s3('{server.url}/{written.name}', '{server.user}', '{server.secret}', 'Parquet')"
    total = int(str(chdb.query(f"SELECT sum(number) FROM {table}", "TabSeparated")))
    found = str(chdb.query(f"SELECT number FROM {table} WHERE id = {written.value}", "TabSeparated"))
    return total, [int(line) for line in found.split()]


def by_duckdb(written: Written) -> tuple[int, list[int]]:
    """By the extension httpfs."""
    import duckdb

    server = written.place.server
    with duckdb.connect() as connection:
        try:
            connection.execute("LOAD httpfs")
        except duckdb.Error:
            pytest.skip("needs DuckDB's extension httpfs, which isn't on PyPI: INSTALL httpfs")
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{server.user}', SECRET '{server.secret}', ENDPOINT '{written.host}', "
            "REGION 'us-east-1', USE_SSL false, URL_STYLE path)"
        )
        table = f"read_parquet('s3://{written.name}')"
        (total,) = connection.execute(f"SELECT sum(number) FROM {table}").fetchall()[0]
        found = connection.execute(f"SELECT number FROM {table} WHERE id = {written.value}").fetchall()
    return int(total), [number for (number,) in found]


READERS: Final[dict[str, Callable[[Written], tuple[int, list[int]]]]] = {
    "pyarrow": by_pyarrow,
    "polars": by_polars,
    "datafusion": by_datafusion,
    "clickhouse": by_clickhouse,
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_gets_all_rows_of_an_object_and_the_one_of_a_value(reader: str, written: Written) -> None:
    assert READERS[reader](written) == (written.total, [_PROBED])


@pytest.mark.spark
@pytest.mark.slow
def test_spark_adds_filters_to_a_dataset_in_a_store_and_reads_it_by_s3a(written: Written) -> None:
    pytest.importorskip("pyspark")
    jars = install.program("spark-s3a")
    need(jars is not None, "the jars of Hadoop's s3a: python tests/support/servers/install.py spark-s3a")
    before = pq.read_table(io.BytesIO(written.place.get("data.parquet") or b""))
    plain = io.BytesIO()
    pq.write_table(before, plain, row_group_size=_ROWS // 4, compression="none", use_dictionary=False)
    for number in range(2):
        written.place.put(f"orders/part-{number}.parquet", plain.getvalue())
    uri = written.place.path("orders/").replace("s3://", "s3a://")
    env = os.environ | clients.s3_environment(written.place.server, written.place.server.url)
    env |= {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "SPARK_S3A_JARS": str(jars)}
    command = [sys.executable, "-m", "support.spark_s3a", uri, str(written.value)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"before": 2 * _ROWS, "code": 0, "after": 2 * _ROWS, "numbers": [_PROBED] * 2}
    for number in range(2):
        data = written.place.get(f"orders/part-{number}.parquet") or b""
        assert len(data) > len(plain.getvalue()), "it has filters"
