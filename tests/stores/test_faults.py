"""For any request to a store that fails, is answered by half, or is the last: the object is the original or the
complete new one, no upload is left unfinished, and exit code and error report what happened.

`bloom` runs as a command that sees a real server through the proxy of ``support/servers``. A first run without
faults records the kinds of requests. Then each kind is broken in some ways (with ``--full`` in every way,
with ``--seed N`` in others), once and for good; the process is killed at each request,
before the store has it and after; and Ctrl-C and SIGTERM stop it at each request.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import patches
from support.cli import Result
from support.servers.faults import Action, Fault
from support.servers.forking import Started
from support.servers.rigs import Rig, rig_of
from support.servers.served import SERVERS

from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source

pytestmark = [pytest.mark.slow, pytest.mark.servers]

_ROWS: Final = {"s3": 700_000, "azure": 160_000, "gcs": 40_000}
"""Number of rows for which the body has several parts of S3's minimum size, 5 MiB, and several blocks of 1 MiB."""
_COMMITS: Final = {
    "s3": {"CompleteMultipartUpload", "PutObject"},
    "azure": {"Put Block List", "Put Blob"},
    "gcs": {"objects.compose", "objects.rewrite"},
}
"""The kinds of requests that may be the one with which the object becomes the new one."""
_OPENS: Final = {"s3": {"GetObject"}, "azure": {"Get Blob"}, "gcs": {"objects.get (media)"}}
"""The kind of request that reads content: the first one says which content it is."""
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
"""Transient faults: the request is sent again."""
_UNANSWERED: Final = {Action.LOSE, Action.TRUNCATE, Action.RESET}
"""The store has carried out the request, and its answer doesn't arrive."""
_LASTING: Final = (Action.LOSE, Action.ERROR_503, Action.RESET, Action.REFUSE, Action.ERROR_500)
_ACTIONS: Final = 2
"""The number of actions for each kind of request, of which each seed takes others; all with --full."""


@dataclass(frozen=True)
class Add:
    """`bloom add --in-place` of one object, as it runs without a fault; or another command."""

    rig: Rig
    old: bytes
    new: bytes
    kinds: list[str]
    """Of its requests, in their order."""
    arguments: Sequence[str]

    @property
    def command(self) -> list[str]:
        """The command's arguments."""
        return [*self.arguments, self.rig.place.path("data.parquet"), "--in-place"]

    def reset(self) -> None:
        """Put the object back, and forget the requests so far."""
        if self.content() != "old":
            self.rig.place.put("data.parquet", self.old)
        self.rig.proxy.forget()

    def broken(self, *faults: Fault) -> Result:
        """Run the command on the original object while rules hold."""
        self.reset()
        with self.rig.proxy.injecting(*faults):
            return self.rig.bloom(*self.command)

    def ended(self, fault: Fault, number: int) -> Result:
        """Run the command on the original object, and send it a signal when the rule's request comes."""
        self.reset()
        runs: Future[Started] = Future()
        fault.call = lambda: runs.result().send(number)
        with self.rig.proxy.injecting(fault):
            runs.set_result(self.rig.forks.start(*self.command))
            return runs.result().result()

    def content(self) -> str:
        """The object's content: old, new, none or another."""
        data = self.rig.place.get("data.parquet")
        return {self.old: "old", self.new: "new", None: "none"}.get(data, "another")

    def problems(self, done: Result, contents: str = "old new", *, unanswered: bool = False) -> Iterator[str]:
        """The problems after any fault.

        Args:
            done: the run.
            contents: the allowed contents of the object.
            unanswered: a request that begins an upload wasn't answered. The store's upload can't be distinguished
                from that of another program, so the run reports it.
        """
        content = self.content()
        if content not in contents.split():
            yield f"the object is {content}"
        if done.code not in {0, 3}:
            yield f"exit code {done.code}"
        if "Traceback" in done.err or "bug in bloom" in done.err:
            yield "a traceback"
        if done.code == 0 and content != "new":
            yield "it said that it was done"
        if done.code == 3 and self.rig.place.path() not in done.err:
            yield "the error doesn't name the object, or the directory that it looked into"
        for name in self.rig.place.names() - {"data.parquet"}:
            # who began an upload can end it, unless the beginning wasn't answered
            if not _reported(name, done) or (name.startswith("upload ") and not unanswered):
                yield f"left: {name}"
            _forget(self.rig, name)


def described(problems: dict[str, list[str]]) -> str:
    """The problems of each trial that has some."""
    return "\n".join(f"{trial}: {'; '.join(found)}" for trial, found in problems.items() if found)


def parquet(tmp_path: Path, rows: int) -> bytes:
    """A file whose new tail is small."""
    path = tmp_path / "data.parquet"
    values = np.random.default_rng(7).integers(0, 1 << 62, rows)
    table = pa.table({"id": values[:], "other": values[::-1]})
    pq.write_table(table, path, row_group_size=rows // 2, compression="none", use_dictionary=False)
    return path.read_bytes()


def recorded(rig: Rig, old: bytes, *arguments: str) -> Add:
    """A command, after a run without a fault."""
    rig.place.put("data.parquet", old)
    rig.proxy.forget()
    begun = Add(rig, old, b"", [], arguments)
    done = rig.bloom(*begun.command)
    assert done.code == 0, done.err
    new = rig.place.get("data.parquet")
    assert new is not None
    assert new != old
    return Add(rig, old, new, [each.kind for each in rig.proxy.recorded], arguments)


@pytest.fixture(scope="module", params=SERVERS)
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Each store."""
    with rig_of(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def add(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Add:
    """`bloom add`."""
    return recorded(rig, parquet(tmp_path_factory.mktemp("faults"), _ROWS[rig.name]), "add", "-c", "id")


@pytest.fixture(scope="module")
def repair(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Add:
    """`bloom repair` of a small object with wrong bounds."""
    sound = parquet(tmp_path_factory.mktemp("repair"), 2000)
    wrong = patches.stats("id", MAX=patches.int64(7), MAX_VALUE=patches.int64(7))(sound)
    return recorded(rig, wrong, "repair")


def test_a_repaired_object_has_right_bounds_and_differs_in_nothing_else(repair: Add, tmp_path: Path) -> None:
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, data in zip(paths, (repair.old, repair.new), strict=True):
        path.write_bytes(data)
    old, new = (open_file(open_source(path)) for path in paths)
    assert old.differs_only_in_structures(new)
    pages = len(repair.old) - 8 - int.from_bytes(repair.old[-8:-4], "little")
    assert repair.new[:pages] == repair.old[:pages]
    done = repair.rig.bloom("validate", "--deep", "--columns", "*", repair.command[1])
    assert done.code == 0, done.out
    assert pq.read_table(paths[1], filters=[("id", ">", 7)]).num_rows == 2000


def test_a_repair_that_fails_or_is_killed_at_any_request_leaves_one_of_the_two(add: Add, repair: Add) -> None:
    problems = {}
    for number, kind in enumerate(repair.kinds, 1):
        done = repair.ended(Fault(Action.LOSE, at=number), signal.SIGKILL)
        found = problems[f"killed at {kind}: {done.code}"] = []
        if repair.content() not in {"old", "new"}:
            found.append("the object is another")
        for name in repair.rig.place.names() - {"data.parquet"}:
            _forget(repair.rig, name)
    for kind in {*repair.kinds} - {*add.kinds} | {*repair.kinds} & _COMMITS[repair.rig.name]:
        done = repair.broken(Fault(Action.ERROR_500, kind, times=None))
        found = problems[f"failed at {kind}: {done.code} {done.err}"] = []
        found += repair.problems(done, "old" if kind in _COMMITS[repair.rig.name] else "old new")
        done = repair.broken(Fault(Action.RESET, kind))
        found += repair.problems(done, "new", unanswered=_unanswered(kind, Action.RESET))
    assert not described(problems), described(problems)


def trials(kinds: Iterable[str], actions: Sequence[Action], config: pytest.Config) -> Iterator[tuple[str, Action]]:
    """Kinds of requests, each with some of the actions: all with --full, else those that are its turn."""
    turn = itertools.count(config.getoption("seed"))
    for kind in sorted(set(kinds)):
        some = [actions[next(turn) % len(actions)] for _ in range(_ACTIONS)]
        yield from ((kind, action) for action in (actions if config.getoption("full") else some))


def test_every_kind_of_request_may_fail_once(add: Add, pytestconfig: pytest.Config) -> None:
    problems = {}
    for kind, action in trials(add.kinds, _TRANSIENT, pytestconfig):
        fault = Fault(action, kind, seconds=0.3)
        done = add.broken(fault)
        found = problems[f"{action.name} at {kind}: {done.code} {done.err}"] = []
        found += add.problems(done, "new", unanswered=_unanswered(kind, action))
        if fault.fired != 1:
            found.append(f"it came {fault.fired} times")
    assert not described(problems), described(problems)


def test_every_kind_of_request_may_fail_for_good(add: Add, pytestconfig: pytest.Config) -> None:
    problems, repeated = {}, set()
    for kind, action in trials(add.kinds, _LASTING, pytestconfig):
        done = add.broken(Fault(action, kind, times=None))
        commits = kind in _COMMITS[add.rig.name]
        undone = commits and action not in {Action.RESET, Action.LOSE}
        found = problems[f"{action.name} at {kind}: {done.code} {done.err}"] = []
        found += add.problems(done, "old" if undone else "old new", unanswered=_unanswered(kind, action))
        if kind not in repeated:
            repeated.add(kind)
            again = add.rig.bloom(*add.command)
            if again.code not in {0, 2} or add.content() != "new":
                found.append(f"the next run: {again.code} {again.err}")
    assert not described(problems), described(problems)


def test_a_completion_that_answers_200_with_an_error_inside_is_no_success(add: Add) -> None:
    if add.rig.name != "s3":
        pytest.skip("needs S3, which alone answers so")
    problems = {}
    for times in (1, None):
        for kind in sorted({"CompleteMultipartUpload", "UploadPartCopy"} & set(add.kinds)):
            done = add.broken(Fault(Action.FAILED_200, kind, times=times))
            found = problems[f"{kind}, {times}: {done.code} {done.err}"] = []
            found += add.problems(done, "new" if times else "old")
    assert not described(problems), described(problems)


def test_bytes_of_another_content_never_get_into_an_object(add: Add) -> None:
    problems = {}
    for kind in sorted({kind for kind in add.kinds if kind.startswith(("Get", "objects.get"))}):
        for at in range(1, add.kinds.count(kind) + 1):
            both = Action.OTHER_TAG, Action.SHORTEN
            for action in both if at == 1 else both[at % 2 :][:1]:
                done = add.broken(Fault(action, kind, at=at))
                problems[f"{action.name} at {kind} {at}: {done.code} {done.err}"] = list(add.problems(done))
    assert not described(problems), described(problems)


def test_an_object_that_changes_between_two_requests_stays_as_the_other_writer_left_it(add: Add) -> None:
    problems = {}
    theirs = add.old[::-1]
    commits = [n for n, kind in enumerate(add.kinds, 1) if kind in _COMMITS[add.rig.name]]
    reads = [n for n, kind in enumerate(add.kinds, 1) if kind in _OPENS[add.rig.name]]
    changed = 0
    for at in range(min(reads) + 1, max(commits) + 1):
        done = add.broken(Fault(Action.PASS, at=at, call=lambda: add.rig.place.put("data.parquet", theirs)))
        before = {each.kind for each in add.rig.proxy.recorded[: at - 1]}
        if before & _COMMITS[add.rig.name] or not before & _OPENS[add.rig.name]:
            continue  # a run that takes its time looks for the object once more: this came after it, or before
        changed += 1
        found = problems[f"at request {at}, {add.kinds[at - 1]}: {done.code} {done.err}"] = []
        found += add.problems(done, "another")
        if add.rig.place.get("data.parquet") != theirs:
            found.append("it isn't theirs")
        if done.code != 3 or "changed" not in done.err:
            found.append("it doesn't say so")
    assert not described(problems), described(problems)
    assert changed >= max(commits) - min(reads) - 2


def test_a_process_that_is_killed_at_any_request_leaves_one_of_the_two(add: Add) -> None:
    problems = {}
    for action in (Action.REFUSE, Action.LOSE):
        for at in range(1, len(add.kinds) + 1):
            if action is Action.REFUSE and add.kinds[at - 1] in add.kinds[: at - 1]:
                continue  # the store is as after the request before
            done = add.ended(Fault(action, at=at), signal.SIGKILL)
            found = problems[f"{action.name} at request {at}, {add.kinds[at - 1]}: {done.code}"] = []
            if done.code not in {-signal.SIGKILL, 0}:
                found.append("it wasn't killed")
            if add.content() not in {"old", "new"}:
                found.append("the object is another")
            left = add.rig.place.names() - {"data.parquet"}
            if not left and add.kinds[at - 1] in add.kinds[: at - 1]:
                continue  # the next run after such a request was looked at
            again = add.rig.bloom(*add.command)
            if again.code not in {0, 2} or add.content() != "new":
                found.append(f"the next run: {again.code} {again.err}")
            if left and add.rig.name == "gcs":  # a name says whose object it is: the next run removes it
                left = add.rig.place.names() - {"data.parquet"}
                if left:
                    found.append(f"the next run left {left}")
            elif left and again.code == 0:
                if add.rig.place.names() - {"data.parquet"} != left:
                    found.append("the next run removed what may be somebody else's")
                unreported = [name for name in left if not _reported(name, again)]
                found += [f"the next run says nothing of {name}: {again.out}" for name in unreported]
            for name in left:
                _forget(add.rig, name)
    assert not described(problems), described(problems)


def test_a_process_that_is_stopped_at_any_request_leaves_nothing(add: Add) -> None:
    problems, stopped = {}, 0
    for at, number in zip(range(1, len(add.kinds) + 1), itertools.cycle((signal.SIGINT, signal.SIGTERM))):
        # A request that is on its way can't be called back: what a store begins has begun when the signal comes.
        begins = add.kinds[at - 1] in {"CreateMultipartUpload", "objects.insert (multipart)"}
        done = add.ended(Fault(Action.ANSWERED if begins else Action.PASS, at=at), number)
        found = problems[f"at request {at}, {add.kinds[at - 1]}: {done.code} {done.err}"] = []
        found += [each for each in add.problems(done) if "exit code" not in each]
        stopped += done.code != 0
        if done.code not in {0, 128 + number}:
            found.append("another exit code")
    assert not described(problems), described(problems)
    assert stopped >= len(add.kinds) // 2


def test_a_reader_says_what_the_object_has_or_why_it_cannot(add: Add, pytestconfig: pytest.Config) -> None:
    add.rig.place.put("data.parquet", add.new)
    arguments = ["probe", add.rig.place.path("data.parquet"), "-c", "id", "42"]
    add.rig.proxy.forget()
    before = add.rig.bloom(*arguments)
    assert before.code in {0, 1}, before.err
    broken, problems = (Action.OTHER_TAG, Action.SHORTEN), {}
    kinds = {each.kind for each in add.rig.proxy.recorded}
    for kind, action in trials(kinds, (*broken, *_TRANSIENT), pytestconfig):
        for times in (1, None) if action is not Action.SLOW else (1,):
            add.rig.proxy.forget()
            with add.rig.proxy.injecting(Fault(action, kind, times=times, seconds=0.3)):
                done = add.rig.bloom(*arguments)
            found = problems[f"{action.name} at {kind}, {times}: {done.code} {done.err}"] = []
            if "Traceback" in done.err or "bug in bloom" in done.err:
                found.append("a traceback")
            if done.code == 3 and times == 1 and action not in broken:
                found.append("it passes")
            if done.code == 3 and add.rig.place.path("data.parquet") not in done.err:
                found.append("the error doesn't name the object")
            if done.code != 3 and (done.code, _answers(done.out)) != (before.code, _answers(before.out)):
                found.append(f"another answer: {done.out}")
    assert not described(problems), described(problems)


def _answers(out: str) -> list[str]:
    """A report without its requests, which are more where some were sent again."""
    return [line for line in out.splitlines() if "request" not in line]


def _unanswered(kind: str, action: Action) -> bool:
    return kind == "CreateMultipartUpload" and action in _UNANSWERED


def _reported(name: str, done: Result) -> bool:
    """Whether a run reports something that remains, and for an upload, the command that ends it."""
    text = done.out + done.err
    if name.startswith("upload "):
        return f"--upload-id {name.split(' ')[1]}" in text and "aws s3api abort-multipart-upload" in text
    return name in text or "isn't complete" in text


def _forget(rig: Rig, name: str) -> None:
    """End what a killed run has left."""
    if name.startswith("upload "):
        _, upload, _, key = name.split(" ", 3)
        client, bucket = rig.place.client, rig.place.bucket  # type: ignore[attr-defined]
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
    else:
        rig.place.remove(name)
