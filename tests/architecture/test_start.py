"""docs/start.md, find.md and repair.md show what their commands print. As a script, it writes their output again."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from architecture.test_docs import EXAMPLE, ROOT, SHOWN, example

PAGES: Final = {name: ROOT / "docs" / name for name in ("start.md", "find.md", "repair.md")}
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def outputs(text: str, folder: Path) -> Iterator[str]:
    """What each block of a page prints today, one after the other in one folder."""
    (setup,) = EXAMPLE.findall(text)
    example(re.sub(r"(?<= )(docs|fixtures)/", rf"{ROOT}/\1/", setup), folder)
    for block in SHOWN.findall(text):
        (command,) = _COMMAND.findall(block)
        printed = example(f"exec 2>&1\n{command}", folder)  # with what goes to standard error
        yield f"$ {command}\n{printed}"


def current(text: str) -> str:
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        made = outputs(text, Path(folder))
        return SHOWN.sub(lambda _: f"```console\n{next(made)}```", text)


def without_times(text: str) -> str:
    """The page without times, versions and numbers of processors, and the widths that depend on them. Bytes are those
    that DuckDB says it read, which its buffers change."""
    text = re.sub(r"\d+ min \d+ s|[\d.]+ m?s\b|\d+ files?/s|[\d.]+ files?/s", "TIME", text)
    text = re.sub(r"\b(DuckDB|Polars) [\d.]+", r"\1", text)
    text = re.sub(r"[\d.]+ [KM]iB", "SIZE", text) if "bytes without" in text else text
    return re.sub(r" +", " ", re.sub(r"local, \d+ jobs?", "local", text))


@pytest.mark.interop
@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_its_commands_print(page: str) -> None:
    text = PAGES[page].read_text(encoding="utf-8")
    now, shown = SHOWN.findall(current(text)), SHOWN.findall(text)
    assert now
    assert list(map(without_times, now)) == list(map(without_times, shown))


if __name__ == "__main__":
    for path in PAGES.values():
        path.write_text(current(path.read_text(encoding="utf-8")), encoding="utf-8")
