"""Writes reports as text, JSON, CSV, HTML, JUnit XML, SARIF and GitHub annotations. It decides nothing.

The modules ``text*`` convert the dataclasses of `bloomcli.model` to the blocks of `layout`. `fitting` fits these to
the terminal's width, and `render` writes them: with colours on a terminal, as plain text otherwise. `notebook` and
`html` write the same blocks as HTML. `json` and `csv` are for programs; `tools/json_schema.py` makes the
documentation of JSON from the dataclasses' docstrings. `junit`, `sarif` and `github` show the findings of `validate`
in CI services; the sentences that they share with the text are in `verdict`.
"""

from __future__ import annotations

from bloomcli.model.report import Report


def show_in_notebooks() -> None:
    """Let notebooks show reports as HTML. Packages whose functions return reports call it."""
    Report.as_html = _html


def _html(report: Report) -> str:
    from bloomcli.report import notebook

    return notebook.html(report)
