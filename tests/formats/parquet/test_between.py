"""Filters that another writer put between row groups: bloom reads and removes them, but their bytes stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from support import thrift
from support.footers import (
    BLOOM_FILTER_OFFSET,
    DATA_PAGE_OFFSET,
    ROW_GROUPS,
    SIGNED_BY,
    join,
    meta,
    split,
    tree,
    with_encrypted,
)
from support.thrift import Fields

import bloomcli

ROOT = Path(__file__).parents[3]


def test_filters_between_row_groups_are_forgotten_but_their_bytes_stay(tmp_path: Path) -> None:
    """Two row groups; the first one's filter precedes the second one's pages, as arrow-rs writes it."""
    path, moved, out = (tmp_path / f"{n}.parquet" for n in ("plain", "moved", "out"))
    pq.write_table(pa.table({"i": list(range(200))}), path, row_group_size=100, use_dictionary=False)
    bloomcli.add(path, ["i"], output=moved, fpp=0.01)
    data = moved.read_bytes()
    first = bloomcli.inspect(moved).filters[0]
    assert first.length is not None
    start = pq.ParquetFile(moved).metadata.row_group(1).column(0).data_page_offset
    blob = data[first.offset : first.offset + first.length]

    def shift(metadata: Fields) -> None:
        meta(metadata, 0, 0)[BLOOM_FILTER_OFFSET] = (thrift.I64, start)
        second = meta(metadata, 1, 0)
        second[DATA_PAGE_OFFSET] = (thrift.I64, start + len(blob))
        # the second filter starts where it did: one filter's bytes went in before it, and out before it
        group = metadata[ROW_GROUPS][1].values[1]
        if 5 in group:
            group[5] = (thrift.I64, group[5][1] + len(blob))

    body, _ = split(data)
    between = body[:start] + blob + body[start : first.offset] + body[first.offset + first.length :]
    moved.write_bytes(join(between, thrift.encode(_edited(data, shift))))
    assert bloomcli.validate(moved, deep=True).findings == ()
    report = bloomcli.remove(moved, output=out)
    assert report.bytes_unreclaimed == len(blob)
    assert bloomcli.inspect(out).filters == ()
    assert pq.read_table(out).equals(pq.read_table(path))
    assert report.bytes_after == out.stat().st_size


def test_the_bits_that_an_encrypted_column_gave_away_are_overwritten_where_they_have_to_stay(tmp_path: Path) -> None:
    """arrow-rs writes filters of encrypted columns in plain text; those between row groups can't be cut out."""
    path, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    original = (ROOT / "fixtures" / "parquet" / "arrow_rs_between.parquet").read_bytes()
    column = bloomcli.inspect(ROOT / "fixtures" / "parquet" / "arrow_rs_between.parquet").filters[0].column

    path.write_bytes(with_encrypted(original, *((row_group, 0) for row_group in range(4))))
    bits = [(f.offset, f.length or 0) for f in bloomcli.inspect(path, keys=SIGNED_BY).filters if f.column == column]
    leaks = bloomcli.validate(path, columns=[column], keys=SIGNED_BY).findings
    assert {(f.id, f.severity) for f in leaks} == {("filter-plaintext", "error")}
    assert len(leaks) == len(bits) == 4
    assert f"`bloom remove {path} --columns {column} --in-place`" in (leaks[0].hint or "")
    report = bloomcli.remove(path, columns=[column], output=out, keys=SIGNED_BY)
    new, rest = out.read_bytes(), bytearray(original)
    for at, length in bits[:3]:
        assert new[at : at + length] == bytes(length), "overwritten"
        rest[at : at + length] = bytes(length)
    assert new.startswith(bytes(rest[: bits[3][0]])), "nothing else is"
    assert report.bytes_unreclaimed == sum(length for _, length in bits[:3])
    assert column not in {f.column for f in bloomcli.inspect(out, keys=SIGNED_BY).filters}


def test_filters_that_arrow_rs_put_between_row_groups_are_forgotten_and_the_last_ones_cut_out(tmp_path: Path) -> None:
    path = ROOT / "fixtures" / "parquet" / "arrow_rs_between.parquet"
    out, folded = tmp_path / "out.parquet", tmp_path / "folded.parquet"
    found = bloomcli.inspect(path).filters
    assert len(found) == 16
    report = bloomcli.remove(path, output=out)
    assert report.bytes_unreclaimed == sum(f.length or 0 for f in found if f.row_group < 3)
    assert pq.read_table(out).equals(pq.read_table(path))
    bloomcli.fold(path, fpp=0.3, output=folded)
    assert bloomcli.validate(folded, deep=True).findings == ()
    assert pq.read_table(folded).equals(pq.read_table(path))
    mended = bloomcli.add(out, ["id", "name"], output=tmp_path / "again.parquet")
    assert {c.action for c in mended.changes} == {"add"}


def _edited(data: bytes, edit: Callable[[Fields], None]) -> Fields:
    metadata = tree(data)
    edit(metadata)
    return metadata
