"""Reports with figures written by hand are, in each form, the files in ``reports``."""

from __future__ import annotations

import pytest
from support.written_reports import DATA, FORMS


def test_each_form_has_its_file_and_none_is_left_over() -> None:
    assert {path.name for path in DATA.iterdir()} == FORMS.keys()


@pytest.mark.parametrize("name", FORMS)
def test_a_report_is_what_is_kept(name: str) -> None:
    assert FORMS[name]() == (DATA / name).read_text(encoding="utf-8")
