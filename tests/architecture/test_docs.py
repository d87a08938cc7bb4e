"""The documentation is true: links lead somewhere, command lines parse, README shows what its example prints.

``python tests/architecture/test_docs.py`` writes what README.md's example prints today into README.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

import bloomcli
from bloomcli.cli import COMMANDS, command_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FOLDERS = ("docs", "bloomcli/rules/pages", "bloomcli/index", "benchmarks", "fixtures", "tests", "tools", "man")
PAGES = sorted([*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))])
"""Every Markdown file of the repository."""
GUIDES = sorted([README, *(ROOT / "docs").glob("*.md")])
CONTENTS = ROOT / "docs" / "README.md"

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOOK = re.compile(r"(took +)[\d.]+ m?s")


def prose(text: str) -> str:
    """A page without its blocks and its code in sentences, where brackets are no links."""
    return re.sub(r"`[^`\n]+`", "", FENCED.sub("", text))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{n}" if n else slug for slug, last in found.items() for n in range(last + 1)}


def broken_links(page: Path) -> list[str]:
    """The page's relative links that lead to no file, or to no heading of it."""
    found = []
    for link in re.findall(r"\]\(([^()\s]+)\)", prose(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            found.append(link)
    return found


def command_lines(text: str) -> Iterator[str]:
    """The command lines of `bloom` in a page's blocks and tables, without the comments behind them."""
    rows = "\n".join(re.findall(r"^\|.*", FENCED.sub("", text), re.MULTILINE))
    within = re.findall(r"`(bloom [a-z]+ [^`\n]*)`", rows)
    for block in [*FENCED.findall(text), *within]:
        for line in re.sub(r" *\\\n *", " ", block).splitlines():
            found = re.match(r"(?:\$ )?(bloom (?:[a-z]+) .*)", line.strip())
            if found and not found[1].startswith("bloom help "):
                yield re.split(r" {2,}| > | # ", found[1])[0]


def parse(line: str) -> None:
    """Parse a command line without running it; raises what Click raises."""
    _, name, *words = shlex.split(line)
    assert name in COMMANDS, line
    command_of(name).make_context(name, words)


def example(script: str, folder: Path) -> str:
    """The output of README's example, in a shell with `bloom` and `python3` of this process's environment."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def session(script: str, folder: Path) -> str:
    """A script's commands of `bloom`, each with what it prints now, in a folder."""

    def shown(line: re.Match[str]) -> str:
        return f"printf '\\n$ %s\\n' {shlex.quote(line[0])}\n{line[0]}"

    return example(re.sub(r"^bloom .*", shown, script, flags=re.MULTILINE), folder).lstrip("\n")


def current(text: str) -> str:
    """README with what its example prints now."""
    (script,) = EXAMPLE.findall(text)
    with tempfile.TemporaryDirectory() as folder:
        return SHOWN.sub(lambda _: f"```console\n{session(script, Path(folder))}```", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## A `rule`, and more\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    good = "[a](there.md) [b](there.md#a-rule-and-more) [c](there.md#twice-1) [d](#page) [e](https://example.org/x#y)"
    page.write_text(f"# Page\n\n{good} `[no](link.md)`\n\n```\n[no](link.md)\n```\n")
    assert broken_links(page) == []
    page.write_text(f"# Page\n\n{good} [f](gone.md) [g](there.md#gone) [h](#gone) [i](there.md#twice-2)\n")
    assert broken_links(page) == ["gone.md", "there.md#gone", "#gone", "there.md#twice-2"]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_command_lines_in_the_guides_parse(page: Path) -> None:
    lines = list(command_lines(page.read_text()))
    for line in lines:
        parse(line)
    if page == README:
        assert len(lines) > 20
        with pytest.raises(click.UsageError):
            parse(f"{lines[0]} --no-such-option")


@pytest.mark.parametrize(
    "page", [*GUIDES, ROOT / "CONTRIBUTING.md", *(ROOT / "benchmarks").glob("*.md")], ids=lambda page: page.stem
)
def test_modules_and_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for name in set(re.findall(r"\bbloomcli(?:\.\w+)+", text)):
        found: object = bloomcli
        for step, part in enumerate(name.split(".")[1:], 2):
            with suppress(ModuleNotFoundError):
                import_module(".".join(name.split(".")[:step]))
            assert hasattr(found, part), name
            found = getattr(found, part)
    files = set(re.findall(r"`(?:python )?((?:bloomcli|tests|tools|benchmarks|fixtures|man|docs)/[\w./-]*)", text))
    exact = [name for name in files if not re.search(r"\b(ID|COMMAND)\b", name)]  # others stand for many
    assert [name for name in exact if not (ROOT / name).exists()] == []


def test_every_guide_is_listed_once_as_the_kind_that_its_first_sentence_says() -> None:
    kinds = {"How-to": "How-to.", "Reference": "Reference.", "Internals": "Internals."}
    listed: dict[str, str] = {}
    sections = re.compile(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    for kind, section in sections.findall(CONTENTS.read_text()):
        for name in re.findall(r"\]\(([\w-]+\.md)\)", section):
            assert name not in listed
            listed[name] = kinds[kind]
    pages = [page for page in GUIDES if page not in (README, CONTENTS)]
    assert sorted(listed) == sorted(page.name for page in pages)
    says = {page.name: page.read_text().split("\n\n")[1] for page in pages if page.name != "start.md"}
    assert [name for name, text in says.items() if not text.startswith(f"**{listed[name]}** ")] == []
    assert "](docs/README.md)" in README.read_text()


CODE = ("bloomcli", "tests", "tools", "benchmarks", "fixtures", "man")
LINK = re.compile(r"(?<![\w/])docs/[\w/-]+\.(?:md|yml|yaml|py)(?:#[\w-]+)?")


def test_code_and_messages_name_pages_and_headings_that_are_there() -> None:
    files = [ROOT / "action.yml", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    files += [f for name in CODE for f in (ROOT / name).rglob("*") if f.suffix in {".py", ".pyx", ".pxi", ".1", ".7"}]
    found = {(f, link) for f in files for link in LINK.findall(f.read_text(encoding="utf-8").replace("\\-", "-"))}
    assert len(found) > 40
    gone = []
    for file, link in found:
        name, _, anchor = link.partition("#")
        page = ROOT / name
        if not page.exists() or (anchor and anchor not in anchors(page.read_text(encoding="utf-8"))):
            gone.append(f"{file.relative_to(ROOT)}: {link}")
    assert sorted(gone) == []


def test_the_documentation_stays_short() -> None:
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in GUIDES)
    assert words <= 25_000, "what the help, a docstring or another page says needn't be said here"


def test_readme_is_two_screens() -> None:
    assert len(README.read_text().splitlines()) <= 120


@pytest.mark.slow
def test_readme_s_example_prints_what_it_shows(tmp_path: Path) -> None:
    """Twice in a row, in one folder."""
    text = README.read_text()
    (shown,), (script,) = SHOWN.findall(text), EXAMPLE.findall(text)
    for _ in range(2):
        printed = session(script, tmp_path)
        assert TOOK.sub(r"\1", printed) == TOOK.sub(r"\1", shown), "run python tests/architecture/test_docs.py"
    assert re.findall(r"^\$ (.*)", shown, re.MULTILINE) == re.findall(r"^bloom .*", script, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["orders.parquet"]
    assert {f.row_group for f in bloomcli.inspect(tmp_path / "orders.parquet").filters} == {0, 1, 2, 3}


@pytest.mark.slow
def test_readme_s_picture_is_current() -> None:
    from tools import picture

    assert picture.main(["--check"]) == 0, "run python -m tools.picture"
    assert f"]({picture.PICTURE.relative_to(ROOT).as_posix()})" in README.read_text()
    drawn = picture.PICTURE.read_text(encoding="utf-8").replace("&#160;", " ")
    assert "$ bloom inspect orders.parquet" in drawn
    assert "4 of 4" in drawn
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", ""), "nothing is loaded from elsewhere"


if __name__ == "__main__":
    README.write_text(current(README.read_text()))
