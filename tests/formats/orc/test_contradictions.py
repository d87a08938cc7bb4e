"""Statistics that contradict each other, or that a writer gets wrong, hide no row of an ORC file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyorc
import pytest
from support import orcfiles, orcstatistics
from support.orcfiles import File
from support.orcstatistics import FILE, GROUP

import bloomcli
from bloomcli.formats.orc import spec
from bloomcli.model.file import Presence

COLUMN: Final = 1
CHARS: Final = ["z", "z\t", "z\x01b", "z \t", "za", "a\t", "a"]
ABOVE_BMP: Final = "\U00010000"


def edited(path: Path, edit: Callable[[Any], object], also: Callable[[File], object] = lambda _: None) -> Path:
    """The file with edited statistics of the first column: those of its row group, and those of the file."""

    def change(file: File) -> None:
        orcstatistics.edit(file, COLUMN, edit, levels={GROUP, FILE})
        also(file)

    return orcfiles.edited(path, path, change)


def rows_with(path: Path, text: str) -> int:
    """The rows that `find` returns, which `probe` must not call absent."""
    found = bloomcli.find(path, [text], column="c")
    rows = sum(batch.num_rows for batch in found)
    assert not found.report.failed
    (total,) = bloomcli.probe(path, [text], column="c").totals
    assert (total.presence is Presence.ABSENT or total.stats_skipped_row_groups > 0) == (not rows)
    return rows


def chars(path: Path) -> Path:
    """Texts of a CHAR(5), some with bytes below the blank."""
    with path.open("wb") as out, pyorc.Writer(out, "struct<c:char(5)>") as writer:
        writer.writerows([(text,) for text in CHARS])
    return path


def test_bytes_that_were_compared_unsigned_are_found(tmp_path: Path) -> None:
    """As ORC C++ before 2.1 writes them where a char has no sign."""
    path = tmp_path / "f"
    with path.open("wb") as out, pyorc.Writer(out, "struct<c:tinyint>") as writer:
        writer.writerows([(-5,), (0,), (7,)])
    assert rows_with(path, "9") == 0

    def edit(statistics: Any) -> None:
        found = statistics.int_statistics
        found.minimum, found.maximum = 0, 251

    edited(path, edit)
    assert [rows_with(path, text) for text in ("-5", "0", "7")] == [1, 1, 1]


@pytest.mark.parametrize("padded", [True, False])
def test_texts_of_a_char_with_bytes_below_the_blank_are_found(tmp_path: Path, padded: bool) -> None:
    """ORC Java compares padded texts, Trino those without blanks: the one that is the least differs."""
    path = chars(tmp_path / "f")
    order = sorted(text.ljust(5) for text in CHARS) if padded else sorted(CHARS)

    def edit(statistics: Any) -> None:
        found = statistics.string_statistics
        found.minimum, found.maximum = order[0], order[-1]

    edited(path, edit)
    assert [rows_with(path, text) for text in CHARS] == [1] * len(CHARS)
    assert rows_with(path, "zz") == 0  # the bounds still exclude others


def test_bounds_of_a_char_in_the_order_of_padded_texts_are_shown(tmp_path: Path) -> None:
    path = chars(tmp_path / "f")

    def edit(statistics: Any) -> None:
        found = statistics.string_statistics
        found.minimum, found.maximum = "z\t".ljust(5), "z".ljust(5)

    edited(path, edit)
    assert [rows_with(path, text) for text in ("z", "z\t", "z\x01b", "z \t")] == [1] * 4
    (column,) = bloomcli.inspect(path, every=True).by_column
    assert (column.min, column.max, column.no_bounds) == ("z\t", "z", None)


@pytest.mark.parametrize("has_null", [False, None])
def test_a_row_group_without_values_and_without_nulls_is_read(tmp_path: Path, has_null: bool | None) -> None:
    """Hive's minor compaction writes that for row groups with values (HIVE-20604)."""
    path = orcfiles.write(tmp_path / "f", {"c": pa.array([5, 7, 9])})

    def edit(statistics: Any) -> None:
        statistics.Clear()
        statistics.number_of_values = 0
        if has_null is not None:
            statistics.has_null = has_null

    edited(path, edit)
    assert [rows_with(path, text) for text in ("5", "7", "9")] == [1, 1, 1]
    (column,) = bloomcli.inspect(path, every=True).by_column
    assert (column.values, column.nulls) == (None, None)


def test_a_row_group_of_nulls_with_bounds_is_read(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"c": pa.array([5, 7, None])})
    edited(path, lambda statistics: setattr(statistics, "number_of_values", 0))
    assert [rows_with(path, text) for text in ("5", "7")] == [1, 1]


def test_a_row_group_of_nulls_is_not_read(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"c": pa.array([None, None], pa.int64())})
    (total,) = bloomcli.probe(path, ["5"], column="c").totals
    assert total.answer is Presence.ABSENT


@pytest.mark.parametrize("bound", ["minimum", "maximum"])
def test_a_bound_beside_nan_excludes_nothing(tmp_path: Path, bound: str) -> None:
    path = orcfiles.write(tmp_path / "f", {"c": pa.array([1.0, 2.0, 3.0])})

    def edit(statistics: Any) -> None:
        found = statistics.double_statistics
        found.minimum = found.maximum = 2.0
        setattr(found, bound, math.nan)

    edited(path, edit)
    assert [rows_with(path, text) for text in ("1", "2", "3")] == [1, 1, 1]


@pytest.mark.parametrize(("writer_version", "rows"), [(0, 1), (1, 0)])
def test_bounds_of_texts_of_the_original_writer_exclude_nothing(
    tmp_path: Path, writer_version: int, rows: int
) -> None:
    """Its order of UTF-16 units puts U+10000 before U+FFFF (HIVE-8732)."""
    path = orcfiles.write(tmp_path / "f", {"c": pa.array(["a", ABOVE_BMP, "\uffff"])})

    def original(file: File) -> None:
        file.footer.writer = spec.ORC_JAVA
        file.footer.ClearField("software_version")
        file.postscript.writer_version = writer_version

    edited(path, lambda statistics: setattr(statistics.string_statistics, "maximum", "\uffff"), original)
    assert rows_with(path, ABOVE_BMP) == rows
    (column,) = bloomcli.inspect(path, every=True).by_column
    assert (column.max is None) == bool(rows)
