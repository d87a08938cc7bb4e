"""The public functions for tables, which `bloomcli.spark` exports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from bloomcli.commands.options import (
    FPP,
    AddOptions,
    FoldOptions,
    InspectOptions,
    ProbeOptions,
    RemoveOptions,
    ValidateOptions,
    WriteOptions,
)
from bloomcli.commands.options_base import Options
from bloomcli.commands.table_options import TableOptions
from bloomcli.commands.values import Value
from bloomcli.formats.format import NO_OPTIONS, OptionValues
from bloomcli.model.sizes import POWER_OF_TWO

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Path = str | os.PathLike[str]


def add_to_table(
    spark: SparkSession,
    table: str,
    columns: Sequence[str] = (),
    *,
    where: str | None = None,
    from_properties: bool = False,
    commit_every: int | None = None,
    new_row_ids: bool = False,
    exclude: Sequence[str] = (),
    fpp: float | None = None,
    ndv: int | None = None,
    max_bytes: int | None = None,
    size: str | None = None,
    kind: str | None = None,
    variant: str | None = None,
    format_options: OptionValues = NO_OPTIONS,
    replace: bool = False,
    readers: Sequence[str] = (),
    table_schema: Path | None = None,
    policy: Path | None = None,
    dry_run: bool = False,
) -> DataFrame:
    """Add Bloom filters to the data files of an Iceberg or Delta table, where columns have none yet.

    Each file without the filters is replaced by a copy that has them, in the table's own commits. No row changes.

    Args:
        spark: a classic session, with the table's catalog.
        table: as SQL names the table: ``catalog.db.name``, ``delta.`/path` ``.
        columns: one or several of the table's leaf columns, or globs; without any, those that the policy requires.
        where: a condition in SQL. Files are left out if partitions and statistics show that no row meets it.
        from_properties: add the filters that the table's properties request.
        commit_every: files that each commit replaces; None: up to 1,000 files or 64 GiB.
        new_row_ids: allow rows of an Iceberg v3 table to get new row ids, and don't write columns that keep them.

    The other arguments are those of `bloomcli.add`.

    Returns:
        One row for each data file, with the fields of `FileRow`; `output` is the new file.

    Raises:
        UsageError: options contradict each other, the table or a column doesn't exist, or the table can't resolve
            the condition.
        UnsupportedError: the table's files can't be replaced without loss, or the session can't run tasks.
        UnreadableError: the table's metadata can't be read, or the Spark job failed.
    """
    options = AddOptions(
        columns=columns,
        exclude=exclude,
        fpp=fpp,
        ndv=ndv,
        max_bytes=max_bytes,
        size=size,
        kind=kind,
        variant=variant,
        format_options=format_options,
        replace=replace,
        readers=readers,
        table_schema=table_schema,
        policy=policy,
        dry_run=dry_run,
    )
    return _change(
        spark,
        TableOptions(
            table=table,
            where=where,
            from_properties=from_properties,
            commit_every=commit_every,
            new_row_ids=new_row_ids,
        ),
        options,
    )


def remove_from_table(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    commit_every: int | None = None,
    new_row_ids: bool = False,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    dry_run: bool = False,
) -> DataFrame:
    """Remove Bloom filters from the data files of a table. For files that `add_to_table` made, the new files equal
    the originals byte for byte.

    Args:
        spark: a classic session, with the table's catalog.
        table, where, commit_every, new_row_ids: as for `add_to_table`.

    The other arguments are those of `bloomcli.remove`.

    Returns, Raises: as `add_to_table`.
    """
    options = RemoveOptions(columns=columns, exclude=exclude, dry_run=dry_run)
    which = TableOptions(table=table, where=where, commit_every=commit_every, new_row_ids=new_row_ids)
    return _change(spark, which, options)


def fold_table(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    commit_every: int | None = None,
    new_row_ids: bool = False,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    fpp: float = FPP,
    max_bytes: int | None = None,
    size: str = POWER_OF_TWO,
    readers: Sequence[str] = (),
    dry_run: bool = False,
) -> DataFrame:
    """Shrink oversized filters of a table's data files, without reading a column.

    Args:
        spark: a classic session, with the table's catalog.
        table, where, commit_every, new_row_ids: as for `add_to_table`.

    The other arguments are those of `bloomcli.fold`.

    Returns, Raises: as `add_to_table`.
    """
    options = FoldOptions(
        columns=columns,
        exclude=exclude,
        fpp=fpp,
        max_bytes=max_bytes,
        size=size,
        readers=readers,
        dry_run=dry_run,
    )
    which = TableOptions(table=table, where=where, commit_every=commit_every, new_row_ids=new_row_ids)
    return _change(spark, which, options)


def inspect_table(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    snapshot: int | None = None,
    as_of: str | datetime | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> DataFrame:
    """Sum up the filters of the data files of one snapshot, one row for each file.

    Args:
        spark: a classic session, with the table's catalog.
        table, where: as for `add_to_table`.
        snapshot: the snapshot's id (Iceberg) or the version (Delta); None: the newest.
        as_of: read the snapshot that was current at this time; a time without a zone is in UTC.

    The other arguments are those of `bloomcli.inspect`.

    Returns, Raises: as `add_to_table`.
    """
    which = TableOptions(table=table, where=where, snapshot=snapshot, as_of=as_of)
    return _read(spark, which, InspectOptions(columns=columns, exclude=exclude))


def validate_table(
    spark: SparkSession,
    table: str,
    *,
    where: str | None = None,
    from_properties: bool = False,
    snapshot: int | None = None,
    as_of: str | datetime | None = None,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: Path | None = None,
    policy: Path | None = None,
    deep: bool = False,
) -> DataFrame:
    """Check that the filters of a table's files are sound and that required filters exist; `findings` has the faults.

    Args:
        spark: a classic session, with the table's catalog.
        table, where, snapshot, as_of: as for `inspect_table`.
        from_properties: require the filters that the table's properties request.

    The other arguments are those of `bloomcli.validate`.

    Returns, Raises: as `add_to_table`.
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
    )
    which = TableOptions(table=table, where=where, from_properties=from_properties, snapshot=snapshot, as_of=as_of)
    return _read(spark, which, options)


def probe_table(
    spark: SparkSession,
    table: str,
    values: Value | Sequence[Value],
    *,
    where: str | None = None,
    snapshot: int | None = None,
    as_of: str | datetime | None = None,
    column: str | None = None,
    exclude: Sequence[str] = (),
) -> DataFrame:
    """Look up values in the filters of a table's data files; `totals` has what a reader may skip for each value.

    Args:
        spark: a classic session, with the table's catalog.
        table, where, snapshot, as_of: as for `inspect_table`.

    The other arguments are those of `bloomcli.probe`.

    Returns, Raises: as `add_to_table`.
    """
    which = TableOptions(table=table, where=where, snapshot=snapshot, as_of=as_of)
    return _read(spark, which, ProbeOptions(values=values, column=column, exclude=exclude))


def _change(spark: SparkSession, which: TableOptions, options: WriteOptions) -> DataFrame:
    from bloomcli.datasets.engine import choose_engine
    from bloomcli.datasets.spark_frame import frame
    from bloomcli.tables.change import open_and_change

    return frame(spark, open_and_change(choose_engine(session=spark), options, which))


def _read(spark: SparkSession, which: TableOptions, options: Options) -> DataFrame:
    from bloomcli.datasets.engine import choose_engine, plan_files, run_tasks
    from bloomcli.datasets.spark_frame import frame
    from bloomcli.tables.reading import table_engine

    engine = table_engine(choose_engine(session=spark), which)
    return frame(spark, run_tasks(engine, plan_files(engine, (), options)))
