"""Every command's JSON report on every fixture, and the bytes of every changed file, are what they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import command_reports, golden


def test_each_fixture_has_its_reports_and_none_is_left_over() -> None:
    assert sorted(command_reports.DATA.iterdir()) == sorted(map(command_reports.kept, golden.files()))


@pytest.mark.parametrize("path", golden.files(), ids=lambda path: path.name)
def test_commands_report_and_write_what_is_kept(path: Path, tmp_path: Path) -> None:
    for found, kept in zip(
        command_reports.lines(path, tmp_path), command_reports.kept(path).read_text().splitlines(), strict=True
    ):
        assert found == kept
