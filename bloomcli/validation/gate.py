"""The gate: `validate` for many files, with a policy, a baseline, and optionally a sample.

    options -> request -> chosen files -> results -> (new baseline) -> report

Each step returns a new object, and none writes a file: the caller saves a new baseline (`baseline.save`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bloomcli.commands.options import ValidateOptions, policy_of
from bloomcli.commands.sampling import chosen_files, share
from bloomcli.commands.validate import rank
from bloomcli.datasets.engine import Engine
from bloomcli.errors import UsageError
from bloomcli.formats.registry import known_suffix, of_known_format
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.gate import GateReport, Sample
from bloomcli.model.validate import Finding
from bloomcli.policy.policy import Policy
from bloomcli.storage.base import FileEntry
from bloomcli.storage.listing import no_files
from bloomcli.storage.registry import path_exists
from bloomcli.validation import baseline as baselines
from bloomcli.validation.baseline import Coverage, save
from bloomcli.words import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """The checks of a gate, and the selection of files that it checks."""

    options: ValidateOptions
    """Checked options, which apply to each file."""
    baseline: baselines.Baseline | None = None
    """The known findings."""

    @property
    def policy(self) -> Policy:
        """The policy, with the settings that options replace."""
        return policy_of(self.options)

    @property
    def sample(self) -> Sample | None:
        """The part of the files and row groups to check; None for all."""
        files, row_groups = self.options.sample, self.options.sample_row_groups
        if files is None and row_groups is None:
            return None
        return Sample(seed=self.options.seed, files=files, row_groups=row_groups)

    def choose(self, listed: Sequence[FileEntry], paths: Sequence[str]) -> ChosenFiles:
        """Return the files to check; none if the policy excludes every named file.

        Args:
            listed: the files that were found.
            paths: the paths that the user named, for errors.

        Raises:
            UsageError: there are no files, or the policy excludes all that were found.
        """
        if not listed:
            raise no_files(paths)
        kept = [item for item in listed if not self.policy.excludes(item.path)]
        if not kept and any(item.walked or item.matched for item in listed):
            raise UsageError(
                "the policy excludes every file that was found", path=self.policy.path, field="exclude",
                hint="name other files, or change the policy's exclude",
            )  # fmt: skip
        return ChosenFiles(files=self._sampled(kept), found=len(kept), excluded=len(listed) - len(kept))

    def _sampled(self, listed: Sequence[FileEntry]) -> Sequence[FileEntry]:
        if self.options.sample is None:
            return listed
        files = [item for item in listed if item.problem is None and not item.skipped]
        positions = chosen_files(
            [item.relative for item in files],
            share(self.options.sample),
            self.options.seed,
            sure=[not item.walked or known_suffix(item.path) for item in files],
            known=lambda position: of_known_format(files[position].path),
        )
        left_out = {item.path for position, item in enumerate(files) if position not in positions}
        return [item for item in listed if item.path not in left_out]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFiles:
    """The files that a gate checks."""

    files: Sequence[FileEntry]
    found: int
    """Number of files before sampling."""
    excluded: int
    """Number of files that the policy excludes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResults:
    """The findings of a gate."""

    request: GateRequest
    chosen: ChosenFiles
    done: DatasetReport
    """One row per file."""

    @property
    def findings(self) -> list[Finding]:
        """All findings, each with its file's path."""
        return [replace(f, path=row.path) for row in self.done.rows for f in row.findings]

    @property
    def in_part(self) -> bool:
        """Whether row groups were left out."""
        return self.request.options.sample_row_groups is not None

    def gone(self, baseline: baselines.Baseline) -> set[baselines.Entry]:
        """Entries of a baseline that this run checked for and didn't find."""
        options = self.request.options
        coverage = Coverage(
            policy=self.request.policy,
            columns=tuple(options.columns),
            exclude=tuple(options.exclude),
            require=tuple(options.require),
            values=options.deep and not self.in_part,
            table=self.done.table is not None,
        )
        formats = {row.path: row.format for row in self.done.rows if row.status is not Status.FAILED}

        def covered(path: str, entry: baselines.Entry) -> bool:
            return coverage.covers(path, formats[path], entry.id, entry.column)

        return baseline.gone(self.findings, formats, covered)

    def new_baseline(self) -> baselines.Baseline | None:
        """The baseline with the findings of this run; None if the options request no update."""
        baseline = self.request.baseline
        if baseline is None or not self.request.options.update_baseline:
            return None
        return baseline.updated(self.findings, self.gone(baseline), in_part=self.in_part)

    def report(self, baseline: baselines.Baseline | None = None) -> GateReport:
        """The report, with the findings in `baseline` marked as known; by default those in the request's baseline."""
        request, options = self.request, self.request.options
        baseline = request.baseline if baseline is None else baseline
        findings = self.findings if baseline is None else baseline.marked(self.findings)
        return GateReport(
            engine=self.done.engine,
            jobs=self.done.jobs,
            seconds=self.done.seconds,
            policy=request.policy.path,
            baseline=None if baseline is None else baseline.path,
            gone=0 if baseline is None else len(self.gone(baseline)),
            columns=tuple(options.columns),
            excluded_columns=tuple(options.exclude),
            deep=options.deep,
            sample=request.sample,
            files_found=self.chosen.found,
            excluded=self.chosen.excluded,
            findings=tuple(sorted(findings, key=rank)),
            rows=tuple(replace(row, findings=()) for row in self.done.rows),
            remarks=self.done.remarks,
            besides=self.done.besides,
            table=self.done.table,
            version=self.done.version_before,
        )


def request(options: ValidateOptions) -> GateRequest:
    """Check a gate's options and read the files that they name. Raises: as `gate`."""
    options = options.checked()
    if options.baseline is None:
        return GateRequest(options=options)

    if options.update_baseline and not path_exists(options.baseline):
        return GateRequest(options=options, baseline=baselines.Baseline(path=os.fspath(options.baseline)))
    return GateRequest(options=options, baseline=baselines.load(options.baseline))


def results(request: GateRequest, chosen: ChosenFiles, done: DatasetReport) -> GateResults:
    """Return a gate's findings. Raises UsageError if no file has a known format, because nothing was checked."""
    if done.rows and all(row.status is Status.SKIPPED for row in done.rows):
        raise UsageError(
            f"nothing was checked: none of {plural(len(done.rows), 'file')} is of a known format",
            hint="bloom reads Parquet, ORC and Mosaic files; check the paths",
        )
    return GateResults(request=request, chosen=chosen, done=done)


def run(
    paths: Sequence[str],
    options: ValidateOptions,
    engine: Engine,
    on_row: Callable[[FileRow], None] | None = None,
) -> GateReport:
    """Validate many files with an options object. Raises: as `bloomcli.gate`."""
    wanted = request(options)
    chosen = wanted.choose(engine.find(paths, wanted.options), paths)
    done = engine.run(engine.plan(chosen.files, wanted.options), on_row=on_row)
    gate_results = results(wanted, chosen, done)
    new = gate_results.new_baseline()
    if new is not None:
        save(new)
    return gate_results.report(new)
