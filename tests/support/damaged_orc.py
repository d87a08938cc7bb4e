"""Damaged ORC files, and the commands that must refuse them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import bloomcli
from bloomcli.errors import BloomError, CorruptFile
from support import orcfiles
from support.orcfiles import File


def sample(folder: Path) -> Path:
    """60 rows in 3 stripes of 2 row groups, with filters on two of three columns. Makes the folder `work`."""
    table = {"id": range(60), "text": [f"t{i}" for i in range(60)], "other": range(60)}
    orcfiles.write(folder / "plain", table, stripe=20, stride=10)
    bloomcli.add(folder / "plain", ["id", "text"], output=folder / "f")
    (folder / "work").mkdir()
    return folder / "f"


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "inspect": lambda path, _: bloomcli.inspect(path),
    "validate": lambda path, _: bloomcli.validate(path, deep=True),
    "probe": lambda path, _: bloomcli.probe(path, ["3"], column="id"),
    "dump": lambda path, _: bloomcli.dump(path, column="text"),
    "add": lambda path, out: bloomcli.add(path, ["*"], output=out, replace=True),
    "add in place": lambda path, _: bloomcli.add(path, ["other"], in_place=True),
    "remove": lambda path, out: bloomcli.remove(path, output=out),
}
CHANGES = ("add", "add in place", "remove")


def refused(data: bytes, path: Path, match: str, *names: str, error: type[BloomError] = CorruptFile) -> None:
    """Every command (or the named ones) raises an error that names the file, and leaves no other file."""
    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(data)
    for name in names or COMMANDS:
        with pytest.raises(error, match=match) as caught:
            COMMANDS[name](bad, bad.with_name("out"))
        assert caught.value.path == str(bad)
        assert bad.read_bytes() == data
        assert [p.name for p in bad.parent.iterdir()] == ["bad.orc"]


def edited(path: Path, edit: Callable[[File], object], **made_right: bool) -> bytes:
    """The edited file's bytes."""
    file = orcfiles.split(path)
    edit(file)
    return file.join(**made_right)
