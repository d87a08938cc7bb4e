"""Reports as HTML: a page in one file, which needs no network. The extra ``report`` installs the packages for it.

`page_of` makes the parts of a page from a report, and `charts` draws them. Jinja2 escapes every text, and the page's
policy forbids everything that it doesn't need.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import needed
from bloomcli.model.advice import AdviseReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.trial import TrialReport
from bloomcli.report.html.parts import ROWS_SHOWN, Page, shown, slug
from bloomcli.report.layout import Style
from bloomcli.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

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
    rows = ROWS_SHOWN
    while True:
        text = _rendered(page_of(report, rows))
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


_TEMPLATES = Path(__file__).with_name("templates")
_TONES = {Style.DIM: "dim", Style.GOOD: "good", Style.WARN: "warn", Style.BAD: "bad"}
"""The ends of the style sheet's classes."""


def _rendered(page: Page) -> str:
    """The page as one HTML file, which loads nothing: styles, scripts and pictures are inside."""
    style, script = _file("style.css"), _file("sort.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("page.html")
    at = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = datetime.fromtimestamp(at, UTC).date().isoformat()
    return template.render(page=page, style=style, script=script, policy=policy, version=__version__, date=date)


@cache
def _file(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A source of a Content-Security-Policy. Source: CSP3, 2.3.1."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"slug": slug, "sortable": _sortable, "markdown": _markdown, "code": _code, "shown": shown}
    environment.filters["tone"] = _TONES.get
    environment.tests["part_of"] = lambda part, name: type(part).__name__ == name
    return environment


def _sortable(value: float) -> str:
    """Format a number for JavaScript's `Number`."""
    return repr(value).replace("inf", "Infinity")


def _code(text: str) -> Any:
    """A sentence of a report, in which `...` is code. All else is escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  the text is escaped


def _markdown(text: str) -> Any:
    """Convert a Markdown text of the package to HTML. HTML in it stays text, and its headings are two levels
    lower."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704  the parser escapes the text
