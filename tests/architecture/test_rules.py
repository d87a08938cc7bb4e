"""Rules, their pages, and the code that emits them agree: what a page says to type parses, what it shows is valid."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.modules import facts

from bloomcli.cli import COMMANDS, command_of
from bloomcli.errors import UsageError
from bloomcli.model.file import Severity
from bloomcli.policy import policy_file
from bloomcli.rules import RULES, page
from tools import rules_index

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bloomcli"
PAGES = PACKAGE / "rules" / "pages"
RULES_MODULE = PACKAGE / "rules" / "__init__.py"

ID = re.compile(
    r"(?!(?:value-id|value-counts|statistics-path|page-index)$)"
    r"(value|filter|engine-filter|page|profit|reader|statistics|row-index|sorting|size)-[a-z0-9-]+"
    r"|table-(bounds|counts|partition|splits)|footer-unverified"
)
"""Iceberg's metadata have a value-id, value-counts and a statistics-path, `repair` adds a page-index, and commands
have options about tables."""
HEADINGS = ["What it does", "Why is this bad?", "How to fix it", "When to switch it off"]
FORMATS = {"parquet": "Parquet", "orc": "ORC", "mosaic": "Mosaic"}
CHECKED = {
    "always": "always",
    "--deep": "with `--deep`",
    "its limit": "with a limit",
    "a policy": "with a policy",
    "readers": "with named readers",
    "--table": "with `--table`",
}


def modules() -> Iterator[Path]:
    """The package's modules but the one that lists the rules."""
    yield from (path for path in sorted(PACKAGE.rglob("*.py")) if path != RULES_MODULE)


def emitted() -> dict[str, set[str]]:
    """Every id that the code names, with the parts of the package (``formats/orc``, ``checks``) that do."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        parts = path.relative_to(PACKAGE).parts
        part = "/".join(parts[:2]) if parts[0] == "formats" else parts[0]
        for value in facts(path).literals:
            if isinstance(value, str) and ID.fullmatch(value):
                found[value].add(part)
    return found


EMITTED = emitted()


def sections(id_: str) -> dict[str, str]:
    """A page's sections by heading."""
    parts = re.split(r"^## (.+)\n", page(id_), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def snippets(id_: str, language: str) -> list[str]:
    """The page's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page(id_), re.MULTILINE | re.DOTALL)


def spans(id_: str) -> list[str]:
    """The page's code within sentences."""
    prose = re.sub(r"^```.*?^```$", "", page(id_), flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]


def parse(line: str) -> None:
    """Parse a command line without running it; raises what Click raises."""
    words = shlex.split(line, comments=True)
    assert words[0] == "bloom"
    assert words[1] in COMMANDS, line
    command_of(words[1]).make_context(words[1], words[2:])


def test_every_id_in_the_code_is_a_rule() -> None:
    assert EMITTED.keys() - RULES.keys() == set()


def test_every_rule_is_emitted() -> None:
    assert RULES.keys() - EMITTED.keys() == set()


def test_findings_have_their_rule_s_usual_severity_or_the_page_says_which() -> None:
    checked = set()
    for path in modules():
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Severity." in text else ():
            if not isinstance(node, ast.Call):
                continue
            given = [*node.args, *(k.value for k in node.keywords)]
            ids = [g.value for g in given if isinstance(g, ast.Constant) and g.value in RULES]
            named = [g for g in given if isinstance(g, ast.Attribute) and isinstance(g.value, ast.Name)]
            found = [g.attr for g in named if g.value.id == "Severity"]
            if len(ids) == len(found) == 1:
                severity = Severity[found[0]]
                said = f"a {severity.value}" in sections(ids[0])["What it does"]
                assert severity is RULES[ids[0]].severity or said, f"{path}: {ids[0]}"
                checked.add(ids[0])
    assert len(checked) > 8


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    assert {path.stem for path in PAGES.iterdir()} == RULES.keys()
    with pytest.raises(UsageError, match="no rule 'filter-ofset'") as caught:
        page("filter-ofset")
    assert "filter-offset" in (caught.value.hint or "")


@pytest.mark.parametrize("id_", RULES)
def test_a_page_has_every_section_and_right_facts(id_: str) -> None:
    rule = RULES[id_]
    title, summary, facts, *_ = page(id_).split("\n\n")
    assert title == f"# {id_}"
    assert re.fullmatch(r"[A-Z].*[a-z0-9)]\.", summary, re.DOTALL), "one sentence"
    assert ". " not in summary.replace("\n", " ")
    named = re.search(r"Formats: (.+?) ·", facts)
    assert named is not None
    formats = named[1].split(", ")
    assert formats == [name for name in FORMATS.values() if name in formats], "known ones, in their order"
    assert facts == (
        f"Group: {rule.group.value} · Severity: {rule.severity.value} · Formats: {', '.join(formats)}"
        f" · Checked: {CHECKED[rule.when.value]}"
    )
    found = sections(id_)
    assert list(found) == HEADINGS
    assert all(text.strip() for text in found.values())
    lines = page(id_).splitlines()
    assert 15 <= len(lines) <= 45
    assert max(map(len, lines)) <= 110
    assert page(id_).endswith("\n")


@pytest.mark.parametrize("id_", RULES)
def test_a_page_names_the_formats_that_the_rule_is_emitted_for(id_: str) -> None:
    named = re.search(r"Formats: (.+?) ·", page(id_))
    assert named is not None
    emitters = {part.removeprefix("formats/") for part in EMITTED[id_]}
    of_formats = {FORMATS[part] for part in emitters & FORMATS.keys()}
    assert of_formats <= set(named[1].split(", "))
    if emitters <= FORMATS.keys():  # else a module that all formats share emits it, too
        assert of_formats == set(named[1].split(", "))


@pytest.mark.parametrize("id_", RULES)
def test_command_lines_on_a_page_parse(id_: str) -> None:
    lines = [line for block in snippets(id_, "sh") for line in block.splitlines()]
    for line in lines:
        parse(line)
    for span in spans(id_):
        if span.startswith("bloom "):
            if len(span.split()) > 2:
                parse(span)
            else:
                assert span.split()[1] in COMMANDS, span
    assert lines, "a page says what to type"


def test_a_command_line_that_is_wrong_does_not_parse() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parse("bloom fold --fp 0.01 --in-place orders.parquet")
    with pytest.raises(AssertionError):
        parse("bloom mend orders.parquet")


def test_options_on_pages_are_options_of_some_command() -> None:
    known = {o for name in COMMANDS for p in command_of(name).params for o in (*p.opts, *p.secondary_opts)}
    named = {span.split()[0] for id_ in RULES for span in spans(id_) if span.startswith("--")}
    assert len(named) > 5
    assert named - known == set()


@pytest.mark.parametrize("id_", RULES)
def test_policies_on_a_page_are_policies(id_: str, tmp_path: Path) -> None:
    off = sections(id_)["When to switch it off"].strip()
    texts = snippets(id_, "toml")
    assert off.startswith("Never: ") == (not texts), "a policy that switches it off, or why that is never right"
    for text in texts:
        assert text in off
        switched = tomllib.loads(text)["off"]
        assert id_ in switched
        assert switched.keys() <= RULES.keys()
        path = tmp_path / policy_file.NAME
        path.write_text(text)
        assert policy_file.load(path).whole.off == switched


def test_rules_that_lose_rows_are_never_to_be_switched_off() -> None:
    never = {id_ for id_ in RULES if sections(id_)["When to switch it off"].strip().startswith("Never: ")}
    assert {"value-missing", "filter-all-zero", "filter-boolean", "filter-length", "filter-overlap"} <= never
    assert not {id_ for id_ in never if RULES[id_].severity is not Severity.ERROR}


def test_the_table_of_rules_is_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert rules_index.main(["--check"]) == 0, "run python -m tools.rules_index"
    text = rules_index.INDEX.read_text()
    links = re.findall(r"^\|\[`(.+?)`\]\((.+?)\)\|", text, re.MULTILINE)
    assert sorted(id_ for id_, _ in links) == sorted(RULES)
    assert all((ROOT / "docs" / target).resolve() == PAGES / f"{id_}.md" for id_, target in links)
    copy = tmp_path / "docs" / "rules.md"
    assert rules_index.main(["--check", str(copy)]) == 1
    assert rules_index.main([str(copy)]) == 0
    assert rules_index.main(["--check", str(copy)]) == 0
    copy.write_text(copy.read_text().replace("error", "fault"))
    assert rules_index.main(["--check", str(copy)]) == 1
