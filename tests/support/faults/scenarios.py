"""Commands of bloom, and small files for them to work on."""

from __future__ import annotations

import itertools
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

import bloomcli
from support import mosaicfiles
from support import patches as at
from support.checksums import checksums
from support.encrypted import write_encrypted
from support.golden import ENGINE_FILTERS

MODE: Final = 0o640
"""Permissions of the files, different from those of a new file."""
ATTRIBUTE: Final = ("user.team", b"sales")
"""An extended attribute of the files."""
_ROWS: Final = 600


@dataclass(frozen=True)
class Scenario:
    """A command and its files. In the arguments, {root} is the files' folder."""

    name: str
    arguments: tuple[str, ...]
    make: Callable[[Path], None]
    """Fills the folder."""
    changing: bool = True
    """The command changes files; otherwise its standard output is compared."""
    code: int = 0
    """The exit code without faults."""
    slow: bool = False
    """The command starts another program, which takes most of the time."""
    report: str = ""
    """A file to which the command writes a report: after an error it has other content."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Thresholds in bloom's modules, lowered so that small files reach them; `...` removes a function of the
    system."""


def table(seed: int = 0) -> pa.Table:
    """Two columns with different values."""
    first = seed * 1_000_000
    return pa.table(
        {
            "id": pa.array(range(first, first + _ROWS * 7, 7), pa.int64()),
            "name": pa.array([f"name {(i + seed) * 31}" for i in range(_ROWS)]),
        }
    )


def _parquet(path: Path, seed: int) -> None:
    pq.write_table(table(seed), path, row_group_size=_ROWS // 2, write_page_index=True)


def _orc(path: Path, seed: int) -> None:
    orc.write_table(table(seed), path, row_index_stride=1000)


def _mosaic(path: Path, seed: int) -> None:
    mosaicfiles.write(path, table(seed), batch=_ROWS // 2)


WRITERS: Final[dict[str, Callable[[Path, int], None]]] = {"parquet": _parquet, "orc": _orc, "mosaic": _mosaic}
_ADD: Final[dict[str, Any]] = {"in_place": True, "mosaic_draft": True}


def _files(kind: str, *, filters: int = 0, sidecar: bool = False, count: int = 1) -> Callable[[Path], None]:
    """Files of a format; `filters` is the number of distinct values for their filters; 0: no filters."""

    def make(root: Path) -> None:
        for seed in range(count):
            path = root / f"part-{seed}.{kind}"
            WRITERS[kind](path, seed)
            if filters:
                bloomcli.add(path, ["id"], ndv=filters, **_ADD)
            _dress(path, sidecar=sidecar)

    return make


def _dress(path: Path, *, sidecar: bool) -> None:
    path.chmod(MODE)
    os.setxattr(path, *ATTRIBUTE)
    if sidecar:
        path.with_name(f".{path.name}.crc").write_bytes(checksums(path.read_bytes(), 512))


def _commands(kind: str) -> Iterator[tuple[str, tuple[str, ...], int]]:
    draft = ("--mosaic-draft",) if kind == "mosaic" else ()
    yield "add", ("add", "-c", "id,name", *draft), 0
    yield "remove", ("remove",), 100
    if kind != "orc":
        yield "fold", ("fold", "--fpp", "0.2"), 4000


def _changing() -> Iterator[Scenario]:
    sidecars = itertools.cycle((True, False))
    for kind in WRITERS:
        for command, arguments, filters in _commands(kind):
            sidecar = next(sidecars)
            yield Scenario(
                name=f"{command}-{kind}{'-crc' * sidecar}",
                arguments=(*arguments, f"{{root}}/part-0.{kind}", "--in-place"),
                make=_files(kind, filters=filters, sidecar=sidecar),
                slow=command == "add" and kind == "mosaic",
            )
    yield Scenario("fold-a-file-of-filters", ("fold", f"{{root}}/{_INDEXED}", "--in-place"), _paimon)


def _wrong(root: Path) -> None:
    """A file whose footer says that no id is above 7."""
    path = root / "part-0.parquet"
    _parquet(path, 0)
    path.write_bytes(at.stats("id", MAX=at.int64(7), MAX_VALUE=at.int64(7))(path.read_bytes()))
    _dress(path, sidecar=True)


def _encrypted(root: Path) -> None:
    path = write_encrypted(root / "part-0.parquet", table(), rows=_ROWS // 2, column_keys={"key": ["id", "name"]})
    _dress(path, sidecar=True)


_INDEXED: Final = "d.db/large/bucket-0/data-dfa90173-b533-4ac4-8dd2-a80de5bed9e5-0.parquet"


def _paimon(root: Path) -> None:
    """A table of Paimon's; the filters of its data file lie beside that."""
    with zipfile.ZipFile(ENGINE_FILTERS / "paimon-tables.zip") as packed:
        packed.extractall(root, [name for name in packed.namelist() if "/large/" in name])
    _dress(root / f"{_INDEXED}.index", sidecar=True)


def _without_index(root: Path) -> None:
    path = root / "part-0.parquet"
    pq.write_table(table(), path, row_group_size=_ROWS // 2)
    _dress(path, sidecar=False)


def _repairing() -> Iterator[Scenario]:
    one = "{root}/part-0.parquet"
    yield Scenario("repair-what-is-wrong", ("repair", one, "--in-place"), _wrong)
    add = ("repair", one, "--add", "page-index,statistics", "--in-place")
    yield Scenario("repair-by-adding", add, _without_index)
    yield Scenario("repair-to-a-new-file", ("repair", one, "-o", "{root}/new.parquet"), _wrong)


def _other() -> Iterator[Scenario]:
    add, one = ("add", "-c", "id"), "{root}/part-0.parquet"
    yield Scenario(
        name="add-to-a-new-file",
        arguments=(*add, one, "-o", "{root}/new.parquet"),
        make=_files("parquet", sidecar=True),
    )
    yield Scenario(
        name="add-over-another-file",
        arguments=(*add, one, "-o", "{root}/part-1.parquet", "--overwrite"),
        make=_files("parquet", sidecar=True, count=2),
    )
    yield Scenario(
        name="add-as-to-large-files",
        arguments=(*add, one, "--in-place"),
        make=_files("parquet", sidecar=True),
        constants={
            "bloomcli.storage.local.copying.DIRECT_LEAST": 4096,
            "bloomcli.storage.local.copying.STEP_BYTES": 4096,
            "bloomcli.storage.local.copying._FLUSH_BYTES": 4096,
        },
    )
    yield Scenario(
        name="add-without-copying-in-the-kernel",
        arguments=(*add, one, "--in-place"),
        make=_files("parquet", sidecar=True),
        constants={"bloomcli.storage.local.copying.READ_BYTES": 2048, "os.copy_file_range": ...},
    )
    yield Scenario(
        name="add-encrypted",
        arguments=(*add, one, "--in-place", "--kms", "support.encrypted:OpenKms"),
        make=_encrypted,
        constants={"bloomcli.formats.parquet.encryption.urandom": bytes},  # so that two runs write the same bytes
    )
    yield Scenario(
        name="add-dataset",
        arguments=(*add, "{root}", "--in-place", "--jobs", "2"),
        make=_files("parquet", sidecar=True, count=3),
    )
    yield Scenario(
        name="fold-dataset-to-a-tree",
        arguments=("fold", "--fpp", "0.2", "{root}", "-o", "{root}/_out/deep", "--jobs", "1"),
        make=_files("parquet", filters=4000, count=2),
    )


def _delta(root: Path) -> None:
    folder = root / "table"
    (folder / "_delta_log").mkdir(parents=True)
    _files("parquet")(folder)


def _iceberg(root: Path) -> None:
    (root / "data").mkdir()
    (root / "metadata").mkdir()
    (root / "metadata" / "v1.metadata.json").write_text("{}")
    _files("parquet")(root / "data")


def _reading() -> Iterator[Scenario]:
    add = ("add", "-c", "id", "--in-place")
    yield Scenario("refuse-in-a-delta-table", (*add, "{root}/table/part-0.parquet"), _delta, code=2)
    yield Scenario("refuse-in-an-iceberg-table", (*add, "{root}/data/part-0.parquet"), _iceberg, code=2)
    for kind in WRITERS:
        make, one = _files(kind, filters=100), f"{{root}}/part-0.{kind}"
        for command in (
            ("inspect", one, "-f", "json"),
            ("probe", one, "-c", "id", "7", "-f", "json"),
            ("validate", one, "--no-policy", "--deep", "-f", "json"),
            ("dump", one, "-c", "id"),
        ):
            slow = command[0] == "validate" and kind == "mosaic"
            yield Scenario(f"{command[0]}-{kind}", command, make, changing=False, slow=slow)
    three = _files("parquet", filters=100, count=3)
    yield Scenario("inspect-dataset", ("inspect", "{root}", "-f", "json", "-j", "1"), three, changing=False)
    pattern = ("inspect", "{root}/part-*.parquet", "-f", "json", "-j", "1")
    yield Scenario("inspect-pattern", pattern, three, changing=False)
    gate = ("validate", "{root}", "--no-policy", "-f", "json", "-j", "2")
    yield Scenario("validate-dataset", gate, three, changing=False)


def _with_lists(root: Path) -> None:
    """Files, and other files that options name."""
    _files("parquet", filters=100, count=2)(root)
    (root / "files.txt").write_text("".join(f"{root}/part-{n}.parquet\n" for n in (0, 1)))
    (root / "values.txt").write_text("".join(f"{n}\n" for n in range(40)))
    (root / "bloom.toml").write_text('require = ["id"]\nmax-fpp = 0.5\nreaders = ["spark"]\n')
    (root / "table.sql").write_text("create table t (id bigint, name string);\n")
    bloomcli.gate([str(root)], baseline=root / "known.json", update_baseline=True)


def _naming_files() -> Iterator[Scenario]:
    """Commands with options that name files."""
    one, form = "{root}/part-0.parquet", ("-f", "json")
    for name, command in {
        "inspect-files-from": ("inspect", "--files-from", "{root}/files.txt", "-j", "1"),
        "probe-values-from": ("probe", one, "-c", "id", "--values-from", "{root}/values.txt"),
        "validate-policy": ("validate", one, "--policy", "{root}/bloom.toml", "--table-schema", "{root}/table.sql"),
        "validate-baseline": ("validate", one, "--no-policy", "--baseline", "{root}/known.json"),
    }.items():
        yield Scenario(name, (*command, *form), _with_lists, changing=False)
    known = ("--baseline", "{root}/known.json", "--update-baseline")
    gate = ("validate", one, "--no-policy", "--require", "name")
    yield Scenario("update-baseline", (*gate, *known, *form), _with_lists)
    yield Scenario(
        "validate-report",
        ("validate", one, "--no-policy", "--report", "github={root}/report.txt", *form),
        _with_lists,
        report="report.txt",
    )


SCENARIOS: Final = {s.name: s for s in (*_changing(), *_repairing(), *_other(), *_reading(), *_naming_files())}
