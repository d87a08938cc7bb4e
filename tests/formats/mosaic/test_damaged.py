"""Mosaic files that are cut off or lie about lengths, counts and offsets: a BloomError, its place, and no output."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT, FOOTER, Parts, write

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.mosaic import limits as mosaic_limits

HUGE = (1 << 32) - 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """60 rows in 3 row groups of 2 buckets, filters on two columns; edited files lie in a folder of their own."""
    table = pa.table({"id": pa.array(range(60), pa.int64()), "n": [f"n{i}" for i in range(60)], "x": [1.5] * 60})
    write(tmp_path / "plain", table, batch=20, num_buckets=2)
    bloomcli.add(tmp_path / "plain", ["id", "n"], output=tmp_path / "f", **DRAFT)
    (tmp_path / "work").mkdir()
    return tmp_path / "f"


@pytest.fixture(scope="module", autouse=True)
def imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Import what the commands import on first use: no file claims it."""
    folder = tmp_path_factory.mktemp("imported")
    write(folder / "f", pa.table({"id": [1, 2]}))
    bloomcli.add(folder / "f", ["id"], in_place=True, **DRAFT)
    bloomcli.validate(folder / "f", deep=True)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Nothing here may make bloom allocate by a number that a file claims."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "inspect": lambda path, _: bloomcli.inspect(path),
    "validate": lambda path, _: bloomcli.validate(path, deep=True),
    "probe": lambda path, _: bloomcli.probe(path, ["3"], column="id"),
    "dump": lambda path, _: bloomcli.dump(path, column="id"),
    "add": lambda path, out: bloomcli.add(path, ["*"], output=out, replace=True, **DRAFT),
    "add in place": lambda path, _: bloomcli.add(path, ["x"], in_place=True, **DRAFT),
    "remove": lambda path, out: bloomcli.remove(path, output=out),
    "fold": lambda path, out: bloomcli.fold(path, output=out),
}
DECODING = ("validate", "add", "add in place")


def refused(data: bytes, path: Path, match: str, *names: str, error: type[BloomError] = CorruptFile) -> BloomError:
    """Every command (or the named ones) raises, names the file and the place, and leaves nothing behind."""
    bad = path.parent / "work" / "bad.mosaic"
    bad.write_bytes(data)
    for name in names or COMMANDS:
        with pytest.raises(error, match=match) as caught:
            COMMANDS[name](bad, bad.with_name("out"))
        assert caught.value.path == str(bad)
        assert caught.value.hint
        assert caught.value.field
        assert bad.read_bytes() == data
        assert [p.name for p in bad.parent.iterdir()] == ["bad.mosaic"]
    return caught.value


def parts(path: Path) -> Parts:
    """The file, taken apart."""
    return Parts.of(path.read_bytes())


@pytest.mark.slow
def test_a_file_that_is_cut_off_is_refused_at_every_length(path: Path) -> None:
    """Cut at its end, it isn't recognised as a Mosaic file; cut at its start, all offsets are wrong."""
    whole = path.read_bytes()
    bad = path.parent / "work" / "bad.mosaic"
    for cut in [*range(1, 200, 3), *range(200, len(whole), 37)]:
        for data in (whole[:-cut], whole[cut:]):
            bad.write_bytes(data)
            for name in ("inspect", "remove"):
                with pytest.raises(BloomError):
                    COMMANDS[name](bad, bad.with_name("out"))
            assert [p.name for p in bad.parent.iterdir()] == ["bad.mosaic"]


@pytest.mark.parametrize("rows", [0, 20])
@pytest.mark.parametrize("kept", [0, 1])
def test_a_row_group_that_lacks_the_bucket_of_a_column_is_refused(path: Path, rows: int, kept: int) -> None:
    whole = parts(path)
    data = whole.with_group(1, rows=rows, buckets=whole.groups[1].buckets[:kept]).data()
    refused(data, path, "no bucket with the column", "add")
    bad = path.parent / "work" / "bad.mosaic"
    bloomcli.inspect(bad)
    with contextlib.suppress(CorruptFile):
        bloomcli.validate(bad, deep=True, columns=["*"])
    found = bloomcli.find(bad, 25, column="id")
    assert sum(batch.num_rows for batch in found) == 0
    assert found.report.failed == (rows > 0)
    with pytest.raises(BloomError, match="no bucket with the column"):
        bloomcli.advise(bad)


def test_a_footer_alone_is_named_by_its_size(path: Path) -> None:
    error = refused(path.read_bytes()[-FOOTER + 1 :], path, "a file of 31 bytes can't hold a footer of 32")
    assert error.offset == 0


@pytest.mark.parametrize(
    ("changes", "error", "match", "field"),
    [
        ({"version": 3}, UnsupportedError, "version 3 of the format; 1 and 2", "footer.version"),
        ({"compression": 2}, UnsupportedError, "compression 2; 0 .none. and 1 .zstd.", "footer.compression"),
        ({"buckets": 3}, CorruptFile, "the footer says 3 buckets, the schema 2", "footer.buckets"),
        ({"group_count": HUGE}, CorruptFile, "4294967295 row groups are claimed", "footer.row_groups"),
        ({"group_count": 4}, CorruptFile, "rows: a varint doesn't end", "row_groups[3]"),
        ({"group_count": 2}, CorruptFile, "bytes are left behind the last row group", "row_groups"),
        ({"schema_at": 1 << 63}, CorruptFile, "don't lie in this order before the footer", "footer"),
        ({"index_at": (1 << 64) - 1}, CorruptFile, "don't lie in this order before the footer", "footer"),
        ({"version": 1}, CorruptFile, ".", ""),
    ],
)
def test_a_footer_with_wrong_claims_is_refused(
    changes: dict[str, int], error: type[BloomError], match: str, field: str, path: Path
) -> None:
    whole = parts(path)
    if "version" in changes:  # the index stays as version 2 has it
        changes = {**changes, "index": b"".join(g.encode(2) for g in whole.groups)}  # type: ignore[dict-item]
    caught = refused(replace(whole, **changes).data(), path, match, error=error)  # type: ignore[arg-type]
    assert not field or caught.field == field
    assert caught.offset is not None


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rows": 100_000}, "can't be decoded"),
        ({"bucket_count": 1 << 30}, "1073741824 are claimed"),
        ({"bucket_count": 0}, "row_groups|statistics|filters|rows|buckets"),
        ({"blob_count": HUGE}, "filters: 4294967295 are claimed"),
        ({"statistics": b"\xff\xff\xff\xff\x0f"}, "statistics: 4294967295 are claimed"),
        ({"statistics": b"\x01\x09\x00"}, "statistics of column 9, the file has 3"),
        ({"statistics": b"\x01\x00\x15"}, "21 nulls in 20 rows"),
        ({"statistics": b"\xff" * 6}, "statistics: a varint of more than 5 bytes"),
        ({"statistics": b"\x01\x01\x00" + b"\xff\xff\xff\xff\x0f"}, "a minimum: 4294967295 bytes are claimed"),
    ],
)
def test_a_row_groups_entry_with_wrong_claims_is_refused(changes: dict[str, object], match: str, path: Path) -> None:
    names = DECODING[:2] if "rows" in changes else ()
    refused(parts(path).with_group(1, **changes).data(), path, match, *names)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"id": 2}, "bucket 2 isn't one of 2"),
        ({"id": 1}, "bucket 1 comes twice"),
        ({"offset": (1 << 64) - 1}, "runs past the data's end"),
        ({"size": HUGE}, "runs past the data's end"),
        ({"size": 0}, "an empty bucket that unpacks to"),
    ],
)
def test_a_bucket_outside_the_data_is_refused(changes: dict[str, int], match: str, path: Path) -> None:
    caught = refused(parts(path).with_bucket(1, 0, **changes).data(), path, match)
    assert caught.field is not None
    assert caught.field.startswith("row_groups[1].buckets[")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unpacked": HUGE}, "4294967295 bytes are claimed to be compressed here"),
        ({"unpacked": mosaic_limits.BUCKET_MAX_BYTES + 1}, "536870913 bytes are claimed"),
        ({"unpacked": 1}, "can't be decoded"),
        ({"unpacked": 0}, "directory and slots take"),
        ({"size": 3}, "can't be decoded"),
        ({"offset": 1}, "can't be decoded"),
    ],
)
def test_a_bucket_that_does_not_unpack_to_what_it_claims_is_refused(
    changes: dict[str, int], match: str, path: Path
) -> None:
    refused(parts(path).with_bucket(1, 0, **changes).data(), path, match, "validate", "add")


def test_a_row_group_of_more_rows_than_can_be_decoded_is_refused(path: Path) -> None:
    whole = parts(path).with_group(1, rows=mosaic_limits.ROWS_MAX + 1)
    refused(whole.data(), path, "a row group of 268435457 rows is too large", *DECODING, error=UnsupportedError)


@pytest.mark.parametrize(
    ("size", "match"),
    [
        (HUGE, "a schema of 4294967295 bytes; 67108864 are read"),
        (100_000, "the schema decompresses to .* bytes, 100000 are claimed"),
        (3, "the schema decompresses to more bytes, 3 are claimed"),
    ],
)
def test_a_schema_that_does_not_unpack_to_its_size_is_refused(size: int, match: str, path: Path) -> None:
    whole = parts(path)
    bad = replace(whole, schema=size.to_bytes(4, "big") + whole.schema[4:])
    assert refused(bad.data(), path, match).offset == len(whole.body)


def test_a_schema_that_is_not_compressed_as_the_footer_says_is_refused(path: Path) -> None:
    whole = parts(path)
    refused(replace(whole, schema=whole.schema[:4] + b"\0" * 40).data(), path, "the schema can't be decompressed")
    refused(replace(whole, compression=0).data(), path, "columns|buckets|names|bytes")


@pytest.fixture
def paged(tmp_path: Path) -> tuple[Path, Parts, int]:
    """A file with a paged bucket, and where that starts."""
    (tmp_path / "work").mkdir(exist_ok=True)
    whole = Parts.of((MOSAIC / "released_paged.mosaic").read_bytes())
    bucket = next(b for b in whole.groups[0].buckets if b.size and not b.unpacked)
    return tmp_path / "f", whole, bucket.offset


def test_a_slot_of_a_paged_bucket_that_claims_too_much_is_refused(paged: tuple[Path, Parts, int]) -> None:
    path, whole, start = paged
    names = ("milli", "money", "nano", "nothing", "real", "same", "small")
    slots = [int.from_bytes(whole.body[start + 4 * i :][:4], "little") for i in range(len(names))]
    assert slots[names.index("nothing")] == 0
    work = path.parent / "work" / "bad.mosaic"
    real = start + 4 * len(names) + sum(slots[:4])
    work.write_bytes(whole.with_body(real, b"\xff\xff\xff\xff\x0f").data())
    with pytest.raises(CorruptFile, match="4294967295 bytes are claimed to be compressed here") as caught:
        bloomcli.add(work, ["real", "small"], output=work.with_name("out"), **DRAFT)
    assert (caught.value.offset, caught.value.field) == (real, "row_groups[0].buckets[1].columns[12]")
    small = real + sum(slots[4:6])
    work.write_bytes(whole.with_body(small, b"\xff" * 6).data())
    with pytest.raises(CorruptFile, match="a column's size, unpacked: a varint of more than 5 bytes") as caught:
        bloomcli.add(work, ["small"], output=work.with_name("out"), **DRAFT)
    assert caught.value.offset == small
    assert list(work.parent.iterdir()) == [work]


def test_a_directory_of_a_paged_bucket_with_wrong_claims_is_refused(paged: tuple[Path, Parts, int]) -> None:
    path, whole, start = paged
    work = path.parent / "work" / "bad.mosaic"
    work.write_bytes(whole.with_body(start, b"\xff\xff\xff\xff").data())
    with pytest.raises(CorruptFile, match="directory and slots take") as caught:
        bloomcli.add(work, ["same"], output=work.with_name("out"), **DRAFT)
    assert caught.value.offset == start


def test_metadata_of_more_parts_than_are_read_are_refused_by_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = path.read_bytes()
    needed = 0
    while needed < 1000:
        monkeypatch.setattr(mosaic_limits, "PARTS_MAX", needed)
        try:
            bloomcli.inspect(path)
            break
        except UnsupportedError:
            needed += 1
    assert 10 < needed < 1000, "columns, row groups, buckets, statistics and filters count"
    monkeypatch.setattr(mosaic_limits, "PARTS_MAX", needed - 1)
    refused(data, path, f"metadata of more than {needed - 1} parts", error=UnsupportedError)


def test_an_index_of_many_empty_row_groups_takes_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosaic_limits, "PARTS_MAX", 1 << 18)
    whole = parts(path)
    count = mosaic_limits.PARTS_MAX + 1
    many = replace(whole, index=bytes(4 * count), group_count=count)
    refused(many.data(), path, "metadata of more than", "inspect", error=UnsupportedError)


def test_footers_of_very_many_parts_are_not_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mosaic_limits, "DUMP_MAX_PARTS", 5)
    with pytest.raises(UnsupportedError, match="more than 5 parts"):
        bloomcli.inspect(path, footer=True)
