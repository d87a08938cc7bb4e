"""Writes policies: the recommended filters (`bloom advise --policy`), or a first policy for a dataset, with a report
on the findings that it doesn't cover (`bloom validate --init`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bloomcli.advice.command_line import Source
from bloomcli.cli import output, reports
from bloomcli.cli.dataset import Dataset, engine_of, named_paths, run_tasks
from bloomcli.cli.options import given_options, is_quiet
from bloomcli.commands.options import AdviseOptions, SurveyOptions, ValidateOptions, policy_of
from bloomcli.errors import UnreadableError, UsageError
from bloomcli.hints import argument, command_line
from bloomcli.model.advice import AdviseReport, ColumnAdvice
from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import TIGHT
from bloomcli.policy.policy_file import NAME, PYPROJECT, find
from bloomcli.policy.policy_keys import is_below
from bloomcli.policy.starter import RequiredColumn, recommended_policy, starter_policy
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import is_uri
from bloomcli.storage.os_errors import convert_os_errors, path_exists
from bloomcli.storage.registry import write_file
from bloomcli.validation import gate
from bloomcli.words import plural


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
    check_path(path, "--policy")
    reports.check([path], [os.fspath(other) for other in others if isinstance(other, str | os.PathLike)])
    with convert_os_errors(path):
        if not overwrite and path_exists(Path(path)):
            raise UsageError(
                "the policy exists already", path=path, hint="--overwrite replaces it, or use another name"
            )


def write_recommended(
    path: str, report: AdviseReport, source: Source, options: AdviseOptions, *, overwrite: bool, quiet: bool
) -> None:
    """Write the policy that the advice recommends, and print the command that adds the filters that it requires.

    Args:
        path: the file to write, which `check` has checked.
        report: the advice.
        source: the files, as the command names them.
        options: as the user gave them.
        overwrite: the policy may replace a file.
        quiet: print nothing to standard output.
    """
    required = [
        requirement._replace(in_all_files=column.files == report.files)
        for column in report.columns
        if (requirement := _required(column)) is not None
    ]
    if not required:
        output.say(
            f"{path} isn't written: no filter is recommended, and no existing filter is worth its bytes", err=True
        )
        return
    base = os.path.abspath(Path(path).parent)  # noqa: PTH100  resolves no links
    schema = _schema(options.table_schema, base)
    policy = policy_of(options.checked())
    text = recommended_policy(
        required,
        files=report.files,
        readers=policy.whole.readers or (),
        table_schema=schema,
        tight=report.size == TIGHT,
    )
    with convert_os_errors(path):
        write_file(path, text.encode(), overwrite=overwrite)
    if not quiet and not is_quiet():
        replaces = ["--replace"] if report.command is not None and " --replace" in report.command else []
        words = ["bloom", "add", *source.words, "--policy", path, *replaces, *source.engine, *source.target]
        output.say("")
        output.say(f"wrote {path}; now: {command_line(words)}")


def _schema(path: str | os.PathLike[str] | None, base: str) -> str | None:
    """The table's schema as a policy in the directory `base` names it."""
    name = None if path is None else local_path(os.fspath(path))
    return name if name is None or is_uri(name) else os.path.relpath(name, base)


def _required(column: ColumnAdvice) -> RequiredColumn | None:
    """The policy's requirement for a column: for a recommended filter, or for existing filters that are worth their
    bytes; None without these."""
    if column.recommended and column.fpp is not None:
        return RequiredColumn(column.column, column.fpp, column.reason)
    existing = column.existing
    if existing is None or existing.judgement not in {"worth", "foldable"} or existing.max_fpp is None:
        return None
    return RequiredColumn(column.column, max(existing.max_fpp, column.fpp or 0.0), column.reason)


_USED: Final = ("columns", "readers", "table_schema", "sample", "seed")
"""Options of `validate` that `--init` uses: they select files and columns, or become part of the policy."""
_OTHERS: Final = frozenset(
    {"init", "quiet", "policy", "files", "files_from", "jobs", "fail_fast", "engine", "master", "conf"}
    | {"table", "where", "snapshot", "as_of"}
)
"""Options for the policy's file, the data files and the engine."""


def write_starter(dataset: Dataset, options: Mapping[str, Any]) -> int:
    """Write a policy that the files meet now. Prints omitted files, failing rules, and the policy that it overrides.

    Args:
        dataset: the files.
        options: options of the gate; `policy` is the file to write, None for bloom.toml in this folder.

    Raises:
        UsageError: an option has no effect with ``--init``, the policy exists already, or there are no files.
        UnreadableError: none of the files could be read.
    """
    _refuse_others()
    check_path(options["policy"] or NAME, "--init")
    target = Path(options["policy"] or NAME)
    with convert_os_errors(target):
        above = _overridden_policy(target)
    request = gate.request(ValidateOptions(**{name: options[name] for name in _USED}))
    columns, paths = tuple(request.options.columns), named_paths(dataset)
    survey = SurveyOptions(columns=columns, policy=request.policy)
    engine = engine_of(dataset)
    chosen = request.choose(engine.find(paths, survey), paths)
    report = run_tasks(engine, engine.plan(chosen.files, survey))
    _report_failed(report.rows)
    base = os.path.abspath(target.parent)  # noqa: PTH100  resolves no links
    schema = _schema(options["table_schema"], base)
    text = starter_policy(
        report.rows,
        base=base,
        columns=columns,
        readers=request.policy.whole.readers or (),
        table_schema=schema,
        of_files=chosen.found if chosen.found > len(report.rows) else None,
    )
    with convert_os_errors(target):
        write_file(target, text.encode(), overwrite=False)
    fails = Counter(finding.id for row in report.rows for finding in row.findings)
    if fails:
        listed = ", ".join(f"{rule} ({count:,})" for rule, count in fails.items())
        output.say(f"these files fail with any limits: {listed}; {target} lists where", err=True)
    if above is not None:
        output.say(f"{target} replaces {os.path.relpath(above)} as the policy of its directory", err=True)
    if is_quiet():
        return 0
    if not any(column.filters for row in report.rows for column in row.seen):
        _report_nothing_required(report.rows, target)
    named = schema is not None and not is_below(base, schema)
    output.say(f"wrote {target}; now: {_next(dataset, target, named=named)}")
    return 0


def _refuse_others() -> None:
    """Raise UsageError for an option that `--init` would ignore."""
    for _, option in given_options(but={*_USED, *_OTHERS}):
        raise UsageError(f"--init takes no {option}", hint="write the policy first, then check the files")


def _overridden_policy(target: Path) -> Path | None:
    """Return the policy of a parent directory that the new one overrides. Raises UsageError if the policy exists."""
    if path_exists(target):
        raise UsageError("the policy exists already", path=str(target), hint="move it away, or use --policy NAME")
    policy = find(target.parent) if target.name == NAME else None
    if policy is not None and policy.parent == Path(os.path.abspath(target.parent)):  # noqa: PTH100  as `find` does
        raise UsageError(
            f"the policy exists already, as [tool.bloom]: {NAME} would replace it",
            path=os.path.relpath(policy),
            hint="move its keys away first, or use --policy NAME",
        )
    return policy


def _report_failed(rows: Sequence[FileRow]) -> None:
    """Report the files that were left out. Raises UsageError or UnreadableError if no file remains."""
    failed = [row for row in rows if row.status is Status.FAILED]
    for row in failed:
        output.say(f"left out: {row.error}" + (f"; {row.hint}" if row.hint else ""), err=True)
    if any(row.status not in (Status.FAILED, Status.SKIPPED) for row in rows):
        return
    nothing = "no policy can be written without files"
    if not failed:
        raise UsageError("none of the files is of a known format", hint=nothing)
    if all(row.exit_code == UsageError.exit_code for row in failed):
        raise UsageError("none of the files has the columns", hint=nothing)
    raise UnreadableError("none of the files could be read", hint=nothing)


def _report_nothing_required(rows: Sequence[FileRow], target: Path) -> None:
    """Print which files were examined, and that the policy requires nothing."""
    formats = Counter(row.format for row in rows if row.format is not None)
    kinds = ", ".join(f"{count:,} {name}" for name, count in sorted(formats.items()))
    files = plural(formats.total(), "file")
    output.say(f"looked at {files} ({kinds}): no filters found, so the policy requires nothing yet")
    output.say(
        f"uncomment require in {target} and keep the columns that you need; `bloom add` adds their filters then"
    )


def _next(dataset: Dataset, target: Path, *, named: bool) -> str:
    """Return the command that checks the files against the new policy. `named`: it has to name the policy, because
    the table's schema isn't below it."""
    words = ["bloom", "validate", *map(argument, dataset.paths)]
    if dataset.table is not None:
        table = dataset.table
        part = {"--table": table.table, "--where": table.where, "--snapshot": table.snapshot, "--as-of": table.as_of}
        words += [str(word) for pair in part.items() if pair[1] is not None for word in pair]
    if dataset.files_from is not None:
        words += ["--files-from", dataset.files_from]
    words += dataset.engine_words
    with convert_os_errors(target):
        policy = find(Path())
        other = policy is None or not policy.samefile(target)
    if other or named:
        words += ["--policy", str(target)]
    return command_line(words)
