"""bloom in Spark jobs and notebooks: many files at a time, on the executors, with a data frame of the results.

    >>> from bloomcli import spark as bloom_spark
    >>> rows = bloom_spark.add(spark, "/mnt/lake/orders", columns=["id"], fpp=0.01, in_place=True)
    >>> rows.where("status = 'failed'").select("path", "error").show()
    >>> bloom_spark.add_to_table(spark, "ice.db.orders", columns=["id"], where="day >= '2026-11-01'").show()
    >>> spark.dataSource.register(bloom_spark.BloomFilters)
    >>> spark.read.format("bloom").load("/mnt/lake/orders").groupBy("column").avg("fpp").show()

Each function does its work once, when it is called, and returns a frame of finished rows: one per file, with the
fields of `bloomcli.model.dataset.FileRow`. A file that fails has a row, too (`status` "failed", `error`, `hint`).
Executors need bloomcli, and access to the files under the same paths as the driver.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bloomcli.advice.on_spark import advise, advise_table
from bloomcli.commands.index_options import IndexOptions
from bloomcli.commands.options import (
    FPP,
    AddOptions,
    FoldOptions,
    InspectOptions,
    ProbeOptions,
    RemoveOptions,
    ValidateOptions,
)
from bloomcli.commands.options_base import Options
from bloomcli.commands.values import Value
from bloomcli.datasets.engine import choose_engine
from bloomcli.finding.on_spark import find, find_table
from bloomcli.formats.format import NO_OPTIONS, OptionValues
from bloomcli.model.indexing import IndexReport
from bloomcli.model.sizes import POWER_OF_TWO
from bloomcli.tables.functions import (
    add_to_table,
    fold_table,
    inspect_table,
    probe_table,
    remove_from_table,
    validate_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bloomcli.datasets.spark_source import BloomFilters

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a directory, a glob, a URI; or several of them."""

__all__ = [
    "BloomFilters",
    "add",
    "add_to_table",
    "advise",
    "advise_table",
    "find",
    "find_table",
    "fold",
    "fold_table",
    "index_build",
    "index_update",
    "inspect",
    "inspect_table",
    "probe",
    "probe_table",
    "remove",
    "remove_from_table",
    "validate",
    "validate_table",
]


def add(
    spark: SparkSession,
    paths: Paths,
    columns: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    fpp: float | None = None,
    ndv: int | None = None,
    max_bytes: int | None = None,
    size: str | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    format_options: OptionValues = NO_OPTIONS,
    replace: bool = False,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> DataFrame:
    """Add Bloom filters to columns of files that have none yet, so that a run can be repeated.

    Files that have all filters are skipped. A file fails if its filters can't be read, must not be used, or don't
    meet the options, unless `replace` is given. Existing filters have to meet the rate, too, if it is given.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        columns: one or several leaf paths or globs; without any, the columns that the policy requires.
        output: the directory below which the tree of files is written; or
        in_place: replace each file itself, atomically.
        table_schema, policy: files, which the driver reads.

    The other arguments are those of `bloomcli.add`.

    Returns:
        One row per file, with the fields of `FileRow`.

    Raises:
        UsageError: contradicting options, or no files.
        UnsupportedError: paths that can't be written to, a session that can't run tasks, executors without bloomcli.
        UnreadableError: a directory can't be listed, or the Spark job failed.
    """
    options = AddOptions(
        columns=columns,
        exclude=exclude,
        output=output,
        in_place=in_place,
        fpp=fpp,
        ndv=ndv,
        max_bytes=max_bytes,
        size=size,
        kind=kind,
        variant=variant,
        mosaic_draft=mosaic_draft,
        format_options=format_options,
        replace=replace,
        readers=readers,
        table_schema=table_schema,
        policy=policy,
        overwrite=overwrite,
        force=force,
        dry_run=dry_run,
    )
    return _run(spark, paths, options)


def remove(
    spark: SparkSession,
    paths: Paths,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> DataFrame:
    """Remove Bloom filters from files. Parquet files that `add` changed are restored, bit for bit.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.remove`, but `output` is a directory, below which the tree is written.

    Returns, Raises: as `add`.
    """
    options = RemoveOptions(
        columns=columns,
        exclude=exclude,
        output=output,
        in_place=in_place,
        overwrite=overwrite,
        force=force,
        dry_run=dry_run,
    )
    return _run(spark, paths, options)


def fold(
    spark: SparkSession,
    paths: Paths,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    fpp: float = FPP,
    max_bytes: int | None = None,
    size: str = POWER_OF_TWO,
    readers: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> DataFrame:
    """Shrink oversized filters of files, without reading a column.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.fold`, but `output` is a directory, below which the tree is written.

    Returns, Raises: as `add`.
    """
    options = FoldOptions(
        columns=columns,
        exclude=exclude,
        fpp=fpp,
        max_bytes=max_bytes,
        size=size,
        readers=readers,
        output=output,
        in_place=in_place,
        overwrite=overwrite,
        force=force,
        dry_run=dry_run,
    )
    return _run(spark, paths, options)


def inspect(
    spark: SparkSession, paths: Paths, *, columns: Sequence[str] = (), exclude: Sequence[str] = ()
) -> DataFrame:
    """Summarize the filters of files, one row per file. The data source "bloom" has a row for each filter.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.inspect`.

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, InspectOptions(columns=columns, exclude=exclude))


def validate(
    spark: SparkSession,
    paths: Paths,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    require: Sequence[str] = (),
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
    deep: bool = False,
) -> DataFrame:
    """Check that the filters of files are sound and that required filters exist. The column `findings` has the
    faults.

    `bloomcli.gate(paths, session=spark, ...)` returns one result for all files instead, with baselines and samples.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        table_schema, policy: files, which the driver reads.

    The other arguments are those of `bloomcli.validate`.

    Returns, Raises: as `add`.
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
    return _run(spark, paths, options)


def probe(
    spark: SparkSession,
    paths: Paths,
    values: Value | Sequence[Value],
    *,
    column: str | None = None,
    exclude: Sequence[str] = (),
) -> DataFrame:
    """Look values up in the filters of files. The column `totals` shows what a reader can skip for each value.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.probe`.

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, ProbeOptions(values=values, column=column, exclude=exclude))


def index_build(
    spark: SparkSession,
    paths: Paths,
    columns: Sequence[str],
    *,
    output: str | os.PathLike[str] | None = None,
    fpp: float = FPP,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> IndexReport:
    """Build an index of columns of many files: executors read the files, and the driver writes the index.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.index_build`.

    Returns, Raises: as `bloomcli.index_build`; and UnsupportedError, UnreadableError as `add`.
    """
    from bloomcli.indexing.build import Target, build

    options = IndexOptions(columns=columns, fpp=fpp, dry_run=dry_run)
    target = Target.named(output, dry_run=dry_run, overwrite=overwrite, force=force)
    return build(choose_engine(session=spark), _named(paths), options, target)


def index_update(
    spark: SparkSession,
    paths: Paths,
    index: str | os.PathLike[str],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> IndexReport:
    """Update an index for the files that paths name: executors read new and changed files.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.

    The other arguments are those of `bloomcli.index_update`.

    Returns, Raises: as `bloomcli.index_update`; and UnsupportedError, UnreadableError as `add`.
    """
    from bloomcli.indexing.build import Target, update

    target = Target(path=os.fspath(index), overwrite=True, force=force)
    return update(choose_engine(session=spark), _named(paths), target, dry_run=dry_run)


def _named(paths: Paths) -> list[str]:
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [os.fspath(path) for path in named]


def _run(spark: SparkSession, paths: Paths, options: Options) -> DataFrame:
    from bloomcli.datasets.engine import plan_files, run_tasks
    from bloomcli.datasets.spark_frame import frame

    engine = choose_engine(session=spark)
    return frame(spark, run_tasks(engine, plan_files(engine, _named(paths), options)))


def __getattr__(name: str) -> Any:
    """Return the data source, whose class needs PySpark."""
    if name != "BloomFilters":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from bloomcli.datasets.spark_source import BloomFilters
    except ImportError:
        from bloomcli.errors import UnsupportedError

        raise UnsupportedError("PySpark isn't installed", hint="pip install 'bloomcli[spark]'") from None
    return BloomFilters
