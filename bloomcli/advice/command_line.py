"""Makes the command lines for the recommendations, ready to be pasted into a shell."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bloomcli.commands.options import AdviseOptions
from bloomcli.hints import argument, command_line, listed
from bloomcli.model.advice import ColumnAdvice
from bloomcli.model.file import POWER_OF_TWO


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The words of a command line that name the files and say how to change them."""

    words: tuple[str, ...]
    """Paths, or the options that name the files."""
    target: tuple[str, ...] = ("--in-place",)
    """The option that says where changed files are written; empty for a table, whose commit replaces them."""
    engine: tuple[str, ...] = ()
    """The options of the engine."""
    readers: tuple[str, ...] = ()
    """The options that name the readers of the files, which `bloom add` needs."""
    single: bool = False
    """One file. `bloom add` refuses a single file that has some of the filters already, unless it replaces them."""


def of_paths(
    paths: Iterable[str],
    *,
    files_from: str | None = None,
    engine: Sequence[str] = (),
    readers: Sequence[str] = (),
    single: bool = False,
) -> Source:
    """The source for files named by paths and a list of paths."""
    words = list(map(argument, paths))
    if files_from is not None and files_from != "-":
        words += ["--files-from", files_from]
    # files at these URIs can't be replaced
    readable_only = any(word.startswith(("https://", "http://")) for word in words)
    target = ("-o", "with-filters/") if readable_only else ("--in-place",)
    return Source(words=tuple(words), target=target, engine=tuple(engine), readers=tuple(readers), single=single)


def of_table(
    table: str, *, where: str | None = None, engine: Sequence[str] = (), readers: Sequence[str] = ()
) -> Source:
    """The source for the data files of a table."""
    words = ["--table", table, *(() if where is None else ("--where", where))]
    return Source(words=tuple(words), target=(), engine=tuple(engine), readers=tuple(readers))


def inside_table(source: Source, table: str) -> Source:
    """The source for the table that the files belong to: `bloom add` refuses to change its files by their paths."""
    engine = list(source.engine)
    if "--engine" in engine:
        at = engine.index("--engine")
        del engine[at : at + 2]
    return replace(source, words=("--table", table), target=(), engine=tuple(engine), single=False)


def reader_options(options: AdviseOptions) -> tuple[str, ...]:
    """The options of the user that name the readers of the files. `bloom add` finds the nearest policy itself."""
    words: list[str] = []
    if options.readers:
        words += ["--readers", ",".join(options.readers)]
    if options.table_schema is not None:
        words += ["--table-schema", os.fspath(options.table_schema)]
    return tuple(words)


def add_lines(columns: Iterable[ColumnAdvice], source: Source, size: str = POWER_OF_TWO) -> list[str]:
    """The `bloom add` command lines: one for each rate, and for columns with and without filters to replace."""
    groups: dict[tuple[float, bool], list[str]] = {}
    for column in columns:
        if column.recommended and column.fpp is not None:
            groups.setdefault((column.fpp, _replaces(column, single=source.single)), []).append(column.column)
    return [
        _line(
            "add",
            source,
            names,
            *("--fpp", f"{fpp:g}"),
            *(("--replace",) if replaces else ()),
            *(("--size", size) if size != POWER_OF_TWO else ()),
            *source.readers,
        )
        for (fpp, replaces), names in sorted(groups.items())
    ]


def page_index_line(columns: Iterable[ColumnAdvice], source: Source) -> str | None:
    """The command line that adds page indexes for the columns where they pay; None if there are none."""
    names = [column.column for column in columns if column.page_index is not None and column.page_index.pays]
    if not names:
        return None
    return _line("repair", replace(source, words=(*source.words, "--add", "page-index")), names)


def upkeep_lines(columns: Iterable[ColumnAdvice], source: Source, fpp: float) -> list[str]:
    """The command lines that fold filters down to the rate `fpp`, and remove filters that save nothing."""
    judged: dict[str, list[str]] = {}
    for column in columns:
        if column.existing is not None and not column.recommended:
            judged.setdefault(column.existing.judgement, []).append(column.column)
    commands = (("fold", judged.get("foldable"), ("--fpp", f"{fpp:g}")), ("remove", judged.get("not-worth"), ()))
    return [_line(command, source, names, *options) for command, names, options in commands if names]


def _replaces(column: ColumnAdvice, *, single: bool) -> bool:
    """Whether the column's filters have to be replaced; otherwise `bloom add` would refuse the column."""
    existing = column.existing
    if existing is None or not existing.filters:
        return False
    short = existing.max_fpp is None or column.fpp is None or existing.max_fpp > column.fpp
    return single or short or existing.judgement in {"saturated", "unreadable"}


def _line(command: str, source: Source, columns: Iterable[str], *options: str) -> str:
    names = ",".join(map(listed, columns))
    words = ("bloom", command, *source.words, "--columns", names, *options, *source.engine, *source.target)
    return command_line(words)
