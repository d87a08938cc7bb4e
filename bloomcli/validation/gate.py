"""The gate: validate over files on either engine, with a policy, a baseline, and a sample where they are many.

paths -> listed -> not excluded -> sampled -> validate, a task a file -> findings, known ones marked -> report
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bloomcli.commands.arguments import names
from bloomcli.commands.sampling import chosen_files, share
from bloomcli.commands.validate import asked_for, rank
from bloomcli.datasets.task import Task, plan
from bloomcli.errors import UnknownFormat, UsageError
from bloomcli.formats.registry import known_suffix, open_file
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.file import Finding
from bloomcli.model.gate import GateReport, Sample
from bloomcli.policy.policy import Policy
from bloomcli.storage.listing import Listed, expand
from bloomcli.storage.os_errors import is_there, refused
from bloomcli.storage.source import open_source

if TYPE_CHECKING:
    from bloomcli.validation import baseline as known

Name = str | os.PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """What a gate is to check, and of which files; the arguments of `gate`, once they are known to make sense."""

    policy: Policy
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    deep: bool = False
    sample: Sample | None = None
    baseline: known.Baseline | None = None
    update_baseline: bool = False
    found: list[int] = field(default_factory=list)
    """Filled by `choose`: how many files there were before sampling."""
    excluded: list[int] = field(default_factory=list)
    """Filled by `choose`: how many files besides the policy excludes."""

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `validate`."""
        sample = self.sample
        return {
            "columns": self.columns,
            "exclude": self.exclude,
            "require": self.require,
            "policy": self.policy,
            "deep": self.deep,
            "sample_row_groups": None if sample is None else sample.row_groups,
            "seed": 0 if sample is None else sample.seed,
        }

    def choose(self, listed: Sequence[Listed]) -> list[Listed]:
        """The files to look at; none where each was named as it is and the policy excludes it.

        Raises:
            UsageError: there are no files, or the policy excludes all that were found.
        """
        if not listed:
            raise UsageError("the directories hold no files", hint="names that start with . or _ are left alone")
        kept = [item for item in listed if not self.policy.excludes(item.path)]
        if not kept and any(item.walked or item.matched for item in listed):
            raise UsageError(
                "the policy excludes every file that was found", path=self.policy.path, field="exclude",
                hint="name other files, or change the policy's exclude",
            )  # fmt: skip
        self.found.append(len(kept))
        self.excluded.append(len(listed) - len(kept))
        if self.sample is None or self.sample.files is None:
            return kept
        files = [item for item in kept if item.problem is None and not item.linked]
        taken = chosen_files(
            [item.relative for item in files],
            share(self.sample.files),
            self.sample.seed,
            sure=[not item.walked or known_suffix(item.path) for item in files],
            known=lambda position: _is_known(files[position].path),
        )
        left_out = {item.path for position, item in enumerate(files) if position not in taken}
        return [item for item in kept if item.path not in left_out]

    def report(self, done: DatasetReport) -> GateReport:
        """What the files' rows come to. Writes the baseline where that was asked for.

        Raises UsageError where none of the files is of a known format: nothing was checked then.
        """
        if done.rows and all(row.status is Status.SKIPPED for row in done.rows):
            noun = "file" if len(done.rows) == 1 else "files"
            raise UsageError(
                f"nothing was checked: none of {len(done.rows):,} {noun} is of a known format",
                hint="bloom reads Parquet, ORC and Mosaic files; check the paths",
            )
        findings = [replace(f, path=row.path) for row in done.rows for f in row.findings]
        gone = 0
        if self.baseline is not None:
            lost = self._lost(self.baseline, findings, done)
            gone = len(lost)
            baseline = self.baseline
            if self.update_baseline:
                from bloomcli.storage.local.atomic import place
                from bloomcli.validation import baseline as known

                baseline, gone = baseline.updated(findings, lost, in_part=self._in_part()), 0
                with refused(baseline.path):
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
            excluded_columns=self.exclude,
            deep=self.deep,
            sample=self.sample,
            files_found=self.found[-1] if self.found else len(done.rows),
            excluded=self.excluded[-1] if self.excluded else 0,
            findings=tuple(sorted(findings, key=rank)),
            rows=tuple(replace(row, findings=()) for row in done.rows),
            remarks=done.remarks,
        )

    def _in_part(self) -> bool:
        """Row groups were left out."""
        return self.sample is not None and self.sample.row_groups is not None

    def _lost(self, baseline: known.Baseline, findings: Sequence[Finding], done: DatasetReport) -> set[known.Entry]:
        """Entries of the baseline that this run looked for and didn't find."""
        from bloomcli.validation.baseline_coverage import Scope

        scope = Scope(
            policy=self.policy,
            columns=self.columns,
            exclude=self.exclude,
            require=self.require,
            values=self.deep and not self._in_part(),
        )
        formats = {row.path: row.format for row in done.rows if row.status is not Status.FAILED}

        def asked(path: str, entry: known.Entry) -> bool:
            return scope.covers(path, formats[path], entry.id, entry.column)

        return baseline.gone(findings, formats, asked)


def _is_known(path: str) -> bool:
    """The file is of a known format, or can't be read: then its row says so."""
    try:
        with open_source(path) as source:
            open_file(source)
    except UnknownFormat:
        return False
    except Exception:  # noqa: BLE001  whatever is wrong with the file, it is told when the file is looked at
        return True
    return True


def ask(
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
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
) -> GateRequest:
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
        from bloomcli.validation import baseline as known

        new = update_baseline and not is_there(baseline)
        old = known.Baseline(path=os.fspath(baseline)) if new else known.load(baseline)
    return GateRequest(
        policy=asked_for(
            policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table_schema=table_schema
        ),
        columns=names(columns, "columns"),
        exclude=names(exclude, "columns"),
        require=names(require, "columns"),
        deep=deep,
        sample=part,
        baseline=old,
        update_baseline=update_baseline,
    )


def gate(
    paths: Name | Sequence[Name],
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
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
        columns, exclude, require, max_fpp, max_oversize, readers, table_schema, policy, deep: as for
            `bloomcli.validate`.
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
        UsageError: a figure out of range, a policy or baseline that can't be read, no files, none of a known format.
        UnreadableError: a directory can't be listed, or the Spark job failed.
        UnsupportedError: a session that can't run tasks, executors without bloomcli.
    """
    asked = ask(
        columns=columns,
        exclude=exclude,
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
        from bloomcli.datasets import spark

        return asked.report(spark.run("validate", named, asked.options(), session=session, choose=asked.choose))
    from bloomcli.datasets import local

    tasks = tasks_for(asked, named)
    return asked.report(local.run(tasks, jobs=jobs, fail_fast=fail_fast, on_row=on_row))


def tasks_for(asked: GateRequest, paths: Sequence[str]) -> list[Task]:
    """The tasks of the files that are to be looked at. Raises UsageError as `GateRequest.choose`."""
    return plan("validate", asked.choose(expand(paths)), asked.options())


def alone(row: FileRow, asked: GateRequest, seconds: float) -> GateReport:
    """The report of one file that was validated by itself."""
    return asked.report(DatasetReport(command="validate", engine="local", jobs=1, seconds=seconds, rows=(row,)))


def none(asked: GateRequest) -> GateReport:
    """The report of named files of which the policy excludes each."""
    return asked.report(DatasetReport(command="validate", engine="local", jobs=1, seconds=0.0, rows=()))
