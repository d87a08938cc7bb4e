"""The command lines in hints of errors run, and do what the hint says. `tests/golden/test_rule_fixtures.py` does the
same for the hints of findings.

`HINTS` has the hints of the code that contain a command line, with `…` for what the code fills in. Each has a command
that fails with this hint, or the reason why the hint can't be tried here.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest
from support.cli import Bloom
from support.shell import arguments

import bloomcli
from bloomcli import cli
from bloomcli.cli import COMMANDS

PACKAGE: Final = Path(bloomcli.__file__).parent
FIXTURES: Final = PACKAGE.parent / "fixtures"


class Case(NamedTuple):
    """A command that fails, and what its hint leads to."""

    line: str
    """The command line. Its files are those of `folder`."""
    hinted: str
    """The hint's command lines, joined by " && ", with a user's words in place of those in capitals."""
    first: str = ""
    """A command line that makes a file for it."""
    instead: str = ""
    """What the hint tells to run in place of `hinted`, where this is a command without its arguments."""
    again: int = 0
    """The exit code of the failing command after the hint's; 2 if the hint's stands in its place."""
    words: tuple[tuple[str, str], ...] = ()
    """The words in capitals, and what a user puts in their place."""


SPARK: Final = "a session with the table is needed; tests/tables runs such command lines"

HINTS: Final[dict[str, Case | str]] = {
    "bloom --version --verbose": Case("bloom --verbose inspect orders.parquet", "bloom --version --verbose", again=2),
    "It is a path: try `bloom inspect …`.": Case("bloom orders.parquet", "bloom inspect orders.parquet", again=2),
    "bloom find … VALUE -c …": Case(
        "bloom find orders.parquet -c id",
        "bloom find orders.parquet 3 -c id",
        again=2,
        words=(("VALUE", "3"),),
    ),
    "name them with --columns, or require them in a policy; `bloom advise FILE` says which columns need"
    " filters": Case(
        "bloom add orders.parquet -o new", "bloom advise orders.parquet", again=2, words=(("FILE", "orders.parquet"),)
    ),
    "`bloom inspect …` lists a file's columns": Case(
        "bloom advise orders.parquet -c nope", "bloom inspect orders.parquet", again=2
    ),
    "`bloom index build DIRECTORY -c COLUMN -o FILE` builds one": Case(
        "bloom find lake 3 -c id --index orders.parquet",
        "bloom index build lake -c id -o index",
        again=3,
        words=(("DIRECTORY", "lake"), ("COLUMN", "id"), ("FILE", "index")),
    ),
    "`bloom index build DIRECTORY -c … -o … --overwrite` rebuilds it": Case(
        "bloom find lake 3 -c id --index cut.index",
        "bloom index build lake -c id -o cut.index --overwrite",
        words=(("DIRECTORY", "lake"), ("COLUMN", "id")),
    ),
    "…`bloom index build PATHS --columns … -o … --overwrite`": Case(
        "bloom find lake open -c status --index index",
        "bloom index build lake --columns id,status -o index --overwrite",
        first="bloom index build lake -c id -o index",
        words=(("PATHS", "lake"),),
    ),
    "`bloom index build` makes an index of other columns": "no command passes other columns than the index has",
    "`bloom validate --explain` lists the rules": Case(
        "bloom validate --explain nope", "bloom validate --explain", again=2
    ),
    "`--readers …` or the like says that … …n't read the file; `bloom validate --explain …` says more": Case(
        "bloom add scores.parquet -c score -o new",
        "bloom validate --explain reader-float16",
        instead="bloom validate --explain reader-float16 && bloom add scores.parquet -c score -o new"
        " --readers spark,trino --replace",
        again=2,
    ),
    "`bloom validate --init` writes one": Case(
        "bloom validate lake --policy bloom.toml", "bloom validate --init", instead="bloom validate --init lake"
    ),
    "say … if only readers with the draft will open it; `bloom remove` makes it version 1": Case(
        "bloom add plain.mosaic -c '*' -o new", "bloom remove", instead="bloom remove draft.mosaic -o plain", again=2
    ),
    "`bloom advise … …` lists the predicates that filters can't serve": Case(
        "bloom trial orders.parquet --queries log.sql --readers pyarrow",
        "bloom advise orders.parquet --queries log.sql",
        again=2,
    ),
    "…; of other readers, see `bloom validate --readers`": Case(
        "bloom trial orders.parquet --readers xyz",
        "bloom validate --readers",
        instead="bloom validate filtered.parquet --readers impala",
        again=2,
    ),
    " `bloom add FILE --columns NAME -o OUT` adds some.": "a line of a report, and no hint of an error",
    "bloom find VALUE -c … --table … searches the table's rows; ": SPARK,
    "name its directory instead of the table: `bloom add DIRECTORY --columns NAME --in-place`": SPARK,
    "`bloom add -o DIRECTORY` writes changed copies of its files; the table's own engine writes new files": SPARK,
    "`bloom inspect` without --footer sums it up": "a footer of 64 MiB is needed",
    "`bloom inspect` without --footer sums them up": "a footer of millions of parts is needed",
    "`bloom probe` with --column … says which row groups may have the values": (
        "each of bloom's formats is searched; tests/formats/test_toy.py has one that isn't"
    ),
    "`bloom add` without --replace and `bloom repair` with --add change only chunks that have none; for the others,"
    " write the file again without the extension": "the file has to be written again",
    "`bloom validate … --deep` checks it": Case(
        "bloom repair java.orc -o new", "bloom validate java.orc --deep", again=4
    ),
    "the file was synced and compared before it got its name; `bloom validate` checks it again": (
        "a medium that fails after it has written is needed; tests/faults has one"
    ),
}


MADE: Final[dict[str, Case]] = {
    "adding parquet": Case("bloom dump orders.parquet -c id", "bloom add orders.parquet --columns id --in-place"),
    "adding orc": Case("bloom dump java.orc -c id", "bloom add java.orc --columns id --in-place"),
    "adding mosaic": Case(
        "bloom dump plain.mosaic -c air_temperature_celsius",
        "bloom add plain.mosaic --mosaic-draft --columns air_temperature_celsius --in-place",
    ),
    "replacing parquet": Case(
        "bloom dump broken.parquet -c name --row-group 1",
        "bloom add broken.parquet --replace --columns name --in-place",
        words=(("NAME", "name"),),
    ),
    "replacing at a rate": Case(
        "bloom fold java.orc -o new",
        "bloom add java.orc --replace --fpp 0.01 --columns id --in-place",
        again=4,
        words=(("NAME", "id"),),
    ),
    "probe with a column's name in place of a value": Case(
        "bloom probe filtered.parquet id 3", "bloom probe filtered.parquet --column id 3", again=2
    ),
    "probe without a column": Case("bloom probe orders.parquet 3", "bloom advise orders.parquet", again=2),
    "inspect without a column": Case(
        "bloom inspect orders.parquet --pages", "bloom inspect orders.parquet --pages --column id", again=2
    ),
    "probe with a value before its file": Case(
        "bloom probe -c id 3 filtered.parquet", "bloom probe filtered.parquet -c id -v 3", again=2
    ),
    "find with names of files in both places": Case(
        "bloom find orders.parquet lake -c status",
        "bloom find orders.parquet -c status -v lake",
        instead="bloom find orders.parquet -c status -v open",
        again=2,
    ),
}
"""Hints that `bloomcli.hints` and `bloomcli.cli.value_arguments` make of their parts."""


def hint_expressions() -> Iterator[ast.AST]:
    """What the package passes as a hint, or gives a name with "hint" in it; and what the names and functions in these
    expressions stand for."""
    trees = [ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py")) if path.name != "hints.py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    named = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            named.setdefault(getattr(target, "id", getattr(target, "attr", "")), []).append(node.value)
        if isinstance(node, ast.FunctionDef):
            returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
            named.setdefault(node.name, []).extend(returned)
    found = [node.value for node in nodes if isinstance(node, ast.keyword) and "hint" in (node.arg or "")]
    found += [value for name, values in named.items() if "hint" in name.lower() for value in values]
    used = {getattr(node, "id", getattr(node, "attr", "")) for value in found for node in ast.walk(value)}
    yield from found
    yield from (value for name in sorted(used) for value in named.get(name, []))
    yield from (
        node for node in nodes if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "offer"
    )


@cache
def hint_texts() -> frozenset[str]:
    """The texts in hints, with `…` for what the code fills in."""
    texts = set()
    for expression in hint_expressions():
        parts: set[ast.AST] = set()
        for node in ast.walk(expression):
            if isinstance(node, ast.JoinedStr):
                parts.update(ast.walk(node))
                values = [value.value if isinstance(value, ast.Constant) else "…" for value in node.values]
                texts.add("".join(map(str, values)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
                texts.add(node.value)
    return frozenset(texts)


@pytest.mark.slow
def test_every_command_line_in_a_hint_is_tried_or_says_why_it_is_not() -> None:
    verbs = "|".join([*COMMANDS, "…", "--"])
    found = {text for text in hint_texts() if re.search(rf"`bloom (?:{verbs})|^bloom (?:{verbs})", text)}
    assert found - {"bloom …"} == HINTS.keys()


@pytest.mark.slow
def test_every_option_in_a_hint_exists() -> None:
    """Of the tools of stores, as of bloom."""
    known = {"--bucket", "--container-name", "--copy-source", "--key", "--name", "--restore-request", "--tier"}
    groups: list[click.Command] = [cli.bloom]
    while groups:
        one = groups.pop()
        known |= {name for parameter in one.params for name in parameter.opts}
        if isinstance(one, click.Group):
            context = click.Context(one)
            groups += [found for name in one.list_commands(context) if (found := one.get_command(context, name))]
    named = {name for text in hint_texts() for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text)}
    assert named > {"--columns", "--in-place", "--where"}
    assert named - known == set()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of all formats."""
    folder = tmp_path_factory.mktemp("hints")
    sources = {
        "orders.parquet": "parquet/orders.parquet",
        "scores.parquet": "rules/reader-float16/broken.parquet",
        "java.orc": "orc/java_none.orc",
        "plain.mosaic": "mosaic/released_plain.mosaic",
        "draft.mosaic": "mosaic/draft_types.mosaic",
        "broken.parquet": "rules/filter-length/broken.parquet",
    }
    for name, source in sources.items():
        shutil.copyfile(FIXTURES / source, folder / name)
    bloomcli.add(folder / "orders.parquet", ["id"], output=folder / "filtered.parquet")
    (folder / "lake").mkdir()
    for name in ("a.parquet", "b.parquet"):
        shutil.copyfile(folder / "orders.parquet", folder / "lake" / name)
    bloomcli.index_build(folder / "lake", "id", output=folder / "cut.index")
    (folder / "cut.index").write_bytes((folder / "cut.index").read_bytes()[:300])
    (folder / "log.sql").write_text("select * from orders where id + 1 = 3;\n")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with files of all formats."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path, dirs_exist_ok=True))
    return tmp_path


def call(bloom: Bloom, line: str) -> tuple[int, str]:
    """Run a command line as a shell does. (exit code, standard error)"""
    done = bloom(*arguments(line))
    return done.code, done.err


CASES: Final = {**MADE, **{text: case for text, case in HINTS.items() if isinstance(case, Case)}}


@pytest.mark.slow
@pytest.mark.parametrize("text", CASES)
@pytest.mark.usefixtures("folder")
def test_the_command_line_in_a_hint_runs_and_leads_on(bloom: Bloom, text: str) -> None:
    case = CASES[text]
    if case.first:
        assert call(bloom, case.first)[0] == 0
    code, err = call(bloom, case.line)
    assert code > 1, err
    if text in HINTS:
        pattern = re.escape(text).replace("…", ".*?")
        assert re.search(pattern, err), err
    hint = err[err.index("hint: ") + 6 :].strip() if "hint: " in err else err
    lines = re.findall(r"`(bloom [^`]*)`", hint) or [hint.splitlines()[0].partition(";")[0]]
    hinted = " && ".join(lines)
    for word, value in case.words:
        hinted = re.sub(rf"\b{word}\b", value, hinted)
    assert hinted == case.hinted
    for line in (case.instead or hinted).split(" && "):
        done, err = call(bloom, line)
        assert done == 0, err
    assert call(bloom, case.line)[0] == case.again


ADDED: Final = {
    "add --baseline FILE": ("bloom validate lake --update-baseline", "--baseline known.json"),
    "add --deep": ("bloom validate lake --sample-row-groups 5%", "--deep"),
    "add --policy FILE": ("bloom advise orders.parquet --overwrite", "--policy bloom.toml"),
    "add --queries FILE": ("bloom advise orders.parquet --table-name orders", "--queries log.sql"),
    "add --sample 5%": ("bloom validate lake --seed 3", "--sample 5%"),
    "add --engine spark": (SPARK, ""),
    "add --engine spark, with a session that has the table's catalog": (SPARK, ""),
    "add --table NAME": (SPARK, ""),
}
"""Hints to add an option: a command that fails with the hint, and the words to add."""


@pytest.mark.slow
def test_every_hint_to_add_an_option_is_tried() -> None:
    assert {text for text in hint_texts() if text.startswith("add --")} == ADDED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for text, (line, _) in ADDED.items() if line != SPARK])
@pytest.mark.usefixtures("folder")
def test_the_option_in_a_hint_is_what_the_command_lacks(bloom: Bloom, text: str) -> None:
    line, words = ADDED[text]
    code, err = call(bloom, line)
    assert (code, f"hint: {text}\n" in err) == (2, True), err
    code, err = call(bloom, f"{line} {words}")
    assert code == 0, err
