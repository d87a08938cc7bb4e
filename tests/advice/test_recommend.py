"""The recommendation for a column, from its figures alone, and the text of the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.advice import MIB, column, exact, existing, gain, report

from bloomcli.advice.recommend import recommend
from bloomcli.model.advice import AdviseReport, ColumnAdvice, Interval, PageIndexGain, QueryLog

PLAIN = report()
ALL_DICTIONARIES = {"dictionary_row_groups": 100}


def asked(statements: int) -> AdviseReport:
    """The figures with a log of queries, which has this number of statements about the table."""
    log = QueryLog(
        statements=statements,
        about_table=statements,
        unreadable=0,
        unreadable_examples=(),
        columns=(),
        unserved=(),
    )
    return report(queries=log)


def verdict(found: ColumnAdvice) -> tuple[bool, str]:
    return found.recommended, found.reason_id


def test_a_column_whose_lookups_read_clearly_less_gets_a_filter_of_the_requested_rate() -> None:
    found = recommend(column(), PLAIN)
    assert verdict(found) == (True, "saves")
    assert found.fpp == 0.01
    assert found.reason == (
        "of 100 row groups, a lookup reads 2 instead of 100 for a value that the column has and 1 instead of 100 for"
        " one that it doesn't have"
    )


LEFT_ALONE: dict[str, tuple[dict[str, Any], str, str]] = {
    "its type": ({"unfilterable": "BOOLEAN has no hash"}, "unfilterable", "BOOLEAN has no hash"),
    "a reader": (
        {"unfilterable": "every `=` loses its rows [reader-millis]", "loses_rows": True},
        "loses-rows",
        "every `=` loses its rows [reader-millis]",
    ),
    "sorted": (
        {"overlap": exact(0.012), "present": gain(0.012, 0.01), "absent": gain(0.01, 0)},
        "sorted",
        "sorted: min/max leaves 1.2 of 100 row groups for a value, without a filter",
    ),
    "a value in each row group": (
        {"overlap": exact(0.2), "present": gain(0.2, 0.2), "absent": gain(0.2, 0.19), "distinct": exact(5),
         "distinct_per_row_group": exact(1)},
        "sorted",
        "min/max leaves 20 of 100 row groups for a value; with a filter 19.5 are read",
    ),
    "one value in each row group, which min/max names": (
        {"one_value_per_row_group": True},
        "few-values",
        "min/max names the only value of each of the 100 row groups",
    ),
    "few values": (
        {"distinct": exact(5), "distinct_per_row_group": exact(4.9), "present": gain(1, 0.98)},
        "few-values",
        "in most row groups: on average a row group has 4.9 of the 5 distinct values",
    ),
    "few values in one row group": (
        {"row_groups": 1, "distinct": exact(5), "distinct_per_row_group": exact(5), "overlap": exact(1)},
        "few-values",
        "few values: 5 distinct values in 1,000,000 rows",
    ),
    "filters as large as what they save": (
        {"present": gain(0.05, 0.01), "absent": gain(0.05, 0.01), "filter_bytes": 50 * MIB},
        "costs-more",
        "a lookup reads 50.0 MiB of filters to read 40.0 MiB less of the rows",
    ),
    "little to save": (
        {"present": gain(1, 0.96), "absent": gain(1, 0.95)},
        "costs-more",
        "a lookup reads 956.0 MiB with a filter, and 1000.0 MiB without one",
    ),
    "filters nearly as large as what they save": (
        {"present": gain(0.05, 0.01), "absent": gain(0.05, 0.01), "filter_bytes": 38 * MIB},
        "costs-more",
        "a lookup reads 48.0 MiB with a filter, and 50.0 MiB without one",
    ),
    "lookups that read nothing today": (
        {"present": gain(0, 0), "absent": gain(0, 0)},
        "sorted",
        "nothing to save: min/max excludes every row group for the values looked up",
    ),
    "an interval with 0 in it": (
        {"spread": 1.2},
        "unknown",
        "uncertain: a lookup reads 984.0 MiB less on average, but the 95 % interval contains 0 (a larger --sample"
        " narrows it)",
    ),
    "only nulls": (
        {"present": None, "absent": None, "saved_bytes": None, "rows": 1000, "nulls": 1000},
        "unknown",
        "it has no values, only nulls",
    ),
    "no rows": (
        {"present": None, "absent": None, "saved_bytes": None, "rows": 0, "nulls": 0},
        "unknown",
        "it has no rows",
    ),
    "no values in the sample": (
        {"present": None, "absent": None, "saved_bytes": None},
        "unknown",
        "no value of it was looked up: the sample has no row group with values",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_a_column_is_left_alone_for_one_reason_with_its_numbers(name: str) -> None:
    figures, reason_id, reason = LEFT_ALONE[name]
    found = recommend(column(**figures), PLAIN)
    assert verdict(found) == (False, reason_id)
    assert found.reason == reason


def test_two_row_groups_that_overlap_are_not_sorted() -> None:
    """Both row groups remain after min/max, as many as in a sorted column."""
    assert verdict(recommend(column(row_groups=2), PLAIN)) == (True, "saves")


def test_one_row_group_of_unique_values_gets_a_filter_because_absent_values_are_not_read() -> None:
    one = column(row_groups=1, present=gain(1, 1, groups=1), absent=gain(1, 0.01, groups=1), filter_bytes=MIB)
    assert verdict(recommend(one, PLAIN)) == (True, "saves")


@pytest.mark.parametrize(
    ("readers", "found"),
    [
        ((), (True, "saves")),
        (("spark",), (False, "dictionary")),
        (("spark", "trino"), (False, "dictionary")),
        (("spark", "duckdb"), (True, "saves")),
        (("spark", "polars"), (False, "no-reader")),
    ],
)
def test_dictionaries_answer_where_readers_are_named_and_all_of_them_look_there(
    readers: tuple[str, ...], found: tuple[bool, str]
) -> None:
    figures = report(readers=tuple(readers), formats=("parquet",))
    assert verdict(recommend(column(**ALL_DICTIONARIES), figures)) == found
    one_without = column(dictionary_row_groups=99)
    assert recommend(one_without, figures).recommended


@pytest.mark.parametrize(
    ("properties", "readers", "why"),
    [
        ((), ["polars"], "Polars never looks at filters"),
        (("ALP",), ["spark", "duckdb"], "Spark isn't known to read ALP; DuckDB isn't known to read ALP"),
        (("VARIANT",), ["spark"], "Spark isn't known to filter by fields of a VARIANT"),
        (("encrypted",), ["trino"], "Trino isn't known to use encrypted filters"),
        (("encrypted",), ["trino", "spark"], None),
        (("VARIANT",), ["clickhouse"], None),
    ],
)
def test_a_column_of_which_no_named_reader_uses_filters_gets_none(
    properties: tuple[str, ...], readers: list[str], why: str | None
) -> None:
    found = recommend(column(properties=properties), report(readers=tuple(readers), formats=("parquet",)))
    if why is None:
        assert found.recommended
    else:
        assert (*verdict(found), found.reason) == (False, "no-reader", f"no named reader gains: {why}")


def test_sentences_about_one_filter_are_about_one() -> None:
    for judgement, sentence in (
        ("foldable", "its 1 filter of 64 B is larger than the rate needs: `bloom fold` saves 32 B"),
        ("saturated", "its 1 filter of 64 B is saturated (rate up to 60.0 %); with a new one, "),
        ("worth", "it has 1 filter of 64 B, with a rate of at most 1.00 %"),
    ):
        rate = 0.6 if judgement == "saturated" else 0.01
        foldable = 32 if judgement == "foldable" else 0
        there = existing(filters=1, bitset_bytes=64, max_fpp=rate, foldable_bytes=foldable)
        assert recommend(column(existing=there), PLAIN).reason.startswith(sentence)


def test_a_column_that_no_query_looks_up_is_left_alone_whatever_it_would_save() -> None:
    found = recommend(column(lookups=0), asked(1234))
    assert verdict(found) == (False, "not-queried")
    assert found.reason == "none of the 1,234 statements about the table looks values of it up"


def test_the_values_of_queries_decide_where_there_are_some() -> None:
    """A column with few values is worth a filter if the queries look absent ones up, and the other way round."""
    queries = asked(10)
    few = {"distinct": exact(5), "distinct_per_row_group": exact(5), "present": gain(1, 1)}
    found = recommend(column(lookups=10, queried=gain(1, 0.01), **few), queries)
    assert verdict(found) == (True, "saves")
    assert found.reason == "of 100 row groups, a lookup reads 1 instead of 100 for a value of the queries"
    assert verdict(recommend(column(lookups=10, queried=gain(1, 0.99)), queries)) == (False, "costs-more")


def test_lookups_by_parameters_have_no_values_so_that_those_of_the_column_decide() -> None:
    queries = asked(10)
    assert verdict(recommend(column(lookups=10, queried=None), queries)) == (True, "saves")
    few = column(lookups=10, queried=None, distinct=exact(5), distinct_per_row_group=exact(5))
    assert verdict(recommend(few, queries)) == (False, "few-values")


@pytest.mark.parametrize(("share", "recommended"), [(0.89, True), (0.91, False)])
def test_a_filter_has_to_save_a_tenth_of_what_a_lookup_reads(share: float, recommended: bool) -> None:
    found = recommend(column(present=gain(1, share), absent=gain(1, share), filter_bytes=0), PLAIN)
    assert found.recommended is recommended


def test_the_lower_end_of_the_interval_has_to_be_above_none() -> None:
    tiny = Interval(estimate=500 * MIB, low=1, high=900 * MIB)
    assert recommend(column(saved_bytes=tiny), PLAIN).recommended
    nothing = Interval(estimate=500 * MIB, low=0, high=900 * MIB)
    assert verdict(recommend(column(saved_bytes=nothing), PLAIN)) == (False, "unknown")


NOTHING_TO_GAIN = {"present": gain(0.02, 0.02), "absent": gain(0.01, 0.01)}

EXISTING: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, bool, str], str]] = {
    "good ones": (
        NOTHING_TO_GAIN, {}, ("worth", False, "has-filters"),
        "it has 100 filters of 1.0 MiB, with rates of at most 0.80 %",
    ),
    "of a sorted column": (
        {"overlap": exact(0.01), **NOTHING_TO_GAIN}, {}, ("not-worth", False, "sorted"),
        "sorted: min/max leaves 1 of 100 row groups for a value, without a filter; its 100 filters of 1.0 MiB can go",
    ),
    "that a reader loses rows by": (
        {"unfilterable": "rows are lost", "loses_rows": True}, {}, ("not-worth", False, "loses-rows"),
        "rows are lost; its 100 filters of 1.0 MiB can go",
    ),
    "saturated ones": (
        {}, {"max_fpp": 0.93}, ("saturated", True, "saves"),
        "its 100 filters of 1.0 MiB are saturated (rates up to 93.0 %); with new ones, of 100 row groups, a lookup"
        " reads 2 instead of 100 for a value that the column has and 1 instead of 100 for one that it doesn't have",
    ),
    "missing in some row groups": (
        {}, {"filters": 60, "row_groups_without_filter": 40}, ("missing", True, "saves"),
        "it has 40 row groups without a filter: with filters, of 100 row groups, a lookup reads 2 instead of 100 for"
        " a value that the column has and 1 instead of 100 for one that it doesn't have",
    ),
    "larger than they need be": (
        NOTHING_TO_GAIN, {"foldable_bytes": 3 * MIB, "bitset_bytes": 4 * MIB}, ("foldable", False, "has-filters"),
        "its 100 filters of 4.0 MiB are larger than the rate needs: `bloom fold` saves 3.0 MiB",
    ),
    "hardly larger than they need be": (
        NOTHING_TO_GAIN, {"foldable_bytes": MIB, "bitset_bytes": 40 * MIB}, ("worth", False, "has-filters"),
        "it has 100 filters of 40.0 MiB, with rates of at most 0.80 %",
    ),
    "unreadable": (
        {}, {"judgement": "unreadable", "max_fpp": None}, ("unreadable", False, "has-filters"),
        "it has filters that can't be read: `bloom validate` says why",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXISTING)
def test_filters_that_are_there_are_judged(name: str) -> None:
    figures, filters, (judgement, recommended, reason_id), reason = EXISTING[name]
    found = recommend(column(existing=existing(**filters), **figures), PLAIN)
    assert found.existing is not None
    assert (found.existing.judgement, found.recommended, found.reason_id) == (judgement, recommended, reason_id)
    assert found.reason == reason


def test_row_numbers_of_pandas_get_filters_and_page_indexes_only_if_the_user_or_a_query_names_them() -> None:
    numbers = column("__index_level_0__", page_index=PageIndexGain(bytes=MIB, with_index=MIB / 9))
    found = recommend(numbers, PLAIN)
    assert verdict(found) == (False, "seldom-looked-up")
    assert "row numbers of pandas are seldom looked up" in found.reason
    assert found.page_index is None
    for found in (
        recommend(numbers, PLAIN, named=True),
        recommend(replace(numbers, lookups=3, queried=numbers.present), asked(3)),
    ):
        assert verdict(found) == (True, "saves")
        assert found.page_index == numbers.page_index
    assert verdict(recommend(column("my__index_level_0__"), PLAIN)) == (True, "saves")


def test_filters_that_no_query_uses_are_kept_because_a_log_is_seldom_all_queries() -> None:
    queries = asked(4)
    found = recommend(column(existing=existing(), lookups=0), queries)
    assert found.existing is not None
    assert (found.existing.judgement, *verdict(found)) == ("worth", False, "has-filters")


def test_a_few_missing_filters_are_added_even_if_the_sample_has_few_row_groups_without_one() -> None:
    few = existing(filters=98, row_groups_without_filter=2)
    found = recommend(column(existing=few, present=gain(0.03, 0.01), absent=gain(0.02, 0), spread=1.5), PLAIN)
    assert verdict(found) == (True, "saves")
    assert found.reason.startswith("it has 2 row groups without a filter: with filters, ")


def test_a_sample_of_everything_has_no_larger_one() -> None:
    found = recommend(column(spread=1.2, sampled_row_groups=100), PLAIN)
    assert found.reason.endswith("but the 95 % interval contains 0")


def test_a_column_without_filters_has_none_that_are_judged() -> None:
    found = recommend(column(existing=existing(filters=0, bitset_bytes=0, max_fpp=None)), PLAIN)
    assert verdict(found) == (True, "saves")
