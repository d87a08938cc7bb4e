"""Datasets of millions of files: little memory for each file, and the same reports as for few files."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support import datasets
from support.memory_store import SCHEME
from support.stores import MemoryPlace

import bloomcli
from bloomcli import compact
from bloomcli.cli import dataset as cli_dataset
from bloomcli.cli import run as cli
from bloomcli.commands.options import AddOptions, InspectOptions
from bloomcli.datasets import child_process, packing, planning, workers
from bloomcli.datasets.engine import LocalEngine, plan_files, run_tasks
from bloomcli.model.dataset import DatasetReport, Status
from bloomcli.storage import managed_tables, registry
from bloomcli.storage.listing import expand

ROOT = Path(__file__).parents[2]
COMMANDS = {
    "inspect": ["inspect", "LAKE"],
    "probe": ["probe", "LAKE", "--column", "id", "--value", "300", "--value", "2000003"],
    "matches": ["probe", "LAKE", "--column", "id", "--value", "300", "--files-with-matches"],
    "validate": ["validate", "LAKE", "--require", "id"],
    "init": ["validate", "LAKE", "--init", "--policy", "LAKE.toml"],
    "dry run": ["add", "LAKE", "-c", "id", "--dry-run"],
    "in place": ["add", "LAKE", "-c", "id", "--in-place"],
    "mirrored": ["add", "LAKE", "-c", "id", "-o", "LAKE.new"],
    "remove": ["remove", "LAKE", "-c", "id", "--in-place"],
    "fold": ["fold", "LAKE", "-c", "id", "--fpp", "0.2", "--in-place"],
    "fail fast": ["add", "LAKE", "-c", "id", "--in-place", "--fail-fast"],  # the check refuses a file
    "twice": ["inspect", "LAKE", "LAKE/year=2023", "LAKE/*/part-*"],
}
FORMS = {
    **dict.fromkeys(COMMANDS, ("text", "csv", "json")),
    "validate": ("text", "csv", "json", "junit", "sarif", "github"),
    "matches": ("text",),
    "init": ("text",),
}
ALONE = {"junit", "sarif", "github"}
"""Forms whose rows are those of the others: one process writes them."""


def jobs_of(name: str, form: str) -> tuple[int, ...]:
    """How many processes a case has: one and two where a command has only one form, else one for the texts."""
    if len(FORMS[name]) == 1:
        return (1, 2)
    return (1,) if form in {"text", *ALONE} else (2,)


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use compact sequences from eight files on, in blocks of four."""
    for module in (compact, packing, cli_dataset):
        monkeypatch.setattr(module, "PLAIN_MOST", 8)
    monkeypatch.setattr(compact, "_BLOCK", 4)
    monkeypatch.setattr(compact, "_OPEN_BLOCKS", 1)
    monkeypatch.setattr(packing, "_SORTED_OF_MANY", 3)
    monkeypatch.setattr(planning, "_LOOKED_FOR_AT_ONCE", 3)
    monkeypatch.setattr(managed_tables, "_CACHED_DIRECTORIES", 1)
    monkeypatch.setattr(child_process, "_GROUP", 3)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return datasets.mixed(tmp_path_factory.mktemp("lakes") / "lake")


def said(
    arguments: list[str], lake: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, list[str], dict[str, str]]:
    """A command's exit code and texts on a copy of the lake, without times; and the files that exist then."""
    copy = shutil.copytree(lake, root / "lake")
    with contextlib.chdir(root):  # some paths in reports are relative
        code = cli([argument.replace("LAKE", str(copy)) for argument in arguments])
    texts = [text.replace(str(root), "") for text in capsys.readouterr()]
    texts = [
        re.sub(r'("seconds": |time="|seconds" value=")[0-9.e-]+|[\d.,]+ (µs|ms|s|files/s)\b', "-", text)
        for text in texts
    ]
    if "csv" in arguments:  # the column of seconds
        texts[0] = re.sub(r",\d+\.\d+(e-\d+)?,", ",-,", texts[0])
    for policy in root.glob("*.toml"):
        texts.append(policy.read_text().replace(str(root), ""))
        policy.unlink()
    return code, texts, datasets.digests(root)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form", "jobs"),
    [(name, form, jobs) for name in COMMANDS for form in FORMS[name] for jobs in jobs_of(name, form)],
)
def test_reports_on_many_files_are_those_on_few(
    name: str,
    form: str,
    jobs: int,
    lake: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    arguments = [*COMMANDS[name], "--jobs", str(jobs), *(["--format", form] if form != "text" else [])]
    few = said(arguments, lake, tmp_path / "one", capsys)
    request.getfixturevalue("early")
    assert isinstance(expand([str(lake)]), compact.CompactSequence)
    many = said(arguments, lake, tmp_path / "two", capsys)
    assert many == few


@contextlib.contextmanager
def another_thread() -> Iterator[None]:
    """A program with another thread, which isn't forked."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.usefixtures("early")
def test_the_child_process_gets_many_tasks_in_groups(lake: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lake, tmp_path / "lake")
    alone = bloomcli.inspect([copy], jobs=1)
    with another_thread():
        assert not workers.can_fork()
        report = bloomcli.inspect([copy], jobs=2)
        changed = bloomcli.add([copy], ["id"], in_place=True, jobs=2)
    assert [replace(row, seconds=0.0) for row in report.rows] == [replace(row, seconds=0.0) for row in alone.rows]
    assert (changed.done, changed.failed) == (len(datasets.GOOD), len(datasets.BROKEN))


def test_a_thread_of_a_library_forbids_forking(tmp_path: Path) -> None:
    """A forked process would wait for ever for what the thread has locked."""
    program = (
        "import threading; from bloomcli.datasets import workers\n"
        "print(workers.can_fork(), end=' ')\n"
        "import pyarrow.compute as pc; pc.sum([1, 2])\n"
        "print(threading.active_count(), workers.can_fork())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1", "False"]


@pytest.mark.usefixtures("early")
def test_rows_for_python_are_a_sequence_however_many_there_are(lake: Path) -> None:
    report: DatasetReport = bloomcli.inspect([lake])
    paths = [row.path for row in report.rows]
    assert paths == [item.path for item in expand([str(lake)])]
    assert report.rows[0].path == paths[0]
    assert [row.path for row in report.rows[-2:]] == paths[-2:]
    assert len(report.rows) == report.files == len(paths)


@pytest.mark.usefixtures("early")
def test_tables_are_found_above_many_objects_in_many_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    place = MemoryPlace()
    monkeypatch.setitem(registry.BY_SCHEME, SCHEME, place.memory)
    for i in range(40):
        place.put(f"{'table' if i % 5 == 2 else 'plain'}{i}/a/b={i}/part.parquet", b"no file")
        if i % 5 == 2:
            place.put(f"table{i}/_delta_log/0.json", b"{}")
    tasks = plan_files(LocalEngine(jobs=1), [place.path()], AddOptions(columns=["id"], in_place=True))
    refused = [task.path for task in tasks if task.row is not None and "Delta" in (task.row.error or "")]
    assert len(refused) == 8
    assert all("table" in path for path in refused)
    assert sum(task.no_table for task in tasks) == 32


@pytest.mark.usefixtures("early")
def test_the_largest_of_many_files_start_first_and_every_file_once() -> None:
    listed = [packing.Task(options=InspectOptions(), path=f"{i}", size=i * 37 % 101) for i in range(60)]
    seen = packing.overview_of(listed)
    order = list(packing.OrderedTasks(listed, seen, abs))
    assert sorted(order) == list(range(60))
    assert [listed[i].size for i in order[:3]] == sorted((t.size for t in listed), reverse=True)[:3]
    assert order[3:] == sorted(order[3:])
    assert len(order) == seen.open == 60


@pytest.mark.usefixtures("early")
def test_the_check_of_many_files_settles_those_that_are_done(lake: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lake, tmp_path / "lake")
    engine = LocalEngine(jobs=1)
    tasks = plan_files(engine, [str(copy)], AddOptions(columns=["id"], in_place=True))
    checked = engine.check(tasks)
    assert isinstance(checked, compact.CompactSequence)
    assert {id(task.options) for task in checked} == {id(task.options) for task in tasks}
    open_ = [task.path for task in checked if task.row is None]
    assert len(open_) == len(datasets.GOOD)
    report = run_tasks(engine, checked)
    assert sum(row.status is Status.DONE for row in report.rows) == len(open_)


PROGRAM = """
import io, json, sys
import bloomcli.compact as compact
# many begin earlier, so that seconds show what takes hours
compact.PLAIN_MOST, compact._BLOCK, compact._OPEN_BLOCKS = 1000, 100, 4
from bloomcli.datasets import workers
from bloomcli.compact import packed_blocks
packed_blocks._MEMORY_BYTES = 100_000
sys.path.insert(0, "tests")
import pyarrow as pa, pyarrow.parquet as pq
from support.memory_store import MemorySource, MemoryStore, Object
from bloomcli.cli import run
from bloomcli.storage import registry
from bloomcli.storage.base import Kind, FileEntry, Status

count = int(sys.argv[1])
data = io.BytesIO()
pq.write_table(pa.table({"id": [1, 2, 3]}), data)
content = Object(data.getvalue(), 1, 1)

if "LIST" in sys.argv:  # the same names in a list, twice
    import tempfile
    with tempfile.NamedTemporaryFile("w", delete=False) as listed:
        for i in range(2 * count):
            i %= count
            listed.write(f"memory://lake/orders/date=2024-{i // 1000:04}/part-{i:08}-5f2c7a44-c000.zstd.parquet\\n")
    sys.argv[sys.argv.index("LIST")] = listed.name

class Unchanged(MemorySource):
    def _current(self):
        return self.fingerprint

class Lake(MemoryStore):  # as many objects as are wanted, in directories of a thousand
    def list(self, path, tables=None):
        if path.endswith(".parquet"):
            yield FileEntry(path, len(content.data), path.rpartition("/")[2], walked=False)
            return
        for i in range(count):
            relative = f"date=2024-{i // 1000:04}/part-{i:08}-5f2c7a44-c000.zstd.parquet"
            yield FileEntry(path + relative, len(content.data), relative, walked=True)
    def open(self, path):
        return Unchanged(self, path, content)
    def status(self, path):
        return Status(Kind.FILE, len(content.data), 1) if path.endswith(".parquet") else None

def peak():
    with open("/proc/self/status") as status:
        return int(status.read().split("VmHWM:")[1].split()[0])

registry.BY_SCHEME["memory"] = Lake()
workers.can_fork = lambda: True  # the objects are in this process, and Arrow's threads have nothing to do
with open("/proc/self/clear_refs", "w") as peaks:
    peaks.write("5")
code = run(sys.argv[2:])
sys.stdout.flush()
print(code, peak() * 1024, file=sys.stderr)
"""


def peak(count: int, arguments: list[str], expected: int) -> int:
    """The peak memory of a command on a number of objects, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(count), *arguments], capture_output=True, text=True, cwd=ROOT
    )
    code, size = done.stderr.split()[-2:]
    assert int(code) == expected, done.stderr[-2000:]
    if "json" in arguments:
        assert len(json.loads(done.stdout)["rows"]) == count
    elif "csv" in arguments:
        assert done.stdout.count("\n") == count + 1
    return int(size)


FILES = "memory://lake/orders/"
BYTES_A_FILE = 300
"""The most bytes that a command may take for each file. Names, tasks and rows as objects take 900 or more."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["inspect", FILES], 0),
        (["inspect", "--files-from", "LIST"], 0),
        (["probe", FILES, "-c", "id", "--value", "5", "--format", "csv"], 1),
        (["validate", FILES, "--format", "json"], 0),
        (["add", FILES, "-c", "id", "--dry-run", "--in-place", "--format", "json"], 0),
    ],
    ids=lambda value: " ".join(value).replace(FILES, "") if isinstance(value, list) else "",
)
def test_a_command_takes_little_memory_for_each_of_many_files(arguments: list[str], code: int) -> None:
    few, many = 1_500, 4_500
    sizes = [peak(count, [*arguments, "--jobs", "2"], code) for count in (few, many)]
    assert (sizes[1] - sizes[0]) / (many - few) < BYTES_A_FILE, sizes
