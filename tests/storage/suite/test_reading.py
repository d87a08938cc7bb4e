"""Reading ranges of a file in whatever store: nothing outside the file, and nothing of a file that has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.stores import Place

from bloomcli.errors import CorruptFile, SourceChanged, UnreadableError
from bloomcli.storage.base import Kind, Source

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def source(place: Place) -> Iterator[Source]:
    """A file, opened in each store."""
    place.put("data.bin", CONTENT)
    with place.store.open(place.path("data.bin")) as opened:
        yield opened


def test_a_source_knows_its_path_and_its_size(source: Source, place: Place) -> None:
    assert (source.path, source.size) == (place.path("data.bin"), len(CONTENT))
    assert source.fingerprint.size == len(CONTENT)
    assert source.read_ahead_bytes >= 4096
    source.close()
    source.close()  # twice, which does no harm


def test_a_range_is_read_as_it_is_and_one_outside_the_file_is_refused(source: Source) -> None:
    for offset, length in ((0, 0), (0, 1), (5, 300), (0, 10240), (10239, 1), (10240, 0)):
        assert source.read_at(offset, length) == CONTENT[offset : offset + length]
    for offset, length in ((0, 10241), (10240, 1), (10241, 0), (-1, 1), (0, -1), (1 << 63, 1), (5, 1 << 80)):
        with pytest.raises(CorruptFile) as caught:
            source.read_at(offset, length)
        assert (caught.value.path, caught.value.offset) == (source.path, offset)


def test_threads_may_read_at_once(source: Source) -> None:
    barrier = threading.Barrier(4)

    def read(start: int) -> bool:
        barrier.wait()
        return all(source.read_at(at, 97) == CONTENT[at : at + 97] for at in range(start, 10_000, 41))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(4)))


def test_an_empty_file_has_one_empty_range(place: Place) -> None:
    place.put("empty", b"")
    with place.store.open(place.path("empty")) as source:
        assert (source.size, source.read_at(0, 0)) == (0, b"")
        with pytest.raises(CorruptFile):
            source.read_at(0, 1)


def test_a_file_that_was_written_anew_or_is_gone_has_changed(place: Place) -> None:
    for other in (CONTENT + b"more", CONTENT[:-1], b"", CONTENT[::-1], None):
        place.put("data.bin", CONTENT)
        with place.store.open(place.path("data.bin")) as source:
            source.read_at(0, 100)
            source.check_unchanged()
            if other is None:
                place.remove("data.bin")
            else:
                place.put("data.bin", other)
            with pytest.raises(SourceChanged) as caught:
                source.check_unchanged()
            assert caught.value.path == source.path


def test_a_file_that_was_written_anew_is_never_read_as_a_mixture(source: Source, place: Place) -> None:
    place.put("data.bin", b"x" * len(CONTENT))
    try:
        assert source.read_at(0, len(CONTENT)) in {CONTENT, b"x" * len(CONTENT)}
    except SourceChanged:
        return


def test_what_is_not_there_and_a_directory_cannot_be_opened(place: Place) -> None:
    for name in ("nowhere.bin", "nowhere/at/all.bin"):
        with pytest.raises(UnreadableError, match=r"no such (file|object)") as caught:
            place.store.open(place.path(name))
        assert (caught.value.path, caught.value.hint) == (place.path(name), "check the path")
    place.put("folder/data.bin", CONTENT)
    with pytest.raises(UnreadableError) as refused:
        place.store.open(place.path("folder"))
    assert refused.value.hint


def test_the_kind_of_a_path_says_what_has_it(listing: Place) -> None:
    listing.put("folder/data.bin", CONTENT)
    found = listing.store.fingerprint(listing.path("folder/data.bin"))
    assert found is not None
    assert found.size == len(CONTENT)
    assert listing.store.kind(listing.path("folder/data.bin")) is Kind.FILE
    assert listing.store.kind(listing.path("folder")) is Kind.DIRECTORY
    assert listing.store.kind(listing.path("folder/nowhere")) is None
    assert listing.store.kind(listing.path("nowhere/at/all")) is None


def test_a_later_file_has_a_later_time(place: Place) -> None:
    times = []
    for data in (b"one", b"two"):
        place.put("data.bin", data)
        found = place.store.fingerprint(place.path("data.bin"))
        assert found is not None
        times.append(found.mtime_ns)
    assert 0 < times[0] <= times[1]


def test_a_known_file_is_read_as_it_is_or_not_opened(place: Place) -> None:
    place.put("data.bin", CONTENT)
    path = place.path("data.bin")
    seen = place.store.fingerprint(path)
    assert seen is not None
    known = place.store.open_from_parts(path, seen, [(100, CONTENT[100:200]), (10_000, CONTENT[10_000:])])
    if known is None:  # without requests, or a change wouldn't be noticed
        assert not seen.tag or not place.store.remote
        return
    with known as source:
        for offset, length in ((0, 10_240), (50, 100), (100, 100), (120, 30), (150, 100), (9_990, 20), (10_000, 240)):
            assert source.read_at(offset, length) == CONTENT[offset : offset + length]
        source.check_unchanged()


@pytest.mark.parametrize("other", [CONTENT[::-1], CONTENT + b"more", None], ids=["same size", "longer", "gone"])
def test_a_known_file_that_was_written_anew_or_is_gone_is_never_read(place: Place, other: bytes | None) -> None:
    place.put("data.bin", CONTENT)
    path = place.path("data.bin")
    seen = place.store.fingerprint(path)
    assert seen is not None
    if other is None:
        place.remove("data.bin")
    else:
        place.put("data.bin", other)
    known = place.store.open_from_parts(path, seen, [(10_000, CONTENT[10_000:])])
    if known is None:
        return
    with known as source:
        for offset, length in ((0, 10), (5_000, 5_100)):
            with pytest.raises(SourceChanged):
                source.read_at(offset, length)
