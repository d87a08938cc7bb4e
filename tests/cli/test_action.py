"""The reusable GitHub Action: its files keep to the published schemas, and bash runs its steps as the runner does."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import junitparser
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from sarif_pydantic import Sarif
from support import actions, checkout
from support.actions import Job, Outcome

import bloomcli

pytestmark = pytest.mark.slow

ACTION = ROOT / "action.yml"
EXAMPLE = ROOT / "docs" / "examples" / "bloom.yml"
POLICY = 'require = ["id"]\nmax-fpp = 0.05\n'


def against(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    """check-jsonschema's word on a file."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ("vendor.github-actions", ACTION),
        ("vendor.github-workflows", EXAMPLE),
        ("custom.github-workflows-require-timeout", EXAMPLE),
    ],
)
def test_files_keep_to_the_published_schemas(schema: str, path: Path, tmp_path: Path) -> None:
    assert f"/bloomcli@v{bloomcli.__version__}" in EXAMPLE.read_text()
    done = against(schema, path)
    assert done.returncode == 0, done.stdout
    text = path.read_text()
    wrong = tmp_path / path.name
    wrong.write_text(text.replace("using: composite", "using: bash").replace("timeout-minutes: 15", "steps-at: 1"))
    assert wrong.read_text() != text
    assert against(schema, wrong).returncode == 1


def steps() -> list[dict[str, Any]]:
    """The action's steps."""
    found = actions.load(ACTION)["runs"]["steps"]
    assert len(found) == 2
    return found


def test_no_expression_stands_in_a_script() -> None:
    for step in steps():
        assert "${{" not in step["run"]
        assert step["run"].count("-m pip install") == step["run"].count('-m pip install --quiet -- "$')
    assert set(actions.EXPRESSION.findall(ACTION.read_text())) >= {"inputs.paths", "inputs.args"}


def test_every_input_is_used_and_every_variable_comes_from_one() -> None:
    used = set()
    for step in steps():
        for name, value in step["env"].items():
            expression = actions.EXPRESSION.fullmatch(value)
            assert expression is not None, value
            used.add(expression[1])
            assert f"${name}" in step["run"] or f"${{{name}" in step["run"]
        variables = set(re.findall(r"\$\{?(BLOOM_\w+)", step["run"]))
        assert variables == step["env"].keys()
    assert used == {f"inputs.{name}" for name in actions.load(ACTION)["inputs"]}


def test_scripts_pass_shellcheck(tmp_path: Path) -> None:
    for step in [*steps(), {"run": "rm $1"}]:
        script = tmp_path / "script.sh"
        script.write_text(step["run"])
        shellcheck = Path(sys.executable).with_name("shellcheck")
        done = subprocess.run([shellcheck, "--shell=bash", script], capture_output=True, text=True)
        assert done.returncode == (step["run"] == "rm $1"), done.stdout


def example_steps() -> list[dict[str, Any]]:
    """The example workflow's steps."""
    (job,) = actions.load(EXAMPLE)["jobs"].values()
    return job["steps"]


def example_inputs() -> dict[str, str]:
    """The inputs of the action in the example workflow."""
    (step,) = [s for s in example_steps() if "bloomcli@" in s["uses"]]
    return step["with"]


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The action's folder, as a runner has it, and a RUNNER_TEMP where it has installed bloom: built once."""
    action = checkout.copy(tmp_path_factory.mktemp("actions") / "bloomcli")
    temp = tmp_path_factory.mktemp("runner temp")
    workspace = tmp_path_factory.mktemp("empty")
    # what a workspace has must not be taken for Python's own modules
    for name in ("venv", "types"):
        (workspace / f"{name}.py").write_text("raise SystemExit('the workspace was imported')\n")
    compiler = checkout.quick_compiler(tmp_path_factory)
    first = Job(action, temp, workspace, compiler).use(paths="nowhere", python=sys.executable)
    assert (temp / "bloom-venv" / "bin" / "bloom").exists(), first.log
    assert first.code == 3
    return action, temp


@pytest.fixture
def job(runner: tuple[Path, Path], tmp_path: Path) -> Job:
    """A job whose workspace has two sound files and a policy."""
    workspace = tmp_path / "work space"
    (workspace / "data").mkdir(parents=True)
    table = pa.table({"id": range(3000), "name": [f"n{i}" for i in range(3000)]})
    pq.write_table(table, tmp_path / "plain", row_group_size=1500)
    for name in ("orders.parquet", "more orders.parquet"):
        bloomcli.add(tmp_path / "plain", ["id"], output=workspace / "data" / name)
    (workspace / "bloom.toml").write_text(POLICY)
    return Job(runner[0], runner[1], workspace)


def use(job: Job, **inputs: str) -> Outcome:
    """The action with the Python that runs the tests; it reads no columns, unless the inputs say so."""
    return job.use(python=sys.executable, **{"deep": "false", **inputs})


def break_(path: Path) -> None:
    """Clear the first filter's bits: readers lose the row group's rows."""
    first = bloomcli.inspect(path).filters[0]
    start = first.offset + first.header_bytes
    data = path.read_bytes()
    path.write_bytes(data[:start] + bytes(first.bitset_bytes) + data[start + first.bitset_bytes :])


def test_sound_files_pass_and_what_was_built_is_used_again(job: Job) -> None:
    bloom = job.temp / "bloom-venv" / "bin" / "bloom"
    before = bloom.stat().st_mtime_ns
    done = use(job, **example_inputs())
    assert done.code == 0, done.log
    assert done.outputs == {"exit-code": "0", "sarif": "reports/bloom.sarif", "junit": "reports/bloom.xml"}
    sarif = Sarif.model_validate_json((job.workspace / "reports" / "bloom.sarif").read_text())
    assert sarif.runs[0].results == []
    cases = [c for suite in junitparser.JUnitXml.fromfile(job.workspace / "reports" / "bloom.xml") for c in suite]
    assert {"data/orders.parquet", "data/more orders.parquet"} <= {c.name for c in cases if c.is_passed}
    (verdict,) = done.annotations
    assert verdict.startswith("::notice title=bloom validate::ok: no fault in 4 filters")
    assert "\n    ok: no fault in 4 filters" in done.summary
    assert bloom.stat().st_mtime_ns == before

    # the reports of this run aren't uploaded by one that can't start
    done = use(job, **example_inputs() | {"policy": "nowhere.toml"})
    assert done.code == 2
    assert done.outputs == {"exit-code": "2", "sarif": "", "junit": ""}
    assert "nowhere.toml: the policy can't be read" in done.log
    (error,) = done.annotations
    assert "before there was a report" in error
    assert done.summary == ""
    assert not (job.workspace / "reports" / "bloom.sarif").exists()
    known = {"steps.bloom.outputs.sarif": "", "steps.bloom.outputs.junit": ""}
    known["github.event.pull_request.head.repo.fork"] = ""
    assert not any(actions.condition(s["if"], known) for s in example_steps() if "if" in s)


def test_a_broken_file_fails_with_annotations_and_reports_that_are_uploaded_all_the_same(job: Job) -> None:
    break_(job.workspace / "data" / "more orders.parquet")
    done = use(job, **example_inputs())
    assert done.code == 1, done.log
    error, verdict = done.annotations
    assert error.startswith("::error file=data/more orders.parquet,title=filter-all-zero%3A ")
    assert "not ok: 1 error in 1 file" in verdict
    assert done.outputs == {"exit-code": "1", "sarif": "reports/bloom.sarif", "junit": "reports/bloom.xml"}
    sarif = Sarif.model_validate_json((job.workspace / done.outputs["sarif"]).read_text())
    assert [r.rule_id for r in sarif.runs[0].results or []] == ["filter-all-zero"]
    xml = junitparser.JUnitXml.fromfile(job.workspace / done.outputs["junit"])
    assert (xml.failures, xml.errors) == (1, 0)
    assert "filter-all-zero" in done.summary
    known = {f"steps.bloom.outputs.{name}": value for name, value in done.outputs.items()}
    uploads = [s for s in example_steps() if "if" in s]
    assert len(uploads) == 2
    for fork in ("", "false", "true"):
        known["github.event.pull_request.head.repo.fork"] = fork
        runs = [actions.condition(s["if"], known) for s in uploads]
        assert runs == [fork != "true", True]
    named = [actions.evaluated(s["with"].get("sarif_file", s["with"].get("path")), known) for s in uploads]
    assert named == ["reports/bloom.sarif", "reports/bloom.xml"]


def test_paths_are_taken_as_they_are_written(job: Job) -> None:
    (job.workspace / "data" / "orders.parquet").rename(job.workspace / "--deep")
    break_(job.workspace / "--deep")
    done = use(job, paths="--deep\n\ndata/more orders.parquet\n", policy="bloom.toml")
    assert done.code == 1
    assert "::error file=--deep,title=filter-all-zero" in done.log
    assert "not ok: 1 error in 1 file" in done.annotations[-1]
    assert "checked  2 files: 4 row groups, 4 filters" in done.summary
    assert "values   not looked up" in done.summary
    done = use(job, paths="data/*orders.par*")
    assert "checked  1 file: 2 row groups, 2 filters" in done.summary
    (job.workspace / "torn.parquet").write_bytes(b"PAR1")
    done = use(job, paths="torn.parquet", junit="torn.xml")
    assert (done.code, done.outputs["exit-code"]) == (3, "3"), done.log
    assert done.annotations[0].startswith("::error file=torn.parquet,title=bloom%3A a file could not be checked")
    assert junitparser.JUnitXml.fromfile(job.workspace / "torn.xml").errors == 1
    none = use(job, paths="\n")
    assert (none.code, "Missing argument" in none.log) == (2, True)


def test_a_filter_that_lacks_values_fails_by_default(job: Job) -> None:
    path = job.workspace / "data" / "orders.parquet"
    for filter_ in bloomcli.inspect(path).filters:
        start = filter_.offset + filter_.header_bytes
        data = path.read_bytes()
        path.write_bytes(data[:start] + bytes(32) + data[start + 32 :])  # the values of one block
    done = job.use(python=sys.executable, paths="data", args="--no-policy")
    assert done.code == 1, done.log
    assert any("value-missing" in line for line in done.annotations), done.annotations
    assert use(job, paths="data", args="--no-policy", deep="false").code == 0


def test_inputs_become_options(job: Job) -> None:
    done = use(job, paths="data", deep="true", sample="1", args="--sample-row-groups=1\n--seed\n7\n--no-policy")
    assert done.code == 0, done.log
    assert "not checked: 1 of 2 files and the values of 1 of 2 row groups" in done.log
    assert "values   1,500" in done.summary
    assert "--seed 7" in done.summary or "seed 7" in done.summary
    break_(job.workspace / "data" / "orders.parquet")
    wanted = {"paths": "data", "baseline": "known.json"}
    assert use(job, **wanted, args="--update-baseline").code == 0
    done = use(job, **wanted, summary="false")
    assert (done.code, done.summary) == (0, "")
    assert "1 known finding in the baseline" in done.log


def test_what_an_input_holds_is_never_run(job: Job) -> None:
    attempts = ("'; touch ran; '\"; touch ran; \"", "x && touch ran; $(touch ran) `touch ran`")
    for text in attempts:
        done = use(job, paths=text, policy="", baseline="", args="--no-policy", sarif=f"out/{text}.sarif", junit=text)
        assert done.code == 3, done.log
        assert done.outputs["junit"] == text
        assert use(job, paths="data", policy=text, baseline=text, sample=text, args=text).code == 2
    assert not [p for p in job.workspace.rglob("ran") if p.name == "ran"]
    for name in ("sarif", "junit"):
        done = use(job, paths="data", **{name: "x\nexit-code=0"})
        assert done.code == 2
        assert done.outputs == {"exit-code": "2", "sarif": "", "junit": ""}
        assert f"The input {name} is more than one line." in done.log


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ({"deep": "yes"}, "The input deep is neither true nor false."),
        ({"summary": "0"}, "The input summary is neither true nor false."),
        ({"sarif": "data"}, "The file that the input sarif names can't be written."),
        ({"junit": "bloom.toml/x.xml"}, "The file that the input junit names can't be written."),
        ({"args": "--no-such-option"}, "before there was a report"),
    ],
)
def test_inputs_that_make_no_sense_stop_it(job: Job, inputs: dict[str, str], says: str) -> None:
    done = use(job, paths="data", **inputs)
    assert (done.code, done.outputs["exit-code"]) == (2, "2"), done.log
    assert says in done.annotations[-1]
    assert done.outputs["sarif"] == ""


def test_packages_that_are_named_are_installed(runner: tuple[Path, Path], tmp_path: Path) -> None:
    """Two wheels: one replaces bloom and prints its arguments, the other is a neighbour. pip takes seconds of work
    to build a project, and it has built the action's own."""
    wheels = [tmp_path / f"{name} folder" / f"{name}-1-py3-none-any.whl" for name in ("bloom", "other")]
    for wheel, name in zip(wheels, ("bloom", "other"), strict=True):
        wheel.parent.mkdir()
        with zipfile.ZipFile(wheel, "w") as made:
            made.writestr(f"{name}_project.py", "def main():\n    import sys\n    print(sys.argv[1:])\n")
            for file, text in {
                "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
                "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                "entry_points.txt": f"[console_scripts]\n{name} = {name}_project:main\n",
                "RECORD": "",
            }.items():
                made.writestr(f"{name}-1.dist-info/{file}", text)
    job = Job(runner[0], tmp_path / "temp", tmp_path)
    done = use(job, paths="a b\n*", package=f"./{wheels[0].relative_to(tmp_path)}", extra_packages=f"{wheels[1]}\n")
    text = f"{tmp_path}/temp/bloom-report.txt"
    assert str(["validate", "--format", "github", "--report", f"text={text}", "--", "a b", "*"]) in done.log
    assert (job.temp / "bloom-venv" / "bin" / "other").exists()
    refused = use(Job(*runner, tmp_path), paths="x", extra_packages="--help")
    assert refused.code != 0
    assert "Invalid requirement: '--help'" in refused.log


@pytest.mark.parametrize(
    ("env", "python", "code", "says"),
    [
        ({"RUNNER_OS": "Windows"}, sys.executable, 4, "Windows runners are not supported"),
        ({}, "{folder}/no such python", 2, "It needs Python 3.11 or later"),
        ({}, "{folder}/old python", 2, "It needs Python 3.11 or later"),
    ],
)
def test_an_unusable_runner_is_reported(
    tmp_path: Path, env: dict[str, str], python: str, code: int, says: str
) -> None:
    old = tmp_path / "old python"
    # the same question, asked of a Python that says it is 3.10
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; sys.version_info = (3, 10); $3"\n')
    old.chmod(0o755)
    done = Job(ROOT, tmp_path / "temp", tmp_path, env).use(paths="data", python=python.format(folder=tmp_path))
    assert done.code == code
    assert says in done.annotations[-1]
    assert done.outputs == {"exit-code": "", "sarif": "", "junit": ""}
    assert [p.name for p in (tmp_path / "temp").iterdir()] == ["_runner_file_commands"]
