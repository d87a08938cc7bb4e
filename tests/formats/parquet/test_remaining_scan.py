"""Compiled code scans the row groups that filters don't rule out, in files like a searched one.

For a file without a matching row, the result equals that of a search of this file alone. A file with one is never
reported as empty.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import examples

from bloomcli.commands import find
from bloomcli.commands.find_options import FindOptions
from bloomcli.commands.find_values import Values
from bloomcli.formats.filter_answer import FalsePositives
from bloomcli.storage.registry import open_source

ROWS = 600
FILES = 6
GROUPS = range(3)

OF_TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int32": (pa.int32(), lambda k: k * 7919 % 100_003 - 50_000),
    "int64": (pa.int64(), lambda k: k * 7919 % 1_000_003),
    "few": (pa.int32(), lambda k: k * 13 % 997),
    "uint64": (pa.uint64(), lambda k: (k * 7919 % 1_000_003) << 43),
    "double": (pa.float64(), lambda k: float(k * 7919 % 1_000_003) - 5e5),
    "text": (pa.string(), lambda k: f"v{k * 7919 % 1_000_003}"),
    "eight bytes": (pa.binary(8), lambda k: (k * 7919 % 1_000_003).to_bytes(8, "big")),
    "five bytes": (pa.binary(5), lambda k: (k * 7919 % 1_000_003).to_bytes(5, "big")),
    "nulls": (pa.int64(), lambda k: None if k % 3 else k * 7919 % 1_000_003),
}

OTHER_ORDERS = ("uint64", "double")
"""Types whose bounds aren't compared, so that each file is opened."""


def lake(folder: Path, kind: str, **written: Any) -> list[Path]:
    """Files whose filters have many false positives."""
    type_, value = OF_TYPES[kind]
    given = {"row_group_size": 200, "data_page_size": 400, "write_batch_size": 40, "compression": "snappy"} | written
    paths = [folder / f"{number}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        values = [value(number * ROWS + row) for row in range(ROWS)]
        data = pa.table({"c": pa.array(values, type_), "row": range(ROWS)})
        pq.write_table(data, path, bloom_filter_options={"c": {"ndv": 60, "fpp": 0.2}}, **given)
    return paths


def as_text(value: Any) -> str:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value)


def searched(path: Path, values: Values, options: FindOptions, row_groups: Any = None) -> tuple[Any, int]:
    """The result for a file, without the number of bytes read, and its number of rows."""
    rows: list[Any] = []
    with open_source(str(path)) as source:
        indexed = None if row_groups is None else find.IndexedRowGroups(frozenset(row_groups), source.fingerprint)
    found = find.run(str(path), options, values, rows.append, indexed=indexed)
    return replace(found, bytes_read=0), sum(batch.num_rows for batch in rows)


def false_positives(first: Path, second: Path, text: str, groups: Any = GROUPS) -> FalsePositives | None:
    """The scan of the second file after the first one was searched."""
    values = Values([text])
    values.plain = "rows"
    find.run(str(first), FindOptions(column="c").checked(), values, [].append)
    assert values.filter_lookup is not None
    with open_source(str(second)) as source:
        return values.filter_lookup.false_positives(source, groups)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", OF_TYPES)
def test_files_have_the_result_that_each_has_alone(tmp_path: Path, kind: str, dictionary: bool) -> None:
    paths = lake(tmp_path, kind, use_dictionary=dictionary)
    _, value = OF_TYPES[kind]
    chance = random.Random(kind)
    scanned = 0
    found = map(value, chance.sample(range(FILES * ROWS + 400), 12))
    for text in [as_text(one) for one in found if one is not None][: examples(12)]:
        for options in (FindOptions(column="c").checked(), FindOptions(column="c", files_only=True).checked()):
            for row_groups in (None, GROUPS):
                together = Values([text])
                together.plain = "rows"
                for path in paths:
                    alone = Values([text])
                    alone.plain = "rows"
                    expected = searched(path, alone, options, row_groups)
                    assert searched(path, together, options, row_groups) == expected
                    if together.filter_lookup is not None and not expected[1] and expected[0].row_groups_possible:
                        with open_source(str(path)) as source:
                            scanned += together.filter_lookup.false_positives(source, GROUPS) is not None
    assert scanned or dictionary or kind in OTHER_ORDERS  # dictionaries exclude absent values


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_existing_value_is_reported_as_missing(tmp_path: Path, codec: str, version: str) -> None:
    paths = lake(tmp_path, "text", compression=codec, data_page_version=version, use_dictionary=False)
    for number in range(0, FILES * ROWS, FILES * ROWS // examples(37)):
        text = as_text(OF_TYPES["text"][1](number))
        if not "v2" < text < "v8":  # bounds could exclude it
            continue
        has, row = paths[number // ROWS], number % ROWS
        other = paths[(number // ROWS + 1) % FILES]
        assert false_positives(other, has, text) is None
        assert false_positives(other, has, text, {row // 200}) is None
        without = false_positives(has, other, text)
        assert without is not None
        assert without.searched == (0, 1, 2)
        assert without.pages >= 9


def test_other_row_groups_are_not_read(tmp_path: Path) -> None:
    paths = lake(tmp_path, "int64", use_dictionary=False)
    text = as_text(OF_TYPES["int64"][1](ROWS + 250))  # in the second row group of the second file
    found = false_positives(paths[0], paths[1], text, {0, 2})
    whole = false_positives(paths[1], paths[0], text)
    assert found is not None
    assert whole is not None
    assert (found.searched, found.pages) == ((0, 2), 6)
    assert found.bytes_read < whole.bytes_read


def test_a_column_index_may_leave_pages_out(tmp_path: Path) -> None:
    paths = lake(tmp_path, "int64", use_dictionary=False)
    text = as_text(OF_TYPES["int64"][1](ROWS + 250))
    assert false_positives(paths[1], paths[0], text) is not None
    paths = lake(tmp_path, "int64", use_dictionary=False, write_page_index=True)
    assert false_positives(paths[1], paths[0], text) is None


def test_bounds_that_exclude_a_value_and_large_chunks_are_left_to_the_full_search(
    tmp_path: Path,
) -> None:
    paths = lake(tmp_path, "int64", use_dictionary=False)
    assert false_positives(paths[0], paths[1], "-1") is None
    large = tmp_path / "large"
    large.mkdir()
    chance = random.Random(1)
    numbers = [chance.randrange(1 << 62) for _ in range(40_000)]
    for name in ("a", "b"):
        data = pa.table({"c": pa.array(numbers, pa.int64()), "row": range(len(numbers))})
        pq.write_table(data, large / name, bloom_filter_options={"c": {"ndv": 60}}, use_dictionary=False)
    assert false_positives(large / "a", large / "b", str(1 << 61), {0}) is None


def test_a_value_that_arrow_finds_in_a_damaged_file_is_never_reported_as_missing(tmp_path: Path) -> None:
    paths = lake(tmp_path, "int64", use_dictionary=False, write_page_checksum=False)
    whole, damaged = paths[1].read_bytes(), tmp_path / "damaged"
    row = 123
    value = OF_TYPES["int64"][1](ROWS + row)
    chance = random.Random(5)
    chunk = pq.ParquetFile(paths[1]).metadata.row_group(0).column(0)
    start, end = chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size
    scanned = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            data[chance.randrange(start, end)] = chance.randrange(256)
        damaged.write_bytes(data)
        if false_positives(paths[0], damaged, str(value), {0}) is not None:
            scanned += 1
            try:
                read = pq.read_table(damaged, columns=["c"])["c"].to_pylist()
            except (OSError, ValueError):
                continue
            assert value not in read[:200]
    assert scanned < 100  # most damage leaves the value where it is, or the file isn't usual
