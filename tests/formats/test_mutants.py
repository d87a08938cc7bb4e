"""Seeded mutants of small ORC and Mosaic files: the only exceptions are BloomErrors, and no temporary file is left.

`test_fuzz` tries every fixture with the same mutations, under limits, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import orcfiles
from support.fuzzing import mutated
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT
from support.survival import Command, survives

import bloomcli

pytestmark = pytest.mark.slow

CASES_EACH = 60
TABLE: dict[str, list[Any]] = {
    "i": [1, None, 3] * 10,
    "s": [f"s{i % 11}" for i in range(30)],
    "d": [0.0, None, 1.5] * 10,
    "l": [[1, None], [], None] * 10,
    "st": [{"x": "a"}, None, {"x": None}] * 10,
}


def orc(**layout: Any) -> Callable[[Path], Path]:
    """A file with filters of both kinds on columns whose footers and statistics differ."""

    def make(folder: Path) -> Path:
        orcfiles.write(folder / "plain", TABLE, **layout)
        bloomcli.add(folder / "plain", ["i", "s", "d", "l._elem"], output=folder / "whole", kind="both")
        return folder / "whole"

    return make


def mosaic(name: str, column: str) -> Callable[[Path], Path]:
    """A fixture with filters."""

    def make(folder: Path) -> Path:
        bloomcli.add(MOSAIC / f"{name}.mosaic", [column], output=folder / "whole", replace=True, **DRAFT)
        return folder / "whole"

    return make


def found(path: Path, values: list[str], column: str) -> None:
    """Find rows. Faults of the file are in the report, and aren't raised."""
    search = bloomcli.find(path, values, column=column, jobs=1)
    rows = sum(batch.num_rows for batch in search)
    assert rows == search.report.rows
    assert all(error.error for error in search.report.errors)


def commands(column: str, *others: Command) -> Callable[[int], tuple[Command, ...]]:
    """For each turn: commands of which all run, and one of those that take turns."""
    always: tuple[Command, ...] = (
        lambda path, _: bloomcli.inspect(path),
        lambda path, _: bloomcli.validate(path, deep=True, require=["*"]),
        lambda path, _: bloomcli.probe(path, ["3", "-1"], column=column, explain=True),
        lambda path, out: bloomcli.add(path, [column], output=out, replace=True, threads=1, **DRAFT),
    )
    in_turn = (
        lambda path, _: found(path, ["3", "1"], column),
        lambda path, out: bloomcli.remove(path, output=out),
        lambda path, _: bloomcli.dump(path, column=column),
        *others,
    )
    return lambda turn: (*always, in_turn[turn % len(in_turn)])


ORC: tuple[Command, ...] = (
    lambda path, _: found(path, ["s3", "s7"], "s"),
    lambda path, _: found(path, ["1"], "l._elem"),
    lambda path, _: bloomcli.probe(path, ["0", "nan"], column="d"),
    lambda path, out: bloomcli.add(path, ["s", "l._elem"], output=out, replace=True),
    lambda path, out: bloomcli.add(path, ["st.x"], output=out, kind="both"),
)
FOLD: Command = lambda path, out: bloomcli.fold(path, output=out, fpp=0.5)  # noqa: E731
FILES: dict[str, tuple[str, Callable[[Path], Path], Callable[[int], tuple[Command, ...]]]] = {
    "ORC, stripes of row groups": (".orc", orc(stripe=16, stride=7), commands("i", *ORC)),
    "ORC, compressed": (".orc", orc(compression="zlib", stride=10), commands("i", *ORC)),
    "ORC, dictionaries": (
        ".orc",
        orc(compression="snappy", stride=40, dictionary_key_size_threshold=1.0),
        commands("s", *ORC),
    ),
    "Mosaic by the draft's writer": (".mosaic", mosaic("draft_types", "whole"), commands("whole", FOLD)),
    "Mosaic, paged buckets": (".mosaic", mosaic("released_paged", "whole"), commands("whole", FOLD)),
    "Mosaic, plain": (
        ".mosaic",
        mosaic("released_plain", "oil_temperature_celsius"),
        commands("oil_temperature_celsius", FOLD),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_only_bloom_errors_come_out_of_mutants(name: str, tmp_path: Path) -> None:
    suffix, make, of_turn = FILES[name]
    whole = make(tmp_path).read_bytes()
    (tmp_path / "work").mkdir()
    cases = (mutated(whole, suffix, f"{name} {number}")[0] for number in range(CASES_EACH))
    turns, refused = survives(tmp_path / "work", cases, of_turn)
    assert turns == CASES_EACH
    assert refused > CASES_EACH / 20
