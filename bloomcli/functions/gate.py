"""bloomcli.gate"""

from __future__ import annotations

from typing import Any, Unpack

from bloomcli.commands.keywords import GateKeywords
from bloomcli.commands.option import split_keywords, taken_paths, takes_options
from bloomcli.commands.options import GateOptions
from bloomcli.datasets.engine import choose_engine
from bloomcli.functions.files import Files, RunOptions, Table, engine_of, options_of
from bloomcli.model.gate import GateReport
from bloomcli.validation.gate import run


@takes_options(GateOptions, RunOptions, without={"threads"})
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
    chosen, run_options = options_of(GateOptions, options), RunOptions(**of_run)
    engine = choose_engine(session=session, jobs=run_options.jobs, fail_fast=run_options.fail_fast)
    if isinstance(paths, Table):
        return run((), chosen, engine_of(paths, engine, chosen), on_row=run_options.on_row)
    return run(taken_paths("paths", paths), chosen, engine, on_row=run_options.on_row)
