"""add and remove on ORC files: every other stream keeps its bytes, and unknown fields are kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import orcfiles, thrift
from support.orcfiles import ROW_INDEX, File, encrypted, typed

import bloomcli
from bloomcli.errors import BloomError, UnsupportedError, UsageError
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import INDEX_KINDS

ADDED = [*orcfiles.CASES, *orcfiles.NESTED]
LAYOUTS: dict[str, dict[str, Any]] = {
    "one stripe": {},
    "row groups": {"stride": 13},
    "stripes": {"stripe": 16},
    "stripes of row groups": {"stripe": 32, "stride": 10},
    "as old as Hive 0.11": {"file_version": "0.11", "stride": 20},
    "dictionaries": {"dictionary_key_size_threshold": 1.0, "stride": 30},
    "compressed": {"compression": "zlib", "stride": 40},
}


def lengths(file: File) -> list[tuple[int, int, int]]:
    return [(s.index_length, s.data_length, s.number_of_rows) for s in file.footer.stripes]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_stream_changes_when_filters_come_and_go(tmp_path: Path, layout: str) -> None:
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(100), **LAYOUTS[layout])
    before = orcfiles.split(path)
    report = bloomcli.add(path, ADDED, output=tmp_path / "out", kind="both")
    after = orcfiles.split(tmp_path / "out")
    assert [after.streams(s) for s in range(len(after.stripes))] != list(orcfiles.unfiltered(after))
    assert list(orcfiles.unfiltered(after)) == list(orcfiles.unfiltered(before))
    check_places(before, after)
    assert [p.gap for p in after.stripes] == [p.gap for p in before.stripes]
    assert after.metadata == before.metadata
    assert orcfiles.read(tmp_path / "out").equals(orcfiles.read(path))
    size = (tmp_path / "out").stat().st_size
    footers = sum(s.footer_length for s in before.footer.stripes) + before.postscript.footer_length
    assert (report.bytes_after, report.bytes_before) == (size, path.stat().st_size)
    assert report.bytes_copied == report.bytes_before - footers - path.read_bytes()[-1] - 1
    bloomcli.remove(tmp_path / "out", in_place=True)
    again = orcfiles.split(tmp_path / "out")
    assert lengths(again) == lengths(before)
    assert [again.streams(s) for s in range(len(again.stripes))] == list(orcfiles.unfiltered(before))
    assert [p.footer for p in again.stripes] == [p.footer for p in before.stripes]
    content = again.footer.content_length, again.metadata
    assert content[1] == before.metadata
    footers_grew = sum(s.footer_length for s in again.footer.stripes) - footers + before.postscript.footer_length
    assert content[0] == before.footer.content_length + footers_grew
    if "compression" not in LAYOUTS[layout]:  # compressors give different bytes for a footer
        assert (tmp_path / "out").read_bytes() == path.read_bytes()


def check_places(before: File, after: File) -> None:
    """Stripes lie where the footer says, and the lengths add up."""
    end = 0
    for part in after.stripes:
        info = part.info
        assert info.offset == end + len(part.gap)
        index = [s.length for s in part.footer.streams if spec.name_of("StreamKind", s.kind) in INDEX_KINDS]
        assert info.index_length == sum(index)
        assert info.data_length == sum(s.length for s in part.footer.streams) - sum(index)
        end = info.offset + info.index_length + info.data_length + info.footer_length
    grown = end - sum(
        len(p.gap) + p.info.index_length + p.info.data_length + p.info.footer_length for p in before.stripes
    )
    assert grown > 0
    assert after.footer.content_length == before.footer.content_length + grown


def test_the_output_is_the_same_regardless_of_the_threads(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", orcfiles.everything(100), stripe=10, stride=4)
    bloomcli.add(path, ADDED, output=tmp_path / "one", threads=1, kind="both")
    seen: list[tuple[str, int, int]] = []
    report = bloomcli.add(
        path, ADDED, output=tmp_path / "many", threads=3, kind="both", progress=lambda *args: seen.append(args)
    )
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()
    for phase, total in (("decode", report.bytes_decoded), ("copy", report.bytes_copied)):
        assert [s for s in seen if s[0] == phase][-1][1:] == (total, total)


def field(number: int, text: bytes) -> bytes:
    """An unknown protobuf field of bytes."""
    return thrift.varint(number << 3 | 2) + thrift.varint(len(text)) + text


def with_unknown(message: Any, text: bytes) -> None:
    message.MergeFromString(field(12_345, text))


MARKED: dict[str, Callable[[File], Any]] = {
    "footer": lambda f: f.footer,
    "postscript": lambda f: f.postscript,
    "stripe information": lambda f: f.footer.stripes[1],
    "type": lambda f: f.footer.types[2],
    "stripe footer": lambda f: f.stripes[1].footer,
    "stream": lambda f: f.stripes[1].footer.streams[0],
    "column encoding": lambda f: f.stripes[1].footer.columns[3],
}


def marked(file: File) -> None:
    for name, find in MARKED.items():
        with_unknown(find(file), f"mark of {name}".encode())


@pytest.mark.parametrize("compression", ["uncompressed", "zlib"])
def test_fields_that_nobody_knows_yet_are_kept(tmp_path: Path, compression: str) -> None:
    table = {"a": range(30_000), "b": [b"%d" % i * 7 for i in range(30_000)], "c": range(30_000), "d": range(30_000)}
    layout = {"compression": compression, "compression_block_size": 1 << 16}
    path = orcfiles.write(tmp_path / "plain", table, stripe=15_000, **layout)
    orcfiles.edited(path, tmp_path / "f", marked)
    bloomcli.add(tmp_path / "f", ["a", "c"], output=tmp_path / "out", kind="both")
    bloomcli.remove(tmp_path / "out", output=tmp_path / "again")
    for name in ("f", "out", "again"):
        file = orcfiles.split(tmp_path / name)
        assert len(file.stripes) >= 2
        for mark, find in MARKED.items():
            message = find(file)
            assert field(12_345, f"mark of {mark}".encode()) in message.SerializeToString(), (name, mark)
    assert orcfiles.read(tmp_path / "out").equals(orcfiles.read(path))


def test_bytes_that_belong_to_no_stream_are_kept_at_their_stripes_end(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "plain", orcfiles.everything(40), stripe=20)

    def pad(file: File) -> None:
        for at, part in enumerate(file.stripes):
            part.rest = b"rest %d" % at * 5
            part.gap += b"gap %d" % at * 3
        file.metadata = b"loose bytes" + file.metadata

    orcfiles.edited(path, tmp_path / "f", pad)
    bloomcli.add(tmp_path / "f", ["int64"], output=tmp_path / "out")
    before, after = orcfiles.split(tmp_path / "f"), orcfiles.split(tmp_path / "out")
    assert [(p.gap, p.rest) for p in after.stripes] == [(p.gap, p.rest) for p in before.stripes]
    assert after.metadata == before.metadata
    assert orcfiles.read(tmp_path / "out").equals(orcfiles.read(path))
    bloomcli.remove(tmp_path / "out", in_place=True)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "f").read_bytes()


def test_streams_of_kinds_that_nobody_knows_yet_are_kept(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "plain", {"a": range(20), "b": range(20)})

    def add(file: File) -> None:
        file.insert(len(file.stripes[0].streams), 99, 1, b"of the future")

    orcfiles.edited(path, tmp_path / "f", add)
    bloomcli.add(tmp_path / "f", ["a", "b"], output=tmp_path / "out")
    file = orcfiles.split(tmp_path / "out")
    assert file.stripes[0].streams[file.place(99, 1)] == b"of the future"


def union(file: File) -> None:
    file.footer.types[3].kind = spec.value_of("TypeKind", "UNION")
    file.footer.types[3].ClearField("field_names")


def versioned(*version: int) -> Callable[[File], None]:
    def edit(file: File) -> None:
        file.postscript.version[:] = version

    return edit


def bare(file: File) -> None:
    """A file whose root is no struct: one value for each row, as ORC Java can write it."""
    kept = [file.footer.types[1]]
    del file.footer.types[:]
    file.footer.types.extend(kept)


REFUSED: dict[str, tuple[str, Callable[[File], object], type[BloomError], str]] = {
    "boolean": ("flag", lambda _: None, UsageError, "boolean"),
    "within a union": ("s.0", union, UnsupportedError, "within a union"),
    "an unknown type": ("CODE", typed(1, kind=42), UnsupportedError, "hashed exactly"),
    "no precision": ("d", typed(5, precision=0), UnsupportedError, "hashed exactly"),
    "version 1.0": ("i", versioned(1, 0), UnsupportedError, "file version 1.0"),
    "version 1.9999": ("i", versioned(1, 9999), UnsupportedError, "file version 1.9999"),
    "no row index": ("i", lambda f: f.footer.ClearField("row_index_stride"), UnsupportedError, "no row index"),
    "no row index stream": ("i", lambda f: f.drop(f.place(ROW_INDEX, 1)), UnsupportedError, "row index in stripe 0"),
    "a root that is no struct": ("(root)", bare, UnsupportedError, "root, which is no struct"),
    "encryption": ("i", encrypted(1), UnsupportedError, "column i is encrypted"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cant_have_filters_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    column, edit, error, message = REFUSED[name]
    table = {
        "i": [1, 2],
        "flag": [True, None],
        "s": [{"0": 1}, {"0": 2}],
        "d": orcfiles.CASES["decimal_9_2"].array(2),
    }
    path = orcfiles.write(tmp_path / "plain", table)
    orcfiles.edited(path, tmp_path / "f", edit)
    before = (tmp_path / "f").read_bytes()
    column = "i" if column == "CODE" else column
    for options in ({"output": tmp_path / "out"}, {"in_place": True}, {"dry_run": True}):
        with pytest.raises(error, match=message) as caught:
            bloomcli.add(tmp_path / "f", [column], **options)  # type: ignore[arg-type]
        assert caught.value.hint or name == "no row index stream"
    assert {p.name for p in tmp_path.iterdir()} == {"plain", "f"}
    assert (tmp_path / "f").read_bytes() == before


SAME_NAMES: dict[str, pa.Table] = {
    "two columns": pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    "two fields": pa.table({"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])}),
    "a dot in a column's name": pa.table({"a.b": [1], "a": [{"b": 2}]}),
    "a dot in a field's name": pa.table({"s": [{"x.y": 1, "x": {"y": 2}}]}),
    "two lists": pa.Table.from_arrays([pa.array([[1]]), pa.array([[2]])], names=["l", "l"]),
}


@pytest.mark.parametrize("name", SAME_NAMES)
def test_columns_of_the_same_name_get_each_its_own_filters(tmp_path: Path, name: str) -> None:
    path = orcfiles.write(tmp_path / "f", SAME_NAMES[name])
    bloomcli.add(path, ["*"], in_place=True)
    bloomcli.add(path, ["*"], in_place=True, replace=True)
    report = bloomcli.validate(path, deep=True)
    assert (report.findings, report.values_checked) == ((), 2)
    held = [orcfiles.split(path).filters(t.id) for t in orcfiles.leaf_types(path)]
    for column, index in enumerate(held):
        (item,) = index.bloom_filter
        size = len(item.utf8bitset) * 8, item.num_hash_functions
        assert item.utf8bitset == orcfiles.bits_of([orcfiles.long_hash(column + 1)], *size)
