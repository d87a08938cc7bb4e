"""Every command with more than one file: directories, patterns, lists; rows as text, JSON and CSV; exit codes."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import need
from support import datasets
from support.cli import Bloom
from support.one_process import Run, commands

import bloomcli
from bloomcli.cli.validate import FORMS

COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "inspect": ([], []),
    "probe": ([], ["-c", "id", "-v", "3"]),
    "validate": ([], []),
    "add": (["-c", "id", "--dry-run"], []),
    "remove": (["--dry-run"], []),
    "fold": (["--dry-run"], []),
}
"""Options before the paths, and what follows them."""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Six Parquet files with filters on id, in three partitions."""
    root = datasets.plain(tmp_path / "lake", 6)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True, ndv=4000)
    return root


def call(bloom: Bloom, command: str, *paths: object, form: str = "json") -> Any:
    """A command over paths; its result."""
    before, after = COMMANDS[command]
    return bloom(command, *before, *paths, *after, "--format", form)


def names(result: Any) -> list[str]:
    """The files that the rows are of."""
    return [Path(row["path"]).name for row in result.json["rows"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_directories_and_patterns(bloom: Bloom, lake: Path, command: str) -> None:
    result = call(bloom, command, lake)
    assert (result.code, result.err) == (0, "")
    kind = "validate" if command == "validate" else "dataset"
    assert (result.json["schema"], result.json["engine"]) == (f"bloom/{kind}/1", "local")
    assert result.json.get("command", command) == command
    assert names(result) == [f"{i:03}.parquet" for i in (0, 3, 1, 4, 2, 5)]
    status = {"add": "skipped", "remove": "planned", "fold": "planned"}.get(command, "done")
    assert {r["status"] for r in result.json["rows"]} == {status}
    for pattern in (lake / "part=*" / "*.parquet", lake / "**"):
        assert names(call(bloom, command, pattern)) == names(result)


@pytest.mark.parametrize("command", ["inspect", "probe"])
def test_files_come_from_lists_and_paths_and_each_once(
    bloom: Bloom, lake: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{lake}/part=1\n\n{lake}/part=0/000.parquet\r\n"
    listed = tmp_path / "list"
    listed.write_text(text)
    expected = ["001.parquet", "004.parquet", "000.parquet"]
    assert names(call(bloom, command, "--files-from", listed)) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert names(call(bloom, command, "--files-from", "-")) == expected
    if command == "inspect":
        one = f"{lake}/./part=1/001.parquet"
        assert names(call(bloom, command, lake / "part=2", one, "--files-from", listed)) == [
            f"{number:03}.parquet" for number in (2, 5, 1, 4, 0)
        ]


@pytest.fixture(scope="module", params=["utf-8:strict", "ascii"])
def encoding(request: pytest.FixtureRequest) -> str:
    """What a process writes to standard output, and what it does with text that it can't write so."""
    return str(request.param)


@pytest.fixture(scope="module")
def encoded(encoding: str) -> Iterator[Run]:
    """Commands in a process with this encoding; what they print is decoded so that each byte is a character."""
    with commands({"PYTHONIOENCODING": encoding}, encoding="latin-1") as run:
        yield run


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        *(["inspect", "--files-from", "-", "-f", form] for form in ("text", "json", "csv")),
        *(["validate", "--files-from", "-", "--require", "name", "-f", form] for form in FORMS),
    ],
    ids=lambda args: f"{args[0]}-{args[-1]}",
)
def test_names_that_the_locale_cannot_spell_are_written_in_every_form(
    lake: Path, tmp_path: Path, encoding: str, encoded: Run, args: list[str]
) -> None:
    odd = [os.fsencode(tmp_path) + name for name in (b"/\xff.parquet", "/\u2603.parquet".encode())]
    for name in odd:
        os.link(lake / "part=0" / "000.parquet", name)
    listed = tmp_path / "list"
    listed.write_bytes(b"".join(name + b"\n" for name in odd))
    done = encoded(*(str(listed) if word == "-" else word for word in args))
    out = done.out.encode("latin-1")
    assert (done.code, done.err) == (1 if args[0] == "validate" else 0, "")
    if args[-1] == "csv":
        assert b"/\xff.parquet," in out
        assert (b"/\xe2\x98\x83.parquet," if encoding == "utf-8:strict" else b"/\\u2603.parquet,") in out
    elif args[-1] == "text":
        assert b"/\\udcff.parquet" in out


def test_one_file_alone_is_no_dataset(bloom: Bloom, lake: Path) -> None:
    path = lake / "part=0" / "000.parquet"
    assert bloom("inspect", path, "-f", "json").json["schema"] == "bloom/inspect/1"
    assert bloom("inspect", path, path, "-f", "json").json["schema"] == "bloom/dataset/1"


def test_inspect_as_csv_has_a_row_a_file(bloom: Bloom, lake: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(bloom("inspect", lake, "-f", "csv").out)))
    assert len(rows) == 6
    assert {r["filters"] for r in rows} == {"2"}
    assert {r["status"] for r in rows} == {"done"}


@pytest.mark.slow
def test_add_mirrors_a_dataset_and_can_be_started_again(bloom: Bloom, tmp_path: Path) -> None:
    lake, out = datasets.mixed(tmp_path / "lake"), tmp_path / "out"
    arguments = ("add", lake, "-c", "id", "-o", out, "-j", 2, "-f", "json")
    first = bloom(*arguments)
    assert first.code == 3
    assert (first.json["done"], first.json["failed"], first.json["jobs"]) == (6, 3, 2)
    assert first.json["skipped"] == len(datasets.FILTERED) + len(datasets.OTHER)
    made = datasets.digests(out)
    assert set(made) == {*datasets.GOOD, *datasets.FILTERED}
    again = bloom(*arguments)
    assert (again.json["done"], again.json["failed"]) == (0, 3)
    assert datasets.digests(out) == made
    assert bloom(*arguments, "--overwrite").json["done"] == 6
    assert datasets.digests(out) == made


def test_remove_gives_the_dataset_back_and_fold_makes_it_smaller(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 4)
    before = datasets.digests(lake)
    assert bloom("add", lake, "-c", "id,name", "--ndv", "4000", "--in-place").code == 0
    grown = sum(p.stat().st_size for p in lake.rglob("*.parquet"))
    folded = bloom("fold", lake, "--in-place", "-f", "json")
    assert folded.json["done"] == 4
    assert sum(p.stat().st_size for p in lake.rglob("*.parquet")) < grown
    assert bloom("validate", lake, "--deep", "--require", "id,name", "--max-fpp", "1%").code == 0
    assert bloom("remove", lake, "--in-place").code == 0
    assert datasets.digests(lake) == before


def test_options_of_add_reach_the_files(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 2)
    path = next(lake.rglob("*.parquet"))
    options = ["--fpp", "0.1", "--max-bytes", "64", "--replace", "--threads", "1", "--overwrite"]
    assert bloom("add", path, "-c", "id", *options, "-o", tmp_path / "alone").code == 0
    assert bloom("add", lake, "-c", "id", *options, "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / path.relative_to(lake)).read_bytes() == (tmp_path / "alone").read_bytes()
    (lake / "_delta_log").mkdir()
    assert bloom("add", lake, "-c", "id", "--in-place").code == 2
    assert bloom("add", lake, "-c", "id", "--in-place", "--force").code == 0


def test_a_rate_is_held_against_filters_that_exist_only_where_it_is_given(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 2)
    assert bloom("add", lake, "-c", "id", "--fpp", "0.5", "--in-place").code == 0
    assert bloom("add", lake, "-c", "id", "--in-place", "-f", "json").json["skipped"] == 2
    for form in ("0.01", "1%"):
        result = bloom("add", lake, "-c", "id", "--fpp", form, "--in-place")
        assert result.code == 2
        assert "its false-positive rate is" in result.out
        assert "--replace" in result.out
    assert bloom("add", lake, "-c", "id", "--fpp", "1%", "--replace", "--in-place").code == 0
    assert bloom("add", lake, "-c", "id", "--fpp", "1%", "--in-place", "-f", "json").json["skipped"] == 2


def test_the_draft_of_mosaic_has_to_be_requested_of_datasets_too(bloom: Bloom, tmp_path: Path) -> None:
    need(find_spec("mosaic") is not None, "the paimon-mosaic package")
    from support import mosaicfiles

    (tmp_path / "lake").mkdir()
    for name in ("a", "b"):
        mosaicfiles.write(tmp_path / "lake" / f"{name}.mosaic", datasets.table())
    assert bloom("add", tmp_path / "lake", "-c", "id", "--in-place").code == 2
    assert bloom("add", tmp_path / "lake", "-c", "id", "--in-place", "--mosaic-draft").code == 0


# --- exit codes


def test_exit_codes_are_the_gravest_files(bloom: Bloom, lake: Path, fixtures: Path, tmp_path: Path) -> None:
    encrypted = fixtures / "parquet" / "pyarrow_encrypted_footer.parquet"
    missing = tmp_path / "nowhere.parquet"
    assert bloom("validate", lake).code == 0
    assert bloom("validate", lake, "--require", "name").code == 1
    assert bloom("validate", lake, "--require", "nosuch").code == 2
    assert bloom("validate", lake, encrypted, "--require", "nosuch").code == 4
    result = bloom("validate", lake, encrypted, missing, "--require", "name")
    assert result.code == 3
    assert "no such file" in result.out
    assert result.err == ""


@pytest.mark.parametrize("command", ["inspect", "add"])
def test_what_cannot_be_listed_is_a_failed_row_and_linked_directories_are_reported(
    bloom: Bloom, lake: Path, command: str
) -> None:
    (lake / "part=0" / "up").symlink_to(lake)
    listed = lake.with_name("list")
    listed.write_text(f"{lake}/part=0\n{lake}/nothing*\n")
    result = call(bloom, command, "--files-from", listed)
    assert (result.code, result.err) == (3, "")
    rows = {Path(row["path"]).name: row for row in result.json["rows"]}
    assert rows.keys() == {"000.parquet", "003.parquet", "up", "nothing*"}
    assert (rows["nothing*"]["status"], rows["nothing*"]["hint"]) == ("failed", "check it, and quote it")
    assert "the pattern matches no file" in rows["nothing*"]["error"]
    assert rows["up"]["status"] == "skipped"
    assert rows["up"]["reason"].startswith("a link to a directory")
    assert "failed" not in {rows["000.parquet"]["status"], rows["003.parquet"]["status"]}


def test_probe_exits_with_1_only_where_every_file_says_absent(bloom: Bloom, lake: Path) -> None:
    assert bloom("probe", lake, "-c", "id", "-v", "-5").code == 1
    assert bloom("probe", lake, "-c", "id", "-v", "1000003").code == 0  # in one file
    assert bloom("probe", lake, "-c", "id", "-v", "-5", "-v", "1000003").code == 0
    text = bloom("probe", lake, "-c", "id", "-v", "-5").out
    assert "-5: absent in 6 of 6 files; a reader may skip 12 of 12 row groups" in text
    datasets.write(lake / "unfiltered.parquet")
    assert bloom("probe", lake, "-c", "id", "-v", "-5").code == 1  # below the minimum
    assert bloom("probe", lake, "-c", "id", "-v", "4").code == 1  # not in its dictionary
    assert bloom("probe", lake, "-c", "id", "-v", "3").code == 0
    (lake / "bad.parquet").write_bytes(b"PAR1")
    assert bloom("probe", lake, "-c", "id", "-v", "-5").code == 3


def test_fail_fast_stops_at_the_first_failure(bloom: Bloom, tmp_path: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 6)
    (lake / "bad.parquet").write_bytes(b"\0" * (1 << 20))
    result = bloom("inspect", lake, "--fail-fast", "-j", 1, "-f", "json")
    assert result.code == 3
    assert result.json["failed"] == 1
    assert result.json["files"] < 7


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["inspect"], 2, "Missing argument 'FILE...'"),
        (["probe"], 2, "Missing argument 'PATH...'"),
        (["probe", "{lake}"], 2, "no values to probe"),
        (["inspect", "{lake}/nothing"], 2, "nothing: the directory holds no files"),
        (["inspect", "--files-from", "{lake}/empty"], 2, "the list names no files"),
        (["inspect", "--files-from", "{lake}/nowhere"], 3, "can't be read: no such file"),
        (["inspect", "{lake}/*.avro"], 3, "matches no file"),
        (["inspect", "{lake}", "--jobs", "0"], 2, "--jobs"),
        (["inspect", "{lake}", "--engine", "dask"], 2, "--engine"),
        (["inspect", "{lake}", "--conf", "spark.x"], 2, "is not KEY=VALUE"),
        (["add", "{lake}", "-c", "id"], 2, "nowhere to write to"),
        (["add", "{lake}", "-c", ",", "-o", "{lake}/out"], 2, "it names nothing"),
        (["remove", "{lake}"], 2, "nowhere to write to"),
        (["fold", "{lake}"], 2, "nowhere to write to"),
        (["add", "{lake}", "-c", "id", "-o", "{lake}/out", "--in-place"], 2, "exclude each other"),
        (["add", "{lake}", "-c", "id", "-o", "{lake}"], 2, "the output is the input"),
        (["add", "{lake}", "-c", "id", "-o", "hdfs://node/x"], 2, "can't be written to hdfs: URIs"),
        (["add", "{lake}/a/x.parquet", "-c", "id", "-o", "hdfs://node/x"], 2, "can't be written to hdfs: URIs"),
        (["add", "{lake}", "-c", "id", "-o", "file://elsewhere/x"], 2, "can't be written to another machine"),
        (["add", "{lake}/a/x.parquet", "-c", "id", "-o", "file://elsewhere/x"], 2, "written to another machine"),
        (["probe", "{lake}", "-v", "3", "-l", "-f", "json"], 2, "--files-with-matches prints paths alone"),
        (["probe", "{lake}", "-v", "3", "-l", "--explain"], 2, "--files-with-matches prints paths alone"),
        (["probe", "{lake}", "-c", "id", "-v", "3", "--explain"], 2, "--explain is for one file"),
        (["add", "{lake}/a", "{lake}/b", "-c", "id", "-o", "{lake}/out"], 2, "would both become"),
        (["inspect", "gopher://x/y/"], 4, "can't be listed here"),
        (["inspect", "{lake}/" + "x" * 300], 3, "file name too long"),
    ],
)
def test_what_is_invalid_is_said_before_any_file_is_touched(
    bloom: Bloom, tmp_path: Path, args: list[str], code: int, says: str
) -> None:
    for folder in "ab":
        datasets.write(tmp_path / folder / "x.parquet")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "_SUCCESS").touch()
    (tmp_path / "empty").write_text("\n\n")
    before = datasets.digests(tmp_path)
    result = bloom(*(a.replace("{lake}", str(tmp_path)) for a in args))
    assert result.code == code
    assert says in result.err
    assert result.out == ""
    assert "a bug" not in result.err
    assert datasets.digests(tmp_path) == before


@pytest.mark.parametrize("start", ["file:", "file://localhost"])
def test_outputs_may_be_file_uris(bloom: Bloom, lake: Path, tmp_path: Path, start: str) -> None:
    target = tmp_path / "a#1"
    one = lake / "part=1" / "001.parquet"
    assert bloom("add", one, "-c", "name", "-o", f"{start}{target}").code == 0
    assert bloomcli.validate(target, require="name").ok
    target.unlink()
    assert bloom("add", lake, "-c", "name", "-o", f"{start}{target}").code == 0
    assert len(list(target.rglob("*.parquet"))) == 6


# --- as people see it


def test_few_files_are_listed_many_are_summed_up(bloom: Bloom, lake: Path) -> None:
    few = bloom("inspect", lake).out
    assert "part=0/003.parquet" in few
    assert "inspect: 6 files: 6 done" in few
    for i in range(60):
        (lake / f"{i}.parquet").hardlink_to(lake / "part=0" / "000.parquet")
    (lake / "bad.parquet").write_bytes(b"PAR1")
    many = bloom("inspect", lake)
    assert many.code == 3
    assert "part=0" not in many.out
    assert "bad.parquet" in many.out
    assert "67 files: 66 done, 1 failed" in many.out


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("validate", "--no-policy"),
        ("add", "--columns", "id", "--in-place"),
    ],
)
def test_a_directory_without_files_is_named_where_others_have_files(
    bloom: Bloom, lake: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "not_mounted").mkdir()
    done = bloom(command[0], tmp_path / "not_mounted", lake, *command[1:])
    assert "1 file: a directory without files" in done.out
