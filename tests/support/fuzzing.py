"""The contract of commands for any file, and a process that tests it, file by file, under limits.

Every command ends with exit code 0 to 4. If the code reports an error, standard error has a message and no traceback.
A command takes at most `SECONDS` of processor time, and `MEMORY` more than the interpreter with all modules loaded.
If `add` ends with exit code 0, for all columns and for one, `validate --deep` accepts the file that it wrote:

- the columns that were added have no finding about filters that is an error;
- `validate` can read the whole file: it never ends with exit code 3;
- `validate --deep` of the whole file finds no error about filters that it didn't find in the original, compared by
  rule, column, row group and stripe: the errors of another column's filter stay the same;
- `validate --deep` ends with exit code 3 only if it does so for the original, too: the values of a column can't be
  decoded. `add` copies the values of other columns without reading them, and reads no more indices of a dictionary
  than it needs to know which entries are used.

The same holds for `fold` and `remove`, except that an unreadable file may remain unreadable: `fold` may have nothing
to fold, and `remove` removes filters from such files, too.

`validate` without ``--deep`` may report more errors: it trusts statistics, which a mutation can make wrong.

Every value that pyarrow reads is in its column's filter.

`find` returns the rows of a value that pyarrow reads, or reports an error for the file; and so it does with an index
that `index build` made of the file. Rows may be missing where the file's own filters, statistics or page indexes are
wrong, which a mutation can make them: a column is compared if `validate --deep` finds no error, and if its statistics
fit its values and it has no page index.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import IO, Any, Final, Self

ROOT: Final = Path(__file__).parent.parent.parent
HOSTILE: Final = ROOT / "tests" / "formats" / "hostile"
SECONDS: Final = 30
"""Processor time of a command, in seconds. Files of the tests take up to a few; this is for work without an end."""
MEMORY: Final = 512 << 20
"""Address space that a command may take, in bytes, in addition to that of the process before it."""
_WALL_SECONDS: Final = 600
"""Seconds after which a case counts as hanging, on a busy machine, too."""
_BUG: Final = 70
_PEER: Final = "pyarrow"
"""The step that runs pyarrow: its crashes don't count."""
_BESIDES: Final = ("statistics-", "page-index-", "row-index-", "sorting-", "size-")
"""Rules about what `add` leaves as it is."""
_SUFFIXES: Final = (".parquet", ".orc", ".mosaic")
"""Suffixes of files to mutate, by the modules `fuzzparquet`, `fuzzorc` and `fuzzmosaic`."""


def seeds() -> list[Path]:
    """Every fixture, and the hostile files."""
    found = [p for p in (ROOT / "fixtures").rglob("*") if p.suffix in _SUFFIXES]
    return sorted(found) + sorted(p for p in HOSTILE.iterdir() if p.suffix in _SUFFIXES)


def keys_of(path: Path) -> dict[str, Any] | None:
    """The keys of an encrypted fixture; None for other files."""
    from support import encrypted

    return encrypted.KEYS.get(path.stem) if path.parent == encrypted.FILES else None


def mutated(
    data: bytes, suffix: str, seed: str, count: int | None = None, keys: dict[str, Any] | None = None
) -> tuple[bytes, int]:
    """A file with one to three mutations, and their number. `count`: only that number of them. `keys`: an encrypted
    file's."""
    from support import fuzzencrypted, fuzzparquet

    random = Random(seed)
    total = random.choice((1, 1, 1, 2, 3))
    for _ in range(total if count is None else count):
        try:
            mutate = importlib.import_module(f"support.fuzz{suffix.removeprefix('.')}").mutate
            data = mutate(random, data) if keys is None else fuzzencrypted.mutate(random, data, keys)
        except Exception:  # noqa: BLE001  the file's parts can't be parsed any more
            data = fuzzparquet.mutate_bytes(random, data) if data else b"\0"
    return data, total


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A case that breaks the contract."""

    step: str
    """The command line, or the name of the reader."""
    what: str

    @property
    def alike(self) -> str:
        """A text that is equal for cases that probably have the same cause."""
        return re.sub(r"\d+|0x\w+|'.*?'", "#", f"{self.step.split()[0]}: {self.what[-200:]}")


# --- in the process that runs the commands

_Error = tuple[str, str | None, int | None, int | None]
"""Rule, column, stripe, row group."""


class _Before:
    """The errors of the original by `validate`; computed once, and only if a command wrote a file."""

    def __init__(self, contract: _Contract, path: Path) -> None:
        self._contract = contract
        self._path = path
        self._found: dict[bool, set[_Error] | None] = {}

    def errors(self, *, deep: bool) -> set[_Error] | None:
        """As `_Contract.errors` has it."""
        if deep not in self._found:
            self._found[deep] = self._contract.errors(self._path, deep=deep)
        return self._found[deep]


class _Contract:
    """The commands on one file."""

    def __init__(
        self, folder: Path, say: Callable[[str], None], seconds: float, memory: int, keys: Mapping[str, Any]
    ) -> None:
        from bloomcli.formats.keys import Keys

        self.folder = folder
        self.keys = Keys(**keys) if keys else None
        self.flags = [f"--{name.replace('_', '-')}={value}" for name, value in keys.items() if isinstance(value, str)]
        self.flags += [f"--key={name}={key}" for name, key in keys.get("keys", {}).items()]
        self.flags += [f"--column-key={name}={key}" for name, key in keys.get("column_keys", {}).items()]
        self.say = say
        self.seconds = seconds
        self.memory = memory
        self.step = ""
        self.problems: list[dict[str, str]] = []

    def _begin(self, step: str) -> None:
        self.step = step.replace(f"{self.folder}/", "")
        self.say(self.step)

    def call(self, *args: object, fine: tuple[int, ...] = (0, 1, 2, 3, 4)) -> tuple[int, str]:
        """Run a command under the limits. (exit code, standard output)"""
        from bloomcli.cli import run

        words = [str(a) for a in args] + self.flags
        self._begin(" ".join(map(str, args)))
        for fd in (1, 2):
            os.lseek(fd, 0, os.SEEK_SET)
            os.ftruncate(fd, 0)
        with _limits(self.seconds, self.memory):
            code = run(words)
        with contextlib.suppress(ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        out, err = (os.pread(fd, 1 << 26, 0).decode("utf-8", "replace") for fd in (1, 2))
        explained = err.startswith(("bloom: ", "Usage: ")) or (words[0] == "validate" and out)  # its report says why
        if code not in fine:
            self.problem(f"it ends with {code}: {self._trace(words) if code == _BUG else err[-500:]}")
        elif "Traceback" in err or "panicked" in err:
            self.problem(f"it shows a traceback: {err[-1500:]}")
        elif code > 1 and not explained:
            self.problem(f"it ends with {code} without an error: {err[-500:]!r}")
        return code, out

    def problem(self, text: str) -> None:
        """Record a problem of the current step."""
        self.problems.append({"step": self.step, "what": text})

    def _trace(self, words: list[str]) -> str:
        """The traceback of a command that ends in a bug."""
        from bloomcli.cli import run

        os.environ["BLOOM_DEBUG"] = "1"
        with _limits(self.seconds, self.memory):
            run(words)
        del os.environ["BLOOM_DEBUG"]
        sys.stderr.flush()
        return os.pread(2, 1 << 26, 0).decode("utf-8", "replace")[-1500:]

    def check(self, path: Path, turn: int) -> None:
        """Every command that is always tried, and one of the others."""
        out = self.folder / "out"
        draft = ["--mosaic-draft"] if path.suffix == ".mosaic" else ["--readers", "spark"] * (self.keys is not None)
        self.call("inspect", path, "--format", ("text", "json", "csv")[turn % 3])
        self.call("validate", path, "--deep", "--require", "*", "--format", ("text", "json", "github")[turn % 3])
        column = self._column(path)
        others: tuple[tuple[object, ...], ...] = (
            ("probe", path, "-c", column, "3", "--explain"),
            ("dump", path, "-c", column, "--format", "hex"),
            ("remove", path, "-o", out, "--overwrite"),
            ("fold", path, "-o", out, "--overwrite", "--fpp", "0.3"),
            ("repair", path, "-o", out, "--overwrite"),
            ("repair", path, "--add", "page-index,statistics", "-o", out, "--overwrite"),
            ("add", path, "-c", "*", "-o", out, "--overwrite", *draft),
            ("validate", path),
            ("inspect", path, "--footer", "--schema", "--format", "json"),
            ("inspect", path, "-c", column, "--pages", "--indexes"),
            ("advise", path),
            ("advise", path, "--sample", "1", "--format", "json"),
            ("find", "3", path, "-c", column, "--maybe"),
            ("find", "3", path, "-c", column, "-f", ("text", "csv", "jsonl")[turn % 3]),
            ("index", "build", path, "-c", column, "-o", out, "--overwrite"),
        )
        before = _Before(self, path)
        words = others[turn % len(others)]
        code, _ = self.call(*words)
        if code == 0 and words[0] in {"remove", "fold", "repair"} and out.exists():
            self._check_whole(out, before, adds=False)
        for names in (["-c", "*"], self._one(path, turn)):
            if not names:
                continue
            out.unlink(missing_ok=True)
            code, text = self.call(
                "add", path, *names, "-o", out, "--overwrite", "--replace", "--format", "json", *draft
            )
            if (code == 0) != out.exists():
                self.problem(f"it ends with {code}, and its output {'is' if out.exists() else 'is not'} there")
            if code == 0:
                self._check_added(out, json.loads(text), path.suffix)
                self._check_whole(out, before)
        out.unlink(missing_ok=True)
        self._check_found(path, before, turn)
        for left in self.folder.iterdir():
            if left not in (path, out):
                self.problem(f"{left.name} is left behind")
        out.unlink(missing_ok=True)

    def _one(self, path: Path, turn: int) -> list[str]:
        """The arguments for one of its columns, another one each turn; empty if the columns can't be read."""
        from bloomcli.errors import BloomError
        from bloomcli.formats.registry import open_file
        from bloomcli.hints import listed
        from bloomcli.storage.registry import open_source

        self._begin(f"columns of {path.name}")
        with contextlib.suppress(BloomError), _limits(self.seconds, self.memory), open_source(str(path)) as source:
            leaves = [c.path for c in open_file(source, keys=self.keys).leaves if c.unfilterable is None]
            if leaves:
                return ["-c", listed(leaves[turn % len(leaves)])]
        return []

    def errors(self, path: Path, *, deep: bool) -> set[_Error] | None:
        """The errors of the whole file by `validate`; None if it can't read the file."""
        import bloomcli
        from bloomcli.errors import BloomError

        self._begin(f"validate {path.name}{' --deep' if deep else ''}")
        with _limits(self.seconds, self.memory):
            try:
                findings = bloomcli.validate(path, columns=("*",) if deep else (), deep=deep, keys=self.keys).findings
            except BloomError:
                return None
        return {(f.id, f.column, f.stripe, f.row_group) for f in findings if f.severity == "error" and not f.off}

    def _check_whole(self, out: Path, before: _Before, *, adds: bool = True) -> None:
        """Check the written file: the columns that were read for it, and those that were only copied."""
        shallow = self.errors(out, deep=False)
        if shallow is None:
            if adds or before.errors(deep=False) is not None:
                self.problem("validate can't read what was written")
            return
        found = self.errors(out, deep=True)
        old = before.errors(deep=True)
        if found is None and old is None:
            # without the values, wrong statistics are trusted, and filters without their bounds reported
            found = {error for error in shallow if error[0] != "value-missing"}
            old = before.errors(deep=False)
        if found is None:
            self.problem("validate --deep can't read what was written")
            return
        # which of them is found in damaged values depends on the filters that are there
        new = {error for error in found if not error[0].startswith(_BESIDES)} - (old or set())
        if new:
            self.problem(f"what was written has errors that the original hasn't: {sorted(map(str, new))[:3]}")

    def _check_found(self, path: Path, before: _Before, turn: int) -> None:
        """Find a value that pyarrow reads, without and with an index."""
        from support import reader_values

        look = {".parquet": reader_values.parquet_rows, ".orc": reader_values.orc_rows}.get(path.suffix)
        self._begin(_PEER)
        known = None
        if look is not None:
            with contextlib.suppress(reader_values.Unreadable), _limits(self.seconds * 4, self.memory * 4):
                known = look(path, turn)
        if known is None or before.errors(deep=True) != set():
            return
        index = self.folder / "out"
        code, _ = self.call("index", "build", path, "-c", known.option, "-o", index, "--overwrite")
        for options in ([], ["--index", index] if code == 0 else None):
            if options is None:
                continue
            words = ("find", "-v", known.text, path, "-c", known.option, "--select", known.option, "-f", "jsonl")
            code, text = self.call(*words, *options)
            rows = [json.loads(line)["row"] for line in text.splitlines()] if code < 2 else known.rows
            if rows != known.rows:
                self.problem(f"it finds the rows {rows[:5]}, and pyarrow {known.rows[:5]}, of {len(known.rows)}")
        index.unlink(missing_ok=True)

    def _column(self, path: Path) -> str:
        import bloomcli
        from bloomcli.errors import BloomError

        with contextlib.suppress(BloomError):
            filters = bloomcli.inspect(path, keys=self.keys).filters
            if filters:
                return filters[0].column
        return "i"

    def _check_added(self, out: Path, report: dict[str, Any], suffix: str) -> None:
        from bloomcli.hints import listed

        added = {c["column"] for c in report["changes"] if not c.get("reason")}
        names = [word for name in sorted(added) if name.strip() == name != "" for word in ("-c", listed(name))]
        if not names:
            return
        code, text = self.call("validate", out, "--deep", *names, "--format", "json", fine=(0, 1, 3))
        if code in (0, 1):
            found = [f for f in json.loads(text)["findings"] if not f["id"].startswith(_BESIDES)]
            wrong = [f for f in found if f["severity"] == "error" and not f.get("off") and f.get("column") in added]
            if wrong:
                self.problem(f"what add wrote doesn't pass validate --deep: {json.dumps(wrong[:2])}")
        self._begin(_PEER)
        from support import reader_values

        look = {".parquet": reader_values.parquet_lost, ".orc": reader_values.orc_lost}.get(suffix)
        if look is not None:
            with contextlib.suppress(reader_values.Unreadable), _limits(self.seconds * 4, self.memory * 4):
                lost = look(out, added)
                if lost:
                    self.problem(f"values that pyarrow reads are in no filter: {'; '.join(lost[:3])}")


@contextlib.contextmanager
def _limits(seconds: float, memory: int) -> Iterator[None]:
    """Beyond the time limit the process is killed; beyond the memory limit allocations fail."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + memory, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _load() -> None:
    """Import all modules of commands, so that their time and memory don't count for a command."""
    import mosaic  # noqa: F401
    import pyarrow.orc
    import pyarrow.parquet  # noqa: F401

    import bloomcli
    from support import reader_values  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        for name in ("parquet/orders.parquet", "orc/java_bare.orc", "mosaic/released_plain.mosaic"):
            bloomcli.add(ROOT / "fixtures" / name, ["*"], output=Path(folder) / name[:3], mosaic_draft=True)
            bloomcli.validate(Path(folder) / name[:3], deep=True)


def serve(requests: IO[str], replies: IO[str], seconds: float, memory: int) -> None:
    """Try the requested files. Writes lines of JSON: each next step, then the problems."""
    os.fsync = lambda _: None  # type: ignore[assignment]  # thousands of files are written
    for fd in (1, 2):
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), fd)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    _load()

    def answer(**message: object) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    answer(step="ready")
    for line in requests:
        asked = json.loads(line)
        path = Path(asked["path"])
        contract = _Contract(path.parent, lambda step: answer(step=step), seconds, memory, asked["keys"])
        contract.check(path, asked["turn"])
        answer(problems=contract.problems)


# --- in the process that requests cases


def _as_text(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Keys in the form of options."""
    return {
        name: f"hex:{value.hex()}" if isinstance(value, bytes) else _as_text(value) for name, value in keys.items()
    }


class Trier:
    """The process that runs the commands, restarted if a case ends it. A context manager."""

    def __init__(self, *, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self._limits = (seconds, memory)
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="bloom-fuzz-")
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen[str]:
        code = (
            "import sys; sys.path[:0] = sys.argv[1:3]; from support import fuzzing; import os; "
            "fuzzing.serve(sys.stdin, os.fdopen(os.dup(1), 'w'), float(sys.argv[3]), int(sys.argv[4]))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(ROOT), str(ROOT / "tests"), *map(str, self._limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"MALLOC_ARENA_MAX": "2"},
        )
        self._process = process
        message = self._receive(process)
        assert message == {"step": "ready"}, f"the process that tries files doesn't start: {message}"
        return process

    def _receive(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """The next message; None if the process has ended."""
        assert process.stdout is not None
        fd = process.stdout.fileno()  # read from the descriptor, because `select` doesn't see Python's buffer
        while b"\n" not in self._read:
            ready, _, _ = select.select([fd], [], [], _WALL_SECONDS)
            if not ready:
                return {"hangs": True}
            more = os.read(fd, 1 << 16)
            if not more:
                return {}
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> int:
        process, self._process = self._process, None
        self._read = b""
        if process is None:
            return 0
        process.kill()
        process.communicate()
        return process.returncode

    def broken(self, data: bytes, suffix: str, turn: int = 0, keys: Mapping[str, Any] | None = None) -> Broken | None:
        """Try a file. `keys`: an encrypted file's. Returns the violation of the contract, if any."""
        process = self._process or self._start()
        assert process.stdin is not None
        folder = Path(self._folder.name)
        for left in folder.iterdir():
            left.unlink()
        path = folder / f"case{suffix}"
        path.write_bytes(data)
        process.stdin.write(json.dumps({"path": str(path), "turn": turn, "keys": _as_text(keys or {})}) + "\n")
        process.stdin.flush()
        step = ""
        while True:
            message = self._receive(process)
            if "step" in message:
                step = message["step"]
                continue
            if "problems" in message:
                first = next(iter(message["problems"]), None)
                return None if first is None else Broken(**first)
            if message:
                self._end()
                return Broken(what=f"it hangs: {_WALL_SECONDS} s", step=step)
            process.wait()
            code = process.returncode
            self._end()
            if step == _PEER:
                return None
            if -code == signal.SIGPROF:
                return Broken(what=f"it takes more than {self._limits[0]} s of the processor", step=step)
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Broken(what=f"the process is ended: {how}", step=step)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A mutated file that breaks the contract, with as few mutations as possible."""

    source: Path
    seed: str
    mutations: int
    data: bytes
    broken: Broken

    def __str__(self) -> str:
        return (
            f"{self.source.name}, seed {self.seed}, {self.mutations} mutations, {len(self.data)} bytes: "
            f"bloom {self.broken.step}\n    {self.broken.what.strip().replace(chr(10), chr(10) + '    ')}"
        )


def fuzz(
    files: list[Path], seed: str, *, cases: int | None = None, minutes: float | None = None
) -> Iterator[Case | None]:
    """Try mutations of the files in turn, up to a number of cases or a time. Yields None for a case that passes."""
    end = None if minutes is None else time.monotonic() + minutes * 60
    wholes = {path: path.read_bytes() for path in files}
    number = 0
    with Trier() as trier:
        while (cases is None or number < cases) and (end is None or time.monotonic() < end):
            path = files[number % len(files)]
            turn = number // len(files)
            own = f"{seed}/{path.parent.name}/{path.name}/{turn}"
            number += 1
            keys = keys_of(path)
            data, mutations = mutated(wholes[path], path.suffix, own, keys=keys)
            broken = trier.broken(data, path.suffix, turn, keys)
            if broken is None:
                yield None
                continue
            for fewer in range(1, mutations):
                smaller, _ = mutated(wholes[path], path.suffix, own, fewer, keys)
                again = trier.broken(smaller, path.suffix, turn, keys)
                if again is not None:
                    data, mutations, broken = smaller, fewer, again
                    break
            yield Case(source=path, seed=own, mutations=mutations, data=data, broken=broken)
