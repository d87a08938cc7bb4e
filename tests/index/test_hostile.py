"""Nothing in an index file is believed: damage and lies are errors that say where, and never a lost row group."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xxhash
import zstandard
from support.indexes import COLUMN, IDS, answers, chunk, filled, made, opened
from support.reference import positions

from bloomcli.errors import BloomError, CorruptFile, UnknownFormat, UnsupportedError
from bloomcli.index.ends import packed_end
from bloomcli.index.tables import end_sizes_table
from bloomcli.index.writer import IndexWriter
from bloomcli.model.index import ChunkState, IndexedColumn

HASHES = random.Random(1).randbytes(8 * 400)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small index: 130 row groups of which some are always possible."""
    rng, path = random.Random(2), tmp_path_factory.mktemp("hostile") / "small.index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(40):
            writer.add(made(number, 3), [chunk(0, filled(4, 30, rng)), chunk(1, filled(2, 9, rng))])
        for number in range(40, 50):
            writer.add(made(number, 1), [chunk(0, None, state=ChunkState.ALWAYS)])
        writer.write(str(path), overwrite=False)
    return path


def footer_of(data: bytes) -> tuple[dict[str, Any], int]:
    """The footer's JSON and the offset of its magic."""
    size = int.from_bytes(data[-12:-8], "little")
    return json.loads(data[-12 - size : -12]), len(data) - 16 - size


def with_footer(body: bytes, content: Any) -> bytes:
    """A file with a footer whose checksum is right."""
    text = content if isinstance(content, bytes) else json.dumps(content, separators=(",", ":")).encode()
    before, digits, after = text.partition(b'"footer-xxh64":"')
    if digits:
        zeros = before + digits + b"0" * 16 + after[16:]
        text = before + digits + b"%016x" % xxhash.xxh64_intdigest(zeros) + after[16:]
    return body + b"PFA1" + text + len(text).to_bytes(4, "little") + bytes(4) + b"PFA1"


def use(path: Path) -> set[tuple[int, int, int]]:
    """Open an index and use all of it."""
    with opened(path) as found:
        found.facts()
        assert all(found.files.position(file.path) is not None for file in found.files)
        for column in found.columns:
            found.with_values(column)
        return answers(found, HASHES) | answers(found, HASHES[:8])


def failing(path: Path, data: bytes) -> BloomError:
    """The error that a file gives."""
    path.write_bytes(data)
    with pytest.raises(BloomError) as caught:
        use(path)
    error = caught.value
    assert isinstance(error, CorruptFile | UnsupportedError)
    assert error.path == str(path)
    assert error.hint is not None
    assert "bloom index build" in error.hint or "cut off or damaged" in error.hint
    return error


def test_an_index_that_is_cut_off_anywhere_is_an_error(index: Path, tmp_path: Path) -> None:
    data = index.read_bytes()
    for length in [*range(30), *random.Random(3).sample(range(30, len(data)), 200), len(data) - 1]:
        failing(tmp_path / "cut", data[:length])


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_an_error_or_changes_no_answer(index: Path, tmp_path: Path) -> None:
    data, path = index.read_bytes(), tmp_path / "flipped"
    right, rng, errors = use(index), random.Random(4), 0
    _, start = footer_of(data)
    ends = [*range(4), *range(start - 300, len(data))]
    for at in [*rng.sample(range(len(data)), 600), *ends]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        try:
            assert use(path) == right
        except (CorruptFile, UnsupportedError) as error:
            errors += 1
            assert error.path == str(path)
            assert error.hint
            assert error.offset is not None or "has only" in error.reason
        else:
            assert at < 4 or at < start, at
    assert errors > 800


def test_every_flipped_bit_of_rows_that_are_read_is_found(index: Path, tmp_path: Path) -> None:
    content, _ = footer_of(index.read_bytes())
    bits = content["blobs"][0]
    stride, rng, path = int(bits["properties"]["row-bytes"]), random.Random(5), tmp_path / "flipped"
    for row in rng.sample(range(int(bits["properties"]["blocks"]) * 256), 20):
        data = bytearray(index.read_bytes())
        at = bits["offset"] + row * stride + rng.randrange(stride)
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        with opened(path) as found:
            block, word, bit = row // 256, row // 32 % 8, row % 32
            mine = [
                h
                for h in everything(found.layout(IDS).blocks)
                if selects(h, found.layout(IDS).blocks, block, word, bit)
            ]
            with pytest.raises(CorruptFile, match=f"row {row} of the bits doesn't match its checksum") as caught:
                answers(found, mine[0].to_bytes(8, "little"))
            assert caught.value.offset == bits["offset"] + row * stride
            with pytest.raises(CorruptFile, match=f"row {row} of the bits"):
                answers(found, b"".join(h.to_bytes(8, "little") for h in mine) * 40)


def everything(blocks: int) -> list[int]:
    """Hashes that select every row many times."""
    rng = random.Random(6)
    return [rng.getrandbits(64) for _ in range(blocks * 400)]


def selects(value: int, blocks: int, block: int, word: int, bit: int) -> bool:
    """Whether a hash selects a row."""
    found, bits = positions(value, blocks)
    return (found, bits[word]) == (block, bit)


def test_a_row_in_the_place_of_another_is_found(index: Path, tmp_path: Path) -> None:
    data = bytearray(index.read_bytes())
    bits = footer_of(bytes(data))[0]["blobs"][0]
    stride, at = int(bits["properties"]["row-bytes"]), bits["offset"]
    data[at : at + stride] = data[at + stride : at + 2 * stride]
    assert "row 0 of the bits" in failing(tmp_path / "moved", bytes(data)).reason


LIES: list[tuple[str, str, Callable[[dict[str, Any]], object]]] = [
    ("blobs[0].offset", "outside", lambda f: f["blobs"][0].update(offset=0)),
    ("blobs[0].offset", "isn't a number of bytes", lambda f: f["blobs"][0].update(offset=-4)),
    ("blobs[0].offset", "isn't a number of bytes", lambda f: f["blobs"][0].update(offset=1 << 63)),
    ("blobs[0].offset", "isn't a number of bytes", lambda f: f["blobs"][0].update(offset=4.0)),
    ("blobs[0].offset", "isn't a number of bytes", lambda f: f["blobs"][0].update(offset=True)),
    ("blobs[0].offset", "outside", lambda f: f["blobs"][0].update(length=1 << 62)),
    ("blobs[1].offset", "overlaps", lambda f: f["blobs"][1].update(offset=f["blobs"][1]["offset"] - 1)),
    ("blobs[0].length", "the bits have", lambda f: f["blobs"][0].update(length=f["blobs"][0]["length"] - 8)),
    ("blobs[0].type", "isn't a text", lambda f: f["blobs"][0].update(type=None)),
    ("blobs[0].compression-codec", "compressed", lambda f: f["blobs"][0].update({"compression-codec": "lz4"})),
    ("blobs[0].compression-codec", "isn't a text", lambda f: f["blobs"][0].update({"compression-codec": 4})),
    ("blobs[2].compression-codec", "not with zstd", lambda f: f["blobs"][2].pop("compression-codec")),
    ("blobs[0]", "isn't a JSON object", lambda f: f["blobs"].__setitem__(0, 7)),
    ("blobs", "isn't a list", lambda f: f.update(blobs={})),
    ("blobs", "0 tables of files", lambda f: f["blobs"].pop()),
    ("blobs", "bits without units", lambda f: f["blobs"].pop(1)),
    ("properties", "isn't a JSON object", lambda f: f["blobs"].__setitem__(0, {**f["blobs"][0], "properties": []})),
    ("blobs[0].properties.blocks", "isn't a number", lambda f: f["blobs"][0]["properties"].update(blocks="9" * 30)),
    ("blobs[0].properties.blocks", "isn't a number", lambda f: f["blobs"][0]["properties"].update(blocks="8388608")),
    ("blobs[0].properties.blocks", "power of two", lambda f: f["blobs"][0]["properties"].update(blocks="3")),
    ("blobs[0].properties.blocks", "power of two", lambda f: f["blobs"][0]["properties"].update(blocks="0")),
    ("blobs[0].length", "the bits have", lambda f: f["blobs"][0]["properties"].update(blocks="4194304")),
    ("blobs[0].properties.slots", "isn't a number", lambda f: f["blobs"][0]["properties"].update(slots="4294967296")),
    ("blobs[0].properties.slots", "isn't a number", lambda f: f["blobs"][0]["properties"].update(slots="-1")),
    ("blobs[0].properties.slots", "isn't a number", lambda f: f["blobs"][0]["properties"].update(slots="٣")),
    ("blobs[0].properties.slots", "isn't a text", lambda f: f["blobs"][0]["properties"].update(slots=90)),
    ("blobs[0].properties.row-bytes", "a row of", lambda f: f["blobs"][0]["properties"].update({"row-bytes": "8"})),
    ("blobs[1]", "units in", lambda f: f["blobs"][0]["properties"].update(slots="91")),
    ("blobs[0].properties.signed", "neither", lambda f: f["blobs"][0]["properties"].update(signed="no")),
    ("blobs[0].properties.scale", "isn't a number", lambda f: f["blobs"][0]["properties"].update(scale="1e3")),
    ("blobs[0].properties.physical", "missing", lambda f: f["blobs"][0]["properties"].pop("physical")),
    ("blobs[0].properties", "isn't an indexed one", lambda f: f["blobs"][0]["properties"].update(column="other")),
    (
        "blobs[0].properties.column-number",
        "isn't a number",
        lambda f: f["blobs"][0]["properties"].pop("column-number"),
    ),
    (
        "blobs[1].properties.column-number",
        "a column's",
        lambda f: f["blobs"][1]["properties"].pop("column-number"),
    ),
    (
        "blobs[1].properties.xxh64",
        "match their checksum",
        lambda f: f["blobs"][1]["properties"].update(xxh64="0" * 16),
    ),
    ("blobs[1].properties.rows", "isn't a number", lambda f: f["blobs"][1]["properties"].update(rows="many")),
    ("blobs[2].properties.rows", "rows, not 3", lambda f: f["blobs"][2]["properties"].update(rows="3")),
    ("properties.fpp", "isn't a rate", lambda f: f["properties"].update(fpp="nan")),
    ("properties.columns", "isn't a number", lambda f: f["properties"].update(fpp="x")),
    ("properties.columns", "isn't a list", lambda f: f["properties"].update(columns='{"id": 1}')),
    ("properties.columns", "aren't JSON", lambda f: f["properties"].update(columns="[" * 100_000)),
    ("properties.bloom-index-version", "later", lambda f: f["properties"].update({"bloom-index-version": "2"})),
    ("properties.bloom-index-version", "no index", lambda f: f["properties"].pop("bloom-index-version")),
]


@pytest.mark.parametrize(("field", "reason", "lie"), LIES, ids=[f"{n}-{field}" for n, (field, *_) in enumerate(LIES)])
def test_a_lie_in_the_footer_is_an_error_that_names_the_field(
    field: str, reason: str, lie: Callable[[dict[str, Any]], object], index: Path, tmp_path: Path
) -> None:
    data = index.read_bytes()
    content, start = footer_of(data)
    assert use(index)
    lie(content)
    error = failing(tmp_path / "lie", with_footer(data[:start], content))
    assert reason in error.reason
    assert error.field is not None
    assert field in error.field
    assert error.offset is not None


def test_footers_that_are_no_json_or_too_deep_are_errors(index: Path, tmp_path: Path) -> None:
    data = index.read_bytes()
    start = footer_of(data)[1]
    sealed = b'{"footer-xxh64":"0000000000000000","x":'
    for text in [b"", b"{}", sealed, sealed + b"[" * 1_000_000, sealed + b"9" * 100_000 + b"}", b"\xff" * 40]:
        failing(tmp_path / "no-json", with_footer(data[:start], text))


def test_a_compressed_footer_is_an_error_that_says_so(index: Path, tmp_path: Path) -> None:
    data = index.read_bytes()
    start = footer_of(data)[1]
    payload = pa.compress(data[start + 4 : -12], codec="lz4", asbytes=True)
    packed = data[: start + 4] + payload + len(payload).to_bytes(4, "little") + b"\x01\0\0\0PFA1"
    error = failing(tmp_path / "lz4", packed)
    assert isinstance(error, UnsupportedError)
    assert (error.field, error.offset) == ("Flags", len(packed) - 8)


@pytest.mark.parametrize("size", [-1, 0, 1 << 30, (1 << 31) - 1, -(1 << 31)])
def test_a_footer_of_an_impossible_size_is_an_error(size: int, index: Path, tmp_path: Path) -> None:
    data = bytearray(index.read_bytes())
    data[-12:-8] = size.to_bytes(4, "little", signed=True)
    assert failing(tmp_path / "size", bytes(data)).field == "FooterPayloadSize"


def test_other_files_are_no_indexes(tmp_path: Path) -> None:
    for data in [b"", b"PAR1" * 10, bytes(1000), with_footer(b"PFA1", {"blobs": []})]:
        path = tmp_path / "other"
        error = failing(path, data)
        assert isinstance(error, UnknownFormat) or "checksum" in error.reason


def units_with(index: Path, **changed: Any) -> bytes:
    """The index with another table of units, sealed as if it were right."""
    data = index.read_bytes()
    content, _ = footer_of(data)
    blob, files = content["blobs"][1], content["blobs"][2]
    raw = zstandard.ZstdDecompressor().decompress(data[blob["offset"] : blob["offset"] + blob["length"]])
    new = zstandard.ZstdCompressor().compress(changed_table(raw, changed))
    return replaced(data, content, blob, files, new)


def changed_table(raw: bytes, changed: dict[str, Any]) -> bytes:
    """A table with other values in its row 7."""
    table = pa.ipc.open_stream(raw).read_all()
    for name, change in changed.items():
        values, field = table.column(name).to_pylist(), table.schema.field(name)
        values[7] = change
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])
    found: bytes = sink.getvalue().to_pybytes()
    return found


def replaced(data: bytes, content: Any, blob: Any, files: Any, new: bytes) -> bytes:
    """The file with other bytes for a table of units."""
    body = data[: blob["offset"]] + new + data[files["offset"] : files["offset"] + files["length"]]
    blob["length"] = len(new)
    blob["properties"]["xxh64"] = f"{xxhash.xxh64_intdigest(new):016x}"
    files["offset"] = blob["offset"] + len(new)
    return with_footer(body, content)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"file": 50}, "no such file"),
        ({"file": -2}, "no such file"),
        ({"file": -1}, "a free slot"),
        ({"state": 0}, "a free slot"),
        ({"state": 4}, "no such state"),
        ({"row_group": 3}, "no such row group"),
        ({"row_group": -1}, "no such row group"),
        ({"fpp": float("nan")}, "isn't a rate"),
        ({"fpp": 1.5}, "isn't a rate"),
    ],
)
def test_a_lie_in_the_table_of_units_is_an_error(
    changed: dict[str, Any], reason: str, index: Path, tmp_path: Path
) -> None:
    error = failing(tmp_path / "units", units_with(index, **changed))
    assert reason in error.reason
    assert error.field is not None
    assert error.field.startswith("blobs[1].")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"path": "lake/part-00003.parquet"}, "comes twice"),
        ({"path": "\0zz"}, "neither text nor bytes"),
        ({"path": "\0" + b"lake/part-00003.parquet".hex()}, "neither text nor bytes"),
        ({"size": -1}, "negative"),
        ({"size": 1 << 60}, "too large"),
        ({"rows": [-5, 1, 1]}, "negative"),
    ],
)
def test_a_lie_in_the_table_of_files_is_an_error(
    changed: dict[str, Any], reason: str, index: Path, tmp_path: Path
) -> None:
    data = index.read_bytes()
    content, _ = footer_of(data)
    files = content["blobs"][2]
    raw = zstandard.ZstdDecompressor().decompress(data[files["offset"] : files["offset"] + files["length"]])
    new = zstandard.ZstdCompressor().compress(changed_table(raw, changed))
    files.update(length=len(new))
    files["properties"]["xxh64"] = f"{xxhash.xxh64_intdigest(new):016x}"
    error = failing(tmp_path / "files", with_footer(data[: files["offset"]] + new, content))
    assert reason in error.reason
    assert error.field == f"blobs[2].{next(iter(changed))}"


def ends_table(sizes: list[int]) -> bytes:
    """A table of the sizes of ends."""
    sink, batch = pa.BufferOutputStream(), end_sizes_table(array("i", sizes))
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ([0, 1], "2 ends of 3 files"),
        ([-1, 1, 0], "aren't those"),
        ([3, 0, 1 << 20], "aren't those"),
        (None, "ends without their sizes"),
    ],
    ids=["too few", "negative", "too many bytes", "no table"],
)
def test_a_lie_about_the_ends_of_files_is_an_error(sizes: list[int] | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(3):
            writer.add(made(number, 1), [chunk(0, filled(2, 9, random.Random(1)))], packed_end([(990, b"x" * 10)]))
        writer.write(str(path), overwrite=False)
    data = path.read_bytes()
    content, start = footer_of(data)
    (blob,) = [blob for blob in content["blobs"] if blob["type"] == "bloom-index-end-sizes-v1"]
    new = b""
    if sizes is None:
        content["blobs"].remove(blob)
    else:
        new = zstandard.ZstdCompressor().compress(ends_table(sizes))
        blob.update(offset=start, length=len(new))
        blob["properties"] |= {"xxh64": f"{xxhash.xxh64_intdigest(new):016x}", "rows": str(len(sizes))}
    assert use(path)
    assert reason in failing(tmp_path / "lie", with_footer(data[:start] + new, content)).reason


def table_bytes() -> bytes:
    """An Arrow IPC stream of another column."""
    sink, batch = pa.BufferOutputStream(), pa.record_batch({"file": pa.array([0] * 90, pa.int64())})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def test_tables_that_are_none_are_errors(index: Path, tmp_path: Path) -> None:
    zeros = zstandard.ZstdCompressor()
    bomb = zeros.compress(bytes(300 << 20))
    for raw in [
        b"",
        b"no zstd",
        bomb,
        zstandard.ZstdCompressor(write_content_size=False).compress(table_bytes()),
        zeros.compress(b""),
        zeros.compress(b"ARROW1\0\0" * 20),
        zeros.compress(table_bytes()),
        zeros.compress(table_bytes()[:100]),
        zeros.compress(b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(100)),
    ]:
        data = index.read_bytes()
        content, _ = footer_of(data)
        error = failing(tmp_path / "table", replaced(data, content, content["blobs"][1], content["blobs"][2], raw))
        assert error.field is not None
        assert error.field.startswith("blobs[1]")


@pytest.mark.slow
def test_damaged_arrow_streams_are_errors_and_nothing_large_is_allocated(index: Path, tmp_path: Path) -> None:
    """Under a limit of address space, with right checksums: only the checks of values are left."""
    data = index.read_bytes()
    content, _ = footer_of(data)
    for number in (1, 2):
        blob = content["blobs"][number]
        raw = zstandard.ZstdDecompressor().decompress(data[blob["offset"] : blob["offset"] + blob["length"]])
        (tmp_path / f"raw-{number}").write_bytes(raw)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("damaged_streams.py")), str(index), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 300


def test_an_update_of_a_damaged_index_is_an_error_and_leaves_it(index: Path, tmp_path: Path) -> None:
    data = bytearray(index.read_bytes())
    data[footer_of(bytes(data))[0]["blobs"][0]["offset"] + 900] ^= 4
    path = tmp_path / "index"
    path.write_bytes(data)
    with opened(path) as old, IndexWriter([COLUMN], fpp=0.01, old=old) as writer:
        writer.keep(range(len(old.files)))
        with pytest.raises(CorruptFile, match="doesn't match its checksum"):
            writer.write(str(path), overwrite=True)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_the_hint_of_damage_is_the_command_that_builds_the_index_anew(tmp_path: Path) -> None:
    columns, path = ["user id", "a,b"], tmp_path / "my lake.index"
    with IndexWriter(columns, fpp=0.01) as writer:
        column = IndexedColumn(path="a,b", type=IDS.type)
        writer.add(made(0, 1), [chunk(0, None, column, ChunkState.ALWAYS)])
        writer.write(str(path), overwrite=False)
    data = bytearray(path.read_bytes())
    data[5] ^= 1
    path.write_bytes(data)
    with opened(path) as found, pytest.raises(CorruptFile) as caught:
        found.possible(column, bytes(8))
    assert caught.value.hint == (
        f"`bloom index build DIRECTORY -c 'user id,a\\,b' -o '{path}' --overwrite` rebuilds it"
    )


def test_array_sizes_are_those_of_the_format() -> None:
    assert (array("i").itemsize, array("q").itemsize, array("f").itemsize) == (4, 8, 4)
