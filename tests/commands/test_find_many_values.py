"""find: more values than are looked up one by one, and where they come from."""

from __future__ import annotations

import gzip
import pickle
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles
from support.wrong_statistics import lying

import bloomcli
from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.concurrency.threads import Stop, Stopped
from bloomcli.errors import LiteralError, SourceChanged, UsageError
from bloomcli.finding import value_file
from bloomcli.finding.lake import Search
from bloomcli.formats import wanted_values
from bloomcli.formats.column_search import ColumnSearch

ROWS = 6000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    rng = random.Random(3)
    for file in range(3):
        numbers = [rng.randrange(20_000) for _ in range(ROWS)]
        table = pa.table(
            {
                "id": pa.array(numbers, pa.int64()),
                "text": [f"t{n}" if n % 11 else None for n in numbers],
                "money": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
                "real": pa.array([float("nan") if n % 50 == 0 else n / 4 for n in numbers]),
                "flag": [n % 2 == 0 for n in numbers],
                "tags": [[n, n + 1] for n in numbers],
            }
        )
        blooms = {"id": {"ndv": 2000, "fpp": 0.01}} if file else None
        options: dict[str, Any] = {"write_page_index": True, "data_page_size": 2000, "write_batch_size": 100}
        pq.write_table(table, folder / f"{file}.parquet", row_group_size=2000, bloom_filter_options=blooms, **options)
    return folder


def texts(values: Sequence[str]) -> pa.LargeBinaryArray:
    return pa.array([value.encode() for value in values], pa.large_binary())


def found(where: Any, values: Values, **options: Any) -> tuple[list[tuple[Any, ...]], Any]:
    search = Search([str(where)], values, FindOptions(**options), jobs=2)
    rows = [
        (row["path"], row["row_group"], row["row"], row["value"], repr(row["record"]))
        for one in search.files()
        for batch in one.batches
        for row in batch.to_pylist()
    ]
    return rows, search.report


KINDS = (pa.int64(), pa.int32(), pa.int16(), pa.decimal128(12, 2), pa.float64(), pa.string(), pa.date32())


@pytest.mark.parametrize("blooms", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_many_values_of_every_type_are_found_in_every_format(tmp_path: Path, kind: pa.DataType, blooms: bool) -> None:
    rng = random.Random(5)
    numbers = [rng.randrange(20_000) if n % 17 else None for n in range(3000)]
    wanted = set(range(0, 20_000, 7))
    table = pa.table({"id": pa.array(numbers, pa.int32()).cast(kind), "n": range(3000)})
    filters: dict[str, Any] = {"bloom_filter_options": {"id": {"ndv": 1100, "fpp": 0.02}}} if blooms else {}
    pq.write_table(
        table,
        tmp_path / "f.parquet",
        row_group_size=1100,
        use_dictionary=not blooms,
        write_page_index=True,
        data_page_size=2000,
        write_batch_size=100,
        **filters,
    )
    more: dict[str, Any] = {"bloom_filter_columns": [1]} if blooms else {"dictionary_key_size_threshold": 1.0}
    orc.write_table(table, tmp_path / "f.orc", stripe_size=20_000, row_index_stride=1000, **more)
    mosaicfiles.write(tmp_path / "f.mosaic", table, batch=1000)
    given = [str(value) for value in pa.array(sorted(wanted), pa.int32()).cast(kind).to_pylist()]
    expected = [(n, number) for n, number in enumerate(numbers) if number in wanted]
    for name in ("f.parquet", "f.orc", "f.mosaic"):
        rows, report = found(tmp_path / name, Values(texts(given)), column="id")
        assert report.errors == ()
        assert [row[2] for row in rows] == [n for n, _ in expected], name
        assert [row[3] for row in rows] == [given[number // 7] for _, number in expected], name


def test_nan_and_both_zeros_are_found_among_many_values(tmp_path: Path) -> None:
    numbers = [1.5, float("nan"), -0.0, 0.0, None, 2.5] * 50
    pq.write_table(pa.table({"id": numbers}), tmp_path / "f.parquet", use_dictionary=False, row_group_size=60)
    orc.write_table(pa.table({"id": numbers}), tmp_path / "f.orc")
    for values, rows in ((["0"], 2), (["nan"], 1), (["0", "nan", "2.5"], 4)):
        every = values + [str(n) for n in range(1000, 2000)]
        for order in (every, every[::-1]):
            assert found(tmp_path, Values(texts(order)), column="id")[1].rows == 100 * rows


@pytest.mark.parametrize(("blooms", "rows"), [(True, 500), (False, 0)])
def test_bounds_exclude_many_values_unless_a_filter_contradicts_them(tmp_path: Path, blooms: bool, rows: int) -> None:
    """The bounds of ids from 1000 to 1999 say 5000 to 5999."""
    values = Values(texts([*map(str, range(1500, 2500))]))
    assert found(lying(tmp_path / "f.parquet", blooms=blooms), values, column="id")[1].rows == rows
    path = tmp_path / "f.orc"
    filters: dict[str, Any] = {"bloom_filter_columns": [1], "bloom_filter_fpp": 0.001} if blooms else {}
    orc.write_table(pa.table({"id": range(1000, 2000)}), path, compression="uncompressed", **filters)
    true, false = b"\x08\xd0\x0f\x10\x9e\x1f", b"\x08\x90\x4e\x10\xde\x5d"
    assert true in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(true, false))
    assert found(path, values, column="id")[1].rows == rows


@pytest.mark.parametrize("suffix", ["parquet", "orc", "mosaic"])
def test_row_groups_whose_bounds_exclude_all_values_are_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"f.{suffix}"
    table = pa.table({"id": pa.array(range(10_000), pa.int64())})
    if suffix == "parquet":
        pq.write_table(table, path, row_group_size=1000, use_dictionary=False)
    elif suffix == "orc":
        orc.write_table(table, path, stripe_size=30_000, row_index_stride=1000, batch_size=1000)
    else:
        mosaicfiles.write(path, table, batch=1000, stats_columns=["id"])
    rows, report = found(path, Values(texts([str(n) for n in range(2100, 2600)])), column="id")
    assert [row[2] for row in rows] == [*range(2100, 2600)]
    assert report.row_groups_read < report.row_groups // 2
    rows, report = found(path, Values(texts([str(n) for n in range(20_000, 20_900)])), column="id")
    assert (rows, report.row_groups_read, report.row_groups_possible) == ([], 0, 0)


def test_more_values_than_one_machine_looks_up_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_file, "VALUES_MOST", 1000)
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", 500)
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"{n}\n" for n in range(1001)))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    with pytest.raises(UsageError, match="more than 1,000 values") as error:
        value_file.values_of(str(path))
    assert error.value.path == str(path)
    assert "bloomcli.spark.find" in str(error.value.hint)
    numbers = pa.chunked_array([range(600), range(401)])
    with pytest.raises(UsageError, match="more than 1,000 values"):
        bloomcli.find(tmp_path / "f.parquet", numbers, column="id")
    path.write_text("".join(f"{n}\n" for n in range(1000)))
    assert found(tmp_path / "f.parquet", value_file.values_of(str(path)), column="id")[1].rows == 1


@pytest.mark.parametrize("suffix", ["parquet", "orc", "mosaic"])
def test_booleans_are_found_in_every_format(tmp_path: Path, suffix: str) -> None:
    """Only Parquet's type has the name BOOLEAN: a search of other files for millions of texts ended with a bug."""
    path = tmp_path / f"f.{suffix}"
    table = pa.table({"flag": [True, None, False, True] * 10})
    writers = {"parquet": pq.write_table, "orc": orc.write_table, "mosaic": lambda t, p: mosaicfiles.write(p, t)}
    writers[suffix](table, path)
    rows, report = found(path, Values(texts(["true"] * 900)), column="flag")
    assert [row[2] % 4 for row in rows] == [0, 3] * 10
    assert report.errors == ()
    rows, _ = found(path, Values(texts(["false"] * 300 + ["1"] * 300)), column="flag")
    assert [row[2] % 4 for row in rows] == [0, 2, 3] * 10
    _, report = found(path, Values(texts(["true"] * 600 + ["7"] * 300)), column="flag")
    assert "'7' is not a value of column flag" in str(report.errors[0].error)


def test_a_row_comes_once_with_one_of_its_values(lake: Path) -> None:
    values = [str(n) for n in range(3000, 5000)]
    rows, _ = found(lake, Values(texts(values)), column="tags.list.element", select=("id",))
    places = [row[:3] for row in rows]
    assert len(places) == len(set(places))
    assert places == sorted(places)
    for row in rows:
        number = int(row[4].split(": ")[1].rstrip("}"))
        assert int(row[3]) in {number, number + 1}


def test_a_text_that_is_no_value_is_met_once_and_named_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of values before it were converted anew for each file."""
    converted: list[int] = []
    wanted = ColumnSearch.wanted

    def watched(self: ColumnSearch, given: pa.LargeBinaryArray, stop: Any) -> Any:
        converted.append(len(given))
        return wanted(self, given, stop)

    monkeypatch.setattr(ColumnSearch, "wanted", watched)
    for at in range(5):
        pq.write_table(pa.table({"id": range(9)}), tmp_path / f"{at}.parquet")
    values = [*map(str, range(600)), "a word"]
    _, report = found(tmp_path, Values(texts(values)), column="id")
    said = "'a word' is not a value of column id, INT64"
    assert [str(one.error) for one in report.errors] == [f"{tmp_path / f'{at}.parquet'}: {said}" for at in range(5)]
    assert converted == [601]


@pytest.mark.slow
def test_a_stop_ends_the_conversion_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C waited for millions of decimals to be converted: 35 seconds for 5 million."""
    stop, parsed = Stop(), []
    parse = wanted_values.parse

    def watched(text: str, column: Any, **options: Any) -> Any:
        parsed.append(text)
        stop.requested = len(parsed) > 20_000
        return parse(text, column, **options)

    monkeypatch.setattr(wanted_values, "parse", watched)
    pq.write_table(pa.table({"id": pa.array([Decimal("0.25")])}), tmp_path / "f.parquet")
    values = [f"{n}.25" for n in range(60_000)]
    sought = Values(texts(values))
    with pytest.raises(Stopped):
        find.run(str(tmp_path / "f.parquet"), FindOptions(column="id"), sought, lambda _: None, stop)
    assert len(parsed) <= 33_000
    stop.requested = False
    parsed.clear()
    rows: list[Any] = []
    find.run(str(tmp_path / "f.parquet"), FindOptions(column="id"), sought, rows.append, Stop())
    assert len(rows) == 1, "what was stopped isn't taken for converted"


def test_values_come_from_arrays_and_files(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", 777)
    numbers = list(range(0, 30_000, 7))
    rows = [
        row
        for batch in bloomcli.find(lake, pa.array(numbers), column="id", select=["id"])
        for row in batch.to_pylist()
    ]
    chunks = pa.chunked_array([numbers[:10], numbers[10:]])
    assert rows == [
        row for batch in bloomcli.find(lake, chunks, column="id", select=["id"]) for row in batch.to_pylist()
    ]
    path = tmp_path / "ids.txt"
    path.write_bytes(b"\xef\xbb\xbf" + "".join(f"{n}\r\n\n" for n in numbers).encode())
    values = value_file.values_of(str(path))
    assert values.count == len(numbers)
    assert values.texts.to_pylist() == [str(n).encode() for n in numbers]
    expected, _ = found(lake, Values(texts([str(n) for n in numbers])), column="id")
    assert [row["row"] for row in rows] == [row[2] for row in expected]


@pytest.mark.parametrize("block", [4, 8 << 20])
def test_a_line_that_is_not_utf_8_is_an_error_with_its_place(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", block)
    path = tmp_path / "ids.txt"
    path.write_bytes("käse\n\nrot\n".encode() + b"br\xfcn\n")
    with pytest.raises(UsageError, match="line 4 isn't UTF-8") as error:
        value_file.values_of(str(path))
    assert error.value.offset == 13


def test_a_file_whose_line_has_no_end_is_an_error_and_not_read_on() -> None:
    with pytest.raises(UsageError, match="a line has more than 134,217,728 bytes") as error:
        value_file.values_of("/dev/zero")
    assert error.value.offset == 0


@pytest.mark.parametrize("block", [4, 8 << 20])
def test_a_line_may_be_as_long_as_the_longest_value(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", block)
    monkeypatch.setattr(value_file, "_LINE_MOST", 40)
    path = tmp_path / "texts"
    path.write_text("1\n" + "x" * 40 + "\n22\n" + "y" * 40)
    values = value_file.values_of(str(path))
    assert values.texts.to_pylist() == [b"1", b"x" * 40, b"22", b"y" * 40]
    path.write_text("1\n" + "x" * 41)
    with pytest.raises(UsageError, match="more than 40 bytes") as error:
        value_file.values_of(str(path))
    assert error.value.offset == 2


@pytest.mark.parametrize("block", [4, 8 << 20])
def test_the_line_of_a_text_is_found_wherever_the_file_is_cut(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", block)
    path = tmp_path / f"ids-{block}.txt"
    path.write_bytes(b"\xef\xbb\xbf1\n\n22\r\nx333\nx33\n")
    values = value_file.values_of(str(path))
    for text, line in (("1", 1), ("22", 3), ("x333", 4), ("x33", 5), ("33", None)):
        error = value_file.with_line(LiteralError("no value", text=text), values)
        assert error.reason == (f"no value; line {line} of {path} has it" if line else "no value")
        assert (error.text, pickle.loads(pickle.dumps(error)).text) == (text, text)
    path.unlink()
    error = LiteralError("no value", text="gone by now")
    assert value_file.with_line(error, values) is error


def test_compressed_values_are_an_error_that_says_how_to_read_them(tmp_path: Path) -> None:
    path = tmp_path / "ids.gz"
    path.write_bytes(gzip.compress(b"5\n6\n"))
    with pytest.raises(UsageError, match="line 1 isn't UTF-8") as error:
        value_file.values_of(str(path))
    assert "gzip -dc" in str(error.value.hint)


@pytest.mark.parametrize("content", [b"", b"\n\r\n\n", b"\xef\xbb\xbf"])
def test_a_file_without_values_is_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ids.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="has no values"):
        value_file.values_of(str(path))


def test_blanks_around_a_text_are_part_of_it_and_around_a_number_are_not(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"text": ["a", " a", "a "], "id": [1, 2, 3]}), path)
    for count in (1, 300):
        more = "\nzz" * count
        (tmp_path / "texts.txt").write_text(f" a{more}\n")
        values = value_file.values_of(str(tmp_path / "texts.txt"))
        assert [row[2] for row in found(path, values, column="text")[0]] == [1]
        (tmp_path / "ids.txt").write_text(" 2 " + "\n77" * count)
        values = value_file.values_of(str(tmp_path / "ids.txt"))
        assert [row[2] for row in found(path, values, column="id")[0]] == [1]


def test_a_file_that_is_written_to_during_the_search_is_an_error_and_one_that_is_replaced_is_not(
    tmp_path: Path,
) -> None:
    """Rows of two versions were found, or those of neither: none, without an error."""
    path, other = tmp_path / "f.parquet", tmp_path / "other.parquet"
    for to, first in ((path, 0), (other, 5000)):
        table = pa.table({"id": pa.array(range(first, first + 4000), pa.int64())})
        pq.write_table(table, to, row_group_size=1000, use_dictionary=False, compression="none")
    values = [str(n) for n in range(0, 9000, 5)]
    rows: list[int] = []

    def searched(change: Any) -> Any:
        def emit(batch: pa.RecordBatch) -> None:
            if not rows:
                change()
            rows.extend(batch.column("row").to_pylist())

        rows.clear()
        sought = Values(texts(values))
        return find.run(str(path), FindOptions(column="id"), sought, emit)

    found = searched(lambda: other.with_suffix(".copy").write_bytes(other.read_bytes()))
    assert (found.rows, rows) == (800, list(range(0, 4000, 5)))
    found = searched(lambda: other.with_suffix(".copy").replace(path))
    assert (found.rows, rows) == (800, list(range(0, 4000, 5))), "those of the file that was opened"
    assert searched(lambda: None).rows == 800
    with pytest.raises(SourceChanged, match="changed while it was being worked on"):
        searched(lambda: path.write_bytes(other.read_bytes()[:9000] + path.read_bytes()[9000:]))


def test_damage_by_a_writer_to_the_file_is_reported_as_a_change(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pa.table({"id": pa.array(range(4000), pa.int64())})
    pq.write_table(
        table, path, row_group_size=1000, use_dictionary=False, compression="none", write_page_checksum=True
    )
    data, values = path.read_bytes(), Values(texts([str(n) for n in range(0, 4000, 5)]))
    with pytest.raises(SourceChanged):
        find.run(str(path), FindOptions(column="id"), values, lambda _: path.write_bytes(data[:9000] + bytes(9999)))


def test_bytes_of_uuids_are_found_in_a_column_of_uuids(tmp_path: Path) -> None:
    path, wanted = tmp_path / "f.parquet", UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")
    pq.write_table(pa.table({"u": pa.array([UUID(int=3).bytes, wanted.bytes], pa.uuid())}), path)
    found = bloomcli.find(path, wanted.bytes, column="u")
    assert [row["row"] for batch in found for row in batch.to_pylist()] == [1]
