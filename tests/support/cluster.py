"""A standalone Spark cluster on loopback, from PySpark's jars: a master, workers and executors in separate
processes; and environments that are packed for its executors."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from support.engines import ROOT, java_home
from support.processes import children, wait_until

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
