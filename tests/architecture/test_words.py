"""Names and sentences use the words of the field: a class is a noun, and some words aren't used at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "bloomcli"
NO_NOUN: Final = re.compile(
    r"\w+ed|Again|Ahead|Absent|Built|Carried|Chosen|Cut|Found|Gone|Held|Kept|Known|Left|Lie|Look|Lost|Made|Many|New|Open|"
    r"Plain|Possible|Read|Seen|Shown|Sought|Swept|Taken|Told|Together|Unknown|Unread|Unreadable|Vain|Wanted|Written"
)
"""Words that a class or module isn't named by: they say that something was done, and not what the thing is."""
NOUNS: Final = {"Feed", "ReadAhead", "Compiled", "FileFound", "ColumnSeen"}
"""Nouns that look otherwise, and public names of earlier versions."""
AVOIDED: Final = re.compile(
    r"(?<!can't )(?<!cannot )\b(tell(?!\()|tells|told|telling|beside|in vain)\b", re.IGNORECASE
)
"""Words that stand for several others: say, report, show, know, determine; next to, at the same time as. "Can't tell"
is an answer of ``bloom probe``, and ``tell()`` a method of files."""

KEY: Final = '"beside": '
"""A key of ``benchmarks/results-gate.json``, which stays as in earlier results."""


def modules() -> list[Path]:
    """All files with code."""
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".pyx", ".pxi"})


def is_noun(name: str) -> bool:
    """Whether the last word of a name is a noun, as far as a list can say it."""
    last = re.findall(r"[A-Z][a-z0-9]*|[A-Z]+(?![a-z])", name)[-1:] or [name]
    return name in NOUNS or last[0] in NOUNS or not NO_NOUN.fullmatch(last[0])


def class_names(path: Path) -> Iterator[tuple[str, bool]]:
    """The classes of a module, with whether each is an exception."""
    for line in path.read_text().splitlines():
        if match := re.match(r"\s*(?:cdef )?class (\w+)(?:\(([^)]*)\))?", line):
            yield match[1].lstrip("_"), bool(re.search(r"Error|Exception|Stopped", match[2] or ""))


def avoided(paths: Iterable[Path]) -> list[str]:
    """The lines with a word to avoid, also within names: ``file:line: text``."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text().replace(KEY, "").splitlines(), 1)
        if AVOIDED.search(line.replace("_", " "))
    ]


def test_classes_are_named_by_nouns() -> None:
    """``FilterLookup`` says what it is, ``Asked`` doesn't."""
    names = [(path, name) for path in modules() for name, error in class_names(path) if not error]
    assert len(names) > 500
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in names if not is_noun(name)] == []


def test_modules_are_named_by_nouns() -> None:
    """The same rule for modules."""
    names = {path: "".join(word.title() for word in path.stem.strip("_").split("_")) for path in modules()}
    assert [str(path.relative_to(ROOT)) for path, name in names.items() if not is_noun(name)] == []


def test_code_avoids_words_that_stand_for_several_others() -> None:
    """In names, comments and texts."""
    assert avoided(modules()) == []


def test_pages_avoid_them_too() -> None:
    """Documentation and the pages of rules."""
    folders = (ROOT / "docs", PACKAGE)
    pages = [path for folder in folders for path in sorted(folder.rglob("*.md"))]
    assert len(pages) > 50
    assert avoided([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages]) == []


def test_tests_tools_and_benchmarks_avoid_them_too() -> None:
    """In names, docstrings and comments. This file is excluded, because it lists the words."""
    programs = [path for name in ("benchmarks", "tests", "tools") for path in sorted((ROOT / name).rglob("*.py"))]
    assert avoided(path for path in programs if path != Path(__file__)) == []


@pytest.mark.parametrize("name", ["Asked", "FilterAsked", "_Told", "Unread"])
def test_a_class_without_a_noun_is_found(name: str) -> None:
    assert not is_noun(name.lstrip("_"))
    assert is_noun("FilterLookup")


@pytest.mark.parametrize("line", ["what filters tell", "told = 1", "_told_by_filters", "the file beside it"])
def test_a_word_to_avoid_is_found(line: str) -> None:
    assert AVOIDED.search(line.replace("_", " "))
    assert not AVOIDED.search("a filter can't tell, and file.tell() is a method")
