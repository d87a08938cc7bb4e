"""bloomcli.html"""

from __future__ import annotations

from bloomcli.report import html as pages
from bloomcli.report.html import Report


def html(report: Report) -> str:
    """Return a report as an HTML page, the same that ``--report html=FILE`` writes.

    The page is one file of less than 2 MB with charts and sortable tables. It needs no network. Long tables show a
    part of their rows, and say so; `bloomcli.report.json.document` contains the whole report.

    Args:
        report: the result of `inspect`, of `validate` for many files, or of `gate`.

    Returns:
        The text of the page, to be written as UTF-8. Bytes of file names that aren't text are escaped.

    Raises:
        TypeError: reports of this kind have no page.
        UnsupportedError: the packages for it aren't installed; the hint names them.
    """
    return pages.write(report)
