"""JUnit XML, read back with junitparser: counts, classes, and text that XML can't contain."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from junitparser import JUnitXml, TestCase, TestSuite
from support.gates import FAILED, LAKE, MISSING, NOTE, PARTIAL, SKIPPED, SOUND, gate, reports

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


def test_a_rule_that_a_file_breaks_is_a_failed_case_of_its_groups_suite() -> None:
    assert list(suites(LAKE)) == ["bloom.soundness", "bloom.structure", "bloom.policy", "bloom.files"]
    case = cases(LAKE)["bloom.soundness.value-missing", "lake/a.parquet"]
    (failure,) = case.result
    assert kinds(case) == ["Failure"]
    assert failure.type == "value-missing"
    assert failure.message == (
        "error: a value is not in its filter: 2 of 5,000 values are missing (row group 3, user.id, byte 7001)"
    )
    assert failure.text == (
        "error: 2 of 5,000 values are missing (row group 3, user.id, byte 7001); missing: 4, 5\n"
        "  hint: build it again"
    )
    assert case._elem.get("file") == "lake/a.parquet"


def test_all_findings_of_a_rule_in_a_file_are_one_failure_cut_where_they_are_too_many() -> None:
    many = [replace(MISSING, row_group=n) for n in range(junit.TEXT_FINDINGS + 5)]
    (case,) = suites(gate(*many))["bloom.soundness"]
    (failure,) = case.result
    assert failure.message.endswith("(row group 0, user.id, byte 7001) (and 104 more)")
    assert failure.text.count("values are missing") == junit.TEXT_FINDINGS
    assert failure.text.endswith("... and 5 more (all: --format json)")


def test_switched_off_and_known_findings_are_skipped_cases_with_their_reasons() -> None:
    found = cases(LAKE)
    off = found["bloom.policy.filter-fpp", "lake/old.parquet"]
    known = found["bloom.soundness.filter-boolean", "lake/old.parquet"]
    assert kinds(off) == kinds(known) == ["Skipped"]
    assert off.result[0].message == "1 finding switched off: nobody probes it"
    assert known.result[0].message == "1 finding in the baseline"
    assert "the rate is 0.3 (id) [switched off: nobody probes it]" in off.system_out
    assert "[in the baseline]" in known.system_out


def test_a_known_finding_next_to_a_new_one_doesnt_hide_it() -> None:
    (case,) = suites(gate(MISSING, replace(MISSING, row_group=9, known=True)))["bloom.soundness"]
    assert kinds(case) == ["Failure"]
    assert "row group 9" not in case.result[0].text
    assert "row group 9" in case.system_out


def test_a_note_passes_with_its_text_as_output() -> None:
    case = cases(gate(NOTE))["bloom.structure.filter-no-length", "lake/a.parquet"]
    assert kinds(case) == []
    assert case.system_out == "note: it has no length"


def test_each_clean_file_passes_a_failed_one_is_an_error_a_skipped_one_is_no_case() -> None:
    found = cases(LAKE)
    assert kinds(found["bloom.files", "lake/old.parquet"]) == []
    failed = found["bloom.files", "lake/torn.parquet"]
    assert kinds(failed) == ["Error"]
    assert failed.result[0].message == FAILED.error
    assert failed.result[0].type == "exit code 3"
    assert failed.result[0].text == f"{FAILED.error}\nhint: copy it again"
    assert ("bloom.files", "lake/a.parquet") not in found
    assert ("bloom.files", SKIPPED.path) not in found
    bare = cases(gate(rows=(replace(FAILED, error=None, hint=None),)))["bloom.files", "lake/torn.parquet"]
    assert bare.result[0].text == "lake/torn.parquet: it could not be checked"


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


def test_the_properties_name_policy_seed_and_what_was_checked() -> None:
    properties = {p.name: p.value for p in suites(replace(PARTIAL, policy="bloom.toml"))["bloom.files"].properties()}
    assert properties["bloom.policy"] == "bloom.toml"
    assert properties["bloom.seed"] == "42"
    assert properties["bloom.files_found"] == "20"
    assert properties["bloom.files"] == "1"
    assert properties["bloom.excluded"] == "0"
    assert properties["bloom.filters_checked"] == "8"
    assert properties["bloom.complete"] == "false"
    assert "bloom.baseline" not in properties


def test_the_verdict_is_the_files_suites_output() -> None:
    root = ET.fromstring(written(gate()))
    out = root.find("testsuite[@name='bloom.files']/system-out")
    assert out is not None
    assert (
        out.text == "orders.parquet: ok: no fault in 8 filters; none of 5,000 values is missing from them;"
        " statistics and indexes of their columns agree"
    )


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


@pytest.mark.parametrize("path", ["a<b>&\"'.parquet", "ä 中 🎉.parquet", "]]>.parquet", "a&amp;b"])
def test_names_come_back_as_they_are(path: str) -> None:
    row = replace(SOUND, path=path)
    assert ("bloom.files", path) in cases(gate(rows=(row, row)))


@pytest.mark.parametrize(
    ("path", "shown"),
    [("a\x00b", "a\\x00b"), ("a\tb\n", "a\\tb\\n"), ("a\ud800", "a\\ud800"), ("\ufffe\uffff", "\\ufffe\\uffff")],
)
def test_what_xml_has_no_place_for_is_made_visible(path: str, shown: str) -> None:
    row = replace(SOUND, path=path)
    assert ("bloom.files", shown) in cases(gate(rows=(row, row)))


def test_many_files_are_many_small_cases_in_few_suites() -> None:
    rows = tuple(replace(SOUND, path=f"lake/{n}.parquet") for n in range(5_000))
    report = gate(*(replace(MISSING, path=f"lake/{n}.parquet") for n in range(0, 5_000, 10)), rows=rows)
    root = ET.fromstring(written(report))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("bloom.soundness", "500"),
        ("bloom.files", "4500"),
    ]
