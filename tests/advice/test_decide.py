"""The advice on all columns: their order, the budget and its use, and the values that reports don't contain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.advice import MIB, at_rates, column, exact, existing, gain, report

from bloomcli.advice.decide import decide
from bloomcli.commands.sampling import Budget, read_budget
from bloomcli.errors import UsageError
from bloomcli.model.advice import ColumnAdvice, QueriedColumn, QueryLog

SIZES = ((0.1, 1 * MIB), (0.01, 2 * MIB), (0.001, 4 * MIB))
LOG = QueryLog(
    statements=100,
    about_table=90,
    unreadable=1,
    unreadable_examples=("SELEC ?",),
    columns=(QueriedColumn(column="hot", lookups=100, statements=80, literals=(("secret", 100),)),),
    unserved=(),
)


def sized(name: str, factor: int = 1, **given: object) -> ColumnAdvice:
    """A column whose filters have `factor` times the bytes of `SIZES`."""
    rates = at_rates([(fpp, factor * nbytes) for fpp, nbytes in SIZES])
    return column(name, rates=rates, filter_bytes=2 * factor * MIB, **given)


def sizes(columns: tuple[ColumnAdvice, ...]) -> dict[str, float | None]:
    return {c.column: c.fpp for c in columns if c.recommended}


def test_recommended_columns_come_first_those_that_save_most_before_the_others() -> None:
    little = column("little", present=gain(0.5, 0.02), absent=gain(0.5, 0.01))
    found = decide(report(column("alone", unfilterable="no"), little, column("much")))
    assert [c.column for c in found.columns] == ["much", "little", "alone"]
    assert found.budget_bytes is found.budget_used is found.budget_gap is None


def test_queries_weigh_what_columns_save() -> None:
    hot = column("hot", present=gain(0.5, 0.02), absent=gain(0.5, 0.01), lookups=100)
    found = decide(report(column("cold", lookups=1), hot, queries=LOG))
    assert [c.column for c in found.columns if c.recommended] == ["hot", "cold"]


def test_without_a_budget_every_filter_has_the_requested_rate() -> None:
    assert sizes(decide(report(sized("a"), sized("b"))).columns) == {"a": 0.01, "b": 0.01}


def test_a_budget_gives_a_hot_column_a_large_filter_and_the_others_small_ones() -> None:
    columns = (sized("hot", 4, lookups=1000), sized("b", 4, lookups=1), sized("c", 4, lookups=1))
    found = decide(report(*columns, queries=LOG), budget=Budget(amount=16 * MIB, relative=False))
    assert sizes(found.columns) == {"hot": 0.01, "b": 0.1, "c": 0.1}
    assert found.budget_bytes == found.budget_used == 16 * MIB
    assert found.budget_gap == 0
    b = next(c for c in found.columns if c.column == "b")
    assert b.filter_bytes.estimate == 4 * MIB
    assert b.filter_share == pytest.approx(4 / 1000)
    assert b.present.with_filter.row_groups.estimate == pytest.approx(0.11)
    assert b.saved_bytes.estimate == pytest.approx((0.99 - 0.1 + 1 - 0.1) / 2 * 1000 * MIB)


def test_no_filter_has_a_lower_rate_than_the_requested_one_however_large_the_budget() -> None:
    found = decide(report(sized("a")), budget=Budget(amount=1.0, relative=True))
    assert sizes(found.columns) == {"a": 0.01}
    lower = decide(replace(report(sized("a")), fpp=0.001), budget=Budget(amount=1.0, relative=True))
    assert sizes(lower.columns) == {"a": 0.001}


def test_of_rates_with_filters_of_one_size_the_lowest_is_chosen() -> None:
    same = column("a", rates=at_rates([(0.1, MIB), (0.05, MIB), (0.02, MIB), (0.01, 2 * MIB)]))
    flat = replace(same, rates=tuple(replace(r, saved_present=exact(5), saved_absent=exact(5)) for r in same.rates))
    assert sizes(decide(report(flat), budget=Budget(amount=MIB, relative=False)).columns) == {"a": 0.02}


def test_columns_that_the_budget_leaves_out_say_so_with_its_size() -> None:
    columns = (sized("a", lookups=1000), sized("b", lookups=1), sized("large", 100, lookups=1))
    found = decide(report(*columns, queries=LOG), budget=Budget(amount=0.0025, relative=True))
    assert sizes(found.columns) == {"a": 0.01}
    assert {c.column: (c.reason_id, c.reason) for c in found.columns if not c.recommended} == {
        "b": (
            "over-budget",
            "over the budget: its filters, 1.0 MiB at least, save less for each byte than the recommended ones",
        ),
        "large": ("over-budget", "over the budget: its smallest filters take 100.0 MiB, and the budget is 2.5 MiB"),
    }


def test_a_budget_changes_nothing_for_columns_that_are_left_alone() -> None:
    good = column("good", existing=existing(), present=gain(0.02, 0.02), absent=gain(0.01, 0.01))
    found = decide(report(good, column("no", unfilterable="no")), budget=Budget(amount=0.02, relative=True))
    assert [c.reason_id for c in found.columns] == ["has-filters", "unfilterable"]
    assert (found.budget_used, found.budget_gap) == (0, 0)


def test_the_values_of_queries_are_not_in_the_report() -> None:
    found = decide(report(column("hot", lookups=100), queries=LOG))
    assert found.queries.columns == (replace(LOG.columns[0], literals=()),)


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [("2%", 20), ("0.5 %", 5), ("100%", 1000), ("64", 64), ("1KiB", 1024), ("1.5k", 1536), ("2MB", 2 * MIB),
     ("1g", 1 << 30)],
)  # fmt: skip
def test_budgets_are_shares_or_bytes(text: str, nbytes: int) -> None:
    assert read_budget(text).of(1000) == nbytes


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "-1", "x", "5%%", "1XB", "1e3", "nan", "inf"])
def test_other_budgets_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a budget") as caught:
        read_budget(text)
    assert "2%" in (caught.value.hint or "")
