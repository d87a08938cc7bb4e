"""`bloom advise --policy`: writes the recommended filters as a policy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from bloomcli.advice.command_line import Source
from bloomcli.cli import output
from bloomcli.cli.options import is_quiet
from bloomcli.commands.options import AdviseOptions, policy_of
from bloomcli.errors import UsageError
from bloomcli.model.advice import AdviseReport, ColumnAdvice
from bloomcli.model.file import TIGHT
from bloomcli.policy.policy_file import NAME, PYPROJECT
from bloomcli.policy.starter import RequiredColumn, recommended_policy
from bloomcli.storage.names import is_uri
from bloomcli.storage.os_errors import convert_os_errors, path_exists
from bloomcli.storage.registry import write_file


def check_path(path: str, option: str) -> None:
    """Raise UsageError if an option can't write a policy to a path: to a store, or among other tools' settings."""
    if is_uri(path):
        raise UsageError(
            f"{option} writes to this machine", path=path, hint="--policy FILE, then copy the file there"
        )
    if Path(path).name == PYPROJECT:
        raise UsageError(
            f"{option} doesn't write into {PYPROJECT}",
            path=path,
            hint=f"let it write {NAME}, then move its keys to [tool.bloom], and its tables to [tool.bloom.off], ...",
        )


def check(path: str, *, overwrite: bool, others: Iterable[object]) -> None:
    """Check, before the work starts, that the policy can be written and doesn't replace another kind of file.

    Args:
        path: the file to write.
        overwrite: the policy may replace a file.
        others: other files of the same run.

    Raises:
        UsageError: the file exists and `overwrite` is false, or it isn't a policy.
        WriteError: the directory doesn't exist or isn't writable.
    """
    from bloomcli.cli import reports

    check_path(path, "--policy")
    reports.check([path], [os.fspath(other) for other in others if isinstance(other, str | os.PathLike)])
    with convert_os_errors(path):
        if not overwrite and path_exists(Path(path)):
            raise UsageError(
                "the policy exists already", path=path, hint="--overwrite replaces it, or use another name"
            )


def write(
    path: str, report: AdviseReport, source: Source, options: AdviseOptions, *, overwrite: bool, quiet: bool
) -> None:
    """Write the policy, and print the command that adds the filters that it requires.

    Args:
        path: the file to write, which `check` has checked.
        report: the advice.
        source: the files, as the command names them.
        options: as the user gave them.
        overwrite: the policy may replace a file.
        quiet: print nothing to standard output.
    """
    required = [one for column in report.columns if (one := _required(column)) is not None]
    if not required:
        output.say(
            f"{path} isn't written: no filter is recommended, and no existing filter is worth its bytes", err=True
        )
        return
    base = os.path.abspath(Path(path).parent)  # noqa: PTH100  resolves no links
    schema = options.table_schema
    policy = policy_of(options.checked())
    text = recommended_policy(
        required,
        files=report.files,
        readers=policy.whole.readers or (),
        table_schema=None if schema is None else os.path.relpath(schema, base),
        tight=report.size == TIGHT,
    )
    with convert_os_errors(path):
        write_file(path, text.encode(), overwrite=overwrite)
    if not quiet and not is_quiet():
        replaces = ["--replace"] if report.command is not None and " --replace" in report.command else []
        words = ["bloom", "add", *source.words, "--policy", path, *replaces, *source.engine, *source.target]
        output.say("")
        output.say(f"wrote {path}; now: {shlex.join(words)}")


def _required(column: ColumnAdvice) -> RequiredColumn | None:
    """The policy's requirement for a column: for a recommended filter, or for existing filters that are worth their
    bytes; None without these."""
    if column.recommended and column.fpp is not None:
        return RequiredColumn(column.column, column.fpp, column.reason)
    existing = column.existing
    if existing is None or existing.judgement not in {"worth", "foldable"} or existing.max_fpp is None:
        return None
    return RequiredColumn(column.column, max(existing.max_fpp, column.fpp or 0.0), column.reason)
