"""docs/start.md shows what its commands print. ``python tests/architecture/test_start.py`` writes it again."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from architecture.test_docs import EXAMPLE, ROOT, SHOWN, example

PAGE = ROOT / "docs" / "start.md"
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)


def outputs(text: str, folder: Path) -> Iterator[str]:
    """What each block of the page prints today, one after the other in one folder."""
    (setup,) = EXAMPLE.findall(text)
    for line in setup.splitlines():
        words = [sys.executable if word == "python3" else word for word in line.split()]
        words = [str(ROOT / word) if word.startswith("docs/") else word for word in words]
        subprocess.run(words, cwd=folder, check=True)
    for block in SHOWN.findall(text):
        (command,) = _COMMAND.findall(block)
        yield f"$ {command}\n{example(command, folder)}"


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
def test_the_page_shows_what_its_commands_print() -> None:
    text = PAGE.read_text(encoding="utf-8")
    now, shown = SHOWN.findall(current(text)), SHOWN.findall(text)
    assert len(now) == 5
    assert list(map(without_times, now)) == list(map(without_times, shown))


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
