"""Packed sequences have the same items as a list, in little memory, and in a file if they are very many."""

from __future__ import annotations

import functools
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bloomcli.commands.options import InspectOptions
from bloomcli.compact import (
    PLAIN_MOST,
    CompactSequence,
    LazySequence,
    PositionedItems,
    TextSet,
    compacted,
    packed_blocks,
)
from bloomcli.datasets.task import Task, collect_tasks
from bloomcli.errors import UnreadableError
from bloomcli.model.dataset import ColumnFilters, FileRow, Status
from bloomcli.storage.base import FileEntry, failed_entry

MANY = PLAIN_MOST + 3000


def listed(count: int) -> Iterator[FileEntry]:
    """Entries with names like a data lake's, one of them with a problem."""
    for i in range(count):
        name = f"date=2024-{i // 1000:03}/part-{i:07}.parquet"
        if i == 100:
            yield failed_entry(f"s3://lake/{name}", UnreadableError("no", path=name, hint="look"))
        yield FileEntry(f"s3://lake/{name}", 1000 + i * 7919 % 5000, name, walked=True)


def row(i: int) -> FileRow:
    """A row of a file with one column, or a row with an error."""
    if i % 1000 == 7:
        return FileRow(path=f"{i}.orc", status=Status.FAILED, error=f"{i} can't be read \udcff", exit_code=3)
    column = ColumnFilters(
        column="id", type="INT64", row_groups_with_filter=1, row_groups_without_filter=0, filters=1, unreadable=0,
        bitset_bytes=i, max_fpp=i / MANY,
    )  # fmt: skip
    return FileRow(path=f"{i}.parquet", status=Status.DONE, filters=i, seconds=i / 7, by_column=(column,))


def tasks(count: int) -> Iterator[Task]:
    """Tasks that share their options, some with rows."""
    options = InspectOptions()
    for i in range(count):
        yield Task(options=options, path=f"{i}.parquet", size=i, row=row(i) if i % 5 == 0 else None)


def described(items: Sequence[object]) -> list[str]:
    """The comparable part of an item: errors are equal only to themselves."""
    return list(map(repr, items))


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [listed, tasks, lambda count: map(row, range(count))], ids=["names", "tasks", "rows"]
)
def test_many_items_are_read_as_they_were_added(make: Callable[[int], Iterator[Any]]) -> None:
    wanted, found = list(make(MANY)), CompactSequence[Any](make(MANY), shared=("options",) if make is tasks else ())
    assert found.packed
    assert len(found) == len(wanted)
    assert described(found) == described(wanted)
    assert described(found[-3:]) == described(wanted[-3:])
    for at in random.Random(7).sample(range(-len(wanted), len(wanted)), 200):
        assert repr(found[at]) == repr(wanted[at])
    with pytest.raises(IndexError):
        found[len(wanted)]


def test_few_items_stay_a_list_of_the_same_objects() -> None:
    names = list(listed(PLAIN_MOST - 1))
    found = compacted(names)
    assert isinstance(found, list)
    assert all(a is b for a, b in zip(found, names, strict=True))
    assert isinstance(compacted(listed(PLAIN_MOST)), CompactSequence)


def test_tasks_share_their_options_however_many_there_are() -> None:
    found = collect_tasks(tasks(MANY))
    assert len({id(task.options) for task in found}) == 1


@pytest.mark.slow
def test_items_added_in_any_order_are_in_the_order_of_their_positions() -> None:
    order = list(range(0, MANY * 2, 2))  # every second position stays empty
    random.Random(7).shuffle(order)
    order.sort(key=lambda i: i // 3000)
    placed = PositionedItems[FileRow](MANY * 2)
    for position in order:
        placed.put(position, row(position))
    found = placed.sequence()
    assert [r.path for r in found] == [row(i).path for i in sorted(order)]
    assert found[5] == row(10)
    assert found[-1] == row(MANY * 2 - 2)


def test_few_items_with_positions_become_a_tuple() -> None:
    placed = PositionedItems[FileRow](3)
    placed.put(2, row(2))
    placed.put(0, row(0))
    assert placed.sequence() == (row(0), row(2))


def test_a_mapped_sequence_computes_items_when_they_are_read() -> None:
    seen: list[int] = []

    def double(number: int) -> int:
        seen.append(number)
        return number * 2

    found = LazySequence(double, range(1000))
    assert (len(found), found[3], found[-1], found[1:3]) == (1000, 6, 1998, (2, 4))
    assert seen == [3, 999, 1, 2]
    assert sum(found) == 999_000


class Pair(NamedTuple):
    """An item that zlib can't compress."""

    name: bytes
    number: int


@functools.cache
def pairs(count: int) -> list[Pair]:
    chance = random.Random(7)
    return [Pair(chance.randbytes(100), i) for i in range(count)]


def test_blocks_beyond_the_memory_limit_go_to_an_unnamed_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packed_blocks, "_MEMORY_BYTES", 1 << 20)
    monkeypatch.setattr(packed_blocks.tempfile, "tempdir", str(tmp_path))
    added = pairs(2 * MANY)
    tracemalloc.start()
    found = CompactSequence(iter(added))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 4 << 20  # of 7 MiB
    assert list(tmp_path.iterdir()) == []
    assert all(a == b for a, b in zip(found, pairs(2 * MANY), strict=True))
    assert found[MANY] == found[MANY : MANY + 1][0]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["no file", "full", "half"])
def test_if_no_file_can_be_written_the_items_stay_in_memory(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_blocks, "_MEMORY_BYTES", 1 << 20)
    real, calls = os.pwrite, 0

    def pwrite(file: int, data: bytes, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls % 10 == 0:
            if how == "full":
                raise OSError(28, "No space left on device")
            return real(file, data[: len(data) // 2], offset)
        return real(file, data, offset)

    def no_file(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    if how == "no file":
        monkeypatch.setattr(packed_blocks.tempfile, "TemporaryFile", no_file)
    monkeypatch.setattr(packed_blocks.os, "pwrite", pwrite)
    found = CompactSequence(pairs(2 * MANY))
    assert all(a == b for a, b in zip(found, pairs(2 * MANY), strict=True))
    assert (calls > 10) is (how != "no file")


@pytest.mark.slow
def test_a_set_of_many_texts_knows_which_were_added_and_takes_little_memory() -> None:
    count = 30_000
    texts = [f"s3://lake/date=2024-{i // 1000:03}/part-{i:07}-5f2c7a44-c000.zstd.parquet" for i in range(count)]
    tracemalloc.start()
    seen = TextSet()
    assert all(map(seen.add, texts))
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / count < 60, "a set of texts has 80 bytes and the text for each"
    assert not any(map(seen.add, reversed(texts)))
    assert seen.add("\udcff")
    assert seen.add("")
    assert not seen.add("\udcff")
    assert len(seen) == count + 2
