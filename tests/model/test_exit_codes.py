"""The exit codes and totals of reports over many files."""

from __future__ import annotations

import pytest

from bloomcli.model.dataset import DatasetReport, FileRow, Status, gravest
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport, Sample
from bloomcli.model.validate import Finding


def row(status: Status = Status.DONE, exit_code: int = 0, **more: int) -> FileRow:
    """One file."""
    return FileRow(path="a", status=status, exit_code=exit_code, **more)  # type: ignore[arg-type]


def dataset(command: str, *rows: FileRow) -> DatasetReport:
    """A report of many files."""
    return DatasetReport(command=command, engine="local", jobs=1, seconds=0, rows=rows)


def gate(
    *findings: Finding, rows: tuple[FileRow, ...] = (), found: int = 0, sample: Sample | None = None
) -> GateReport:
    """What validate says of many files."""
    return GateReport(
        engine="local", jobs=1, seconds=0, files_found=found, findings=findings, rows=rows, sample=sample
    )


@pytest.mark.parametrize(
    ("codes", "code"),
    [((), 0), ((0, 1), 1), ((1, 2), 2), ((2, 4), 4), ((4, 3), 3), ((3, 70), 70), ((0, 70, 1, 2, 3, 4), 70)],
)
def test_the_gravest_exit_code_is_that_of_all(codes: tuple[int, ...], code: int) -> None:
    assert gravest(codes) == code
    assert dataset("add", *(row(Status.FAILED, each) for each in codes)).exit_code == code


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ((row(exit_code=1), row(exit_code=1)), 1),
        ((row(exit_code=1), row(exit_code=0)), 0),
        ((row(exit_code=1), row(Status.SKIPPED)), 1),
        ((row(exit_code=1), row(Status.FAILED, 3)), 3),
    ],
)
def test_a_value_is_absent_of_a_dataset_only_where_every_file_says_so(rows: tuple[FileRow, ...], code: int) -> None:
    assert dataset("probe", *rows).exit_code == code


def test_files_are_counted_by_what_became_of_them() -> None:
    report = dataset("validate", row(), row(Status.FOUND, 1), row(Status.SKIPPED), row(Status.FAILED, 3))
    assert (report.files, report.done, report.skipped, report.failed) == (4, 2, 1, 1)


def test_notes_and_findings_that_are_known_or_switched_off_do_not_fail_a_gate() -> None:
    quiet = [
        Finding(id="a", severity=Severity.NOTE, message="m"),
        Finding(id="b", severity=Severity.ERROR, message="m", known=True),
        Finding(id="c", severity=Severity.WARNING, message="m", off="the policy says so"),
    ]
    report = gate(*quiet)
    assert report.ok
    assert (report.errors, report.warnings, report.notes, report.off, report.known) == (0, 0, 1, 1, 1)
    loud = gate(*quiet, Finding(id="d", severity=Severity.WARNING, message="m"))
    assert (loud.ok, loud.exit_code, loud.warnings) == (False, 1, 1)
    assert gate(rows=(row(Status.FAILED, 4),)).exit_code == 4


def test_a_gate_is_complete_where_no_file_and_no_row_group_was_left_out() -> None:
    rows = (row(row_groups=3, row_groups_read=3), row(Status.SKIPPED))
    part = Sample(seed=1, row_groups="2")
    assert gate(rows=rows, found=2).complete
    assert gate(rows=rows, found=2, sample=part).complete
    assert not gate(rows=rows, found=3).complete
    assert not gate(rows=(row(row_groups=3, row_groups_read=2),), found=1, sample=part).complete
