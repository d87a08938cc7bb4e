"""Files that aren't Parquet, are cut off, contradict themselves or are encrypted: each has a specific error."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import footers, thrift
from support.encrypted import write_encrypted
from support.tables import write
from support.thrift import Fields, Items

import bloomcli
from bloomcli import limits
from bloomcli.errors import BloomError, CorruptFile, UnreadableError, UnsupportedError, UsageError
from bloomcli.formats.parquet.footer import read_footer
from bloomcli.model.file import Presence
from bloomcli.storage.registry import open_source

pytestmark = pytest.mark.slow

SCHEMA, NUM_ROWS = 2, 3
TABLE = pa.table({"id": pa.array(range(100), pa.int64()), "n": [f"n{i}" if i % 3 else None for i in range(100)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 100 rows in 2 row groups, with a filter by bloom on `n`."""
    write(tmp_path / "f.parquet", TABLE, rows=50, store_schema=False)
    bloomcli.add(tmp_path / "f.parquet", ["n"], in_place=True)
    return tmp_path / "f.parquet"


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """No file may make bloom allocate memory according to a number in it."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 << 20


COMMANDS: dict[str, Callable[[Path], Any]] = {
    "inspect": bloomcli.inspect,
    "dump": lambda p: bloomcli.dump(p, column="n"),
    "probe": lambda p: bloomcli.probe(p, ["n1"], column="n"),
    "validate": lambda p: bloomcli.validate(p, deep=True, require=["*"]),
    "add": lambda p: bloomcli.add(p, ["*"], output=p.with_name("out"), replace=True),
    "dry_run": lambda p: bloomcli.add(p, ["*"], dry_run=True, replace=True),
    "remove": lambda p: bloomcli.remove(p, in_place=True),
    "fold": lambda p: bloomcli.fold(p, in_place=True),
}


def refused(
    path: Path, kind: type[BloomError], message: str, commands: tuple[str, ...] = tuple(COMMANDS)
) -> BloomError:
    """Check that every command refuses the file with the same error, and doesn't change the folder."""
    before = path.read_bytes()
    for command in commands:
        with pytest.raises(kind, match=message) as caught:
            COMMANDS[command](path)
        assert caught.value.path == str(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert caught.value.hint or kind is not UnsupportedError
        assert (path.read_bytes(), list(path.parent.iterdir())) == (before, [path])
    return caught.value


@pytest.mark.parametrize(
    ("data", "message", "offset"),
    [
        (b"", "the file is empty", 0),
        (b"P", "b'PAR1'", 0),
        (b"PAR1", "not a Parquet file: 4 bytes, the shortest has 12", 0),
        (b"PAR1" * 2, "not a Parquet file: 8 bytes", 0),
        (b"hello, world, this is text\n", "b'PAR1'", 23),
        (b"\x7fELF" + bytes(99), "b'PAR1'", 99),
        (b"PAR1" + bytes(100), "a Parquet file that was cut off", 100),
        (b"PAR1" + bytes(100) + b"\xff\xff\xff\xff" + b"PAR1", "footer's length, 4294967295, is beyond", 104),
        (b"PAR1" + bytes(100) + b"\x65\0\0\0" + b"PAR1", "footer's length, 101, is beyond", 104),
        (b"PAR1" + bytes(100) + bytes(4) + b"PAR1", "the structure runs past its end", 104),
        (b"PAR1" + bytes(100) + b"\x64\0\0\0" + b"PAR1", "FileMetaData has no schema", 4),
    ],
)
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, data: bytes, message: str, offset: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    assert refused(path, CorruptFile, message).offset == offset


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    for command in COMMANDS.values():
        with pytest.raises(UnreadableError, match="no such file"):
            command(tmp_path / "none")


def test_a_directory_is_refused_by_commands_on_one_file_and_needs_files_for_the_others(tmp_path: Path) -> None:
    for name, command in COMMANDS.items():
        if name == "dump":
            with pytest.raises(UnreadableError, match="a directory"):
                command(tmp_path)
        else:
            with pytest.raises(UsageError, match=r"the directory holds no files|--output names one file"):
                command(tmp_path)


def test_a_footer_above_the_ceiling_is_not_read(tmp_path: Path) -> None:
    path, size = tmp_path / "f", limits.FOOTER_MAX_BYTES + 1
    with path.open("wb") as file:
        file.truncate(size + 100)  # a hole: it takes no room
        file.seek(size + 100)
        file.write(size.to_bytes(4, "little") + b"PAR1")
    for command in COMMANDS.values():
        with pytest.raises(UnsupportedError, match=f"the footer has {size} bytes, more than"):
            command(path)


def test_a_file_cut_at_any_length_is_refused_and_nothing_is_left(path: Path) -> None:
    whole = path.read_bytes()
    for size in (*range(20), *range(20, len(whole) - 20, 11), *range(len(whole) - 20, len(whole))):
        path.write_bytes(whole[:size])
        for command in ("inspect", ("add", "validate", "remove")[size % 3]):
            with pytest.raises(BloomError):
                COMMANDS[command](path)
    assert list(path.parent.iterdir()) == [path]


def test_a_footer_cut_at_any_length_is_refused(path: Path) -> None:
    body, footer = footers.split(path.read_bytes())
    for size in range(len(footer)):
        path.write_bytes(footers.join(body, footer[:size]))
        for command in ("inspect", "add"):
            with pytest.raises(CorruptFile):
                COMMANDS[command](path)
    assert list(path.parent.iterdir()) == [path]


NEST = {
    "structs": b"\x1c" * 100_000,
    "lists": b"\x19" + b"\x19" * 100_000,
    "sets": b"\x1a" + b"\x1a" * 100_000,
    "maps": b"\x1b" + b"\x01\xbb" * 100_000,
    "schema": b"\x15\x02" + b"\x19\x1c" + b"\x1c" * 100_000,
}


@pytest.mark.parametrize("shape", NEST)
def test_thrift_that_nests_without_end_is_refused(path: Path, shape: str) -> None:
    body, footer = footers.split(path.read_bytes())
    path.write_bytes(footers.join(body, NEST[shape] + footer))
    error = refused(path, CorruptFile, "nest")
    assert error.offset is not None
    assert error.offset < len(body) + 300


@pytest.mark.parametrize(
    ("kind", "size"), [(0xF9FC, 2**31 - 1), (0xF9F5, 2**32 - 1), (0xF9F1, 2**63), (0xFAF8, 2**31 - 1)]
)
def test_a_list_of_more_elements_than_bytes_is_refused(path: Path, kind: int, size: int) -> None:
    body, footer = footers.split(path.read_bytes())
    head = (kind >> 8 & 0x0F | 0x10, kind & 0xFF)
    path.write_bytes(footers.join(body, bytes(head) + thrift.varint(size) + footer))
    refused(path, CorruptFile, "larger than the bytes that are left")


def edit(path: Path, change: Callable[[Fields], None]) -> None:
    path.write_bytes(footers.edited(path.read_bytes(), change))


def element(metadata: Fields, index: int) -> Fields:
    found: Fields = metadata[SCHEMA][1].values[index]
    return found


CHILDREN, TYPE, NAME, LENGTH, REPETITION = 5, 1, 4, 2, 3


def lie(number: int, value: tuple[int, Any], index: int = 0) -> Callable[[Fields], None]:
    return lambda m: element(m, index).update({number: value})


SCHEMA_LIES: dict[str, tuple[Callable[[Fields], None], str]] = {
    "more_children": (lie(CHILDREN, (thrift.I32, 3)), "ends before its groups are full"),
    "fewer_children": (lie(CHILDREN, (thrift.I32, 1)), "more elements than its groups name"),
    "negative_children": (lie(CHILDREN, (thrift.I32, -1)), "ends before its groups are full"),
    "countless_children": (lie(CHILDREN, (thrift.I32, 2**31 - 1)), "ends before its groups are full"),
    "nameless": (lambda m: element(m, 1).pop(NAME) and None, "a schema element has no name"),
    "child_of_itself": (lie(CHILDREN, (thrift.I32, 2**31 - 1), 1), "num_children is 2147483647"),
    "other_type": (lie(TYPE, (thrift.I32, 1), 2), "the chunk is BYTE_ARRAY, the schema says INT32"),
    "no_such_type": (lie(TYPE, (thrift.I32, 99), 2), "the chunk is BYTE_ARRAY, the schema says CODE 99"),
    "no_width": (lie(TYPE, (thrift.I32, 7), 1), "a fixed-length column of None bytes"),
    "zero_width": (
        lambda m: element(m, 1).update({TYPE: (thrift.I32, 7), LENGTH: (thrift.I32, 0)}),
        "a fixed-length column of 0 bytes",
    ),
    "type_is_text": (lie(TYPE, (thrift.BINARY, b"INT64"), 1), "SchemaElement has no type"),
    "empty": (lambda m: m[SCHEMA][1].values.clear(), "the schema has 0"),
    "not_structs": (
        lambda m: m.update({SCHEMA: (thrift.LIST, Items(thrift.I32, [1, 2]))}),
        "schema is not a list of structures",
    ),
}


@pytest.mark.parametrize("name", SCHEMA_LIES)
def test_a_schema_with_wrong_claims_is_refused(path: Path, name: str) -> None:
    change, message = SCHEMA_LIES[name]
    edit(path, change)
    named = tuple(COMMANDS)[1:] if name == "empty" else ()  # they look for a column first
    error = refused(path, CorruptFile, message, tuple(c for c in COMMANDS if c not in named))
    assert error.field
    assert error.offset is not None


def group(metadata: Fields, index: int) -> Fields:
    found: Fields = metadata[footers.ROW_GROUPS][1].values[index]
    return found


CHUNK_LIES: dict[str, tuple[Callable[[Fields], None], str, str]] = {
    "a_chunk_less": (
        lambda m: group(m, 1)[1][1].values.pop() and None,
        "row group 1 has 1 column chunk, the schema has 2 leaf columns",
        "row_groups[1].columns",
    ),
    "a_chunk_more": (
        lambda m: group(m, 1)[1][1].values.append(footers.chunk(m, 1, 1)),
        "row group 1 has 3 column chunks, the schema has 2 leaf columns",
        "row_groups[1].columns",
    ),
    "no_metadata": (lambda m: footers.chunk(m, 1, 1).pop(3) and None, "has no metadata", "row_groups[1].columns[1]"),
    "no_type": (lambda m: footers.meta(m, 1, 1).pop(1) and None, "ColumnMetaData has no type", "type"),
    "no_rows": (lambda m: group(m, 1).pop(3) and None, "RowGroup has no num_rows", "row_groups[1]"),
    "negative_rows": (lambda m: m.update({NUM_ROWS: (thrift.I64, -1)}), "num_rows is -1", "num_rows"),
}


@pytest.mark.parametrize("name", CHUNK_LIES)
def test_row_groups_with_wrong_claims_are_refused(path: Path, name: str) -> None:
    change, message, field = CHUNK_LIES[name]
    edit(path, change)
    skip = {"dump", "fold", "remove"} | ({"inspect", "probe"} if name in {"no_metadata", "no_rows"} else set())
    error = refused(path, CorruptFile, message, tuple(c for c in COMMANDS if c not in skip))
    assert field in (error.field or "")
    assert len(footers.split(path.read_bytes())[0]) <= (error.offset or 0) < path.stat().st_size


def test_a_column_that_all_row_groups_lack_is_refused(path: Path) -> None:
    def drop(metadata: Fields) -> None:
        for index in range(2):
            group(metadata, index)[1][1].values.pop()

    edit(path, drop)
    message = "row group 0 has 1 column chunk, the schema has 2 leaf columns"
    refused(path, CorruptFile, message)
    found = bloomcli.find(path, ["n1"], column="n")
    assert list(found) == []
    (failed,) = found.report.errors
    assert message in (failed.error or "")


def test_a_summary_file_that_points_elsewhere_is_refused(path: Path) -> None:
    def point(metadata: Fields) -> None:
        for row_group, column in footers.places(path.read_bytes()):
            chunk = footers.chunk(metadata, row_group, column)
            fields = {1: (thrift.BINARY, b"part-0.parquet"), **chunk}
            chunk.clear()
            chunk.update(fields)

    edit(path, point)
    error = refused(path, UnsupportedError, "the data lies in another file, 'part-0.parquet'")
    assert (error.field or "").endswith("].file_path")
    assert "_metadata" in (error.hint or "")


def test_a_column_whose_metadata_is_encrypted_too_has_no_answer(tmp_path: Path) -> None:
    """The number of values isn't known, which differs from no values."""
    path = write_encrypted(tmp_path / "f", TABLE, column_keys={"key": ["n"]}, plaintext_footer=True)
    body, footer = footers.split(path.read_bytes())
    metadata, end = thrift.parse(footer)
    del footers.chunk(metadata, 0, 1)[footers.META_DATA]
    path.write_bytes(footers.join(body, thrift.encode(metadata) + footer[end:]))
    verdict = bloomcli.probe(path, ["n1"], column="n").verdicts[0]
    assert (verdict.presence, verdict.reason) == (Presence.UNKNOWN, "the column is encrypted")
    assert verdict.stats_skip is None


@pytest.mark.parametrize("part", ["", "meta_data", "meta_data.statistics"])
def test_a_field_that_comes_twice_is_refused_by_every_command_at_the_same_place(path: Path, part: str) -> None:
    with open_source(path) as source:
        footer = read_footer(source)
    key = next(iter(footer.chunk_keys({1})))
    struct = footer.chunk_struct(key)
    for field, name in zip(part.split("."), ("ColumnMetaData", "Statistics"), strict=False):
        if field:
            inner = struct.struct(field, name)
            assert inner is not None
            struct = inner
    number = next(iter(struct.spans))
    again = bytes([thrift.I64]) + thrift.zigzag(number) + thrift.zigzag(4)
    raw = footer.raw[: struct.end - 1] + again + footer.raw[struct.end - 1 :]
    body = path.read_bytes()[: footer.start]
    path.write_bytes(body + raw + len(raw).to_bytes(4, "little") + b"PAR1")
    places = set()
    for command in COMMANDS.values():
        with pytest.raises(CorruptFile, match="a field id is repeated") as fault:
            command(path)
        places.add((fault.value.offset, fault.value.field))
    wanted = "row_groups[0].columns[1]" + (f".{part}" if part else "")
    assert places == {(footer.start + struct.end - 1, wanted)}
