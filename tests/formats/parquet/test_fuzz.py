"""Seeded mutations of small files: for any bytes, the only exceptions are BloomErrors, and no temporary file is left.

Files that are written pass the deep check. `test_fuzz` also compares them with what Arrow reads, in a separate
process because such files can crash Arrow.
"""

from __future__ import annotations

import random
from functools import cache
from glob import escape
from pathlib import Path

import pyarrow as pa
import pytest
from support import footers
from support.survival import Command, flipped, survives
from support.tables import write

import bloomcli
from bloomcli.errors import BloomError

pytestmark = pytest.mark.slow

CASES_EACH = 40
INTERESTING = (0x00, 0x01, 0x0F, 0x10, 0x15, 0x19, 0x1C, 0x7F, 0x80, 0xFF)


@cache
def table() -> pa.Table:
    """Columns with different footers: statistics, nesting, zeros."""
    return pa.table(
        {
            "i": pa.array([1, None, 3] * 20, pa.int64()),
            "s": [f"s{i % 11}" for i in range(60)],
            "l": pa.array([[0.0, None], [], None] * 20, pa.list_(pa.float64())),
        }
    )


LAYOUTS: dict[str, dict[str, object]] = {
    "dictionary": {},
    "plain_v1": {"dictionary": False, "compression": "snappy"},
    "delta_v2": {
        "encoding": {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "l.list.element": "BYTE_STREAM_SPLIT"},
        "page_version": 2,
        "compression": "zstd",
    },
    "indexed": {"write_page_index": True, "store_schema": False},
}


ALWAYS: tuple[Command, ...] = (
    lambda path, _: bloomcli.inspect(path),
    lambda path, _: bloomcli.validate(path, deep=True, require=["*"]),
)
IN_TURN: tuple[Command, ...] = (
    lambda path, _: bloomcli.probe(path, ["3", "nan", "-1"], column="i", explain=True),
    lambda path, _: bloomcli.dump(path, column="s"),
    lambda path, out: bloomcli.remove(path, output=out),
    lambda path, out: bloomcli.fold(path, output=out),
)


def wrong(path: Path, columns: list[str]) -> set[tuple[str, int | None, str | None]]:
    """The rules that columns break, with their places. A file that can't be read as a whole breaks one, too: `--deep`
    decodes all indices of dictionaries, and `add` no more than it needs."""
    try:
        found = bloomcli.validate(path, columns=columns, deep=True).findings
    except BloomError as error:
        return {("unreadable", None, error.reason)}
    return {(f.id, f.row_group, f.column) for f in found if f.counts}


def stale(path: Path, columns: list[str]) -> set[tuple[str, int | None, str | None]]:
    """What is wrong in a damaged file besides filters: `add` leaves it as it is."""
    besides = ("statistics-", "page-index-", "sorting-", "size-", "unreadable")
    return {one for one in wrong(path, columns) if one[0].startswith(besides)}


@pytest.mark.parametrize(
    ("layout", "where"),
    [
        *((layout, "pages") for layout in LAYOUTS),
        ("indexed", "footer"),  # with a page index and without
        ("delta_v2", "footer"),
        ("dictionary", "filters"),  # the layout leaves no trace in filters
    ],
)
def test_only_bloom_errors_come_out_of_damaged_files(tmp_path: Path, layout: str, where: str) -> None:
    write(tmp_path / "plain", table(), rows=30, **LAYOUTS[layout])  # type: ignore[arg-type]
    bloomcli.add(tmp_path / "plain", ["*"], output=tmp_path / "whole")
    body = len(footers.split((tmp_path / "plain").read_bytes())[0])
    whole = (tmp_path / "whole").read_bytes()
    footer = len(footers.split(whole)[0])
    start, end = {"footer": (footer, len(whole)), "pages": (4, body), "filters": (body, footer)}[where]
    random_ = random.Random(f"{layout} {where}")
    added = 0

    def add(path: Path, out: Path) -> None:
        nonlocal added
        report = bloomcli.add(path, ["*"], output=out, replace=True, threads=1)
        added += 1
        columns = sorted({escape(c.column) for c in report.changes if c.reason is None})
        assert not columns or not wrong(out, columns) - stale(path, columns)

    (tmp_path / "work").mkdir()
    cases = (flipped(random_, whole, start, end, INTERESTING) for _ in range(CASES_EACH))
    turns, refused = survives(tmp_path / "work", cases, lambda turn: (*ALWAYS, add, IN_TURN[turn % len(IN_TURN)]))
    assert turns == CASES_EACH
    assert refused > CASES_EACH / 10
    assert added > CASES_EACH / 20
