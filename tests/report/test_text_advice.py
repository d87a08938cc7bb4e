"""The advice as text, CSV and JSON: short, complete, and fitted to terminals. Columns have figures made by hand."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from support.advice import MIB, column, exact, existing, gain, report

from bloomcli.advice.decide import decide
from bloomcli.model.advice import AdviseReport, Interval, PageIndexGain, QueryLog, UnservedPredicate
from bloomcli.report import csv as csv_report
from bloomcli.report import json as json_report
from bloomcli.report import render, text_advice
from bloomcli.report.fitting import fit

LOG = QueryLog(
    statements=10_000,
    about_table=9_120,
    unreadable=3,
    unreadable_examples=(),
    columns=(),
    unserved=tuple(
        UnservedPredicate(kind="range", column=f"c{n}", count=10 - n, example=f"c{n} > ?") for n in range(10)
    ),
)


def advised(**given: Any) -> AdviseReport:
    """Two columns to add, two to leave."""
    found = decide(
        report(
            column("id", spread=0.03, lookups=8000, seconds_to_add=exact(14), filter_share=0.01),
            column("user.email", type="STRING", spread=0.1, filter_bytes=12 * MIB, lookups=70),
            column("day", type="DATE", overlap=exact(0.011), lookups=300),
            column("price", type="DECIMAL", unfilterable="rows are lost [reader-millis]", loses_rows=True),
            **given,
        )
    )
    return replace(
        found, command="bloom add lake --columns id --fpp 0.01\nbloom add lake --columns user.email --fpp 0.1"
    )


def lines(found: AdviseReport, width: int | None = None) -> list[str]:
    return ["".join(text for text, _ in pieces).rstrip() for pieces in fit(text_advice.advice(found), width)]


def test_the_answer_is_what_lookups_read_then_the_commands_then_the_columns() -> None:
    shown = lines(advised())
    assert shown[0] == "a lookup of 2 columns reads 1000.0 MiB today, and 16.1 MiB with filters (-98 %), on average"
    assert shown[1].startswith("the filters take 13.0 MiB")
    assert shown[2].startswith("which columns your queries look up isn't known: --queries LOG")
    titles = [one for one in shown if one.endswith(":")]
    assert titles == ["to add them:", "leave 2 columns as they are:"]
    add = shown.index("to add them:")
    assert shown[add + 1 : add + 4] == [
        "  bloom add lake --columns id --fpp 0.01",
        "  bloom add lake --columns user.email --fpp 0.1",
        "",
    ]
    assert shown[add + 4].split()[:3] == ["column", "type", "reads"]
    assert shown[add + 5].split()[:7] == ["id", "INT64", "1000.0", "MiB", "16.0", "MiB", "-98"]
    assert "954.5 to 1013.5 MiB" in shown[add + 5]
    assert shown[add + 7].startswith("all of them ")


def test_a_measure_is_not_in_the_command_and_its_figures_are_shown() -> None:
    found = decide(report(column("id"), column("price", type="DOUBLE")))
    assert [c.column for c in found.columns if c.recommended] == ["id"]
    shown = lines(found)
    at = shown.index(
        "1 column would gain, too, if your queries look it up by `=`, which is rare for a column like this:"
    )
    assert shown[at + 2].startswith("price ")
    assert "a lookup of id reads" in shown[0]
    named = decide(report(column("price", type="DOUBLE")), named=["price"])
    assert named.columns[0].recommended


def test_weights_are_shown_and_change_what_a_lookup_reads() -> None:
    few = {"present": gain(1, 0.5), "absent": gain(1, 0), "filter_bytes": 0, "saved_bytes": exact(0)}
    half, all_there = (decide(report(column(**few), present_share=share)).columns[0] for share in (0.5, 1.0))
    assert (half.today_bytes, all_there.today_bytes) == (1000 * MIB, 1000 * MIB)
    assert "90 % of the values looked up are there (--present sets it)" in "\n".join(
        lines(advised(present_share=0.9))
    )


def test_each_reader_has_a_verdict() -> None:
    encoded = column("id", dictionary_row_groups=100)
    found = decide(report(encoded, readers=("spark", "duckdb", "polars"), formats=("parquet",)))
    assert [(use.title, use.verdict) for use in found.uses] == [
        ("Spark", "dictionaries"),
        ("DuckDB", "gains"),
        ("Polars", "never-looks"),
    ]
    shown = lines(found)
    assert "Spark   looks values up in dictionaries, which all 100 row groups have: filters change nothing" in shown
    assert "DuckDB  skips row groups by filters" in shown
    assert "Polars  never looks at filters" in shown
    alone = decide(report(encoded, readers=("spark",), formats=("parquet",)))
    assert alone.total is None
    assert [use.verdict for use in alone.uses] == ["dictionaries"]


def test_it_says_what_was_sampled_and_who_reads() -> None:
    shown = "\n".join(lines(advised(sampled_row_groups=60, sampled_files=9, seed=7, readers=("spark", "trino"))))
    assert "from 60 of 100 row groups, in 9 of 10 files (seed 7)" in shown
    assert "Spark, Trino" in shown
    everything = "\n".join(lines(advised()))
    assert "looked up in all 100 row groups" in everything
    assert "any that read files as they are" in everything


def test_predicates_that_can_use_no_filter_are_listed_and_the_rest_counted() -> None:
    shown = lines(advised(queries=LOG))
    assert "55 predicates of the queries can't use a filter:" in shown
    assert "  ... and 2 kinds more: --format json" in shown
    assert any(one.split()[:3] == ["range", "c0", "10"] for one in shown)
    assert "queries   10,000 statements, 9,120 are about these files, 3 can't be read" in shown


def test_nothing_recommended_is_said_and_has_no_command() -> None:
    shown = lines(decide(report(column(unfilterable="it is a BOOLEAN"))))
    assert "no new filter is recommended" in shown
    assert "leave 1 column as it is:" in shown
    assert not any("bloom add" in one for one in shown)


def test_filters_that_are_there_have_their_commands() -> None:
    found = decide(report(column(existing=existing(foldable_bytes=MIB), present=gain(0, 0), absent=gain(0, 0))))
    shown = lines(replace(found, upkeep="bloom fold lake --columns id --fpp 0.01 --in-place"))
    assert shown[shown.index("to fold or remove existing filters:") + 1] == (
        "  bloom fold lake --columns id --fpp 0.01 --in-place"
    )


def test_files_that_could_not_be_read_are_listed_and_counted() -> None:
    shown = lines(advised(failed=tuple((f"lake/{n}.parquet", "it is cut off") for n in range(7))))
    at = shown.index("7 files could not be read:")
    assert shown[at + 1] == "  lake/0.parquet: it is cut off"
    assert shown[at + 6] == "  ... and 2 files more: --format json"
    assert advised().exit_code == 0
    assert advised(failed=(("a", "b"),)).exit_code == 3


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_but_commands_is_wider_than_the_terminal(width: int) -> None:
    for one in lines(advised(queries=LOG), width):
        assert len(one) <= width or one.startswith("  bloom add")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (954.5 * MIB, 1013.5 * MIB, "954.5 to 1013.5 MiB"),
        (900 * 1024, 2 * MIB, "900.0 KiB to 2.0 MiB"),
        (-MIB, MIB, "-1.0 to 1.0 MiB"),
        (MIB, MIB, "exact"),
        (MIB, MIB + 10, "about 1.0 MiB"),
    ],
)
def test_intervals_name_their_unit_once_if_it_is_the_same(low: float, high: float, text: str) -> None:
    assert text_advice.interval(Interval(estimate=(low + high) / 2, low=low, high=high)) == text


def test_names_of_columns_are_escaped() -> None:
    out = io.StringIO()
    render.write(text_advice.advice(decide(report(column("a\x1b[31m\nb")))), out)
    assert "\x1b" not in out.getvalue()
    assert "a\\x1b[31m\\nb" in out.getvalue()


def test_csv_has_a_row_for_each_column_with_three_fields_for_an_interval() -> None:
    out = io.StringIO()
    csv_report.write_advice(advised(), out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [row["column"] for row in rows] == ["id", "user.email", "day", "price"]
    first = rows[0]
    assert (first["recommended"], first["reason_id"], first["fpp"]) == ("True", "saves", "0.01")
    assert [float(first[f"saved_bytes{end}"]) for end in ("", "_low", "_high")] == pytest.approx(
        [984 * MIB, 984 * MIB * 0.97, 984 * MIB * 1.03]
    )
    assert float(first["present_today_row_groups"]) == 1
    assert first["queried_today_row_groups"] == ""
    assert first["existing_filters"] == ""


def test_csv_has_the_figures_of_filters_that_are_there() -> None:
    out = io.StringIO()
    csv_report.write_advice(decide(report(column(existing=existing()))), out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue()))
    assert (row["existing_filters"], row["existing_judgement"]) == ("100", "worth")


def test_csv_has_a_field_for_each_figure_of_a_page_index() -> None:
    out = io.StringIO()
    csv_report.write_advice(decide(report(column(page_index=PageIndexGain(bytes=300.0, with_index=10.0)))), out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue()))
    assert (row["page_index_bytes"], row["page_index_with_index"]) == ("300.0", "10.0")


def test_json_has_an_object_for_each_column_with_its_reason_and_intervals() -> None:
    out = io.StringIO()
    json_report.write("advise", advised(queries=LOG), out)
    document = json.loads(out.getvalue())
    assert document["schema"] == "bloom/advise/1"
    first, *_, last = document["columns"]
    assert (first["column"], first["recommended"]) == ("id", True)
    assert first["reason"].startswith("of 100 row groups, a lookup reads 2 instead of 100")
    assert first["saved_bytes"].keys() == {"estimate", "low", "high"}
    assert (last["recommended"], last["reason_id"]) == (False, "loses-rows")
    assert document["command"].startswith("bloom add lake")
