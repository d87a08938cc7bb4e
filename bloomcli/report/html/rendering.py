"""Writes a page as HTML. Jinja2 escapes every text, and the page's policy forbids everything that it doesn't need."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomcli.report.html.parts import Page, shown, slug
from bloomcli.report.layout import Style
from bloomcli.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")
_TONES = {Style.DIM: "dim", Style.GOOD: "good", Style.WARN: "warn", Style.BAD: "bad"}
"""The ends of the style sheet's classes."""


def rendered(page: Page) -> str:
    """Return the page as one HTML file, which loads nothing: styles, scripts and pictures are inside."""
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

    made = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    made.filters |= {"slug": slug, "sortable": _sortable, "markdown": _markdown, "code": _code, "shown": shown}
    made.filters["tone"] = _TONES.get
    made.tests["part_of"] = lambda part, name: type(part).__name__ == name
    return made


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
