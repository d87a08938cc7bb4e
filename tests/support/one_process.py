"""Runs many command lines of `bloom` in one other process. Each command runs as in a separate process, but doesn't
import the modules again.

    with commands({"LC_ALL": "C"}) as run:
        assert run("inspect", path).code == 0
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from subprocess import PIPE
from typing import Final

from support.cli import Result
from support.processes import started

_ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 600
_SERVE: Final = """
import base64, contextlib, io, json, os, sys
from bloomcli.__main__ import main

def as_the_process_has(stream):
    return io.TextIOWrapper(io.BytesIO(), encoding=stream.encoding, errors=stream.errors)

for line in sys.stdin:
    words, folder = json.loads(line)
    sys.argv = ["bloom", *(os.fsdecode(base64.b64decode(word)) for word in words)]
    os.chdir(folder)
    with (
        contextlib.redirect_stdout(as_the_process_has(sys.stdout)) as out,
        contextlib.redirect_stderr(as_the_process_has(sys.stderr)) as err,
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        out.flush()
        err.flush()
    said = [base64.b64encode(stream.buffer.getvalue()).decode() for stream in (out, err)]
    print(json.dumps([code, *said]), flush=True)
"""

Run = Callable[..., Result]


@contextlib.contextmanager
def commands(
    env: Mapping[str, str] | None = None,
    *,
    before: str = "",
    encoding: str = "utf-8",
    preexec: Callable[[], None] | None = None,
) -> Iterator[Run]:
    """Start the process. Yields the function that runs a command in the working directory `folder`.

    Args:
        env: variables of the process.
        before: Python code that the process runs first.
        encoding: the encoding of the output. Output in another encoding is an error.
        preexec: what the process does before it becomes Python, such as giving up rights.
    """
    environment = os.environ | {"PYTHONPATH": str(_ROOT)} | (env or {})
    command = [sys.executable, "-c", before + _SERVE]
    with started(command, stdin=PIPE, stdout=PIPE, env=environment, preexec_fn=preexec) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def run(*arguments: object, folder: Path = _ROOT) -> Result:
            words = [base64.b64encode(os.fsencode(str(argument))).decode() for argument in arguments]
            requests.write(json.dumps([words, str(folder)]).encode() + b"\n")
            requests.flush()
            code, out, err = json.loads(answers.readline())
            return Result(code, base64.b64decode(out).decode(encoding), base64.b64decode(err).decode(encoding))

        yield run
        requests.close()
        assert process.wait(_SECONDS) == 0
