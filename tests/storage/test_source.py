"""Reading ranges: nothing outside the file, and nothing of a file that has changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bloomcli.errors import BloomError, CorruptFile, SourceChanged, UnreadableError, UnsupportedError
from bloomcli.storage.arrow_store import ArrowSource
from bloomcli.storage.base import Source
from bloomcli.storage.local.source import LocalSource
from bloomcli.storage.registry import open_source

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file to read."""
    path = tmp_path / "data.bin"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture(params=["local", "file URI", "pyarrow"])
def source(request: pytest.FixtureRequest, file: Path) -> Iterator[Source]:
    """The same file, opened in each way."""
    ways: dict[str, Callable[[], Source]] = {
        "local": lambda: open_source(file),
        "file URI": lambda: open_source(file.as_uri()),
        "pyarrow": lambda: ArrowSource(file.as_uri()),  # what remote URIs go through, on a local file
    }
    with ways[request.param]() as opened:
        yield opened


@pytest.mark.parametrize(("offset", "length"), [(0, 0), (0, 1), (5, 300), (0, 10240), (10239, 1), (10240, 0)])
def test_a_range_is_read_as_it_is(source: Source, offset: int, length: int) -> None:
    assert source.size == len(CONTENT)
    assert source.read_at(offset, length) == CONTENT[offset : offset + length]


@pytest.mark.parametrize(
    ("offset", "length"),
    [(0, 10241), (10240, 1), (10241, 0), (-1, 1), (0, -1), (1 << 63, 1), (0, 1 << 62), (5, 1 << 80)],
)
def test_a_range_outside_the_file_is_refused_before_anything_is_read(
    source: Source, offset: int, length: int
) -> None:
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


def test_an_untouched_file_is_unchanged(source: Source) -> None:
    source.read_at(0, 100)
    source.check_unchanged()


def test_a_longer_file_has_changed(source: Source, file: Path) -> None:
    with file.open("ab") as out:
        out.write(b"more")
    with pytest.raises(SourceChanged):
        source.check_unchanged()


def test_a_file_touched_has_changed(source: Source, file: Path) -> None:
    os.utime(file, ns=(0, 10**18))
    with pytest.raises(SourceChanged):
        source.check_unchanged()


def test_a_range_that_has_gone_is_a_change_and_no_short_read(source: Source, file: Path) -> None:
    os.truncate(file, 100)
    assert source.read_at(0, 100) == CONTENT[:100]
    with pytest.raises(SourceChanged, match="became shorter"):
        source.read_at(50, 51)


def test_a_file_that_has_gone_has_changed(source: Source, file: Path) -> None:
    file.unlink()
    with pytest.raises(SourceChanged):
        source.check_unchanged()


def test_a_name_that_leads_in_a_circle_has_changed(source: Source, file: Path) -> None:
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises((SourceChanged, UnreadableError)):
        source.check_unchanged()


def test_another_file_under_the_name_is_a_change_even_with_the_same_size_and_time(file: Path) -> None:
    with open_source(file) as source:
        info = file.stat()
        other = file.with_name("other")
        other.write_bytes(CONTENT)
        os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns))
        other.replace(file)
        with pytest.raises(SourceChanged):
            source.check_unchanged()
        assert source.read_at(0, len(CONTENT)) == CONTENT  # the one that was opened stays readable


def test_closing_twice_does_no_harm(source: Source) -> None:
    source.close()
    source.close()


def test_the_path_is_shown_as_it_was_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    for given in ("data.bin", "./data.bin", str(file), file.as_uri()):
        with open_source(given) as source:
            assert source.path == given
            assert isinstance(source, LocalSource)
            assert source.local_path.samefile(file)


@pytest.mark.parametrize("name", ["with space", "hash#mark", "question?", "per%20cent", "naïve", "a:b", "s3:colon"])
def test_file_uris_may_hold_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"x")
    for given in (
        path,
        path.as_uri(),
        path.as_uri().replace("file:///", "file://localhost/"),
        f"file:{path.as_uri()[7:]}",
    ):
        with open_source(given) as source:
            assert source.read_at(0, 1) == b"x"


def test_a_path_that_looks_like_a_uri_but_is_there_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd:").mkdir()
    (tmp_path / "odd:" / "name").write_bytes(b"x")
    with open_source("odd://name") as source:
        assert isinstance(source, LocalSource)


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with open_source(tmp_path / "empty") as source:
        assert (source.size, source.read_at(0, 0)) == (0, b"")


def test_a_symbolic_link_is_followed(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file.name)
    with open_source(link) as source:
        assert source.read_at(0, 9) == CONTENT[:9]


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in (
        (tmp_path, "a directory"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/zero", "not a reg"),
    ):
        with pytest.raises(UnreadableError, match=what) as caught:
            open_source(path)
        assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "kind", "reason"),
    [
        ("nowhere.parquet", UnreadableError, "no such file"),
        ("", UnreadableError, "a directory"),
        pytest.param("x" * 5000, UnreadableError, "too long", id="long path"),
        ("nul\0byte", UnreadableError, "can't be read"),
        ("file:///nowhere/at/all", UnreadableError, "no such file"),
        ("file:///nul%00byte", UnreadableError, "no such file"),
        ("file://elsewhere/data", UnsupportedError, "another machine, elsewhere"),
        ("file://[bad/data", UnsupportedError, r"another machine, \[bad"),
        ("mock:///nowhere", UnreadableError, "no such file"),
        ("http://127.0.0.1:1/data", UnsupportedError, "can't be read here"),
        ("nonsense://there", UnsupportedError, "can't be read here"),
        pytest.param("nonsense://" + "x" * 5000, UnsupportedError, "can't be read here", id="long URI"),
        ("loop", UnreadableError, "symbolic link"),
    ],
)
def test_what_cannot_be_opened_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, kind: type[BloomError], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(kind, match=f"(?i){reason}") as caught:
        open_source(given)
    assert caught.value.path == given


def test_a_remote_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="not a file"):
        ArrowSource(tmp_path.as_uri())


def test_opening_leaves_no_descriptor_behind_when_it_fails(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(UnreadableError):
            open_source(tmp_path)
    assert len(list(Path("/dev/fd").iterdir())) == before
