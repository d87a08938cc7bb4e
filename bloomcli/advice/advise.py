"""`advise`: reads the queries, measures the columns of all files, decides, and makes the command lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bloomcli.advice.command_line import Source, add_lines, inside_table, page_index_line, upkeep_lines
from bloomcli.advice.decide import decide
from bloomcli.advice.measure import measure
from bloomcli.commands.option import taken_paths
from bloomcli.commands.options import AdviseOptions, InspectOptions
from bloomcli.commands.sampling import read_budget
from bloomcli.datasets.engine import Engine
from bloomcli.datasets.task import OnRow
from bloomcli.errors import BloomError
from bloomcli.formats.registry import open_file
from bloomcli.model.advice import AdviseReport, QueryLog
from bloomcli.model.file import Column
from bloomcli.storage.base import FileEntry, ManagedTable
from bloomcli.storage.managed_tables import table_above
from bloomcli.storage.registry import open_source, store_of


def advise(
    engine: Engine,
    paths: Sequence[str],
    options: AdviseOptions,
    source: Source,
    *,
    on_row: OnRow | None = None,
) -> AdviseReport:
    """The advice on all files that `paths` name.

    Args:
        engine: runs the tasks on the files.
        paths: files, directories, patterns, URIs; none for the engine of a table.
        options: the options of the user.
        source: names the files in the report's command lines.
        on_row: called on this machine with each file's row, as soon as the file is done.

    Raises: as `bloomcli.advise`.
    """
    options = options.checked()
    listed = engine.find(paths, options)
    log = _queries(engine, listed, options) if options.queries else None
    figures = measure(engine, paths, listed, options, log=log, on_row=on_row)
    budget = None if options.budget is None else read_budget(options.budget)
    report = decide(replace(figures, queries=log), budget=budget, named=taken_paths("columns", options.columns))
    table = _table_above(listed) if "--in-place" in source.target else None
    if table is not None and table.name is not None:
        source = inside_table(source, table.name)
    elif table is not None:  # `bloom add` can only write copies of these files
        name = "with-filters-" + source.words[-1].rpartition("/")[2] if source.single else "with-filters/"
        source = replace(source, target=("-o", name))
    return replace(
        report,
        in_table=None if table is None else table.why_not_changed,
        command="\n".join(add_lines(report.columns, source, report.size)) or None,
        page_index_command=page_index_line(report.columns, source),
        upkeep="\n".join(upkeep_lines(report.columns, source, report.fpp)) or None,
    )


def _table_above(listed: Sequence[FileEntry]) -> ManagedTable | None:
    """The table of the files, which `bloom add` doesn't change in place. None if the first, a middle and the last
    file belong to none."""
    for item in _some(listed):
        try:
            table = table_above(store_of(item.path), item.path)
        except BloomError:  # `bloom add` will report it
            continue
        if table is not None:
            return table
    return None


def _some(listed: Sequence[FileEntry]) -> list[FileEntry]:
    """The first, a middle and the last file that can be read."""
    files = [item for item in listed if item.problem is None and not item.skipped]
    return [files[place] for place in sorted({0, len(files) // 2, len(files) - 1})] if files else []


def _queries(engine: Engine, listed: Sequence[FileEntry], options: AdviseOptions) -> QueryLog:
    """The lookups of the queries in the files' columns. Raises: as `read_queries`."""
    from bloomcli.advice.queries import read_queries  # needs the extra for queries

    columns = _columns(engine, listed)
    return read_queries(
        taken_paths("queries", options.queries),
        dialect=options.dialect,
        tables=options.table_name,
        columns=columns or None,
        seed=options.seed,
    )


def _columns(engine: Engine, listed: Sequence[FileEntry]) -> list[Column]:
    """The leaf columns of the first, a middle and the last file that can be read, each path once."""
    columns: dict[str, Column] = {}
    for task in engine.plan(_some(listed), InspectOptions()):  # the tasks of a table have its column names
        try:
            with open_source(task.path) as source:
                for column in open_file(source, task.options.names, task.options.keys).leaves:
                    if not column.not_in_table:
                        columns.setdefault(column.path, column)
        except BloomError:  # measuring reports it
            continue
    return list(columns.values())
