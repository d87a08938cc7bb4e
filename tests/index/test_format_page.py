"""bloomcli/index/format.md is enough to read an index: a reader that uses nothing of bloom's, and PyIceberg's."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
import xxhash
import zstandard
from pyiceberg.table.puffin import PuffinFile
from support.indexes import COLUMN, IDS, answers, chunk, filled, hashes, made, opened

from bloomcli.index.ends import packed_end, unpacked_end
from bloomcli.index.writer import IndexWriter
from bloomcli.model.index import ChunkState, ColumnType, IndexedColumn

PAGE = Path(__file__).parents[2] / "bloomcli" / "index" / "format.md"
NAME = IndexedColumn(path="name", type=ColumnType(physical="BYTE_ARRAY", logical="STRING"))


class Stranger:
    """A reader by the page alone. The salt is read from the page."""

    def __init__(self, data: bytes) -> None:
        assert data[:4] == data[-4:] == b"PFA1"
        assert data[-8:-4] == bytes(4)
        size = int.from_bytes(data[-12:-8], "little")
        payload = data[-12 - size : -12]
        assert data[-16 - size : -12 - size] == b"PFA1"
        self.footer = json.loads(payload)
        self.data, properties = data, self.footer["properties"]
        zeroed = payload.replace(properties["footer-xxh64"].encode(), b"0" * 16, 1)
        assert f"{xxhash.xxh64_intdigest(zeroed):016x}" == properties["footer-xxh64"]
        assert properties["bloom-index-version"] == "1"
        self.columns = json.loads(properties["columns"])
        self.salt = [int(word, 16) for word in re.findall(r"\b[0-9a-f]{8}\b", PAGE.read_text())][:8]

    def blobs(self, kind: str) -> list[dict[str, Any]]:
        return [blob for blob in self.footer["blobs"] if blob["type"] == f"bloom-index-{kind}-v1"]

    def table(self, blob: dict[str, Any]) -> pa.Table:
        data = self.data[blob["offset"] : blob["offset"] + blob["length"]]
        assert f"{xxhash.xxh64_intdigest(data):016x}" == blob["properties"]["xxh64"]
        table = pa.ipc.open_stream(zstandard.decompress(data)).read_all()
        assert table.num_rows == int(blob["properties"]["rows"])
        return table

    def possible(self, column: str, physical: str, value: int) -> set[tuple[str, int]]:
        """The paths and row groups that may have a hash."""
        files = self.table(self.blobs("files")[0])
        found = set()
        for blob in self.blobs("bits"):
            of = blob["properties"]
            if (of["column"], of["physical"]) != (column, physical):
                continue
            units = self.table(
                next(u for u in self.blobs("units") if u["properties"]["column-number"] == of["column-number"])
            )
            blocks, row_bytes = int(of["blocks"]), int(of["row-bytes"])
            block, slots = (value >> 32) * blocks >> 32, np.ones(int(of["slots"]), bool)
            for word, salt in enumerate(self.salt):
                row = block * 256 + word * 32 + ((value & 0xFFFFFFFF) * salt % (1 << 32) >> 27)
                data = self.data[blob["offset"] + row * row_bytes :][:row_bytes]
                assert xxhash.xxh64_intdigest(data[:-8], seed=row) == int.from_bytes(data[-8:], "little")
                slots &= np.unpackbits(np.frombuffer(data[:-8], np.uint8), bitorder="little")[: len(slots)].astype(
                    bool
                )
            for slot in np.flatnonzero(slots):
                unit = units.slice(slot, 1).to_pylist()[0]
                assert unit["state"] in (1, 2)
                found.add((files["path"][unit["file"]].as_py(), unit["row_group"]))
        return found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of two columns after an update, with free slots and row groups of all states."""
    rng, path = random.Random(1), tmp_path_factory.mktemp("page") / "index"
    with IndexWriter([COLUMN, "name"], fpp=0.01) as writer:
        for number in range(70):
            writer.add(made(number, 2), [chunk(0, filled(37, 99, rng)), chunk(1, filled(8, 20, rng), NAME)])
        writer.add(made(70, 2), [chunk(0, None, state=ChunkState.ALWAYS), chunk(1, None, state=ChunkState.NEVER)])
        writer.write(str(path), overwrite=False)
    with opened(path) as old, IndexWriter([COLUMN, "name"], fpp=0.01, old=old) as writer:
        writer.keep(range(6, 71))
        writer.add(made(99, 1), [chunk(0, filled(64, 99, rng))])
        writer.write(str(path), overwrite=True)
    return path


@pytest.mark.parametrize("column", [IDS, NAME], ids=["id", "name"])
def test_a_reader_that_knows_only_the_page_gives_the_same_answers(index: Path, column: IndexedColumn) -> None:
    looked_up = hashes(random.Random(2), 150)
    stranger = Stranger(index.read_bytes())
    with opened(index) as ours:
        mine: dict[int, set[tuple[str, int]]] = {}
        for at, file, group in answers(ours, looked_up, column):
            mine.setdefault(at, set()).add((ours.files[file].path, group))
    assert mine
    for at in range(150):
        value = int.from_bytes(looked_up[at * 8 : at * 8 + 8], "little")
        assert stranger.possible(column.path, column.type.physical, value) == mine.get(at, set())


def test_the_tables_have_the_columns_of_the_page(index: Path) -> None:
    stranger = Stranger(index.read_bytes())
    text = PAGE.read_text()
    tables = [stranger.table(stranger.blobs("files")[0]), stranger.table(stranger.blobs("units")[0])]
    for table, title in zip(tables, ["The table of files", "The tables of units"], strict=True):
        section = text.split(f"## {title}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` ", section, re.MULTILINE) == table.schema.names
    assert stranger.columns == [COLUMN, "name"]
    section = text.split("## The bits\n")[1]
    for blob in stranger.blobs("bits"):
        assert all(f"`{name}`" in section for name in blob["properties"])
    section = text.split("### Properties of the file\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `([\w-]+)` ", section, re.MULTILINE)) == set(stranger.footer["properties"])


def test_pyiceberg_lists_the_blobs_and_reads_them(index: Path) -> None:
    data = index.read_bytes()
    puffin = PuffinFile(data)
    kinds = [blob.type for blob in puffin.footer.blobs]
    assert kinds == ["bloom-index-bits-v1"] * 2 + ["bloom-index-units-v1"] * 2 + ["bloom-index-files-v1"]
    with opened(index) as ours:
        facts = ours.facts()
        assert [(blob.type, blob.offset, blob.length, blob.codec) for blob in facts.blobs] == [
            (blob.type, blob.offset, blob.length, blob.compression_codec) for blob in puffin.footer.blobs
        ]
        for blob, column in zip(puffin.footer.blobs, ours.columns, strict=False):
            assert len(puffin.get_blob_payload(blob)) == ours.layout(column).nbytes
        table = pa.ipc.open_stream(puffin.get_blob_payload(puffin.footer.blobs[-1])).read_all()
        assert table["path"].to_pylist() == [file.path for file in ours.files]
        assert table["rows"].to_pylist() == [list(file.rows) for file in ours.files]
        assert (facts.files, facts.row_groups) == (66, 131)
        assert facts.data_bytes == sum(file.size for file in ours.files)
        assert facts.rows == sum(sum(file.rows) for file in ours.files)


@pytest.mark.slow
def test_values_of_orc_and_mosaic_files_are_hashed_as_the_page_says(tmp_path: Path) -> None:
    import pyorc
    from support import mosaicfiles

    import bloomcli

    kinds = "i:tinyint,l:bigint,d:double,s:string,c:char(4),b:binary,day:date,dec:decimal(9,2),t:timestamp"
    with (tmp_path / "a.orc").open("wb") as opened:
        zone = {"timezone": ZoneInfo("UTC")}
        with pyorc.Writer(opened, f"struct<{kinds}>", **zone) as writer:
            moment = dt.datetime(9000, 1, 1, tzinfo=dt.UTC)
            writer.write((-3, 1 << 40, 0.5, "a ", "c ", b"\xff", dt.date(1969, 12, 31), Decimal("-1.5"), moment))
    columns = {"m": pa.array([-3], pa.int16()), "u": pa.array([1], pa.timestamp("us"))}
    mosaicfiles.write(tmp_path / "b.mosaic", pa.table(columns))
    names = [*(part.partition(":")[0] for part in kinds.split(",")[:-3]), "day", "dec", "t", *columns]
    bloomcli.index_build(tmp_path, names, output=tmp_path / "x.idx")
    stranger = Stranger((tmp_path / "x.idx").read_bytes())
    nanos = (dt.datetime(9000, 1, 1) - dt.datetime(1970, 1, 1)) // dt.timedelta(seconds=1) * 10**9
    for column, physical, hashed in [
        ("i", "INT32", struct.pack("<i", -3)),
        ("l", "INT64", struct.pack("<q", 1 << 40)),
        ("d", "DOUBLE", struct.pack("<d", 0.5)),
        ("s", "BYTE_ARRAY", b"a "),
        ("c", "BYTE_ARRAY", b"c"),
        ("b", "BYTE_ARRAY", b"\xff"),
        ("day", "INT32", struct.pack("<i", -1)),
        ("dec", "FIXED_LEN_BYTE_ARRAY", (-150).to_bytes(4, "big", signed=True)),
        ("t", "INT128", nanos.to_bytes(16, "little", signed=True)),
        ("m", "INT32", struct.pack("<i", -3)),
        ("u", "INT64", struct.pack("<q", 1)),
    ]:
        name = "b.mosaic" if column in columns else "a.orc"
        expected = {(str(tmp_path / name), 0)}
        assert stranger.possible(column, physical, xxhash.xxh64_intdigest(hashed)) == expected, column
        assert stranger.possible(column, physical, xxhash.xxh64_intdigest(hashed + b"?")) == set(), column


def test_the_ends_of_files_are_those_of_the_page(tmp_path: Path) -> None:
    given = {0: [(900, b"offset index"), (992, b"a footer")], 2: [(1000, b"ft")]}
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(4):
            ranges = given.get(number, [])
            writer.add(
                made(number, 1), [chunk(0, filled(2, 9, random.Random(1)))], packed_end(ranges) if ranges else b""
            )
        writer.write(str(tmp_path / "index"), overwrite=False)
    stranger = Stranger((tmp_path / "index").read_bytes())
    (ends,), (sizes,) = stranger.blobs("ends"), stranger.blobs("end-sizes")
    section = PAGE.read_text().split("## The ends of files\n")[1].split("\n## ")[0]
    table = stranger.table(sizes)
    assert re.findall(r"^\| `(\w+)` ", section, re.MULTILINE) == table.schema.names
    at, found = ends["offset"], {}
    for file, size in enumerate(table["bytes"].to_pylist()):
        data = stranger.data[at : at + size]
        at += size
        if not size:
            continue
        assert int.from_bytes(data[:8], "little") == xxhash.xxh64_intdigest(data[8:])
        content = zstandard.decompress(data[8:])
        (count,) = struct.unpack_from("<i", content)
        numbers, rest = struct.unpack_from(f"<{2 * count}q", content, 4), content[4 + 16 * count :]
        found[file] = [(numbers[0], rest[: numbers[1]])]
        for place in range(1, count):
            rest = rest[numbers[2 * place - 1] :]
            found[file].append((numbers[2 * place], rest[: numbers[2 * place + 1]]))
    assert at == ends["offset"] + ends["length"]
    assert found == given
    with opened(tmp_path / "index") as ours:
        assert {at: unpacked_end(end, ours.files[at].size) for at, end in ours.ends(range(4))} == given
