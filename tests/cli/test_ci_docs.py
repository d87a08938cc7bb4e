"""docs/ci.md is correct: command lines and programs run, files match their schemas, tables are true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from conftest import ROOT
from support import actions, datasets
from support.cli import Bloom

import bloomcli
from bloomcli.cli import EXIT_CODES
from bloomcli.cli.validate import command
from bloomcli.policy import policy_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "ci.md"
TEXT = PAGE.read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """The page's blocks of a language."""
    return [text for name, text in BLOCKS if name == language]


def tables() -> Iterator[list[list[str]]]:
    """The page's tables: rows of cells, without their heads."""
    for found in re.findall(r"(?:^\|.*\|\n)+", TEXT, re.MULTILINE):
        yield [[cell.strip() for cell in line[1:-1].split(" |")] for line in found.splitlines()[2:]]


def parse(line: str) -> None:
    """Parse a command line of bloom validate without running it; raises what Click raises."""
    words = shlex.split(line)
    assert words[:2] == ["bloom", "validate"], line
    command.make_context("validate", words[2:])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with 10 files with filters on id, in data."""
    root = datasets.plain(tmp_path / "data", 10)
    for path in root.rglob("*.parquet"):
        bloomcli.add(path, ["id"], in_place=True)
    monkeypatch.chdir(tmp_path)
    return root


def test_command_lines_run_one_after_the_other(bloom: Bloom, lake: Path) -> None:
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    ran = 0
    for line in lines:
        parse(line)
        if "--engine spark" not in line:
            result = bloom(*shlex.split(line)[1:])
            said = "wrote the baseline" if "--update-baseline" in line else ""
            assert (result.code, result.err[: len("wrote the baseline")]) == (0, said), line
            ran += 1
            if "--sample" in line:
                assert "not checked: " in result.out
    assert ran == len(lines) - 1
    assert all(
        (lake.parent / name).stat().st_size for name in ("bloom.toml", "bloom.xml", "bloom.sarif", "bloom.json")
    )
    with pytest.raises(click.UsageError):
        parse("bloom validate data --no-such-option")


def test_command_lines_elsewhere_on_the_page_parse() -> None:
    (gitlab,) = [text for text in blocks("yaml") if "script:" in text]
    pip, line = yaml.safe_load(gitlab)["bloom"]["script"]
    assert pip == "pip install bloomcli"
    parse(line)
    (jenkins,) = blocks("groovy")
    (line,) = re.findall(r"sh '(.*)'", jenkins)
    parse(line)
    assert re.findall(r"junit '(.*)'", jenkins) == re.findall(r"junit=(\S+)", line)
    assert jenkins.count("{") == jenkins.count("}")
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    named = set(re.findall(r"`(--[a-z-]+)", TEXT))
    assert {"--deep", "--update-baseline"} <= named <= known | {"--"}


def test_policies_are_policies(tmp_path: Path) -> None:
    for text in blocks("toml"):
        (tmp_path / "bloom.toml").write_text(text)
        assert policy_file.load(tmp_path / "bloom.toml").whole.require == ("id",)


def test_files_keep_to_their_schemas(tmp_path: Path) -> None:
    action, pre_commit, gitlab = blocks("yaml")
    workflow: dict[str, Any] = {"on": "push", "jobs": {"a": {"runs-on": "ubuntu-latest"}}}
    workflow["jobs"]["a"]["steps"] = (steps := yaml.safe_load(action))
    inputs = actions.load(ROOT / "action.yml")["inputs"]
    assert steps[0]["with"].keys() <= inputs.keys()
    for schema, content in (("github-workflows", yaml.safe_dump(workflow)), ("gitlab-ci", gitlab)):
        path = tmp_path / f"{schema}.yml"
        path.write_text(content)
        check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", path]
        done = subprocess.run(check, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    path = tmp_path / "pre-commit.yaml"
    path.write_text(pre_commit)
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    (hook,) = yaml.safe_load(pre_commit)["repos"][0]["hooks"]
    parse(shlex.join(["bloom", "validate", *hook["args"], "-x.parquet"]))
    version = f"v{bloomcli.__version__}"
    assert steps[0]["uses"].endswith(f"@{version}")
    assert yaml.safe_load(pre_commit)["repos"][0]["rev"] == version


def test_tables_name_every_exit_code_input_and_output_and_the_inputs_defaults() -> None:
    codes = re.findall(r"(?m)^\| (\d+) \|", (ROOT / "docs" / "commands.md").read_text())
    assert set(map(int, codes)) == set(EXIT_CODES)
    inputs, outputs = tables()
    action = actions.load(ROOT / "action.yml")
    defaults = {name: row[2] for row in inputs for name in re.findall(r"`([\w-]+)`", row[0])}
    assert list(defaults) == list(action["inputs"])
    for name, value in action["inputs"].items():
        if value.get("default"):
            assert defaults[name] == f"`{value['default']}`"
        elif "default" not in value:
            assert value["required"] == "true"
            assert defaults[name] == ""
    assert [name for row in outputs for name in re.findall(r"`([\w-]+)`", row[0])] == list(action["outputs"])


def test_what_is_said_of_exit_codes_is_so(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    datasets.write(lake / "unfiltered.parquet")
    assert bloom("validate", lake / "unfiltered.parquet").code == 0
    assert bloom("validate", lake / "unfiltered.parquet", "--require", "id").code == 1
    (tmp_path / "empty").mkdir()
    assert bloom("validate", tmp_path / "empty").code == 2
    assert bloom("validate", tmp_path / "empty" / "*.parquet").code == 3
    (lake / "torn.parquet").write_bytes((lake / "unfiltered.parquet").read_bytes()[:-9])
    both = bloom("validate", lake, "--require", "id")
    assert both.code == 3
    assert "filter-required" in both.out
    baseline = ("--require", "id", "--baseline", tmp_path / "known.json")
    assert bloom("validate", lake, *baseline, "--update-baseline").code == 3
    assert bloom("validate", lake, *baseline).code == 3, "a baseline doesn't hide what can't be read"
    (lake / "torn.parquet").unlink()
    assert bloom("validate", lake, *baseline).code == 0
    datasets.write(lake / "also unfiltered.parquet")
    assert bloom("validate", lake, *baseline).code == 1


def programs() -> tuple[str, str]:
    """The page's Python: at the end of a Spark job, and on this machine."""
    job, here = blocks("python")
    return job, here


def test_the_program_with_a_sample_runs(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bloom.toml").write_text('require = ["id"]\n')
    exec(programs()[1], {})
    assert capsys.readouterr().out == "exit code 0, complete: False\n"
    exec(programs()[1].replace("50%", "100%"), {})
    assert capsys.readouterr().out == "passed\n"


@pytest.mark.spark
def test_the_end_of_a_spark_job_runs(lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bloom.toml").write_text('require = ["id"]\n')
    program = programs()[0].replace("/mnt/lake/orders", str(lake))
    assert program != programs()[0]
    exec(program, {"spark": spark})
    assert capsys.readouterr().err == ""
    bad = datasets.write(lake / "unfiltered.parquet")
    (lake / "torn.parquet").write_bytes(bad.read_bytes()[:-9])
    with pytest.raises(SystemExit) as caught:
        exec(program, {"spark": spark})
    assert caught.value.code == 3
    errors = capsys.readouterr().err
    assert f"error: {bad}: filter-required: " in errors
    assert "torn.parquet: a Parquet file that was cut off" in errors
