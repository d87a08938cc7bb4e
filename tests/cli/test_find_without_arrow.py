"""Rows that are found without Arrow are printed as those that are found with it, byte by byte."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers
from support.thrift import Fields

import bloomcli
from bloomcli.commands import find, plain_search
from bloomcli.finding.pruning import Pruning
from bloomcli.model.find import FileFound

ROWS = 3000
RANDOM = random.Random(20261123)


def some(make: Any, *, nulls: bool = True) -> list[Any]:
    """Values of a column, one of four of them null."""
    return [None if nulls and RANDOM.random() < 0.25 else make() for _ in range(ROWS)]


def integers(bits: int, *, signed: bool = True) -> list[Any]:
    """Integers of a width, with the least and the most."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return some(lambda: RANDOM.choice([low, high, 0, RANDOM.randint(low, high)]))


def texts() -> list[Any]:
    """Texts with what JSON and terminals treat in their own way."""
    return some(
        lambda: RANDOM.choice(["", "a", 'q"\\\n\t', "naïve", "日本", "\x1b[31m", "x" * RANDOM.randint(0, 300)])
    )


FLOATS = [0.0, -0.0, 1.5, -0.1, 1e300, 5e-324, float("inf"), float("-inf"), float("nan")]
PLAIN = {
    "int32": (pa.int32(), integers(32)),
    "int64": (pa.int64(), integers(64)),
    "uint32": (pa.uint32(), integers(32, signed=False)),
    "uint64": (pa.uint64(), integers(64, signed=False)),
    "float": (pa.float32(), some(lambda: RANDOM.choice([*FLOATS, 0.1]))),
    "double": (pa.float64(), some(lambda: RANDOM.choice(FLOATS))),
    "bool": (pa.bool_(), some(lambda: RANDOM.random() < 0.5)),
    "text": (pa.string(), texts()),
    "large text": (pa.large_string(), texts()),
    "binary": (pa.binary(), some(lambda: RANDOM.randbytes(RANDOM.randint(0, 9)))),
    "large binary": (pa.large_binary(), some(lambda: RANDOM.randbytes(RANDOM.randint(0, 9)))),
    "int8": (pa.int8(), integers(8)),
    "uint16": (pa.uint16(), integers(16, signed=False)),
    "date": (pa.date32(), some(lambda: date(1, 1, 1) + timedelta(RANDOM.randint(0, 3_650_000)))),
    "seconds": (pa.timestamp("s"), some(lambda: RANDOM.randint(-(1 << 33), 1 << 33))),
    "millis": (pa.timestamp("ms"), some(lambda: RANDOM.randint(-(1 << 40), 1 << 40))),
    "micros": (pa.timestamp("us"), some(lambda: RANDOM.randint(-(1 << 50), 1 << 50))),
    "instant": (pa.timestamp("us", "UTC"), some(lambda: RANDOM.randint(0, 1 << 50))),
    "time": (pa.time32("ms"), some(lambda: RANDOM.randrange(86_400_000))),
    "time of micros": (pa.time64("us"), some(lambda: RANDOM.randrange(86_400_000_000))),
    "decimal": (pa.decimal128(9, 2), some(lambda: Decimal(RANDOM.randint(-999999, 999999)).scaleb(-2))),
    "decimal of 38 digits": (pa.decimal128(38, 9), some(lambda: Decimal(RANDOM.choice([0, -1, 10**20])).scaleb(-9))),
    "fixed": (pa.binary(3), some(lambda: RANDOM.randbytes(3))),
    "nulls": (pa.int64(), [None] * ROWS),
}
"""Columns that are read without Arrow."""
OTHER = {
    "float16": (pa.float16(), some(lambda: RANDOM.choice([0.0, 1.5]))),
    "nanos": (pa.timestamp("ns"), some(lambda: RANDOM.randint(0, 1 << 50) * 1000)),
    "time zone": (pa.timestamp("us", "Europe/Berlin"), some(lambda: RANDOM.randint(0, 1 << 50))),
    "duration": (pa.duration("us"), some(lambda: RANDOM.randint(0, 1 << 40))),  # Parquet's type is INT64, no more
    "far": (pa.timestamp("us"), [1 << 60] * ROWS),  # beyond Python's years
    "wide decimal": (pa.decimal256(50, 2), some(lambda: Decimal(RANDOM.randint(0, 999999)).scaleb(-2))),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), some(lambda: RANDOM.choice("abc"))),
    "list": (pa.list_(pa.int64()), some(lambda: [1, 2])),
    "struct": (pa.struct([("a", pa.int64())]), some(lambda: {"a": RANDOM.randint(0, 9)})),
    "null": (pa.null(), [None] * ROWS),
}
"""Columns that are left to Arrow."""


def table(columns: dict[str, tuple[pa.DataType, list[Any]]]) -> pa.Table:
    """The columns behind a key, each value of which is in three rows."""
    keys = [f"k{n % (ROWS // 3)}" for n in range(ROWS)]
    numbers = [n % (ROWS // 3) for n in range(ROWS)]
    given = {"key": pa.array(keys), "number": pa.array(numbers)}
    return pa.table(given | {name: pa.array(values, kind) for name, (kind, values) in columns.items()})


class Lake:
    """A folder of one file, and its index."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder / "lake", folder / "lake.bloom-index"
        self.folder.mkdir()

    def write(self, data: pa.Table, name: str = "a", **options: Any) -> None:
        """Write a file."""
        pq.write_table(data, self.folder / f"{name}.parquet", **{"row_group_size": ROWS // 2, **options})

    def built(self) -> Lake:
        """The lake with its index."""
        bloomcli.index_build(self.folder, ["key", "number"], output=self.index)
        return self


def _same(line: str) -> bool:
    """Whether a line of a report is the same in both ways: bytes and times aren't."""
    return not line.lstrip().startswith(("read: ", '"bytes_read": ', '"seconds": '))


class Runs:
    """Runs `find` twice: without Arrow where that can be, and with Arrow."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capfd, self._monkeypatch = capfd, monkeypatch
        self.plain: list[bool] = []

    def _one(self, line: Sequence[str]) -> tuple[int, str, str]:
        from bloomcli.cli import run

        code = run(list(line))
        out, err = ("".join(filter(_same, text.splitlines(keepends=True))) for text in self._capfd.readouterr())
        return code, out, err

    def same(self, lake: Lake, *arguments: str) -> str:
        """What both print, by the index and then without it: the same, but for the bytes that were read. `plain` says
        of which files without Arrow: first by the index."""
        self.plain = []
        line = ["find", *arguments, str(lake.folder)]
        by_index = self.both([*line, "--index", str(lake.index)])
        assert self.both(line) == by_index or "json" in arguments  # the report names the index
        return by_index

    def both(self, line: Sequence[str]) -> str:
        """The output of a command without Arrow and with it."""
        search_of, found = plain_search.search_of, plain_search.found

        def searched(*args: Any) -> Any:
            search = search_of(*args)
            if search is None:
                self.plain.append(False)
            return search

        def watched(*args: Any) -> Any:
            self.plain.append(isinstance(one := found(*args), FileFound))
            return one

        with self._monkeypatch.context() as patch:
            patch.setattr(plain_search, "search_of", searched)
            patch.setattr(plain_search, "found", watched)
            plain = self._one(line)
        with self._monkeypatch.context() as patch:
            patch.setattr(find, "_plain", lambda *_, **__: None)
            arrow = self._one(line)
        assert plain == arrow
        return plain[1]


@pytest.fixture
def runs(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(capfd, monkeypatch)


WRITERS: dict[str, dict[str, Any]] = {
    "dictionaries": {},
    "plain": {"use_dictionary": False},
    "pages": {"data_page_size": 500, "write_batch_size": 50, "write_page_index": True},
    "pages, no index": {"data_page_size": 500, "write_batch_size": 50, "use_dictionary": False},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "uncompressed": {"compression": "none"},
    "no Arrow schema": {"store_schema": False},
    "gzip": {"compression": "gzip"},
    "filters": {"bloom_filter_options": {"key": {"ndv": ROWS, "fpp": 0.01}, "number": {"ndv": ROWS, "fpp": 0.01}}},
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_rows_of_plain_columns_are_printed_as_with_arrow(tmp_path: Path, runs: Runs, name: str, form: str) -> None:
    lake = Lake(tmp_path)
    data = table(PLAIN)
    lake.write(data.drop_columns("bool") if name == "version 2" else data, **WRITERS[name])  # there it is RLE
    lake.built()
    for value, column in (("k7", "key"), ("0", "number"), ("999", "number"), ("absent", "key"), ("4", "number")):
        out = runs.same(lake, value, "-c", column, "--format", form)
        assert len(out.splitlines()) == (0 if value == "absent" else 3)
        assert all(runs.plain)
        assert runs.plain or value == "absent"


@pytest.mark.parametrize("name", OTHER)
def test_other_columns_are_left_to_arrow(tmp_path: Path, runs: Runs, name: str) -> None:
    lake = Lake(tmp_path)
    lake.write(table({name: OTHER[name]}))
    lake.built()
    for value in ("7", "500"):
        assert len(runs.same(lake, value, "-c", "number", "--format", "jsonl").splitlines()) == 3
        assert runs.plain == [False, False]


@pytest.mark.parametrize("way", ["--files-only", "--maybe"])
@pytest.mark.parametrize("form", ["text", "jsonl", "paths", "json"])
def test_files_are_printed_as_with_arrow_whatever_columns_they_have(
    tmp_path: Path, runs: Runs, way: str, form: str
) -> None:
    lake = Lake(tmp_path)
    for name, other in OTHER.items():
        lake.write(table({"x": other}), name, **WRITERS["filters"])
    lake.built()
    for value, column in (("k7", "key"), ("999", "number"), ("absent", "key")):
        runs.same(lake, value, "-c", column, way, "--format", form)
        assert all(runs.plain)
        assert runs.plain


WRITTEN = {"binary": "0x00", "large binary": "0x00", "fixed": "0x000000"}
"""Values of types whose text isn't Python's."""


@pytest.mark.parametrize("name", sorted(PLAIN.keys() | OTHER.keys() - {"list", "struct", "null"}))
def test_files_with_a_value_of_any_type_are_printed_as_with_arrow(tmp_path: Path, runs: Runs, name: str) -> None:
    kind, values = (PLAIN | OTHER)[name]
    folder = Lake(tmp_path).folder
    pq.write_table(pa.table({"x": pa.array(values, kind)}), folder / "a.parquet", row_group_size=ROWS // 4)
    texts = sorted({str(value) for value in values if value is not None})
    for text in [WRITTEN[name]] if name in WRITTEN else texts[:3]:
        runs.both(["find", f"--value={text}", str(folder), "-c", "x", "--files-only", "--format", "jsonl"])


def test_timestamps_that_only_a_converted_type_describes_are_left_to_arrow(tmp_path: Path, runs: Runs) -> None:
    """Arrow takes these for local ones, and the specification for instants."""
    lake = Lake(tmp_path)
    for name in ("instant", "seconds"):
        lake.write(table({name: PLAIN[name]}), name, store_schema=False)
        path = lake.folder / f"{name}.parquet"
        path.write_bytes(footers.edited(path.read_bytes(), _without_logical_types))
    lake.built()
    out = runs.same(lake, "7", "-c", "number", "--format", "jsonl")
    assert len(out.splitlines()) == 6
    assert not any(runs.plain)


def _without_logical_types(metadata: Fields) -> None:
    for element in metadata[2][1].values:
        element.pop(10, None)


def test_options_choose_the_same_rows_and_columns(tmp_path: Path, runs: Runs) -> None:
    lake = Lake(tmp_path)
    for name in "abc":
        lake.write(table(PLAIN), name)
    lake.built()
    for arguments in (
        ["7", "--limit", "1"],
        ["7", "--limit", "4"],
        ["7", "--select", "text"],
        ["7", "--select", "number"],
        ["7", "--select", "float,number", "--limit", "5"],
        ["--value", "7", "--value", "8", "--value", "7", "--value", "5000"],
        ["007"],
    ):
        assert runs.same(lake, *arguments, "-c", "number")
        assert all(runs.plain)
        assert runs.plain


def test_values_of_a_file_are_found_as_with_arrow(tmp_path: Path, runs: Runs) -> None:
    lake = Lake(tmp_path)
    lake.write(table(PLAIN))
    lake.built()
    (tmp_path / "values.txt").write_text("7\n8\n")
    out = runs.same(lake, "--values-from", str(tmp_path / "values.txt"), "-c", "number")
    assert len(out.splitlines()) == 6


def test_texts_that_are_not_utf_8_are_shown_as_with_arrow(tmp_path: Path, runs: Runs) -> None:
    lake = Lake(tmp_path)
    raw = pa.array([b"\xff\xfe" if n % 2 else b"ok" for n in range(ROWS)], pa.binary())
    data = table({}).append_column("text", pa.Array.from_buffers(pa.string(), ROWS, raw.buffers()))
    lake.write(data)
    out = runs.same(lake.built(), "7", "-c", "number")
    assert runs.plain == [True, True]
    assert "\ufffd" in out


def test_more_rows_than_a_few_are_left_to_arrow(tmp_path: Path, runs: Runs) -> None:
    lake = Lake(tmp_path)
    lake.write(table({}).set_column(1, "number", pa.array([1] * ROWS)))
    assert len(runs.same(lake.built(), "1", "-c", "number").splitlines()) == ROWS
    assert runs.plain == [False, False]


@pytest.mark.slow
def test_damaged_files_are_reported_as_with_arrow(tmp_path: Path, runs: Runs) -> None:
    lake = Lake(tmp_path)
    lake.write(table(PLAIN), use_dictionary=False)
    path = lake.folder / "a.parquet"
    lake.built()
    stat, data = path.stat(), path.read_bytes()
    rng, codes = random.Random(5), set()

    for _ in range(60):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 40])):
            at = rng.randrange(len(data) - 8)
            changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the index believes that it is the same file
        runs.same(lake, "7", "-c", "number", "-q", "--format", "jsonl")
        codes.add(tuple(runs.plain))
    assert (True, True) in codes


@pytest.mark.parametrize("hits", [(0,), (2,), (0, 1, 2, 3, 4), ()])
def test_batches_are_those_of_arrow_where_files_without_rows_are_determined_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hits: Sequence[int]
) -> None:
    lake = Lake(tmp_path)
    numbers = pa.array([2 * n for n in range(ROWS)])
    for name in range(5):
        data = table(PLAIN)
        data = data.set_column(data.column_names.index("number"), "number", numbers)
        if name in hits:
            data = data.set_column(data.column_names.index("number"), "number", pa.array(range(ROWS)))
        lake.write(data, f"f{name}")
    lake.built()

    def found() -> tuple[list[pa.RecordBatch], Any]:
        result = bloomcli.find(lake.folder, [7, 9], column="number", index=lake.index, jobs=1)
        batches = list(result)
        return batches, replace(result.report, seconds=0, bytes_read=0)

    looked, original = [], plain_search.found

    def watched(*args: Any) -> Any:
        looked.append(original(*args))
        return looked[-1]

    ruled = Pruning.of
    monkeypatch.setattr(Pruning, "of", lambda index, item: ruled(index, item)._replace(possible=frozenset({0, 1})))
    monkeypatch.setattr(plain_search, "found", watched)
    plain = found()
    monkeypatch.setattr(find, "_plain", lambda *_, **__: None)
    arrow = found()
    assert plain == arrow
    assert sum(batch.num_rows for batch in plain[0]) == 2 * len(hits)
    assert [isinstance(one, FileFound) for one in looked] == {
        (0,): [False],  # as many files had rows as had none: the others aren't searched twice
        (2,): [True, True, False, True, True],
        (0, 1, 2, 3, 4): [False],
        (): [True] * 5,
    }[tuple(hits)]


def test_few_rows_are_found_without_arrow_s_import(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.write(table(PLAIN))
    lake.built()
    program = (
        "import sys; from bloomcli.cli import run; code = run(sys.argv[1:])\n"
        "print(code, bool({'pyarrow', 'numpy', 'pandas'} & set(sys.modules)))"
    )
    for form, expected in (("text", "0 False"), ("jsonl", "0 False"), ("paths", "0 False"), ("csv", "0 True")):
        line = [sys.executable, "-c", program, "find", "7", str(lake.folder), "-c", "number", "--format", form]
        for more in ([], ["--index", str(lake.index)]):
            done = subprocess.run([*line, *more], capture_output=True, text=True, check=True)
            assert done.stdout.splitlines()[-1] == expected
        if form == "jsonl":
            assert json.loads(done.stdout.splitlines()[0])["record"]["key"] == "k7"
