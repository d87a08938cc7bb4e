"""Pages in Chromium: no requests, no warnings, and keyboard and screen reader work."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from support import html_reports
from support.html_reports import NAMES, OF_EACH_KIND

from bloomcli.report import html
from bloomcli.report.html.parts import shown

if TYPE_CHECKING:
    from support.browser import Browser

pytestmark = pytest.mark.interop

TAB, ENTER = 9, 13


@pytest.fixture(params=OF_EACH_KIND)
def page(request: pytest.FixtureRequest, pages: Path) -> Path:
    """The page of each kind of report."""
    path = pages / f"{request.param}.html"
    if not path.exists():
        path.write_text(html.html(OF_EACH_KIND[request.param]()), encoding="utf-8", errors="backslashreplace")
    return path


def test_a_page_opens_without_a_request_and_without_a_complaint(browser: Browser, page: Path) -> None:
    browser.show(page)
    asked = browser.requests()
    assert page.as_uri() in asked
    assert set(asked) <= {page.as_uri(), "data:,"}
    assert browser.messages() == []
    assert (
        browser.run("return document.images.length + document.querySelectorAll('link[rel=stylesheet]').length") == 0
    )
    assert browser.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    texts = browser.run(
        "return [...document.querySelectorAll('th, td, svg text, svg title')].map((e) => e.textContent)"
    )
    assert {shown(name) for name in NAMES if name} <= set(texts), "names are text for the browser, too"
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.querySelectorAll('[onerror], [onload], main img, main script').length") == 0


def test_what_breaks_the_policy_is_logged_and_not_done(browser: Browser, tmp_path: Path) -> None:
    """Proves that the test above can fail."""
    broken = tmp_path / "broken.html"
    text = html.html(html_reports.of_check(2))
    evil = "<main><script>document.title = 'changed'</script><img src='https://example.org/x.png'>"
    broken.write_text(text.replace("<main>", evil, 1), encoding="utf-8")
    browser.show(broken)
    messages = browser.messages()
    assert browser.run("return document.title") != "changed"
    assert any("Content Security Policy" in message for message in messages)
    assert "https://example.org/x.png" in browser.requests()
    assert browser.run("return document.images[0].naturalWidth") == 0


def test_tables_are_sorted_by_keyboard_and_say_so(browser: Browser, page: Path) -> None:
    browser.show(page)
    table = "document.querySelector('section > .scroll > table[data-sortable]:has(th.n)')"
    column = browser.run(f"return [...{table}.tHead.rows[0].cells].findIndex((c) => c.classList.contains('n'))")
    read = f"return [...{table}.tBodies[0].rows].map((r) => Number(r.cells[{column}].dataset.v))"
    head = f"{table}.tHead.rows[0].cells[{column}]"
    before = browser.run(read)
    assert browser.run(f"return {head}.getAttribute('aria-sort')") == "none"
    browser.run(f"{table}.parentElement.focus()")
    for _ in range(column + 1):
        browser.press("Tab", code=TAB)
    assert browser.run(f"return document.activeElement === {head}.firstChild")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter", code=ENTER)
    assert browser.run(read) == sorted(before, reverse=True)
    assert browser.run(f"return {head}.getAttribute('aria-sort')") == "descending"
    assert "sorted by" in browser.run("return document.getElementById('said').textContent")
    browser.press("Enter", code=ENTER)
    assert browser.run(read) == sorted(before)
    assert browser.run(f"return {head}.getAttribute('aria-sort')") == "ascending"
    (node,) = [n for n in browser.tree() if n["role"] == "status"]
    assert node["role"] == "status"


def test_a_screen_reader_gets_names_and_roles(browser: Browser, page: Path) -> None:
    browser.show(page)
    tree = browser.tree()
    charts = [node for node in tree if node["role"] in {"image", "img"}]
    assert len(charts) == browser.run("return document.querySelectorAll('svg').length") > 0
    assert all(len(node["name"]) > 40 for node in charts), "title and description"
    assert {node["role"] for node in tree} >= {"banner", "main", "navigation", "contentinfo", "heading", "table"}
    tables = [node for node in tree if node["role"] == "table"]
    assert all(node["name"] for node in tables)
    heads = [node for node in tree if node["role"] == "columnheader"]
    assert all(node["name"] for node in heads)
    assert all(node["name"] for node in tree if node["role"] in {"region", "button", "link", "DisclosureTriangle"})
    assert not [node for node in tree if node["role"] == "StaticText" and node["name"] in {"×", "@0@"} - set(NAMES)]


def _luminance(rgb: tuple[float, ...]) -> float:
    """Source: WCAG 2.2, "relative luminance"."""
    parts = [c / 255 for c in rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The ratio of two colours' contrast: 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_and_marks_have_enough_contrast_in_both_schemes(browser: Browser, pages: Path, dark: bool) -> None:
    path = pages / "contrast.html"
    path.write_text(html.html(html_reports.of_file(3, ("id",))), encoding="utf-8")
    browser.show(path, dark=dark)
    names = ["paper", "panel", "ink", "dim", "edge", "accent", "second", "good", "warn", "bad"]
    names += [f"q{number}" for number in range(1, 6)]
    script = """
      const probe = document.body.appendChild(document.createElement("i"));
      return arguments[0].map((name) => {
        const found = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
        return [1, 3, 5].map((i) => parseInt(found.slice(i, i + 2), 16));
      });"""
    colours = dict(zip(names, map(tuple, browser.run(script, names)), strict=True))
    for text in ("ink", "dim", "accent", "second", "good", "warn", "bad"):
        for ground in ("paper", "panel"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for level, text in (("q1", "ink"), ("q2", "ink"), ("q3", "ink"), ("q4", "paper"), ("q5", "paper")):
        assert contrast(colours[level], colours[text]) >= 4.5, level
    for mark in ("edge", "accent", "q4", "q5", "bad", "second"):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark
    shades = [_luminance(colours[f"q{n}"]) for n in range(1, 6)]
    assert shades == sorted(shades, reverse=not dark), "levels differ in lightness, so that grey shows them too"


@pytest.mark.parametrize(
    ("page", "how"),
    [
        *((name, "narrow") for name in OF_EACH_KIND),
        ("file", "light"),
        ("lake", "dark"),
        ("check", "grey"),
        ("advice", "print"),
    ],
    indirect=["page"],
)
def test_a_page_is_drawn_in_every_scheme_and_at_the_narrowest_width(
    browser: Browser, page: Path, pages: Path, how: str
) -> None:
    browser.show(
        page,
        dark=how == "dark",
        width=360 if how == "narrow" else 1100,
        medium="print" if how == "print" else "screen",
        greyscale=how == "grey",
    )
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth"), "no sideways scrolling"
    rights = browser.run("return [...document.querySelectorAll('svg')].map(one => one.getBoundingClientRect().right)")
    assert rights or page.stem != "advice"
    assert all(right <= browser.run("return window.innerWidth") for right in rights)
    picture = pages / f"{page.stem}-{how}.png"
    browser.picture(picture)
    image = Image.open(io.BytesIO(picture.read_bytes())).convert("RGB")
    ground = image.getpixel((1, 1))
    assert (sum(ground) < 120) == (how == "dark")
    assert len(image.getcolors(1 << 24)) > 20


def test_a_page_is_printed_in_the_light_scheme_with_all_of_its_tables(browser: Browser, page: Path) -> None:
    browser.show(page, dark=True)
    printed = browser.printed()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") >= 2
