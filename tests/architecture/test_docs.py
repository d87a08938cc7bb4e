"""The documentation is true: links lead somewhere, command lines parse, README shows what its commands print.

``python tests/architecture/test_docs.py`` writes what README's commands print today into README.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
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
from bloomcli.cli import COMMANDS

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FOLDERS = ("docs", "bloomcli/rules/pages", "benchmarks", "fixtures", "tests", "tools", "man")
PAGES = sorted([*ROOT.glob("*.md"), *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md"))])
"""Every Markdown file of the repository."""
GUIDES = sorted([README, *(ROOT / "docs").glob("*.md")])

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```console\n\$ (?P<line>.+)\n(?P<shown>(?:.*\n)*?)```$", re.MULTILINE)
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
    """The command lines of `bloom` in a page's blocks, without what a table of commands says behind them."""
    blocks = [*FENCED.findall(text), *re.findall(r"(?:^ {4,}.*\n)+", FENCED.sub("", text), re.MULTILINE)]
    for block in blocks:
        for line in re.sub(r" *\\\n *", " ", block).splitlines():
            found = re.match(r"(?:\$ )?(bloom (?:[a-z]+) .*)", line.strip())
            if found and not found[1].startswith("bloom COMMAND"):
                yield re.split(r" {2,}| > | # ", found[1])[0]


def parse(line: str) -> None:
    """Parse a command line without running it; raises what Click raises."""
    _, name, *words = shlex.split(line)
    assert name in COMMANDS, line
    import_module(f"bloomcli.cli.{name}").command.make_context(name, words)


def current(text: str) -> str:
    """A page with what its commands print now: they run one after the other where `fixtures` lies."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "fixtures" / "parquet", Path(folder, "fixtures", "parquet"))

        def run(session: re.Match[str]) -> str:
            command = [sys.executable, "-m", "bloomcli", *shlex.split(session["line"])[1:]]
            env = os.environ | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
            shown = "\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines())
            return f"```console\n$ {session['line']}\n{shown}\n```"

        return SESSION.sub(run, text)


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


@pytest.mark.parametrize("page", [*GUIDES, *(ROOT / "benchmarks").glob("*.md")], ids=lambda page: page.stem)
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


def test_every_guide_is_linked_from_the_readme() -> None:
    text = README.read_text()
    assert [page.name for page in GUIDES[1:] if f"](docs/{page.name})" not in text] == []


def test_readme_shows_what_its_commands_print() -> None:
    text = README.read_text()
    assert len(SESSION.findall(text)) == 4
    assert TOOK.sub(r"\1", current(text)) == TOOK.sub(r"\1", text), "run python tests/architecture/test_docs.py"


def test_readme_s_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    shutil.copy(ROOT / "fixtures" / "parquet" / "orders.parquet", tmp_path)
    lake = tmp_path / "lake"
    lake.mkdir()
    shutil.copy(ROOT / "fixtures" / "parquet" / "spark_types.parquet", lake)
    (tmp_path / "bloom.toml").write_text('[off]\nfilter-boolean = "parquet-java writes it"\n')
    monkeypatch.chdir(tmp_path)
    ran: dict[str, object] = {}
    exec(program.replace("/data/orders", str(lake)), ran)
    assert (tmp_path / "out.parquet").is_file()
    assert ran["report"]


def test_readme_s_python_has_the_types_that_it_uses(tmp_path: Path) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "example.py").write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "example.py"]
    env = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


if __name__ == "__main__":
    README.write_text(current(README.read_text()))
