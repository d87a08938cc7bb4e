"""The released Mosaic package, the draft's own file and bloom: equal data, equal bits."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import blooms
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT, read, write

import bloomcli

pytestmark = pytest.mark.interop

FORMS = {"INT8": "<b", "INT16": "<h", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}
RELEASED = ("released_types", "released_paged", "released_plain", "released_empty")
FILTERABLE = ("BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT", "DOUBLE", "DATE", "STRING")


def filterable(path: Path) -> list[str]:
    """The columns that may have filters, by what `inspect` says of the schema."""
    shown = [value for name, value in bloomcli.inspect(path).details if name.startswith("column ")]
    pairs = [text.split(",")[0].split(": ") for text in shown if ": " in text]
    return [name for name, kind in pairs if kind in FILTERABLE]


@pytest.mark.parametrize("name", RELEASED)
def test_the_released_reader_reads_equal_data_after_add_and_remove(name: str, tmp_path: Path) -> None:
    path = MOSAIC / f"{name}.mosaic"
    added, removed = tmp_path / "added.mosaic", tmp_path / "removed.mosaic"
    columns = filterable(path)
    assert columns
    bloomcli.add(path, columns, output=added, **DRAFT)
    assert bloomcli.validate(added, deep=True, require=columns).findings == ()
    bloomcli.remove(added, output=removed)
    assert removed.read_bytes() == path.read_bytes()
    assert read(removed).equals(read(path))


def test_the_released_reader_reads_what_is_left_of_the_drafts_own_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="unsupported version: 2"):
        read(MOSAIC / "draft_types.mosaic")
    bloomcli.remove(MOSAIC / "draft_types.mosaic", output=tmp_path / "f.mosaic")
    table = read(tmp_path / "f.mosaic")
    source = read(MOSAIC / "released_types.mosaic", table.column_names)
    assert table.equals(source.slice(0, 400))


def test_every_bit_of_the_drafts_filters_is_that_of_the_columns_values(tmp_path: Path) -> None:
    """Built from what the released reader reads, hashed by the xxhash package, laid out in plain Python."""
    path = MOSAIC / "draft_types.mosaic"
    bloomcli.remove(path, output=tmp_path / "f.mosaic")
    table = read(tmp_path / "f.mosaic")
    facts = bloomcli.inspect(path).filters
    assert len(facts) == 18
    for fact in facts:
        part = table[fact.column].slice(fact.row_group * 200, 200).to_pylist()
        bits = bloomcli.dump(path, column=fact.column, row_group=fact.row_group).bitset
        values = [encoded(v, fact.physical) for v in part if v is not None]
        assert blooms.build(values, len(bits)) == bits, fact.column


def encoded(value: Any, physical: str) -> bytes:
    """A value's bytes as the draft hashes them."""
    if physical == "STRING":
        return str(value).encode()
    if physical == "DATE":
        return struct.pack("<i", value.toordinal() - 719163)
    return struct.pack(FORMS[physical], value)


def test_filters_that_we_fold_to_the_drafts_sizes_are_the_drafts_filters(tmp_path: Path) -> None:
    """Removed, built again at the same size, and back in the same places: the very file that the draft wrote.

    But for floating-point columns with a zero, whose other zero we put in too.
    """
    path = MOSAIC / "draft_types.mosaic"
    before = bloomcli.inspect(path).filters
    again = tmp_path / "again.mosaic"
    bloomcli.remove(path, output=again)
    for column in ("big", "day", "flag", "small", "text", "tiny", "whole", "real", "wide"):
        size = next(f.bitset_bytes for f in before if f.column == column)
        bloomcli.add(again, [column], in_place=True, ndv=10_000, max_bytes=size, **DRAFT)
    for fact in before:
        old = bloomcli.dump(path, column=fact.column, row_group=fact.row_group).bitset
        new = bloomcli.dump(again, column=fact.column, row_group=fact.row_group)
        assert new.facts.offset == fact.offset
        if fact.column in {"real", "wide"}:
            assert all(a & b == a for a, b in zip(old, new.bitset, strict=True))
        else:
            assert new.bitset == old
    assert again.stat().st_size == path.stat().st_size


def test_many_columns_and_buckets_come_back(tmp_path: Path) -> None:
    """A width for which the format is designed: 300 columns in 100 buckets."""
    table = pa.table({f"metric_{i:03}_value": pa.array(range(i, i + 40), pa.int32()) for i in range(300)})
    path = write(tmp_path / "wide.mosaic", table, batch=20)
    details = dict(bloomcli.inspect(path).details)
    assert details["buckets"] == "100"
    added = tmp_path / "added.mosaic"
    bloomcli.add(path, ["metric_*0_value"], output=added, **DRAFT)
    assert len(bloomcli.inspect(added).filters) == 60
    assert bloomcli.validate(added, deep=True).values_checked == 30 * 40
    bloomcli.remove(added, in_place=True)
    assert added.read_bytes() == path.read_bytes()
    assert json.dumps(read(added).to_pydict()) == json.dumps(table.to_pydict())
