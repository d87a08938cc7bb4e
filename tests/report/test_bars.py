"""Bars and sparklines: shown only on terminals with UTF-8 and enough room, and never longer than their share."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.html_reports import of_file, of_lake
from support.terminal import on_terminal

from bloomcli.report import render, text_dataset, text_inspect
from bloomcli.report.fitting import fit
from bloomcli.report.layout import CELLS, Block, Grid, Head, bar, sparkline

DRAWN = set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")


@given(st.floats(0, 1))
def test_a_bar_is_as_long_as_its_share_and_whole_only_for_all(share: float) -> None:
    shown = bar(share)
    assert (shown == "") == (share == 0)
    assert (shown == "█" * CELLS) == (share == 1)
    assert abs(len(shown) - share * CELLS) <= 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_a_sparkline_shows_the_highest_of_the_figures_it_joins(shares: list[float]) -> None:
    shown = sparkline(shares)
    assert len(shown) == min(len(shares), CELLS)
    assert max(shown) == sparkline([max(shares)])


def test_nothing_is_drawn_without_figures() -> None:
    assert bar(None) == ""
    assert sparkline([]) == ""


def grid() -> Grid:
    """Two rows, with a bar each."""
    made = Grid((Head("name"), Head("share", figures=True), Head("", graphic=True), Head("note", rank=1)))
    made.add("a", "30 %", bar(0.3), "one")
    made.add("b", "90 %", bar(0.9), "two")
    return made


def lines(blocks: list[Block], columns: int | None) -> list[str]:
    """The grid at a width."""
    return ["".join(text for text, _ in pieces).rstrip() for pieces in fit(blocks, columns)]


def test_bars_give_way_before_any_column_does() -> None:
    assert lines([grid()], 80)[1] == "a      30 %  ███        one"
    narrow = lines([grid()], 18)
    assert narrow == ["name  share  note", "a      30 %  one", "b      90 %  two"]
    assert lines([grid()], None) == narrow


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_plain_output_has_no_bars_in_any_encoding(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    render.write(text_inspect.inspect(of_file(3, ("id", "name")), every=True), stream)
    render.write(text_dataset.dataset(of_lake(60, ("id",))), stream)
    assert not DRAWN & set(raw.getvalue().decode(encoding))


def test_a_terminal_shows_fill_and_coverage(fixtures: Path, tmp_path: Path) -> None:
    import bloomcli

    for name in ("a", "b"):
        bloomcli.add(fixtures / "parquet" / "orders.parquet", ["id"], output=tmp_path / f"{name}.parquet")
    every = on_terminal(["inspect", tmp_path / "a.parquet", "--all"], 200).out
    assert DRAWN & set(every)
    assert "█" * CELLS in on_terminal(["inspect", tmp_path, "--jobs", "1"], 200).out
    assert DRAWN & set(on_terminal(["inspect", tmp_path / "a.parquet"], 250).out)
