"""The public functions for Spark, which `bloomcli.spark` exports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bloomcli.advice import advise as core
from bloomcli.advice.command_line import of_paths, of_table, reader_options
from bloomcli.commands.arguments import paths as named
from bloomcli.commands.options import FPP, AdviseOptions, Name
from bloomcli.commands.table_options import TableOptions
from bloomcli.model.advice import AdviseReport


def advise(
    spark: Any,
    paths: Name | Sequence[Name],
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    budget: str | None = None,
    queries: Name | Sequence[Name] = (),
    dialect: str = "spark",
    table_name: Sequence[str] = (),
    fpp: float = FPP,
    readers: Sequence[str] = (),
    table_schema: Name | None = None,
    policy: Name | None = None,
    sample: str | None = None,
    seed: int = 0,
) -> AdviseReport:
    """Advise which columns need Bloom filters, and at which sizes. Executors read footers and samples.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        queries: logs of SQL queries, which the driver reads.
        table_schema, policy: files, which the driver reads.

    The other arguments mean what they mean to `bloomcli.advise`.

    Returns:
        The same report as `bloomcli.advise`.

    Raises: as `bloomcli.advise`; UnreadableError also if the Spark job failed.
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
    return _advise(spark, paths, options)


def advise_table(
    spark: Any,
    table: str,
    *,
    where: str | None = None,
    snapshot: int | None = None,
    as_of: str | datetime | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    budget: str | None = None,
    queries: Name | Sequence[Name] = (),
    dialect: str = "spark",
    table_name: Sequence[str] = (),
    fpp: float = FPP,
    readers: Sequence[str] = (),
    table_schema: Name | None = None,
    policy: Name | None = None,
    sample: str | None = None,
    seed: int = 0,
) -> AdviseReport:
    """Advise which columns of a table need Bloom filters, from the data files of one snapshot only.

    Args:
        spark: a classic session, with the table's catalog.
        table, where, snapshot, as_of: as for `inspect_table`.

    The other arguments mean what they mean to `bloomcli.advise`.

    Returns, Raises: as `advise` and `inspect_table`.
    """
    which = TableOptions(table=table, where=where, snapshot=snapshot, as_of=as_of)
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
    return _advise_table(spark, which, options)


def _advise(spark: Any, paths: Name | Sequence[Name], options: AdviseOptions) -> AdviseReport:
    from bloomcli.datasets.engine import choose_engine

    texts = named(paths)
    source = of_paths(texts, engine=("--engine", "spark"), readers=reader_options(options))
    return core.advise(choose_engine(session=spark), texts, options, source)


def _advise_table(spark: Any, which: TableOptions, options: AdviseOptions) -> AdviseReport:
    from bloomcli.datasets.engine import choose_engine
    from bloomcli.tables.reading import table_engine

    engine = table_engine(choose_engine(session=spark), which)
    source = of_table(which.table, where=which.where, readers=reader_options(options))
    return core.advise(engine, (), options, source)
