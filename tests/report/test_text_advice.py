"""The advice as text and CSV, fitted to terminals. `tests/golden/test_written_reports.py` has whole reports."""

from __future__ import annotations

import csv
import io

import pytest
from support.advice import MIB, column, exact, existing, gain, report
from support.written_reports import LOG, advised

from bloomcli.advice.decide import decide
from bloomcli.model.advice import AdviseReport, Interval, PageIndexGain
from bloomcli.report import csv as csv_report
from bloomcli.report import render, text_advice
from bloomcli.report.fitting import fit


def lines(found: AdviseReport, width: int | None = None) -> list[str]:
    return ["".join(text for text, _ in pieces).rstrip() for pieces in fit(text_advice.advice(found), width)]


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


def test_csv_has_the_figures_of_filters_that_are_there_and_of_a_page_index() -> None:
    out = io.StringIO()
    gain = PageIndexGain(bytes=300.0, with_index=10.0)
    csv_report.write_advice(decide(report(column(existing=existing(), page_index=gain))), out)
    (row,) = csv.DictReader(io.StringIO(out.getvalue()))
    assert (row["existing_filters"], row["existing_judgement"]) == ("100", "worth")
    assert (row["page_index_bytes"], row["page_index_with_index"]) == ("300.0", "10.0")
