"""A runner of composite GitHub Actions, for the features that ours uses: expressions, steps, environment and files.

An unsupported expression, key or input fails the test.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
Values = Mapping[str, str]


@dataclass(frozen=True)
class Outcome:
    """The result of a job's step that uses an action."""

    code: int
    log: str
    """Standard output and standard error, which the runner shows and searches for commands."""
    outputs: dict[str, str]
    summary: str

    @property
    def annotations(self) -> list[str]:
        """The workflow commands in the log."""
        return re.findall(r"^::(?:error|warning|notice) .*$", self.log, re.MULTILINE)


@dataclass(frozen=True)
class Job:
    """One job on a runner: its steps share the workspace and RUNNER_TEMP."""

    action: Path
    """The action's folder."""
    temp: Path
    workspace: Path
    env: Values = field(default_factory=dict)

    def use(self, **given: str) -> Outcome:
        """A step ``uses: ACTION`` with inputs; underscores in their names stand for dashes."""
        document = load(self.action / "action.yml")
        inputs = {name: str(value.get("default", "")) for name, value in document["inputs"].items()}
        for name, value in given.items():
            assert name.replace("_", "-") in inputs, f"no input {name}"
            inputs[name.replace("_", "-")] = value
        known = {f"inputs.{name}": value for name, value in inputs.items()}
        assert document["runs"]["using"] == "composite"
        summary = self._empty("summary")
        code, log = 0, ""
        for step in document["runs"]["steps"]:
            code, said, outputs = self._step(step, known, summary)
            log += said
            known |= {f"steps.{step.get('id', '')}.outputs.{name}": value for name, value in outputs.items()}
            if code:
                break
        values = {name: evaluated(output["value"], known) for name, output in document["outputs"].items()}
        return Outcome(code, log, values, summary.read_text())

    def _step(self, step: Mapping[str, Any], known: Values, summary: Path) -> tuple[int, str, dict[str, str]]:
        assert step.keys() <= {"name", "id", "shell", "env", "run"}, step.keys()
        assert step["shell"] == "bash"
        script = self._empty("script.sh")
        script.write_text(evaluated(step["run"], known))
        output = self._empty("output")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "RUNNER_"))}
        env |= {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temp),
            **self.env,
            **{name: evaluated(value, known) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        pairs = [line.partition("=") for line in output.read_text().splitlines()]
        return done.returncode, done.stdout, {name: value for name, _, value in pairs}

    def _empty(self, name: str) -> Path:
        folder = self.temp / "_runner_file_commands"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text("")
        return path


def load(path: Path) -> Any:
    """A YAML document as the runner reads it: every scalar is text (``on`` isn't true, 3.10 isn't 3.1)."""
    return yaml.load(path.read_text(), yaml.BaseLoader)


def evaluated(text: str, known: Values) -> str:
    """Text with its expressions replaced. An unset output is empty; any other unknown name fails the test."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        assert name in known or re.fullmatch(r"steps\.[\w-]+\.outputs\.[\w-]+", name), name
        return known.get(name, "")

    return EXPRESSION.sub(value, text)


def condition(text: str, known: Values) -> bool:
    """A step's ``if`` after a step that failed: names compared with texts, joined by &&.

    If the condition has no function for the job's state, the runner adds ``success() &&``.
    """
    found = EXPRESSION.fullmatch(text)
    terms = (found[1] if found else text).split(" && ")
    if not {"always()", "!cancelled()", "failure()"} & set(terms):
        return False
    for term in terms:
        if term in {"always()", "!cancelled()", "failure()"}:
            continue
        compared = re.fullmatch(r"(?P<name>[\w.-]+) (?P<sign>==|!=) (?:'(?P<text>[^']*)'|(?P<word>true|false))", term)
        assert compared, term
        wanted = compared["word"] if compared["text"] is None else compared["text"]
        assert compared["name"] in known, compared["name"]
        if (known[compared["name"]] == wanted) != (compared["sign"] == "=="):
            return False
    return True
