"""Commands and formats work in any store: none of them depends on the store of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from support.object_stores import SCHEME, MemoryObjects

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.storage import registry
from bloomcli.storage.base import Source
from bloomcli.storage.local import temporary

PACKAGE = ROOT / "bloomcli"


def imports(path: Path) -> Iterator[str]:
    """The imports of a module from the package."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bloomcli"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_module_above_knows_the_local_store() -> None:
    for folder in ("formats", "checks", "commands", "policy"):
        assert list((PACKAGE / folder).rglob("*.py"))
    for module in (m for f in ("formats", "checks", "commands", "policy") for m in (PACKAGE / f).rglob("*.py")):
        for name in imports(module):
            assert not name.startswith(("bloomcli.storage.local", "bloomcli.storage.arrow")), f"{module}: {name}"


def test_a_source_does_not_expose_its_store() -> None:
    assert {n for n in vars(Source) if not n.startswith("_")} == {
        "changed",
        "check_range",
        "check_unchanged",
        "close",
        "estimate",
        "fileno",
        "outline",
        "part_bytes",
        "pieces",
        "read_ahead_bytes",
        "read_at",
        "request_bytes",
        "stored",
        "tail_bytes",
        "will_read",
    }


def test_each_directory_is_swept_once_and_files_in_use_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, memory)
    for number in range(3):
        memory.client.begin(f"memory://bucket/t/{number}", alive=number == 1)
    left = tmp_path / ".a.parquet.bloom-0123456789ab.tmp"
    left.write_bytes(b"")
    swept: list[Path] = []
    real = temporary.sweep
    monkeypatch.setattr(temporary, "sweep", lambda directory: swept.append(directory) or real(directory))
    paths = [
        "memory://bucket/t/7",
        "memory://bucket/t/8",
        str(tmp_path / "b.parquet"),
        tmp_path.as_uri() + "/c.parquet",
    ]
    assert registry.sweep_for(paths).remaining == ["memory://bucket/t/1"]
    assert swept == [tmp_path]
    assert not left.exists()
    assert len(memory.client.uploads) == 1


def test_an_output_that_no_store_writes_is_refused_before_anything_is_read(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = "hdfs://node/out"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="outputs can't be written to") as caught:
        bloomcli.add(fixtures / "parquet/orders.parquet", ["id"], output=output)
    assert caught.value.path == output
    assert not list(tmp_path.iterdir())
