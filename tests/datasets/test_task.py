"""One file of a dataset: the plan for it, and the row that results for any kind of file."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support import datasets
from support.tasks import CHANGING, plan_tasks

import bloomcli
from bloomcli.commands.options import AddOptions, Options
from bloomcli.datasets import task
from bloomcli.datasets.task import Task
from bloomcli.errors import UsageError
from bloomcli.formats.parquet.footer import Footer
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import Presence
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import expand
from bloomcli.storage.local.source import LocalSource

ID = {"columns": ("id",)}


def planned(root: Path, command: str = "add", options: dict[str, Any] | None = None, **target: Any) -> list[Task]:
    """Tasks for what a directory or file means."""
    return plan_tasks(command, expand([str(root)]), ID if options is None else options, **target)


def ran(root: Path, command: str = "add", options: dict[str, Any] | None = None, **target: Any) -> list[FileRow]:
    """The rows of those tasks, the one task's after the other's."""
    return [task.run(t) for t in planned(root, command, options, **target)]


def one(path: Path, command: str, options: dict[str, Any], **target: Any) -> FileRow:
    """The row of one file."""
    (row,) = ran(path, command, options, **target)
    return row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A Parquet file of 400 rows without filters."""
    return datasets.write(tmp_path / "a.parquet")


# --- plan


def test_outputs_mirror_the_tree(tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 3)
    out = tmp_path / "out"
    tasks = planned(lake, output=out)
    assert [t.output for t in tasks] == [str(out / f"part={i}" / f"{i:03}.parquet") for i in range(3)]
    assert [t.target for t in tasks] == [t.output for t in tasks]
    assert [t.size for t in tasks] == [Path(t.path).stat().st_size for t in tasks]
    assert pickle.loads(pickle.dumps(tasks)) == tasks


def test_two_files_with_the_same_output_are_refused(tmp_path: Path) -> None:
    for folder in "ab":
        datasets.write(tmp_path / folder / "x.parquet")
    listed = expand([str(tmp_path / "a"), str(tmp_path / "b")])
    with pytest.raises(UsageError, match=r"a/x.parquet and .*b/x.parquet would both become .*out/x.parquet"):
        plan_tasks("add", listed, ID, output=tmp_path / "out")
    assert len(plan_tasks("add", listed, ID, in_place=True)) == len(plan_tasks("inspect", listed, {})) == 2


@pytest.mark.parametrize("command", CHANGING)
def test_a_command_that_writes_has_exactly_one_target(path: Path, command: str) -> None:
    with pytest.raises(UsageError, match="nowhere to write to") as caught:
        planned(path, command)
    assert "-o DIRECTORY" in str(caught.value.hint)
    with pytest.raises(UsageError, match="exclude each other"):
        planned(path, command, output=path.parent / "out", in_place=True)
    dry_run = planned(path, command, {**ID, "dry_run": True})[0]
    assert (dry_run.output, dry_run.target) == (None, None)
    assert planned(path, command, in_place=True)[0].target == str(path)
    (reading,) = planned(path, "inspect", {})
    assert (reading.output, reading.target) == (None, None)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("hdfs://node/out", "outputs can't be written to hdfs: URIs"),
        ("hdfs:/out", "a URI has two slashes after its scheme"),
        (Path("s3://bucket/out"), "a URI has two slashes after its scheme"),
        ("file://elsewhere/out", "outputs can't be written to another machine"),
    ],
)
def test_outputs_that_no_store_writes_are_refused_and_make_no_directories(
    path: Path, output: str | Path, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(UsageError, match=says):
        planned(path, output=output)
    assert [p.name for p in path.parent.iterdir()] == ["a.parquet"]


def test_an_output_directory_may_be_a_file_uri(path: Path) -> None:
    (task,) = planned(path, output=(path.parent / "out").as_uri())
    assert task.output == str(path.parent / "out" / path.name)


def test_an_output_that_is_the_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.plain(tmp_path, 2)
    (tmp_path.parent / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    for output in (tmp_path, ".", tmp_path / "part=0" / "..", tmp_path.parent / "link"):
        with pytest.raises(UsageError, match="the output is the input") as caught:
            planned(tmp_path, output=output)
        assert "--in-place" in str(caught.value.hint)


def test_outputs_below_the_directory_that_is_read_are_no_inputs_of_the_next_run(tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 3)
    out = lake / "with filters"
    first = ran(lake, output=out)
    assert [r.status for r in first] == [Status.DONE] * 3
    before = datasets.digests(tmp_path)
    assert [(r.path, r.status) for r in ran(lake, output=out)] == [(r.path, Status.SKIPPED) for r in first]
    assert datasets.digests(tmp_path) == before
    pattern = [str(lake / "**" / "*.parquet")]
    for _ in range(3):
        tasks = plan_tasks("add", expand(pattern), ID, output=out)
        assert [t.path for t in tasks] == [r.path for r in first]
        assert {task.run(t).status for t in tasks} == {Status.SKIPPED}
    assert datasets.digests(tmp_path) == before
    inside = datasets.plain(tmp_path / "outer" / "raw", 2)
    assert len(planned(inside, output=inside.parent)) == 2


# --- run: commands that read


def test_inspect_sums_a_file_up(path: Path) -> None:
    bloomcli.add(path, ["id", "name"], in_place=True)
    row = one(path, "inspect", {})
    report = bloomcli.inspect(path)
    assert row.status is Status.DONE
    assert (row.format, row.row_groups, row.columns, row.filters) == ("parquet", 2, 2, 4)
    assert row.filter_bytes == sum(f.bitset_bytes or 0 for f in report.filters) < report.filter_bytes, "no headers"
    assert row.bytes_before == path.stat().st_size
    assert row.max_fpp == max(f.fpp or 0 for f in report.filters)
    assert row.seconds > 0
    assert one(path, "inspect", {"columns": ("id",)}).filters == 2


def test_inspect_reports_filters_that_cannot_be_read(path: Path) -> None:
    bloomcli.add(path, ["id", "name"], in_place=True)
    facts = bloomcli.inspect(path).filters[0]
    data = bytearray(path.read_bytes())
    data[facts.offset : facts.offset + 8] = b"\xff" * 8
    path.write_bytes(data)
    row = one(path, "inspect", {})
    assert (row.status, row.exit_code, row.filters) == (Status.DONE, 0, 4)
    assert str(row.reason).startswith("1 unreadable: ")


def test_probe_says_by_its_code_whether_a_value_may_be_there(path: Path) -> None:
    bloomcli.add(path, ["id"], in_place=True)
    there = one(path, "probe", {"values": ["3", "-1"], "column": "id"})
    assert (there.status, there.exit_code, there.row_groups) == (Status.DONE, 0, 2)
    assert [t.presence for t in there.totals] == [Presence.MAYBE, Presence.ABSENT]
    assert one(path, "probe", {"values": ["-1"], "column": "id"}).exit_code == 1


def test_validate_carries_its_findings(path: Path) -> None:
    fine = one(path, "validate", {})
    assert (fine.status, fine.exit_code, fine.findings) == (Status.DONE, 0, ())
    row = one(path, "validate", {"require": ("id",)})
    assert (row.status, row.exit_code, row.error) == (Status.FOUND, 1, None)
    assert [f.id for f in row.findings] == ["filter-required"]
    bloomcli.add(path, ["id"], in_place=True)
    assert one(path, "validate", {"deep": True, "require": ("id",)}).values_checked == 400


# --- run: commands that write


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@pytest.mark.parametrize("in_place", [True, False])
def test_add_gives_the_file_that_the_command_alone_gives(tmp_path: Path, suffix: str, in_place: bool) -> None:
    path = datasets.write(tmp_path / f"a.{suffix}")
    alone = tmp_path / "alone"
    report = bloomcli.add(path, ["id"], output=alone, fpp=0.001)
    target: dict[str, Any] = {"in_place": True} if in_place else {"output": tmp_path / "out" / "deep"}
    row = one(path, "add", {**ID, "fpp": 0.001}, **target)
    made = path if in_place else tmp_path / "out" / "deep" / path.name
    assert made.read_bytes() == alone.read_bytes()
    assert (row.status, row.output, row.columns) == (Status.DONE, str(made), 1)
    assert (row.bytes_before, row.bytes_after) == (report.bytes_before, alone.stat().st_size)
    assert row.filters == sum(c.filters for c in report.changes)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_what_is_done_already_is_skipped_and_said_to_be(tmp_path: Path, suffix: str) -> None:
    path = datasets.write(tmp_path / f"a.{suffix}", rows=4000)
    add = {**ID, "fpp": 0.0001}
    steps = [
        ("remove", {}, Status.SKIPPED, "there are no filters"),
        ("add", add, Status.DONE, None),
        ("add", add, Status.SKIPPED, "the columns have filters already"),
        ("add", {**add, "replace": True}, Status.DONE, None),
        ("remove", {}, Status.DONE, None),
        ("remove", {}, Status.SKIPPED, "there are no filters"),
    ]
    original = path.read_bytes()
    for command, options, status, reason in steps:
        before = path.read_bytes()
        row = one(path, command, options, in_place=True)
        assert (row.status, row.reason, row.exit_code) == (status, reason, 0)
        assert (path.read_bytes() == before) == (status is Status.SKIPPED or bool(options.get("replace")))
    assert suffix == "orc" or path.read_bytes() == original


@pytest.mark.parametrize(
    ("command", "options", "reason"),
    [
        ("remove", {}, "there are no filters"),
        ("fold", {}, "no filter can be smaller"),
        ("add", ID, "the columns have filters already"),
    ],
)
def test_files_that_need_no_change_are_copied_unchanged(
    path: Path, command: str, options: dict[str, Any], reason: str
) -> None:
    if command != "remove":
        bloomcli.add(path, ["id"], in_place=True)
    path.chmod(0o640)
    row = one(path, command, options, output=path.parent / "out")
    copy = path.parent / "out" / path.name
    assert (row.status, row.reason, row.output) == (Status.SKIPPED, f"{reason}; copied", str(copy))
    assert copy.read_bytes() == path.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o640
    assert one(path, command, options, in_place=True).reason == reason


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(
    ("suffix", "command", "options"),
    [
        ("parquet", "add", ID),
        ("parquet", "remove", {}),
        ("parquet", "fold", {}),
        ("orc", "add", ID),
        ("orc", "remove", {}),
    ],
)
def test_a_file_is_opened_once_whether_there_is_something_to_do_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, command: str, options: dict[str, Any], there: bool
) -> None:
    path = datasets.write(tmp_path / f"a.{suffix}", rows=4000)
    if there is (command != "add"):
        bloomcli.add(path, ["id"], in_place=True, **({"ndv": 100_000} if command == "fold" else {}))
    opened: list[str] = []
    real = LocalSource.__init__

    def spy(self: LocalSource, name: str, local_path: Path) -> None:
        opened.append(name)
        real(self, name, local_path)

    monkeypatch.setattr(LocalSource, "__init__", spy)
    row = one(path, command, options, output=tmp_path / "out")
    assert row.status is (Status.DONE if there else Status.SKIPPED), row.error
    assert opened.count(str(path)) == 1


@pytest.mark.parametrize("command", CHANGING)
def test_a_dry_run_makes_nothing(path: Path, command: str) -> None:
    bloomcli.add(path, ["name"], in_place=True, ndv=100_000)
    before = datasets.digests(path.parent)
    options = {"add": ID, "repair": {"add": ("page-index",)}}.get(command, {})
    row = one(path, command, {**options, "dry_run": True}, output=path.parent / "out")
    assert (row.status, row.output) == (Status.PLANNED, None)
    assert datasets.digests(path.parent) == before
    assert not (path.parent / "out").exists()


# --- run: whatever the file is


@pytest.mark.parametrize(
    ("command", "options"),
    [
        *(("inspect", {}), ("validate", {"deep": True}), ("add", ID), ("remove", {}), ("fold", {})),
        ("repair", {"add": ("page-index",)}),
    ],
)
def test_every_file_of_a_mixed_dataset_has_its_row(tmp_path: Path, command: str, options: dict[str, Any]) -> None:
    lake = datasets.mixed(tmp_path / "lake")
    target = {"output": tmp_path / "out"} if command in CHANGING else {}
    rows = {str(Path(r.path).relative_to(lake)): r for r in ran(lake, command, options, **target)}
    assert rows.keys() == {*datasets.GOOD, *datasets.FILTERED, *datasets.BROKEN, *datasets.OTHER}
    assert {rows[n].status for n in datasets.OTHER} == {Status.SKIPPED}
    assert {rows[n].reason for n in datasets.OTHER} == {"not a file of a known format"}
    for name in datasets.BROKEN:
        assert (rows[name].status, rows[name].exit_code) == (Status.FAILED, 3)
        assert str(rows[name].error).startswith(str(lake / name))
    able = {*datasets.GOOD, *datasets.FILTERED}
    assert {rows[n].status for n in able} <= {Status.DONE, Status.SKIPPED}
    if command in CHANGING:
        assert set(datasets.digests(tmp_path / "out")) == able
    if command == "repair":
        reasons = {rows[n].reason for n in able if n.endswith((".orc", ".mosaic"))}
        assert reasons == {
            "only Parquet files can be repaired: other formats have statistics between the data; copied"
        }
    if command == "fold":
        reasons = {rows[n].reason for n in able if n.endswith(".orc")}
        assert reasons == {"ORC's filters are sized by the row index stride and can't be folded; copied"}


def test_marker_files_named_with_others_are_skipped_as_in_directories(path: Path) -> None:
    """A shell's pattern names all of them."""
    markers = [path.with_name("_SUCCESS"), path.with_name(f".{path.name}.crc"), path.with_name("_cut.parquet")]
    markers[0].touch()
    markers[1].write_bytes(b"crc\0\0\0\2\0" * 3)
    markers[2].write_bytes(path.read_bytes()[:-1])
    summary = path.with_name("_metadata")
    shutil.copy(path, summary)
    rows = [task.run(t) for t in plan_tasks("inspect", expand([str(p) for p in (path, *markers, summary)]), {})]
    assert [r.status for r in rows] == [
        Status.DONE, Status.SKIPPED, Status.SKIPPED, Status.FAILED, Status.DONE,
    ]  # fmt: skip
    assert one(markers[0], "inspect", {}).exit_code == 3


ENCRYPTED = str(ROOT / "fixtures" / "parquet" / "pyarrow_encrypted_footer.parquet")
FAILED: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "a column that it hasn't": ("a.parquet", "inspect", {"columns": ("nosuch",)}, 2, "nosuch"),
    "a column that it hasn't, to change": ("a.parquet", "add", {"columns": ("nosuch",)}, 2, "nosuch"),
    "a value of another type": ("a.parquet", "probe", {"values": ["x"], "column": "id"}, 2, "x"),
    "an output that can't be made": ("a.parquet", "add", ID, 3, "the directory can't be made: file exists"),
    "another kind": ("notes.txt", "inspect", {}, 3, "notes.txt"),
    "another kind, empty": ("empty.txt", "inspect", {}, 3, "empty.txt"),
    "a pipe": ("pipe.parquet", "inspect", {}, 3, "pipe.parquet"),
    "a dead link": ("dead.parquet", "inspect", {}, 3, "no such file"),
    "nothing": ("nowhere", "inspect", {}, 3, "no such file"),
    "an encrypted file": (ENCRYPTED, "inspect", {}, 4, "encrypted"),
    "a file that no store has": ("gopher://x/y.parquet", "add", ID, 4, "gopher"),
}
"""A file, a command and its options, and the exit code and the text of the error."""


@pytest.mark.parametrize("case", FAILED)
def test_whatever_is_wrong_with_a_file_or_the_request_is_a_row(path: Path, case: str) -> None:
    name, command, options, code, says = FAILED[case]
    folder = path.parent
    (folder / "notes.txt").write_text("a,b\n")
    (folder / "empty.txt").touch()
    (folder / "out").write_text("a file where the directory should be")
    os.mkfifo(folder / "pipe.parquet")
    (folder / "dead.parquet").symlink_to(folder / "nowhere")
    output = folder / ("made" if ":" in name else "out")
    target: dict[str, Any] = (
        {"output": output} if options is ID else {"in_place": True} if command in CHANGING else {}
    )
    named = FileEntry(path=name if ":" in name else str(folder / name), size=-1, relative="f", walked=False)
    row = task.run(*plan_tasks(command, [named], options, **target))
    assert (row.status, row.exit_code) == (Status.FAILED, code)
    assert says in str(row.error)


def test_a_bug_is_a_row_too(path: Path) -> None:
    row = task.run(Task(options=Options(), path=str(path), size=1))
    assert (row.status, row.exit_code) == (Status.FAILED, 70)
    assert "a bug: AttributeError: " in str(row.error)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_only_a_stop_from_outside_gets_through_and_leaves_nothing(path: Path, stop: type[BaseException]) -> None:
    def progress(phase: str, done: int, total: int) -> None:
        raise stop

    before = datasets.digests(path.parent)
    with pytest.raises(stop):
        task.run(planned(path, in_place=True)[0], progress)
    assert datasets.digests(path.parent) == before


def test_a_row_group_is_not_walked_once_per_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The walks of row groups are counted: they must not grow with the square of the columns."""
    walks, real, columns = [], Footer.group_struct, 300
    monkeypatch.setattr(Footer, "group_struct", lambda self, index: walks.append(index) or real(self, index))
    file, out = tmp_path / "wide.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({f"c{n}": [n, n + 1] for n in range(columns)}), file)
    add = Task(options=AddOptions(columns=["*"]), path=str(file), size=-1, output=str(out))

    def walked(status: Status) -> int:
        walks.clear()
        row = task.run(add)
        assert row.status is status, row
        return len(walks)

    assert walked(Status.DONE) < columns / 4
    assert walked(Status.SKIPPED) < columns / 4
    walks.clear()
    assert bloomcli.validate(out).filters_checked == columns
    assert 0 < len(walks) < columns / 4
