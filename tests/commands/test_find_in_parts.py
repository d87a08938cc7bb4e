"""find: values in parts give the rows of the same values at once, and each row once with the first of its values."""

from __future__ import annotations

import gzip
import pickle
import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import mosaicfiles
from support.object_stores import SCHEME, MemoryObjects
from support.value_lookups import watched_lookups

import bloomcli
from bloomcli.commands import find, value_parts
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.commands.value_parts import ValueParts
from bloomcli.concurrency.cancellation import Stop, Stopped
from bloomcli.errors import LiteralError, SourceChanged, UsageError
from bloomcli.finding import value_file
from bloomcli.finding.lake import Search
from bloomcli.formats import finding
from bloomcli.formats.mosaic import search as mosaic_search
from bloomcli.formats.orc import search as orc_search
from bloomcli.formats.parquet import search as parquet_search
from bloomcli.formats.unit_search import UnitSearch
from bloomcli.storage import registry

ROWS = 6000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
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


def parted(values: Sequence[str], size: int) -> ValueParts:
    return ValueParts(texts(values[at : at + size]) for at in range(0, len(values), size))


def found(where: Any, values: Values | ValueParts, **options: Any) -> tuple[list[tuple[Any, ...]], Any]:
    search = Search([str(where)], values, FindOptions(**options), jobs=2)
    rows = [
        (row["path"], row["row_group"], row["row"], row["value"], repr(row["record"]))
        for one in search.files()
        for batch in one.batches
        for row in batch.to_pylist()
    ]
    return rows, search.report


@pytest.fixture(params=["filters first", "columns first"])
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is asked of a file first, whatever takes less time. Fails if the other was."""
    columns = request.param == "columns first"
    monkeypatch.setattr(parquet_search, "read_first", lambda *_: columns)
    for module in (orc_search, mosaic_search):
        monkeypatch.setattr(module, "SOUGHT_FOR_EACH", 0 if columns else 1 << 60)
    known = watched_lookups(monkeypatch)
    yield
    assert set(known) <= {columns}


VALUES = {
    "id": [str(n) for n in range(0, 30_000, 7)] + ["7", "7", "0x0e", "14"],
    "text": [f"t{n}" for n in range(0, 30_000, 5)] + ["t5", "other"],
    "money": [f"{n / 100:.2f}" for n in range(0, 4000, 3)],
    "real": [str(n / 4) for n in range(0, 4000, 3)] + ["nan"] + [str(n / 4) for n in range(1, 400, 3)],
    "flag": ["true"] * 400,
}


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("size", [pytest.param(300, marks=pytest.mark.slow), 1000])
@pytest.mark.usefixtures("order")
def test_values_in_parts_find_the_same_rows(
    lake: Path, column: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = VALUES[column]
    expected, report = found(lake, Values(texts(values)), column=column, select=("id",))
    assert len(expected) > 100
    rows, again = found(lake, parted(values, size), column=column, select=("id",))
    assert rows == expected
    assert (again.rows, again.values, again.files_found) == (report.rows, report.values, report.files_found)
    # what is left of each part waits in a temporary file, and is looked for in several rounds
    monkeypatch.setattr(value_parts, "_HELD_BYTES", 1000)
    monkeypatch.setattr(value_parts, "PART_VALUES", size)
    assert found(lake, parted(values, size), column=column, select=("id",))[0] == expected


@pytest.mark.usefixtures("order")
def test_each_part_is_looked_for_in_its_own_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first part were read for all: rows of the others were lost."""
    monkeypatch.setattr(value_parts, "PART_VALUES", 300)
    path = tmp_path / "f.parquet"
    table = pa.table({"id": range(6000)})
    pq.write_table(table, path, use_dictionary=False, write_page_index=True, data_page_size=800, write_batch_size=100)
    values = [str(n) for n in range(0, 6000, 2)]
    rows, _ = found(path, parted(values, 300), column="id")
    assert [row[2] for row in rows] == list(range(0, 6000, 2))


@pytest.mark.parametrize("suffix", ["parquet", "orc", "mosaic"])
def test_booleans_are_found_in_every_format(tmp_path: Path, suffix: str) -> None:
    """Only Parquet's type has the name BOOLEAN: a search of other files for millions of texts ended with a bug."""
    path = tmp_path / f"f.{suffix}"
    table = pa.table({"flag": [True, None, False, True] * 10})
    writers = {"parquet": pq.write_table, "orc": orc.write_table, "mosaic": lambda t, p: mosaicfiles.write(p, t)}
    writers[suffix](table, path)
    rows, report = found(path, parted(["true"] * 900, 300), column="flag")
    assert [row[2] % 4 for row in rows] == [0, 3] * 10
    assert report.errors == ()
    rows, _ = found(path, parted(["false"] * 300 + ["1"] * 300, 300), column="flag")
    assert [row[2] % 4 for row in rows] == [0, 2, 3] * 10
    _, report = found(path, parted(["true"] * 600 + ["7"] * 300, 300), column="flag")
    assert "'7' is not a value of column flag" in str(report.errors[0].error)


@pytest.mark.usefixtures("order")
def test_a_row_comes_once_with_the_first_of_its_values(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_parts, "PART_VALUES", 300)
    values = [str(n) for n in range(3000, 5000)]
    rows, _ = found(lake, parted(values, 300), column="tags.list.element", select=("id",))
    places = [row[:3] for row in rows]
    assert len(places) == len(set(places))
    assert places == sorted(places)
    for row in rows:
        number = int(row[4].split(": ")[1].rstrip("}"))
        assert int(row[3]) in {number, number + 1}
    whole, _ = found(lake, Values(texts(values)), column="tags.list.element", select=("id",))
    assert [row[:3] for row in whole] == places


@pytest.mark.usefixtures("order")
@pytest.mark.parametrize(
    "options", [{"limit": 17}, {"files_only": True}, {"maybe": True}], ids=lambda o: next(iter(o))
)
def test_limits_and_files_are_the_same(lake: Path, options: dict[str, Any]) -> None:
    values = [str(n) for n in range(0, 30_000, 7)]
    expected, report = found(lake, Values(texts(values)), column="id", **options)
    rows, again = found(lake, parted(values, 500), column="id", **options)
    assert rows == expected
    assert (again.rows, again.files_found, again.exit_code) == (report.rows, report.files_found, report.exit_code)
    assert (again.row_groups_possible, again.limited) == (report.row_groups_possible, report.limited)


@pytest.mark.usefixtures("order")
def test_a_text_that_is_no_value_is_an_error_of_each_file(lake: Path) -> None:
    rows, report = found(lake, parted([*map(str, range(600)), "a word"], 300), column="id")
    assert rows == []
    assert report.exit_code == 2
    assert "not a value of column id" in report.errors[0].error


@pytest.mark.parametrize("parts", [True, False])
def test_a_text_that_is_no_value_is_met_once_and_named_for_each_file(
    tmp_path: Path, parts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Millions of values before it were converted anew for each file."""
    converted: list[int] = []
    wanted = UnitSearch.wanted

    def watched(self: UnitSearch, given: pa.LargeBinaryArray) -> Any:
        converted.append(len(given))
        return wanted(self, given)

    monkeypatch.setattr(UnitSearch, "wanted", watched)
    for at in range(5):
        pq.write_table(pa.table({"id": range(9)}), tmp_path / f"{at}.parquet")
    values = [*map(str, range(600)), "a word"]
    _, report = found(tmp_path, parted(values, 300) if parts else Values(texts(values)), column="id")
    said = "'a word' is not a value of column id, INT64"
    assert [str(one.error) for one in report.errors] == [f"{tmp_path / f'{at}.parquet'}: {said}" for at in range(5)]
    assert converted == ([300, 300, 1] if parts else [601])


@pytest.mark.parametrize("parts", [True, False])
def test_a_stop_ends_the_conversion_of_values(tmp_path: Path, parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C waited for millions of decimals to be converted: 35 seconds for 5 million."""
    stop, parsed = Stop(), []
    parse = finding.parse

    def watched(text: str, column: Any, **options: Any) -> Any:
        parsed.append(text)
        stop.requested = len(parsed) > 20_000
        return parse(text, column, **options)

    monkeypatch.setattr(finding, "parse", watched)
    pq.write_table(pa.table({"id": pa.array([Decimal("0.25")])}), tmp_path / "f.parquet")
    values = [f"{n}.25" for n in range(60_000)]
    sought = parted(values, 30_000) if parts else Values(texts(values))
    with pytest.raises(Stopped):
        find.run(str(tmp_path / "f.parquet"), FindOptions(column="id"), sought, lambda _: None, stop)
    assert len(parsed) <= 33_000
    stop.requested = False
    parsed.clear()
    rows: list[Any] = []
    find.run(str(tmp_path / "f.parquet"), FindOptions(column="id"), sought, rows.append, Stop())
    assert len(rows) == 1, "what was stopped isn't taken for converted"


def test_a_store_is_asked_for_filters_once(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryObjects()
    monkeypatch.setitem(registry.BY_SCHEME, SCHEME, store)
    data = (lake / "1.parquet").read_bytes()
    store.client.store(f"{SCHEME}://lake/f.parquet", data + bytes(0))
    values = [str(n) for n in range(0, 30_000, 7)]
    found(f"{SCHEME}://lake/f.parquet", Values(texts(values)), column="id", maybe=True)
    once = len(store.client.requests)
    found(f"{SCHEME}://lake/f.parquet", parted(values, 300), column="id", maybe=True)
    assert len(store.client.requests) == 2 * once


def test_arrays_and_files_of_many_values_are_taken_in_parts(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(value_file, "PART_VALUES", 1000)
    monkeypatch.setattr(value_file, "_BLOCK_BYTES", 777)
    numbers = list(range(0, 30_000, 7))
    assert isinstance(value_file.values_of_array(pa.array(numbers)), ValueParts)
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
    assert isinstance(values, ValueParts)
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


@pytest.mark.usefixtures("order")
def test_row_groups_of_stripes_are_searched_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    numbers = random.Random(4).sample(range(100_000), 60_000)
    orc.write_table(pa.table({"id": numbers}), path, stripe_size=100_000, row_index_stride=5000, compression="zlib")
    assert orc.ORCFile(path).nstripes > 1
    values = [str(n) for n in range(0, 100_000, 7)]
    expected, _ = found(path, Values(texts(values)), column="id")
    assert len(expected) > 5000
    assert found(path, parted(values, 1000), column="id")[0] == expected


@pytest.mark.parametrize("parts", [True, False])
def test_a_file_that_is_written_to_during_the_search_is_an_error_and_one_that_is_replaced_is_not(
    tmp_path: Path, parts: bool
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
        sought = parted(values, 700) if parts else Values(texts(values))
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
