"""Datasets in real stores, on both engines: MinIO, Azurite and fake-gcs-server, each behind a proxy that records."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from pyarrow import orc
from support import datasets
from support.processes import wait_until
from support.servers import running
from support.servers.proxy import Proxy
from support.servers.served import SERVERS, served
from support.stores import LocalPlace, Place
from support.tasks import options_of

import bloomcli
from bloomcli.datasets.engine import Engine, choose_engine, plan_files, run_tasks
from bloomcli.model.dataset import DatasetReport, Status
from bloomcli.storage import registry

pytestmark = [pytest.mark.servers, pytest.mark.slow]

ID: dict[str, Any] = {"columns": ("id",)}
STORES: Final = sorted(SERVERS)
PLACES: Final = ("disk", *STORES)
WAYS: Final = [*zip(STORES, STORES, strict=True), *zip(PLACES, (*PLACES[1:], PLACES[0]), strict=True)]
"""From each store to itself, and from each place to another: data of another store passes through this machine."""
NEW_END: Final = {"gcs"}
"""Stores that keep the old end of a Parquet file as unused bytes."""
COMMANDS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("inspect", {}),
    ("add", ID),
    ("validate", {"deep": True, "require": ("id",)}),
    ("probe", {"values": ("3", "-1"), "column": "id"}),
    ("fold", {"max_bytes": 32}),
    ("remove", {}),
]


SCHEMES: Final = ("s3", "s3a", "s3n", "az", "abfs", "abfss", "gs", "gcs")


@dataclass(frozen=True)
class Lake:
    """A directory in a store."""

    name: str
    place: Place
    proxy: Proxy | None = None
    """None for a directory on disk."""


@dataclass(frozen=True)
class Lakes:
    """Directories in several stores, and the variables by which commands find the servers."""

    of: Mapping[str, Lake]
    environment: Mapping[str, str]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "bloomcli", *arguments],
            cwd=ROOT,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakes]:
    """New directories in each store and on disk. The variables are set in this process, too."""
    made: dict[str, Lake] = {"disk": Lake("disk", LocalPlace(tmp_path_factory.mktemp("lakes") / "disk"))}
    environment: dict[str, str] = {}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        for name, server in SERVERS.items():
            need(running.installed(server), f"{server}: python tests/support/servers/install.py {server}")
            store = stack.enter_context(served(name))
            made[name] = Lake(name, store.place, store.proxy)
            environment |= store.environment
        for name, value in environment.items():
            patched.setenv(name, value)
        for scheme in SCHEMES:  # new stores, because existing ones have clients for other servers
            patched.setitem(registry.known_stores(), scheme, type(registry.known_stores()[scheme])())
        yield Lakes(made, environment)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet and ORC files in partitions, finished and broken ones, other kinds, and hidden names."""
    return datasets.mixed(tmp_path_factory.mktemp("original") / "lake")


@pytest.fixture(autouse=True)
def _emptied(every: Lakes) -> Iterator[None]:
    yield
    for lake in every.of.values():
        for name in lake.place.names():
            if not name.startswith("upload "):
                lake.place.remove(name)


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest, every: Lakes) -> Iterator[Engine]:
    """Both engines. Spark's workers have the servers' variables, its driver passes them no credentials."""
    if request.param == "local":
        yield choose_engine(jobs=1)  # in this process: each run has to start others, as the proxies have threads here
        return
    session = request.getfixturevalue("spark")
    workers = session.sparkContext.environment
    before = dict(workers)
    workers.update(every.environment)
    yield choose_engine(session=session)
    workers.clear()
    workers.update(before)


def fill(lake: Lake, root: Path, *, aged: bool = False) -> None:
    """Write the files of a directory; if `aged`, as files of some time ago: an output of the same second is made
    again."""
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = str(path.relative_to(root))
        lake.place.put(name, path.read_bytes())
        if isinstance(lake.place, LocalPlace):
            os.utime(lake.place.path(name), (1e9, 1e9))
    if lake.proxy is not None:
        time.sleep(1.1 * aged)  # S3 and Azure store times in whole seconds
        lake.proxy.forget()


def run(engine: Engine, command: str, path: str, options: dict[str, Any], **target: Any) -> DatasetReport:
    """Run a command on a directory."""
    return run_tasks(engine, plan_files(engine, [path + "/"], options_of(command, options, **target)))


def brief(report: DatasetReport, lake: Lake) -> list[tuple[Any, ...]]:
    """The rows' statuses and figures, by paths in the directory, without sizes that depend on how a store writes."""
    return sorted(
        (
            r.path.removeprefix(lake.place.path()),
            r.status,
            r.format,
            r.filters,
            r.row_groups,
            r.values_checked,
            r.exit_code,
            tuple(t.answer for t in r.totals),
            *(() if lake.name in NEW_END else (r.bytes_before, r.bytes_after)),
        )
        for r in report.rows
    )


def contents(lake: Lake, below: str = "") -> dict[str, bytes]:
    """The files below a directory, by their paths in it; unfinished uploads too."""
    names = (name for name in lake.place.names() if name.startswith(below))
    return {name.removeprefix(below): lake.place.get(name) or b"" for name in names}


def rows_of(data: bytes) -> pa.Table:
    """The rows of a file, by pyarrow."""
    table = orc.read_table(io.BytesIO(data)) if data.startswith(b"ORC") else pq.read_table(io.BytesIO(data))
    return datasets.without(table)


def requests(lake: Lake) -> Counter[str]:
    """The requests so far, by their methods."""
    assert lake.proxy is not None
    return Counter(each.method for each in lake.proxy.recorded)


def test_every_command_works_on_a_prefix_as_on_a_directory(
    engine: Engine, every: Lakes, root: Path, request: pytest.FixtureRequest
) -> None:
    on_spark = "spark" in request.node.callspec.id
    stores = ["s3"] if on_spark else STORES  # a session takes long, and a task is the same on both engines
    secrets = {value for name, value in every.environment.items() if "KEY" in name}
    assert secrets
    expected: list[object] = []
    for name in ("disk", *stores):
        lake = every.of[name]
        fill(lake, root, aged=True)
        found: list[object] = []
        for command, options in COMMANDS:
            target = {"in_place": True} if command in {"add", "fold", "remove"} else {}
            tasks = plan_files(engine, [lake.place.path() + "/"], options_of(command, options, **target))
            report = run_tasks(engine, tasks)
            assert not [secret for secret in secrets if secret in repr(report) + repr(tasks)]
            found.append(brief(report, lake))
            if target:
                again = run(engine, command, lake.place.path(), options, **target)
                assert again.done == 0, f"{command} on {name}: the work is done already"
        if name == "disk":
            expected = found
            continue
        if name in NEW_END:
            assert [[r[:8] for r in rows] for rows in found] == [[r[:8] for r in rows] for rows in expected]
        else:
            assert found == expected, name
            assert contents(lake) == contents(every.of["disk"])


@pytest.fixture(scope="module")
def added(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that adding filters to a directory makes, by their paths in it."""
    made = tmp_path_factory.mktemp("expected") / "made"
    run(choose_engine(jobs=1), "add", str(root), ID, output=made)
    return {str(p.relative_to(made)): p.read_bytes() for p in made.rglob("*.*") if p.is_file()}


@pytest.mark.parametrize(("here", "there"), WAYS)
def test_an_output_goes_from_any_store_to_any_other(
    every: Lakes, root: Path, added: dict[str, bytes], here: str, there: str
) -> None:
    engine = choose_engine(jobs=1)
    source, target = every.of[here], every.of[there]
    fill(source, root, aged=True)
    before = contents(source)
    report = run(engine, "add", source.place.path(), ID, output=target.place.path("made"))
    assert (report.done, report.failed) == (len(datasets.GOOD), len(datasets.BROKEN)), [r.error for r in report.rows]
    made = contents(target, "made/")
    assert made.keys() == added.keys()
    for name, data in made.items():
        if not (here == there == "gcs"):  # the store joins objects: the old end stays in
            assert data == added[name], name
        assert rows_of(data) == datasets.read(root / name)
    assert {name: data for name, data in contents(source).items() if not name.startswith("made/")} == before
    again = run(engine, "add", source.place.path(), ID, output=target.place.path("made"))
    assert (again.done, again.failed) == (0, len(datasets.BROKEN))
    assert contents(target, "made/") == made


@pytest.mark.parametrize("name", STORES)
def test_the_summary_has_every_request_that_the_store_got(every: Lakes, root: Path, name: str) -> None:
    lake = every.of[name]
    fill(lake, root)
    path = lake.place.path()
    report = run(choose_engine(jobs=1), "inspect", path, {})
    assert report.requests == sum(requests(lake).values())
    assert report.besides is not None
    assert report.besides.requests == 1, "the listing"
    assert report.bytes_downloaded == sum(row.bytes_downloaded or 0 for row in report.rows)
    assert report.bytes_downloaded >= sum(row.bytes_before or 0 for row in report.rows), "small files come whole"
    assert (report.bytes_uploaded, report.bytes_copied_by_store) == (0, 0)
    planned = run(choose_engine(jobs=1), "add", path, {**ID, "dry_run": True}, in_place=True)
    assert requests(lake).keys() <= {"GET", "HEAD"}, "a dry run writes nothing"
    for jobs in (1, 2):
        assert lake.proxy is not None
        lake.proxy.forget()
        done = run(choose_engine(jobs=jobs), "add", path, {**ID, "replace": jobs == 2}, in_place=True)
        assert done.requests == sum(requests(lake).values())
        assert done.bytes_uploaded == sum(row.bytes_uploaded or 0 for row in done.rows) > 0
        if jobs == 1:
            assert planned.requests is not None
            assert abs(done.requests - planned.requests) <= 3 * done.files, "the estimate has the check, too"


@pytest.mark.parametrize("name", STORES)
def test_tables_are_looked_for_with_few_requests(every: Lakes, tmp_path: Path, name: str) -> None:
    lake = every.of[name]
    original = datasets.write(tmp_path / "a.parquet")
    for number in range(9):
        lake.place.put(f"t/p={number % 3}/{number}.parquet", original.read_bytes())
    assert lake.proxy is not None
    lake.proxy.forget()
    report = run(choose_engine(jobs=1), "add", lake.place.path("t"), {**ID, "dry_run": True}, in_place=True)
    assert report.planned == 9
    opened = 9 * (2 if name == "azure" else 1)  # Azure has no ranges that count from the end
    listed, directories = 1, len(["t/p=0", "t/p=1", "t/p=2", "t", "", "the bucket"])
    found = sum(requests(lake).values())
    looked = 9 * (2 if name == "azure" else 1)  # whose estimate needs the blob's blocks
    assert found <= opened + listed + directories + looked, "a dry run in place looks at the object, too"
    lake.place.put("t/_delta_log/0.json", b"{}")
    report = run(choose_engine(jobs=1), "add", lake.place.path("t"), ID, in_place=True)
    assert (report.failed, report.exit_code) == (9, 2)
    assert all("is a Delta table" in str(row.error) for row in report.rows)
    assert run(choose_engine(jobs=1), "add", lake.place.path("t"), ID, in_place=True, force=True).done == 9


@pytest.mark.parametrize(("name", "after"), [("azure", 2), ("gcs", 5), ("s3", 2)])
def test_a_run_that_was_killed_goes_on_where_it_was(every: Lakes, tmp_path: Path, name: str, after: int) -> None:
    lake = every.of[name]
    root = datasets.plain(tmp_path / "lake", 8)
    fill(lake, root)
    before = contents(lake)
    with every.start("add", lake.place.path() + "/", "-c", "id", "--in-place", "--jobs", "2") as process:
        wait_until(lambda: sum(contents(lake).get(n) != data for n, data in before.items()) >= after, 60)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = {n for n, data in before.items() if contents(lake)[n] != data}
    report = run(choose_engine(jobs=1), "add", lake.place.path(), ID, in_place=True)
    assert (report.failed, report.done + report.skipped) == (0, 8)
    assert {r.path for r in report.rows if r.status is Status.SKIPPED} == {lake.place.path(n) for n in done}
    for name_, data in before.items():
        assert rows_of(contents(lake)[name_]) == rows_of(data)
    assert (
        run(choose_engine(jobs=1), "validate", lake.place.path(), {"require": ("id",), "deep": True}).exit_code == 0
    )


@pytest.mark.parametrize("name", STORES)
def test_two_commands_on_one_prefix_lose_nothing(every: Lakes, tmp_path: Path, name: str) -> None:
    lake = every.of[name]
    fill(lake, datasets.plain(tmp_path / "lake", 6))
    columns = ("id", "name")
    running_: list[Any] = [
        every.start("add", lake.place.path() + "/", "-c", column, "--in-place", "--jobs", "2", "--format", "json")
        for column in columns
    ]
    outputs = [process.communicate(timeout=600) for process in running_]
    for column, (out, err) in zip(columns, outputs, strict=True):
        assert "Traceback" not in err
        rows = json.loads(out)["rows"]
        for row in rows:
            assert row["status"] in {"done", "failed"}, row
            if row["status"] == "done":
                assert bloomcli.inspect(row["path"], columns=[column]).filters, "its filter is there"
            else:
                assert row["exit_code"] == 3
                assert "changed" in row["error"], row["error"]
    for column in columns:
        assert run(choose_engine(jobs=1), "add", lake.place.path(), {"columns": (column,)}, in_place=True).failed == 0
    assert (
        run(choose_engine(jobs=1), "validate", lake.place.path(), {"require": columns, "deep": True}).exit_code == 0
    )


def test_patterns_and_lists_name_objects(every: Lakes, root: Path, tmp_path: Path) -> None:
    lake = every.of["s3"]
    fill(lake, root)
    engine = choose_engine(jobs=2)
    pattern = lake.place.path("year=2024/*/*.parquet")
    report = run_tasks(engine, plan_files(engine, [pattern], options_of("add", ID, in_place=True)))
    assert sorted(r.path for r in report.rows) == sorted(
        lake.place.path(n) for n in datasets.GOOD if n.startswith("year=2024/") and n.endswith(".parquet")
    )
    lake.place.put("list", f"{lake.place.path('_p=1/part-0.parquet')}\n{tmp_path}/missing\n".encode())
    with every.start(
        "add", "--files-from", lake.place.path("list"), "-c", "id", "--in-place", "-f", "json"
    ) as process:
        out, _ = process.communicate(timeout=600)
    rows = {row["path"]: row["status"] for row in json.loads(out)["rows"]}
    assert rows == {lake.place.path("_p=1/part-0.parquet"): "done", f"{tmp_path}/missing": "failed"}
