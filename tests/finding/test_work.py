"""The search that executors run: blocks of values, and records of one shape."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.found_lake import FILES, ROWS, made

import bloomcli
from bloomcli.commands.options import FindOptions
from bloomcli.datasets import value_blocks as blocks
from bloomcli.datasets.record_shape import Shape, leaves, prune_shape, shape_by_names
from bloomcli.datasets.value_blocks import Blocks, SharedBlocks, packed
from bloomcli.finding import work
from bloomcli.finding.search_files import FileWork, Job, parts_of
from bloomcli.finding.work import search
from bloomcli.model.find import FileFound
from bloomcli.tables.iceberg.reading import rows_of


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("lake"))


def searched(
    files: Sequence[Path], values: Sequence[pa.Array], job: Job
) -> tuple[list[dict[str, Any]], list[FileFound]]:
    """The rows, and what was done with each file."""
    found = list(search((tuple(FileWork(str(file)) for file in files), job), Blocks(map(packed, values))))
    rows = [row for one in found if isinstance(one, pa.RecordBatch) for row in one.to_pylist()]
    return rows, [one for one in found if isinstance(one, FileFound)]


def files_of(lake: Path) -> list[Path]:
    return sorted(lake.rglob("*.parquet"))


def test_values_in_many_blocks_give_the_same_rows_in_order(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = pa.array(range(0, 40_000, 3))
    job = Job(FindOptions(column="id", select=["id"]).checked(), typed=True)
    whole, done = searched(files_of(lake), [wanted], job)
    assert sorted(row["value"] for row in whole) == list(range(0, FILES * ROWS, 3))
    assert all(row["value"] == row["record"]["id"] for row in whole)
    for size in (1000, 5000):
        monkeypatch.setattr(blocks, "BLOCK_VALUES", size)
        monkeypatch.setattr(work, "BLOCK_VALUES", size)
        pieces = [wanted[at : at + 700] for at in range(0, len(wanted), 700)]
        rows, files = searched(files_of(lake), pieces, job)
        assert rows == whole
        assert [(f.path, f.rows, f.row_groups) for f in files] == [(f.path, f.rows, f.row_groups) for f in done]


@pytest.mark.parametrize("maybe", [False, True])
def test_values_in_many_blocks_name_and_count_the_same_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maybe: bool
) -> None:
    """Row groups of ORC are counted within their stripe; each block may have others."""
    orc.write_table(pa.table({"id": range(3000)}), tmp_path / "f.orc", stripe_size=1, row_index_stride=100)
    wanted = pa.array(range(0, 3000, 30))
    job = Job(FindOptions(column="id", maybe=maybe).checked(), typed=True)
    (whole,) = searched([tmp_path / "f.orc"], [wanted], job)[1]
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 10)
    monkeypatch.setattr(work, "BLOCK_VALUES", 10)
    (many,) = searched([tmp_path / "f.orc"], [wanted[at : at + 10] for at in range(0, 100, 10)], job)[1]
    counted = [(f.row_groups_possible, f.stripes_possible, f.row_groups_read) for f in (whole, many)]
    assert len(set(counted)) == 1
    assert len(set(whole.stripes_possible)) > 1


def test_filters_are_read_once_for_all_blocks(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(FindOptions(column="id").checked())
    absent = pa.array([str(n).encode() for n in range(10**6, 10**6 + 8000)], pa.large_binary())
    (once,) = searched(files_of(lake)[:1], [absent], job)[1]
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 1000)
    (many,) = searched(files_of(lake)[:1], [absent[at : at + 1000] for at in range(0, 8000, 1000)], job)[1]
    assert (many.rows, many.row_groups_read) == (0, 0)
    assert many.bytes_read <= 2 * once.bytes_read, "once to choose values, once to find them"


def firsts(monkeypatch: pytest.MonkeyPatch, at: Any, name: str) -> list[Any]:
    """The first argument of each call of a module's function."""
    arguments: list[Any] = []
    original = getattr(at, name)

    def watched(first: Any, *more: Any) -> Any:
        arguments.append(first)
        return original(first, *more)

    monkeypatch.setattr(at, name, watched)
    return arguments


def test_values_in_many_blocks_are_converted_once_for_all_files(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.commands import find
    from bloomcli.formats import wanted_values

    monkeypatch.setattr(blocks, "BLOCK_VALUES", 1000)
    converted, searches = firsts(monkeypatch, wanted_values, "wanted"), firsts(monkeypatch, find, "open_source")
    absent = pa.array(range(10**6, 10**6 + 8000))
    job = Job(FindOptions(column="id").checked(), typed=True)
    rows, done = searched(files_of(lake), [absent[at : at + 1000] for at in range(0, 8000, 1000)], job)
    assert (rows, [one.row_groups for one in done]) == ([], [4] * FILES)
    assert sum(map(len, converted)) <= 8000 + 100 * FILES, "100 for the values that a file's filters leave"
    assert len(searches) <= FILES


def test_values_in_one_block_are_converted_once_for_all_files(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.formats import wanted_values

    converted = firsts(monkeypatch, wanted_values, "wanted")
    some = pa.array(range(0, 2 * FILES * ROWS, 2))
    rows, _ = searched(files_of(lake), [some], Job(FindOptions(column="id").checked(), typed=True))
    assert len(rows) == FILES * ROWS // 2
    assert [len(texts) for texts in converted] == [len(some)]


@pytest.mark.parametrize("count", [1, FILES])
def test_a_file_that_changes_between_its_blocks_is_an_error_and_not_rows_of_two_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    from bloomcli.commands import find

    lake = made(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 100)
    monkeypatch.setattr(work, "BLOCK_VALUES", 100)
    files = files_of(lake)[:count]
    job = Job(FindOptions(column="id").checked(), typed=True)
    here = pa.array(range(ROWS))
    values = [here[at : at + 100] for at in range(0, 1000, 100)]
    assert len(searched(files, values, job)[0]) > 200
    original, ran = find.run, list[str]()

    def replaced(path: str, *rest: Any, **more: Any) -> FileFound:
        found = original(path, *rest, **more)
        if path == str(files[0]) and path not in ran:
            ran.append(path)
            pq.write_table(pq.read_table(path).slice(1), path)
        return found

    monkeypatch.setattr(find, "run", replaced)
    rows, done = searched(files, values, job)
    assert ran
    assert [row for row in rows if row["path"] == str(files[0])] == []
    assert "changed while it was being worked on" in str(done[0].error)


def test_files_of_another_schema_and_damaged_ones_are_searched_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = made(tmp_path)
    pq.write_table(pa.table({"id": pa.array([5000, 10**6], pa.int32())}), lake / "a.parquet")
    pq.write_table(pa.table({"id": ["5000", "x"]}), lake / "b.parquet")
    (lake / "c.parquet").write_bytes(b"PAR1 this is no file PAR1")
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 1000)
    job = Job(FindOptions(column="id", select=["id"]).checked(), typed=True)
    wanted = pa.array(range(4000, 9000))
    for files in (files_of(lake), files_of(lake)[::-1]):
        rows, done = searched(files, [wanted], job)
        assert len(rows) == 4000 + 2
        assert [bool(one.error) for one in done] == [file.name == "c.parquet" for file in files]


@pytest.mark.parametrize("many", [False, True])
def test_rows_of_lists_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: bool) -> None:
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({"tags": [[1, 2], [3], [2, 4, 1], []]}), path)
    if many:
        monkeypatch.setattr(blocks, "BLOCK_VALUES", 1)
        monkeypatch.setattr(work, "BLOCK_VALUES", 1)
    job = Job(FindOptions(column="tags.list.element").checked(), typed=True)
    rows, _ = searched([path], [pa.array([1]), pa.array([2]), pa.array([7])], job)
    assert [row["row"] for row in rows] == [0, 2]


def shape(**kinds: Any) -> Shape:
    return shape_by_names(pa.schema(kinds))


def test_a_file_that_fails_gives_none_of_the_rows_before_the_fault(tmp_path: Path) -> None:
    path, ids = tmp_path / "damaged.orc", list(range(40_000))
    random.Random(1).shuffle(ids)
    orc.write_table(pa.table({"id": ids}), path, stripe_size=16 << 10, batch_size=1000, compression="zlib")
    assert orc.ORCFile(path).nstripes == 2
    data = bytearray(path.read_bytes())
    at = len(data) * 9 // 10
    data[at : at + 500] = b"\xff" * 500
    path.write_bytes(data)
    values = pa.array([str(ids[0]).encode(), str(ids[-1]).encode()], pa.large_binary())
    rows, (done,) = searched([path], [values], Job(FindOptions(column="id").checked()))
    assert (rows, done.exit_code) == ([], 3)
    found = bloomcli.find(path, values, column="id")
    assert list(found) == []
    assert (found.report.rows, found.report.failed) == (0, 1)


def test_records_have_the_shape_s_types_and_nulls_for_what_a_file_lacks(tmp_path: Path) -> None:
    path = tmp_path / "narrow.parquet"
    kind = pa.struct({"a": pa.int32(), "b": pa.list_(pa.struct({"c": pa.int8()}))})
    deep = pa.array([{"a": 1, "b": [{"c": 2}]}, None], kind)
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "deep": deep, "other": ["x", "y"]}), path)
    wide = pa.struct({"b": pa.list_(pa.struct({"c": pa.int64(), "new": pa.string()})), "a": pa.int64()})
    job = Job(FindOptions(column="id").checked(), shape=shape(id=pa.int64(), deep=wide, gone=pa.date32()))
    rows, _ = searched([path], [pa.array([b"1", b"2"], pa.large_binary())], job)
    assert [row["record"] for row in rows] == [
        {"id": 1, "deep": {"b": [{"c": 2, "new": None}], "a": 1}, "gone": None},
        {"id": 2, "deep": None, "gone": None},
    ]
    narrow = Job(FindOptions(column="id").checked(), shape=shape(id=pa.int64(), other=pa.int64()))
    _, (failed,) = searched([path], [pa.array([b"1"], pa.large_binary())], narrow)
    assert f"{path}: its column other is string, which isn't read as int64" in str(failed.error)
    assert (failed.exit_code, failed.hint) == (4, "--select names other columns; or search the files separately")


def test_uuids_of_an_iceberg_table_are_texts_in_the_files_of_every_writer(tmp_path: Path) -> None:
    fields = [(1, "id", "long"), (2, "u", "uuid"), (3, "l", {"type": "list", "element-id": 4, "element": "uuid"})]
    schema = {"fields": [{"id": number, "name": name, "type": kind} for number, name, kind in fields]}
    schema["fields"][2]["type"]["element-required"] = False
    mapping = [
        {"field-id": number, "names": [name]} for number, name in ((1, "id"), (2, "u"), (3, "l"), (4, "element"))
    ]
    columns = rows_of(schema, lambda: [schema], mapping, {}, []).shape
    job = Job(FindOptions(column="id").checked(), shape=columns)
    number, text = UUID(int=5), "00000000-0000-0000-0000-000000000005"
    rows = {"id": [1, 2], "u": [number.bytes, None], "l": [[number.bytes, None], None]}
    for kind in (pa.uuid(), pa.binary(16), pa.binary()):
        table = pa.table({**rows, "u": pa.array(rows["u"], kind)})
        pq.write_table(table, path := tmp_path / "of.parquet")
        files = [path]
        if kind == pa.binary():
            orc.write_table(table, path := tmp_path / "of.orc")
            files.append(path)
        for file in files:
            found, _ = searched([file], [pa.array([b"1", b"2"], pa.large_binary())], job)
            assert [row["record"] for row in found] == [
                {"id": 1, "u": text, "l": [text, None]},
                {"id": 2, "u": None, "l": None},
            ]
    pq.write_table(pa.table({"id": [1], "u": [b"short"]}), path)
    _, (failed,) = searched([path], [pa.array([b"1"], pa.large_binary())], job)
    assert f"{path}: its column u can't be read as string" in str(failed.error)


def typed(schema: pa.Schema) -> Job:
    """A job of records with these columns."""
    shape: Shape = shape_by_names(schema)
    return Job(FindOptions(column="id").checked(), shape=shape, read=shape, typed=True)


def small_files(folder: Path, count: int, kinds: dict[int, pa.DataType]) -> list[Path]:
    """Files with ids from 0 on, ten in each, and a column of the usual type or of another."""
    files = [folder / f"{number}.parquet" for number in range(count)]
    for number, file in enumerate(files):
        ids = range(10 * number, 10 * number + 10)
        other = pa.array([None if n % 4 == 0 else n for n in ids], pa.int32()).cast(kinds.get(number, pa.int32()))
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "other": other}), file)
    return files


def test_typed_rows_of_files_with_other_types_are_in_order(tmp_path: Path) -> None:
    files = small_files(tmp_path, 12, {3: pa.int16(), 4: pa.int16(), 8: pa.int64()})
    wanted = pa.array([n for n in range(120) if n // 10 != 6 and n % 3], pa.int64())
    rows, done = searched(files, [wanted], typed(pa.schema({"id": pa.int64(), "other": pa.int64()})))
    ids = wanted.to_pylist()
    assert [row["value"] for row in rows] == ids
    assert [row["row"] for row in rows] == [n % 10 for n in ids]
    assert [row["path"] for row in rows] == [str(files[n // 10]) for n in ids]
    assert [row["record"] for row in rows] == [{"id": n, "other": None if n % 4 == 0 else n} for n in ids]
    assert [(one.path, one.rows) for one in done] == [
        (str(file), sum(n // 10 == number for n in ids)) for number, file in enumerate(files)
    ]


def test_what_a_part_made_of_shared_values_serves_the_next_one(tmp_path: Path) -> None:
    files = small_files(tmp_path, 12, {3: pa.int64(), 9: pa.int16()})
    job = typed(pa.schema({"id": pa.int64(), "other": pa.int64()}))
    wanted = pa.array(range(0, 120, 7))
    whole, done = searched(files, [wanted], job)
    shared = pickle.loads(pickle.dumps(SharedBlocks([packed(wanted)])))
    rows, again, made = [], [], set()
    for at in (0, 3, 6, 9):
        part = (tuple(FileWork(str(file)) for file in files[at : at + 3]), job)
        for one in search(part, shared.blocks()):
            if isinstance(one, FileFound):
                again.append(one)
            else:
                rows += one.to_pylist()
        made.add(id(shared._kept))
    assert rows == whole
    assert [(one.path, one.rows) for one in again] == [(one.path, one.rows) for one in done]
    assert len(made) == 1
    assert shared._kept.only.given.equals(wanted)
    assert pickle.loads(pickle.dumps(shared))._kept is None


def test_of_shared_values_in_several_blocks_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 8)
    files = small_files(tmp_path, 3, {})
    shared = SharedBlocks([packed(pa.array(range(at, at + 8))) for at in range(0, 24, 8)])
    part = (tuple(map(FileWork, map(str, files))), typed(pa.schema({"id": pa.int64(), "other": pa.int32()})))
    for _ in range(2):
        rows = [
            row for one in search(part, shared.blocks()) if isinstance(one, pa.RecordBatch) for row in one.to_pylist()
        ]
        assert [row["value"] for row in rows] == list(range(24))
        assert shared._kept is None


def test_the_work_on_a_file_is_the_same_in_another_process() -> None:
    for file in (
        FileWork("a"),
        FileWork("a", walked=True),
        FileWork("a", constants={"day": None}),
        FileWork("a", walked=True, found=FileFound(path="a"), indexed_column="id"),
    ):
        assert pickle.loads(pickle.dumps(file, 5)) == file


def test_a_file_without_the_shape_is_named_and_the_others_have_rows(tmp_path: Path) -> None:
    files = small_files(tmp_path, 9, {4: pa.string(), 5: pa.string()})
    job = typed(pa.schema({"id": pa.int64(), "other": pa.int32()}))
    rows, done = searched(files, [pa.array(range(0, 90, 2))], job)
    failed = [one for one in done if one.error is not None]
    assert [one.path for one in done] == [str(file) for file in files]
    assert [one.path for one in failed] == [str(files[4]), str(files[5])]
    assert all(str(one.path) in str(one.error) for one in failed)
    assert [row["value"] for row in rows] == [n for n in range(0, 90, 2) if n // 10 not in (4, 5)]


def test_a_shape_keeps_the_chosen_leaves() -> None:
    whole = shape(a=pa.int64(), b=pa.struct({"x": pa.string(), "y": pa.map_(pa.string(), pa.int64())}))
    assert leaves(whole) == ["a", "b.x", "b.y.key", "b.y.value"]
    assert leaves(prune_shape(whole, {"b.x"})) == ["b.x"]
    assert leaves(prune_shape(whole, {"b.y.value"})) == ["b.y.key", "b.y.value"], "a map has both"


def test_parts_hold_all_files_in_order_and_large_files_alone() -> None:
    files = [FileWork(str(number)) for number in range(50)]
    sizes = [100 << 20 if number == 25 else 1 << 20 for number in range(50)]
    parts = parts_of(files, sizes, Job(FindOptions(column="id")), 4)
    assert [file for part, _ in parts for file in part] == files
    assert 4 <= len(parts) <= 32
    assert parts_of([], [], Job(FindOptions(column="id")), 4) == []


def test_the_value_column_has_the_type_of_the_values(tmp_path: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    path = tmp_path / "types.parquet"
    columns = {
        "date": pa.array([dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
        "time": pa.array([dt.datetime(2026, 1, 1, 1, 2, 3, 4, dt.UTC), None], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), Decimal("2.00")], pa.decimal128(10, 2)),
        "score": pa.array([float("nan"), -0.0]),
        "flag": pa.array([True, False]),
        "key": pa.array([b"\x00\xff", b"\x01"]),
        "text": pa.array(["x", "ü"]),
        "small": pa.array([-1, 7], pa.int8()),
    }
    pq.write_table(pa.table(columns), path)
    for name, values in columns.items():
        job = Job(FindOptions(column=name).checked(), typed=True)
        (batch, _) = list(search(((FileWork(str(path)),), job), Blocks([packed(values.drop_null())])))
        assert isinstance(batch, pa.RecordBatch)
        assert batch.column("value").type == values.type, name
        assert repr(batch.column("value").to_pylist()) == repr(values.drop_null().to_pylist()), name


def test_both_engines_name_the_same_bytes(lake: Path) -> None:
    found = bloomcli.find(lake, [5, 4000], column="id")
    list(found)
    texts = pa.array([b"5", b"4000"], pa.large_binary())
    _, files = searched(files_of(lake), [texts], Job(FindOptions(column="id").checked()))
    assert sum(file.scan_bytes for file in files) == found.report.scan_bytes
