"""The JSON reports of every command on every fixture, in the form of the golden files: one run per line."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import BloomError
from support import golden

DATA: Final = golden.ROOT / "tests" / "golden" / "commands"
OF_RULES: Final = golden.ROOT / "tests" / "golden" / "rules"
_VOLATILE: Final = {"seconds", "jobs", "size"}
"""Keys whose values differ between runs, machines and checkouts."""
_VALUES: Final = ("1", "2024-02-29", "true", "a")
_WHOLE_FOOTERS: Final = {"orders.parquet", "java_encrypted.orc", "draft_types.mosaic"}
"""Those of the others would fill a megabyte, and `tests/formats/parquet/test_thrift_tree.py` compares Parquet's."""
_COLUMNS: Final = 4
"""Positions of the columns to probe: the first and the last."""


def kept(path: Path) -> Path:
    """The file with the reports of a fixture."""
    return DATA / f"{path.name}.jsonl"


def kept_of_rule(rule: str) -> Path:
    """The file with the reports of a rule's fixtures."""
    return OF_RULES / f"{rule}.jsonl"


def lines_of_rule(rule: str) -> Iterator[str]:
    """The report of `validate`, with ``--deep`` and without, on each fixture of a rule, under its policy."""
    folder = golden.RULE_PAIRS / rule
    policy = ["--policy", str(folder / "asked.toml")] if (folder / "asked.toml").exists() else ["--no-policy"]
    for path in sorted(folder.iterdir()):
        for deep in ([], ["--deep"]) if path.suffix in {".bin", ".mosaic", ".orc", ".parquet"} else ():
            yield _line(["validate", str(path), *policy, *deep, "--format", "json"], None, path, OF_RULES)


def lines(path: Path, scratch: Path) -> Iterator[str]:
    """Each command's exit code and report, as a line of JSON. Changed files are written to `scratch`."""
    for args, out in _commands(path, scratch):
        yield _line(args, out, path, scratch)


def _line(args: list[str], out: Path | None, path: Path, scratch: Path) -> str:
    code, stdout, stderr = _run(args)
    found: dict[str, Any] = {"command": [_named(a, path, scratch) for a in args], "exit_code": code}
    try:
        found["report"] = _stable(json.loads(stdout))
    except ValueError:
        found["output"] = stdout
    if stderr:
        found["stderr"] = stderr.splitlines()
    if out is not None and out.exists():
        found["sha256"] = hashlib.sha256(out.read_bytes()).hexdigest()
        out.unlink()
    return _named(json.dumps(found, ensure_ascii=False), path, scratch)


def _commands(path: Path, scratch: Path) -> Iterator[tuple[list[str], Path | None]]:
    file = str(path)
    for args in (
        ["inspect"],
        ["inspect", "--schema", *(["--footer"] if path.name in _WHOLE_FOOTERS else [])],
        ["validate"],
        ["validate", "--deep"],
    ):
        yield [*args, file, "--format", "json"], None
    try:
        report = bloomcli.inspect(path)
        names = _columns(path)
    except BloomError:
        names, filtered = [], []
    else:
        filtered = list(dict.fromkeys(f.column for f in report.filters))
    for name in dict.fromkeys([*names[:1], *filtered[:1], *names[-1:]]):
        yield ["inspect", file, "--columns", name, "--pages", "--indexes", "--format", "json"], None
    for name in dict.fromkeys([*names[:_COLUMNS], *names[-_COLUMNS:]]):
        for value in _VALUES:
            yield ["probe", file, "--column", name, "--format", "json", "--", value], None
    for name in filtered[:2]:
        yield ["dump", file, "--column", name, "--format", "json"], None
    draft = ["--mosaic-draft"] if path.suffix == ".mosaic" else []
    for args in (["add", "--columns", "*", *draft], ["add", "--columns", "*", "--replace", "--fpp", "0.1", *draft]):
        yield [*args, file, "--dry-run", "--format", "json"], None
        yield [*args, file, "--output", str(scratch / path.name), "--format", "json"], scratch / path.name
    for command in ("remove", "fold"):
        yield [command, file, "--dry-run", "--format", "json"], None
        yield [command, file, "--output", str(scratch / path.name), "--format", "json"], scratch / path.name
    for options in ([], ["--add", "page-index,statistics"]):
        yield (
            ["repair", file, *options, "--output", str(scratch / path.name), "--format", "json"],
            scratch / path.name,
        )


def _columns(path: Path) -> list[str]:
    from bloomcli.formats.registry import open_file
    from bloomcli.storage.registry import open_source

    with open_source(path) as source:
        return [column.path for column in open_file(source).columns]


def _run(args: list[str]) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(args)
        sys.stdout.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def _named(text: str, path: Path, scratch: Path) -> str:
    return text.replace(str(scratch) + os.sep, "OUT/").replace(str(path.parent) + os.sep, "")


def _stable(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [_stable(item) for item in value]
    if isinstance(value, dict):
        return {k: _stable(v) for k, v in value.items() if k not in _VOLATILE and v not in (None, [])}
    return value
