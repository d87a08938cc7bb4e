"""The golden screens of each command on terminals of 80 and 120 columns: one file per command and width."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from support import golden
from support.terminal import on_terminal, still_clock

DATA: Final = golden.ROOT / "tests" / "golden" / "screens"
WIDTHS: Final = (80, 120)
_DAYS: Final = 3
_FILES_OF_A_DAY: Final = 20

SESSIONS: Final = {
    "inspect": (
        "inspect orders.parquet",
        "inspect filtered.parquet",
        "inspect filtered.parquet --all",
        "inspect filtered.parquet -c id",
        "inspect filtered.parquet -c status",
        "inspect spark_types.parquet",
        "inspect java_types.orc",
        "inspect java_types.orc --all -c text",
        "inspect filtered.parquet -c id --pages",
        "inspect filtered.parquet -c id --indexes",
        "inspect filtered.parquet -c id --pages --indexes --schema",
        "inspect java_types.orc -c text --pages",
        "inspect java_types.orc -c text --indexes",
        "inspect java_types.orc --schema",
        "inspect draft_types.mosaic -c text --pages",
        "inspect draft_types.mosaic -c text --indexes",
        "inspect draft_types.mosaic --schema",
        "inspect draft_types.mosaic --footer",
        "inspect filtered.parquet --pages",
        "inspect lake --schema",
        "inspect draft_types.mosaic",
        "inspect damaged.parquet",
        "inspect few --jobs 1",
        "inspect lake --jobs 1",
        "inspect lake --jobs 1 --all",
        "inspect missing.parquet",
    ),
    "probe": (
        "probe filtered.parquet -c id 7",
        "probe filtered.parquet -c id 7 8 9",
        "probe filtered.parquet -c id 7 --explain",
        "probe filtered.parquet -c user.email nobody@example.org",
        "probe orders.parquet -c id 7",
        "probe java_types.orc -c text a",
        "probe draft_types.mosaic -c big 1",
        "probe few --jobs 1 -c id -v 7",
        "probe lake --jobs 1 -c id -v 7 -v -1",
        "probe lake --jobs 1 -c id -v 7 --files-with-matches",
        "probe filtered.parquet -c nothing 7",
    ),
    "advise": (
        "advise orders.parquet --jobs 1",
        "advise few --jobs 1 --readers spark --budget 2%",
        "advise lake --jobs 1 --sample 10 --queries queries.sql",
        "advise orders.parquet -c nothing",
        "advise orders.parquet --budget much",
    ),
    "find": (
        "find filtered.parquet 7 -c id --select id,status",
        "find filtered.parquet 7 8 9 -c id --format table",
        "find 7 few --jobs 1 -c id --files-only",
        "find filtered.parquet -1 -c id",
        "find 7 orders.parquet -c id --select id --format json",
        "find red java_types.orc -c label --select label,cents,moment --limit 2",
        "find 5 java_types.orc -c tags",
    ),
    "index": (
        "index build few --jobs 1 -c id,status --dry-run",
        "index build few --jobs 1 -c id,status -o few.bloom-index",
        "index inspect few.bloom-index",
        "index update few --jobs 1 -i few.bloom-index",
        "find 7 few --jobs 1 -c id --files-only --index few.bloom-index",
        "find 7 few -c price --index few.bloom-index",
        "index inspect orders.parquet",
    ),
    "add": (
        "add orders.parquet -c id,user.email --dry-run",
        "add orders.parquet -c id,user.email -o out.parquet",
        "add orders.parquet -c * -o all.parquet",
        "add filtered.parquet -c id -o again.parquet",
        "add few --jobs 1 -c id --dry-run",
        "add few -c id --jobs 1 -o out",
        "add lake -c id --jobs 1 --dry-run",
        "add orders.parquet -c id",
    ),
    "fold": (
        "fold wide.parquet --dry-run",
        "fold wide.parquet -o folded.parquet",
        "fold few --jobs 1 --dry-run",
        "fold java_types.orc -o folded.orc",
    ),
    "repair": (
        "repair polars_1.38.1_nulls.parquet --dry-run",
        "repair polars_1.38.1_nulls.parquet -o mended.parquet",
        "repair duckdb_types.parquet --add page-index -c tiny,whole -o indexed.parquet",
        "repair orders.parquet --in-place",
        "repair few --jobs 1 --add page-index --dry-run",
        "repair java_types.orc -o mended.orc",
        "repair orders.parquet --add filters --dry-run",
    ),
    "remove": (
        "remove filtered.parquet --dry-run",
        "remove filtered.parquet -o plain.parquet",
        "remove few --jobs 1 --dry-run",
    ),
    "validate": (
        "validate filtered.parquet",
        "validate filtered.parquet --deep",
        "validate filtered.parquet --require status --max-fpp 0.0001",
        "validate stray.parquet --deep",
        "validate few --jobs 1",
        "validate few --jobs 1 --require id",
        "validate lake --jobs 1 --sample 10%",
        "validate orders.parquet",
        "validate --explain",
        "validate --explain filter-stray-bits",
    ),
    "trial": (
        "trial orders.parquet -c id,user.email --readers pyarrow --runs 0",
        "trial filtered.parquet --readers pyarrow --runs 0 --values 3",
        "trial few -c id --readers pyarrow --runs 0 --sample 100%",
        "trial orders.parquet --readers pyarrow",
        "trial orders.parquet -c tags.list.element --readers pyarrow",
        "trial orders.parquet -c id --readers duckbd",
        "trial orders.parquet -c ids --readers pyarrow",
        "trial draft_types.mosaic -c big --readers pyarrow",
        "trial java_types.orc -c text --readers polars",
        "trial --table ice.db.orders -c id",
    ),
    "dump": ("dump filtered.parquet -c id --row-group 2", "dump java_types.orc -c text"),
}
"""The command lines of each file, run in the folder of `make`."""
LONG: Final = ("advise", "trial")
"""Commands that measure: their screens take seconds, so there are none at the greater width."""
CASES: Final = [
    (name, columns) for columns in WIDTHS for name in SESSIONS if name not in LONG or columns == WIDTHS[0]
]


def kept(command: str, columns: int) -> Path:
    """The file with a command's screens at a width."""
    return DATA / f"{command}.{columns}.txt"


def make(folder: Path) -> None:
    """Write the files that the commands read."""
    from bloomcli import add

    for path in (
        golden.FIXTURES / "orders.parquet",
        golden.FIXTURES / "spark_types.parquet",
        golden.FIXTURES / "duckdb_types.parquet",
        golden.WRITERS / "polars_1.38.1_nulls.parquet",
        golden.ORC / "java_types.orc",
        golden.MOSAIC / "draft_types.mosaic",
    ):
        shutil.copy(path, folder)
    orders, filtered = folder / "orders.parquet", folder / "filtered.parquet"
    add(orders, ["id", "user.email"], output=filtered)
    add(orders, ["id"], ndv=100_000, output=folder / "wide.parquet")
    bad = golden.RULE_PAIRS / "filter-stray-bits" / "broken.parquet"
    shutil.copy(bad, folder / "stray.parquet")
    (folder / "damaged.parquet").write_bytes(filtered.read_bytes()[:-9])
    (folder / "queries.sql").write_text(
        "SELECT * FROM orders WHERE id = 42; SELECT * FROM orders WHERE id IN (7, 8) AND status = 'open';"
        "SELECT * FROM orders WHERE user.email LIKE '%@example.org'; SELECT * FROM orders WHERE price > 10"
    )
    few = folder / "few"
    few.mkdir()
    for name, source in (("plain", orders), ("filtered", filtered), ("damaged", folder / "damaged.parquet")):
        shutil.copy(source, few / f"{name}.parquet")
    shutil.copy(folder / "java_types.orc", few)
    for day in range(_DAYS):
        where = folder / "lake" / "region=eu-central-1" / f"day=2026-03-{day + 1:02}"
        where.mkdir(parents=True)
        for part in range(_FILES_OF_A_DAY):
            shutil.copy(filtered if part else orders, where / f"part-{part:05}-c000.snappy.parquet")


def session(command: str, columns: int, folder: Path) -> str:
    """The screens of a command's lines at a width, run in the folder of `make`."""
    return "\n".join(_shown(line, columns, folder) for line in SESSIONS[command])


def texts() -> Iterator[tuple[Path, str]]:
    """Each golden file and its text."""
    for command, columns in CASES:
        with tempfile.TemporaryDirectory() as scratch:
            make(Path(scratch))
            yield kept(command, columns), session(command, columns, Path(scratch))


def _shown(line: str, columns: int, folder: Path) -> str:
    with still_clock():
        done = on_terminal(shlex.split(line), columns, folder=folder)
    shown = [f"$ bloom {line}", *done.out.splitlines(), *done.err.splitlines()]
    if done.code:
        shown.append(f"[exit code {done.code}]")
    text = "\n".join(shown) + "\n"

    text = re.sub(r"\d+\.\d KiB with the index", "19.7 KiB with the index", text)
    text = re.sub(r"read: \d+\.\d KiB, the\b", "read: 25.8 KiB, the", text)
    text = re.sub(r"(\.bloom-index: .*?)\d+\.\d KiB", r"\g<1>134.2 KiB", text)
    return text.replace(str(folder) + os.sep, "").replace(f"PyArrow {pa.__version__}", "PyArrow 26.0.1")
