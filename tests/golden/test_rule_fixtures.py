"""Every rule has a fixture that breaks it and a sound neighbour, in each format that its page names.

``fixtures/rules/<id>/`` has ``broken.<ext>`` and ``sound.<ext>``, and ``asked.toml`` if the rule is checked only on
request. Both hold the same rows. The fault is usually in one place, and the finding names this place.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support import command_reports, mosaicfiles
from support.golden import RULE_PAIRS
from support.mosaicfiles import Parts

import bloomcli
from bloomcli import rules
from bloomcli.cli import run
from bloomcli.model.validate import Finding
from bloomcli.rules import When

RULES: Final = {
    id_: rule
    for id_, rule in rules.RULES.items()
    if rule.when is not When.TABLE and not id_.startswith("engine-filter-") and id_ != "reader-encrypted"
}
"""The rules about files that need no key. `tests/tables/test_statistics.py` breaks those about tables,
`tests/engine_filters` those about filters that engines keep, next to a sound file, and
`tests/formats/parquet/test_encrypted_changes.py` the one that needs keys."""
ENTRIES: Final[list[dict[str, Any]]] = [
    entry
    for entry in tomllib.loads((RULE_PAIRS.parent / "MANIFEST.toml").read_text())["file"]
    if entry["path"].startswith("rules/")
]

ALONE: Final = "bin"
"""The ending of filters alone in a file: they belong to no column, so there are no values to hold them against."""
ENDINGS: Final = {"Parquet": "parquet", "ORC": "orc", "Mosaic": "mosaic"}
ASKED: Final = {When.LIMIT, When.POLICY, When.READERS}
DEEP: Final = {rule.id for rule in RULES.values() if rule.when is When.DEEP}
LATER: Final = {"reader-negative-zero"}
"""A note without --deep, and only with it as grave as its page says."""


def endings(rule: str) -> list[str]:
    """Of the files that a rule has to have: one a format that its page names, and bare filters for one rule."""
    (head,) = [line for line in rules.page(rule).splitlines() if line.startswith("Group: ")]
    (named,) = [part.removeprefix("Formats: ") for part in head.split(" · ") if part.startswith("Formats: ")]
    return [ENDINGS[name] for name in named.split(", ")] + [ALONE] * (rule == "filter-draft")


PAIRS: Final = [(rule, ending) for rule in RULES for ending in endings(rule)]
OF_PAIRS: Final = pytest.mark.parametrize(("rule", "ending"), PAIRS, ids=[".".join(pair) for pair in PAIRS])

WITH_STATISTICS: Final = {
    "filter-all-zero",
    "profit-constant",
    "profit-sorted",
    "statistics-bounds",
    "statistics-counts",
}
"""Mosaic: rules whose files have statistics, which a list of a file's parts doesn't show."""
ENCRYPTED: Final = "filter-encrypted", "filter-plaintext", "statistics-not-checked"
"""Rules that Parquet files break by encryption: their footers are signed, and no key verifies them."""
NO_ROWS: Final = {
    ("filter-draft", ALONE),
    *((rule, "parquet") for rule in ENCRYPTED),
}
"""Pairs whose rows nobody reads: there are none; Arrow has no key."""
OTHER_ROWS: Final = {
    "profit-constant": "one name for many is what it is about",
    "page-checksum": "a byte of a value is another",
}


WITHOUT_COMMAND: Final[dict[tuple[str, str], str]] = {
    (
        "filter-not-checked",
        "orc",
    ): "the type has no one form to hash, so that nothing says whether the filter is wrong",
    ("filter-draft", "bin"): "a filter alone in a file has no values to build another from",
    ("filter-encrypted", "parquet"): "the keys are needed",
    **{(rule, "parquet"): "the key is needed" for rule in ("footer-unverified", "filter-plaintext")},
    ("filter-no-row-index", "orc"): "a writer has to make the row index, which filters belong to",
    ("page-header", "parquet"): "the data are damaged",
    ("page-checksum", "parquet"): "the data are damaged",
    ("statistics-not-checked", "parquet"): "the values can't be read",
    ("reader-issue", "parquet"): "the reader has to be another release",
    ("reader-null-structs", "orc"): "the query has to be another, or another writer has to write the file",
    **{
        (rule, ending): "a writer has to write the file again"
        for rule in RULES
        if rule.startswith(("statistics-", "row-index-"))
        for ending in ("orc", "mosaic")
        if ending in endings(rule)
    },
}
"""Findings that no command of bloom mends, and why."""
POLICY_FIRST: Final = {
    "profit-constant": "the policy requires the filter that doesn't pay; the hint says that a person has to decide",
    "profit-sorted": "the same, and its hint is `bloom advise`, which prints the command that removes the filters",
}
"""Rules whose filters the policy has to require no longer before they are removed."""


def path(rule: str, name: str) -> Path:
    """A file of a rule."""
    return RULE_PAIRS / rule / name


def check(rule: str, name: str, *, deep: bool) -> tuple[Finding, ...]:
    """The findings in a file of a pair, under the pair's policy."""
    asked = path(rule, "asked.toml")
    file = path(rule, name)
    found = bloomcli.validate(file, deep=deep, policy=asked if asked.exists() else None).findings
    if rule in ENCRYPTED and file.match("broken.parquet"):
        (signed,) = (f for f in found if f.id == "footer-unverified")
        return tuple(f for f in found if f is not signed)
    return found


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_a_pair_for_each_format_that_its_page_names_and_a_policy_where_it_has_to_be_requested(
    rule: str,
) -> None:
    wanted = {f"{name}.{ending}" for name in ("broken", "sound") for ending in endings(rule)}
    wanted |= {"asked.toml"} if RULES[rule].when in ASKED else set()
    wanted |= {"table.sql"} if rule == "reader-widened" else set()
    assert {p.name for p in path(rule, "").iterdir()} == wanted


def test_there_are_no_pairs_or_reports_of_rules_that_do_not_exist() -> None:
    assert {p.name for p in RULE_PAIRS.iterdir()} == RULES.keys()
    assert {*command_reports.OF_RULES.iterdir()} == {*map(command_reports.kept_of_rule, RULES)}


@OF_PAIRS
def test_the_broken_file_breaks_this_rule_alone_as_gravely_as_is_usual(rule: str, ending: str) -> None:
    findings = check(rule, f"broken.{ending}", deep=rule in DEEP | LATER)
    assert {(f.id, f.severity) for f in findings} == {(rule, RULES[rule].severity)}
    places = [(f.stripe, f.row_group, f.column) for f in findings]
    assert len(places) == len(set(places)), "each place is reported once"


@OF_PAIRS
def test_the_sound_file_is_clean_deep_and_under_the_same_policy(rule: str, ending: str) -> None:
    assert check(rule, f"sound.{ending}", deep=False) == ()
    if ending != ALONE:
        assert check(rule, f"sound.{ending}", deep=True) == ()


@pytest.mark.parametrize("rule", RULES)
def test_findings_have_the_places_messages_and_hints_that_are_kept(rule: str) -> None:
    kept = command_reports.kept_of_rule(rule).read_text().splitlines()
    for found, line in zip(command_reports.lines_of_rule(rule), kept, strict=True):
        assert found == line


@pytest.mark.parametrize("rule", [r for r in RULES if RULES[r].when in ASKED])
def test_what_has_to_be_requested_is_not_reported_otherwise(rule: str) -> None:
    for ending in endings(rule):
        findings = bloomcli.validate(path(rule, f"broken.{ending}"), deep=True).findings
        # DuckDB need not be named, because the footer makes a promise to every reader
        assert {f.id for f in findings} == ({rule} if rule == "reader-interval" else set())
        assert bloomcli.validate(path(rule, f"broken.{ending}")).findings == ()


@pytest.mark.parametrize(("rule", "ending"), [pair for pair in PAIRS if pair not in NO_ROWS])
def test_the_two_hold_the_same_rows(rule: str, ending: str, tmp_path: Path) -> None:
    broken, sound = (rows(path(rule, f"{name}.{ending}"), tmp_path / name) for name in ("broken", "sound"))
    assert len(broken) == len(sound) == 80
    assert (sorted(broken, key=str) == sorted(sound, key=str)) == (rule not in OTHER_ROWS)


@pytest.mark.slow
def test_the_recipes_write_these_very_bytes_with_the_engines_that_the_manifest_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(RULE_PAIRS.parent / "recipes"))
    names = ("common", "rules", "rules_parquet", "rules_orc", "rules_mosaic")
    assert not set(names) & sys.modules.keys()
    try:
        written = import_module("rules").fixtures()
    finally:
        for name in names:
            sys.modules.pop(name, None)
    by = {entry["path"]: (entry["writer"], entry["version"]) for entry in ENTRIES}
    assert {fixture.path for fixture in written} == by.keys()
    same = [fixture for fixture in written if by[fixture.path] == fixture.writer]
    for fixture in same:
        fixture.write(tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (RULE_PAIRS.parent / fixture.path).read_bytes(), fixture.path
    # Those of engines that are installed in another version may differ; the manifest says which wrote them.


PROBLEMS = {"FilterProblem", "EncryptedFilter"}


@pytest.mark.slow
def test_whatever_raises_a_filter_problem_says_which_rule_is_broken() -> None:
    """A fault of the medium or a length beyond the file ends the look at the file instead."""
    raised = 0
    for source in sorted(Path(bloomcli.__file__).parent.joinpath("formats").rglob("*.py")):
        tree = ast.parse(source.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in PROBLEMS:
                raised += 1
                innermost = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)][-1]
                assert gives_id(node, innermost), f"{source.name}:{node.lineno}: give the rule a pair of fixtures"
    assert raised >= 5


def gives_id(call: ast.Call, function: ast.FunctionDef) -> bool:
    """The error gets an id of its own: one that is spelled out, or one that the function can't be called without."""
    arguments = function.args.args
    required = {a.arg for a in arguments[: len(arguments) - len(function.args.defaults)]}
    named = [keyword.value for keyword in call.keywords if keyword.arg == "id"]
    named += [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "id"
    ]
    return any(
        (isinstance(value, ast.Constant) and value.value in RULES)
        or (isinstance(value, ast.Name) and value.id == "id" and "id" in required)
        for value in named
    )


def rows(of: Path, bare: Path) -> list[dict[str, Any]]:
    """The rows that others read; `bare` is where a Mosaic file is put without filters, for the released reader."""
    if of.suffix == ".parquet":
        found: pa.Table = pq.ParquetFile(of).read()
    elif of.suffix == ".orc":
        found = orc.ORCFile(of).read()
    elif of.parent.name in WITH_STATISTICS:
        bloomcli.remove(of, output=bare)
        found = mosaicfiles.read(bare)
    else:
        bare.write_bytes(replace(Parts.of(of.read_bytes()), version=1).data())
        found = mosaicfiles.read(bare)
    listed: list[dict[str, Any]] = found.to_pylist()
    return listed


def commands(findings: tuple[Finding, ...]) -> list[str]:
    """The command lines in the hints of some findings, each once."""
    return list(dict.fromkeys(line for f in findings for line in re.findall(r"`(bloom [^`]*)`", f.hint or "")))


def test_the_table_names_pairs_that_exist() -> None:
    assert set(WITHOUT_COMMAND) <= set(PAIRS)


@OF_PAIRS
def test_the_hint_of_a_finding_mends_it(
    rule: str, ending: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(RULE_PAIRS / rule, tmp_path / rule))
    file, asked = folder / f"broken.{ending}", folder / "asked.toml"
    policy = asked if asked.exists() else None
    deep = ending != ALONE
    before = bloomcli.validate(file, deep=deep, policy=policy).findings
    assert rule in {f.id for f in before}
    lines = commands(before)
    assert bool(lines) == ((rule, ending) not in WITHOUT_COMMAND)
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0, (line, capfd.readouterr().err)
        for printed in re.findall(r"(?m)^  bloom (.*)$", capfd.readouterr().out if "bloom advise" in line else ""):
            assert run(shlex.split(printed)) == 0, (printed, capfd.readouterr().err)
    if rule in POLICY_FIRST:
        assert policy is not None
        assert rule == "profit-sorted" or all("take the column out of `require`" in (f.hint or "") for f in before)
        policy.write_text("\n".join(line for line in policy.read_text().splitlines() if "require" not in line))
    if lines:
        after = bloomcli.validate(file, deep=deep, policy=policy).findings
        assert [f for f in after if f.id == rule or f.counts] == [], lines
