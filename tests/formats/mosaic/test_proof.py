"""`validate` finds statistics of Mosaic files that leave values out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import bloomcli
from bloomcli.formats.mosaic.footer import Footer, Statistics
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.storage.registry import open_source

FIXTURES: Final = Path(__file__).parents[3] / "fixtures" / "mosaic"
TYPES: Final = FIXTURES / "released_types.mosaic"
"""Three row groups of 200 rows, with statistics of every type that has some."""
PROVEN: Final = ("statistics-bounds", "statistics-counts")


def check(path: Path, *, deep: bool = True) -> list[Finding]:
    """The findings about statistics of all columns."""
    return [f for f in bloomcli.validate(path, columns=["*"], deep=deep).findings if f.id in PROVEN]


def stored(path: Path) -> list[tuple[str, bool, Statistics]]:
    """Of the first row group: each column, whether its bounds have lengths before them, and its statistics."""
    with open_source(path) as source:
        footer = Footer(source)
        return [
            (footer.columns[at].name, footer.columns[at].width is None, found)
            for at, found in footer.row_groups[0].statistics.items()
        ]


COLUMNS: Final = [name for name, _, found in stored(TYPES) if found.minimum != found.maximum]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.mosaic")), ids=lambda path: path.name)
def test_files_of_the_released_writer_are_sound(path: Path) -> None:
    assert check(path) == check(path, deep=False) == []


def exchanged(column: str, target: Path, *, wide: bool) -> Path:
    """The file with another maximum of a column in the first row group: its minimum, or a text above all others."""
    (_, sized, found) = next(each for each in stored(TYPES) if each[0] == column)
    assert found.minimum is not None
    assert found.maximum is not None
    low, high = (bytes([len(b)]) + b if sized else b for b in (found.minimum, found.maximum))
    data = TYPES.read_bytes()
    at = data.index(low + high, int.from_bytes(data[-32:-24], "big"))
    new = bytes([high[0]]) + b"\xff" * (len(high) - 1) if wide else low
    target.write_bytes(data[:at] + low + new + data[at + len(low + high) :])
    return target


@pytest.mark.parametrize("column", COLUMNS)
def test_a_bound_that_leaves_values_out_is_found(tmp_path: Path, column: str) -> None:
    assert len(COLUMNS) >= 15, "every type with statistics has some"
    found = check(exchanged(column, tmp_path / "f", wide=False))
    findings = [(f.id, f.severity, f.row_group, f.column) for f in found]
    assert findings == [("statistics-bounds", Severity.ERROR, 0, column)]


@pytest.mark.parametrize("column", [name for name, sized, _ in stored(TYPES) if sized and name in COLUMNS])
def test_a_bound_that_is_too_wide_is_no_fault(tmp_path: Path, column: str) -> None:
    assert check(exchanged(column, tmp_path / "f", wide=True)) == []


def test_nulls_that_are_not_counted_are_found(tmp_path: Path) -> None:
    name, sized, found = next(each for each in stored(TYPES) if each[2].nulls and each[2].minimum)
    assert found.minimum is not None
    low = bytes([len(found.minimum)]) + found.minimum if sized else found.minimum
    data = TYPES.read_bytes()
    at = data.index(bytes([found.nulls]) + low, int.from_bytes(data[-32:-24], "big"))
    for nulls, severity in ((0, Severity.ERROR), (found.nulls + 1, Severity.NOTE)):
        path = tmp_path / "f.mosaic"
        path.write_bytes(data[:at] + bytes([nulls]) + data[at + 1 :])
        assert [(f.id, f.severity, f.row_group, f.column) for f in check(path)] == [
            ("statistics-counts", severity, 0, name)
        ]
