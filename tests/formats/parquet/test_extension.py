"""Footers with binary extensions (field 32767), which may contain offsets: nothing that they may refer to moves."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support import footers, thrift

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import UnsupportedError
from bloomcli.report import text_inspect

FIELD = 32767
AS_IN_THE_EXAMPLE = -16384
"""The field id that the compact protocol reads from 08 FF FF 01, which is in the specification's example."""

FLATBUFFER = b"stands for FlatBuffers metadata" * 5
PAYLOAD = (
    FLATBUFFER
    + struct.pack("<II", zlib.crc32(FLATBUFFER), len(FLATBUFFER))
    + struct.pack("<I", zlib.crc32(struct.pack("<I", len(FLATBUFFER))))
    + UUID("00000000-0000-4000-8000-000000000000").bytes
)
"""As the specification's example lays it out."""


def written(folder: Path, *, filters: bool, where: str = "FileMetaData", number: int = FIELD) -> Path:
    """A file with a page index and an extension; with `filters` on column a, between data and page index."""
    path = folder / "in.parquet"
    table = pa.table({"a": range(1000), "b": [f"b{i}" for i in range(1000)]})
    pq.write_table(table, path, row_group_size=500, write_page_index=True)
    if filters:
        bloomcli.add(path, ["a"], in_place=True)

    def extend(metadata: thrift.Fields) -> None:
        at = {
            "FileMetaData": metadata,
            "RowGroup": metadata[footers.ROW_GROUPS][1].values[1],
            "ColumnChunk": footers.chunk(metadata, 0, 1),
            "ColumnMetaData": footers.meta(metadata, 1, 0),
        }[where]
        at[number] = (thrift.BINARY, PAYLOAD)

    path.write_bytes(footers.edited(path.read_bytes(), extend))
    assert pq.read_table(path).equals(table)
    return path


def test_the_specifications_example_of_the_fields_header_is_the_other_number(tmp_path: Path) -> None:
    data = written(tmp_path, filters=False, number=AS_IN_THE_EXAMPLE).read_bytes()
    assert b"\x08\xff\xff\x01" + bytes([len(PAYLOAD) & 0x7F | 0x80, len(PAYLOAD) >> 7]) + PAYLOAD + b"\0" in data
    data = written(tmp_path, filters=False).read_bytes()
    assert b"\x08\xfe\xff\x03" + bytes([len(PAYLOAD) & 0x7F | 0x80, len(PAYLOAD) >> 7]) + PAYLOAD + b"\0" in data


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("FileMetaData", FIELD),
        ("FileMetaData", AS_IN_THE_EXAMPLE),
        *((where, FIELD) for where in ("RowGroup", "ColumnChunk", "ColumnMetaData")),
    ],
)
def test_add_moves_nothing_and_keeps_the_extension(tmp_path: Path, where: str, number: int) -> None:
    path, out = written(tmp_path, filters=True, where=where, number=number), tmp_path / "out.parquet"
    before = path.read_bytes()
    report = bloomcli.add(path, ["b"], output=out)
    after = out.read_bytes()
    body = footers.split(before)[0]
    assert after.startswith(body)
    assert after.count(PAYLOAD) == 1
    assert pq.read_table(out).equals(pq.read_table(path))
    assert pq.ParquetFile(out).metadata.row_group(0).column(1).bloom_filter_offset == len(body)
    old, new = (footers.stripped(data) for data in (before, after))
    assert old == new
    assert bloomcli.validate(out, deep=True).ok
    remarks = [text for text in report.remarks if "field 32767 of FileMetaData" in text]
    assert len(remarks) == (where == "FileMetaData")
    dry = bloomcli.add(path, ["b"], dry_run=True)
    assert dry.remarks == report.remarks


@pytest.mark.parametrize(
    ("command", "where", "number"),
    [
        ("remove", "FileMetaData", FIELD),
        ("remove", "ColumnMetaData", AS_IN_THE_EXAMPLE),
        ("fold", "RowGroup", FIELD),
        ("replace", "ColumnChunk", FIELD),
    ],
)
def test_what_would_move_the_page_index_is_refused_by_name(
    tmp_path: Path, command: str, where: str, number: int
) -> None:
    path, out = written(tmp_path, filters=True, where=where, number=number), tmp_path / "out.parquet"
    before = path.read_bytes()
    orders = {
        "remove": lambda: bloomcli.remove(path, output=out),
        "fold": lambda: bloomcli.fold(path, fpp=0.5, output=out),
        "replace": lambda: bloomcli.add(path, ["a"], replace=True, output=out),
    }
    with pytest.raises(UnsupportedError, match=rf"field 32767 of {where}, {len(PAYLOAD)} bytes") as caught:
        orders[command]()
    assert caught.value.offset is not None
    assert before[caught.value.offset] & 15 == thrift.BINARY
    assert PAYLOAD in before[caught.value.offset :][: len(PAYLOAD) + 6]
    assert str(caught.value.field).endswith("32767")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet"]


def test_nothing_is_refused_where_nothing_is_taken_out(tmp_path: Path) -> None:
    path, out = written(tmp_path, filters=False), tmp_path / "out.parquet"
    assert not bloomcli.remove(path, output=out).changes
    assert bloomcli.add(path, ["a"], replace=True, output=out, overwrite=True).changes
    assert all(change.action == "keep" for change in bloomcli.fold(out, output=tmp_path / "folded").changes)


def test_inspect_shows_the_footers_extension(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, filters=True)
    assert bloomcli.inspect(path).details == (("footer extension", f"field 32767, {len(PAYLOAD)} bytes"),)
    assert run(["inspect", str(path)]) == 0
    shown = capfd.readouterr().out
    assert "footer extension" in shown
    assert f"field 32767, {len(PAYLOAD)} bytes" in shown
    assert run(["add", str(path), "-c", "b", "-o", str(tmp_path / "out.parquet")]) == 0
    added = " ".join(capfd.readouterr().out.split())
    assert "remark: the footer has a binary extension (field 32767 of FileMetaData" in added


def test_inspect_of_a_signed_footer_says_so_and_advises_no_change() -> None:
    path = ROOT / "fixtures/parquet/pyarrow_signed.parquet"
    assert "footer signature" in dict(bloomcli.inspect(path).details)
    bare = replace(bloomcli.inspect(path), filters=())
    assert "adds some" not in "".join(map(str, text_inspect.inspect(bare)))
    assert "adds some" in "".join(map(str, text_inspect.inspect(replace(bare, unverified=None))))
