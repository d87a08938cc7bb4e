"""Files that a table's log, a manifest or a summary describes aren't changed in place without --force."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support import datasets
from support.tasks import plan_tasks

import bloomcli
from bloomcli.datasets import task
from bloomcli.errors import UsageError
from bloomcli.model.dataset import Status
from bloomcli.storage.base import ManagedTable
from bloomcli.storage.listing import expand
from bloomcli.storage.managed_tables import table_above
from bloomcli.storage.registry import LOCAL


def _made(*names: str) -> Callable[[Path], None]:
    def make(root: Path) -> None:
        for name in names:
            path = root / name
            if name.endswith("/"):
                path.mkdir(parents=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("{}")

    return make


def _why(table: ManagedTable | None) -> str:
    assert table is not None
    return table.why_not_changed


GUARDS = {
    "a Delta table": _made("_delta_log/00000000000000000000.json"),
    "a Hudi table": _made(".hoodie/hoodie.properties"),
    "an Iceberg table": _made("metadata/00000-1234.metadata.json", "metadata/snap-1.avro"),
    "_metadata holds copies of the footers": _made("_metadata", "_common_metadata"),
}
HARMLESS = {
    "nothing": _made(),
    "a directory called metadata": _made("metadata/readme.txt"),
    "an empty metadata": _made("metadata/"),
    "a file called _delta_log": _made("_delta_log"),
    "a file called .hoodie": _made(".hoodie"),
    "a directory called _metadata": _made("_metadata/"),
    "a summary of the schema alone": _made("_common_metadata"),
    "metadata of something else": _made("metadata/00000-1234.json", "metadata/metadata.json.gz", "metadata/a.gz"),
    "a Delta table next to it": _made("../other/_delta_log/0.json"),
}


ICEBERG = ("v3.metadata.json", "00001-5e2f.metadata.json", "00001-5e2f.gz.metadata.json", "v3.metadata.json.gz")


@pytest.mark.parametrize("place", ["part.parquet", "data/year=2024/month=2/day=29/part.parquet"])
@pytest.mark.parametrize(
    ("words", "make"), [*GUARDS.items(), *(("an Iceberg table", _made(f"metadata/{name}")) for name in ICEBERG)]
)
def test_the_reason_names_the_table_at_any_depth(
    tmp_path: Path, words: str, make: Callable[[Path], None], place: str
) -> None:
    root = tmp_path / "table"
    _made(place)(root)
    make(root)
    reason = _why(table_above(LOCAL, str(root / place)))
    assert words in reason
    assert str(root) in reason


@pytest.mark.parametrize("words", HARMLESS)
def test_files_outside_of_tables_may_be_changed(tmp_path: Path, words: str) -> None:
    root = tmp_path / "table"
    for name in ("part.parquet", "year=2024/part.parquet"):
        _made(name)(root)
    HARMLESS[words](root)
    assert table_above(LOCAL, str(root / "part.parquet")) is None
    assert table_above(LOCAL, str(root / "year=2024/part.parquet")) is None


def test_a_file_that_a_table_has_by_a_link_is_guarded(tmp_path: Path) -> None:
    root, blobs, words = tmp_path / "table", tmp_path / "blobs", "a Delta table"
    _made("table/own", "blobs/b0")(tmp_path)
    GUARDS[words](root)
    (root / "part.parquet").symlink_to("../blobs/b0")
    (tmp_path / "last.parquet").symlink_to("table/part.parquet")
    (tmp_path / "link.parquet").symlink_to(root / "own")
    for named in (root / "part.parquet", tmp_path / "last.parquet", tmp_path / "link.parquet"):
        assert words in _why(table_above(LOCAL, str(named))), "links on the way count too"
    assert table_above(LOCAL, str(blobs / "b0")) is None


def test_a_partition_that_is_a_link_is_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, real, words = tmp_path / "table", tmp_path / "deep" / "real", "an Iceberg table"
    _made("p=1/part.parquet")(real)
    GUARDS[words](root)
    (root / "p=1").symlink_to("../deep/real/p=1")
    monkeypatch.chdir(tmp_path)
    Path("alias").symlink_to(root, target_is_directory=True)
    for named in (root / "p=1" / "part.parquet", Path("table/p=1/part.parquet"), Path("alias/p=1/part.parquet")):
        assert words in _why(table_above(LOCAL, str(named)))
    assert table_above(LOCAL, str(real / "p=1" / "part.parquet")) is None


def test_links_that_lead_relative_to_another_link_are_followed_as_the_system_does(tmp_path: Path) -> None:
    _made("a/b/target/part.parquet", "a/b/c/")(tmp_path)
    (tmp_path / "a" / "b" / "c" / "up").symlink_to("../target")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "c").symlink_to("../a/b/c")
    GUARDS["a Delta table"](tmp_path / "d" / "target")  # where a name alone would lead
    named = tmp_path / "d" / "c" / "up" / "part.parquet"
    assert named.is_file()
    assert table_above(LOCAL, str(named)) is None
    GUARDS["a Delta table"](tmp_path / "a" / "b" / "target")
    assert "a Delta table" in _why(table_above(LOCAL, str(named)))


def _changing(command: str, path: Path, **target: object) -> None:
    if command == "add":
        bloomcli.add(path, ["name"], **target)  # type: ignore[arg-type]
    elif command == "repair":
        bloomcli.repair(path, add=["page-index"], **target)  # type: ignore[arg-type]
    else:
        getattr(bloomcli, command)(path, **target)


@pytest.mark.parametrize(("command", "words"), [*zip(("add", "remove", "fold", "repair"), GUARDS, strict=True)])
def test_every_command_that_writes_is_guarded_goes_on_with_force_and_may_write_elsewhere(
    tmp_path: Path, command: str, words: str
) -> None:
    path = datasets.write(tmp_path / "table" / "part.parquet", rows=4000)
    bloomcli.add(path, ["id"], in_place=True, fpp=0.0001)
    GUARDS[words](path.parent)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="not to be changed in place") as caught:
        _changing(command, path, in_place=True)
    assert words in caught.value.reason
    assert "--force" in str(caught.value.hint)
    assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match="not to be changed in place"):
        _changing(command, path, in_place=True, dry_run=True)
    _changing(command, path, in_place=True, dry_run=True, force=True)
    with pytest.raises(UsageError, match="not to be changed in place"):
        _changing(command, path, dry_run=True)  # without an output it says what --in-place would do
    copy = tmp_path / "copy.parquet"
    _changing(command, path, dry_run=True, output=copy)
    assert path.read_bytes() == before
    _changing(command, path, output=copy)
    assert path.read_bytes() == before
    _changing(command, path, in_place=True, force=True)
    assert path.read_bytes() == copy.read_bytes() != before


def test_a_whole_table_may_be_mirrored_without_force(tmp_path: Path) -> None:
    table = tmp_path / "table"
    datasets.plain(table, 3)
    GUARDS["a Delta table"](table)
    before = datasets.digests(table)
    tasks = plan_tasks("add", expand([str(table)]), {"columns": ("id",)}, output=tmp_path / "out")
    assert [task.run(t).status for t in tasks] == [Status.DONE] * 3
    assert datasets.digests(table) == before
    assert not (tmp_path / "out" / "_delta_log").exists()
