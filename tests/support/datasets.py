"""Small datasets with partitions, two formats, and files that have filters, are broken, or are of another kind."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

import bloomcli
from bloomcli.model.dataset import DatasetReport, FileRow

GOOD: Final = (
    "_p=1/part-0.parquet",
    "year=2023/part-0.orc",
    "year=2023/part-0.parquet",
    "year=2024/month=1/part-0.parquet",
    "year=2024/month=1/part [1].parquet",
    "year=2024/month=2/part-0.orc",
)
FILTERED: Final = ("done.orc", "done.parquet")
BROKEN: Final = ("bad/cut.parquet", "bad/empty.orc", "bad/noise.parquet")
OTHER: Final = ("notes.txt", "nothing")
HIDDEN: Final = ("_SUCCESS", ".hidden.parquet", "_temporary/0/part.parquet", "year=2023/.part-0.parquet.xyz")


def table(rows: int = 400, seed: int = 0) -> pa.Table:
    """Ids that differ between seeds, and names that repeat."""
    first = seed * 1_000_000
    return pa.table(
        {
            "id": pa.array(range(first, first + rows * 3, 3), pa.int64()),
            "name": pa.array([f"n{(i + seed) % 90}" for i in range(rows)]),
        }
    )


def write(path: Path, rows: int = 400, seed: int = 0) -> Path:
    """A Parquet or ORC file without filters, by its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".orc":
        orc.write_table(table(rows, seed), path)
    else:
        pq.write_table(table(rows, seed), path, row_group_size=max(rows // 2, 1))
    return path


def mixed(root: Path, rows: int = 400) -> Path:
    """GOOD, FILTERED, BROKEN, OTHER and HIDDEN files below a directory."""
    for seed, name in enumerate((*GOOD, *FILTERED, *BROKEN)):
        write(root / name, rows, seed)
    for name in FILTERED:
        bloomcli.add(root / name, ["id"], in_place=True)
    cut, empty, noise = (root / name for name in BROKEN)
    cut.write_bytes(cut.read_bytes()[:-100])
    empty.write_bytes(b"")
    noise.write_bytes(noise.read_bytes()[:500] + b"\xff" * 4000 + b"PAR1")
    for name in (*OTHER, *HIDDEN):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "nothing" else "of no format that bloom knows\n")
    return root


def plain(root: Path, files: int, rows: int = 400) -> Path:
    """Write this number of Parquet files without filters, in partitions."""
    for seed in range(files):
        write(root / f"part={seed % 3}" / f"{seed:03}.parquet", rows, seed)
    return root


def digests(root: Path) -> dict[str, str]:
    """Each file in a directory tree, with the digest of its bytes."""
    return {
        str(p.relative_to(root)): sha256(p.read_bytes()).hexdigest() for p in sorted(root.rglob("*")) if p.is_file()
    }


def temporary(root: Path) -> list[str]:
    """Temporary files that remain below a directory."""
    return sorted(p.name for p in root.rglob(".*.tmp"))


def without(data: pa.Table) -> pa.Table:
    """The rows in a form that is the same for both formats."""
    return data.replace_schema_metadata(None)


def read(path: Path) -> pa.Table:
    """The rows of a file, read by pyarrow."""
    return without(orc.read_table(path) if path.suffix == ".orc" else pq.ParquetFile(path).read())


def brief(report: DatasetReport, *folders: Path) -> list[FileRow]:
    """The rows without values that differ between runs: seconds and folders."""

    def named(text: str | None) -> str | None:
        for folder in folders:
            text = None if text is None else text.replace(str(folder), "")
        return text

    return [
        replace(r, seconds=0.0, path=str(named(r.path)), output=named(r.output), error=named(r.error))
        for r in report.rows
    ]


def changed(origin: Path, made: Path) -> int:
    """Files that are done."""
    before = {p.relative_to(origin): p.stat().st_size for p in origin.rglob("[0-9]*.parquet")}
    return sum((made / n).exists() and (made / n).stat().st_size > size for n, size in before.items())


def whole(made: Path, rows: int) -> int:
    """Check that each existing file has its rows and sound filters, if any. Return how many have filters."""
    done = 0
    for path in made.rglob("[0-9]*.parquet"):
        report = bloomcli.inspect(path)
        assert (report.rows, report.unreadable) == (rows, 0)
        done += bool(report.filters)
    return done
