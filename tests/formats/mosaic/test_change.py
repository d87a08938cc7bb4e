"""add, remove and fold on Mosaic files: kept bytes, places of filters, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.mosaicfiles import DRAFT, Blob, Parts, read, write

import bloomcli
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.filters import sizing

ROWS = 400
TABLE = pa.table(
    {
        "name": [f"name {i}" for i in range(ROWS)],
        "id": pa.array(range(ROWS), pa.int64()),
        "tag": [f"tag {i % 7}" for i in range(ROWS)],
        "half": pa.array([i / 2 for i in range(ROWS)], pa.float64()),
        "cents": pa.array(range(ROWS), pa.int32()).cast(pa.decimal128(12, 2)),
    }
)
SORTED = sorted(TABLE.column_names)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Four row groups of 100 rows, three buckets, no statistics."""
    return write(tmp_path / "f.mosaic", TABLE, batch=100, num_buckets=3)


def added(path: Path, *columns: str, **options: object) -> Path:
    """The file with filters on some columns."""
    out = path.with_name(f"{path.stem}+{'+'.join(columns)}.mosaic")
    bloomcli.add(path, columns, output=out, **{**DRAFT, **options})
    return out


def test_buckets_and_schema_are_copied_byte_for_byte_and_filters_follow_their_row_group(path: Path) -> None:
    before, after = Parts.of(path.read_bytes()), Parts.of(added(path, "name", "id").read_bytes())
    assert (before.version, after.version) == (1, 2)
    assert after.schema == before.schema
    assert after.compression == before.compression
    position = 0
    for old, new in zip(before.groups, after.groups, strict=True):
        assert new.rows == old.rows
        for there, here in zip(old.buckets, new.buckets, strict=True):
            assert here.offset == position
            assert (here.id, here.size, here.unpacked) == (there.id, there.size, there.unpacked)
            assert after.body[here.offset :][: here.size] == before.body[there.offset :][: there.size]
            position += here.size
        assert [blob.column for blob in new.blobs] == [SORTED.index("id"), SORTED.index("name")]
        for blob in new.blobs:
            assert blob.offset == position
            position += blob.length
    assert position == len(after.body)


def test_neither_the_order_of_changes_nor_replaced_filters_leave_a_trace(path: Path) -> None:
    both = added(path, "id", "name")
    assert added(added(path, "name"), "id").read_bytes() == both.read_bytes()
    report = bloomcli.add(both, ["name"], output=path.with_name("again"), replace=True, **DRAFT)
    assert {(c.action, c.old_bitset_bytes == c.bitset_bytes) for c in report.changes} == {("replace", True)}
    assert path.with_name("again").read_bytes() == both.read_bytes()
    bloomcli.remove(both, columns=["name"], in_place=True)
    assert both.read_bytes() == added(path, "id").read_bytes()


def test_adding_without_mosaic_draft_says_that_released_readers_refuse_version_2(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"version 2.*released Mosaic readers \(paimon-mosaic 0\.2\.0\) refuse") as e:
        bloomcli.add(path, ["id"], in_place=True)
    assert e.value.hint is not None
    assert "--mosaic-draft" in e.value.hint
    assert path.read_bytes() == before


def test_the_released_reader_refuses_a_file_with_filters(path: Path) -> None:
    with pytest.raises(RuntimeError, match="unsupported version: 2"):
        read(added(path, "id"))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kind": "both"}, "one kind of filter"), ({"variant": "parquet-2018-page"}, "one variant of filter")],
)
def test_other_formats_options_are_refused(options: dict[str, str], message: str, path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        bloomcli.add(path, ["id"], dry_run=True, **DRAFT, **options)


def test_a_type_without_filters_in_the_draft_is_named(path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"column cents is DECIMAL\(12,2\): the draft has no filters") as e:
        bloomcli.add(path, ["cents"], dry_run=True, **DRAFT)
    assert e.value.field == "schema.columns[0]"


def test_folding_shrinks_filters_without_reading_a_column(path: Path) -> None:
    big = added(path, "id", "name", ndv=10_000)
    small = path.with_name("small")
    report = bloomcli.fold(big, fpp=0.01, columns=["id"], output=small)
    assert report.bytes_decoded == 0
    assert {(c.column, c.action) for c in report.changes} == {("id", "fold")}
    sizes = {(f.column, f.bitset_bytes) for f in bloomcli.inspect(small).filters}
    assert ("name", 16384) in sizes
    assert all(size < 16384 for column, size in sizes if column == "id" and size is not None)
    assert bloomcli.validate(small, deep=True).ok
    bloomcli.remove(small, in_place=True)
    assert small.read_bytes() == path.read_bytes()


def test_filters_lying_elsewhere_and_what_lies_between_buckets_are_dealt_with(path: Path) -> None:
    """A file of another writer: all filters follow the data, and row groups have padding between them."""
    whole = Parts.of(added(path, "id").read_bytes())
    original = Parts.of(path.read_bytes())
    blobs = [whole.body[b.offset :][: b.length] for g in whole.groups for b in g.blobs]
    body, groups = b"padding", []
    for group in original.groups:
        shift = len(body) - group.buckets[0].offset
        body += b"".join(original.body[b.offset :][: b.size] for b in group.buckets) + b"gap"
        groups.append(replace(group, buckets=tuple(replace(b, offset=b.offset + shift) for b in group.buckets)))
    for ordinal, blob in enumerate(blobs):
        groups[ordinal] = replace(groups[ordinal], blobs=(Blob(SORTED.index("id"), len(body), len(blob)),))
        body += blob
    odd = path.with_name("odd.mosaic")
    odd.write_bytes(replace(whole, body=body, groups=tuple(groups)).data())
    assert bloomcli.validate(odd, deep=True).values_checked == ROWS
    moved = added(odd, "name")
    assert bloomcli.validate(moved, deep=True).values_checked == 2 * ROWS
    bloomcli.remove(moved, in_place=True)
    assert read(moved).equals(TABLE)
    again = Parts.of(moved.read_bytes())
    assert again.body == body[: len(body) - sum(map(len, blobs))]
    assert [b.offset for g in again.groups for b in g.buckets] == [b.offset for g in groups for b in g.buckets]


@pytest.mark.parametrize(("fpp", "cap"), [(0.001, None), (1e-6, None), (0.001, 64)])
def test_a_filter_that_misses_the_rate_is_built_anew_twice_as_large(
    path: Path, fpp: float, cap: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = added(path, "id", "name", fpp=fpp, max_bytes=cap)
    before = usual.read_bytes()
    monkeypatch.setattr(sizing, "upper_bound_bytes", lambda *_: 32)
    assert added(path, "id", "name", fpp=fpp, max_bytes=cap, overwrite=True).read_bytes() == before
    assert {f.fpp <= fpp for f in bloomcli.inspect(usual).filters} == {cap is None}
