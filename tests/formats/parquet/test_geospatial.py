"""`validate --deep` compares bounding boxes and types of geometries with the values, and `repair` sets them right."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, thrift
from support.patches import double
from support.thrift import Fields, Items

import bloomcli
from bloomcli.values.wkb import Shapes

GEOSPATIAL: Final = 17
NAN: Final = math.nan
AXES: Final = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")


def wkb(code: int, *numbers: float, order: str = "<") -> bytes:
    """A point, or a line of `numbers` in all."""
    axes = (2, 3, 3, 4)[code // 1000]
    count = b"" if code % 1000 == 1 else struct.pack(f"{order}I", len(numbers) // axes)
    head = struct.pack(f"{order}BI", order == "<", code)
    return head + count + struct.pack(f"{order}{len(numbers)}d", *numbers)


def parts(code: int, *items: bytes) -> bytes:
    """A collection, or a polygon of rings without their headers."""
    return struct.pack("<BII", 1, code, len(items)) + b"".join(items)


def ring(*numbers: float) -> bytes:
    return struct.pack(f"<I{len(numbers)}d", len(numbers) // 2, *numbers)


SOUND: Final = {
    "xmin": -3.0,
    "xmax": 40.0,
    "ymin": -4.0,
    "ymax": 50.0,
    "zmin": 1.0,
    "zmax": 6.0,
    "mmin": 2.0,
    "mmax": 7.0,
}
SOUND_TYPES: Final = (1, 2, 3, 7, 1001, 2001, 3002)
VALUES: Final = [
    wkb(1, NAN, NAN),
    wkb(2),
    wkb(1001, 1.0, 2.0, 6.0, order=">"),
    wkb(2001, 1.0, 2.0, 7.0),
    None,
    wkb(3002, 0.0, 0.0, 1.0, 2.0, 5.0, NAN, 3.0, 4.0),
    parts(3, ring(0, 0, 40, 50, 0, 50, 0, 0), ring()),
    parts(7, parts(4, wkb(1, -3, 0)), parts(7, parts(7), parts(6, parts(3, ring(0, -4, 1, 1, 0, 0))))),
    wkb(1, 3, 3),
    wkb(2, *range(2, 40, 1), *range(2, 40, 1)),
]


def written(values: Sequence[bytes | None], *, geography: bool = False, dictionary: bool = False) -> bytes:
    """The values in the last column of a file, with a logical type."""
    out = pa.BufferOutputStream()
    table = pa.table({"g": pa.array(values, pa.binary())})
    pq.write_table(table, out, store_schema=False, use_dictionary=dictionary, data_page_size=64, write_batch_size=2)

    def edit(metadata: Fields) -> None:
        metadata[2][1].values[1][10] = (thrift.STRUCT, {18 if geography else 17: (thrift.STRUCT, {})})
        meta = footers.meta(metadata, 0, 0)
        meta.pop(footers.STATISTICS)

    return footers.edited(out.getvalue().to_pybytes(), edit)


def claiming(data: bytes, box: dict[str, float] | None, types: Sequence[int] | None) -> bytes:
    """The file with a box and types."""

    def edit(metadata: Fields) -> None:
        claim: Fields = {}
        if box is not None:
            bounds = {
                AXES.index(name) + 1: (thrift.DOUBLE, double(value))
                for name, value in sorted(box.items(), key=lambda item: AXES.index(item[0]))
            }
            claim[1] = (thrift.STRUCT, bounds)
        if types is not None:
            claim[2] = (thrift.LIST, Items(thrift.I32, list(types)))
        meta = footers.meta(metadata, 0, 0)
        meta[GEOSPATIAL] = (thrift.STRUCT, claim)

    return footers.edited(data, edit)


def claimed(data: bytes) -> tuple[dict[str, float] | None, list[int] | None]:
    """The box and the types of a file."""
    found = footers.meta(footers.tree(data), 0, 0).get(GEOSPATIAL, (0, {}))[1]
    box = None if 1 not in found else {AXES[n - 1]: struct.unpack("<d", v)[0] for n, (_, v) in found[1][1].items()}
    return box, found[2][1].values if 2 in found else None


def messages(data: bytes, path: Path, *, deep: bool = True) -> list[tuple[str, str, str]]:
    """(rule, severity, message) of each finding."""
    path.write_bytes(data)
    report = bloomcli.validate(path, deep=deep, columns=["*"])
    return [(f.id, f.severity.name, f.message) for f in report.findings]


WRONG: Final[dict[str, tuple[dict[str, float], Sequence[int], str]]] = {
    "x is too high": (SOUND | {"xmin": 0.0}, SOUND_TYPES, "xmin is 0.0, and a coordinate is -3.0"),
    "x is too low": (SOUND | {"xmax": 39.5}, SOUND_TYPES, "xmax is 39.5, and a coordinate is 40.0"),
    "y": (SOUND | {"ymin": -3.0}, SOUND_TYPES, "ymin is -3.0, and a coordinate is -4.0"),
    "the greatest y": (SOUND | {"ymax": 49.0}, SOUND_TYPES, "ymax is 49.0, and a coordinate is 50.0"),
    "z": (SOUND | {"zmin": 2.0}, SOUND_TYPES, "zmin is 2.0, and a coordinate is 1.0"),
    "m": (SOUND | {"mmax": 6.0}, SOUND_TYPES, "mmax is 6.0, and a coordinate is 7.0"),
    "types": (SOUND, (2, 3, 7, 1001, 3002), "geospatial_types don't have 1, 2001, and values have"),
    "a box across the antimeridian": (
        SOUND | {"xmin": 20.0, "xmax": 10.0},
        SOUND_TYPES,
        "the box has x from 20.0 across the antimeridian to 10.0, and an x is 18.0",
    ),
}


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_box_is_found_and_set_right(what: str, dictionary: bool, tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "mended.parquet"
    box, types, message = WRONG[what]
    wrong = claiming(written(VALUES, dictionary=dictionary), box, types)
    assert messages(wrong, path) == [("statistics-bounds", "ERROR", message)]
    report = bloomcli.repair(path, output=out)
    changes = [(one.structure, one.action, one.reason) for one in report.structures]
    assert changes == [("geospatial_statistics", "replace", None)]
    assert claimed(out.read_bytes()) == (SOUND, list(SOUND_TYPES))
    assert messages(out.read_bytes(), out) == []


@pytest.mark.parametrize(
    ("box", "types"),
    [
        (SOUND, SOUND_TYPES),
        ({"xmin": -200.0, "xmax": 200.0, "ymin": -200.0, "ymax": 200.0}, ()),
        (None, SOUND_TYPES),
        (SOUND | {"xmin": NAN, "ymin": 9.0}, None),  # a box with NaN isn't used
        (SOUND | {"zmin": NAN, "zmax": 0.0}, None),
        ({"ymin": 9.0, "ymax": 10.0, "zmin": 9.0, "zmax": 10.0}, None),  # X is missing
        ({"xmin": 0.0, "xmax": -1.0, "ymin": -4.0, "ymax": 50.0}, None),  # all X are in it
    ],
)
def test_a_sound_box_has_no_finding(
    box: dict[str, float] | None, types: Sequence[int] | None, tmp_path: Path
) -> None:
    assert messages(claiming(written(VALUES), box, types), tmp_path / "f.parquet") == []


def test_a_box_may_cross_the_antimeridian(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = written([wkb(1, 175, 0), wkb(1, -170, 1), wkb(2, *[179, 0] * 20, *[-179, 0] * 20)])
    box = {"xmin": 175.0, "xmax": -170.0, "ymin": 0.0, "ymax": 1.0}
    assert messages(claiming(data, box, (1, 2)), path) == []
    assert len(messages(claiming(data, box | {"xmax": -175.0}, (1, 2)), path)) == 1
    assert len(messages(claiming(data, box | {"xmax": -179.5}, (1, 2)), path)) == 1


def test_a_minimum_above_the_maximum_is_found_without_the_values(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    box = SOUND | {"ymin": 60.0}
    found = messages(claiming(written(VALUES), box, SOUND_TYPES), path, deep=False)
    assert found == [("statistics-bounds", "ERROR", "ymin is above ymax")]
    empty = {"xmin": math.inf, "xmax": -math.inf, "ymin": math.inf, "ymax": -math.inf}
    for deep in (False, True):
        assert messages(claiming(written([wkb(2), None]), empty, (2,)), path, deep=deep) == []


def test_only_points_prove_the_box_of_a_geography(tmp_path: Path) -> None:
    path, out = tmp_path / "f.parquet", tmp_path / "mended.parquet"
    box = {"xmin": 0.0, "xmax": 1.0, "ymin": 0.0, "ymax": 1.0}
    points = [wkb(1, 170, 80), wkb(1, 200, -100), wkb(1, 0, 0)]  # no place of the earth is at 200, -100
    wrong = claiming(written(points, geography=True), box, (1,))
    assert [rule for rule, _, _ in messages(wrong, path)] == ["statistics-bounds"]
    bloomcli.repair(path, output=out)
    assert claimed(out.read_bytes())[0] == {"xmin": 0.0, "xmax": 170.0, "ymin": 0.0, "ymax": 80.0}
    path.write_bytes(claiming(written([*points, wkb(2, 0, 0, 10, 10)], geography=True), box, (1, 2)))
    (change,) = bloomcli.repair(path, in_place=True).structures
    assert (change.action, change.reason) == ("replace", "the vertices of a geography don't bound its edges")
    assert claimed(path.read_bytes()) == (None, [1, 2])


HOSTILE: Final = {
    "no bytes": b"",
    "another byte order": b"\2" + wkb(1, 1, 1)[1:],
    "EWKB with an SRID": struct.pack("<BIIdd", 1, 0x20000001, 4326, 9e9, 9e9),
    "EWKB with Z": struct.pack("<BIddd", 1, 0x80000001, 9e9, 9e9, 9e9),
    "a curve": struct.pack("<BII2d", 1, 8, 1, 9e9, 9e9),
    "bytes after it": wkb(1, 9e9, 9e9) + b"\0",
    "a cut point": wkb(1, 9e9, 9e9)[:-1],
    "points that aren't there": struct.pack("<BII2d", 1, 2, 0xFFFFFFFF, 9e9, 9e9),
    "rings that aren't there": struct.pack("<BII", 1, 3, 0xFFFFFFFF),
    "geometries that aren't there": struct.pack("<BII", 1, 7, 0xFFFFFFFF),
    "deep collections that are cut": struct.pack("<BII", 1, 7, 1) * 50_000,
    "coordinates before what is wrong": parts(7, wkb(1, 9e9, 9e9), b"\1\0\0\0\0"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_value_that_is_not_known_wkb_is_not_compared(what: str, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = written([*VALUES, HOSTILE[what]])
    (found,) = messages(claiming(data, SOUND, SOUND_TYPES), path)
    assert found[:2] == ("statistics-not-checked", "NOTE")
    assert "1 value can't be compared" in found[2]
    assert bloomcli.repair(path, in_place=True).structures == ()
    path.write_bytes(claiming(data, SOUND | {"xmax": 1.0}, (1,)))
    (change,) = bloomcli.repair(path, in_place=True).structures
    assert (change.action, change.reason) == ("remove", "some values aren't known WKB")
    assert GEOSPATIAL not in footers.meta(footers.tree(path.read_bytes()), 0, 0)


def test_collections_may_be_nested_deeply() -> None:
    shapes = Shapes(geographic=False)
    shapes.add(struct.pack("<BII", 1, 7, 1) * 50_000 + wkb(1, 8, 9))
    assert (shapes.unread, shapes.extent(0), shapes.extent(1), shapes.extent(2)) == (0, (8, 8), (9, 9), None)


@pytest.mark.interop
@pytest.mark.parametrize(
    ("axis", "query"),
    [
        ("x", "g && 'POINT ZM (4 7 0 0)'::GEOMETRY"),
        ("y", "st_intersects_extent(g, 'POINT (4 7)'::GEOMETRY)"),
        ("z", "vertex_extract(g, 'z') = 3"),
        ("m", "vertex_extract(g, 'm') = 4"),
        (None, "vertex_extract(g, 'z') = 3"),
    ],
)
def test_duckdb_loses_rows_by_a_wrong_box_and_finds_them_after_a_repair(
    axis: str | None, query: str, tmp_path: Path
) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    duckdb.sql(
        "COPY (SELECT ('POINT ZM('|| i % 10 || ' ' || i // 10 || ' ' || i % 7 || ' ' || i % 9 || ')')::GEOMETRY AS g"
        f" FROM range(1000) t(i)) TO '{path}' (FORMAT parquet, GEOPARQUET_VERSION 'NONE')"
    )

    def count() -> int:
        return int(duckdb.connect().sql(f"SELECT count(*) FROM '{path}' WHERE {query}").fetchall()[0][0])

    sound = count()
    assert sound > 0
    assert messages(path.read_bytes(), path) == []
    box, types = claimed(path.read_bytes())
    assert box is not None
    wrong = box if axis is None else box | {f"{axis}min": 5000.0, f"{axis}max": 6000.0}
    path.write_bytes(claiming(path.read_bytes(), wrong, [3] if axis is None else types))
    assert count() == 0
    bloomcli.repair(path, in_place=True)
    assert count() == sound
    assert claimed(path.read_bytes()) == (box, types)
