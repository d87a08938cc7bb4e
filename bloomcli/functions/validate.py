"""bloomcli.validate"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bloomcli.commands import validate as command
from bloomcli.commands.options import GateOptions, ValidateOptions
from bloomcli.commands.progress import Progress
from bloomcli.functions.files import Files, OnRow, RunOptions, run, takes_files
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import ValidateReport
from bloomcli.policy.policy import Policy

if TYPE_CHECKING:
    from bloomcli.datasets.engine import Engine


@takes_files(GateReport)
def validate(
    path: Files,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    deep: bool = False,
    sample_row_groups: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> ValidateReport:
    """Check a file's Bloom filters.

    Always checks the structure: headers, lengths, offsets, overlaps, known faulty writers. With `deep` it also reads
    every value of every filtered column chunk, builds the filter again from the values, and compares the bits.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs whose filters are checked; none means all.
        exclude: one or several leaf paths or globs of columns without findings, even if another argument names them.
        require: one or several leaf paths or globs that must have a filter in every row group that has values.
        max_fpp: the highest accepted false-positive rate, measured, between 0 and 1.
        max_oversize: the highest accepted ratio of a filter's size to the size that its values need, at least 1.
        readers: the engines that read the file. A filter in which one of them looks values up wrongly is a finding.
        table_schema: file with the table's schema, for readers that probe at its types.
        policy: a policy, or its file; the arguments of this function take precedence.
        deep: prove that no value is missing.
        sample_row_groups: ``5%`` or a number of each file's row groups (in ORC stripes) that `deep` reads.
        seed: seed of the sample.
        threads: column chunks that `deep` reads at a time; by default the number of cores.
        progress: called with ("check", bytes done, total bytes).
        jobs, fail_fast, on_row: for many files, as for `add`.

    Returns:
        The report on one file. For a directory, a pattern or a list, the `GateReport` of `bloomcli.gate`.

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`. A faulty filter is a finding, an
        unreadable
            file is an error. If only its values can't be read, the error's `findings` contains the findings so far.
        UsageError: a figure out of range, a policy that can't be read, an unknown engine.
    """
    options = ValidateOptions(
        columns=columns,
        exclude=exclude,
        require=require,
        max_fpp=max_fpp,
        max_oversize=max_oversize,
        readers=readers,
        table_schema=table_schema,
        policy=policy,
        deep=deep,
        sample_row_groups=sample_row_groups,
        seed=seed,
        threads=threads,
    )
    return run(
        path,
        options,
        command.run,
        RunOptions(jobs, fail_fast, on_row),
        progress=progress,
        dataset=_gate,
    )


def _gate(paths: Sequence[str], options: ValidateOptions, engine: Engine, on_row: OnRow | None) -> GateReport:
    from bloomcli.validation import gate

    fields = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return gate.run(paths, GateOptions(**fields), engine, on_row=on_row)
