"""Repeated runs: finished files aren't changed, files of another request are written again, and no other file counts
as done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from pyarrow import orc
from support import datasets, footers, orcfiles
from support.tasks import CHANGING, plan_tasks

import bloomcli
from bloomcli.datasets import task
from bloomcli.errors import UsageError
from bloomcli.formats.parquet import splice
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.formats.registry import open_file
from bloomcli.model.dataset import FileRow, Status
from bloomcli.storage.base import KeptRange
from bloomcli.storage.listing import expand
from bloomcli.storage.registry import open_source

ID = {"columns": ("id",)}
BOTH = {"columns": ("id", "name")}
ROWS = 4000
SUFFIXES = ["parquet", "orc", "mosaic"]


def one(path: Path, command: str, options: dict[str, Any], **target: Any) -> FileRow:
    """The row of one file. Mosaic's draft is always allowed."""
    if command == "add":
        options = {"mosaic_draft": True, **options}
    (row,) = (task.run(t) for t in plan_tasks(command, expand([str(path)]), options, **target))
    return row


def write(path: Path, seed: int = 0) -> Path:
    """A file of 4,000 rows in two row groups, or four stripes."""
    table = datasets.table(ROWS, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".orc":
        with orc.ORCWriter(path, stripe_size=1, row_index_stride=1000) as writer:
            writer.write(table)
    elif path.suffix == ".mosaic":
        need(find_spec("mosaic") is not None, "the paimon-mosaic package")
        from support import mosaicfiles

        mosaicfiles.write(path, table, batch=ROWS // 2)
    else:
        datasets.write(path, ROWS, seed)
    return path


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of each format."""
    return write(tmp_path / f"a.{request.param}")


def alone(path: Path, command: Callable[..., object], *arguments: Any, **options: Any) -> bytes:
    """The result of the command for a single file."""
    made = path.with_suffix(".alone")
    command(path, *arguments, output=made, overwrite=True, **options)
    return made.read_bytes()


# --- outputs


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("add", BOTH),
        ("add", {**ID, "ndv": 50_000}),
        ("add", {**ID, "max_bytes": 64, "fpp": 0.000_01}),
        ("remove", {}),
        ("fold", {}),
    ],
)
def test_an_output_of_another_order_is_made_again(path: Path, command: str, options: dict[str, Any]) -> None:
    out = path.parent / "out"
    assert one(path, "add", {**ID, "ndv": 100}, output=out).status is Status.DONE
    expected = alone(path, bloomcli.add, mosaic_draft=True, **options) if command == "add" else path.read_bytes()
    row = one(path, command, options, output=out)
    assert row.status is (Status.DONE if command == "add" else Status.SKIPPED), row.error
    assert (out / path.name).read_bytes() == expected
    inode = (out / path.name).stat().st_ino
    row = one(path, command, options, output=out)
    assert (row.status, row.reason) == (Status.SKIPPED, "the output is there already")
    assert (out / path.name).stat().st_ino == inode


def test_outputs_of_fold_are_known_by_the_rate_they_were_folded_to(tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.parquet"), tmp_path / "out"
    bloomcli.add(path, ["id", "name"], in_place=True, ndv=1_000_000)
    for options in ({"fpp": 0.3}, {}, {"columns": ("name",)}, {"max_bytes": 64}):
        assert one(path, "fold", options, output=out).status is Status.DONE
        assert (out / path.name).read_bytes() == alone(path, bloomcli.fold, **options)
        assert one(path, "fold", options, output=out).reason == "the output is there already"


def test_outputs_are_known_where_a_cut_has_moved_page_indexes_and_other_filters(
    fixtures: Path, tmp_path: Path
) -> None:
    """parquet-mr puts filters before page indexes."""
    path, out = Path(shutil.copy(fixtures / "parquet" / "spark_types.parquet", tmp_path)), tmp_path / "out"
    first, second, *_ = dict.fromkeys(f.column for f in bloomcli.inspect(path).filters)
    for options in ({"columns": (first,)}, {"columns": (second,)}, {}):
        assert one(path, "remove", options, output=out).status is Status.DONE
        assert one(path, "remove", options, output=out).reason == "the output is there already"
        assert (out / path.name).read_bytes() == alone(path, bloomcli.remove, **options)


def test_an_output_of_another_source_is_made_again_regardless_of_its_age(path: Path) -> None:
    out = path.parent / "out"
    assert one(path, "add", ID, output=out).status is Status.DONE
    before = (out / path.name).stat().st_mtime_ns
    write(path, seed=3)
    os.utime(path, ns=(before - 10**12, before - 10**12))
    assert one(path, "add", ID, output=out).status is Status.DONE
    assert (out / path.name).read_bytes() == alone(path, bloomcli.add, ["id"], mosaic_draft=True)


def damage(path: Path) -> None:
    """Make the first filter unreadable."""
    data, first = bytearray(path.read_bytes()), bloomcli.inspect(path).filters[0]
    data[first.offset : first.offset + 8] = b"\xff" * 8
    path.write_bytes(data)


def test_a_damaged_output_is_made_again(path: Path) -> None:
    out = path.parent / "out"
    assert one(path, "add", ID, output=out).status is Status.DONE
    made = (out / path.name).read_bytes()
    damage(out / path.name)
    assert one(path, "add", ID, output=out).status is Status.DONE
    assert (out / path.name).read_bytes() == made


OTHERS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_bytes(b"garbage\n"),
    "a magic number": lambda path: path.write_bytes(b"PAR1"),
    "another format": lambda path: write(path.with_suffix(".orc")).rename(path),
    "a pipe": os.mkfifo,
}


@pytest.mark.parametrize("other", OTHERS)
def test_something_else_under_an_outputs_name_is_left_and_reported(tmp_path: Path, other: str) -> None:
    path, out = write(tmp_path / "a.parquet"), tmp_path / "out" / "a.parquet"
    out.parent.mkdir()
    OTHERS[other](out)
    before = out.is_fifo() or out.read_bytes()
    row = one(path, "add", ID, output=out.parent)
    assert (row.status, row.exit_code) == (Status.FAILED, 2)
    assert (out.is_fifo() or out.read_bytes()) == before
    if other != "a pipe":
        assert row.hint == "--overwrite replaces it"
        assert "the output exists already" in str(row.error)
        assert one(path, "add", {**ID, "overwrite": True}, output=out.parent).status is Status.DONE


def test_a_rerun_reads_no_column(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = path.parent / "out"
    one(path, "add", BOTH, output=out)

    def pieces(*_: object) -> None:
        raise AssertionError("nothing is to be carried out")

    for name in ("parquet", "orc", "mosaic"):
        monkeypatch.setattr(f"bloomcli.formats.{name}.plan.AddPlan.pieces", pieces)
    assert one(path, "add", BOTH, output=out).status is Status.SKIPPED
    assert one(out / path.name, "add", BOTH, in_place=True).status is Status.SKIPPED


def test_with_replace_an_output_that_may_hold_the_old_filters_is_made_again(path: Path) -> None:
    out = path.parent / "out"
    bloomcli.add(path, ["id"], in_place=True, mosaic_draft=True, fpp=0.2)
    assert one(path, "add", ID, output=out).reason == "the columns have filters already; copied"
    again = {**ID, "replace": True, "fpp": 0.000_01}
    assert one(path, "add", {**ID, "replace": True, "fpp": 0.2}, output=out).status is Status.DONE
    assert one(path, "add", again, output=out).status is Status.DONE
    assert (out / path.name).read_bytes() == alone(path, bloomcli.add, mosaic_draft=True, **again)
    assert one(path, "add", again, output=out).status is Status.SKIPPED


def test_a_default_rate_is_held_against_our_own_filters_only(tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.parquet"), tmp_path / "out"
    one(path, "add", {**ID, "fpp": 0.5}, output=out)
    assert one(path, "add", ID, output=out).status is Status.DONE
    bloomcli.add(path, ["id"], in_place=True, fpp=0.5)
    assert one(path, "add", ID, output=out).reason == "the columns have filters already; copied"
    assert one(path, "add", ID, output=out).reason == "the output is there already"


# --- filters that are there


def exchange(path: Path) -> None:
    """Give each row group the filter of the other one: the statistics' bounds aren't in it."""
    first, second = bloomcli.inspect(path).filters
    data = path.read_bytes()
    for fact, other in ((first, second), (second, first)):
        data = footers.edited(data, footers.set_filter(fact.row_group, 0, other.offset, other.length))
    path.write_bytes(data)


def distrust(path: Path) -> None:
    """Name a writer whose filters readers don't trust."""

    def edit(file: orcfiles.File) -> None:
        file.footer.writer, file.footer.software_version = 1, "1.6.0"

    orcfiles.edited(path, path, edit)


def nothing(_: Path) -> None:
    """Leave the filters as they were added."""


DRAFTS = ("parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page")
UNFIT: dict[str, tuple[list[str], dict[str, Any], Callable[[Path], object], dict[str, Any], str]] = {
    "a higher rate": (SUFFIXES, {"fpp": 0.5}, nothing, {"fpp": 0.001}, "its false-positive rate is"),
    "fewer values": (SUFFIXES, {"ndv": 100}, nothing, {"ndv": 50_000}, "50000 values take"),
    "more bytes": (SUFFIXES, {"fpp": 0.001}, nothing, {"max_bytes": 64}, "at most 64 are requested"),
    "unreadable": (SUFFIXES, {}, damage, {}, "it can't be read"),
    "of other data": (["parquet"], {}, exchange, {}, "the filter is wrong"),
    "not trusted": (["orc"], {}, distrust, {}, "hashed values wrongly"),
    "one kind of both": (["orc"], {}, nothing, {"kind": "both"}, "there is no BLOOM_FILTER stream"),
    **{name: (["parquet"], {"variant": name}, nothing, {}, "readers must not use it") for name in DRAFTS},
}
"""Formats, the options of the filters that exist, what becomes of them, the request, and the reason why they don't
meet it."""


@pytest.mark.parametrize(("case", "suffix"), [(case, suffix) for case in UNFIT for suffix in UNFIT[case][0]])
def test_filters_that_do_not_meet_the_request_fail_the_file_and_are_replaced_on_request(
    tmp_path: Path, case: str, suffix: str
) -> None:
    _, before, change, asked, says = UNFIT[case]
    path = write(tmp_path / f"a.{suffix}")
    bloomcli.add(path, ["id"], in_place=True, mosaic_draft=True, **before)
    change(path)
    data = path.read_bytes()
    for target in ({"in_place": True}, {"output": tmp_path / "out"}):
        row = one(path, "add", {**ID, **asked}, **target)
        assert (row.status, row.exit_code) == (Status.FAILED, 2)
        assert says in str(row.error)
        assert "--replace" in str(row.hint)
        assert path.read_bytes() == data
    if case == "not trusted":
        return  # the writer stays
    if case in DRAFTS:
        assert one(path, "add", {**ID, **before}, in_place=True).status is Status.SKIPPED
        assert "is requested" in str(one(path, "add", {**ID, "variant": "parquet"}, in_place=True).error)
    assert one(path, "add", {**ID, **asked, "replace": True}, in_place=True).status is Status.DONE
    assert one(path, "add", {**ID, **asked}, in_place=True).status is Status.SKIPPED
    assert bloomcli.validate(path, deep=True, columns=["id"]).ok


def test_a_column_gets_filters_beside_untrusted_ones_of_others(tmp_path: Path) -> None:
    path, out = write(tmp_path / "a.orc"), tmp_path / "out"
    bloomcli.add(path, ["name"], in_place=True)
    distrust(path)
    assert one(path, "add", ID, output=out).status is Status.DONE
    assert one(path, "add", ID, output=out).reason == "the output is there already"
    assert one(out / path.name, "add", ID, in_place=True).status is Status.SKIPPED


def test_columns_with_filters_are_kept_and_the_others_get_some(path: Path) -> None:
    bloomcli.add(path, ["name"], in_place=True, mosaic_draft=True, fpp=0.001)
    first = [f.fill for f in bloomcli.inspect(path, columns=["name"]).filters]
    row = one(path, "add", BOTH, in_place=True)
    assert (row.status, row.columns) == (Status.DONE, 1), row.error
    assert first == [f.fill for f in bloomcli.inspect(path, columns=["name"]).filters]
    assert bloomcli.validate(path, deep=True, require=["id", "name"]).ok
    assert one(path, "add", BOTH, in_place=True).status is Status.SKIPPED
    assert one(path, "add", BOTH, output=path.parent / "out").reason == "the columns have filters already; copied"


@pytest.mark.parametrize("kept", [0, 1])
def test_row_groups_with_filters_are_kept_and_the_others_get_some(path: Path, kept: int) -> None:
    whole = alone(path, bloomcli.add, ["id"], mosaic_draft=True)
    expected = sorted(f.fill or 0 for f in bloomcli.inspect(path.with_suffix(".alone")).filters)
    path.write_bytes(without_one(path, whole, 1 - kept))
    with open_source(path) as source:
        file = open_file(source)
        assert file.without_filter(file.leaves[0]) == [1 - kept]
    for target in ({"output": path.parent / "out"}, {"in_place": True}):
        row = one(path, "add", ID, **target)
        assert (row.status, row.columns, row.error) == (Status.DONE, 1, None)
        assert row.filters == (2 if path.suffix == ".orc" else 1)
        made = Path(str(row.output))
        assert sorted(f.fill or 0 for f in bloomcli.inspect(made).filters) == expected
        assert bloomcli.validate(made, deep=True, require=["id"]).ok
        assert one(path, "add", ID, **target).status is Status.SKIPPED


def without_one(path: Path, data: bytes, ordinal: int) -> bytes:
    """The file without the filters of one row group or stripe."""
    made = path.with_suffix(".made")
    made.write_bytes(data)
    with open_source(made) as source:
        file: Any = open_file(source)
        if isinstance(file, ParquetFile):
            gone = {p for p in file.filters.filter_keys(None) if p.row_group == ordinal}
            footer = splice._without(file.footer, dict.fromkeys(gone, (splice.OFFSET, splice.LENGTH)))
            return data[: file.footer.start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        plan: Any = file.plan_remove(None)
        if file.format == "orc":
            plan.removed = {s: removed if s == ordinal else set() for s, removed in plan.removed.items()}
        else:
            plan.removed = {p for p in plan.removed if p.row_group == ordinal}
        parts = (
            p if not isinstance(p, KeptRange) else data[p.offset : p.offset + p.length] for p in plan.pieces(1, len)
        )
        return b"".join(bytes(p) for p in parts)


# --- nothing to do


@pytest.mark.parametrize("name", ["pyarrow_empty.parquet", "cpp_empty.orc", "released_empty.mosaic"])
def test_a_file_without_rows_is_left_unchanged(fixtures: Path, tmp_path: Path, name: str) -> None:
    path = Path(shutil.copy(next(fixtures.rglob(name)), tmp_path))
    inode = path.stat().st_ino
    column = first_leaf(path)
    for options in ({}, {"replace": True}):
        row = one(path, "add", {"columns": (column,), **options}, in_place=True)
        assert (row.status, row.reason) == (Status.SKIPPED, "there are no rows to filter")
    assert path.stat().st_ino == inode
    assert one(path, "add", {"columns": (column,)}, output=tmp_path / "out").reason == (
        "there are no rows to filter; copied"
    )
    assert (tmp_path / "out" / name).read_bytes() == path.read_bytes()


def first_leaf(path: Path) -> str:
    """The first leaf column."""
    with open_source(path) as source:
        return open_file(source).leaves[0].path


def test_a_file_without_a_row_index_is_none_without_rows(fixtures: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(next(fixtures.rglob("java_no_index.orc")), tmp_path))
    row = one(path, "add", {"columns": (first_leaf(path),)}, in_place=True)
    assert (row.status, row.exit_code) == (Status.FAILED, 4)


@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        ("add", {"columns": ()}, "no columns to add filters for"),
        ("add", {**ID, "fpp": 2.0}, "between 0 and 1"),
        ("fold", {"fpp": 0.0}, "between 0 and 1"),
        ("validate", {"max_fpp": 2.0}, "between 0 and 1"),
        ("validate", {"max_oversize": 0.5}, "max_oversize takes a number of 1 or more"),
        ("probe", {"values": []}, "no values to probe"),
    ],
)
def test_options_that_no_file_can_meet_are_refused_at_once(
    path: Path, command: str, options: dict[str, Any], says: str
) -> None:
    target = {"output": path.parent / "out"} if command in CHANGING else {}
    with pytest.raises(UsageError, match=says):
        plan_tasks(command, expand([str(path)]), options, **target)
    assert not (path.parent / "out").exists()
