"""Geometries and geographies in ORC files: filters of their bytes, and boxes and types compared with them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from support import orcfiles, orcstatistics
from support.orcstatistics import FILE, GROUP, LEVELS, STRIPE

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.model.file import Severity

FIXTURE: Final = Path(__file__).parents[3] / "fixtures" / "orc" / "java_geometry.orc"
ROWS: Final = 1100
LINE: Final = struct.pack("<BII4d", 1, 2, 2, -60.0, -30.0, 0.5, 0.25)
WORDS: Final = {GROUP: "the row group's", STRIPE: "the stripe's", FILE: "the file's"}


def point(n: int) -> bytes:
    return struct.pack("<BIdd", 1, 1, n % 90 - 45.0, n % 40 - 20.0)


def found(path: Path, value: bytes, column: str, **options: Any) -> list[dict[str, Any]]:
    result = bloomcli.find(path, f"0x{value.hex()}", column=column, **options)
    rows = [row["record"] for batch in result for row in batch.to_pylist()]
    assert not result.report.errors
    return rows


def test_a_value_is_its_well_known_binary(tmp_path: Path) -> None:
    probed = bloomcli.probe(FIXTURE, [f"0x{value.hex()}" for value in (LINE, point(3), point(3)[:-1])], column="g")
    assert [total.presence.name for total in probed.totals] == ["MAYBE", "MAYBE", "ABSENT"]
    assert [row["id"] for row in found(FIXTURE, LINE, "g")] == [ROWS - 50]
    rows = [n for n in range(ROWS) if point(n) == point(7)]
    assert found(FIXTURE, point(7), "h") == [
        {"g": None if n % 7 == 3 else point(n), "h": point(n), "id": n} for n in rows
    ]
    assert found(FIXTURE, point(7), "h", select=["id"]) == [{"id": n} for n in rows]
    (shown,) = [column for column in bloomcli.inspect(FIXTURE).by_column if column.column == "g"]
    assert shown.physical == "geometry"
    tree = {node.name: dict(node.attributes) for node in bloomcli.inspect(FIXTURE, schema=True).schema_tree}
    assert tree["h"] == {"crs": "OGC:CRS84", "algorithm": "SPHERICAL"}


@pytest.mark.parametrize("text", ["POINT (1 2)", "0101", "0x1g"])
def test_a_text_is_no_geometry(text: str) -> None:
    """It would be looked up as other bytes, and be absent."""
    with pytest.raises(UsageError, match=r"is not a value of column g, geometry"):
        bloomcli.probe(FIXTURE, [text], column="g")


def findings(path: Path, *, deep: bool = True) -> set[tuple[str, str, str]]:
    """(rule, severity, message) of each finding."""
    report = bloomcli.validate(path, deep=deep, columns=["*"])
    return {(f.id, f.severity.name, f.message) for f in report.findings}


def set_box(**ends: float) -> Callable[[Any], None]:
    def change(statistics: Any) -> None:
        for name, value in ends.items():
            setattr(statistics.geospatial_statistics.bbox, name, value)

    return change


def set_types(*types: int) -> Callable[[Any], None]:
    def change(statistics: Any) -> None:
        statistics.geospatial_statistics.geospatial_types[:] = types

    return change


WRONG: Final = {
    "x": (set_box(xmin=-44.0), "xmin is -44.0, and a coordinate is -"),
    "y": (set_box(ymax=10.0), "ymax is 10.0, and a coordinate is 19.0"),
    "types": (set_types(3), "geospatial_types don't have "),
}


@pytest.mark.parametrize(
    ("what", "level"), [*(("x", level) for level in LEVELS), ("y", GROUP), ("types", GROUP), ("types", STRIPE)]
)
def test_wrong_boxes_and_types_are_found(what: str, level: str, tmp_path: Path) -> None:
    change, message = WRONG[what]
    path = orcfiles.edited(
        FIXTURE, tmp_path / "f.orc", lambda file: orcstatistics.edit(file, 1, change, levels={level})
    )
    said = {text for rule, severity, text in findings(path) if (rule, severity) == ("statistics-bounds", "WARNING")}
    assert any(f"{WORDS[level]} geospatial statistics are wrong: {message}" in text for text in said), said
    assert all(WORDS[level] in text for text in said)


def test_boxes_that_claim_nothing_wrong_have_no_finding(tmp_path: Path) -> None:
    for number, change in enumerate(
        (
            set_box(xmin=-200.0, ymax=90.0, zmin=5.0, zmax=1.0 + 5),  # wider; no value has a Z
            set_box(xmin=math.nan, ymin=80.0),
            set_box(xmin=-60.0, xmax=-60.5),  # across the antimeridian: all X are in it
            set_types(),
            set_types(1, 2, 7, 1001),
            lambda statistics: statistics.ClearField("geospatial_statistics"),
        )
    ):
        path = tmp_path / f"{number}.orc"
        edit = lambda file, change=change: [orcstatistics.edit(file, 1, change)]  # noqa: E731
        orcfiles.edited(FIXTURE, path, edit)
        assert findings(path) == set(), number


def test_a_box_across_the_antimeridian_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    change = set_box(xmin=40.0, xmax=30.0)
    orcfiles.edited(FIXTURE, path, lambda file: orcstatistics.edit(file, 1, change, levels={FILE}))
    message = "the box has x from 40.0 across the antimeridian to 30.0, and an x is 39.0"
    assert {text.partition("wrong: ")[2] for _, _, text in findings(path)} == {message}


def test_an_impossible_box_is_found_without_the_values(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    orcfiles.edited(FIXTURE, path, lambda file: orcstatistics.edit(file, 1, set_box(ymin=30.0), levels={STRIPE}))
    message = "the stripe's geospatial statistics are impossible: ymin is above ymax"
    assert ("statistics-bounds", Severity.WARNING.name, message) in findings(path, deep=False)
