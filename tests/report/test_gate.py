"""The text of `validate`: the most severe findings first, nothing twice, and "ok" only after a complete check."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from support.gates import (
    FAILED,
    FOUND,
    KNOWN,
    LAKE,
    MISSING,
    NOTE,
    ODD_SIZE,
    OFF,
    PARTIAL,
    SKIPPED,
    SOUND,
    gate,
    reports,
)

from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport, Sample
from bloomcli.report import json, render, text_gate, verdict
from bloomcli.report.layout import Line, Style
from bloomcli.rules import RULES

AGREE = "values is missing from them; statistics and indexes of their columns agree"
"""The end of the verdict on filters without a fault."""


def shown(report: GateReport, *, per_rule: int = 5) -> str:
    """The report as plain text."""
    return "\n".join(render.plain(text_gate.gate(report, per_rule=per_rule)))


def last(report: GateReport) -> Line:
    """The last line that is printed."""
    *_, block = text_gate.gate(report)
    assert isinstance(block, Line)
    return block


def test_each_rule_is_a_group_that_says_severity_id_title_and_how_many_in_how_many_files() -> None:
    elsewhere = replace(MISSING, path="lake/b.parquet", row_group=0)
    text = shown(gate(MISSING, elsewhere, replace(MISSING, row_group=1), rows=(FOUND, SOUND)))
    assert text.startswith("error value-missing: a value is not in its filter: 3 findings in 2 files\n")
    assert "\n  lake/a.parquet: 2 of 5,000 values are missing (row group 3, user.id, byte 7001)\n" in text
    assert "\n    missing: 4, 5\n" in text


def test_a_rule_that_a_policy_makes_graver_for_some_files_is_two_groups() -> None:
    text = shown(gate(ODD_SIZE, replace(ODD_SIZE, severity=Severity.ERROR), rows=(FOUND, SOUND)))
    assert text.index("error filter-not-power-of-two: ") < text.index("warning filter-not-power-of-two: ")


def test_at_most_so_many_of_a_rule_are_shown_and_the_rest_is_counted() -> None:
    many = gate(*(replace(MISSING, row_group=n) for n in range(12)), rows=(FOUND, SOUND))
    assert shown(many).count("values are missing") == 5
    assert "  ... and 7 more (--all or --format csv shows all)\n" in shown(many)
    assert shown(many, per_rule=0).count("values are missing") == 12
    assert "..." not in shown(many, per_rule=0)
    assert "..." not in shown(many, per_rule=12)


def test_a_hint_is_reported_once_per_group_where_it_is_the_same() -> None:
    same = shown(gate(MISSING, replace(MISSING, row_group=4), rows=(FOUND, SOUND)))
    assert same.count("hint: build it again") == 1
    other = shown(gate(MISSING, replace(MISSING, hint="do that"), rows=(FOUND, SOUND)))
    assert other.count("\n    hint: build it again\n") == other.count("\n    hint: do that\n") == 1
    assert "hint" not in shown(gate(ODD_SIZE))
    more = gate(*(replace(MISSING, path=f"{n}") for n in range(4)), rows=(FOUND, SOUND))
    assert "\n  hint for this file: build it again\n" in shown(more, per_rule=1)
    assert "\n  hint for these 3 files: build it again\n" in shown(more, per_rule=3)


def test_files_that_failed_are_reported_with_their_hints_up_to_the_limit() -> None:
    failed = [replace(FAILED, path=f"{n}", error=f"{n}: it is torn at {n}") for n in range(8)]
    text = shown(gate(rows=(SOUND, *failed)))
    assert "8 files could not be checked\n  0: it is torn at 0\n    hint: copy it again\n" in text
    assert text.count("it is torn") == 5
    assert "... and 3 more" in text
    assert text.splitlines()[-1] == "not ok: 8 files could not be checked"
    assert shown(gate(rows=(replace(FAILED, error=None),))).endswith(
        "lake/torn.parquet: not ok: could not be checked"
    )
    assert "  lake/torn.parquet: it could not be checked\n" in shown(gate(rows=(replace(FAILED, error=None),)))


def test_an_error_that_files_have_in_common_comes_once() -> None:
    rows = [replace(FAILED, path=f"{n}", error=f"{n}: no column 'x'") for n in range(8)]
    text = shown(gate(rows=(SOUND, *rows, replace(FAILED, path="z", error="z: it is torn"))))
    assert "  0: no column 'x'; the same in 7 more files\n" in text
    assert (text.count("no column"), text.count("it is torn"), "more (" in text) == (1, 1, False)


def test_switched_off_findings_are_one_line_a_rule_with_their_reasons() -> None:
    off = [replace(OFF, off=f"reason {n % 5}") for n in range(10)]
    text = shown(gate(*off, OFF, rows=(SOUND, FOUND)))
    assert "switched off: filter-fpp: 11 findings: reason 0; reason 1; reason 2; and 3 reasons more\n" in text
    assert "the rate is 0.3" not in text


@pytest.mark.parametrize(
    ("gone", "text_of_gone"),
    [(0, ""), (1, "; 1 entry of it is gone, --update-baseline drops it"), (3, "; 3 entries of it are gone")],
)
def test_known_findings_are_counted_and_a_stale_baseline_is_reported(gone: int, text_of_gone: str) -> None:
    text = shown(gate(KNOWN, baseline="known.json", gone=gone))
    assert f"1 known finding in the baseline known.json{text_of_gone}" in text
    assert ("gone" in text) == bool(gone)
    assert "a filter on a BOOLEAN column" not in text


def test_a_baseline_that_held_nothing_back_and_is_up_to_date_is_no_news() -> None:
    assert "known.json" not in shown(gate(baseline="known.json"))
    assert "0 known findings in the baseline known.json; 1 entry" in shown(gate(baseline="known.json", gone=1))


def test_what_was_checked_is_reported_in_figures() -> None:
    report = gate(
        rows=(SOUND, SKIPPED, SKIPPED),
        files_found=300,
        policy="bloom.toml",
        sample=Sample(seed=7, files="1%", row_groups="50%"),
    )
    lines = shown(report).splitlines()
    assert lines[:6] == [
        "checked  1 of 300 files: 4 row groups, 8 filters",
        "sample   1% of the files, 50% of each file's row groups; seed 7, which selects the same part again",
        "skipped  2 files: not a file of a known format",
        "values   5,000 values looked up in 4 row groups",
        "policy   bloom.toml",
        "took     2.00 s (local, 2 jobs)",
    ]
    assert "took     2.00 s (1 file/s, local, 2 jobs)" in shown(gate(rows=(SOUND, FOUND)))
    assert "policy   none (--policy FILE names one, --init writes one)" in shown(gate(policy=None))
    few = gate(files_found=300, sample=Sample(seed=7, files="10", row_groups="2"))
    assert "sample   files: 10, row groups per file: 2; seed 7" in shown(few)
    assert "sample   everything; seed 7" in shown(gate(sample=Sample(seed=7)))


def test_a_terminal_gets_colours_however_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    many = gate(*(replace(MISSING, row_group=n) for n in range(2000)), rows=(FOUND, SOUND))
    render.write(text_gate.gate(many, per_rule=0), stream)
    assert "\x1b[" in stream.getvalue()
    assert stream.getvalue().count("values are missing") == 2000


# --- the verdict


@pytest.mark.parametrize(
    ("report", "said", "style"),
    [
        (
            gate(),
            f"orders.parquet: ok: no fault in 8 filters; none of 5,000 {AGREE}",
            Style.GOOD,
        ),
        (
            gate(deep=False),
            "orders.parquet: ok: no fault in 8 filters; not checked: missing values (--deep)",
            Style.GOOD,
        ),
        (
            gate(rows=(SOUND, SOUND)),
            f"ok: no fault in 16 filters in 2 files; none of 10,000 {AGREE}",
            Style.GOOD,
        ),
        (
            gate(NOTE, OFF, KNOWN),
            "orders.parquet: ok: no finding counts (1 note, 1 switched-off finding, 1 known finding)"
            " in 8 filters; 5,000 values looked up",
            Style.GOOD,
        ),
        (
            PARTIAL,
            "no fault in the checked part (8 filters in 1 file); not checked: 19 of 20 files",
            Style.WARN,
        ),
        (
            gate(rows=(replace(SOUND, row_groups_read=1),), sample=Sample(seed=1, row_groups="25%")),
            "orders.parquet: no fault in the checked part (8 filters); not checked: the values of 3 of 4 row groups",
            Style.WARN,
        ),
        (
            gate(rows=(replace(SOUND, filters=0, values_checked=0),)),
            "orders.parquet: no filters to check",
            Style.WARN,
        ),
        (
            gate(NOTE, rows=(replace(SOUND, filters=0, values_checked=0),)),
            "orders.parquet: no filters to check (1 note)",
            Style.WARN,
        ),
        (
            gate(rows=(replace(SOUND, filters=0),)),
            "orders.parquet: ok: statistics and indexes agree with 5,000 values; no filters to check",
            Style.GOOD,
        ),
        (
            gate(NOTE, rows=(replace(SOUND, filters=0),)),
            "orders.parquet: ok: no finding counts (1 note); 5,000 values compared with statistics and indexes; "
            "no filters to check",
            Style.GOOD,
        ),
        (gate(rows=(SKIPPED, SKIPPED)), "no filters to check", Style.WARN),
        (gate(rows=()), "no filters to check", Style.WARN),
        (
            gate(rows=(replace(SOUND, filters=0, values_checked=0),), files_found=9),
            "no filters to check in 1 file; not checked: 8 of 9 files",
            Style.WARN,
        ),
        (
            gate(MISSING, files_found=9),
            "not ok: 1 error in 1 file; not checked: 8 of 9 files",
            Style.BAD,
        ),
    ],
)
def test_the_last_line_says_no_more_than_was_checked(report: GateReport, said: str, style: Style) -> None:
    assert last(report).cell.text == said
    assert last(report).cell.style is style


@given(reports())
def test_only_a_complete_look_at_filters_with_nothing_found_is_called_ok(report: GateReport) -> None:
    said = verdict.verdict(report)
    path = f"{report.rows[0].path}: " if verdict.is_single_file(report) else ""
    called_ok = said.startswith(f"{path}ok: ")
    assert called_ok == verdict.is_clean(report)
    assert bool(verdict.unchecked_parts(report)) != report.complete
    assert report.complete or verdict.unchecked(report) in said


@given(reports())
def test_any_report_is_lines_without_control_characters(report: GateReport) -> None:
    stream = io.StringIO()
    render.write(text_gate.gate(report), stream)
    assert all(line.isprintable() or not line.isascii() for line in stream.getvalue().split("\n"))
    assert "\x1b" not in stream.getvalue()


def test_files_that_the_policy_excludes_are_reported_and_dont_make_a_look_partial() -> None:
    text = shown(gate(excluded=2, policy="bloom.toml"))
    assert "excluded  2 files, by the policy\n" in text
    assert text.splitlines()[-1] == f"orders.parquet: ok: no fault in 8 filters; none of 5,000 {AGREE}"
    assert "excluded" not in shown(gate())
    nothing = gate(rows=(), excluded=1, policy="bloom.toml")
    assert last(nothing).cell.text == "nothing to check: 1 file excluded by the policy"
    assert last(nothing).cell.style is Style.WARN
    assert json.document("validate", nothing)["excluded"] == 1


def test_every_rule_can_be_printed() -> None:
    text = shown(gate(*(replace(MISSING, id=id_) for id_ in RULES), rows=(FOUND, SOUND)))
    assert all(f"error {id_}: {rule.title}: 1 finding in 1 file\n" in text for id_, rule in RULES.items())


# --- JSON


def test_figures_have_the_names_that_the_json_document_has() -> None:
    names = set(json.keys(GateReport)) | {"seed", "sample_files", "sample_row_groups"}
    assert set(verdict.run_facts(LAKE)) <= names
    assert verdict.run_facts(PARTIAL)["seed"] == 42
