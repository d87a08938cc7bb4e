"""Delta and Iceberg tables in real stores, read without Spark."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from conftest import need
from support import iceberg_metadata
from support.servers import running
from support.stores import PLACES, SERVED, Place

import bloomcli

pytestmark = pytest.mark.servers


@pytest.fixture(params=["azurite", "fake-gcs-server", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    name, server = request.param, SERVED[request.param]
    need(running.installed(server), f"{server}: python tests/support/servers/install.py {server}")
    return PLACES[name](tmp_path, monkeypatch)


def put(place: Place, folder: Path, name: str) -> str:
    for file in (path for path in folder.rglob("*") if path.is_file()):
        place.put(f"{name}/{file.relative_to(folder)}", file.read_bytes())
    return place.path(name)


def test_tables_are_read_where_they_are(place: Place, tmp_path: Path) -> None:
    delta = tmp_path / "delta"
    for start in range(0, 200, 10):  # more commits than are read at a time
        deltalake.write_deltalake(delta, pa.table({"id": range(start, start + 10)}), mode="append")
    deltalake.DeltaTable(delta).delete("id = 5")
    iceberg = tmp_path / "iceberg"
    iceberg_metadata.write(iceberg, place.path("iceberg"))
    for folder, wanted, there, files in ((delta, [4, 5, 150], {4, 150}, 20), (iceberg, [2, 3, 70], {2}, 1)):
        table = bloomcli.Table(put(place, folder, folder.name))
        report = bloomcli.inspect(table)
        assert (report.files, report.exit_code, report.remarks[0].startswith("read without Spark: ")) == (
            files,
            0,
            True,
        )
        found = bloomcli.find(table, wanted, column="id")
        assert {row["id"] for row in found.to_arrow()["record"].to_pylist()} == there
        assert all(path.startswith(place.path()) for path in found.to_arrow()["path"].to_pylist())
