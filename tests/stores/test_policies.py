"""Policies in real stores: for all spellings of their files, and with a table's schema in the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.servers.rigs import Rig, rig_of

pytestmark = pytest.mark.servers

OTHER_SCHEMES = {"s3": ("s3://", "s3a://"), "azure": ("abfss://", "abfs://")}


@pytest.fixture(scope="module", params=["s3", "azure"])
def rig(request: pytest.FixtureRequest, fixtures: Path) -> Iterator[Rig]:
    """A store with two files without filters."""
    with rig_of(request.param) as made:
        for number in range(2):
            made.place.put(f"orders/part-{number}.parquet", (fixtures / "parquet/orders.parquet").read_bytes())
        yield made


def test_a_policy_in_a_store_is_for_all_spellings_of_its_files_and_no_report_replaces_it(rig: Rig) -> None:
    policy = b'require = ["id"]\n[[files]]\npaths = ["orders/part-1.*"]\noff.filter-required = "tested"\n'
    rig.place.put("bloom.toml", policy)
    path, spelled, other = rig.place.path("bloom.toml"), *OTHER_SCHEMES[rig.name]
    for name in dict.fromkeys((path, path.replace(spelled, other))):
        orders = name.replace("bloom.toml", "orders")
        done = rig.bloom("validate", orders, "--policy", path, "--format", "json")
        assert done.code == 1, done.err
        findings = json.loads(done.out)["findings"]
        assert {(f["path"].rpartition("/")[2], f["off"]) for f in findings if f["id"] == "filter-required"} == {
            ("part-0.parquet", None),
            ("part-1.parquet", "tested"),
        }
        done = rig.bloom("validate", orders, "--policy", path, "--report", f"json={name}")
        assert (done.code, "would replace another file of this run" in done.err) == (2, True)
        assert rig.place.get("bloom.toml") == policy


def test_a_tables_schema_may_be_in_a_store(rig: Rig, tmp_path: Path) -> None:
    rig.place.put("schemas/t.sql", b"id BIGINT")
    rig.place.put("policies/bloom.toml", b'readers = ["trino"]\ntable-schema = "../schemas/t.sql"\n')
    orders = rig.place.path("orders/part-0.parquet")
    assert rig.bloom("validate", orders, "--policy", rig.place.path("policies/bloom.toml")).code == 0
    schema, policy = rig.place.path("schemas/t.sql"), str(tmp_path / "bloom.toml")
    made = rig.bloom("validate", orders, "--init", "--readers", "trino", "--table-schema", schema, "--policy", policy)
    assert made.out.endswith(f"wrote {policy}; now: bloom validate {orders} --policy {policy}\n")
    assert rig.bloom("validate", orders, "--policy", policy).code == 0
