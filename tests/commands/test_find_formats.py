"""find in ORC and Mosaic files, and in lakes of several formats: the bytes that it reads, and errors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from support import orcfiles
from support.orcfiles import ROW_INDEX, File

import bloomcli

ROWS = 40_000
STRIDE = 1000


def rows_of(found: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ORC file of one stripe and 40 row groups, in whose ids every row group has the same bounds."""
    path = tmp_path_factory.mktemp("orc") / "f.orc"
    ids = [n * 7919 % 100_003 for n in range(ROWS)]
    table = pa.table({"id": ids, "name": [f"{n:x}" * 9 for n in ids], "tags": [[n, n + 1] for n in ids]})
    orc.write_table(table, path, row_index_stride=STRIDE, compression="zlib", bloom_filter_columns=[1, 2])
    assert orc.ORCFile(path).nstripes == 1
    return path


def id_of(row: int) -> int:
    return row * 7919 % 100_003


@pytest.mark.parametrize("row", [0, 999, 1000, 17_500, 39_999])
def test_of_the_column_only_the_row_groups_bytes_are_read(path: Path, row: int) -> None:
    found = bloomcli.find(path, id_of(row), column="id", select=["id"])
    assert [(r["stripe"], r["row_group"], r["row"], r["record"]) for r in rows_of(found)] == [
        (0, row // STRIDE, row, {"id": id_of(row)})
    ]
    column = sum(p.compressed_bytes or 0 for p in _streams(path, "name") if p.kind in {"DATA", "LENGTH"})
    maybe = bloomcli.find(path, f"{id_of(row):x}" * 9, column="name", select=["id"])
    assert [r["row"] for r in rows_of(maybe)] == [row]
    assert maybe.report.row_groups_possible < 5
    index = sum(p.compressed_bytes or 0 for p in _streams(path, "name") if p.kind not in {"DATA", "LENGTH"})
    ids = sum(p.compressed_bytes or 0 for p in _streams(path, "id"))
    overhead = 2 * index + 2 * ids + 20_000  # the row index is read twice; footers
    assert maybe.report.bytes_read < overhead + column / 4


def _streams(path: Path, column: str) -> list[Any]:
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        file = open_file(source)
        return list(file.pages(next(c for c in file.columns if c.path == column)))


def indexed(path: Path, target: Path, edit: Any) -> Path:
    """The file with other entries in the row index of the column `id`."""

    def change(file: File) -> None:
        from bloomcli.formats.orc import spec

        place = file.place(ROW_INDEX, 1)
        stripe = file.stripes[0]
        message = spec.message("RowIndex")()
        message.ParseFromString(file.plain(stripe.streams[place]))
        edit(message.entry)
        stripe.streams[place] = file.packed(message.SerializeToString())

    return orcfiles.edited(path, target, change)


def shifted(entries: Any) -> None:
    """Each row group's positions are those of the next one."""
    for entry, following in zip(entries, list(entries)[1:], strict=False):
        del entry.positions[:]
        entry.positions.extend(following.positions)


def behind_the_end(entries: Any) -> None:
    for entry in entries:
        entry.positions[0] = 1 << 60


def too_few(entries: Any) -> None:
    for entry in entries:
        del entry.positions[-1:]


def in_no_run(entries: Any) -> None:
    for entry in entries:
        entry.positions[-1] = 100_000


@pytest.mark.parametrize("edit", [behind_the_end, too_few, in_no_run])
def test_positions_that_cannot_be_are_not_used(path: Path, tmp_path: Path, edit: Any) -> None:
    changed = indexed(path, tmp_path / "f.orc", edit)
    for row in (0, 1500, 39_000):
        found = bloomcli.find(changed, id_of(row), column="id", select=["id"])
        assert [r["row"] for r in rows_of(found)] == [row]
        assert not found.report.errors


def test_positions_of_another_row_group_are_noticed_by_the_count_of_values(tmp_path: Path) -> None:
    ids = [None if n < 5000 and n % 3 else n * 7919 % 100_003 for n in range(10_000)]
    orc.write_table(pa.table({"id": ids}), tmp_path / "whole.orc", row_index_stride=STRIDE, bloom_filter_columns=[1])
    changed = indexed(tmp_path / "whole.orc", tmp_path / "f.orc", lambda entries: shifted(list(entries)[3:6]))
    for row in (4002, 9000):
        found = bloomcli.find(changed, str(ids[row]), column="id", select=["id"])
        assert [r["row"] for r in rows_of(found)] == [row]


def test_statistics_that_a_filter_contradicts_are_not_trusted(path: Path, tmp_path: Path) -> None:
    def lie(entries: Any) -> None:
        for entry in entries:
            entry.statistics.int_statistics.minimum += 200_000
            entry.statistics.int_statistics.maximum += 200_000

    changed = indexed(path, tmp_path / "f.orc", lie)
    for values in ([id_of(17_500)], [id_of(n) for n in range(17_500, 18_000)]):
        found = rows_of(bloomcli.find(changed, values, column="id", select=["id"]))
        assert [r["row"] for r in found] == [17_500 + n for n in range(len(values))]
    bare = tmp_path / "bare.orc"
    bloomcli.remove(changed, output=bare)
    for values in ([id_of(17_500)], [id_of(n) for n in range(17_500, 18_000)]):
        assert rows_of(bloomcli.find(bare, values, column="id")) == [], "they are believed, as readers do"


def test_a_nan_and_both_zeros_are_found(tmp_path: Path) -> None:
    bits = [0x7FF8000000000000, 0xFFF8000000000001, 0x3FF0000000000000, 0, 1 << 63]
    orc.write_table(pa.table({"x": pa.array(bits, pa.uint64()).view(pa.float64())}), tmp_path / "f.orc")
    for values, rows in ((["nan"], [0, 1]), (["0"], [3, 4]), (["nan", "1", "-0.0"], [0, 1, 2, 3, 4])):
        assert [r["row"] for r in rows_of(bloomcli.find(tmp_path / "f.orc", values, column="x"))] == rows


def test_lists_and_encrypted_columns_are_refused_by_name(path: Path, fixtures: Path) -> None:
    found = bloomcli.find(path, 5, column="tags")
    assert rows_of(found) == []
    (error,) = found.report.errors
    assert "column tags is a list" in str(error.error)
    assert "tags._elem" in str(error.hint)
    encrypted = bloomcli.find(fixtures / "orc/java_encrypted.orc", "x", column="secret")
    assert rows_of(encrypted) == []
    assert "column secret is encrypted" in str(encrypted.report.errors[0].error)
    assert encrypted.report.exit_code == 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["released_types", "released_paged", "draft_types"])
def test_mosaic_rows_are_those_that_the_decoder_gives(fixtures: Path, name: str) -> None:
    path = fixtures / f"mosaic/{name}.mosaic"
    whole = _decoded(path)
    for column in whole.column_names:
        kind = whole.schema.field(column).type
        values = whole.column(column).to_pylist()
        if pa.types.is_nested(kind):
            found = bloomcli.find(path, "1", column=column)
            assert rows_of(found) == []
            assert "has no values to find" in str(found.report.errors[0].error)
            continue
        for number, value in enumerate(dict.fromkeys([*[v for v in values if v is not None][:3], values[-1]])):
            if value is None:
                continue
            for repeats in (1, 300) if number == 0 else (1,):
                found = bloomcli.find(path, [_text(value)] * repeats, column=column)
                rows = rows_of(found)
                assert not found.report.errors
                assert [r["row"] for r in rows] == [at for at, other in enumerate(values) if other == value]
                assert all(r["record"] == whole.slice(r["row"], 1).to_pylist()[0] for r in rows[:3])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _decoded(path: Path) -> pa.Table:
    from bloomcli.formats.mosaic.file import MosaicFile
    from bloomcli.formats.mosaic.values import ColumnReader
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        file = MosaicFile(source)
        with ColumnReader(file.footer, [file.footer.columns[at] for at in file.footer.schema.order]) as reader:
            batches = [reader.decoded(group) for group in file.footer.row_groups]
    return pa.Table.from_batches(batches)


def one_more(entries: Any) -> None:
    """An entry before the others, so that each is of the rows before those that it is counted for."""
    copies = [type(entries[0]).FromString(entry.SerializeToString()) for entry in entries]
    del entries[:]
    entries.extend([copies[0], *copies])


def one_less(entries: Any) -> None:
    del entries[0]


@pytest.mark.parametrize("edit", [one_more, one_less])
def test_a_row_index_of_another_number_of_row_groups_is_not_used(tmp_path: Path, edit: Any) -> None:
    orc.write_table(pa.table({"id": range(10_000)}), tmp_path / "whole.orc", row_index_stride=STRIDE)
    changed = indexed(tmp_path / "whole.orc", tmp_path / "f.orc", edit)
    for row in (0, 999, 1000, 5500, 9999):
        found = bloomcli.find(changed, row, column="id")
        assert [r["row"] for r in rows_of(found)] == [row]
    many = bloomcli.find(changed, pa.array(range(0, 10_000, 7)), column="id")
    assert [r["row"] for r in rows_of(many)] == list(range(0, 10_000, 7))


def test_a_mosaic_filter_without_the_row_groups_own_bounds_is_not_believed(fixtures: Path) -> None:
    path = fixtures / "rules/filter-all-zero/broken.mosaic"
    found = bloomcli.find(path, "name 77", column="name")
    assert [r["row"] for r in rows_of(found)] == [41]
    many = bloomcli.find(path, pa.array([f"name {n}" for n in range(1000)]), column="name")
    assert [r["row"] for r in rows_of(many)] == list(range(80))
    probed = bloomcli.probe(path, column="name", values=["name 77"])
    assert [verdict.presence.value for verdict in probed.verdicts] == ["absent", "can't tell"]


@pytest.mark.parametrize("blooms", [True, False])
def test_texts_with_zero_bytes_are_found_where_orc_cpp_takes_others_for_the_bounds(
    tmp_path: Path, blooms: bool
) -> None:
    """It compares texts up to a zero byte, and then by their lengths. Rows with the real bounds were lost."""
    for name, texts in {"high": ["a", "x\0aaaa", "x\0z"], "low": ["z", "x\0aaaa", "x\0z"]}.items():
        path = tmp_path / f"{name}.orc"
        orc.write_table(pa.table({"c": texts}), path, bloom_filter_columns=[1] if blooms else None)
        for row, text in enumerate(texts):
            assert [found["row"] for found in rows_of(bloomcli.find(path, [text], column="c"))] == [row]
            assert not bloomcli.probe(path, [text], column="c").absent_everywhere
        others = [*map(str, range(300))]
        assert [found["row"] for found in rows_of(bloomcli.find(path, [*others, *texts], column="c"))] == [0, 1, 2]
        assert rows_of(bloomcli.find(path, ["x", "x\1", "0"], column="c")) == []
