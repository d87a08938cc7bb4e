"""The output of each command on terminals of 80 and 120 columns is that of the files in ``screens``."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import screens


def test_every_command_has_its_screens_and_none_is_left_over() -> None:
    from bloomcli.cli import COMMANDS

    assert set(screens.SESSIONS) == set(COMMANDS)
    assert sorted(screens.DATA.iterdir()) == sorted(screens.kept(*case) for case in screens.CASES)


@pytest.mark.parametrize(
    ("command", "columns"),
    [pytest.param(*case, marks=pytest.mark.slow if case[0] in screens.LONG else ()) for case in screens.CASES],
)
def test_screens_are_what_is_kept(command: str, columns: int, tmp_path: Path) -> None:
    screens.make(tmp_path)
    found = screens.session(command, columns, tmp_path)
    assert found == screens.kept(command, columns).read_text(encoding="utf-8")
