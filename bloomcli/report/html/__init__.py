"""Reports as HTML: a page in one file, which needs no network. The extra ``report`` installs the packages for it.

`page_of` makes the parts of a page from a report, `charts` draws them, and `rendering` writes them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from bloomcli.errors import needed
from bloomcli.model.advice import AdviseReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.trial import TrialReport
from bloomcli.report.html.parts import ROWS_SHOWN, Page

MOST_BYTES: Final = 2_000_000
"""Every page is smaller. Tables show fewer rows if a page would be larger."""

_PACKAGES: Final = ("jinja2", "markdown_it")

Report = InspectReport | DatasetReport | GateReport | AdviseReport | TrialReport
"""The reports that have a page."""


def check_packages() -> None:
    """Check that the packages are installed, before the work starts. Raises UnsupportedError, which names the
    extra."""
    with needed("HTML reports need", "report"):
        for name in _PACKAGES:
            if find_spec(name) is None:
                raise ImportError(name=name)


def html(report: Report) -> str:
    """Return a report as an HTML page, the same that ``--report html=FILE`` writes.

    The page is one file of less than 2 MB with charts and sortable tables. It needs no network. Long tables show a
    part of their rows, and say so; `bloomcli.report.json.document` contains the whole report.

    Args:
        report: the result of `inspect`, `advise` or `trial`, of `validate` for many files, or of `gate`.

    Returns:
        The text of the page, to be written as UTF-8. Bytes of file names that aren't text are escaped.

    Raises:
        TypeError: reports of this kind have no page.
        UnsupportedError: the packages for it aren't installed; the hint names them.
    """
    check_packages()
    from bloomcli.report.html.rendering import rendered

    rows = ROWS_SHOWN
    while True:
        text = rendered(page_of(report, rows))
        if len(text.encode("utf-8", "backslashreplace")) < MOST_BYTES or rows <= 1:
            return text
        rows //= 2


def page_of(report: Report, rows: int) -> Page:
    """Return the parts of a report's page, with tables of at most `rows` rows. Raises TypeError."""
    from bloomcli.report.html import advice, file, findings, lake, trial

    match report:
        case InspectReport():
            return file.page(report, rows)
        case GateReport():
            return findings.page(report, rows)
        case AdviseReport():
            return advice.page(report, rows)
        case TrialReport():
            return trial.page(report, rows)
        case DatasetReport(command="inspect"):
            return lake.page(report, rows)
    raise TypeError(f"a {type(report).__name__} has no page")
