"""A file is ruled out without being opened exactly if opening it gives the same answer."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers
from support.tables import write

import bloomcli
from bloomcli import kernels
from bloomcli.commands import find
from bloomcli.commands.find_values import Values
from bloomcli.commands.options import FindOptions
from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.arrays import binaries
from bloomcli.formats.base import FilterFile
from bloomcli.formats.filter_lookup import FilterAnswer, FilterLookup
from bloomcli.formats.registry import open_file
from bloomcli.storage.registry import open_source

FIXTURES = Path(__file__).parents[3] / "fixtures/parquet"
FILES = sorted(FIXTURES.glob("*.parquet"))
FILTER_BYTES = 48
"""The damaged bytes of a filter: its header and its first block."""
TEXTS = (
    "97",
    "2031-05-06",
    "2031-05-06T07:08:09",
    "07:08:09",
    "1.25",
    "00000000-0000-4000-8000-000000000000",
    "absent",
)


def filter_lookup_of(file: FilterFile, column: str, values: Sequence[str]) -> FilterLookup | None:
    """The lookup in files like this one, for records of all columns."""
    search = file.search(next(c for c in file.columns if c.path == column))
    return search.filter_lookup(search.wanted(binaries([value.encode() for value in values])), None)


def opened(
    path: Path, column: str, values: Sequence[str], selected: Sequence[str] | None = None
) -> FilterAnswer | None:
    """The answer of an opened file; None if a row group may have a value, or the file can't be read."""
    try:
        with open_source(path) as source:
            file = open_file(source)
            search = file.search(next(c for c in file.columns if c.path == column))
            found = list(search.candidates(search.wanted(binaries([value.encode() for value in values]))))
            if any(one.possible for one in found):
                return None
            chunk_bytes = sum(one.chunk_bytes for one in found)
            return FilterAnswer(
                1, len(found), chunk_bytes, search.scanned_bytes(selected), 0, (), None, (0, 0), "parquet"
            )
    except (BloomError, StopIteration):
        return None


def answer_of(filter_lookup: FilterLookup, path: Path) -> FilterAnswer | None:
    """The answer of a file's filters if they rule it out, which is the same for the open file and its name."""
    with open_source(path) as source:
        found = filter_lookup.look_up(source)
    assert found is not None
    if filter_lookup.can_batch:
        (named,) = filter_lookup.look_up_all([bytes(path)], Stop())
        assert found._replace(may_match=None) == named._replace(may_match=None)
    known = found.ruled_out or found.forms is not None
    assert found.stamp == (path.stat().st_size, path.stat().st_mtime_ns)
    return found._replace(bytes_read=0, stamp=(0, 0)) if known else None


def cases() -> Iterator[tuple[Path, str, str, FilterLookup]]:
    """Yield each column with filters, and a text that is a value of its type."""
    for path in FILES:
        try:
            with open_source(path) as source:
                file = open_file(source)
                for index in sorted(file.filtered_columns()):
                    for text in TEXTS:
                        with suppress(BloomError):
                            filter_lookup = filter_lookup_of(file, file.columns[index].path, [text])
                            if filter_lookup is not None:
                                yield path, file.columns[index].path, text, filter_lookup
        except BloomError:
            continue  # an encrypted footer


def test_a_file_is_ruled_out_only_where_opening_it_says_so() -> None:
    out, columns = 0, set()
    for path, column, text, filter_lookup in cases():
        for other in FILES:
            found = answer_of(filter_lookup, other)
            if found is not None:
                assert found == opened(other, column, [text]), (path, column, text, other)
                out += 1
                columns.add((path, column))
    assert len(columns) > 20
    assert out > len(columns)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of 100 rows in 2 row groups, with filters and statistics."""
    table = pa.table({"n": [f"n{i}" if i % 3 else None for i in range(100)], "id": pa.array(range(100), pa.int64())})
    write(tmp_path / "f.parquet", table, rows=50, store_schema=False)
    bloomcli.add(tmp_path / "f.parquet", ["n", "id"], in_place=True)
    return tmp_path / "f.parquet"


def flips(at: int, config: pytest.Config, *bits: int) -> Sequence[int]:
    """The changes of the byte at an offset: one of several, in CI another one every day; all with --full."""
    return bits if config.getoption("full") else bits[(at + config.getoption("seed")) % len(bits) :][:1]


@pytest.mark.parametrize(
    ("column", "values"), [pytest.param("n", ["12345"], marks=pytest.mark.slow), ("id", ["12345", "54321"])]
)
def test_a_damaged_copy_is_ruled_out_only_where_opening_it_says_so(
    path: Path, column: str, values: list[str], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    data = path.read_bytes()
    with open_source(path) as source:
        filter_lookup = filter_lookup_of(open_file(source), column, values)
    assert filter_lookup is not None
    assert answer_of(filter_lookup, path) == opened(path, column, values) is not None
    begin = len(footers.split(data)[0])
    filters = bloomcli.inspect(path, columns=[column]).filters
    places = [at for facts in filters for at in range(facts.offset, facts.offset + FILTER_BYTES)]
    copy, ruled_out = tmp_path / "copy.parquet", 0
    for at in (*range(begin, len(data)), *places):
        for bits in flips(at, pytestconfig, 0x01, 0x80, 0xFF):
            copy.write_bytes(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :])
            found = answer_of(filter_lookup, copy)
            if found is not None:
                assert found == opened(copy, column, values), f"byte {at} ^ {bits:#x}"
                ruled_out += 1
    assert ruled_out > 0


@pytest.mark.parametrize("size", [0, 1, 11, 12, 100])
def test_a_file_that_was_cut_off_is_left_to_be_opened(path: Path, size: int) -> None:
    with open_source(path) as source:
        filter_lookup = filter_lookup_of(open_file(source), "id", ["12345"])
    path.write_bytes(path.read_bytes()[:size])
    assert filter_lookup is not None
    assert answer_of(filter_lookup, path) is None


def test_a_file_that_may_have_a_value_is_left_to_be_opened(path: Path) -> None:
    with open_source(path) as source:
        filter_lookup = filter_lookup_of(open_file(source), "id", ["12345", "77"])
    assert filter_lookup is not None
    assert answer_of(filter_lookup, path) is None


def test_a_scan_of_selected_columns_reads_their_bytes(path: Path) -> None:
    with open_source(path) as source:
        file = open_file(source)
        search = file.search(file.columns[1])
        filter_lookup = search.filter_lookup(search.wanted(binaries([b"12345"])), ["n"])
    assert filter_lookup is not None
    assert answer_of(filter_lookup, path) == opened(path, "id", ["12345"], ["n"]) is not None


def test_a_filter_without_its_own_minimum_rules_nothing_out(path: Path) -> None:
    with open_source(path) as source:
        filter_lookup = filter_lookup_of(open_file(source), "id", ["12345"])
    data = bytearray(path.read_bytes())
    for facts in bloomcli.inspect(path, columns=["id"]).filters:
        start = facts.offset + (facts.header_bytes or 0)
        data[start : start + (facts.bitset_bytes or 0)] = bytes(facts.bitset_bytes or 0)
    path.write_bytes(data)
    assert filter_lookup is not None
    assert answer_of(filter_lookup, path) is None


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"write_page_checksum": True, "compression": "snappy"}])
def test_a_damaged_copy_whose_column_is_decoded_at_once_is_ruled_out_only_where_opening_it_finds_nothing(
    options: dict[str, Any], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    numbers = [2 * (i * 7 % 40) for i in range(40)]
    path = write(tmp_path / "f", pa.table({"id": numbers}), rows=20, dictionary=False, store_schema=False, **options)
    values, found = Values(["33", "35"]), FindOptions(column="id")
    with open_source(path) as source:
        filter_lookup = filter_lookup_of(open_file(source), "id", ["33", "35"])
    assert filter_lookup is not None
    data, copy, ruled_out = path.read_bytes(), tmp_path / "copy", 0
    for at in range(len(data)):
        for bits in flips(at, pytestconfig, 0x01, 0x80):
            copy.write_bytes(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :])
            with open_source(copy) as source:
                answer = filter_lookup.look_up(source)
                assert answer is not None
                decoded = answer.decoded(source)
            if decoded.absent:
                values.filter_lookup = None
                alone = find.run(str(copy), found, values, lambda _: None)
                assert (alone.rows, alone.pages_read) == (0, sum(decoded.pages)), f"byte {at} ^ {bits:#x}"
                assert alone.row_groups_possible == decoded.possible
                ruled_out += 1
    assert ruled_out > 0


def possible_in(path: Path, column: str, values: Sequence[str]) -> set[str] | None:
    """Those of many values that an opened file may have, without its statistics."""
    try:
        with open_source(path) as source:
            file = open_file(source)
            search = file.search(next(c for c in file.columns if c.path == column))
            wanted = search.wanted(binaries([value.encode() for value in values]))
            forms = {form for one in search.candidates(wanted) for form in one.forms.to_pylist()}
            return {values[wanted.owners[form].as_py()] for form in forms}
    except (BloomError, StopIteration):
        return None


def owners_of(file: FilterFile, column: str, values: Sequence[str]) -> list[int]:
    """The position of the value of each form."""
    search = file.search(next(c for c in file.columns if c.path == column))
    owners: list[int] = search.wanted(binaries([value.encode() for value in values])).owners.to_pylist()
    return owners


def left_of(found: FilterAnswer, owners: Sequence[int], values: Sequence[str]) -> set[str]:
    """The values that a file's filters leave."""
    return {values[owners[at]] for forms in (found.forms or {}).values() for at in forms.to_pylist()}


@pytest.mark.slow
def test_many_values_of_a_damaged_copy_are_left_only_where_opening_it_leaves_no_other(
    path: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    values = [str(number) for number in range(60, 60 + 300)]
    data = path.read_bytes()
    with open_source(path) as source:
        file = open_file(source)
        filter_lookup, owners = filter_lookup_of(file, "id", values), owners_of(file, "id", values)
    assert filter_lookup is not None
    begin = len(footers.split(data)[0])
    filters = bloomcli.inspect(path, columns=["id"]).filters
    places = [at for facts in filters for at in range(facts.offset, facts.offset + FILTER_BYTES)]
    copy, remaining = tmp_path / "copy.parquet", 0
    for at in (*range(begin, len(data)), *places):
        for bits in flips(at, pytestconfig, 0x01, 0x80, 0xFF):
            copy.write_bytes(data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :])
            found = answer_of(filter_lookup, copy)
            if found is None:
                continue
            left = left_of(found, owners, values)
            exact = possible_in(copy, "id", values)
            assert exact is not None
            assert exact <= left, f"byte {at} ^ {bits:#x}"
            remaining += 1
    assert remaining > 0


def test_hashes_that_do_not_ascend_are_refused() -> None:
    hashes = (2).to_bytes(8, "little") + (1).to_bytes(8, "little")
    with pytest.raises(ValueError, match="don't ascend"):
        kernels.FilterQuery(4, {}, array("i", (1, 0, 0, 0)), 0, None, hashes, None, many=True)


@pytest.mark.slow
@pytest.mark.parametrize("ndv", [3, 60, 4000])
def test_the_positions_of_many_hashes_are_those_that_each_filter_gives(tmp_path: Path, ndv: int) -> None:
    table = pa.table({"id": pa.array(range(0, 2000, 2), pa.int64())})
    pq.write_table(table, tmp_path / "f", row_group_size=250, bloom_filter_options={"id": {"ndv": ndv, "fpp": 0.3}})
    for values in ([str(n) for n in range(300)], [str(n) for n in range(-5000, 5000)]):  # less and more than a batch
        with open_source(tmp_path / "f") as source:
            file = open_file(source)
            search = file.search(file.columns[0])
            wanted = search.wanted(binaries([value.encode() for value in values]))
            filter_lookup = search.filter_lookup(wanted, None)
            assert filter_lookup is not None
            found = filter_lookup.look_up(source)
        assert found is not None
        assert found.forms is not None
        assert tuple(found.forms) == found.possible
        left = {group: forms.to_pylist() for group, forms in found.forms.items()}
        assert left == {group: forms for group, forms in looked_up(tmp_path / "f", wanted.hashes).items() if forms}


def looked_up(path: Path, hashes: bytes) -> dict[int, list[int]]:
    """The positions of the hashes that the filter of each row group contains, looked up one by one."""
    data, found = path.read_bytes(), {}
    for facts in bloomcli.inspect(path).filters:
        start = facts.offset + (facts.header_bytes or 0)
        bits = SplitBlockFilter(bytearray(data[start : start + (facts.bitset_bytes or 0)]))
        values = memoryview(hashes).cast("Q")
        found[facts.row_group] = [at for at, value in enumerate(values) if bits.check(value)]
    return found
