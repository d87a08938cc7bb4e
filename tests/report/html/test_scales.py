"""Scales, bins and slots: nothing is left out or counted twice."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bloomcli.report.html import charts
from bloomcli.report.html.drawing import Drawing, Panel


@given(st.integers(1, 100_000), st.integers(1, 60))
def test_bins_have_every_place_once_and_are_nearly_equal(places: int, most: int) -> None:
    found = charts.bins(places, most)
    assert len(found) == min(places, most)
    assert list(itertools.chain.from_iterable(found)) == list(range(places))
    assert max(map(len, found)) - min(map(len, found)) <= 1


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=40, unique=True), st.integers(1, 400))
def test_slots_of_a_file_have_the_bytes_of_its_parts(ends: list[int], slots: int) -> None:
    ordered = sorted(ends)
    whole = ordered[-1] or 1
    parts = list(zip(ordered[::2], ordered[1::2], strict=False))
    found = charts.shares(parts, whole, slots)
    step = whole / slots
    assert abs(sum(share for _, _, share in found) * step - sum(end - start for start, end in parts)) < 1e-6 * whole
    assert all(0 < share <= 1 for _, _, share in found)
    assert all(0 <= start < end <= whole + step for start, end, _ in found)


def test_parts_that_overlap_are_not_more_than_all_of_a_slot() -> None:
    assert charts.shares([(0, 100)] * 7, 100, 4) == [(25.0 * n, 25.0 * (n + 1), 1.0) for n in range(4)]


@given(st.floats(1, 1e15), st.floats(1, 1e6))
def test_levels_go_from_1_to_5_with_the_size(low: float, factor: float) -> None:
    high = low * factor
    found = [charts.level(low + (high - low) * i / 20, low, high) for i in range(21)]
    assert found == sorted(found)
    assert set(found) <= set(range(1, 6))
    if factor > 1.01:
        assert (found[0], found[-1]) == (1, 5)


@given(st.floats(1e-9, 0.9), st.floats(1.1, 1e9))
def test_scales_reach_over_their_figures(least: float, factor: float) -> None:
    greatest = least * factor
    for ticks in (charts.rates(least, greatest), charts.log_sizes(least * 1e9, greatest * 1e9)):
        places = [at for at, _ in ticks]
        assert places == sorted(places)
        assert 2 <= len(places) <= 12
    assert charts.rates(least, greatest)[0][0] <= least * 1.000001
    assert charts.rates(least, greatest)[-1][0] >= greatest * 0.999999
    assert charts.sizes(greatest)[-1][0] >= greatest * 0.999999
    assert charts.numbers(greatest)[-1][0] >= greatest * 0.999999
    signed = [at for at, _ in charts.signed_sizes(-greatest, least)]
    assert signed == sorted(signed)
    assert signed[0] <= -greatest * 0.999999
    assert 0 in signed


@pytest.mark.parametrize(
    ("at", "logarithmic", "pixels"),
    [(0, False, 50), (25, False, 100), (100, False, 250), (1, True, 50), (10, True, 150), (100, True, 250)],
)
def test_marks_have_their_places_on_scales(at: float, logarithmic: bool, pixels: float) -> None:
    drawing = Drawing(100)
    ends = (1, 100) if logarithmic else (0, 100)
    Panel(drawing, (50, 0, 200, 100), ends, (0, 1), log_x=logarithmic).dot((at, 0.5), "ink")
    assert f'cx="{pixels}"' in drawing.svg
    assert 'cy="50"' in drawing.svg


def test_a_mark_beyond_a_scale_is_drawn_at_its_end() -> None:
    drawing = Drawing(100)
    Panel(drawing, (50, 0, 200, 100), (1, 100), (0, 1), log_x=True).lines([((0, 0), (1000, 7))], "ink", 1)
    assert "M50 0L250 100" in drawing.svg


def test_a_name_that_is_cut_has_the_whole_one_as_its_title() -> None:
    drawing = Drawing(100)
    Panel(drawing, (50, 0, 200, 100), (0, 1), (0, 1)).scale_y([(0, "<b>" + "x" * 60)])
    (text,) = ET.fromstring(drawing.svg).iter("text")
    (title,) = text
    assert (text.text, title.text) == (f"<b>{'x' * 26}…", f"<b>{'x' * 60}")
