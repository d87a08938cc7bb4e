"""bloomcli.advise"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Unpack

from bloomcli.advice import advise as advice
from bloomcli.advice.command_line import Source, of_paths, of_table, reader_options
from bloomcli.commands.keywords import AdviseKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import AdviseOptions, Name
from bloomcli.datasets.engine import Engine, choose_engine
from bloomcli.functions.files import Files, OnRow, RunOptions, Table, options_of, run
from bloomcli.model.advice import AdviseReport
from bloomcli.tables.reading import TableEngine


@takes_options(AdviseOptions, RunOptions)
def advise(path: Files | Table, **options: Unpack[AdviseKeywords]) -> AdviseReport:
    """Advise which columns need Bloom filters, at which sizes, and which don't.

    Reads the footers of all files, and the values of a sample of row groups. Values of the sample, and values that
    the columns don't have, are looked up in statistics, dictionaries, existing filters and new filters. Writes
    nothing.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them; or a `bloomcli.Table`.
        {options}

    Returns:
        The advice on all columns, the recommended ones first.

    Raises:
        UsageError: a figure out of range, an unknown engine or dialect, no files, queries about several tables.
        UnknownColumn: a name matches no leaf column of any file.
        UnreadableError: no file can be read.
        UnsupportedError: no file can be read here, or a package that `advise` needs isn't installed.
    """
    return run(path, options_of(AdviseOptions, options), options, _one, _many)


def _one(path: Name, options: AdviseOptions) -> AdviseReport:
    named = [os.fspath(path)]
    return advice.advise(choose_engine(), named, options, _source(named, options, single=True))


def _many(paths: Sequence[str], options: AdviseOptions, engine: Engine, on_row: OnRow | None) -> AdviseReport:
    if isinstance(engine, TableEngine):
        source = of_table(engine.table.name_in_sql, where=engine.where, readers=reader_options(options))
    else:
        source = _source(paths, options)
    return advice.advise(engine, paths, options, source, on_row=on_row)


def _source(paths: Sequence[str], options: AdviseOptions, *, single: bool = False) -> Source:
    return of_paths(paths, readers=reader_options(options), single=single)
