"""The project's own files: workflows, releases, and the commands that contributors run."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import tools.release
from bloomcli.version import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_workflows_fit_their_schema() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release", "wheels"]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *WORKFLOWS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_what_developers_run() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    steps = {job: [step["run"] for step in what["steps"] if "run" in step] for job, what in jobs.items()}
    assert steps["whole"] == [".ci/run"]
    assert steps["quick"][-1] == "python tests/check.py --quick"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_start_without_rights_and_end_by_themselves(path: Path) -> None:
    flow = yaml.safe_load(path.read_text())
    assert flow["permissions"] == {}
    assert all("timeout-minutes" in job for job in flow["jobs"].values() if "uses" not in job)


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "docs" / "examples" / "bloom.yml"], ids=lambda path: path.stem)
def test_workflows_name_other_peoples_actions_by_commit(path: Path) -> None:
    """A tag or a branch can be moved to other code, which would run with the job's rights."""
    used = re.findall(r"uses:\s*(\S+)(.*)", path.read_text())
    assert used
    for action, rest in used:
        if not action.startswith(("./", "your-org/")):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r"\s+# v\d+\.\d+\.\d+", rest), "the version, for readers and for updates"


def test_a_release_is_published_after_the_whole_suite_by_a_job_that_runs_no_code_of_the_package() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    with_token = [name for name, job in jobs.items() if "id-token" in job["permissions"]]
    assert with_token == ["publish"]
    assert set(jobs["publish"]["needs"]) == {"test", "wheels"}
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    assert not any("run" in step or "checkout" in step["uses"] for step in jobs["publish"]["steps"])


def test_a_tag_is_released_only_with_its_version_and_a_section_of_the_changelog() -> None:
    version = f'__version__ = "{__version__}"\n'
    section = f"# Changelog\n\n## [{__version__}] - 2026-01-31\n\n### Added\n\n- Something.\n"
    assert tools.release.problems(f"v{__version__}", version, section) == []
    assert tools.release.problems("v9.9.9", version, section) == [
        f"the tag is v9.9.9, the package's version {__version__}",
        "CHANGELOG.md has no section '## [9.9.9] - YYYY-MM-DD'",
    ]
    empty = section.replace("- Something.\n", "")
    assert tools.release.problems(f"v{__version__}", version, empty) == [
        f"CHANGELOG.md's section {__version__} is empty"
    ]


def test_releasing_reads_the_files_that_are_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.release.main(["v0.0.0"]) == 1
    assert f"the package's version {__version__}" in capsys.readouterr().err
    assert tools.release.main([]) == 2


def test_the_changelog_has_the_form_that_releasing_reads() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])


def test_wheels_are_built_for_every_python_that_is_classified() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pythons = re.findall(r"Python :: 3\.(\d+)", str(project["project"]["classifiers"]))
    assert {f"cp3{minor}-*" for minor in pythons} <= set(project["tool"]["cibuildwheel"]["build"].split())
