"""Patterns match what the standard library's glob matches, and report directories that can't be read."""

from __future__ import annotations

import errno
import glob
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from bloomcli.storage.local.paths import has_wildcard, matches

NAMES = st.sampled_from(["a", "b", ".h", "a.parquet", "b.orc", "[x]", "p=1", "_t"])
PARTS = st.sampled_from(["*", "**", "?", "a*", "*.parquet", ".*", "[ab]", "[!a]*", "a", "p=*", "[[]x]", ""])


def standard(pattern: str) -> set[str]:
    """The matches of glob, without the nonexistent directory before `**` that old releases include."""
    return {name for name in glob.glob(pattern, recursive=True) if os.path.lexists(name)}  # noqa: PTH207


def never(error: OSError) -> None:
    """No directory may be reported."""
    raise AssertionError(error)


@settings(max_examples=examples(75), deadline=None)
@given(
    files=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8),
    links=st.lists(st.tuples(NAMES, NAMES), max_size=2),
    parts=st.lists(PARTS, min_size=1, max_size=4),
)
def test_patterns_match_what_glob_matches(
    files: list[list[str]], links: list[tuple[str, str]], parts: list[str]
) -> None:
    with TemporaryDirectory() as folder:
        _compare(Path(folder), files, links, parts)


def _compare(root: Path, files: list[list[str]], links: list[tuple[str, str]], parts: list[str]) -> None:
    for names in files:
        path = root.joinpath(*names)
        if not any(parent.is_file() for parent in (path, *path.parents)) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    for name, target in links:
        if not os.path.lexists(root / name):
            (root / name).symlink_to(target)
    pattern = "/".join([str(root), *parts])
    assert set(matches(pattern, never)) == standard(pattern), pattern


def test_relative_patterns_are_matched_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f.parquet").touch()
    monkeypatch.chdir(tmp_path)
    for pattern in ("*", "d/*", "**", "**/*.parquet", "./*/e", "d/e/f.parquet", "nothing/*", "x*"):
        assert set(matches(pattern, never)) == standard(pattern), pattern


def test_links_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "itself").symlink_to("itself")
    assert str(tmp_path / "loop") in set(matches(f"{tmp_path}/**", never))


@pytest.mark.parametrize("pattern", ["*/x.parquet", "**/x.parquet", "*/*", "[d]/**"])
def test_a_directory_that_cannot_be_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.parquet").touch()
    scandir = os.scandir

    def failing(path: str) -> object:
        if Path(path).name == "d":
            raise OSError(errno.ESTALE, "Stale file handle")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    reported: list[str] = []
    list(matches(f"{tmp_path}/{pattern}", lambda error: reported.append(os.path.normpath(error.filename))))
    assert reported == ([] if pattern == "*/x.parquet" else [str(tmp_path / "d")])


def test_what_has_wildcards() -> None:
    assert all(map(has_wildcard, ("*", "a?", "[ab]")))
    assert not any(map(has_wildcard, ("a", "", "{a,b}")))
