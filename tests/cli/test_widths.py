"""At 60 columns no number, type or name is broken, and columns that are left out are named. The screens of
`tests/golden` have 80 and 120 columns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import screens
from support.terminal import on_terminal, still_clock

from bloomcli.report.human import width

COLUMNS = 60
LIKE_OTHERS = ("advise few", "advise lake", "trial few", "trial filtered")
"""Lines that take seconds, and have the tables of other lines."""
LINES = [
    line
    for command, lines in screens.SESSIONS.items()
    for line in lines
    if command != "dump" and not line.startswith("probe lake")
]
_OUTPUT = re.compile(r" -o \S+")
_PIECE = re.compile(
    r"\d[\d.,]* (?:B|KiB|MiB|%|ms)(?![\w])"  # numbers with their units
    r"|[A-Z0-9_]+ \([A-Z][^ ]*\)"  # types
    r"|[\w./=-]+"  # names, paths, plain numbers
)


_ADDED = (
    " empty in each line: in lake/ few/ not shown: (a wider terminal or --format csv json shows all columns) :"
    " cut; has the value as the file has it."
)
"""The words that only a table that doesn't fit has."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the screens."""
    folder = tmp_path_factory.mktemp("widths")
    screens.make(folder)
    return folder


def whole(files: Path, line: str) -> str:
    """The output of a command on a terminal with enough width."""
    with still_clock():
        return on_terminal(shlex.split(_OUTPUT.sub(" --dry-run", line)), 10_000, folder=files).out


def whole_pieces(text: str) -> Iterator[str]:
    """Numbers with their units, types, names."""
    return (found[0] for found in _PIECE.finditer(text))


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith(LIKE_OTHERS)])
def test_nothing_is_broken_on_a_narrow_terminal(files: Path, line: str) -> None:
    args = shlex.split(_OUTPUT.sub(" --dry-run", line))
    with still_clock():
        shown = on_terminal(args, COLUMNS, folder=files).out
    wide = whole(files, line)
    for text in shown.splitlines():
        if (
            width(text) > COLUMNS
        ):  # only what has no blank to break it at, command lines to copy, and rows that were found
            whole_as_it_is = (
                "`" in text or "explain" in line or line.startswith("find ") or text.startswith("  bloom ")
            )
            assert len(list(whole_pieces(text))) <= 2 or whole_as_it_is, text
    known = " ".join(wide.split()) + _ADDED
    for piece in whole_pieces(shown):
        assert piece in known, piece


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_columns_that_are_left_out_are_named(files: Path, columns: int) -> None:
    shown = on_terminal(["inspect", "spark_types.parquet", "--all"], columns, folder=files).out
    titles = {"type", "offset", "size", "blocks", "NDV", "fill", "FPP", "bits/value"}
    grid = shown[shown.index("\n\n") :]
    assert {title for title in titles if title in grid} == titles
    assert ("not shown: " in shown) == (columns == 60 or columns == 80)
    if columns <= 80:
        assert "--format csv shows" in shown.replace("\n  ", " ")


def test_pipes_get_whole_tables_unless_columns_asks_for_a_width(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from bloomcli.cli import run

    saved = tmp_path / "report.txt"
    monkeypatch.chdir(files)
    for columns in (None, "60", "", "0", "wide"):
        if columns is not None:
            monkeypatch.setenv("COLUMNS", columns)
        assert run(["inspect", "spark_types.parquet", "--all", "--report", f"text={saved}"]) == 0
        out = capfd.readouterr().out
        assert ("not shown: type, offset, bits/value" in out) == (columns == "60")
        assert (max(map(len, out.splitlines())) <= 60) == (columns == "60")
        assert "bits/value" in saved.read_text()
