"""The public functions for Spark, which `bloomcli.spark` exports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from bloomcli.advice import advise as core
from bloomcli.advice.command_line import of_paths, of_table, reader_options
from bloomcli.commands.keywords import AdviseOnSparkKeywords, AdviseTableKeywords
from bloomcli.commands.option import taken_paths, takes_options
from bloomcli.commands.options import AdviseOptions, Name, TableOptions
from bloomcli.datasets.engine import spark_engine
from bloomcli.model.advice import AdviseReport
from bloomcli.tables.functions import OF_CHANGES, options_of_table


@takes_options(AdviseOptions)
def advise(spark: Any, paths: Name | Sequence[Name], **options: Unpack[AdviseOnSparkKeywords]) -> AdviseReport:
    """Advise which columns need Bloom filters, and at which sizes. Executors read footers and samples; the driver
    reads logs of queries, the policy and the table's schema.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        {options}

    Returns:
        The same report as `bloomcli.advise`.

    Raises: as `bloomcli.advise`; UnreadableError also if the Spark job failed.
    """
    return _advise(spark, paths, AdviseOptions(**options))


@takes_options(TableOptions, AdviseOptions, without=OF_CHANGES | {"from_properties"})
def advise_table(spark: Any, table: str, **options: Unpack[AdviseTableKeywords]) -> AdviseReport:
    """Advise which columns of a table need Bloom filters, from the data files of one snapshot only.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `advise` and `inspect_table`.
    """
    which, rest = options_of_table(table, options)
    return _advise_table(spark, which, AdviseOptions(**rest))


def _advise(spark: Any, paths: Name | Sequence[Name], options: AdviseOptions) -> AdviseReport:
    engine, texts = spark_engine(spark), taken_paths("paths", paths)
    source = of_paths(texts, engine=("--engine", "spark"), readers=reader_options(options))
    return core.advise(engine, texts, options, source)


def _advise_table(spark: Any, which: TableOptions, options: AdviseOptions) -> AdviseReport:
    from bloomcli.tables.reading import table_engine

    engine = table_engine(spark_engine(spark), which)
    source = of_table(which.table, where=which.where, readers=reader_options(options))
    return core.advise(engine, (), options, source)
