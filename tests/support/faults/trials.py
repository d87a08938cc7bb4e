"""The faults to inject into a command, and the checks after each of them."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from support.checksums import checksums
from support.faults.scenarios import Scenario
from support.faults.tracing import Action, Call, Fault, Run, Tracer

ERRORS: Final = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EINTR,
    errno.ESTALE,
    errno.EACCES,
    errno.EMFILE,
    errno.ENOMEM,
    errno.EAGAIN,
)
"""Errors of calls on files."""

_NO_PROCESS: Final = (errno.EAGAIN, errno.ENOMEM)
OTHER_ERRORS: Final = {
    "mmap": (errno.ENOMEM,),
    "clone": _NO_PROCESS,
    "clone3": _NO_PROCESS,
    "fork": _NO_PROCESS,
    "vfork": _NO_PROCESS,
    "pipe": (errno.EMFILE,),
    "pipe2": (errno.EMFILE,),
    "socketpair": (errno.EMFILE,),
}
"""Errors of other calls."""

SHORTENED: Final = frozenset({"read", "pread64", "write", "pwrite64", "copy_file_range", "sendfile"})
LATE: Final = frozenset({"close", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir"})
"""Calls that may fail after they have done their work; `close` always has done it."""

DEADLINE: Final = 120
"""Time limit of a trial that hangs, in seconds."""

_TEMPORARY: Final = re.compile(r"\..*\.bloom-[0-9a-f-]{12,}\.tmp", re.DOTALL)
_CHUNK: Final = 512
_UNSUPPORTED: Final = 4
_STARTED: Final = "Exception ignored in thread started by"
"""CPython's message for a thread that had no memory to start: `Thread.start` then waits forever, which no program can
prevent."""
_WHOLE: Final = ("the original is whole", "nothing was left behind", "nothing was written")
"""Claims that nothing was changed."""


class File(NamedTuple):
    """A file's content and attributes."""

    data: bytes
    mode: int
    attributes: tuple[tuple[str, bytes], ...]


Folder = Mapping[str, File]


def look(root: Path) -> Folder:
    """Every file below a folder."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            attributes = tuple((name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)))
            found[str(path.relative_to(root))] = File(path.read_bytes(), path.stat().st_mode & 0o7777, attributes)
    return found


def left(folder: Folder) -> list[str]:
    """The temporary files of a folder."""
    return [name for name in folder if _TEMPORARY.fullmatch(Path(name).name)]


def file_of(sidecar: str) -> str:
    """The file of a checksum file."""
    path = Path(sidecar)
    return str(path.with_name(path.name[1:-4]))


def is_sidecar(name: str) -> bool:
    """Whether a file has a checksum file's name."""
    return Path(name).name.startswith(".") and name.endswith(".crc")


def said(run: Run) -> str:
    """Standard output, without the parts that differ between runs, and without the number of processes and the remark
    that fewer than wanted could be started, which did all of the work."""
    out = re.sub(r'"\d+ of \d+ worker processes could be started[^"]*"(, )?|"jobs": \d+', "", run.out)
    return re.sub(r'("seconds": )[0-9.e-]+|in [0-9.]+ m?s\b|[0-9.,]+ (m?s|s)\b', r"\1", out)


@dataclass(frozen=True)
class Problem:
    """A check that failed."""

    fault: str
    what: str
    code: int
    err: str


class Trials:
    """A scenario's files, and its command run on them."""

    def __init__(self, scenario: Scenario, root: Path, tracer: Tracer) -> None:
        self.scenario = scenario
        self.root = root
        self._tracer = tracer
        self._arguments = [argument.format(root=root) for argument in scenario.arguments]
        self._pristine = root.with_name(root.name + ".pristine")
        scenario.make(_empty(self._pristine))
        self.reset()
        self.before = look(root)
        self.clean, self.calls = tracer.record(self.command, DEADLINE)
        self.after = look(root)

    def reset(self) -> None:
        """Restore the files."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._pristine, self.root, copy_function=shutil.copy2)

    def command(self) -> int:
        """Run it in this process."""
        from bloomcli.cli import run

        return run(self._arguments)

    def sound(self) -> Iterator[Problem]:
        """The problems without any fault. There must be none, or trials would show nothing."""
        again = self._again()
        if self.clean.code != self.scenario.code or again.code != self.scenario.code:
            yield self._problem("no fault", f"exit code {again.code}", self.clean)
        if look(self.root) != self.after:
            yield self._problem("no fault", "two runs give two results", self.clean)
        if (self.after != self.before) != (self.scenario.changing and self.scenario.code == 0):
            yield self._problem("no fault", "the files did not change, or did", self.clean)
        yield from self._of_sidecars("no fault", self.after, self.clean, missing=False)

    def _again(self) -> Run:
        self.reset()
        return self._tracer.run(self.command, None, DEADLINE)

    def _problem(self, fault: Fault | str, what: str, run: Run) -> Problem:
        return Problem(fault=str(fault), what=what, code=run.code, err=run.err + run.out[-2000:])

    # ---- faults

    def touches(self, call: Call) -> bool:
        """Whether a call is on a path in the folder, or on one that is looked up above it."""
        for name in call.files.split("\t"):
            if not name.startswith("/"):
                continue
            path = Path(name)
            if self.root in (path, *path.parents) or path.parent in self.root.parents or path in self.root.parents:
                return True
        return False

    def faults(self) -> Iterator[Fault]:
        """Every fault of every call."""
        for call in self.calls:
            yield from self._kills(call)
            yield from self._errors(call)

    def _kills(self, call: Call) -> Iterator[Fault]:
        if self.scenario.changing:
            yield Fault(Action.KILL, call)
            if any(c.child for c in self.calls):
                yield Fault(Action.KILL_ALL, call)

    def _errors(self, call: Call) -> Iterator[Fault]:
        if not call.name:
            return
        for error in ERRORS if call.files else OTHER_ERRORS.get(call.name, ()):
            if call.name != "close":
                yield Fault(Action.ERROR, call, error)
        if call.name in LATE:
            for error in (errno.EIO, errno.EDQUOT, errno.ENOSPC, errno.ESTALE, errno.EINTR):
                yield Fault(Action.LATE_ERROR, call, error)
        if call.name in SHORTENED and call.bytes > 1:
            yield Fault(Action.SHORT, call)

    # ---- checks

    def trial(self, fault: Fault) -> tuple[bool, list[Problem]]:
        """Inject a fault. Returns whether it was injected, and the failed checks."""
        self.reset()
        run = self._tracer.run(self.command, fault, DEADLINE)
        folder = look(self.root)
        problems = list(self._after(fault, run, folder))
        if self.scenario.changing and folder != self.after and not problems:
            problems += self._rerun(fault, folder)
        return run.fired, problems

    def _after(self, fault: Fault, run: Run, folder: Folder) -> Iterator[Problem]:
        killed = fault.action in (Action.KILL, Action.KILL_ALL)
        if run.overdue and _STARTED not in run.err:
            yield self._problem(fault, "it did not end", run)
        yield from self._of_files(fault, run, folder)
        kept = killed or self._checksums_kept(run, folder)
        yield from self._of_sidecars(fault, folder, run, missing=kept)
        if _STARTED in run.err and fault.error == errno.ENOMEM:
            return
        if "Traceback" in run.err or _noise(fault, run) or "a bug" in run.err + run.out:
            yield self._problem(fault, "a bug, or a traceback", run)
        if killed and run.code < 0:
            return
        if left(folder) and not (kept or self._removal(fault)):
            yield self._problem(fault, f"left behind: {left(folder)}", run)
        yield from self._of_claims(fault, run, folder)
        if run.code == self.scenario.code:
            if not self._complete(fault, folder):
                yield self._problem(fault, "exit code 0, and the new file is not there as it should be", run)
            if not self.scenario.changing and said(run) != said(self.clean):
                yield self._problem(fault, "exit code 0, and another result", run)
        elif run.code == 3:
            yield from self._of_error(fault, run)
        elif run.code == _UNSUPPORTED and (fault.call.name in OTHER_ERRORS or fault.call.files.startswith("pipe:")):
            return  # of a library that decodes only in threads, or in a process whose start a pipe reports
        else:
            yield self._problem(fault, f"exit code {run.code}", run)

    def _of_files(self, fault: Fault, run: Run, folder: Folder) -> Iterator[Problem]:
        """Each file is the original or the complete new file."""
        for name, file in folder.items():
            is_report = name == self.scenario.report and run.code == 3
            if not is_sidecar(name) and name not in left(folder) and not is_report:
                known = [there[name].data for there in (self.before, self.after) if name in there]
                if file.data not in known:
                    yield self._problem(fault, f"{name} is neither the original nor the new file", run)
        for name in self.before:
            if not is_sidecar(name) and name not in folder:
                yield self._problem(fault, f"{name} is gone", run)

    def _of_claims(self, fault: Fault, run: Run, folder: Folder) -> Iterator[Problem]:
        """A report claims at most as many unchanged files as there are."""
        claims = max((run.err + run.out).lower().count(claim) for claim in _WHOLE)
        targets = [name for name in self.after if self.before.get(name) != self.after[name] and not is_sidecar(name)]
        untouched = sum(folder.get(name) == self.before.get(name) for name in targets)
        if claims > untouched or (claims and left(folder)):
            yield self._problem(fault, "it says that nothing happened", run)

    def _complete(self, fault: Fault, folder: Folder) -> bool:
        """Whether the files are as after a run without a fault, except for attributes that the fault prevents."""
        found = {name: file for name, file in folder.items() if name not in left(folder)}
        wanted = dict(self.after)
        if (
            fault.call.name.endswith("xattr") and fault.error == errno.EACCES
        ):  # attributes of those who have the right
            found = {name: file._replace(attributes=()) for name, file in found.items()}
            wanted = {name: file._replace(attributes=()) for name, file in wanted.items()}
        return found == wanted

    def _removal(self, fault: Fault) -> bool:
        """Whether the removal of a temporary file failed."""
        return fault.call.name in {"unlink", "unlinkat"} and fault.action is Action.ERROR

    def _checksums_kept(self, run: Run, folder: Folder) -> bool:
        """The checksums can't be renamed: an error reports it, and they stay next to the file for the next run."""
        return run.code == 3 and ".crc" in run.err + run.out and bool(left(folder))

    def _of_error(self, fault: Fault, run: Run) -> Iterator[Problem]:
        output = run.err + _text(run.out)
        if not self.touches(fault.call):
            return  # modules, memory, standard output: libraries have their own messages for these
        blind = fault.call.name.endswith("access")  # os.access answers with a yes or a no
        if fault.error and not blind and not any(text in output.lower() for text in _reasons(fault)):
            yield self._problem(fault, "the reason isn't reported", run)
        if not any(_named(name, output) for name in self._names(fault)):
            yield self._problem(fault, "the path isn't reported", run)

    def _names(self, fault: Fault) -> set[str]:
        """The paths that an error may contain: the call's, and those of the command's files."""
        names = set(fault.call.files.split("\t"))
        return names | {str(self.root / name) for name in (*self.before, *self.after)} | {str(self.root)}

    def _of_sidecars(self, fault: Fault | str, folder: Folder, run: Run, *, missing: bool) -> Iterator[Problem]:
        for name, file in folder.items():
            checksum_file = str(Path(name).with_name(f".{Path(name).name}.crc"))
            if is_sidecar(name) and file_of(name) in folder:
                if file.data != checksums(folder[file_of(name)].data, _CHUNK):
                    yield self._problem(fault, f"{name} does not fit its file", run)
            elif not missing and checksum_file in self.before and checksum_file not in folder:
                yield self._problem(fault, f"{name} has lost its checksums", run)

    def _rerun(self, fault: Fault, found: Folder) -> Iterator[Problem]:
        """The same command again, without a fault: it completes the work, and leaves no temporary file."""
        run = self._tracer.run(self.command, None, DEADLINE)
        folder = look(self.root)
        if left(folder):
            yield self._problem(f"a rerun after: {fault}", f"left behind: {left(folder)}", run)
        if not self._complete(fault, folder):
            yield self._problem(f"a rerun after: {fault}", "the files are not as they should be", run)
        if run.code not in self._codes(found):
            yield self._problem(f"a rerun after: {fault}", f"exit code {run.code}", run)

    def _codes(self, found: Folder) -> Sequence[int]:
        """The exit codes of a rerun: if the file was complete, the command may report that it is done already."""
        done = any(
            name in found and found[name].data == file.data and self.before.get(name) != file
            for name, file in self.after.items()
            if not is_sidecar(name)
        )
        return (self.scenario.code, 2) if done else (self.scenario.code,)


def _noise(fault: Fault, run: Run) -> bool:
    """Whether Python printed a message about an ignored exception, unless a library ran out of memory."""
    return "Exception ignored" in run.err and fault.error != errno.ENOMEM


def _reasons(fault: Fault) -> tuple[str, ...]:
    """Texts of which an error must contain one: the system's; Python's if a stream would have to wait; bloom's if the
    system refuses a lease."""
    text = os.strerror(fault.error).lower()
    if fault.error != errno.EAGAIN:
        return (text,)
    return (text, "would block", "without blocking", "open for writing" if fault.call.name == "fcntl" else text)


def _named(name: str, output: str) -> bool:
    """Whether a text contains a name, in which an asterisk stands for the digits of temporary names."""
    pattern = ".*".join(re.escape(part) for part in name.split("*"))
    return re.search(pattern, output) is not None


def _text(out: str) -> str:
    """The texts of a JSON document, or the text itself."""
    try:
        return json.dumps(json.loads(out), ensure_ascii=False)
    except ValueError:
        return out


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def chosen(trials: Trials, most: int | None, seed: int) -> list[Fault]:
    """The faults to inject: all, or every kill around the files and a seeded sample of the rest."""
    every = list(trials.faults())
    if most is None:
        return every
    generator = random.Random(f"{seed} {trials.scenario.name}")
    near = [f for f in every if trials.touches(f.call)]
    kills = [f for f in near if f.action in (Action.KILL, Action.KILL_ALL)]
    errors = [f for f in near if f not in kills]
    rest = [f for f in every if not trials.touches(f.call)]
    parts = ((kills, most // 3), (errors, most - most // 3), (rest, most // 10))
    return [f for part, count in parts for f in generator.sample(part, min(count, len(part)))]
