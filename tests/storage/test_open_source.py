"""Opening a path, and detecting changes of the open file. ``suite`` tests the behaviour that all stores share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bloomcli.errors import BloomError, SourceChanged, UnreadableError, UnsupportedError, UsageError
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


def test_a_file_touched_has_changed(source: Source, file: Path) -> None:
    os.utime(file, ns=(0, 10**18))
    with pytest.raises(SourceChanged):
        source.check_unchanged()


def test_a_range_that_is_missing_is_a_change_and_not_a_short_read(source: Source, file: Path) -> None:
    os.truncate(file, 100)
    assert source.read_at(0, 100) == CONTENT[:100]
    with pytest.raises(SourceChanged, match="became shorter"):
        source.read_at(50, 51)


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


def test_the_path_is_shown_as_it_was_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    Path("link").symlink_to(file.name)
    for given in ("data.bin", "./data.bin", "link", str(file), file.as_uri()):
        with open_source(given) as source:
            assert source.path == given
            assert isinstance(source, LocalSource)
            assert source.local_path.samefile(file)
            assert source.read_at(0, 9) == CONTENT[:9]


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


@pytest.mark.parametrize("name", ["odd://name", "S3://lake"])
def test_a_path_that_looks_like_a_uri_but_is_there_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).parent.mkdir()
    Path(name).write_bytes(b"x")
    with open_source(name) as source:
        assert isinstance(source, LocalSource)


def test_only_regular_files_are_opened_and_others_are_refused_without_waiting(tmp_path: Path) -> None:
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
        ("nonsense://there", UnsupportedError, "can't be read here"),
        ("hf://datasets/owner/name", UnsupportedError, "can't be read here"),
        pytest.param("nonsense://" + "x" * 5000, UnsupportedError, "can't be read here", id="long URI"),
        ("loop", UnreadableError, "symbolic link"),
    ],
)
def test_a_path_that_cannot_be_opened_has_an_error_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, kind: type[BloomError], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(kind, match=f"(?i){reason}") as caught:
        open_source(given)
    assert caught.value.path == given


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        *(
            (f"{uri}/data.bin", "container")
            for uri in ("az://", "az:///x", "abfss://container/x", "abfss://@account/x")
        ),
        *((uri, "bucket") for uri in ("gs://", "gs:///x", "s3://", "s3:///x")),
        *((uri, "host") for uri in ("https://", "http:///data.bin", "https://:80/x")),
    ],
)
def test_a_uri_without_a_container_a_bucket_or_a_host_is_a_usage_error(uri: str, reason: str) -> None:
    with pytest.raises(UsageError, match=f"names no {reason}") as caught:
        open_source(uri)
    assert caught.value.hint


def test_opening_leaves_no_descriptor_behind_when_it_fails(tmp_path: Path) -> None:
    for _ in range(5):
        with pytest.raises(UnreadableError):
            open_source(tmp_path)
    # Their number says nothing: what earlier tests held is closed at whatever instant Python collects it.
    assert str(tmp_path.resolve()) not in [str(fd.resolve()) for fd in Path("/dev/fd").iterdir()]


@pytest.mark.parametrize(
    ("uri", "right"),
    [
        ("S3://lake/a.parquet", "s3://lake/a.parquet"),
        ("S3a://lake/A.parquet", "s3a://lake/A.parquet"),
        ("GS://lake/a", "gs://lake/a"),
        ("AbFSS://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
        ("HTTPS://me:secret@host/a?sig=secret", "https://host/a?..."),
        ("FILE:///a.parquet", "file:///a.parquet"),
    ],
)
def test_a_scheme_in_capitals_is_refused_with_the_uri_that_works(uri: str, right: str) -> None:
    with pytest.raises(UsageError, match="the URI's scheme is in capital letters") as caught:
        open_source(uri)
    assert caught.value.hint == f"write it as {right}"
    assert "secret" not in str(caught.value)
