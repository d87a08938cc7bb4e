"""JUnit XML, read back with junitparser: counts, classes, and text that XML can't contain."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from junitparser import JUnitXml, TestCase, TestSuite
from support.gates import LAKE, MISSING, PARTIAL, SOUND, gate, reports

from bloomcli.model.gate import GateReport, Sample
from bloomcli.report import junit


def written(report: GateReport) -> str:
    """The document's text."""
    stream = io.StringIO()
    junit.write(report, stream)
    return stream.getvalue()


def suites(report: GateReport) -> dict[str, TestSuite]:
    """The suites by name, as junitparser reads them."""
    return {suite.name: suite for suite in JUnitXml.fromstring(written(report).encode())}


def cases(report: GateReport) -> dict[tuple[str, str], TestCase]:
    """All test cases by class and name."""
    return {(case.classname, case.name): case for suite in suites(report).values() for case in suite}


def kinds(case: TestCase) -> list[str]:
    """The result of a case: ``Failure``, ``Error``, ``Skipped``; empty if it passed."""
    return [type(result).__name__ for result in case.result]


def test_all_findings_of_a_rule_in_a_file_are_one_failure_cut_where_they_are_too_many() -> None:
    many = [replace(MISSING, row_group=n) for n in range(junit.TEXT_FINDINGS + 5)]
    (case,) = suites(gate(*many))["bloom.soundness"]
    (failure,) = case.result
    assert failure.message.endswith("(row group 0, user.id, byte 7001) (and 104 more)")
    assert failure.text.count("values are missing") == junit.TEXT_FINDINGS
    assert failure.text.endswith("... and 5 more (all: --format json)")


def test_a_known_finding_next_to_a_new_one_doesnt_hide_it() -> None:
    (case,) = suites(gate(MISSING, replace(MISSING, row_group=9, known=True)))["bloom.soundness"]
    assert kinds(case) == ["Failure"]
    assert "row group 9" not in case.result[0].text
    assert "row group 9" in case.system_out


@pytest.mark.parametrize(
    ("report", "name", "message"),
    [
        (PARTIAL, "every file and row group is checked", "not checked: 19 of 20 files"),
        (
            gate(rows=(replace(SOUND, row_groups_read=1),), sample=Sample(seed=1, row_groups="25%")),
            "every file and row group is checked",
            "not checked: the values of 3 of 4 row groups",
        ),
        (gate(excluded=2), "the policy excludes no file", "2 files excluded by the policy"),
        (gate(deep=False), "no value is missing from its filter", "not checked: missing values (--deep)"),
        (gate(rows=(replace(SOUND, filters=0, values_checked=0),)), "there are filters", "no filters to check"),
    ],
)
def test_what_wasnt_checked_is_a_skipped_case(report: GateReport, name: str, message: str) -> None:
    case = cases(report)["bloom.scope", name]
    assert kinds(case) == ["Skipped"]
    assert case.result[0].message == message


def test_a_complete_look_has_no_skipped_case() -> None:
    assert [c for c in cases(gate()) if c[0] == "bloom.scope"] == []
    assert JUnitXml.fromstring(written(gate()).encode()).skipped == 0


def test_the_sums_of_the_attributes_are_those_of_the_cases() -> None:
    whole = JUnitXml.fromstring(written(LAKE).encode())
    stated = (whole.tests, whole.failures, whole.errors, whole.skipped)
    assert stated == (7, 2, 1, 2)
    assert whole.time == 2.0
    for suite in whole:
        attributes = suite.tests, suite.failures, suite.errors, suite.skipped
        suite.update_statistics()
        assert attributes == (suite.tests, suite.failures, suite.errors, suite.skipped)


@given(reports())
def test_any_text_gives_well_formed_ascii_xml_with_a_case_for_every_broken_rule(report: GateReport) -> None:
    text = written(report)
    assert text.isascii()
    root = ET.fromstring(text)
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert len(failed) == len({(f.id, f.path) for f in report.findings if f.counts})
    assert len(list(root.iter("error"))) == report.failed
    assert root.get("tests") == str(len(list(root.iter("testcase"))))
    assert root.get("failures") == str(len(failed))


def test_names_come_back_as_they_are_and_what_xml_has_no_place_for_is_made_visible() -> None:
    names = {path: path for path in ("a<b>&\"'.parquet", "ä 中 🎉.parquet", "]]>.parquet", "a&amp;b")}
    names |= {"a\x00b": "a\\x00b", "a\tb\n": "a\\tb\\n", "a\ud800": "a\\ud800", "\ufffe\uffff": "\\ufffe\\uffff"}
    found = cases(gate(rows=tuple(replace(SOUND, path=path) for path in names)))
    assert {name for _, name in found} == set(names.values())


def test_many_files_are_many_small_cases_in_few_suites() -> None:
    rows = tuple(replace(SOUND, path=f"lake/{n}.parquet") for n in range(5_000))
    report = gate(*(replace(MISSING, path=f"lake/{n}.parquet") for n in range(0, 5_000, 10)), rows=rows)
    root = ET.fromstring(written(report))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("bloom.soundness", "500"),
        ("bloom.files", "4500"),
    ]
