"""The content of a new object, from its pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.object_stores import MemoryObjects

from bloomcli.errors import CorruptFile, WriteError
from bloomcli.storage.base import KeptRange, Piece, PlacedBytes, Source
from bloomcli.storage.objects import content as content_module
from bloomcli.storage.objects.content import Content, PlannedSource, within

OLD = bytes(range(256)) * 4


@pytest.fixture
def source() -> Source:
    """An object of 1,024 bytes."""
    return _source()


def _source() -> Source:
    store = MemoryObjects()
    store.client.store("memory://bucket/old", OLD)
    return store.open("memory://bucket/old")


OPEN: list[Content] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def made(source: Source, *pieces: Piece) -> Content:
    """The content of these pieces."""
    content = Content(source)
    OPEN.append(content)
    for piece in pieces:
        content.add(piece)
    content.finish()
    return content


def test_ranges_that_continue_each_other_are_one(source: Source) -> None:
    content = made(source, KeptRange(0, 10), KeptRange(10, 20), b"a", b"b", KeptRange(30, 5), KeptRange(36, 5))
    assert [(s.start, s.length, s.kept) for s in content.segments] == [
        (0, 30, True),
        (30, 2, False),
        (32, 5, True),
        (37, 5, True),
    ]


def test_a_gap_before_placed_bytes_is_an_error(source: Source) -> None:
    with pytest.raises(WriteError, match="between byte 10 and byte 11"):
        made(source, KeptRange(0, 10), PlacedBytes(11, b"x"))


def test_new_bytes_that_are_many_are_kept_in_a_file(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_module, "_IN_MEMORY_BYTES", 16)
    content = made(source, b"x" * 12, KeptRange(5, 3), b"y" * 12)
    spool: Any = content._new
    assert spool._rolled
    assert content.read(10, 8) == b"xx" + OLD[5:8] + b"yyy"
    assert content.size == 27


def test_a_planned_object_can_be_read_before_it_exists(source: Source) -> None:
    planned = PlannedSource("memory://bucket/new", made(source, KeptRange(0, 8), b"new"))
    assert (planned.size, planned.read_at(6, 5)) == (11, OLD[6:8] + b"new")
    planned.check_unchanged()
    with pytest.raises(CorruptFile):
        planned.read_at(6, 6)


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.tuples(st.integers(0, 1000), st.integers(0, 24)).map(lambda pair: KeptRange(*pair)),
    ),
    max_size=12,
)


@given(PIECES, st.data())
def test_any_range_is_that_of_the_pieces(pieces: list[Piece], data: st.DataObject) -> None:
    content = made(_source(), *pieces)
    whole = b"".join(OLD[p.offset :][: p.length] if isinstance(p, KeptRange) else bytes(p) for p in pieces)  # type: ignore[arg-type]
    assert content.size == len(whole)
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, len(whole) - start))
    assert content.read(start, length) == whole[start : start + length]
    assert sum(s.length for s in within(content.segments, start, start + length)) == length
