"""The gate: validate over files on either engine, with a policy, a baseline, and a sample where they are many.

paths -> listed -> not excluded -> sampled -> validate, a task a file -> findings, known ones marked -> report
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bloomcli.atomic import place
from bloomcli.commands import baseline as known
from bloomcli.commands.sampling import chosen, share
from bloomcli.commands.task import Task, plan
from bloomcli.commands.validate import asked_for, rank
from bloomcli.errors import UsageError
from bloomcli.listing import Listed, expand
from bloomcli.rows import DatasetReport, FileRow, GateReport, Sample, Status
from bloomcli.rules.policy import Policy

Name = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a gate is to check, and of which files; the arguments of `gate`, once they are known to make sense."""

    policy: Policy
    columns: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    deep: bool = False
    sample: Sample | None = None
    baseline: known.Baseline | None = None
    update_baseline: bool = False
    found: list[int] = field(default_factory=list)
    """Filled by `choose`: how many files there were before sampling."""

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `validate`."""
        sample = self.sample
        return {
            "columns": self.columns,
            "require": self.require,
            "policy": self.policy,
            "deep": self.deep,
            "sample_row_groups": None if sample is None else sample.row_groups,
            "seed": 0 if sample is None else sample.seed,
        }

    def choose(self, listed: Sequence[Listed]) -> list[Listed]:
        """The files to look at. Raises UsageError where the policy excludes all."""
        kept = [item for item in listed if not self.policy.excludes(item.path)]
        if listed and not kept:
            raise UsageError(
                "the policy excludes every file that was named", path=self.policy.path, field="exclude",
                hint="name other files, or change the policy's exclude",
            )  # fmt: skip
        self.found.append(len(kept))
        if self.sample is None or self.sample.files is None:
            return kept
        taken = chosen([item.relative for item in kept], share(self.sample.files), self.sample.seed)
        return [item for position, item in enumerate(kept) if position in taken]

    def report(self, done: DatasetReport) -> GateReport:
        """What the files' rows come to. Writes the baseline where that was asked for."""
        findings = [replace(f, path=row.path) for row in done.rows for f in row.findings]
        looked_at = [row.path for row in done.rows if row.status is not Status.FAILED]
        gone = 0
        if self.baseline is not None:
            whole = self.deep and (self.sample is None or self.sample.row_groups is None)
            lost = self.baseline.gone(findings, looked_at, deep=whole)
            gone = len(lost)
            baseline = self.baseline
            if self.update_baseline:
                baseline, gone = baseline.updated(findings, lost), 0
                place(Path(baseline.path), known.text(baseline).encode(), overwrite=True)
            findings = baseline.marked(findings)
        return GateReport(
            engine=done.engine,
            jobs=done.jobs,
            seconds=done.seconds,
            policy=self.policy.path,
            baseline=None if self.baseline is None else self.baseline.path,
            gone=gone,
            columns=self.columns,
            deep=self.deep,
            sample=self.sample,
            files_found=self.found[-1] if self.found else len(done.rows),
            findings=tuple(sorted(findings, key=rank)),
            rows=tuple(replace(row, findings=()) for row in done.rows),
        )


def ask(
    *,
    columns: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: Name | None = None,
    policy: Policy | Name | None = None,
    deep: bool = False,
    sample: str | None = None,
    sample_row_groups: str | None = None,
    seed: int = 0,
    baseline: Name | None = None,
    update_baseline: bool = False,
) -> Asked:
    """Check a gate's arguments and read its files. Arguments, Raises: as `gate`."""
    if sample_row_groups is not None and not deep:
        raise UsageError("a sample of row groups is for --deep: without it no values are read", hint="--deep")
    if update_baseline and baseline is None:
        raise UsageError("there is no baseline to update", hint="--baseline FILE")
    part = None
    if sample is not None or sample_row_groups is not None:
        files = None if sample is None else share(sample).text
        row_groups = None if sample_row_groups is None else share(sample_row_groups).text
        part = Sample(seed=seed, files=files, row_groups=row_groups)
    old = None
    if baseline is not None:
        new = update_baseline and not Path(baseline).exists()
        old = known.Baseline(path=os.fspath(baseline)) if new else known.load(baseline)
    return Asked(
        policy=asked_for(
            policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table_schema=table_schema
        ),
        columns=tuple(columns),
        require=tuple(require),
        deep=deep,
        sample=part,
        baseline=old,
        update_baseline=update_baseline,
    )


def gate(
    paths: Name | Sequence[Name],
    *,
    columns: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: Name | None = None,
    policy: Policy | Name | None = None,
    deep: bool = False,
    sample: str | None = None,
    sample_row_groups: str | None = None,
    seed: int = 0,
    baseline: Name | None = None,
    update_baseline: bool = False,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: Callable[[FileRow], None] | None = None,
    session: Any = None,
) -> GateReport:
    """Validate many files: the report's `ok` says whether they pass, its `complete` whether all was looked at.

    Args:
        paths: files, directories, globs, URIs.
        columns, require, max_fpp, max_oversize, readers, table_schema, policy, deep: as for `bloomcli.validate`.
        sample: ``5%`` or a number of the files to look at; the rest isn't.
        sample_row_groups: ``5%`` or a number of each file's row groups that `deep` reads.
        seed: of the samples: the same seed takes the same part.
        baseline: file of known findings, which don't count.
        update_baseline: write today's findings to it.
        jobs: files side by side on this machine; as many as there are cores if None.
        fail_fast: stop at the first file that can't be checked.
        on_row: called with each file's row as it is done, on this machine.
        session: a SparkSession, to work on its executors.

    Raises:
        UsageError: a figure out of range, a policy or baseline that can't be read, no files.
        UnreadableError: a directory can't be listed, or the Spark job failed.
        UnsupportedError: a session that can't run tasks, executors without bloomcli.
    """
    asked = ask(
        columns=columns,
        require=require,
        max_fpp=max_fpp,
        max_oversize=max_oversize,
        readers=readers,
        table_schema=table_schema,
        policy=policy,
        deep=deep,
        sample=sample,
        sample_row_groups=sample_row_groups,
        seed=seed,
        baseline=baseline,
        update_baseline=update_baseline,
    )
    named = [os.fspath(p) for p in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if session is not None:
        from bloomcli.engines import spark

        return asked.report(spark.run("validate", named, asked.options(), session=session, choose=asked.choose))
    from bloomcli.engines import local

    tasks = tasks_for(asked, named)
    return asked.report(local.run(tasks, jobs=jobs, fail_fast=fail_fast, on_row=on_row))


def tasks_for(asked: Asked, paths: Sequence[str]) -> list[Task]:
    """The tasks of the files that are to be looked at. Raises UsageError where there are none."""
    tasks = plan("validate", asked.choose(expand(paths)), asked.options())
    if not tasks:
        raise UsageError("the directories hold no files", hint="names that start with . or _ are left alone")
    return tasks


def alone(row: FileRow, asked: Asked, seconds: float) -> GateReport:
    """The report of one file that was validated by itself."""
    return asked.report(DatasetReport(command="validate", engine="local", jobs=1, seconds=seconds, rows=(row,)))
