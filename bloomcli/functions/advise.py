"""bloomcli.advise"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bloomcli.advice import advise as advice
from bloomcli.advice.command_line import Source, of_paths, reader_options
from bloomcli.commands.options import FPP, AdviseOptions, Name
from bloomcli.functions.files import Files, OnRow, RunOptions, run
from bloomcli.model.advice import AdviseReport
from bloomcli.policy.policy import Policy

if TYPE_CHECKING:
    from bloomcli.datasets.engine import Engine


def advise(
    path: Files,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    budget: str | None = None,
    queries: Name | Sequence[Name] = (),
    dialect: str = "spark",
    table_name: Sequence[str] = (),
    fpp: float = FPP,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    sample: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> AdviseReport:
    """Advise which columns need Bloom filters, at which sizes, and which don't.

    Reads the footers of all files, and the values of a sample of row groups. Values of the sample, and values that
    the columns don't have, are looked up in statistics, dictionaries, existing filters and new filters. Writes
    nothing.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out.
        budget: maximum total size of new filters, ``64MiB``, or a share of the files' bytes, ``2%``. Each column then
            gets the rate `fpp` or a higher one.
        queries: logs of SQL queries, files or directories: statements that end in semicolons, or lines of JSON with a
            statement under ``query``. They say which columns are looked up, how often, and by which values.
        dialect: the SQL dialect of the queries, by sqlglot's name.
        table_name: names of the table in the queries; none if they read only one.
        fpp: the false-positive rate of new filters, between 0 and 1.
        readers: the engines that read the files: columns in which one of them would lose rows get no filter, and
            dictionaries count if all of them use dictionaries. All known engines by default.
        table_schema: file with the table's schema, for readers that probe at its types.
        policy: a policy with readers and the table's schema, or its file; the arguments of this function take
            precedence.
        sample: ``5%`` or a number of row groups to read values from; a number that takes seconds by default.
        seed: seed of the sample. The same seed selects the same part.
        jobs, fail_fast, on_row: as for `add`.

    Returns:
        The advice on all columns, the recommended ones first.

    Raises:
        UsageError: a figure out of range, an unknown engine or dialect, no files, queries about several tables.
        UnknownColumn: a name matches no leaf column of any file.
        UnreadableError: no file can be read.
        UnsupportedError: no file can be read here, or a package that `advise` needs isn't installed.
    """
    options = AdviseOptions(
        columns=columns,
        exclude=exclude,
        budget=budget,
        queries=queries,
        dialect=dialect,
        table_name=table_name,
        fpp=fpp,
        readers=readers,
        table_schema=table_schema,
        policy=policy,
        sample=sample,
        seed=seed,
    )
    return run(path, options, _one, RunOptions(jobs, fail_fast, on_row), dataset=_many)


def _one(path: Name, options: AdviseOptions) -> AdviseReport:
    from bloomcli.datasets.engine import choose_engine

    named = [os.fspath(path)]
    return advice.advise(choose_engine(), named, options, _source(named, options, single=True))


def _many(paths: Sequence[str], options: AdviseOptions, engine: Engine, on_row: OnRow | None) -> AdviseReport:
    return advice.advise(engine, paths, options, _source(paths, options), on_row=on_row)


def _source(paths: Sequence[str], options: AdviseOptions, *, single: bool = False) -> Source:
    return of_paths(paths, readers=reader_options(options), single=single)
