"""Compares what commands say about a table with Spark and without it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bloomcli.cli import run as cli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OF_RUN = frozenset({"engine", "jobs", "remarks", "seconds", "files_per_second", "started", "command_line"})
"""What differs between two runs of the same command."""


def warehouse_folder(spark: SparkSession, name: str) -> Path:
    """The directory of a table of the catalog ``ice``."""
    return Path(str(spark.conf.get("spark.sql.catalog.ice.warehouse"))) / name.removeprefix("ice.").replace(".", "/")


def answer(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """The exit code of a command and its JSON, without what differs between runs."""
    capfd.readouterr()
    code = cli(list(arguments))
    out, err = capfd.readouterr()
    assert "Traceback" not in err
    if not out:
        return code, err
    return code, [_plain(json.loads(line)) for line in (out.splitlines() if "jsonl" in arguments else [out])]


def _plain(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items() if key not in _OF_RUN}
    return [_plain(one) for one in found] if isinstance(found, list) else found


def both(capfd: pytest.CaptureFixture[str], name: str, *arguments: str, path: str | None = None) -> Any:
    """The answer about a table, which is the same with Spark (by its name) and without (by its path, if it has one).

    Args:
        capfd: takes the output.
        name: the table's name in SQL.
        arguments: the command with its options.
        path: what `--table` gets without Spark; None: the name.
    """
    command, *rest = arguments
    ours = answer(capfd, command, "--table", path or name, "--engine", "local", *rest)
    theirs = answer(capfd, command, "--table", name, "--engine", "spark", *rest)
    if path is not None:
        ours = _named(ours, path, name)
    assert ours == theirs, f"without Spark:\n{ours}\nwith Spark:\n{theirs}"
    return ours


def _named(answers: Any, path: str, name: str) -> Any:
    return tuple(json.loads(json.dumps(answers).replace(json.dumps(path)[1:-1] + '"', json.dumps(name)[1:-1] + '"')))


def found_by_both(
    capfd: pytest.CaptureFixture[str],
    name: str,
    column: str,
    values: Sequence[str],
    *more: str,
    path: str | None = None,
) -> list[Any]:
    """The rows that `find` finds with Spark and without; `probe` says the same, too."""
    wanted = [word for value in values for word in ("-v", value)]
    code, rows = both(capfd, name, "find", *wanted, "-c", column, *more, "-f", "jsonl", path=path)
    assert code in {0, 1}, rows
    both(capfd, name, "probe", *values, "-c", column, *more, "-f", "json", path=path)
    return rows if isinstance(rows, list) else []


def all_commands(
    capfd: pytest.CaptureFixture[str], name: str, column: str, values: Sequence[str], *, path: str | None = None
) -> list[Any]:
    """The rows that `find` finds. All commands that read say the same with Spark and without."""
    wanted = [word for value in values for word in ("-v", value)]
    for given in ("--files-only", "--maybe"):
        both(capfd, name, "find", *wanted, "-c", column, given, "-f", "jsonl", path=path)
    both(capfd, name, "inspect", "-f", "json", path=path)
    both(capfd, name, "validate", "--deep", "--columns", "*", "-f", "json", path=path)
    return found_by_both(capfd, name, column, values, path=path)
