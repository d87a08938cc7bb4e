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
from typing import TYPE_CHECKING, Any, Unpack

from bloomcli.advice.on_spark import advise, advise_table
from bloomcli.commands.keywords import (
    AddOnSparkKeywords,
    ColumnKeywords,
    FoldOnSparkKeywords,
    IndexBuildOnSparkKeywords,
    IndexUpdateOnSparkKeywords,
    ProbeOnSparkKeywords,
    RemoveOnSparkKeywords,
    RepairOnSparkKeywords,
    ValidateOnSparkKeywords,
)
from bloomcli.commands.option import split_keywords, taken_path, taken_paths, takes_options
from bloomcli.commands.options import (
    OF_MANY_FILES,
    OF_NEW_INDEXES,
    AddOptions,
    FoldOptions,
    IndexOptions,
    IndexTarget,
    InspectOptions,
    Options,
    ProbeOptions,
    RemoveOptions,
    RepairOptions,
    ValidateOptions,
)
from bloomcli.commands.values import Value
from bloomcli.datasets.engine import spark_engine
from bloomcli.finding.on_spark import find, find_table
from bloomcli.finding.reachable import find_reachable
from bloomcli.model.index import IndexReport
from bloomcli.report import show_in_notebooks
from bloomcli.tables.functions import (
    add_to_table,
    fold_table,
    inspect_table,
    probe_table,
    remove_from_table,
    repair_table,
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
    "find_reachable",
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
    "repair",
    "repair_table",
    "validate",
    "validate_table",
]


show_in_notebooks()


@takes_options(AddOptions, without={"threads"})
def add(
    spark: SparkSession, paths: Paths, columns: Sequence[str] = (), **options: Unpack[AddOnSparkKeywords]
) -> DataFrame:
    """Add Bloom filters to columns of files that have none yet, so that a run can be repeated.

    Files that have all filters are skipped. A file fails if its filters can't be read, must not be used, or don't
    meet the options, unless `replace` is given. Existing filters have to meet the rate, too, if it is given. The
    driver reads the policy and the table's schema.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        output: the directory below which the tree of files is written.
        {options}

    Returns:
        One row per file, with the fields of `FileRow`.

    Raises:
        UsageError: contradicting options, or no files.
        UnsupportedError: paths that can't be written to, a session that can't run tasks, executors without bloomcli.
        UnreadableError: a directory can't be listed, or the Spark job failed.
    """
    return _run(spark, paths, AddOptions.of(columns=columns, **options))


@takes_options(RemoveOptions)
def remove(spark: SparkSession, paths: Paths, **options: Unpack[RemoveOnSparkKeywords]) -> DataFrame:
    """Remove Bloom filters from files. Parquet files that `add` changed are restored, bit for bit.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        output: the directory below which the tree of files is written.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, RemoveOptions(**options))


@takes_options(FoldOptions)
def fold(spark: SparkSession, paths: Paths, **options: Unpack[FoldOnSparkKeywords]) -> DataFrame:
    """Shrink oversized filters of files, without reading a column.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        output: the directory below which the tree of files is written.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, FoldOptions(**options))


@takes_options(RepairOptions, without={"threads"})
def repair(spark: SparkSession, paths: Paths, **options: Unpack[RepairOnSparkKeywords]) -> DataFrame:
    """Mend statistics and page indexes of Parquet files, or add them where they are missing.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        output: the directory below which the tree of files is written.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, RepairOptions(**options))


@takes_options(InspectOptions, without={"every", "pages", "indexes", "schema", "footer"})
def inspect(spark: SparkSession, paths: Paths, **options: Unpack[ColumnKeywords]) -> DataFrame:
    """Summarize the filters of files, one row per file. The data source "bloom" has a row for each filter.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, InspectOptions(**options))


@takes_options(ValidateOptions, without={"threads", "sample_row_groups", "seed"} | OF_MANY_FILES)
def validate(spark: SparkSession, paths: Paths, **options: Unpack[ValidateOnSparkKeywords]) -> DataFrame:
    """Check that the filters of files are sound and that required filters exist. The column `findings` has the
    faults. The driver reads the policy and the table's schema.

    `bloomcli.gate(paths, session=spark, ...)` returns one result for all files instead, with baselines and samples.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, ValidateOptions(**options))


@takes_options(ProbeOptions, without={"explain", "skip_blank"})
def probe(
    spark: SparkSession, paths: Paths, values: Value | Sequence[Value] | Any, **options: Unpack[ProbeOnSparkKeywords]
) -> DataFrame:
    """Look values up in the filters of files. The column `totals` shows what a reader can skip for each value.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        values: one value or several, or a column of them, as for `bloomcli.probe`.
        {options}

    Returns, Raises: as `add`.
    """
    return _run(spark, paths, ProbeOptions(values=values, **options))


@takes_options(IndexOptions, IndexTarget)
def index_build(
    spark: SparkSession, paths: Paths, columns: Sequence[str], **options: Unpack[IndexBuildOnSparkKeywords]
) -> IndexReport:
    """Build an index of columns of many files: executors read the files, and the driver writes the index.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        columns: one or several leaf paths. A file needn't have all of them.
        {options}

    Returns, Raises: as `bloomcli.index_build`; and UnsupportedError, UnreadableError as `add`.
    """
    from bloomcli.indexing.build import build

    engine = spark_engine(spark)
    of_index, of_target = split_keywords((IndexOptions, IndexTarget), options)
    chosen = IndexOptions(columns=columns, **of_index)
    target = IndexTarget(**of_target).checked(dry_run=chosen.dry_run)
    return build(engine, taken_paths("paths", paths), chosen, target)


@takes_options(IndexOptions, IndexTarget, without=OF_NEW_INDEXES)
def index_update(
    spark: SparkSession,
    paths: Paths,
    index: str | os.PathLike[str],
    **options: Unpack[IndexUpdateOnSparkKeywords],
) -> IndexReport:
    """Update an index for the files that paths name: executors read new and changed files.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        index: the index, a path or a URI.
        {options}

    Returns, Raises: as `bloomcli.index_update`; and UnsupportedError, UnreadableError as `add`.
    """
    from bloomcli.indexing.build import update

    of_index, of_target = split_keywords((IndexOptions, IndexTarget), options)
    target = IndexTarget(output=taken_path("index", index), overwrite=True, **of_target)
    return update(spark_engine(spark), taken_paths("paths", paths), target, **of_index)


def _run(spark: SparkSession, paths: Paths, options: Options) -> DataFrame:
    from bloomcli.datasets.engine import plan_files, run_tasks
    from bloomcli.datasets.spark_frame import frame

    engine = spark_engine(spark)
    return frame(spark, run_tasks(engine, plan_files(engine, taken_paths("paths", paths), options)))


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Return the data source, whose class needs PySpark."""
    if name != "BloomFilters":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from bloomcli.datasets.spark_source import BloomFilters
    except ImportError:
        from bloomcli.errors import UnsupportedError, install

        raise UnsupportedError("PySpark isn't installed", hint=install("spark")) from None
    return BloomFilters
