"""The place of a finding in words."""

from __future__ import annotations

from typing import Any

import pytest

from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.report.human import finding_location


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, " (id)"),
        ({"row_group": 3}, " (row group 3, id)"),
        ({"row_group": 3, "places": "3"}, " (row group 3, id)"),
        ({"row_group": 0, "places": "0-4"}, " (row groups 0-4, id)"),
        ({"row_group": 0, "places": "0,2-3", "offset": 7}, " (row groups 0, 2-3, id, byte 7)"),
        (
            {"stripe": 0, "row_group": 0, "places": "0:0-3,5 2:1"},
            " (stripe 0: row groups 0-3, 5; stripe 2: row group 1, id)",
        ),
        ({"stripe": 0, "row_group": 2, "places": "0:2"}, " (stripe 0, row group 2, id)"),
        ({"stripe": 1, "places": "1-2,4"}, " (stripes 1-2, 4, id)"),
        ({"row_group": 0, "places": "0,2,4,6,8,10,12"}, " (row groups 0, 2, 4, 6, 8, ..., id)"),
    ],
)
def test_all_row_groups_of_a_finding_are_named_unless_they_are_very_many(facts: dict[str, Any], text: str) -> None:
    finding = Finding(id="filter-required", severity=Severity.ERROR, message="none", column="id", **facts)
    assert finding_location(finding) == text
