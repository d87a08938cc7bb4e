"""Completions after Tab, by Click's protocol and in a real bash."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import need
from support.cli import Bloom

from bloomcli.cli import run
from bloomcli.policy.policy_keys import COLUMN, FILES, PAGES, TOP
from bloomcli.rules import RULES
from bloomcli.rules.readers import READERS

ROOT = Path(__file__).parents[2]
Completions = Callable[..., list[str]]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "a lake"
    (folder / "part=1").mkdir(parents=True)
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("no data")
    pq.write_table(pa.table({"user_id": [1], "user_name": ["x"], "other": [2]}), folder / "part=1" / "f.parquet")
    return folder


@pytest.fixture
def completions(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Completions:
    """The answers of Click's protocol for bash for the last word."""

    def complete(*words: object) -> list[str]:
        monkeypatch.setenv("_BLOOM_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", shlex.join(["bloom", *map(str, words)]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as ended:  # Click ends the process
            run([])
        out, err = capfd.readouterr()
        assert (ended.value.code, err) == (0, "")
        return [line.partition(",")[2] for line in out.split("\n") if line]

    return complete


@pytest.mark.parametrize("command", ["inspect", "add", "validate", "probe"])
def test_columns_complete_after_a_directory_and_a_pattern(completions: Completions, lake: Path, command: str) -> None:
    assert completions(command, lake, "--column", "user") == ["user_id", "user_name"]
    assert completions(command, f"{lake}/*/*.parquet", "--exclude", "o") == ["other"]


def test_columns_complete_from_the_first_of_several_and_after_a_comma(completions: Completions, lake: Path) -> None:
    assert completions("validate", lake, ROOT, "--require", "other,user_n") == ["other,user_name"]
    empty = lake.parent / "empty"
    empty.mkdir()
    assert completions("inspect", empty, "--columns", "") == []
    assert completions("inspect", lake / "nowhere", "--columns", "") == []
    assert completions("ins") == ["inspect"]


def test_columns_of_groups_and_with_commas_complete(completions: Completions, plain: Path, tmp_path: Path) -> None:
    assert completions("inspect", plain, "--columns", "user.") == ["user.email", "user.name"]
    odd = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"a,b": [1], "a,c": [2], "id": [3]}), odd)
    assert completions("inspect", odd, "--columns", r"id,a\,") == [r"id,a\,b", r"id,a\,c"]
    assert completions("probe", odd, "--column", "a,") == ["a,b", "a,c"]


def test_readers_complete_after_commas_too(completions: Completions) -> None:
    assert completions("add", "f.parquet", "--readers", "sp") == [name for name in READERS if name.startswith("sp")]
    assert "spark,trino" in completions("validate", "f.parquet", "--readers", "spark,tr")


def test_rules_and_keys_of_a_policy_complete(completions: Completions) -> None:
    assert completions("validate", "--explain", "filter-f") == [name for name in RULES if name.startswith("filter-f")]
    assert completions("validate", "--explain", "max-") == ["max-fpp", "max-oversize"]


@pytest.mark.slow
def test_a_bash_completes(lake: Path, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    need(bash is not None, "bash")
    script = tmp_path / "bin" / "bloom"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bloomcli "$@"\n')
    script.chmod(0o755)
    program = """
        eval "$(_BLOOM_COMPLETE=bash_source bloom)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _bloom_completion bloom
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    env = os.environ | {"PATH": f"{script.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}

    def shown(*words: object) -> list[str]:
        command = [bash or "", "--norc", "-c", program, "bash", "bloom", *map(str, words)]
        done = subprocess.run(command, env=env, cwd=lake.parent, capture_output=True, text=True, timeout=600)
        assert done.stderr == ""
        return done.stdout.split()

    assert shown("add", r"a\ lake", "--columns", "user_i") == ["user_id"], "as a user types the name"
    link = lake.parent / "lake"
    link.symlink_to(lake)
    assert shown("add", "lake", "--columns", "user") == ["user_id", "user_name"]
    assert shown("hel") == ["help"]


def test_every_key_of_a_policy_has_a_page(bloom: Bloom) -> None:
    assert set(PAGES) == {*TOP, *FILES, *COLUMN}
    listed = bloom("validate", "--explain").out
    guide = (ROOT / "docs" / "policy.md").read_text()
    for key, page in PAGES.items():
        assert f"| `{key}` |" in guide
        shown = bloom("validate", "--explain", key)
        assert (shown.code, shown.out.splitlines()[0]) == (0, f"{key}: {page.title}")
        assert page.example.splitlines()[-1] in shown.out
        assert max(map(len, shown.out.splitlines())) <= 80
        assert key in listed
    assert bloom("validate", "--explain", "max-fp").code == 2


def test_columns_complete_for_find_behind_a_value_or_a_path_with_those_of_partitions(
    completions: Completions, lake: Path
) -> None:
    for arguments in ([lake], [lake, "5"], ["5", lake]):
        assert completions("find", *arguments, "-c", "user") == ["user_id", "user_name"]
        assert completions("find", *arguments, "--select", "other,p") == ["other,part"]


def test_forms_of_reports_complete(completions: Completions) -> None:
    assert completions("validate", "f.parquet", "--report", "j") == ["json=", "junit="]
    assert completions("inspect", "f.parquet", "--report", "h") == ["html="]
