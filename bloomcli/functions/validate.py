"""bloomcli.validate and bloomcli.gate"""

from __future__ import annotations

from typing import Any, Unpack

from bloomcli.commands import validate as command
from bloomcli.commands.keywords import GateKeywords, ValidateKeywords
from bloomcli.commands.option import split_keywords, taken_paths, takes_options
from bloomcli.commands.options import OF_MANY_FILES, ValidateOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.functions.files import (
    Files,
    ProgressOption,
    RunOptions,
    Table,
    engine_of,
    options_of,
    run,
    takes_files,
)
from bloomcli.model.gate import GateReport
from bloomcli.model.validate import ValidateReport
from bloomcli.validation.gate import run as run_gate


@takes_files(GateReport)
@takes_options(ValidateOptions, RunOptions, ProgressOption, without=OF_MANY_FILES)
def validate(path: Files | Table, **options: Unpack[ValidateKeywords]) -> ValidateReport:
    """Check a file's Bloom filters.

    Always checks the structure: headers, lengths, offsets, overlaps, known faulty writers. With `deep` it also reads
    every value of every filtered column chunk, builds the filter again from the values, and compares the bits.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        {options}

    Returns:
        The report on one file. For a directory, a pattern, a list or a table, the `GateReport` of `bloomcli.gate`.

    Raises:
        UnreadableError, UnsupportedError, UnknownColumn: as for `inspect`. A faulty filter is a finding, an
            unreadable file is an error. If only its values can't be read, the error's `findings` contains the
            findings so far.
        UsageError: a figure out of range, a policy that can't be read, an unknown engine.
    """
    return run(path, options_of(ValidateOptions, options), options, command.run, run_gate)


@takes_options(ValidateOptions, RunOptions, without={"threads"})
def gate(paths: Files | Table, *, session: Any = None, **options: Unpack[GateKeywords]) -> GateReport:
    """Validate many files. The report's `ok` says whether they pass, its `complete` whether all were checked.

    Args:
        paths: files, directories, globs, URIs; or a `bloomcli.Table`.
        session: a SparkSession, on whose executors the files are checked.
        {options}

    Raises:
        UsageError: a figure out of range, a policy or baseline that can't be read, no files, none of a known format.
        UnreadableError: a directory can't be listed, or the Spark job failed.
        UnsupportedError: a session that can't run tasks, executors without bloomcli.
    """
    (of_run,) = split_keywords((RunOptions,), options)
    chosen, run_options = options_of(ValidateOptions, options), RunOptions(**of_run)
    engine = choose_engine(session=session, jobs=run_options.jobs, fail_fast=run_options.fail_fast)
    if isinstance(paths, Table):
        return run_gate((), chosen, engine_of(paths, engine, chosen), run_options.on_row)
    return run_gate(taken_paths("paths", paths), chosen, engine, run_options.on_row)
