"""The checks of a run, by rule, column, file and request."""

from __future__ import annotations

from typing import Any

import pytest

from bloomcli.policy.policy import ColumnPart, Limits, Part, Policy
from bloomcli.policy.table_schema import parse
from bloomcli.rules import RULES
from bloomcli.validation.baseline import Coverage

TABLE = parse("id BIGINT", "table.sql")


def covers(
    id_: str,
    column: str | None = "id",
    *,
    format_: str = "parquet",
    values: bool = False,
    columns: tuple[str, ...] = (),
    require: tuple[str, ...] = (),
    path: str | None = "bloom.toml",
    of_table: bool = False,
    **part: Any,
) -> bool:
    """Whether a run with such a policy checked the rule."""
    policy = Policy(path=path, whole=Part(**part))
    return Coverage(policy=policy, columns=columns, require=require, values=values, table=of_table).covers(
        "f", format_, id_, column
    )


def test_structure_is_always_checked_and_values_where_they_were_looked_up() -> None:
    assert covers("filter-length")
    assert not covers("value-missing")
    assert covers("value-missing", values=True)


def test_a_table_s_metadata_are_checked_with_the_table_and_completely_with_the_values() -> None:
    assert covers("table-bounds", values=True, of_table=True)
    assert not covers("table-bounds", values=True)
    assert not covers("table-bounds", of_table=True)


def test_columns_that_the_check_was_limited_to_are_those_that_were_checked() -> None:
    assert covers("filter-length", "user.id", columns=("user.*",))
    assert not covers("filter-length", "id", columns=("user.*",))
    assert not covers("filter-length", None, columns=("id",))
    assert covers("filter-length", None)


@pytest.mark.parametrize(("names", "expected"), [((), False), (("id",), True), (("i*",), True), (("name",), False)])
def test_a_wanted_filter_is_looked_for_in_wanted_columns_only(names: tuple[str, ...], expected: bool) -> None:
    assert covers("filter-required", require=names) is expected
    assert covers("filter-required", columns=("other",), require=names) is expected, (
        "they are looked for all the same"
    )
    part = ColumnPart(names=names, limits=Limits(require=True))
    run = Coverage(policy=Policy(whole=Part(columns=(part,))), values=False)
    assert run.covers("f", "parquet", "filter-required", "id") is expected


def test_a_limit_is_checked_where_there_is_one() -> None:
    assert not covers("filter-fpp")
    assert covers("filter-fpp", max_fpp=0.01)
    assert not covers("filter-oversized", max_fpp=0.01)
    assert covers("filter-oversized", max_oversize=2)


def test_profit_is_checked_with_a_policy() -> None:
    assert covers("profit-sorted")
    assert not covers("profit-sorted", path=None)
    assert covers("profit-dictionary", readers=("spark", "trino"))
    assert not covers("profit-dictionary", readers=("spark", "duckdb"))
    assert not covers("profit-dictionary", readers=("spark",), path=None)
    assert not covers("profit-dictionary")


def test_a_readers_rule_is_checked_where_a_named_reader_could_break_it_in_such_a_file() -> None:
    assert not covers("reader-negative-zero")
    assert covers("reader-negative-zero", readers=("duckdb", "spark"))
    assert not covers("reader-negative-zero", readers=("duckdb",))
    assert not covers("reader-negative-zero", readers=("parquet-java",), format_="orc")
    assert not covers("reader-widened", readers=("trino",))
    assert covers("reader-widened", readers=("trino",), table=TABLE)


def test_the_normal_form_of_intervals_is_looked_for_with_values_where_no_reader_is_named() -> None:
    assert covers("reader-interval", values=True)
    assert not covers("reader-interval")
    assert not covers("reader-interval", values=True, readers=("spark",))
    assert covers("reader-interval", readers=("duckdb",))


def test_every_rule_is_checked_by_a_run_that_asks_for_everything() -> None:
    everyone = ("impala", "iceberg", "duckdb", "trino", "doris", "spark")
    for id_ in set(RULES) - {"profit-dictionary"}:
        assert covers(
            id_,
            values=True,
            require=("id",),
            max_fpp=0.1,
            max_oversize=2,
            readers=everyone,
            table=TABLE,
            of_table=True,
        ), id_
