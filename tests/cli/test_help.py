"""Help, manual pages, completion, README's tables: the text for new users is complete and current."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pyarrow as pa
import pytest
from support.cli import Bloom

from bloomcli import __version__
from bloomcli.cli import COMMANDS, EXIT_CODES, command_of, versions
from bloomcli.cli.grouped import GroupedCommand, GroupedOption
from bloomcli.commands.option import GROUPS
from tools import man

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_complete_and_fits_a_terminal(bloom: Bloom, name: str) -> None:
    command = command_of(name)
    assert command.help
    assert command.short_help
    assert all(p.help for p in command.params if isinstance(p, click.Option))
    shown = bloom(name, "--help")
    assert shown.code == 0
    assert shown.out == bloom("help", name).out
    assert "Examples:" in shown.out
    assert "\b" not in shown.out
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  bloom ")]
    assert examples
    for line in examples:
        words = shlex.split(line, comments=True)
        end = next((i for i, w in enumerate(words) if w in {">", "||"}), len(words))
        assert words[1] == name
        command.make_context(name, words[2:end])
    parts = command.commands if isinstance(command, click.Group) else {}
    for part, one in {"": command, **parts}.items():
        words = [name, part] if part else [name]
        context = click.Context(one, info_name=" ".join(("bloom", *words)), terminal_width=80, max_content_width=80)
        assert [line for line in one.get_help(context).splitlines() if len(line) > 80] == [], words
        assert bloom("help", *words).out == bloom(*words, "--help").out


def every_command() -> list[tuple[str, GroupedCommand]]:
    """The commands with options in groups, those of `bloom index` too, by their words."""
    found: list[tuple[str, click.Command]] = [(name, command_of(name)) for name in COMMANDS]
    parts = [(f"index {name}", one) for name, one in vars(dict(found)["index"])["commands"].items()]
    return [(words, one) for words, one in (*found, *parts) if isinstance(one, GroupedCommand)]


@pytest.mark.parametrize(("words", "command"), every_command(), ids=lambda it: it if isinstance(it, str) else "")
def test_options_are_in_groups_with_the_common_ones_first(bloom: Bloom, words: str, command: GroupedCommand) -> None:
    context = click.Context(command)
    assert all(isinstance(one, GroupedOption) for one in command.params if isinstance(one, click.Option))
    groups = command.grouped(context)
    assert [title for title, _ in groups] == [title for title in GROUPS if title in dict(groups)]
    shown = bloom(*words.split(), "--help").out.splitlines()
    assert [line[:-1] for line in shown if line.endswith(":") and line[:-1] in GROUPS] == [
        title for title, _ in groups
    ]
    for _, options in groups:
        common = [getattr(one, "common", False) for one in options]
        assert common == sorted(common, reverse=True)
    page = (ROOT / "man" / f"bloom-{words.replace(' ', '-')}.1").read_text()
    assert re.findall(r"^\.SS (.*)", page, re.MULTILINE) == [title for title, _ in groups]


@pytest.mark.parametrize(("words", "command"), every_command(), ids=lambda it: it if isinstance(it, str) else "")
def test_the_short_help_has_the_common_options_and_two_examples(
    bloom: Bloom, words: str, command: GroupedCommand
) -> None:
    done = bloom(*words.split(), "-h")
    assert (done.code, done.err) == (0, "")
    options = [one for one in command.params if isinstance(one, GroupedOption) and not one.hidden]
    shown = {one.opts[-1] for one in options if re.search(rf"^  .*{one.opts[-1]}\b", done.out, re.MULTILINE)}
    assert shown >= {one.opts[-1] for one in options if one.common}
    assert 1 <= sum(one.common for one in options) <= 10
    assert len(re.findall(rf"^  bloom {words}", done.out, re.MULTILINE)) == min(
        2, (command.epilog or "").count("bloom ")
    )
    assert f"`bloom {words} --help` shows all" in done.out
    assert len(done.out.splitlines()) <= 45
    assert len(done.out) < len(bloom(*words.split(), "--help").out)


def test_help_has_no_text_about_other_commands(bloom: Bloom) -> None:
    """Options that several commands share were described for all of them."""
    for words, _ in every_command():
        shown = " ".join(bloom(*words.split(), "--help").out.split())
        assert "add, remove, fold" not in shown
        assert "(validate: and findings)" not in shown
        assert ("change no file if one is refused" in shown) == (words in {"add", "fold", "remove", "repair"})
        assert "[x>=" not in shown


@pytest.mark.slow
def test_the_manual_pages_are_current(tmp_path: Path) -> None:
    assert man.outdated(ROOT / "man") == [], "run python -m tools.man"
    assert man.main([str(tmp_path)]) == 0
    assert man.main(["--check", str(tmp_path)]) == 0
    (tmp_path / "bloom-add.1").write_text("old")
    (tmp_path / "bloom-gone.1").write_text("of a command that is no more")
    assert man.outdated(tmp_path) == ["bloom-add.1", "bloom-gone.1"]
    assert man.main(["--check", str(tmp_path)]) == 1


def test_the_page_of_the_commands_has_the_exit_codes_and_readme_every_command() -> None:
    page, readme = (ROOT / "docs" / "commands.md").read_text(), (ROOT / "README.md").read_text()
    for code, text in EXIT_CODES.items():
        assert f"| {code} | {text} |" in page
    for name in COMMANDS:
        assert f"bloom {name} " in readme


def test_version(bloom: Bloom) -> None:
    assert bloom("--version").out == bloom("-V").out == f"bloom {__version__}\n"


@pytest.mark.parametrize("words", [["--version", "--verbose"], ["--verbose", "-V"]])
def test_the_versions_that_matter_are_one_line_each(bloom: Bloom, words: list[str]) -> None:
    lines = bloom(*words).out.splitlines()
    assert lines[0] == f"bloom {__version__}"
    found = dict(line.split(" ", 1) for line in lines)
    assert found["pyarrow"] == pa.__version__
    assert found["python"].startswith(platform.python_version())
    assert {"click", "cramjam", "protobuf", "thriftpy2", "pyspark", "paimon-mosaic"} <= found.keys()
    assert "pyorc" not in found, "for tests only"
    assert bloom("--verbose", "inspect", "f").code == 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(of: list[str]) -> set[str]:
        return {re.split(r"[<>=\[]", text)[0] for text in of}

    assert set(versions.REQUIRED) == names(project["dependencies"])
    extras = {extra: names(of) for extra, of in project["optional-dependencies"].items()}
    for_tests = extras.pop("test")
    assert set(versions.OPTIONAL) == set().union(*extras.values())
    assert set(versions.OPTIONAL) - for_tests <= {"requests"}, "tests run all extras; an SDK brings this package"


def test_versions_are_found_without_importing_what_they_are_of() -> None:
    program = (
        "import sys\nfrom bloomcli.cli import run\nrun(['--version', '--verbose'])\n"
        "sys.exit(any(name in sys.modules for name in ('pyarrow', 'pyspark', 'thriftpy2')))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT).returncode == 0


def test_help_alone_is_the_help_of_bloom(bloom: Bloom) -> None:
    assert bloom("help").out == bloom("--help").out
    assert "help      Show the help" in bloom("help").out
    assert bloom("help", "nothing").code == 2
    assert "Did you mean find?" in bloom("help", "fnd").err
    assert "Did you mean build?" in bloom("help", "index", "bild").err
    assert "tria\n" not in bloom("help", "--help").out
    assert bloom("help", "--help").code == 0


@pytest.mark.parametrize("names", [["index", "nothing"], ["add", "nothing"]])
def test_help_of_a_command_that_is_none_says_which_there_are(bloom: Bloom, names: list[str]) -> None:
    done = bloom("help", *names)
    assert done.code == 2
    assert ("build, inspect, update" if names[0] == "index" else "`bloom add` has no commands") in done.err


def test_defaults_are_shown_as_they_are_written(bloom: Bloom) -> None:
    assert not re.search(r"default:\s+\(", bloom("trial", "--help").out)
