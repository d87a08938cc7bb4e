"""Paimon's filters in a real object store: shown, proven, looked up; an index file there is always whole."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import pytest
from support.servers.faults import Action, Fault
from support.servers.forking import Started
from support.servers.rigs import Rig, rig_of

pytestmark = pytest.mark.servers

TABLE: Final = "large"
OLD, NEW = 599_127, 413
"""The bytes of the index file that Paimon wrote, and of the one that `fold` writes."""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """S3, as MinIO has it."""
    with rig_of("s3") as made:
        yield made


@pytest.fixture
def name(rig: Rig, tables: Path) -> str:
    """The data file of the table in the store, of which the newest snapshot lists the index file."""
    for path in (tables / TABLE).rglob("*"):
        if path.is_file():
            rig.place.put(path.relative_to(tables).as_posix(), path.read_bytes())
    return next(name for name in rig.place.names() if "/data-dfa" in name and name.endswith(".parquet"))


def index_file(rig: Rig, name: str) -> bytes:
    """The content of the data file's index file."""
    data = rig.place.get(f"{name}.index")
    assert data is not None
    return data


def asked(rig: Rig, *arguments: str, code: int = 0) -> Any:
    """The report of a command that ends with this exit code."""
    done = rig.bloom(*arguments, "--format", "json")
    assert done.code == code, done
    return json.loads(done.out)


def test_a_table_s_filters_are_shown_proven_looked_up_and_written_in_s3(rig: Rig, name: str) -> None:
    uri, before, data = rig.place.path(name), rig.place.names(), rig.place.get(name)
    add = ("add", "--replace", "--columns", "text", "--in-place", uri)
    (shown,) = asked(rig, "inspect", uri)["engine_filters"]
    assert (shown["path"], shown["length"], shown["problem"]) == (f"{uri}.index", 599_071, None)
    found = asked(rig, "probe", uri, "--column", "text", "keyé 1", "keyé 1x")["engine_filters"]
    assert [one["presence"] for one in found] == ["maybe", "absent"]
    proof = asked(rig, "validate", "--deep", uri)
    assert [one["id"] for one in proof["findings"]] == ["engine-filter-oversized"]
    assert (proof["filters_checked"], proof["values_checked"]) == (1, 294)
    folded = asked(rig, "fold", "--in-place", uri)
    assert (folded["output"], folded["bytes_before"], folded["bytes_after"]) == (f"{uri}.index", OLD, NEW)
    new = index_file(rig, name)
    assert len(new) == NEW
    assert asked(rig, *add)["bytes_before"] == NEW
    assert index_file(rig, name) == new
    rig.place.put(f"{name}.index", new[: NEW - 353] + bytes(353))
    assert rig.bloom("find", uri, "--as-files", "--column", "text", "keyé 1").code == 1, "the filter is asked"
    assert asked(rig, "validate", "--deep", uri, code=1)["findings"][0]["id"] == "engine-filter-misses"
    rig.place.remove(f"{name}.index")
    assert asked(rig, "validate", uri, code=1)["findings"][0]["id"] == "engine-filter-missing"
    asked(rig, *add)
    assert index_file(rig, name) == new
    assert (rig.place.names(), rig.place.get(name)) == (before, data)


@pytest.mark.parametrize(
    ("fault", "size", "said"),
    [
        (
            Fault(Action.ERROR_500, "PutObject", at=2, times=None),
            OLD,
            "the store answered 500 InternalError: injected; the object is as it was",
        ),
        (Fault(Action.FORBIDDEN, "PutObject", times=None), OLD, "access denied: s3:PutObject"),
        (Fault(Action.LOSE, "PutObject", at=2, times=None), NEW, ""),
        (Fault(Action.ERROR_503, "HeadObject", times=None), OLD, "the store is busy"),
        (Fault(Action.OTHER_TAG, "HeadObject"), OLD, "the file changed while"),
    ],
    ids=lambda one: f"{one.action.name} at {one.kind}" if isinstance(one, Fault) else "",
)
def test_after_a_request_that_fails_the_index_file_is_the_old_or_the_new_one(
    rig: Rig, name: str, fault: Fault, size: int, said: str
) -> None:
    before, data = rig.place.names(), rig.place.get(name)
    with rig.proxy.injecting(fault):
        done = rig.bloom("fold", "--in-place", rig.place.path(name))
    assert (done.code, said in done.err, "Traceback" in done.err) == (3 if said else 0, True, False), done.err
    assert (len(index_file(rig, name)), rig.place.names(), rig.place.get(name)) == (size, before, data)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(("action", "size"), [(Action.REFUSE, OLD), (Action.LOSE, NEW)], ids=["refused", "lost"])
def test_a_run_that_is_ended_while_it_writes_leaves_the_old_or_the_new_index_file(
    rig: Rig, name: str, number: int, action: Action, size: int
) -> None:
    before, runs = rig.place.names(), Future[Started]()
    fault = Fault(action, "PutObject", at=2, times=None, call=lambda: runs.result().send(number))
    with rig.proxy.injecting(fault):
        runs.set_result(rig.forks.start("fold", "--in-place", rig.place.path(name)))
        done = runs.result().result()
    assert (done.code in {-signal.SIGKILL, 130}, "Traceback" in done.err) == (True, False), done
    assert (len(index_file(rig, name)), rig.place.names()) == (size, before)


def test_an_index_file_that_another_program_writes_meanwhile_is_kept(rig: Rig, name: str) -> None:
    theirs = index_file(rig, name)[:-1] + b"\xff"
    fault = Fault(Action.PASS, "PutObject", at=2, call=lambda: rig.place.put(f"{name}.index", theirs))
    with rig.proxy.injecting(fault):
        done = rig.bloom("fold", "--in-place", rig.place.path(name))
    assert (done.code, "changed" in done.err) == (3, True), done.err
    assert index_file(rig, name) == theirs
