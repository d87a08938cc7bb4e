"""bloomcli.html"""

from __future__ import annotations

from bloomcli.report import html as pages
from bloomcli.report.html import Report


def html(report: Report) -> str:
    """Return a report as an HTML page, as ``--report html=FILE`` writes it.

    The page is one file of less than 2 MB. It needs no network, and shows charts and sortable tables. Long tables
    show a part of their rows, and say so; `bloomcli.report.json.document` has all of a report.

    Args:
        report: what `inspect` (of one file or many), `validate` of many files, or `gate` returned.

    Returns:
        The text of the page, to be written as UTF-8. File names that aren't text have their bytes escaped.

    Raises:
        TypeError: reports of this kind have no page.
        UnsupportedError: the packages aren't installed: ``pip install 'bloomcli[report]'``.
    """
    return pages.write(report)
