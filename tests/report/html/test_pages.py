"""Pages without a browser: their contents and limits, their size, and that every text stays text."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from support import html_reports, work
from support.html_reports import NAMES, OF_EACH_KIND

import bloomcli
from bloomcli.errors import UnsupportedError, install
from bloomcli.report import html
from bloomcli.report.html.parts import ROWS_SHOWN, shown, table
from bloomcli.report.layout import Head
from bloomcli.rules import RULES

LARGE: dict[str, Callable[[], Any]] = {
    "over 20,000 filters": lambda: html_reports.of_file(2000),
    "2,000 files": lambda: html_reports.of_lake(2000),
    "advice on 1,000 columns": lambda: html_reports.of_advice(tuple(f"c{n}" for n in range(1000))),
    "20,000 findings": lambda: html_reports.of_check(20_000),
    "1,000 columns": lambda: html_reports.of_file(3, tuple(f"c{n}.{'x' * 150}" for n in range(1000))),
}
"""Work for each pair of rows would be above the limit of `MOST_CALLS`."""
MOST_CALLS = 1_500_000


@functools.cache
def page_of(name: str) -> str:
    """The page of a small report, written once for all tests that only read it."""
    return html.html(OF_EACH_KIND[name]())


class Parsed(HTMLParser):
    """A page's elements and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def test_a_path_cannot_turn_the_heading_around() -> None:
    page = html.html(replace(html_reports.of_file(), path="/data/\u202etxt.\n.parquet"))
    assert "\u202e" not in page
    heading = "/data/\\u202etxt.\\n.parquet"
    assert f"<h1>{heading}</h1>" in page
    assert f"<title>bloom inspect: {heading}</title>" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_names_stay_text_in_tables_and_charts(name: str) -> None:
    page = Parsed(page_of(name))
    assert len(page.all("script")) == 1
    assert not {tag for tag, _ in page.elements} & {"img", "b", "i", "iframe", "object"}
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    texts = set(page.texts)
    for column in NAMES:
        if column:
            assert shown(column) in texts, column
    assert not any(text.strip() == "49" for text in page.texts), "a template ran within a name"


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_the_policy_forbids_all_but_the_page_s_own_style_and_script(name: str) -> None:
    text = page_of(name)
    page = Parsed(text)
    (policy,) = (m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not [tag for tag, attributes in page.elements if "style" in attributes], "the policy ignores them"
    linked = [
        v for _, attributes in page.elements for k, v in attributes.items() if k in {"src", "href", "xlink:href"}
    ]
    assert all(value is not None and value.startswith(("#", "data:,")) for value in linked)
    assert (
        "http"
        not in re.sub(r"<(style|script)>.*?</\1>|http-equiv", "", text, flags=re.DOTALL).replace("https://", "http")
        or name == "check"
    )


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_a_page_has_a_language_headings_in_order_and_tables_with_captions_and_scopes(name: str) -> None:
    text = page_of(name)
    page = Parsed(text)
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    tables = text.count("<table")
    assert tables
    assert text.count("<caption>") == text.count("<table data-sortable>") + text.count("<table>") - _documents(text)
    assert all(head.get("scope") in {"col", "row"} for head in page.all("th")) or name == "check"
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {value.removeprefix("#") for a in page.all("a") + page.all("use") if (value := a.get("href"))}
    assert {t for t in targets if not t.startswith("http")} <= set(ids)
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        assert set((svg["aria-labelledby"] or "").split()) <= set(ids)


def _documents(text: str) -> int:
    """Tables in the rules' pages, which are Markdown and have no captions."""
    return sum(
        part.count("<table>") for part in re.findall(r'<details class="document">.*?</details>', text, re.DOTALL)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_reports_are_aggregated_and_a_part_says_that_it_is_one(name: str) -> None:
    report = LARGE[name]()
    texts: list[str] = []
    assert work.calls(lambda: texts.append(html.html(report))) < MOST_CALLS, "a million are the most"
    (text,) = texts
    assert len(text.encode("utf-8", "backslashreplace")) < 1_000_000
    assert name != "over 20,000 filters" or len(report.filters) > 20_000
    parts = (getattr(report, key, None) for key in ("findings", "filters", "rows", "columns"))
    total = next(len(part) for part in parts if isinstance(part, tuple))
    if total > ROWS_SHOWN:
        assert re.search(rf"The table shows [\d,]+ of {total:,} lines", text)
    assert max(text.count("<tr>", start, end) for start, end in _tables(text)) <= ROWS_SHOWN + 1


def _tables(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"<table.*?</table>", text, re.DOTALL)]


@pytest.mark.slow
def test_the_same_report_is_the_same_page() -> None:
    assert html.html(html_reports.of_file()) == html.html(html_reports.of_file())


def test_a_rule_s_page_is_folded_in_where_there_is_a_finding() -> None:
    text = html.html(html_reports.of_check(3))
    for id_ in list(RULES)[:3]:
        assert f"<summary>{id_}: " in text
    assert "<h4>Why is this bad?</h4>" in text
    assert f"<summary>{list(RULES)[5]}" not in text


def test_python_writes_the_page_of_a_report(fixtures: Path) -> None:
    text = bloomcli.html(bloomcli.inspect(fixtures / "parquet" / "spark_types.parquet"))
    assert text.startswith("<!DOCTYPE html>")
    assert "spark_types.parquet" in text
    many = bloomcli.html(bloomcli.inspect([fixtures / "parquet"]))
    assert "All files" in many
    with pytest.raises(TypeError, match="a ProbeReport has no page"):
        bloomcli.html(bloomcli.probe(fixtures / "parquet" / "orders.parquet", 7, column="id"))  # type: ignore[arg-type]


def test_the_page_of_a_check_has_one_hint_for_each_rule() -> None:
    """A hint in each line of the findings repeated the same command for each file."""
    check = html_reports.of_check(60)
    rules = {finding.id for finding in check.findings if finding.hint and finding.off is None and not finding.known}
    parsed = Parsed(html.html(check))
    (table,) = re.findall(r"<table[^>]*>\s*<caption>What to do</caption>.*?</table>", html.html(check), re.DOTALL)
    assert table.count("<tr>") == 1 + len(rules) > 1
    hints = {finding.hint for finding in check.findings if finding.hint}
    assert sum(text in hints for text in parsed.texts) <= len(rules)


def test_a_column_in_which_no_row_has_anything_is_left_out() -> None:
    columns = [(Head(title), itemgetter(at)) for at, title in enumerate(("file", "option", "hint", "lookups"))]
    made = table("t", [("a", "-", "", "0"), ("b", "", "-", "-")], columns)
    assert [head.title for head in made.heads] == ["file", "lookups"]
    assert [[cell.text for cell in row] for row in made.rows] == [["a", "0"], ["b", "-"]]
    assert len(table("t", [], columns).heads) == 4


def test_a_missing_package_is_an_error_that_names_the_extra_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None if name == "markdown_it" else object())
    with pytest.raises(UnsupportedError, match="markdown_it") as raised:
        html.html(html_reports.of_file())
    assert raised.value.hint == install("report")
    from bloomcli.cli import run

    assert run(["inspect", str(tmp_path / "none.parquet"), "--report", f"html={tmp_path / 'p.html'}"]) == 4


def test_the_page_of_many_files_is_titled_by_the_directory_that_all_are_in() -> None:
    report = html_reports.of_lake(2)
    for paths, title in (
        (("s3://lake/a/x.parquet", "s3://lake/a0/y.parquet"), "2 files in s3://lake/"),
        (("s3://lake/a/x.parquet", "s3://lake/a/y.parquet"), "2 files in s3://lake/a/"),
        (("x.parquet", "y.parquet"), "2 files"),
    ):
        rows = [replace(report.rows[0], path=path) for path in paths]
        assert html.page_of(replace(report, rows=tuple(rows)), 10).title == title
