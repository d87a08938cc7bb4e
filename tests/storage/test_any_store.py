"""Commands and formats work in any store: none of them depends on the store of a file."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from support.cli import Bloom
from support.memory_store import SCHEME, MemoryStore

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.storage import registry
from bloomcli.storage.arrow_store import ArrowStore
from bloomcli.storage.base import Source
from bloomcli.storage.local import temporary

PACKAGE = ROOT / "bloomcli"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store whose URIs the registry finds."""
    store = MemoryStore()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    return store


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


def test_an_output_may_have_another_path_in_the_same_store(memory: MemoryStore, fixtures: Path) -> None:
    original = (fixtures / "parquet/orders.parquet").read_bytes()
    memory.put("memory://bucket/a", original)
    report = bloomcli.add("memory://bucket/a", ["id"], output="memory://bucket/b")
    assert report.output == "memory://bucket/b"
    assert memory.objects["memory://bucket/a"].data == original
    assert bloomcli.validate("memory://bucket/b", deep=True).ok
    with pytest.raises(UsageError, match="exists already"):
        bloomcli.add("memory://bucket/a", ["id"], output="memory://bucket/b")
    with pytest.raises(UsageError, match="is the input"):
        bloomcli.add("memory://bucket/a", ["id"], output="memory://bucket/a")


def test_a_table_in_a_store_keeps_its_files_from_being_changed_in_place(memory: MemoryStore, fixtures: Path) -> None:
    memory.put("memory://bucket/t/p=1/a", (fixtures / "parquet/orders.parquet").read_bytes())
    memory.put("memory://bucket/t/_delta_log/0.json", b"{}")
    with pytest.raises(UsageError, match="is a Delta table"):
        bloomcli.add("memory://bucket/t/p=1/a", ["id"], in_place=True)
    assert bloomcli.add("memory://bucket/t/p=1/a", ["id"], in_place=True, force=True).output


def test_a_tables_schema_may_be_in_a_store(
    memory: MemoryStore, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bloom: Bloom
) -> None:
    monkeypatch.chdir(tmp_path)
    memory.put("memory://bucket/lake/a.parquet", (fixtures / "parquet/orders.parquet").read_bytes())
    memory.put("memory://bucket/schemas/t.sql", b"id BIGINT")
    memory.put("memory://bucket/lake/bloom.toml", b'readers = ["trino"]\ntable-schema = "../schemas/t.sql"\n')
    lake = "memory://bucket/lake/a.parquet"
    assert bloom("validate", lake, "--policy", "memory://bucket/lake/bloom.toml").code == 0
    made = bloom("validate", lake, "--init", "--readers", "trino", "--table-schema", "memory://bucket/schemas/t.sql")
    assert made.out.endswith(f"wrote bloom.toml; now: bloom validate {lake} --policy bloom.toml\n")
    assert bloom("validate", lake, "--policy", "bloom.toml").code == 0


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (bloomcli.remove, {}),
        (bloomcli.fold, {}),
        (lambda path, **how: bloomcli.add(path, ["id"], **how), {"dry_run": True}),
    ],
    ids=["remove", "fold", "add"],
)
def test_a_file_that_is_only_read_is_changed_by_no_command(
    command: Callable[..., object],
    options: dict[str, Any],
    fixtures: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders").write_bytes((fixtures / "parquet/orders.parquet").read_bytes())
    monkeypatch.setitem(registry.known_stores(), "arrow", _OfFiles())
    uri = Path("orders").absolute().as_uri().replace("file:", "arrow:")
    assert bloomcli.inspect(uri).format == "parquet"
    with pytest.raises(UsageError, match="URIs can be read, but not changed") as caught:
        command(uri, in_place=True, **options)
    assert caught.value.hint == "-o writes a changed copy"
    assert [p.name for p in tmp_path.iterdir()] == ["orders"]


def test_a_changed_copy_of_a_file_that_is_only_read_can_be_written_here(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.known_stores(), "arrow", _OfFiles())
    path = fixtures / "parquet/orders.parquet"
    uri, output = path.absolute().as_uri().replace("file:", "arrow:"), tmp_path / "out.parquet"
    expected = tmp_path / "expected.parquet"
    bloomcli.add(path, ["id"], output=expected)
    assert bloomcli.add(uri, ["id"], dry_run=True).dry_run
    assert bloomcli.add(uri, ["id"], output=output).output == str(output)
    assert output.read_bytes() == expected.read_bytes()
    umask = os.umask(0)
    os.umask(umask)
    assert output.stat().st_mode & 0o777 == 0o666 & ~umask, "as any new file: the store has no mode to take over"


class _OfFiles(ArrowStore):
    """pyarrow's file system of this machine, by a scheme that isn't taken for a local path."""

    def open(self, path: str) -> Source:
        return super().open(path.replace("arrow:", "file:"))


def test_an_output_may_be_a_file_uri(fixtures: Path, tmp_path: Path) -> None:
    output = tmp_path / "with space"
    report = bloomcli.add(fixtures / "parquet/orders.parquet", ["id"], output=f"file:{output}")
    assert report.output == str(output)
    assert bloomcli.validate(output, deep=True).ok


def test_each_directory_is_swept_once_and_files_in_use_are_named(
    memory: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        memory.begin(f"memory://bucket/t/{number}", alive=number == 1)
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
    assert len(memory.uploads) == 1


def test_an_output_that_no_store_writes_is_refused_before_anything_is_read(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = "hdfs://node/out"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="outputs can't be written to") as caught:
        bloomcli.add(fixtures / "parquet/orders.parquet", ["id"], output=output)
    assert caught.value.path == output
    assert not list(tmp_path.iterdir())
