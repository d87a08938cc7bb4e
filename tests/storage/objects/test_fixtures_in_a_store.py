"""Every command says of a file in an object store what it says of the same file on this machine.

The tail and the parts that are read ahead are made small, so that small files take many of them.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from support.object_stores import SCHEME, MemoryClient, MemoryObjects

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.storage import registry
from bloomcli.storage.objects import source

FIXTURES = ROOT / "fixtures"
FILES = sorted(p for suffix in ("parquet", "orc", "mosaic") for p in (FIXTURES / suffix).glob(f"*.{suffix}"))
URI = f"{SCHEME}://lake/file"
ELSEWHERE = {
    "path",
    "output",
    "seconds",
    "requests",
    "bytes_downloaded",
    "bytes_uploaded",
    "bytes_copied_by_store",
}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> MemoryClient:
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    monkeypatch.setattr(source, "TAIL_BYTES", 64)
    monkeypatch.setattr(source, "PART_BYTES", 1000)
    monkeypatch.setattr(source, "AHEAD_BYTES", 3000)
    monkeypatch.setattr(source, "IN_USE_BYTES", 4000)
    monkeypatch.setattr(source, "FINISHED_BYTES", 1000)
    monkeypatch.setattr(source, "SMALL_GAP_BYTES", 20)
    monkeypatch.setattr(source, "GAP_BYTES", 100)
    monkeypatch.setattr(source, "GAPS_BYTES", 300)
    return store.client


def outcome(run: Callable[[str], Any], path: str) -> object:
    """A report without what depends on the place, or the error."""
    try:
        report = run(path)
    except BloomError as error:
        found: object = (type(error), error.reason, error.offset, error.field, error.hint)
    else:
        found = {f.name: getattr(report, f.name) for f in dataclasses.fields(report) if f.name not in ELSEWHERE}
    return repr(found).replace(path, "PATH")


def column_of(path: Path) -> str | None:
    """The first column that can have a filter."""
    try:
        report = bloomcli.add(path, ["*"], dry_run=True, replace=True, mosaic_draft=True)
    except BloomError:
        return None
    return next((change.column for change in report.changes if change.reason is None), None)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_commands_say_the_same(client: MemoryClient, path: Path, tmp_path: Path) -> None:
    here = tmp_path / "file"
    shutil.copyfile(path, here)
    client.store(URI, path.read_bytes())
    column = column_of(path)
    commands: list[Callable[[str], Any]] = [
        bloomcli.inspect,
        lambda at: bloomcli.validate(at, deep=True),
        lambda at: bloomcli.probe(at, ["7"], explain=True),
        bloomcli.dump,
        lambda at: bloomcli.fold(at, fpp=0.4, in_place=True),
    ]
    if column is not None:
        options: dict[str, Any] = {"in_place": True, "replace": True, "mosaic_draft": True}
        commands += [
            lambda at: bloomcli.add(at, [column], **options),
            lambda at: bloomcli.validate(at, deep=True),
            lambda at: bloomcli.probe(at, ["7"], column=column),
            lambda at: bloomcli.remove(at, columns=[column], in_place=True),
        ]
    for number, command in enumerate(commands):
        assert outcome(command, URI) == outcome(command, str(here)), number
        assert client.objects[URI].data == here.read_bytes(), number
