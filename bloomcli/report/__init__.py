"""Writes reports as text, JSON, CSV, HTML, JUnit XML, SARIF and GitHub annotations. It decides nothing.

``text`` converts the dataclasses of :mod:`bloomcli.model.file` to blocks. :mod:`.layout` fits them to the terminal's
width, and ``render`` prints them: with colours on a terminal, as plain text otherwise. ``json`` and ``csv`` are for
programs; the documentation of ``json`` is generated from the dataclasses' docstrings (:mod:`.schema`). ``junit``,
``sarif`` and ``github`` show the findings of `validate` in CI services; the sentences that they share with the text
are in :mod:`.verdict`.
"""

from __future__ import annotations

from bloomcli.model.report import Report


def show_in_notebooks() -> None:
    """Let notebooks show reports as HTML. Packages whose functions return reports call it."""
    Report.as_html = _html


def _html(report: Report) -> str:
    from bloomcli.report import notebook

    return notebook.html(report)
