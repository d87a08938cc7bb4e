"""For any request to a store that fails, is answered by half, or is the last: the object is the original or the
complete new one, no upload is left unfinished, and exit code and error report what happened.

`bloom` runs as a command that sees a real server through the proxy of ``support/servers``. A first run without
faults tells which kinds of requests there are. Then each kind is broken in each way, once and for good; the process
is killed at each request, before the store has it and after; and Ctrl-C and SIGTERM stop it at each request.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import need
from support.cli import Result
from support.servers import running
from support.servers.faults import Action, Fault
from support.servers.rigs import RIGS, Rig, ended

pytestmark = [pytest.mark.slow, pytest.mark.servers]

_ROWS: Final = 700_000
"""So many that the body has several parts of the least size that S3 has, 5 MiB."""
_COMMITS: Final = {
    "s3": {"CompleteMultipartUpload", "PutObject"},
    "azure": {"Put Block List", "Put Blob"},
    "gcs": {"objects.compose", "objects.rewrite"},
}
"""The kinds of requests that may be the one with which the object becomes the new one."""
_TRANSIENT: Final = (
    Action.RESET,
    Action.TRUNCATE,
    Action.SLOW,
    Action.REFUSE,
    Action.LOSE,
    Action.ERROR_500,
    Action.ERROR_503,
    Action.ERROR_429,
)
"""What passes: the request is sent again."""


@dataclass(frozen=True)
class Add:
    """`bloom add --in-place` of one object, as it runs without a fault."""

    rig: Rig
    old: bytes
    new: bytes
    kinds: list[str]
    """Of its requests, in their order."""

    @property
    def command(self) -> list[str]:
        """The command's arguments."""
        return ["add", self.rig.place.path("data.parquet"), "-c", "id", "--in-place"]

    def reset(self) -> None:
        """Put the object back, and forget the requests so far."""
        self.rig.place.put("data.parquet", self.old)
        self.rig.proxy.forget()

    def check(self, done: Result) -> bytes:
        """What holds whatever happened; returns the object."""
        data = self.rig.place.get("data.parquet")
        assert data in (self.old, self.new), "the object is neither the original nor the complete new one"
        assert done.code in {0, 3}, done.err
        assert "Traceback" not in done.err
        if done.code == 0:
            assert data == self.new, "it said that it was done"
        else:
            assert self.rig.place.path("data.parquet") in done.err
        return data

    def check_nothing_left(self) -> None:
        """No unfinished upload, no temporary object."""
        assert self.rig.place.names() == {"data.parquet"}


def parquet(tmp_path: Path) -> bytes:
    """A file of 11 MB, whose new tail is small."""
    path = tmp_path / "data.parquet"
    values = np.random.default_rng(7).integers(0, 1 << 62, _ROWS)
    table = pa.table({"id": values[:], "other": values[::-1]})
    pq.write_table(table, path, row_group_size=_ROWS // 2, compression="none", use_dictionary=False)
    return path.read_bytes()


@pytest.fixture(scope="module", params=RIGS)
def add(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Add]:
    """The command on each store, after a run without a fault."""
    server, make = RIGS[request.param]
    need(running.installed(server), f"{server}: python tests/support/servers/install.py {server}")
    with make({}) as rig:
        old = parquet(tmp_path_factory.mktemp("faults"))
        rig.place.put("data.parquet", old)
        begun = Add(rig, old, b"", [])
        done = rig.bloom(*begun.command)
        assert done.code == 0, done.err
        new = rig.place.get("data.parquet")
        assert new is not None
        assert new != old
        yield Add(rig, old, new, [each.kind for each in rig.proxy.recorded])


def test_every_kind_of_request_may_fail_once(add: Add) -> None:
    for kind in sorted(set(add.kinds)):
        for action in _TRANSIENT:
            add.reset()
            fault = Fault(action, kind, seconds=0.3)
            with add.rig.proxy.injecting(fault):
                done = add.rig.bloom(*add.command)
            where = f"{action.name} at {kind}: {done.code} {done.err}"
            assert fault.fired == 1, where
            assert add.check(done) == add.new, where
            assert done.code == 0, where
            add.check_nothing_left()


def test_every_kind_of_request_may_fail_for_good(add: Add) -> None:
    for kind in sorted(set(add.kinds)):
        for action in (Action.RESET, Action.REFUSE, Action.LOSE, Action.ERROR_500, Action.ERROR_503):
            add.reset()
            with add.rig.proxy.injecting(Fault(action, kind, times=None)):
                done = add.rig.bloom(*add.command)
            where = f"{action.name} at {kind}: {done.code} {done.err}"
            data = add.check(done)
            if action in {Action.REFUSE, Action.ERROR_500, Action.ERROR_503} and kind in _COMMITS[add.rig.name]:
                assert (data, done.code) == (add.old, 3), where
            add.check_nothing_left()
            assert add.rig.bloom(*add.command).code in {0, 2}, where
            assert add.rig.place.get("data.parquet") == add.new, where


def test_a_completion_that_answers_200_with_an_error_inside_is_no_success(add: Add) -> None:
    if add.rig.name != "s3":
        pytest.skip("needs S3, which alone answers so")
    for times in (1, None):
        for kind in {"CompleteMultipartUpload", "UploadPartCopy"} & set(add.kinds):
            add.reset()
            with add.rig.proxy.injecting(Fault(Action.FAILED_200, kind, times=times)):
                done = add.rig.bloom(*add.command)
            data = add.check(done)
            assert (data, done.code) == ((add.new, 0) if times else (add.old, 3)), f"{kind}: {done.err}"
            add.check_nothing_left()


def test_bytes_of_another_content_never_get_into_an_object(add: Add) -> None:
    reads = {kind for kind in add.kinds if kind.startswith(("Get", "objects.get"))}
    for kind in sorted(reads):
        for action in (Action.OTHER_TAG, Action.SHORTEN):
            for at in range(1, add.kinds.count(kind) + 1):
                add.reset()
                with add.rig.proxy.injecting(Fault(action, kind, at=at)):
                    done = add.rig.bloom(*add.command)
                add.check(done)
                add.check_nothing_left()


def test_an_object_that_changes_between_two_requests_stays_as_the_other_writer_left_it(add: Add) -> None:
    theirs = add.old[::-1]
    commits = [n for n, kind in enumerate(add.kinds, 1) if kind in _COMMITS[add.rig.name]]
    for at in range(2, max(commits) + 1):
        add.reset()
        change = Fault(Action.PASS, at=at, call=lambda: add.rig.place.put("data.parquet", theirs))
        with add.rig.proxy.injecting(change):
            done = add.rig.bloom(*add.command)
        assert done.code == 3, f"at request {at}: {done.code} {done.err}"
        assert "changed" in done.err
        assert add.rig.place.get("data.parquet") == theirs
        add.check_nothing_left()


def test_a_process_that_is_killed_at_any_request_leaves_one_of_the_two(add: Add) -> None:
    for action in (Action.REFUSE, Action.LOSE):
        for at in range(1, len(add.kinds) + 1):
            add.reset()
            fault = Fault(action, at=at, times=None)
            with add.rig.proxy.injecting(fault):
                process = add.rig.start(*add.command)
                fault.call = lambda pid=process.pid: _end(pid, signal.SIGKILL)
                done = ended(process)
            assert done.code in {-signal.SIGKILL, 0}, f"at request {at}: {done.code} {done.err}"
            assert add.rig.place.get("data.parquet") in (add.old, add.new), f"at request {at}"
            left = add.rig.place.names() - {"data.parquet"}
            again = add.rig.bloom(*add.command)
            assert again.code in {0, 2}, again.err
            assert add.rig.place.get("data.parquet") == add.new
            if left and again.code == 0:
                assert add.rig.place.names() - {"data.parquet"} == left, "it isn't known whose that is"
                assert "unfinished" in again.err, "the next run tells of it"
            for name in left:
                _forget(add.rig, name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_is_stopped_at_any_request_leaves_nothing(add: Add, number: signal.Signals) -> None:
    stopped = 0
    for at in range(1, len(add.kinds) + 1):
        add.reset()
        fault = Fault(Action.PASS, at=at)
        with add.rig.proxy.injecting(fault):
            process = add.rig.start(*add.command)
            fault.call = lambda pid=process.pid: _end(pid, number)
            done = ended(process)
        assert done.code in {0, 128 + number}, f"at request {at}: {done.code} {done.err}"
        stopped += done.code != 0
        assert add.rig.place.get("data.parquet") in (add.old, add.new)
        if done.code == 0:
            assert add.rig.place.get("data.parquet") == add.new
        add.check_nothing_left()
    assert stopped >= len(add.kinds) // 2


def test_of_two_writers_one_wins_and_the_other_says_so(add: Add) -> None:
    add.reset()
    path = add.rig.place.path("data.parquet")
    others: list[Result] = []
    kind = next(kind for kind in add.kinds if kind in _COMMITS[add.rig.name])
    first = Fault(
        Action.PASS, kind, call=lambda: others.append(add.rig.bloom("add", path, "-c", "other", "--in-place"))
    )
    with add.rig.proxy.injecting(first):
        done = add.rig.bloom(*add.command)
    assert [other.code for other in others] == [0], others
    assert done.code == 3
    assert "changed" in done.err
    shown = add.rig.bloom("inspect", path, "--json").out
    assert '"other"' in shown
    add.check_nothing_left()
    assert add.rig.bloom(*add.command).code == 0, "the loser's command works again"


@pytest.mark.parametrize("command", ["inspect", "probe"])
def test_a_reader_says_what_the_object_has_or_why_it_cannot(add: Add, command: str) -> None:
    add.rig.place.put("data.parquet", add.new)
    arguments = [command, add.rig.place.path("data.parquet"), *(["-c", "id", "42"] if command == "probe" else [])]
    add.rig.proxy.forget()
    before = add.rig.bloom(*arguments)
    assert before.code in {0, 1}, before.err
    kinds = {each.kind for each in add.rig.proxy.recorded}
    broken = (Action.OTHER_TAG, Action.SHORTEN)
    for kind in sorted(kinds):
        for action in (*_TRANSIENT, *broken):
            for times in (1, None):
                if action is Action.SLOW and times is None:
                    continue
                add.rig.proxy.forget()
                with add.rig.proxy.injecting(Fault(action, kind, times=times, seconds=0.3)):
                    done = add.rig.bloom(*arguments)
                where = f"{action.name} at {kind}, {times}: {done.code} {done.err}"
                assert "Traceback" not in done.err, where
                if times == 1 and action not in broken:
                    assert done.code == before.code, where
                if done.code == 3:
                    assert add.rig.place.path("data.parquet") in done.err, where
                else:
                    assert done.code == before.code, where
                    assert _answers(done.out) == _answers(before.out), where


def _answers(out: str) -> list[str]:
    """A report without its requests, which are more where some were sent again."""
    return [line for line in out.splitlines() if "request" not in line]


def _end(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group, as a terminal does."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _forget(rig: Rig, name: str) -> None:
    """End what a killed run has left."""
    if name.startswith("upload "):
        _, upload, _, key = name.split(" ", 3)
        client, bucket = rig.place.client, rig.place.bucket  # type: ignore[attr-defined]
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
    else:
        rig.place.remove(name)
