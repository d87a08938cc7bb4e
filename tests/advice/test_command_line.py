"""The command lines of the advice, word for word; `tests/cli/test_advise.py` runs them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from support.advice import column, existing

from bloomcli.advice.command_line import Source, add_lines, of_paths, of_table, upkeep_lines
from bloomcli.model.advice import ColumnAdvice


def chosen(name: str, fpp: float = 0.01, **given: Any) -> ColumnAdvice:
    return replace(column(name, **given), recommended=True, fpp=fpp)


def test_columns_of_one_rate_share_a_command_and_the_lowest_rate_comes_first() -> None:
    columns = [chosen("id"), chosen("city", 0.1), chosen("user.email"), column("left_alone", fpp=0.01)]
    assert add_lines(columns, of_paths(["lake/orders/"])) == [
        "bloom add lake/orders/ --columns id,user.email --fpp 0.01 --in-place",
        "bloom add lake/orders/ --columns city --fpp 0.1 --in-place",
    ]


def test_nothing_recommended_is_no_command() -> None:
    assert add_lines([column()], of_paths(["lake"])) == []


@pytest.mark.parametrize(
    ("name", "word"), [("a b", "'a b'"), ("a,b", "'a\\,b'"), ("it's", "'it'\"'\"'s'"), ("$HOME", "'$HOME'")]
)
def test_names_are_quoted_for_the_shell_and_for_the_option(name: str, word: str) -> None:
    assert add_lines([chosen(name)], of_paths(["lake"])) == [f"bloom add lake --columns {word} --fpp 0.01 --in-place"]


@pytest.mark.parametrize("name", ["two\nlines", "a 'b' \\ \x1b[31m", "日本\t$x `y`"])
def test_names_with_control_characters_are_quoted_in_one_line_of_plain_text(name: str) -> None:
    (line,) = add_lines([chosen(name)], of_paths(["lake"]))
    assert line.isprintable()
    pasted = subprocess.run(
        ["bash", "-c", line.replace("bloom add", "printf '%s\\0'", 1)], check=True, stdout=subprocess.PIPE
    ).stdout.decode()
    assert pasted.split("\0")[2] == name


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (of_paths(["a b/*.parquet", "-x"]), "bloom add 'a b/*.parquet' ./-x --columns id --fpp 0.01 --in-place"),
        (of_paths([], files_from="l.txt"), "bloom add --files-from l.txt --columns id --fpp 0.01 --in-place"),
        (of_paths(["https://h/a.parquet"]), "bloom add https://h/a.parquet --columns id --fpp 0.01 -o with-filters/"),
        (of_paths(["https://h/a?sig=1"]), "bloom add 'https://h/a?...' --columns id --fpp 0.01 -o with-filters/"),
        (of_table("ice.db.orders"), "bloom add --table ice.db.orders --columns id --fpp 0.01"),
        (
            of_table("delta.`/d`", where="day > '2'", readers=["--readers", "spark"]),
            "bloom add --table 'delta.`/d`' --where 'day > '\"'\"'2'\"'\"'' --columns id --fpp 0.01 --readers spark",
        ),
        (
            of_paths(["s3://lake/o"], engine=["--engine", "spark"], readers=["--readers", "spark,trino"]),
            "bloom add s3://lake/o --columns id --fpp 0.01 --readers spark,trino --engine spark --in-place",
        ),
    ],
)
def test_files_are_named_as_the_user_named_them(source: Source, line: str) -> None:
    assert add_lines([chosen("id")], source) == [line]


REPLACED: dict[str, tuple[dict[str, Any], bool, bool]] = {
    "saturated": ({"max_fpp": 0.9, "judgement": "saturated"}, False, True),
    "missing, the others good": ({"max_fpp": 0.005, "judgement": "missing"}, False, False),
    "missing, the others of a higher rate": ({"max_fpp": 0.05, "judgement": "missing"}, False, True),
    "missing in one file": ({"max_fpp": 0.005, "judgement": "missing"}, True, True),
}


@pytest.mark.parametrize("name", REPLACED)
def test_filters_are_replaced_where_add_would_refuse_them(name: str) -> None:
    filters, single, replaces = REPLACED[name]
    columns = [chosen("id", existing=existing(**filters)), chosen("other")]
    lines = add_lines(columns, of_paths(["lake"], single=single))
    assert [("--replace" in line, "id" in line.split()) for line in lines] == (
        [(False, False), (True, True)] if replaces else [(False, False)]
    )


def test_filters_that_are_too_large_or_save_nothing_have_commands_of_their_own() -> None:
    columns = [
        column("wide", existing=existing(judgement="foldable")),
        column("sorted", existing=existing(judgement="not-worth")),
        column("a,b", existing=existing(judgement="not-worth")),
        column("good", existing=existing()),
        column("none"),
    ]
    source = of_paths(["lake"], engine=["--engine", "spark"], readers=["--readers", "spark"])
    assert upkeep_lines(columns, source, 0.02) == [
        "bloom fold lake --columns wide --fpp 0.02 --engine spark --in-place",
        "bloom remove lake --columns 'sorted,a\\,b' --engine spark --in-place",
    ]
    assert upkeep_lines(columns[-2:], source, 0.02) == []
