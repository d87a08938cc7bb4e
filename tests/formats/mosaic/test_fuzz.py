"""Seeded mutations of Mosaic files: for any bytes, the only exceptions are BloomErrors, and no temporary file is
left."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT, Blob, Bucket, Group, Parts
from support.survival import Command, flipped, survives

import bloomcli

pytestmark = pytest.mark.slow

CASES_EACH = 80
INTERESTING = (0x00, 0x01, 0x0A, 0x12, 0x20, 0x7F, 0x80, 0xFF)
NUMBERS = (0, 1, 2, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
LAYOUTS = ("draft_types", "released_paged", "released_plain")

COMMANDS: tuple[Callable[[str, Path, Path], object], ...] = (
    lambda _, path, __: bloomcli.inspect(path),
    lambda _, path, __: bloomcli.validate(path, deep=True, require=["*"]),
    lambda column, path, _: bloomcli.probe(path, ["3", "-1"], column=column, explain=True),
    lambda column, path, out: bloomcli.add(path, [column], output=out, replace=True, threads=1, **DRAFT),
    lambda _, path, out: bloomcli.remove(path, output=out),
    lambda _, path, out: bloomcli.fold(path, output=out, fpp=0.5),
)


@pytest.fixture
def whole(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[bytes, str, Path]:
    """A file with filters, a column of it, a folder to work in."""
    path = MOSAIC / f"{request.param}.mosaic"
    column = {"released_plain": "oil_temperature_celsius"}.get(request.param, "whole")
    if request.param != "draft_types":
        bloomcli.add(path, [column], output=tmp_path / "whole", **DRAFT)
        path = tmp_path / "whole"
    (tmp_path / "work").mkdir()
    return path.read_bytes(), column, tmp_path / "work"


def commands(column: str) -> Callable[[int], tuple[Command, ...]]:
    """All commands for each case, on this column."""
    of_column = tuple(partial(command, column) for command in COMMANDS)
    return lambda _: of_column


@pytest.mark.parametrize("whole", LAYOUTS, indirect=True)
@pytest.mark.parametrize("where", ["metadata", "data"])
def test_only_bloom_errors_come_out_of_damaged_bytes(whole: tuple[bytes, str, Path], where: str) -> None:
    data, column, folder = whole
    schema_at = int.from_bytes(data[-24:-16], "big")
    area = (schema_at, len(data)) if where == "metadata" else (0, schema_at)
    random_ = random.Random(f"{where} {column}")
    cases = (flipped(random_, data, *area, INTERESTING) for _ in range(CASES_EACH))
    turns, refused = survives(folder, cases, commands(column))
    assert turns == CASES_EACH
    assert refused > CASES_EACH / 20


def lied(random_: random.Random, whole: Parts) -> Parts:
    """One number of the index or the footer becomes another."""
    ordinal = random_.randrange(len(whole.groups))
    group = whole.groups[ordinal]
    what: Any = random_.choice((group, whole, *group.buckets, *group.blobs))
    names = {
        Bucket: [f.name for f in fields(Bucket)],
        Blob: [f.name for f in fields(Blob)],
        Group: ["rows", "bucket_count", "blob_count"],
        Parts: ["buckets", "group_count", "schema_at", "index_at"],
    }
    name = random_.choice(names[type(what)])
    old = getattr(what, name) or 0
    value = random_.choice((max(old - 1, 0), old + 1, old * 2, old // 2, *NUMBERS, *range(20)))
    if name == "rows":
        value = min(value, 1 << 20)  # a constant column may really have as many rows as it says
    value = min(value, (1 << 32) - 1)
    if isinstance(what, Parts):
        return replace(whole, **{name: value})
    if isinstance(what, Group):
        return whole.with_group(ordinal, **{name: value})
    if isinstance(what, Bucket):
        return whole.with_bucket(ordinal, group.buckets.index(what), **{name: value})
    return whole.with_blob(ordinal, group.blobs.index(what), **{name: value})


@pytest.mark.parametrize("whole", ["released_paged", "released_plain"], indirect=True)
def test_only_bloom_errors_come_out_of_metadata_that_lies(whole: tuple[bytes, str, Path]) -> None:
    data, column, folder = whole
    random_ = random.Random(column)
    parts = Parts.of(data)
    turns, refused = survives(folder, (lied(random_, parts).data() for _ in range(CASES_EACH * 2)), commands(column))
    assert turns == CASES_EACH * 2
    assert refused > CASES_EACH / 2
