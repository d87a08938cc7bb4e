"""Datasets in stores: outputs mirrored from any store to any other, tables looked for once, nothing else changed."""

from __future__ import annotations

import os
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support import datasets
from support.object_stores import SCHEME
from support.stores import LocalPlace, MemoryPlace, Place
from support.tasks import options_of, plan_tasks

import bloomcli
from bloomcli.cli import run as cli
from bloomcli.concurrency.threads import cores
from bloomcli.datasets import local, workers
from bloomcli.datasets.engine import choose_engine, plan_files, run_tasks
from bloomcli.datasets.local import Shares
from bloomcli.errors import UsageError
from bloomcli.model.dataset import DatasetReport, Status
from bloomcli.storage import registry
from bloomcli.storage.listing import expand

ID: dict[str, Any] = {"columns": ("id",)}
STORES = ("local", "memory")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryPlace:
    """A directory in a store of this process. Its contents aren't in other processes: `jobs` has to be 1."""
    place = MemoryPlace()
    monkeypatch.setitem(registry.known_stores(), SCHEME, place.memory)
    return place


@pytest.fixture
def places(memory: MemoryPlace, tmp_path: Path) -> dict[str, Place]:
    """A directory in each store."""
    return {"local": LocalPlace(tmp_path / "lake"), "memory": memory}


def fill(place: Place, root: Path) -> None:
    """Write the files of a directory to a store, as files of some time ago."""
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        place.put(str(path.relative_to(root)), path.read_bytes())
        if isinstance(place, LocalPlace):
            os.utime(place.path(str(path.relative_to(root))), (1e9, 1e9))


def contents(place: Place, below: str = "") -> dict[str, bytes | None]:
    """The files below a directory, by their paths in it."""
    names = (name for name in place.names() if name.startswith(below))
    return {name.removeprefix(below): place.get(name) for name in names}


def run(command: str, place: Place, options: dict[str, Any], **target: Any) -> DatasetReport:
    """Run a command on a directory, as the command line does, in this process."""
    engine = choose_engine(jobs=1)
    return run_tasks(engine, plan_files(engine, [place.path() + "/"], options_of(command, options, **target)))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Parquet and ORC files in partitions, finished and broken ones, other kinds, and hidden names."""
    return datasets.mixed(tmp_path / "original")


@pytest.mark.parametrize("output", STORES)
def test_a_dry_run_writes_nothing_anywhere(places: dict[str, Place], lake: Path, output: str) -> None:
    fill(places["memory"], lake)
    before = contents(places["memory"])
    writing: list[str] = []
    store = places["memory"].store
    for name in ("replace", "write_file", "sweep"):
        setattr(store, name, lambda path, *_, name=name, **__: writing.append(f"{name} {path}"))
    for target in ({"in_place": True}, {"output": places[output].path("made")}, {}):
        report = run("add", places["memory"], ID, dry_run=True, **target)
        assert report.planned == len(datasets.GOOD)
    assert writing == []
    assert contents(places["memory"]) == before
    assert contents(places["local"]) == {}


def test_a_key_that_is_no_path_below_a_directory_is_written_nowhere(memory: MemoryPlace, tmp_path: Path) -> None:
    data = datasets.write(tmp_path / "original.parquet").read_bytes()
    memory.put("a//b.parquet", data)
    memory.put("good.parquet", data)
    report = run("add", memory, ID, output=tmp_path / "made")
    wrong, good = report.rows
    assert (wrong.status, wrong.exit_code, good.status) == (Status.FAILED, 2, Status.DONE)
    assert "'a//b.parquet' can't be a path below a directory" in str(wrong.error)
    assert {p.name for p in (tmp_path / "made").rglob("*")} == {"good.parquet"}
    there = run("add", memory, ID, output=memory.path("made"))
    assert {r.status for r in there.rows} == {Status.DONE}, "where there are no directories, any key is one"


@pytest.mark.parametrize("key", ["..", "../outside.parquet", "./x", "a/../../outside.parquet", "/etc/x", "a/\0"])
def test_no_key_leads_out_of_a_directory(tmp_path: Path, key: str) -> None:
    with pytest.raises(UsageError, match="can't be a path below a directory"):
        registry.LOCAL.mirrored(str(tmp_path), key)


def test_tables_are_looked_for_once_in_a_directory(
    memory: MemoryPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = datasets.write(tmp_path / "original.parquet").read_bytes()
    for number in range(12):
        memory.put(f"plain/p={number % 3}/{number}.parquet", data)
        memory.put(f"delta/p={number % 3}/{number}.parquet", data)
    memory.put("delta/_delta_log/0.json", b"{}")
    engine, before = choose_engine(jobs=1, fail_fast=True), contents(memory)
    refused = run_tasks(engine, plan_files(engine, [memory.path() + "/"], options_of("add", ID, in_place=True)))
    assert (refused.done, refused.not_started, refused.exit_code) == (0, 12, 2), "it is known before the first change"
    assert contents(memory) == before
    looked: Counter[str] = Counter()
    real = memory.memory.existing
    monkeypatch.setattr(memory.memory, "existing", lambda path, names: looked.update([path]) or real(path, names))
    report = run("add", memory, ID, in_place=True)
    assert set(looked.values()) == {1}
    assert set(looked) == {
        "memory://bucket",
        memory.path(),
        *(memory.path(f"{table}{p}") for table in ("plain", "delta") for p in ("", "/p=0", "/p=1", "/p=2")),
    }
    assert (report.done, report.failed) == (12, 12)
    failed = {r.path: str(r.error) for r in report.rows if r.status is Status.FAILED}
    assert all("/delta/" in path and "is a Delta table" in error for path, error in failed.items())
    assert run("add", memory, ID, in_place=True, force=True).done == 12


def test_files_in_stores_get_more_jobs_than_cores(memory: MemoryPlace, tmp_path: Path) -> None:
    datasets.plain(tmp_path / "lake", 2)
    fill(memory, tmp_path / "lake")
    here = plan_tasks("inspect", expand([str(tmp_path / "lake")]), {})
    there = plan_tasks("inspect", expand([memory.path()]), {})
    output = plan_tasks("add", expand([str(tmp_path / "lake")]), ID, output=memory.path("made"))
    assert [local.any_remote(tasks) for tasks in (here, there, output)] == [False, True, True]
    assert local.default_jobs(remote=False) == cores()
    assert local.default_jobs(remote=True) == min(max(4 * cores(), 8), 32)


def test_files_in_stores_are_looked_at_by_threads_of_a_process_for_each_core(
    memory: MemoryPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets.plain(tmp_path / "lake", 24)
    fill(memory, tmp_path / "lake")
    log, opened = tmp_path / "log", memory.memory.open
    together = threading.Barrier(2)

    def opening(path: str) -> Any:
        with suppress(threading.BrokenBarrierError):
            together.wait(60)  # of two threads of a process, once
            with log.open("a") as file:
                file.write(f"{os.getpid()}\n")
            together.abort()
        return opened(path)

    monkeypatch.setattr(memory.memory, "open", opening)
    monkeypatch.setattr(workers, "can_fork", lambda: True)  # the contents are in this process
    monkeypatch.setattr(local, "cores", lambda: 2)
    tasks = plan_tasks("inspect", expand([memory.path()]), {})
    report = local.run(tasks, jobs=8)
    assert [row.status for row in report.rows] == [Status.DONE] * 24
    assert report.jobs == 8
    processes = set(log.read_text().split())
    assert len(processes) == 2
    assert str(os.getpid()) not in processes


def test_light_tasks_in_stores_share_processes_and_others_do_not(memory: MemoryPlace, tmp_path: Path) -> None:
    datasets.plain(tmp_path / "lake", 9)
    fill(memory, tmp_path / "lake")

    def shares(command: str, place: str, at_once: int, **options: Any) -> Shares:
        return local._shares(plan_tasks(command, expand([place]), options), at_once)

    there, each = memory.path(), cores()
    assert shares("inspect", there, 4 * each) == shares("validate", there, 4 * each) == Shares(each, 4)
    assert shares("inspect", there, 1) == Shares(1, 1)
    assert shares("validate", there, 8, deep=True) == shares("inspect", str(tmp_path / "lake"), 8) == Shares(8)
    few = shares("inspect", there, 9)
    assert 9 <= few.workers * few.files < 9 + each, "there are no more files"


def test_small_files_of_options_may_lie_in_a_store(
    memory: MemoryPlace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = datasets.write(tmp_path / "original.parquet")
    bloomcli.add(path, ["id"], in_place=True)
    memory.put("p=1/a.parquet", path.read_bytes())
    memory.put("p=2/b.parquet", path.read_bytes())
    memory.put("bloom.toml", b'require = ["id", "name"]\nexclude = ["p=2/**"]\n')
    memory.put("list", f"{memory.path('p=1/a.parquet')}\n{memory.path('p=2/b.parquet')}\n".encode())
    memory.put("values", b"3\n-1\n")
    assert cli(["probe", "--files-from", memory.path("list"), "-c", "id", "--values-from", memory.path("values"),
                "-j", "1", "-l"]) == 0  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [memory.path("p=1/a.parquet"), memory.path("p=2/b.parquet")]
    gate = ["validate", memory.path() + "/", "-j", "1", "--policy", memory.path("bloom.toml")]
    assert cli(gate) == 1
    assert "1 file" in capsys.readouterr().out, "the policy's globs start at its directory"
    known = ["--baseline", memory.path("known.json"), "--report", f"json={memory.path('report.json')}"]
    assert cli([*gate, *known, "--update-baseline"]) == 0
    assert b'"path": "p=1/a.parquet"' in (memory.get("known.json") or b"")
    assert b'"schema": "bloom/validate/1"' in (memory.get("report.json") or b"")
    assert cli([*gate, *known]) == 0
    assert cli(["validate", memory.path() + "/", "-j", "1", "--report", f"json={memory.path('p=1/a.parquet')}"]) == 2
    assert "would replace a data file" in capsys.readouterr().err
    assert cli(["validate", memory.path() + "/", "--init", "--policy", memory.path("new.toml")]) == 2
