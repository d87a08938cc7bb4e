"""Replacing a file by kept ranges and new bytes, in whatever store: the whole new file, or the whole old one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn

import pytest
from support.stores import Place

from bloomcli.errors import BloomError, CorruptFile, SourceChanged, UsageError, WriteError
from bloomcli.storage.base import KeptRange, Piece, Pieces, PlacedBytes, Source

OLD = bytes(range(256)) * 20
NEW = OLD + b"and more"
THEIRS = b"what another program wrote"


def made_of(pieces: Iterable[Piece]) -> Pieces:
    """The pieces, one after the other."""
    yield from pieces


def content(old: bytes, pieces: Iterable[Piece]) -> bytes:
    """The content that a file gets from these pieces, in the simplest implementation."""
    new, placed = bytearray(), dict[int, bytes]()
    for piece in pieces:
        if isinstance(piece, KeptRange):
            new += old[piece.offset : piece.offset + piece.length]
        elif isinstance(piece, PlacedBytes):
            placed[piece.offset] = bytes(piece.data)
        else:
            while (ahead := placed.pop(len(new), None)) is not None:
                new += ahead
            new += piece
    return bytes(new)


def replace(
    place: Place,
    pieces: Iterable[Piece] = (KeptRange(0, len(OLD)), b"and more"),
    *,
    name: str = "data.bin",
    target: str | None = None,
    overwrite: bool = True,
    **more: Any,
) -> int:
    """Replace a file, or write `target` from it."""
    with place.store.open(place.path(name)) as source:
        return place.store.replace(
            place.store.normal(place.path(target or name)),
            made_of(pieces),
            source=source,
            overwrite=overwrite,
            **more,
        )


@pytest.fixture
def lake(writable: Place) -> Place:
    """A directory with one file."""
    writable.put("data.bin", OLD)
    return writable


def begin(lake: Place) -> None:
    """The directory with its one file again: a directory for each case takes longer than what is done in it."""
    for name in lake.names() - {"data.bin"}:
        lake.remove(name)
    lake.put("data.bin", OLD)


CASES: dict[str, list[Piece]] = {
    "appended": [KeptRange(0, len(OLD)), b"and more"],
    "all of it": [KeptRange(0, len(OLD))],
    "its end cut off": [KeptRange(0, 4000)],
    "its start cut off": [KeptRange(1000, len(OLD) - 1000)],
    "new bytes within": [KeptRange(0, 700), b"new", bytearray(b" bytes"), KeptRange(700, len(OLD) - 700)],
    "a range taken out": [KeptRange(0, 700), KeptRange(900, len(OLD) - 900)],
    "in another order": [KeptRange(3000, 500), KeptRange(0, 500), b"-", KeptRange(0, 500)],
    "new bytes alone": [b"new", b" ", b"bytes"],
    "no bytes": [],
    "empty pieces": [b"", KeptRange(77, 0), b"x", bytearray()],
    "placed ahead": [KeptRange(0, 100), PlacedBytes(5120, b"filter"), KeptRange(100, 5020), b"footer"],
    "placed ahead twice": [
        PlacedBytes(300, b"first"),
        KeptRange(0, 200),
        PlacedBytes(305, bytearray(b"second")),
        KeptRange(200, 100),
        b"",
        b"footer",
    ],
}


@pytest.mark.parametrize("target", [None, "new.bin"], ids=["in place", "to another file"])
def test_the_new_file_is_exactly_its_pieces(lake: Place, target: str | None) -> None:
    for case, pieces in CASES.items():
        begin(lake)
        expected = content(OLD, pieces)
        assert replace(lake, pieces, target=target) == len(expected), case
        assert lake.get(target or "data.bin") == expected, case
        assert lake.get("data.bin") == (OLD if target else expected), case
        assert lake.names() == {"data.bin", target or "data.bin"}, case


def test_a_large_file_is_copied_in_steps_and_its_progress_reported(lake: Place) -> None:
    large = random.Random(12).randbytes(1 << 20) * 20
    lake.put("large.bin", large)
    done: list[int] = []
    kept = KeptRange(5, len(large) - 5)
    replace(lake, [kept, b"tail"], name="large.bin", progress=done.append)
    assert lake.get("large.bin") == large[5:] + b"tail"
    assert sum(done) == kept.length
    assert len(done) > 1


def test_the_new_file_is_verified_as_a_whole(lake: Place) -> None:
    seen: list[bytes] = []
    replace(lake, verify=lambda new: seen.append(new.read_at(0, new.size)))
    assert seen == [NEW]


def test_the_old_file_is_there_until_all_pieces_are_taken(lake: Place) -> None:
    seen: list[bytes | None] = []

    def pieces() -> Pieces:
        seen.append(lake.get("data.bin"))
        yield KeptRange(0, len(OLD))
        seen.append(lake.get("data.bin"))
        yield b"and more"
        seen.append(lake.get("data.bin"))

    replace(lake, pieces())
    assert seen == [OLD, OLD, OLD]
    assert lake.get("data.bin") == NEW


def test_a_file_that_exists_is_overwritten_only_where_that_is_wanted(lake: Place) -> None:
    lake.put("other.bin", THEIRS)
    with pytest.raises(UsageError, match="exists already") as caught:
        replace(lake, target="other.bin", overwrite=False)
    assert caught.value.hint == "--overwrite replaces it"
    assert (lake.get("data.bin"), lake.get("other.bin")) == (OLD, THEIRS)
    replace(lake, target="other.bin")
    assert lake.get("other.bin") == NEW
    replace(lake, target="third.bin", overwrite=False)
    assert lake.get("third.bin") == NEW
    assert lake.names() == {"data.bin", "other.bin", "third.bin"}


def test_a_file_that_appears_meanwhile_is_not_overwritten(lake: Place) -> None:
    def pieces() -> Pieces:
        yield b"ours"
        lake.put("new.bin", THEIRS)

    with pytest.raises(UsageError, match="exists already"):
        replace(lake, pieces(), target="new.bin", overwrite=False)
    assert lake.get("new.bin") == THEIRS
    assert lake.names() == {"data.bin", "new.bin"}


def _grows(lake: Place) -> None:
    lake.put("data.bin", OLD + b"!")


def _same_size(lake: Place) -> None:
    lake.put("data.bin", OLD[::-1])


def _same_bytes(lake: Place) -> None:
    lake.put("data.bin", OLD)


def _goes(lake: Place) -> None:
    lake.remove("data.bin")


@pytest.mark.parametrize("change", [_grows, _same_size, _same_bytes, _goes])
def test_a_source_that_changes_before_the_end_stops_the_replacement(
    lake: Place, change: Callable[[Place], None]
) -> None:
    for moment, target in (
        ("before the pieces", None),
        ("between them", None),
        ("after them", None),
        ("after them", "new.bin"),
    ):
        begin(lake)
        check_changed(lake, change, target, moment)


def check_changed(lake: Place, change: Callable[[Place], None], target: str | None, moment: str) -> None:
    """Replace a file that changes at that moment."""
    theirs: list[bytes | None] = []

    def act(now: str) -> None:
        if now == moment:
            change(lake)
            theirs.append(lake.get("data.bin"))

    def pieces() -> Pieces:
        act("before the pieces")
        yield KeptRange(0, 1000)
        act("between them")
        yield KeptRange(1000, len(OLD) - 1000)
        yield b"and more"
        act("after them")

    if change is _same_bytes and not lake.notices_equal_bytes:
        try:
            replace(lake, pieces(), target=target)
        except SourceChanged:  # by its time, which stores report in whole seconds
            return
        assert lake.get(target or "data.bin") == NEW
        return
    with pytest.raises(SourceChanged) as caught:
        replace(lake, pieces(), target=target)
    assert caught.value.path == lake.path("data.bin")
    assert "wrote nothing to it" in str(caught.value.hint)
    assert [lake.get("data.bin")] == theirs, moment
    assert lake.names() == ({"data.bin"} if theirs[0] is not None else set()), moment


class Stopped(BaseException):
    """As KeyboardInterrupt is, but nobody else's."""


def _raise(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize("target", [None, "other.bin"], ids=["in place", "to another file"])
def test_a_piece_that_cannot_be_made_leaves_everything_as_it_was(lake: Place, target: str | None) -> None:
    lake.put("other.bin", THEIRS)
    all_pieces: list[Piece] = [KeptRange(0, 1000), b"new", PlacedBytes(5000, b"far")]
    errors = (CorruptFile("damaged"), RuntimeError("a bug"), Stopped(), MemoryError())

    def pieces(after: int, error: BaseException) -> Pieces:
        yield from all_pieces[:after]
        _raise(error)

    for after, error in enumerate(errors):
        with pytest.raises(type(error)) as caught:
            replace(lake, pieces(after, error), target=target)
        assert caught.value is error, (error, after)
        assert (lake.get("data.bin"), lake.get("other.bin")) == (OLD, THEIRS), (error, after)
        assert lake.names() == {"data.bin", "other.bin"}, (error, after)


def test_a_file_that_is_not_what_was_planned_does_not_get_the_name(lake: Place) -> None:
    for error in (WriteError("not what was planned"), RuntimeError("a bug"), Stopped()):
        with pytest.raises(type(error)):
            replace(lake, verify=partial(_fail, error))
        assert lake.get("data.bin") == OLD, error
        assert lake.names() == {"data.bin"}, error


def _fail(error: BaseException, _: Source) -> NoReturn:
    raise error


def test_a_range_that_the_source_does_not_have_is_an_error(lake: Place) -> None:
    for kept in (KeptRange(0, len(OLD) + 1), KeptRange(len(OLD), 1), KeptRange(1 << 62, 5)):
        with pytest.raises(BloomError):
            replace(lake, [b"new", kept])
        assert lake.get("data.bin") == OLD, kept
        assert lake.names() == {"data.bin"}, kept


def test_copying_stops_once_the_next_piece_is_known_to_fail(lake: Place) -> None:
    def pieces() -> Pieces:
        yield KeptRange(0, len(OLD))
        raise CorruptFile("damaged")

    done: list[int] = []
    with pytest.raises(CorruptFile):
        replace(lake, pieces(), cancelled=lambda: True, progress=done.append)
    assert not done
    assert lake.get("data.bin") == OLD


def test_the_pieces_are_closed_whatever_becomes_of_them(lake: Place) -> None:
    def pieces(events: list[str]) -> Pieces:
        events.append("begun")
        try:
            yield b"new"
            yield KeptRange(0, len(OLD) + 1)
        finally:
            events.append("closed")

    for overwrite, expected in ((True, ["begun", "closed"]), (False, [])):
        events: list[str] = []
        made = pieces(events)
        with lake.store.open(lake.path("data.bin")) as source, pytest.raises(BloomError):
            lake.store.replace(lake.store.normal(lake.path("data.bin")), made, source=source, overwrite=overwrite)
        assert events == expected
        assert made.gi_frame is None


def test_the_pieces_are_closed_before_the_new_file_is_verified(lake: Place) -> None:
    events: list[str] = []

    def pieces() -> Pieces:
        try:
            yield b"new"
        finally:
            events.append("closed")

    replace(lake, pieces(), verify=lambda _: events.append("verified"))
    assert events == ["closed", "verified"]


def test_a_small_file_is_written_whole_and_overwritten_only_where_that_is_wanted(lake: Place) -> None:
    path = lake.store.normal(lake.path("baseline.json"))
    lake.store.write_file(path, b"one", overwrite=False)
    with pytest.raises(UsageError, match="exists already"):
        lake.store.write_file(path, b"two", overwrite=False)
    assert lake.get("baseline.json") == b"one"
    lake.store.write_file(path, b"three", overwrite=True)
    assert lake.get("baseline.json") == b"three"
    assert lake.names() == {"data.bin", "baseline.json"}


def test_an_output_may_not_be_the_input_nor_a_directory(lake: Place) -> None:
    lake.put("folder/x", b"")
    path = lake.store.normal(lake.path("data.bin"))
    assert lake.store.destination(lake.path("new.bin"), path) == lake.store.normal(lake.path("new.bin"))
    for output, message in (
        ("data.bin", "is the input"),
        ("folder", "is a directory"),
        ("new/", "names a directory"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            lake.store.destination(lake.path(output), path)
        assert caught.value.hint


def test_a_directory_that_is_not_there_is_not_needed_or_an_error_with_the_path(lake: Place) -> None:
    try:
        replace(lake, target="nowhere/new.bin")
    except WriteError as error:
        assert "nowhere" in str(error.path)
        assert "create the output's directory first" in str(error.hint)
        assert lake.names() == {"data.bin"}
    else:
        assert lake.get("nowhere/new.bin") == NEW


def test_a_store_that_is_only_read_refuses_every_change(read_only: Place) -> None:
    read_only.put("data.bin", OLD)
    path = read_only.path("data.bin")
    refused: dict[str, Callable[[], object]] = {
        "check": lambda: read_only.store.check_changes(path),
        "replace": lambda: replace(read_only),
        "copy": lambda: replace(read_only, target="new.bin", overwrite=False),
        "names": lambda: read_only.store.names(read_only.path()),
    }
    for what, change in refused.items():
        with pytest.raises(UsageError, match="URIs can be read, but not changed") as caught:
            change()
        assert caught.value.path is not None, what
        assert caught.value.hint == "-o writes a changed copy", what
    with pytest.raises(UsageError, match="outputs can't be written to"):
        read_only.store.destination(read_only.path("new.bin"), path)
    with pytest.raises(UsageError, match="outputs can't be written to"):
        read_only.store.mirrored(read_only.path(), "new.bin")
    with pytest.raises(UsageError, match="outputs can't be written to"):
        read_only.store.write_file(read_only.path("new.json"), b"", overwrite=True)
    assert not any(read_only.store.sweep_for([path]))
    assert read_only.get("data.bin") == OLD
    assert read_only.names() == {"data.bin"}
