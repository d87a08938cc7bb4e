"""The text of `trial`: every status of a reader has its words, at every width, and names can't do harm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.trial_reports import LOOKUPS, READER, REPORT

from bloomcli.model.trial import TrialReport
from bloomcli.report import text_trial
from bloomcli.report.fitting import fit


def lines(report: TrialReport, width: int | None = None) -> list[str]:
    found = fit(text_trial.trial(report), width)
    return ["".join(text for text, _ in pieces).rstrip() for pieces in found]


def test_a_reader_that_finds_no_present_value_proves_nothing() -> None:
    """Its lookups don't count among those that returned the same rows, and the others are named."""
    fine = REPORT.readers[0]
    blind = replace(fine, title="chDB", lookups=(replace(LOOKUPS, not_found=20), replace(LOOKUPS, kind="absent")))
    mixed = replace(REPORT, readers=(fine, blind))
    proves_nothing = "chDB found none of the values that are there, which proves nothing"
    same = "1 reader returned the same rows with filters and without, in 40 lookups"
    assert f"{same}; {proves_nothing}" in lines(mixed)
    assert proves_nothing in lines(replace(REPORT, readers=(blind,)))
    absent = replace(fine, lookups=(replace(LOOKUPS, kind="absent"),))
    assert same.replace("40", "20") in lines(replace(REPORT, readers=(absent,)))


def test_the_answer_names_the_readers_that_gain_and_those_that_do_not() -> None:
    fine = REPORT.readers[0]
    same = (replace(LOOKUPS, row_groups_with=182, variant_path="v:$.id"),)
    others = tuple(replace(fine, title=title, lookups=same) for title in ("Spark", "chDB"))
    answer = text_trial.answer(replace(REPORT, readers=(fine, *others)))
    assert answer == "filters help DuckDB to look up v:$.id, but not Spark and chDB"


def test_several_readers_never_look_at_filters() -> None:
    (polars,) = (reader for reader in REPORT.readers if reader.reader == "polars")
    arrow = replace(polars, reader="pyarrow", title="PyArrow", version="26.0.0")
    assert "Polars 2.1.0: never looks at filters" in lines(REPORT)
    assert "Polars 2.1.0, PyArrow 26.0.0: never look at filters" in lines(replace(REPORT, readers=(polars, arrow)))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    long = replace(LOOKUPS, column="a.very.long.path.of.a.column.in.structs")
    report = replace(REPORT, readers=(*REPORT.readers, replace(READER, lookups=(LOOKUPS, long))))
    assert max(map(len, lines(report, width))) <= width


def test_names_cannot_start_commands_of_a_ci_log() -> None:
    report = replace(REPORT, columns=("::error::x",), readers=(replace(READER, reason="\x1b[31m ::warning::"),))
    text = "\n".join(lines(report))
    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]


def test_an_equal_report_says_how_many_lookups_were_equal() -> None:
    report = replace(REPORT, readers=(READER,), failed=())
    assert report.exit_code == 0
    assert "1 reader returned the same rows with filters and without, in 40 lookups" in lines(report)
    assert list(text_trial.faults(report)) == []


def test_exit_codes() -> None:
    assert REPORT.exit_code == 1
    assert replace(REPORT, readers=(READER,)).exit_code == 3
    assert replace(REPORT, readers=REPORT.readers[-1:], failed=()).exit_code == 3
    assert replace(REPORT, readers=REPORT.readers[3:4], failed=()).exit_code == 0


def test_the_head_distinguishes_one_file_of_several_from_one_file() -> None:
    text = "\n".join(lines(replace(REPORT, files=2, sample="4")))
    assert "files    1 of 2 (seed 0): orders.parquet" in text


def test_fewer_values_than_were_wanted_are_not_shown_as_all() -> None:
    kinds = tuple(replace(LOOKUPS, kind=kind) for kind in ("present", "absent"))
    whole = replace(REPORT, readers=(replace(READER, lookups=kinds),))
    assert "values   20 present and 20 absent of each column (seed 0)" in lines(whole)
    fewer = replace(whole, readers=(replace(READER, lookups=(kinds[0], replace(kinds[1], lookups=3))),))
    assert "values   up to 20 present and 20 absent of each column (seed 0)" in lines(fewer)
    none = replace(whole, readers=(replace(READER, lookups=kinds[:1]),))
    assert "values   up to 20 present and 20 absent of each column (seed 0)" in lines(none)


def test_no_lookup_is_no_agreement() -> None:
    text = "\n".join(lines(replace(REPORT, readers=REPORT.readers[-1:])))
    assert "no reader did a lookup" in text
    assert "the same rows" not in text


def test_remarks_are_shown() -> None:
    assert "2 files of several formats" in lines(replace(REPORT, remarks=("2 files of several formats",)))
