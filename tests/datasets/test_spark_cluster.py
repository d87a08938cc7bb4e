"""A real cluster: a master, two workers, executors in processes of their own. Killed executors, and shipping."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import pytest
from conftest import ROOT, need
from support import datasets
from support.engines import java_home
from support.processes import HOLD, alive, children, held, wait_until

import bloomcli

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_CLASSES: Final = "org.apache.spark.deploy"
_BACKEND: Final = b"CoarseGrainedExecutorBackend"


@dataclass(frozen=True)
class Cluster:
    """A master's URL, the environment of its drivers, and its workers."""

    url: str
    env: dict[str, str]
    workers: Sequence[subprocess.Popen[bytes]]
    logs: Path

    def executors(self) -> list[int]:
        """The executors' processes."""
        return [pid for w in self.workers for pid in children(w.pid) if _BACKEND in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Start a cluster whose workers have one core each; it writes only below `folder`."""
    import pyspark

    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK", "SPARK", "PYTHON"))} | {
        "JAVA_HOME": str(java_home(folder, short=True)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    launcher = Path(env["SPARK_HOME"]) / "bin" / "spark-class"
    logs = folder / "logs"
    logs.mkdir(parents=True)

    with ExitStack() as running:

        def start(name: str, host: str, *args: object) -> subprocess.Popen[bytes]:
            log = running.enter_context((logs / name).open("wb"))
            process = running.enter_context(
                subprocess.Popen(
                    [launcher, *map(str, args), "--host", host, "--webui-port", "0"],
                    env=env | {"SPARK_LOCAL_IP": host},
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                )
            )
            running.callback(process.kill)
            return process

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        url = f"spark://127.0.0.1:{port}"
        start("master", "127.0.0.1", f"{_CLASSES}.master.Master", "--port", port)
        assert wait_until(lambda: b"I have been elected leader" in (logs / "master").read_bytes(), 600)
        size = ("--cores", 1, "--memory", "1g", "--work-dir", folder / "work")
        started = [  # on separate hosts, because a host gets only one attempt at a task
            start(f"worker{i}", f"127.0.0.{i + 2}", f"{_CLASSES}.worker.Worker", *size, url) for i in range(workers)
        ]
        assert wait_until(lambda: (logs / "master").read_bytes().count(b"Registering worker") == workers, 600)
        cluster = Cluster(url, env, started, logs)
        try:
            yield cluster
        finally:
            for worker in started:
                worker.terminate()  # this ends its executors, too
                worker.wait(600)


def environment(folder: Path, packages: Sequence[str] = ()) -> Path:
    """A virtual environment without pip, with installed packages of this one copied into it."""
    venv.create(folder, symlinks=True)
    target = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    for name in packages:
        for file in distribution(name).files or ():
            if not {"..", "__pycache__", "include", "tests"} & set(file.parts):
                place = target / file
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), place)
    return folder


def packed(folder: Path) -> Path:
    """An environment with bloomcli and its dependencies, as an archive."""
    made = environment(folder / "environment", needed())
    site = made / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    shutil.copytree(
        ROOT / "bloomcli", site / "bloomcli", ignore=shutil.ignore_patterns("*.c", "*.pyx", "__pycache__")
    )
    archive = folder / "environment.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=0) as tar:  # to compress 200 MB takes longer than the test
        tar.add(made, ".")
    return archive


def needed() -> list[str]:
    """The installed dependencies of bloomcli, direct and indirect."""
    waiting = list(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    found: list[str] = []
    while waiting:
        requirement = waiting.pop()
        name = re.match(r"[\w.-]+", requirement)
        if name is None or "extra ==" in requirement or name[0] in found:
            continue
        try:
            waiting += distribution(name[0]).requires or ()
        except PackageNotFoundError:  # for another platform
            continue
        found.append(name[0])
    return found


FILES, ROWS = 12, 2_000
"""Few and small files: `holding` makes a worker stop at its file, so that the file's size doesn't matter."""
ONE_EXECUTOR = {"spark_cores_max": "1"}
"""For tests in which all executors behave alike: one Java process less."""
STARTED, ENDED = 600, 600
"""Seconds in which a run on a busy machine finishes its first files, and all files."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests."""
    need(Path("/proc/self/stat").is_file(), "/proc, to see processes")
    with standalone(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files without filters; one is broken."""
    root = datasets.plain(tmp_path_factory.mktemp("killed") / "origin", FILES, ROWS)
    (root / "part=0" / "bad.parquet").write_bytes(b"\0" * 100)
    return root


@contextmanager
def running(cluster: Cluster, *args: object, python: str | None = sys.executable, **conf: str) -> Iterator[Any]:
    """`bloom` as a driver of the cluster; executors run `python`, and find bloomcli here unless it is None."""
    conf = {"spark_ui_enabled": "false", "spark_executor_memory": "512m", **conf}
    env = dict(cluster.env)
    if python is not None:
        env["PYSPARK_PYTHON"] = python
        conf.setdefault("spark_executorEnv_PYTHONPATH", str(ROOT))
    settings = [f"--conf={key.replace('_', '.')}={value}" for key, value in conf.items() if value]
    command = [sys.executable, "-m", "bloomcli", *args, "--engine", "spark", "--master", cluster.url, *settings]
    with subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def holding(folder: Path, after: int) -> Iterator[tuple[dict[str, str], Callable[[Any], int]]]:
    """Settings with which a worker stops at its file after that many, and what waits for it to have stopped.

    The worker has ended when the block ends.
    """
    folder.mkdir()
    conf = {
        "spark_executorEnv_PYTHONPATH": f"{HOLD}{os.pathsep}{ROOT}",
        "spark_executorEnv_HOLDFOLDER": str(folder),
        "spark_executorEnv_HOLDAFTER": str(after),
    }

    def wait(process: subprocess.Popen[str]) -> int:
        wait_until(lambda: held(folder) or process.poll() is not None, STARTED)
        assert held(folder), "no worker came to the file at which it is to stop"
        return held(folder) or 0

    try:
        yield conf, wait
    finally:
        if (pid := held(folder)) is not None:
            os.kill(pid, signal.SIGKILL)


def test_an_executor_that_is_killed_costs_nothing_but_time(
    cluster: Cluster, origin: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    """Into another directory: in place, another attempt and another run are in the next two tests."""
    made = tmp_path / "out"
    args = ["add", origin, "-c", "id", "-f", "json", "-o", made]
    with holding(tmp_path / "hold", 3) as (conf, wait), running(cluster, *args, **conf) as process:
        worker = wait(process)
        assert datasets.changed(origin, made) >= 2
        assert datasets.temporary(made)
        executors = cluster.executors()
        assert len(executors) == 2, "each worker has an executor"
        (victim,) = (pid for pid in executors if worker in children(pid))
        for pid in (victim, worker):
            os.kill(pid, signal.SIGKILL)
        assert process.poll() is None
        while process.poll() is None:
            datasets.whole(made, ROWS)
            time.sleep(0.2)  # the run needs the processor too
        out, err = process.communicate(timeout=ENDED)
    assert process.returncode == 3, err
    report = json.loads(out)
    assert (report["files"], report["failed"], report["engine"]) == (FILES + 1, 1, "spark")
    assert datasets.digests(made) == {n: d for n, d in undisturbed.items() if "bad" not in n}
    assert datasets.whole(made, ROWS) == FILES
    assert datasets.temporary(tmp_path) == []


def test_a_driver_and_an_executor_that_are_killed_leave_work_that_can_be_started_again(
    cluster: Cluster, origin: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    lake = shutil.copytree(origin, tmp_path / "lake")
    args = ["add", lake, "-c", "id", "--in-place", "-f", "json"]
    with holding(tmp_path / "hold", 3) as (conf, wait), running(cluster, *args, **conf) as process:
        worker = wait(process)
        for pid in (*cluster.executors(), process.pid, worker):
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=ENDED)
    assert 3 <= datasets.whole(lake, ROWS) < FILES
    assert datasets.temporary(lake), "what the worker was writing"
    assert wait_until(lambda: not cluster.executors(), STARTED)
    with running(cluster, *args, **ONE_EXECUTOR) as process:
        out, err = process.communicate(timeout=ENDED)
    assert process.returncode == 3, err
    report = json.loads(out)
    assert report["skipped"] >= 3
    assert report["done"] + report["skipped"] == FILES
    assert datasets.digests(lake) == undisturbed
    assert datasets.temporary(tmp_path) == []


def test_a_worker_that_hangs_is_overtaken_by_a_speculative_attempt(
    cluster: Cluster, origin: Path, undisturbed: dict[str, str], tmp_path: Path
) -> None:
    lake, events = shutil.copytree(origin, tmp_path / "lake"), tmp_path / "events"
    events.mkdir()
    eager = {
        "spark_speculation": "true",
        "spark_speculation_interval": "10ms",
        "spark_speculation_multiplier": "1.01",
        "spark_speculation_quantile": "0.05",
        "spark_speculation_minTaskRuntime": "1ms",
        "spark_eventLog_enabled": "true",
        "spark_eventLog_compress": "false",
        "spark_eventLog_rolling_enabled": "false",
        "spark_eventLog_dir": str(events),
    }
    args = ["add", lake, "-c", "id", "--in-place", "-f", "json"]
    with holding(tmp_path / "hold", 3) as (conf, wait), running(cluster, *args, **eager, **conf) as process:
        worker = wait(process)
        out, err = process.communicate(timeout=ENDED)
        assert wait_until(lambda: not alive(worker)), "Spark kills the attempt that lost"
    assert process.returncode == 3, err
    report = json.loads(out)
    assert (report["done"] + report["skipped"], report["failed"]) == (FILES, 1)
    (log,) = events.iterdir()
    assert '"Speculative":true' in log.read_text(), "nothing was attempted twice"
    assert datasets.digests(lake) == undisturbed
    assert datasets.temporary(tmp_path) == []


def test_executors_take_bloomcli_from_a_packed_environment(cluster: Cluster, tmp_path: Path) -> None:
    lake = datasets.mixed(tmp_path / "lake")
    archive = packed(tmp_path)
    shipped = {"spark_archives": f"{archive}#environment", **ONE_EXECUTOR}
    python = "./environment/bin/python"
    args = ["add", lake, "-c", "id", "-o", tmp_path / "out", "-f", "json"]
    with running(cluster, *args, python=python, spark_executorEnv_PYTHONPATH="", **shipped) as process:
        out, err = process.communicate(timeout=ENDED)
    assert process.returncode == 3, err
    report = json.loads(out)
    assert (report["done"], report["failed"]) == (len(datasets.GOOD), len(datasets.BROKEN))
    assert bloomcli.validate(tmp_path / "out" / datasets.GOOD[0], deep=True, require=["id"]).ok


def test_executors_without_bloomcli_are_said_to_be_so(cluster: Cluster, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 2, 10)
    bare = environment(tmp_path / "bare")
    with running(
        cluster, "inspect", lake, python=str(bare / "bin" / "python"), spark_executorEnv_PYTHONPATH="", **ONE_EXECUTOR
    ) as process:
        _, err = process.communicate(timeout=ENDED)
    assert process.returncode == 4
    assert "bloom: the executors' Python has no bloomcli\nhint: ship a packed environment" in err


def test_spark_submit_runs_the_command_line_with_its_session(cluster: Cluster, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 3, 10)
    job = tmp_path / "bloom_job.py"
    job.write_text("import sys\nfrom bloomcli.cli import run\nsys.exit(run())\n")
    submit = Path(cluster.env["SPARK_HOME"]) / "bin" / "spark-submit"
    settings = (
        "spark.ui.enabled=false",
        f"spark.executorEnv.PYTHONPATH={ROOT}",
        "spark.executor.memory=512m",
        "spark.cores.max=1",
    )
    command = [submit, "--master", cluster.url, *(part for s in settings for part in ("--conf", s)), job]
    done = subprocess.run(
        [*command, "inspect", lake, "--engine", "spark", "-f", "json"],
        env=cluster.env | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=ENDED,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] == 3
