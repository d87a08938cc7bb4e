"""The functions add and fold on Parquet files: sizes, targets, caps, dry runs, outputs."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import blooms, footers
from support.tables import packed, write

import bloomcli
from bloomcli.errors import BloomError, UsageError
from bloomcli.filters import sizing
from bloomcli.formats.parquet.bloom_filter import CURRENT, DRAFTS

LONG = packed("<q")


def ids(rows: int, step: int = 1) -> pa.Array:
    return pa.array([i * step for i in range(rows)], pa.int64())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 300 rows in 3 row groups, with filters by bloom on `id` and `name`, and none on `price`."""
    table = {"id": ids(300), "name": [f"n{i}" for i in range(300)], "price": [i / 4 for i in range(300)]}
    write(tmp_path / "plain", table, rows=100)
    bloomcli.add(tmp_path / "plain", ["id", "name"], output=tmp_path / "f.parquet")
    return tmp_path / "f.parquet"


@pytest.mark.parametrize("fpp", [0.5, 0.01, 1e-5])
@pytest.mark.parametrize(
    ("rows", "readers", "least"),
    [(0, ("spark",), 32), (1, ("spark",), 32), *((rows, (), 64) for rows in (0, 2, 10, 100, 1000, 3000))],
)
def test_the_measured_rate_meets_the_target_at_the_smallest_size_that_does(
    tmp_path: Path, rows: int, fpp: float, readers: tuple[str, ...], least: int
) -> None:
    write(tmp_path / "in", {"c": ids(rows, 7919)}, dictionary=False)
    report = bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "out", fpp=fpp, readers=readers)
    if rows == 0:
        assert {c.bitset_bytes for c in report.changes} <= {least}
        return
    (change,) = report.changes
    bits = bloomcli.dump(tmp_path / "out").bitset
    values = [LONG(i * 7919) for i in range(rows)]
    assert bits == blooms.build(values, len(bits))
    assert change.fpp == pytest.approx(blooms.rate(bits))
    assert change.fpp is not None
    assert change.fpp <= fpp
    assert (change.bitset_bytes, change.values, change.misses_target) == (len(bits), rows, False)
    assert len(bits) >= least
    assert len(bits) == least or blooms.rate(blooms.build(values, len(bits) // 2)) > fpp
    assert report.bytes_after == (tmp_path / "out").stat().st_size


@pytest.mark.parametrize(("ndv", "fpp"), [(1, 0.1), (20, 0.01), (100, 0.1), (1000, 0.001), (100_000, 0.01)])
def test_with_ndv_the_size_is_the_formulas(tmp_path: Path, ndv: int, fpp: float) -> None:
    write(tmp_path / "in", {"c": ids(100)})
    options: dict[str, Any] = {"fpp": fpp, "ndv": ndv, "readers": ["spark"]}
    (change,) = bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "out", **options).changes
    wanted = -8 * ndv / math.log(1 - fpp ** (1 / 8)) / 8
    assert change.bitset_bytes == max(2 ** math.ceil(math.log2(wanted)), 32)
    bits = bloomcli.dump(tmp_path / "out").bitset
    assert bits == blooms.build(map(LONG, range(100)), len(bits))
    assert change.misses_target == (blooms.rate(bits) > fpp)


@pytest.mark.parametrize(("cap", "size"), [(32, 32), (63, 32), (64, 64), (1000, 512), (1 << 30, 4096)])
@pytest.mark.parametrize("ndv", [None, 2000])
def test_a_cap_is_kept_and_said_to_miss_the_target(tmp_path: Path, cap: int, size: int, ndv: int | None) -> None:
    write(tmp_path / "in", {"c": ids(2000)})
    report = bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "out", max_bytes=cap, ndv=ndv)
    (change,) = report.changes
    assert change.bitset_bytes == size
    assert change.misses_target == (blooms.rate(bloomcli.dump(tmp_path / "out").bitset) > 0.01) == (size < 4096)
    assert bloomcli.validate(tmp_path / "out", deep=True).ok


@pytest.mark.parametrize(
    ("variant", "layout"), [(CURRENT, {}), (DRAFTS[0], {"dictionary": False})], ids=["dictionary", "draft, plain"]
)
@pytest.mark.parametrize(("fpp", "cap"), [(0.01, None), (1e-6, None), (0.01, 512)])
def test_a_filter_that_misses_the_rate_is_built_anew_twice_as_large(
    tmp_path: Path, fpp: float, cap: int | None, layout: Any, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", {"c": ids(2000)}, **layout)
    options: dict[str, Any] = {"fpp": fpp, "max_bytes": cap, "variant": variant}
    usual = bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "usual", **options)
    monkeypatch.setattr(sizing, "upper_bound_bytes", lambda *_: 64)
    report = bloomcli.add(tmp_path / "in", ["c"], output=tmp_path / "out", **options)
    assert report.changes == usual.changes
    (change,) = report.changes
    assert (change.values, change.misses_target) == (2000, cap is not None)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "usual").read_bytes()


@pytest.mark.parametrize("fpp", [1e-4, 1e-6])
@pytest.mark.parametrize("count", [4013, 9856])
def test_counts_that_just_fill_a_size_meet_the_rate_in_every_row_group(
    tmp_path: Path, count: int, fpp: float
) -> None:
    numbers = pa.array(random.Random(5).sample(range(1 << 60), count * 20))
    write(tmp_path / "in", {"id": numbers}, rows=count, dictionary=False)
    report = bloomcli.add(tmp_path / "in", ["id"], output=tmp_path / "out", fpp=fpp)
    assert [c.row_group for c in report.changes if c.misses_target] == []
    assert len(report.changes) == 20
    assert bloomcli.validate(tmp_path / "out", max_fpp=fpp).ok


@pytest.mark.parametrize(
    ("options", "layout"),
    [
        ({}, {}),
        ({"ndv": 50_000}, {"compression": "zstd", "rows": 70}),
        ({"max_bytes": 128}, {"dictionary": False}),
        ({"fpp": 0.4}, {"compression": "zstd", "rows": 70}),
    ],
    ids=str,
)
def test_a_dry_run_writes_nothing_and_its_figures_are_upper_bounds(
    tmp_path: Path, layout: dict[str, Any], options: dict[str, Any]
) -> None:
    table = {
        "id": ids(500),
        "few": [f"v{i % 9}" for i in range(500)],
        "null": [None, 1.5] * 250,
        "tags": [[i, None, i + 1] if i % 3 else [] for i in range(500)],
    }
    path = write(tmp_path / "in", table, **layout)
    before = path.read_bytes()
    dry = bloomcli.add(path, ["*"], dry_run=True, **options)
    assert list(tmp_path.iterdir()) == [path]
    assert (dry.output, dry.dry_run) == (None, True)
    real = bloomcli.add(path, ["*"], output=tmp_path / "out", **options)
    assert path.read_bytes() == before
    assert [(c.row_group, c.column, c.source) for c in dry.changes] == [
        (c.row_group, c.column, c.source) for c in real.changes
    ]
    for planned, done in zip(dry.changes, real.changes, strict=True):
        assert (planned.bitset_bytes or 0) >= (done.bitset_bytes or 0)
    assert dry.bytes_after >= real.bytes_after == (tmp_path / "out").stat().st_size
    assert dry.bytes_decoded >= real.bytes_decoded > 0
    if layout.get("dictionary") is False:
        assert dry.bytes_decoded == real.bytes_decoded
    assert real.bytes_copied == len(footers.split(before)[0])


@pytest.mark.parametrize("command", ["add", "remove", "fold"])
def test_an_output_is_chosen_once_and_never_the_input_or_a_file_that_exists(path: Path, command: str) -> None:
    def run(**options: Any) -> None:
        columns = ["price" if command == "add" else "id"]
        getattr(bloomcli, command)(path, columns=columns, **({"fpp": 0.5} if command == "fold" else {}), **options)

    before = path.read_bytes()
    there = path.with_name("there")
    there.write_bytes(b"precious")
    for options, message in (
        ({}, "nowhere to write to"),
        ({"output": there, "in_place": True}, "exclude each other"),
        ({"output": path}, "the output is the input"),
        ({"output": path.parent}, "is a directory"),
        ({"output": there}, "exists"),
    ):
        with pytest.raises(UsageError, match=message):
            run(**options)
    with pytest.raises(BloomError):
        run(output=path.parent / "no" / "such" / "folder")
    assert (path.read_bytes(), there.read_bytes()) == (before, b"precious")
    run(output=there, overwrite=True)
    assert bloomcli.validate(there, deep=True).ok
    run(in_place=True)
    assert path.read_bytes() == there.read_bytes() != before


@pytest.mark.parametrize(
    ("options", "message"),
    [({"fpp": 0}, "between 0 and 1"), ({"fpp": 1}, "between 0 and 1"), ({"fpp": math.nan}, "between 0 and 1"),
     ({"ndv": 0}, "1 or more"), ({"max_bytes": 31}, "32 bytes or more"), ({"columns": []}, "no columns")],
    ids=str,
)  # fmt: skip
def test_figures_that_make_no_sense_are_refused(path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.add(path, **{"columns": ["price"], "dry_run": True, **options})


@pytest.mark.parametrize("fpp", [0.2, 0.01, 0.0001])
def test_folding_gives_the_file_that_a_fresh_add_would_have_given(tmp_path: Path, fpp: float) -> None:
    write(tmp_path / "in", {"id": ids(900, 11), "s": [f"s{i}" for i in range(900)]}, rows=300)
    bloomcli.add(tmp_path / "in", ["*"], output=tmp_path / "large", ndv=100_000)
    report = bloomcli.fold(tmp_path / "large", output=tmp_path / "folded", fpp=fpp)
    bloomcli.add(tmp_path / "in", ["*"], output=tmp_path / "fresh", fpp=fpp)
    assert (tmp_path / "folded").read_bytes() == (tmp_path / "fresh").read_bytes()
    assert {c.action for c in report.changes} == {"fold"}
    assert {c.old_bitset_bytes for c in report.changes} == {1 << 17}
    assert all(c.fpp is not None and c.fpp <= fpp for c in report.changes)
    assert (report.bytes_decoded, report.bytes_before) == (0, (tmp_path / "large").stat().st_size)
    dry = bloomcli.fold(tmp_path / "large", fpp=fpp, dry_run=True)
    assert dry.changes == report.changes
    assert dry.bytes_after >= report.bytes_after
