"""Runs `bloom` many times, each in a separate process, forked from one that has imported all modules.

    with Forks(env) as forks:
        run = forks.start("add", "s3://lake/x", "-c", "id", "--in-place")
        os.killpg(run.pid, signal.SIGKILL)
        run.result()

Starting Python and importing a vendor's SDK takes longer than a command on a small object. Pauses (`time.sleep`:
an SDK's, before it sends a request again) and deadlines (`time.monotonic`) are shorter by the factor `HURRY`.

As a program (``python -m support.servers.forking``) it reads a line of JSON for each command: its number, arguments,
and files for its output. It writes the process's id, and later its exit code. When the first command ends, it
imports the modules that this command has imported.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from support.cli import Result

HURRY: Final = 20
_ROOT: Final = Path(__file__).parents[3]
_SECONDS: Final = 600
_FOLDER: Final = sys.argv[-1]


class Started:
    """A command that was started, in a process group of its own."""

    def __init__(self, folder: Path, number: int) -> None:
        self.ids: Future[int] = Future()
        self.codes: Future[int] = Future()
        self.out, self.err = folder / f"{number}.out", folder / f"{number}.err"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.ids.result(_SECONDS)

    def send(self, number: int) -> None:
        """Send a signal to the process group, as a terminal does."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def result(self) -> Result:
        """Wait for its end. Raises TimeoutError."""
        try:
            code = self.codes.result(_SECONDS)
        except TimeoutError:
            self.send(signal.SIGKILL)
            raise
        result = Result(code, self.out.read_text(), self.err.read_text())
        self.out.unlink()
        self.err.unlink()
        return result


class Forks:
    """A process that has imported `bloom`, for commands with these variables. Several threads may start commands."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self._lock = threading.Lock()
        self._runs: dict[int, Started] = {}

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="bloom-runs-")
        command = [sys.executable, "-m", "support.servers.forking", self._folder.name]
        path = {"PYTHONPATH": f"{_ROOT / 'tests'}:{_ROOT}"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        self._process = subprocess.Popen(
            command,
            env=kept | self.env | path,
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_SECONDS)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._folder.cleanup()

    def start(self, *arguments: str) -> Started:
        """Start a command."""
        assert self._process.stdin is not None
        with self._lock:
            number = len(self._runs)
            run = self._runs[number] = Started(Path(self._folder.name), number)
            order = {"number": number, "arguments": arguments, "out": str(run.out), "err": str(run.err)}
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        return run

    def run(self, *arguments: str) -> Result:
        """Run a command."""
        return self.start(*arguments).result()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            run = self._runs[message["number"]]
            if "pid" in message:
                run.ids.set_result(message["pid"])
            else:
                run.codes.set_result(message["code"])


def _serve() -> None:
    """Fork a process for each line, until standard input ends."""
    running: dict[int, int] = {}
    waiting, open_ = b"", True
    while open_ or running:
        ready, _, _ = select.select([0] if open_ else [], [], [], 0.003 if running else None)
        if ready:
            read = os.read(0, 1 << 16)
            open_, waiting = bool(read), waiting + read
        *lines, waiting = waiting.split(b"\n")
        for line in lines:
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                _work(order)
            running[pid] = order["number"]
            _send(number=order["number"], pid=pid)
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                _learn()
                _send(number=running.pop(pid), code=os.waitstatus_to_exitcode(status))


def _learn() -> None:
    """Import what the first command imported, in the same order."""
    learnt = Path(f"{_FOLDER}/modules")
    if not learnt.exists():
        return
    for name in learnt.read_text().split():
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
    learnt.unlink()


def _send(**what: int) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _work(order: dict[str, Any]) -> None:
    """Run the command in this forked process."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for number, path in ((1, order["out"]), (2, order["err"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.argv = ["bloom", *order["arguments"]]
    code: object = 70
    try:
        from bloomcli.__main__ import main

        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  as Python itself would show it
        import traceback

        traceback.print_exc()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    if order["number"] == 0:
        Path(f"{_FOLDER}/modules").write_text("\n".join(name for name in sys.modules if name != "__main__"))
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def main() -> None:
    """Import the modules of commands, and serve."""
    sleep, monotonic = time.sleep, time.monotonic
    time.sleep = lambda seconds: sleep(seconds / HURRY)
    time.monotonic = lambda: monotonic() * HURRY
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve()


if __name__ == "__main__":
    main()
