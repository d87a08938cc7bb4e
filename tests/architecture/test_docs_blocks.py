"""Every block of code in README, CONTRIBUTING.md and docs/ is run by a test, or says next to it why not.

A block that isn't run has a comment before it: ``<!-- not run: the reason -->``.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq
import pytest
from conftest import ROOT, need
from support.servers import clients, running
from support.shell import arguments

import bloomcli
from bloomcli import cli
from bloomcli.formats.format import Format

pytestmark = pytest.mark.usefixtures("one_process")

README: Final = ROOT / "README.md"
PAGES: Final = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ORDERS: Final = ROOT / "fixtures" / "parquet" / "orders.parquet"

_BLOCK: Final = re.compile(
    r"^(?: *<!-- not run: (?P<reason>[^\n]+) -->\n)?(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)

RUN_HERE: Final = {
    ("advice", "sh"),
    ("commands", "sh"),
    ("datasets", "sh"),
    ("policy", "sh"),
    ("repair", "sh"),
    ("reports", "sh"),
    ("reports", "python"),
    ("stores", "sh"),
    ("python", "python"),
    ("adding-a-format", "python"),
    ("adding-a-format", "toml"),
}
"""The blocks that this file runs: a page, and a language."""

RUN_ELSEWHERE: Final = {
    ("README", "bash"): "tests/architecture/test_docs.py",
    ("README", "console"): "tests/architecture/test_docs.py",
    ("README", "sh"): "tests/architecture/test_packaging.py",
    ("architecture", "text"): "tests/architecture/test_imports.py",
    ("ci", "sh"): "tests/cli/test_ci_docs.py",
    ("ci", "toml"): "tests/cli/test_ci_docs.py",
    ("ci", "yaml"): "tests/cli/test_ci_docs.py",
    ("ci", "groovy"): "tests/cli/test_ci_docs.py",
    ("ci", "python"): "tests/cli/test_ci_docs.py",
    ("find", "bash"): "tests/architecture/test_start.py",
    ("find", "console"): "tests/architecture/test_start.py",
    ("find", "sh"): "tests/indexing/test_page.py",
    ("find", "python"): "tests/indexing/test_page.py",
    ("policy", "toml"): "tests/policy/test_policy_file.py",
    ("policy", "text"): "tests/policy/test_policy_file.py",
    ("recipes", "python"): "tests/tables/test_recipes.py",
    ("recipes", "sh"): "tests/tables/test_recipes.py",
    ("recipes", "sql"): "tests/tables/test_recipes.py",
    ("repair", "bash"): "tests/architecture/test_start.py",
    ("repair", "console"): "tests/architecture/test_start.py",
    ("start", "bash"): "tests/architecture/test_start.py",
    ("start", "console"): "tests/architecture/test_start.py",
    ("spark", "python"): "tests/datasets/test_spark_start.py",
    ("tables", "python"): "tests/tables/test_reading.py",
}
"""The blocks that other tests run, or compare with what they describe."""


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    text: str
    reason: str | None
    """Why no test runs it."""


def blocks(page: Path) -> list[Block]:
    """The blocks of a page."""
    return [
        Block(found["language"], found["text"], found["reason"])
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]


def to_run(name: str, language: str) -> list[str]:
    """The texts of a guide's blocks that are run."""
    return [b.text for b in blocks(ROOT / "docs" / f"{name}.md") if b.language == language and b.reason is None]


@pytest.fixture
def playground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the files that the guides name. What they call /data is its `data`."""
    for name in ("orders.parquet", "data/orders/a.parquet", "data/orders/day=2/b.parquet", "day=1/c.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ORDERS, tmp_path / name)
    lake = tmp_path / "data" / "lake"
    lake.mkdir()
    bloomcli.add(ORDERS, ["id"], output=lake / "filtered.parquet")
    (tmp_path / "other.toml").write_text('require = ["id"]\n')
    (tmp_path / "ids.txt").write_text("42\n43\n")
    (tmp_path / "queries.sql").write_text(
        "SELECT * FROM orders WHERE id = 42;\nSELECT 1 FROM orders WHERE id IN (7, 8);\n"
    )
    (tmp_path / "changed.txt").write_text(f"{tmp_path}/data/orders/a.parquet\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str, folder: Path) -> None:
    """Run a line as a shell does. One that writes to a file runs in a shell, in which `bloom` is this checkout's."""
    line = re.sub(r"(?<=[\s'\"])/data/", f"{folder}/data/", line)
    if " > " not in line:
        with contextlib.chdir(folder):
            assert cli.run(arguments(line)) == 0, line
        return
    found = f'bloom() {{ {shlex.quote(sys.executable)} -m bloomcli "$@"; }}\n'
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", found + line], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def lines(text: str) -> Iterator[str]:
    """The lines of a block of commands."""
    return (line for line in text.splitlines() if line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_it_is_not(page: Path) -> None:
    for block in blocks(page):
        assert block.language, f"a block without a language: {block.text}"
        kind = (page.stem, block.language)
        assert block.reason or kind in RUN_HERE or kind in RUN_ELSEWHERE, f"nothing runs {block}"
    text = page.read_text(encoding="utf-8")
    assert len(re.findall("^ *```", text, re.MULTILINE)) == 2 * len(blocks(page))
    indented = re.findall(r"(?:\A|\n\n)( {4,}bloom .*)", _BLOCK.sub("", text))
    assert indented == [], "commands are in fenced blocks"


def test_tests_that_run_blocks_elsewhere_read_the_page() -> None:
    kinds = {(page.stem, block.language) for page in PAGES for block in blocks(page)}
    assert kinds >= RUN_HERE | RUN_ELSEWHERE.keys(), "no entry is left over"
    for (name, _), test in RUN_ELSEWHERE.items():
        assert f"{name}.md" in (ROOT / test).read_text(), test


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("advice", "reports")),
        "commands",
        "datasets",
        "policy",
        "repair",
    ],
)
def test_the_commands_of_a_page_run_one_after_the_other(name: str, playground: Path) -> None:
    texts = to_run(name, "sh")
    assert texts
    for text in texts:
        for line in lines(text):
            run(line, playground)


TO_DO: Final = re.findall(r"`(bloom (?!help)[a-z]+ [^`]*)`", README.read_text().partition("## I want to")[2])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, marks=pytest.mark.slow if line.startswith(("bloom advise", "bloom trial")) else ())
        for line in TO_DO
        if "s3://" not in line and "--table " not in line
    ],
)
def test_the_commands_of_readme_s_table_run(line: str, playground: Path) -> None:
    if line == "bloom validate /data/orders":
        run("bloom validate /data/orders --init", playground)
    elif line.startswith(("bloom fold", "bloom dump", "bloom remove", "bloom probe", "bloom validate orders")):
        bloomcli.add("orders.parquet", ["id"], in_place=True)
    run(line, playground)


def test_readme_s_table_has_enough_to_do() -> None:
    assert len(TO_DO) > 14
    assert sum("s3://" in line for line in TO_DO) == 2, "they are parsed; docs/stores.md's run in MinIO"


@pytest.mark.servers
def test_the_commands_on_objects_run_in_minio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(running.installed("minio"), "MinIO: python tests/support/servers/install.py minio")
    server = running.minio()
    for variable, value in clients.s3_environment(server, server.url).items():
        monkeypatch.setenv(variable, value)
    client = clients.s3(server)
    client.create_bucket(Bucket="lake")
    for part in range(2):
        client.put_object(Bucket="lake", Key=f"orders/part-{part}.parquet", Body=ORDERS.read_bytes())
    (text,) = to_run("stores", "sh")
    for line in lines(text):
        run(line, tmp_path)
    assert pq.read_table(tmp_path / "part-0.parquet").equals(pq.read_table(ORDERS))


def test_settings_of_buckets_are_json() -> None:
    (text,) = [block.text for block in blocks(ROOT / "docs" / "stores.md") if block.language == "json"]
    assert json.loads(text)["Rules"]


@pytest.mark.slow
def test_the_page_for_python_runs(playground: Path) -> None:
    shutil.copy(playground / "other.toml", "bloom.toml")
    bloomcli.add(["data/orders"], ["id"], in_place=True)
    for program in to_run("python", "python"):
        exec(program.replace("/data/orders", f"{playground}/data/orders"), {})
    assert {f.column for f in bloomcli.inspect("out.parquet").filters} == {"id", "user.email"}


def test_the_page_for_reports_runs(playground: Path) -> None:
    for program in to_run("reports", "python"):
        exec(program, {})
    assert (playground / "orders.html").read_text().startswith("<!DOCTYPE html>")


def test_the_example_of_a_format_is_a_record_and_its_entry_point_names_it() -> None:
    ran: dict[str, object] = {}
    (program,) = to_run("adding-a-format", "python")
    exec(program, ran)
    formats = ran["FORMATS"]
    assert isinstance(formats, tuple)
    assert all(isinstance(one, Format) for one in formats)
    (text,) = to_run("adding-a-format", "toml")
    points = tomllib.loads(text)["project"]["entry-points"]
    ((name, value),) = points["bloomcli.formats"].items()
    assert EntryPoint(name, value, "bloomcli.formats").attr == "FORMATS"
    toy = tomllib.loads((ROOT / "tests" / "formats" / "toy" / "pyproject.toml").read_text())
    assert toy["project"]["entry-points"] == points, "as the toy's"
