"""Tables of an index are read as Arrow reads them; without Arrow where it wrote them as it does by default."""

from __future__ import annotations

import random
import subprocess
import sys
from array import array
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.indexes import made

import bloomcli
from bloomcli.index.ipc import Lists, columns_of
from bloomcli.index.tables import FILE_KINDS, UNIT_KINDS, UnitArrays, files_table, schema_of, units_table

EVERY = {"path": "text", "size": "q", "rows": "lists", "file": "i", "state": "B", "fpp": "f"}


def stream(table: pa.RecordBatch, **options: Any) -> bytes:
    """The IPC stream of a batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def plain(column: Any) -> list[Any]:
    """A column's values."""
    if isinstance(column, Lists):
        ends = column.ends.tolist()
        return [column.values[start:end].tolist() for start, end in pairwise(ends)]
    return list(column)


def batch(rows: int, kinds: Mapping[str, str] = EVERY) -> pa.RecordBatch:
    """A table with values of every kind."""
    rng = random.Random(rows)
    make: dict[str, Any] = {
        "text": lambda: rng.choice(["", "a", "lake/part-0.parquet", "naïve/ü", "日本", "\0ff"]),
        "q": lambda: rng.randrange(-(1 << 63), 1 << 63),
        "lists": lambda: [rng.randrange(1 << 40) for _ in range(rng.randrange(4))],
        "i": lambda: rng.randrange(-(1 << 31), 1 << 31),
        "B": lambda: rng.randrange(256),
        "f": lambda: rng.randrange(1000) / 8,
    }
    schema = schema_of(kinds)
    arrays = [pa.array([make[kind]() for _ in range(rows)], schema.field(name).type) for name, kind in kinds.items()]
    return pa.record_batch(arrays, schema=schema)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 8, 9, 63, 64, 65, 1000])
def test_columns_of_every_kind_are_those_that_arrow_reads(rows: int) -> None:
    table = batch(rows)
    found = columns_of(stream(table), EVERY)
    assert found is not None
    assert found[0] == rows
    assert [plain(column) for column in found[1]] == [column.to_pylist() for column in table.columns]


def test_the_tables_of_an_index_are_read_without_arrow() -> None:
    files = [made(number, number % 4) for number in range(50)]
    found = columns_of(stream(files_table(files)), FILE_KINDS)
    assert found is not None
    assert plain(found[1][0]) == [file.path for file in files]
    assert plain(found[1][4]) == [list(file.rows) for file in files]
    units = UnitArrays(array("i", range(99)), array("i", range(99)), array("B", [1] * 99), array("f", [0.25] * 99))
    found = columns_of(stream(units_table(units)), UNIT_KINDS)
    assert found is not None
    assert [plain(column) for column in found[1]] == [list(values) for values in units]


def nullable(table: pa.RecordBatch) -> pa.RecordBatch:
    """The same columns, which may have nulls."""
    return pa.record_batch(table.columns, schema=pa.schema([field.with_nullable(True) for field in table.schema]))


def test_other_layouts_are_left_to_arrow() -> None:
    table = batch(9)
    dictionary = table.set_column(0, "path", table.column(0).dictionary_encode())
    others = {
        "compressed": stream(table, compression="zstd"),
        "version 4": stream(table, metadata_version=pa.ipc.MetadataVersion.V4),
        "legacy": stream(table, use_legacy_format=True),
        "nullable": stream(nullable(table)),
        "fewer": stream(table.select(list(EVERY)[:-1])),
        "another order": stream(table.select(list(EVERY)[::-1])),
        "dictionary": stream(dictionary),
        "a slice": stream(table.slice(3, 4)),
    }
    for name, raw in others.items():
        found = columns_of(raw, EVERY)
        if name == "a slice":  # Arrow writes its values from 0 on
            assert found is not None
            assert [plain(column) for column in found[1]] == [c.to_pylist() for c in table.slice(3, 4).columns]
        else:
            assert found is None, name
    for kind in ("B", "i", "q", "f", "text", "lists"):
        for other in ("B", "i", "q", "f", "text", "lists"):
            raw = stream(batch(5, {"v": other}))
            assert (columns_of(raw, {"v": kind}) is None) == (kind != other), (kind, other)


def test_of_a_damaged_stream_nothing_is_read_that_arrow_reads_otherwise() -> None:
    """Cut off anywhere, and with any bytes changed: as Arrow reads it, or left to Arrow."""
    raw, rng, read, left, refused = stream(batch(40)), random.Random(8), 0, 0, 0
    changed = [raw[:length] for length in range(0, len(raw), 3)]
    for number in range(6000):
        data = bytearray(raw)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(1400 if number % 2 else len(data) - 8)
            data[at : at + 8] = rng.choice(
                [
                    bytes(8),
                    rng.randbytes(8),
                    b"\xff" * 7 + b"\x7f",
                    b"\xff" * 8,
                    (1 << 40).to_bytes(8, "little"),
                    bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 : at + 8],
                ]
            )
        changed.append(bytes(data))
    for data_read in changed:
        found = columns_of(data_read, EVERY)
        if found is None:
            left += 1
            continue
        read += 1
        rows, columns = found
        assert all(len(plain(column)) == rows for column in columns)
        try:
            table = pa.ipc.open_stream(data_read).read_next_batch()
            table.validate(full=True)
        except (pa.ArrowException, OSError):  # it looks at parts that no table of an index needs
            refused += 1
            continue
        assert table.schema.equals(schema_of(EVERY))
        assert rows == table.num_rows
        assert [repr(plain(column)) for column in columns] == [repr(column.to_pylist()) for column in table.columns]
    assert read - refused > 500
    assert left > 1000


def test_files_that_an_index_rules_out_are_answered_without_arrow(tmp_path: Path) -> None:
    """Whose import takes longer than the lookup."""
    lake, index = tmp_path / "lake", tmp_path / "index"
    lake.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"id": range(number * 100, number * 100 + 100)}), lake / f"{number}.parquet")
    bloomcli.index_build(lake, ["id"], output=index)
    program = (
        "import sys; from bloomcli.cli import run; code = run(sys.argv[1:])\n"
        "print(code, bool({'pyarrow', 'numpy', 'pandas'} & set(sys.modules)))"
    )
    for args, expected in (
        (["150", "--maybe"], "0 False"),
        (["777"], "1 False"),
        (["150"], "0 False"),
        (["150", "--files-only"], "0 False"),
        (["150", "--format", "csv"], "0 True"),
    ):
        line = [sys.executable, "-c", program, "find", *args, str(lake), "-c", "id", "-q", "--index", str(index)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == expected, done.stdout + done.stderr
        assert len(done.stdout.splitlines()) == (1 if args == ["777"] else 3 if "csv" in args else 2)
