"""Compares predicted row groups, bytes, sizes and distinct values with exhaustive runs over generated lakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Final

import pytest
from support import known_lakes
from support.known_lakes import Truth

from bloomcli.advice.measure import measure
from bloomcli.commands.options import AdviseOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.model.advice import AdviseReport, ColumnAdvice, Interval

pytestmark = pytest.mark.slow

COLUMNS: Final = (
    "unique",
    "ascending",
    "clustered",
    "spiked",
    "few",
    "skewed",
    "shared",
    "text",
    "ratio",
    "gaps",
    "list",
)
QUICK: Final = ("unique", "ascending", "clustered", "few", "skewed", "text", "list")
FPP: Final = 0.01
CONFIDENCE: Final = 0.95
MANY: Final = 100
"""The fewest cases of a column for which the share itself is tested."""
UNLIKELY: Final = 1e-3
"""With few cases, shares vary: they are too low if correct intervals would miss this often with a lower
probability."""


def advised(folder: Path, seed: int, sample: str, columns: tuple[str, ...]) -> AdviseReport:
    policy = folder.parent / "powers.toml"
    policy.write_text('size = "power-of-two"\nreaders = ["duckdb"]\n')  # the truth has these sizes
    named = [f"{column}*" for column in columns]  # with what a list has
    options = AdviseOptions(columns=named, seed=seed, sample=sample, fpp=FPP, policy=policy)
    engine = choose_engine(jobs=1)
    report = measure(engine, [str(folder)], engine.find([str(folder)], options), options)
    assert not report.failed
    return report


def predictions(column: ColumnAdvice, found: Truth) -> Iterator[tuple[str, Interval | None, float]]:
    """Each figure with its true value."""
    (rate,) = (at for at in column.rates if at.fpp == FPP)
    yield "filter bytes", column.filter_bytes, found.filter_bytes
    yield "distinct", column.distinct, found.distinct
    yield "distinct in a unit", column.distinct_per_row_group, found.distinct_per_unit
    for kind, gain, today, later, saved, in_truth in (
        ("present", column.present, found.present_today, found.present_with, rate.saved_present, found.saved_present),
        ("absent", column.absent, found.absent_today, found.absent_with, rate.saved_absent, found.saved_absent),
    ):
        if gain is not None:
            yield f"{kind}, row groups today", gain.today.row_groups, today.row_groups
            yield f"{kind}, bytes today", gain.today.bytes, today.bytes
            yield f"{kind}, row groups with filters", gain.with_filter.row_groups, later.row_groups
            yield f"{kind}, bytes with filters", gain.with_filter.bytes, later.bytes
            yield f"{kind}, saved bytes", saved, in_truth


def holds(interval: Interval | None, value: float) -> bool:
    assert interval.low <= interval.estimate <= interval.high
    slack = 1e-9 * max(abs(value), 1e-6)
    return interval.low - slack <= value <= interval.high + slack


def chance_of(misses: int, cases: int) -> float:
    """The probability of at least this number of misses, if each interval is correct in 95 % of the cases."""
    miss = 1 - CONFIDENCE
    return sum(comb(cases, k) * miss**k * CONFIDENCE ** (cases - k) for k in range(misses, cases + 1))


def covered(tmp_path: Path, kind: str, lakes: range, seeds: int, columns: tuple[str, ...], sample: str) -> None:
    """Each figure lies within its interval in 95 % of the cases, over all columns. With few cases, the share must not
    contradict this."""
    hits: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    misses = []
    for lake in lakes:
        folder = tmp_path / f"{kind}-{lake}"
        paths = known_lakes.write(folder, lake, kind)
        truths = {}
        for name in columns:
            copies = tmp_path / f"copies-{lake}-{name}"
            copies.mkdir()
            truths[name] = known_lakes.truth(paths, name, FPP, copies, lake)
        for seed in range(seeds):
            by_name = {
                c.column.split(".")[0]: c for c in advised(folder, 1000 * lake + seed, sample, columns).columns
            }
            for name in columns:
                for what, interval, value in predictions(by_name[name], truths[name]):
                    good = holds(interval, value)
                    hits[what] += good
                    cases[what] += 1
                    if not good:
                        misses.append(f"lake {lake}, seed {seed}, {name}, {what}: {value} not in {interval}")
    shares = {what: hits[what] / count for what, count in cases.items()}
    print(shares)
    if seeds * len(lakes) >= MANY:
        assert all(share >= CONFIDENCE for share in shares.values()), "\n".join([str(shares), *misses])
        return
    unlikely = [what for what, count in cases.items() if chance_of(count - hits[what], count) < UNLIKELY]
    assert not unlikely, "\n".join([str(unlikely), str(shares), *misses])


def test_predictions_lie_within_their_intervals_in_95_percent_of_seeded_cases(tmp_path: Path) -> None:
    covered(tmp_path, "parquet", range(3, 4), 4, QUICK, "10")


def test_predictions_of_orc_files_lie_within_their_intervals(tmp_path: Path) -> None:
    covered(tmp_path, "orc", range(3, 4), 2, ("unique", "ascending", "skewed", "text"), "4")


def test_all_predictions_of_200_seeded_cases_lie_within_their_intervals_in_95_percent(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("--full"):
        pytest.skip("needs --full: it takes half an hour")
    covered(tmp_path, "parquet", range(1, 9), 25, COLUMNS, "10")


def test_a_sample_of_all_row_groups_is_exact_where_all_values_are_taken(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    paths = known_lakes.write(folder, 5)
    (tmp_path / "copies").mkdir()
    found = known_lakes.truth(paths, "few", FPP, tmp_path / "copies")
    (column,) = advised(folder, 1, "100%", ("few",)).columns
    assert column.present.today.bytes == Interval(
        estimate=pytest.approx(found.present_today.bytes),
        low=pytest.approx(found.present_today.bytes),
        high=pytest.approx(found.present_today.bytes),
    )
    assert column.present.with_filter.bytes.low == pytest.approx(found.present_with.bytes)
    assert column.present.with_filter.bytes.high == pytest.approx(found.present_with.bytes)
    assert column.filter_bytes.low == column.filter_bytes.high == found.filter_bytes
    assert column.distinct.low == column.distinct.high == found.distinct


def test_the_same_seed_gives_the_same_figures_and_another_one_another_sample(tmp_path: Path) -> None:
    known_lakes.write(tmp_path / "lake", 4)

    def figures(seed: int) -> list[Interval | None]:
        return [c.saved_bytes for c in advised(tmp_path / "lake", seed, "5", ("unique", "text")).columns]

    first = figures(1)
    assert first == figures(1)
    assert first != figures(2)
