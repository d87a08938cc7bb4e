"""GitHub workflow commands, read back by the runner's rules."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from support.gates import FAILED, MISSING, NOTE, ODD_SIZE, PARTIAL, gate, reports

from bloomcli.model.gate import GateReport
from bloomcli.report import github, human


@dataclass
class Command:
    """A workflow command as the runner takes it apart."""

    level: str
    properties: dict[str, str]
    message: str


def unescaped(text: str, codes: dict[str, str]) -> str:
    """Unescape as the runner does: %25 last, so that nothing is unescaped twice."""
    for code, char in codes.items():
        text = text.replace(code, char)
    return text.replace("%25", "%")


def parse(line: str) -> Command:
    """``::level key=value,key=value::message``."""
    match = re.fullmatch(r"::(error|warning|notice)(?: ([^:]*))?::(.*)", line)
    assert match, line
    level, properties, message = match.groups()
    data = {"%0D": "\r", "%0A": "\n"}
    pairs = [pair.split("=", 1) for pair in (properties or "").split(",") if pair]
    return Command(
        level, {k: unescaped(v, data | {"%3A": ":", "%2C": ","}) for k, v in pairs}, unescaped(message, data)
    )


def commands(report: GateReport, *, per_rule: int = 10) -> list[Command]:
    """The commands as the runner reads them."""
    stream = io.StringIO()
    github.write(report, stream, per_rule=per_rule)
    *lines, end = stream.getvalue().split("\n")
    assert end == ""
    return [parse(line) for line in lines]


def test_files_that_the_policy_excludes_are_reported_with_the_verdict() -> None:
    assert commands(gate(excluded=2))[-1].message.splitlines()[1:] == ["2 files excluded by the policy"]
    assert commands(gate(rows=(), excluded=1))[-1].message == "nothing to check: 1 file excluded by the policy"


def test_every_rules_first_finding_comes_before_any_rules_second() -> None:
    rules = ("value-missing", "filter-boolean", "filter-required")
    findings = [replace(MISSING, id=id_, row_group=n) for id_ in rules for n in range(4)]
    titles = [c.properties["title"].partition(":")[0] for c in commands(gate(*findings))[:-1]]
    assert titles == [*rules] * 4


def test_at_most_so_many_of_a_rule_are_written_and_the_summary_counts_what_isnt_shown() -> None:
    many = gate(
        *(replace(MISSING, row_group=n) for n in range(25)), *(replace(ODD_SIZE, row_group=n) for n in range(11))
    )
    got = commands(many)
    assert [c.level for c in got].count("error") == 10
    assert "not among the annotations: 15 more errors, 1 more warning; " in got[-1].message
    assert [c.level for c in commands(many, per_rule=0)].count("error") == 25
    few = commands(many, per_rule=3)
    assert [c.level for c in few].count("error") == 3
    assert "22 more errors" in few[-1].message
    assert "not among" not in commands(gate(MISSING))[-1].message


def test_files_that_fail_are_written_up_to_the_limit() -> None:
    got = commands(gate(rows=(FAILED,) * 30))
    assert [c.level for c in got].count("error") == 10
    assert "20 more errors" in got[-1].message
    assert [c.level for c in commands(gate(rows=(FAILED,) * 30), per_rule=0)].count("error") == 30


@pytest.mark.parametrize("report", [gate(*[NOTE] * 30), replace(PARTIAL, findings=(NOTE,) * 30)])
def test_notes_leave_room_for_the_verdict_among_the_ten_that_are_shown(report: GateReport) -> None:
    notices = [c for c in commands(report, per_rule=0) if c.level == "notice"]
    assert len(notices) == github.SHOWN
    assert notices[-1].properties == {"title": "bloom validate"}
    assert "more notes; " in notices[-1].message


def test_paths_are_relative_to_the_working_folder_and_uris_are_no_files() -> None:
    here = Path.cwd()
    finding = replace(MISSING, path=str(here / "lake" / "x.parquet"))
    assert commands(gate(finding))[0].properties["file"] == "lake/x.parquet"
    assert commands(gate(replace(finding, path=f"file://{here}/x")))[0].properties["file"] == "x"
    assert commands(gate(replace(finding, path="/elsewhere/x")))[0].properties["file"] == "/elsewhere/x"
    remote = commands(gate(replace(finding, path="s3://lake/x")))[0]
    assert "file" not in remote.properties
    assert remote.message.startswith("s3://lake/x: ")


@pytest.mark.parametrize("path", ["a,b:c%d.parquet", "100%25.parquet", "a::b", "%0A", "ä=🎉"])
def test_names_come_back_through_the_escaping(path: str) -> None:
    got = commands(gate(replace(MISSING, path=path)))[0]
    assert got.properties["file"] == path
    assert got.message.startswith(f"{path}: ")


@given(reports())
def test_any_text_stays_one_command_per_line(report: GateReport) -> None:
    got = commands(report, per_rule=0)
    assert got[-1].properties == {"title": "bloom validate"}
    shown = [f for f in report.findings if f.off is None and not f.known and f.severity != "note"]
    assert len([c for c in got if c.level != "notice"]) == len(shown) + report.failed
    for finding in shown:
        assert any(human.printable(finding.message) in c.message for c in got)


def test_a_finding_without_a_file_has_no_file() -> None:
    got = commands(gate(replace(MISSING, path=None)))[0]
    assert "file" not in got.properties
    assert got.message.startswith("2 of 5,000")
