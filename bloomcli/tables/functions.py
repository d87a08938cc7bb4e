"""The public functions for tables, which `bloomcli.spark` exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from bloomcli.commands.keywords import (
    AddToTableKeywords,
    FoldTableKeywords,
    InspectTableKeywords,
    ProbeTableKeywords,
    RemoveFromTableKeywords,
    RepairTableKeywords,
    ValidateTableKeywords,
)
from bloomcli.commands.option import split_keywords, takes_options
from bloomcli.commands.options import (
    OF_MANY_FILES,
    AddOptions,
    FoldOptions,
    InspectOptions,
    Options,
    ProbeOptions,
    RemoveOptions,
    RepairOptions,
    TableOptions,
    ValidateOptions,
    WriteOptions,
)
from bloomcli.commands.values import Value
from bloomcli.datasets.spark_frame import frame
from bloomcli.formats.add_options import own_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TARGETS: Final = frozenset(
    {"output", "in_place", "force", "overwrite", "threads"}
    | {option.name for option in own_options() if not option.in_tables}
)
"""Options that functions for tables don't have: the table's commit puts new files in place, tables don't have files
of every format, and Spark has its own threads."""
OF_SNAPSHOTS: Final = frozenset({"snapshot", "as_of"})
OF_CHANGES: Final = frozenset({"commit_every", "new_row_ids"})


@takes_options(TableOptions, AddOptions, without=TARGETS | OF_SNAPSHOTS)
def add_to_table(
    spark: SparkSession, table: str, columns: Sequence[str] = (), **options: Unpack[AddToTableKeywords]
) -> DataFrame:
    """Add Bloom filters to the data files of an Iceberg or Delta table, where columns have none yet.

    Each file without the filters is replaced by a copy that has them, in the table's own commits. No row changes.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table: ``catalog.db.name``, ``delta.`/path` ``.
        {options}

    Returns:
        One row for each data file, with the fields of `FileRow`; `output` is the new file.

    Raises:
        UsageError: options contradict each other, the table or a column doesn't exist, or the table can't resolve
            the condition.
        UnsupportedError: the table's files can't be replaced without loss, or the session can't run tasks.
        UnreadableError: the table's metadata can't be read, or the Spark job failed.
    """
    which, rest = options_of_table(table, options)
    return _change(spark, which, AddOptions.of(columns=columns, **rest))


@takes_options(TableOptions, RemoveOptions, without=TARGETS | OF_SNAPSHOTS | {"from_properties"})
def remove_from_table(spark: SparkSession, table: str, **options: Unpack[RemoveFromTableKeywords]) -> DataFrame:
    """Remove Bloom filters from the data files of a table. For files that `add_to_table` made, the new files equal
    the originals byte for byte.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _change(spark, which, RemoveOptions(**rest))


@takes_options(TableOptions, FoldOptions, without=TARGETS | OF_SNAPSHOTS | {"from_properties"})
def fold_table(spark: SparkSession, table: str, **options: Unpack[FoldTableKeywords]) -> DataFrame:
    """Shrink oversized filters of a table's data files, without reading a column.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _change(spark, which, FoldOptions(**rest))


@takes_options(TableOptions, RepairOptions, without=TARGETS | OF_SNAPSHOTS | {"from_properties"})
def repair_table(spark: SparkSession, table: str, **options: Unpack[RepairTableKeywords]) -> DataFrame:
    """Mend statistics and page indexes of a table's Parquet files, or add them where they are missing. Without `add`,
    the commit also corrects what the table's own metadata say wrongly about the files.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _change(spark, which, RepairOptions(**rest))


@takes_options(
    TableOptions,
    InspectOptions,
    without=OF_CHANGES | {"from_properties", "every", "pages", "indexes", "schema", "footer"},
)
def inspect_table(spark: SparkSession, table: str, **options: Unpack[InspectTableKeywords]) -> DataFrame:
    """Sum up the filters of the data files of one snapshot, one row for each file.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _read(spark, which, InspectOptions(**rest))


@takes_options(
    TableOptions, ValidateOptions, without=OF_CHANGES | OF_MANY_FILES | {"threads", "sample_row_groups", "seed"}
)
def validate_table(spark: SparkSession, table: str, **options: Unpack[ValidateTableKeywords]) -> DataFrame:
    """Check that the filters of a table's files are sound and that required filters exist; `findings` has the faults.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _read(spark, which, ValidateOptions(**rest))


@takes_options(TableOptions, ProbeOptions, without=OF_CHANGES | {"from_properties", "explain", "skip_blank"})
def probe_table(
    spark: SparkSession, table: str, values: Value | Sequence[Value] | Any, **options: Unpack[ProbeTableKeywords]
) -> DataFrame:
    """Look up values in the filters of a table's data files; `totals` has what a reader may skip for each value.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table.
        values: one value or several, or a column of them, as for `bloomcli.probe`.
        {options}

    Returns, Raises: as `add_to_table`.
    """
    which, rest = options_of_table(table, options)
    return _read(spark, which, ProbeOptions(values=values, **rest))


def options_of_table(table: str, keywords: Mapping[str, Any]) -> tuple[TableOptions, dict[str, Any]]:
    """The options of the table among a function's keywords, and the other keywords."""
    (of_table,) = split_keywords((TableOptions,), keywords)
    rest = {name: value for name, value in keywords.items() if name not in of_table}
    return TableOptions(table=table, **of_table), rest


def _change(spark: SparkSession, which: TableOptions, options: WriteOptions) -> DataFrame:
    from bloomcli.datasets.engine import spark_engine
    from bloomcli.tables.change import change_table
    from bloomcli.tables.opening import open_table
    from bloomcli.tables.reading import session_of

    engine = spark_engine(spark)
    return frame(spark, change_table(open_table(session_of(engine), which.table), engine, options, which))


def _read(spark: SparkSession, which: TableOptions, options: Options) -> DataFrame:
    from bloomcli.datasets.engine import plan_files, run_tasks, spark_engine
    from bloomcli.tables.reading import table_engine

    engine = table_engine(spark_engine(spark), which)
    return frame(spark, run_tasks(engine, plan_files(engine, (), options)))
