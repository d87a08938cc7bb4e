"""Listing the files that a path means, in whatever store."""

from __future__ import annotations

import pytest
from support.object_stores import SCHEME, MemoryObjects
from support.stores import Place

from bloomcli.errors import BloomError, UnreadableError, UnsupportedError
from bloomcli.storage import registry
from bloomcli.storage.base import FileEntry, ManagedTable, TableKind
from bloomcli.storage.listing import expand
from bloomcli.storage.managed_tables import tables_of

VISIBLE = ["a.parquet", "b.orc", "_p=1/c.parquet", "year=2023/e.parquet", "year=2024/month=2/d.parquet"]
HIDDEN = ["_SUCCESS", ".a.part", "_delta_log/0.json", ".git/x.parquet", "year=2024/_SUCCESS"]


@pytest.fixture
def lake(listing: Place) -> Place:
    """A directory with partitions and hidden names."""
    for name in (*VISIBLE, *HIDDEN):
        listing.put(f"lake/{name}", b"abc")
    return listing


def test_a_directory_is_listed_with_its_partitions_and_without_its_hidden_names(lake: Place) -> None:
    lake.put("lake/empty", b"")
    (empty,) = (item for item in lake.store.list(lake.path("lake") + "/") if item.relative == "empty")
    assert empty.size == 0
    lake.remove("lake/empty")
    found = list(lake.store.list(lake.path("lake")))
    assert sorted(item.relative for item in found) == sorted(VISIBLE)
    assert lake.store.is_dataset(lake.path("lake") + "/")
    for item in found:
        assert (item.size, item.walked, item.matched, item.skipped, item.problem) == (3, True, False, False, None)
        with lake.store.open(item.path) as source:
            assert source.read_at(0, 3) == b"abc"


def test_a_listing_has_the_same_tag_and_time_as_the_opened_file(lake: Place) -> None:
    """If it has any: an index compares them."""
    for item in (*lake.store.list(lake.path("lake")), *lake.store.list(lake.path("lake/a.parquet"))):
        with lake.store.open(item.path) as source:
            assert item.tag in {"", source.fingerprint.tag}
            assert item.mtime_ns in {0, source.fingerprint.mtime_ns}
            assert item.tag or item.mtime_ns or source.fingerprint.tag == ""


@pytest.mark.parametrize(
    ("mark", "kind"), [("_delta_log/0.json", TableKind.DELTA), ("metadata/v1.metadata.json", TableKind.ICEBERG)]
)
def test_the_tables_of_listed_files_are_known(
    listing: Place, monkeypatch: pytest.MonkeyPatch, mark: str, kind: TableKind
) -> None:
    for name in ("lake/orders/p=1/a.parquet", "lake/plain/b.parquet", f"lake/orders/{mark}"):
        listing.put(name, b"abc")
    if isinstance(listing.store, MemoryObjects):
        monkeypatch.setitem(registry.known_stores(), SCHEME, listing.store)
    root = listing.path("lake/orders").removeprefix("file://")
    named = {"": True, "/": True, "/orders": True, "/orders/p=1": True, "/plain": False}
    if not isinstance(listing.store, MemoryObjects):
        named |= {"/o*": True, "/orders/p*": True, "/*/*/a.parquet": True, "/pl*": False}
    named["/orders/p=1/a.parquet"] = True
    for end, there in named.items():
        path = listing.path("lake") + end
        seen: set[ManagedTable] = set()
        found = tables_of([path], expand([path], seen), seen)
        assert found == [ManagedTable(kind, root)] * there, path


def test_a_file_that_is_named_is_listed_whatever_its_name_and_without_a_size_if_it_is_not_there(lake: Place) -> None:
    for name in ("a.parquet", "_SUCCESS", ".a.part", "_delta_log/0.json"):
        (found,) = lake.store.list(lake.path(f"lake/{name}"))
        unmarked = found._replace(mtime_ns=0, tag="")
        assert unmarked == FileEntry(path=found.path, size=3, relative=name.rpartition("/")[2], walked=False)
        assert lake.store.normal(found.path) == lake.store.normal(lake.path(f"lake/{name}"))
    (found,) = lake.store.list(lake.path("lake/nowhere.parquet"))
    assert (found.relative, found.size, found.walked) == ("nowhere.parquet", -1, False)


def test_a_pattern_gives_its_files_or_says_that_it_cannot(lake: Place) -> None:
    pattern = lake.path("lake") + "/*.parquet"
    assert lake.store.is_dataset(pattern)
    try:
        found = [item.relative for item in lake.store.list(pattern)]
    except UnsupportedError as error:
        assert (error.path, error.hint) == (pattern, "name the directory")
    else:
        assert found == ["a.parquet"]
    with pytest.raises((UnreadableError, UnsupportedError)) as caught:
        list(lake.store.list(lake.path("lake") + "/*.csv"))
    assert isinstance(caught.value, BloomError)
    assert caught.value.hint


def test_one_file_has_one_spelling(lake: Place) -> None:
    spell = lake.store.spelling()
    (found,) = lake.store.list(lake.path("lake/a.parquet"))
    again = next(i for i in lake.store.list(lake.path("lake")) if i.relative == "a.parquet")
    assert spell(found.path) == spell(again.path)
    assert spell(found.path) != spell(lake.store.normal(lake.path("lake/b.orc")))
