"""Reading from real stores: how many requests commands send, by a proxy that records them, and what reports say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.servers.faults import Action, Fault
from support.servers.rigs import Rig, rig_of

import bloomcli
from bloomcli.model.traffic import Traffic

pytestmark = pytest.mark.servers

GROUPS, GROUP_ROWS = 4, 100_000
"""More than the least part that S3 copies, 5 MiB; filters of more than a first request reads; columns far apart."""
FILES = 2


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Row groups of four columns, one with filters."""
    rng = np.random.default_rng(5)
    rows = GROUPS * GROUP_ROWS
    table = pa.table({name: rng.integers(0, 1 << 62, rows) for name in ("id", "a", "b", "c")})
    path = tmp_path_factory.mktemp("reading") / "f.parquet"
    pq.write_table(table, path, row_group_size=GROUP_ROWS, compression="NONE", use_dictionary=False)
    bloomcli.add(path, ["id"], in_place=True)
    return path.read_bytes()


@pytest.fixture(scope="module", params=["s3", "azure"])
def rig(request: pytest.FixtureRequest, data: bytes) -> Iterator[Rig]:
    """A store with the file, behind a proxy."""
    with rig_of(request.param) as found:
        for number in range(FILES):
            found.place.put(f"orders/part-{number}.parquet", data)
        yield found


def run(rig: Rig, *arguments: str, code: int = 0) -> dict[str, Any]:
    """A command's report, after the proxy has forgotten what was before."""
    rig.proxy.forget()
    done = rig.bloom(*arguments, "--format", "json")
    assert done.code == code, done.err
    report: dict[str, Any] = json.loads(done.out)
    return report


def recorded(rig: Rig) -> Traffic:
    """The requests for objects' contents that the proxy recorded; listings have other bodies."""
    return Traffic(len(rig.proxy.recorded), sum(r.received for r in rig.proxy.recorded if r.status == 206))


def test_inspect_takes_two_requests_and_says_so(rig: Rig) -> None:
    report = run(rig, "inspect", rig.place.path("orders/part-0.parquet"))
    assert len(report["filters"]) == GROUPS
    seen = [r for r in rig.proxy.recorded if r.status == 206]
    assert len(seen) == 2
    assert report["bytes_downloaded"] == sum(r.received for r in seen)
    # Azure has no ranges from the end: the size has to be known first
    assert report["requests"] == len(rig.proxy.recorded) == (2 if rig.name == "s3" else 3)


def test_probe_takes_at_most_three_requests_a_file(rig: Rig) -> None:
    run(rig, "probe", rig.place.path("orders/"), "-c", "id", "-v", "42", code=1)
    ranges = [r for r in rig.proxy.recorded if r.status == 206]
    assert FILES <= len(ranges) <= 3 * FILES


def test_add_downloads_the_columns_chunks_and_counts_every_request(rig: Rig, data: bytes, tmp_path: Path) -> None:
    path = rig.place.path("added.parquet")
    rig.place.put("added.parquet", data)
    (tmp_path / "f").write_bytes(data)
    metadata = pq.read_metadata(tmp_path / "f")
    chunks = sum(metadata.row_group(i).column(1).total_compressed_size for i in range(GROUPS))
    estimate = run(rig, "add", path, "-c", "a", "--in-place", "--dry-run")
    report = run(rig, "add", path, "-c", "a", "--in-place")
    assert report["requests"] == len(rig.proxy.recorded)
    assert report["bytes_downloaded"] <= chunks * 1.01 + (1 << 20)
    assert report["bytes_copied_by_store"] > len(data) * 0.9 or rig.name != "s3"
    assert abs(estimate["requests"] - report["requests"]) <= 6
    assert abs(estimate["bytes_downloaded"] - report["bytes_downloaded"]) <= 1 << 20
    written = rig.place.get("added.parquet")
    assert written is not None
    (tmp_path / "added").write_bytes(written)
    assert bloomcli.validate(tmp_path / "added", deep=True).ok


@pytest.mark.parametrize("command", ["inspect", "add -c b --in-place"])
def test_an_object_that_changes_in_the_middle_of_a_command(rig: Rig, data: bytes, command: str) -> None:
    name, (verb, *options) = "changed.parquet", command.split()
    rig.place.put(name, data)
    rig.proxy.forget()
    other = b"PAR1" + bytes(len(data) - 8) + b"PAR1"
    fault = Fault(Action.PASS, kind=_READ[rig.name], at=2, call=lambda: rig.place.put(name, other))
    with rig.proxy.injecting(fault):
        done = rig.bloom(verb, rig.place.path(name), *options)
    assert fault.fired == 1
    assert done.code == 3, (done.out, done.err)
    assert "changed while it was being worked on" in done.err + done.out
    assert rig.place.get(name) == other


_READ = {"s3": "GetObject", "azure": "Get Blob"}


OTHER_SCHEMES = {"s3": ("s3://", "s3a://"), "azure": ("abfss://", "abfs://")}


def test_a_policy_in_a_store_is_for_all_spellings_of_its_files_and_no_report_replaces_it(rig: Rig) -> None:
    policy = b'require = ["a"]\n[[files]]\npaths = ["orders/part-1.*"]\noff.filter-required = "tested"\n'
    rig.place.put("bloom.toml", policy)
    path, spelled, other = rig.place.path("bloom.toml"), *OTHER_SCHEMES[rig.name]
    for name in dict.fromkeys((path, path.replace(spelled, other))):
        orders = name.replace("bloom.toml", "orders")
        findings = run(rig, "validate", orders, "--policy", path, code=1)["findings"]
        assert {(f["path"].rpartition("/")[2], f["off"]) for f in findings if f["id"] == "filter-required"} == {
            ("part-0.parquet", None),
            ("part-1.parquet", "tested"),
        }
        done = rig.bloom("validate", orders, "--policy", path, "--report", f"json={name}")
        assert (done.code, "would replace another file of this run" in done.err) == (2, True)
        assert rig.place.get("bloom.toml") == policy
