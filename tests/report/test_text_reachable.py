"""The text of `find --reachable` at a width; `tests/golden/test_written_reports.py` has all of it."""

from __future__ import annotations

import pytest
from support.written_reports import EXPIRY, REACHABLE

from bloomcli.report.fitting import fit
from bloomcli.report.text_find import reachable


@pytest.mark.parametrize("columns", [80, 120])
def test_prose_wraps_at_the_terminal_s_width_and_statements_do_not(columns: int) -> None:
    lines = ["".join(text for text, _ in pieces) for pieces in fit(reachable(REACHABLE), columns)]
    assert f"  {EXPIRY};" in lines
    assert all(len(text) <= columns for text in lines if EXPIRY not in text)
