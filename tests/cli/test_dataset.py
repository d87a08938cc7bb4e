"""Every command with more than one file: directories, patterns, lists; rows as text, JSON and CSV; exit codes."""

from __future__ import annotations

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


def test_the_draft_of_mosaic_has_to_be_requested_of_datasets_too(bloom: Bloom, tmp_path: Path) -> None:
    need(find_spec("mosaic") is not None, "the paimon-mosaic package")
    from support import mosaicfiles

    (tmp_path / "lake").mkdir()
    for name in ("a", "b"):
        mosaicfiles.write(tmp_path / "lake" / f"{name}.mosaic", datasets.table())
    assert bloom("add", tmp_path / "lake", "-c", "id", "--in-place").code == 2
    assert bloom("add", tmp_path / "lake", "-c", "id", "--in-place", "--mosaic-draft").code == 0


# --- exit codes


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


def test_a_directory_without_files_is_named_where_others_have_files(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    (tmp_path / "not_mounted").mkdir()
    for command in ("inspect", "validate"):
        assert "1 file: a directory without files" in bloom(command, tmp_path / "not_mounted", lake).out
