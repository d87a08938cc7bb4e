"""bloom in Spark jobs and notebooks: many files at a time, on the executors, with a data frame of what was done.

    >>> from bloomcli import spark as bloom_spark
    >>> rows = bloom_spark.add(spark, "/mnt/lake/orders", columns=["id"], fpp=0.01, in_place=True)
    >>> rows.where("status = 'failed'").select("path", "error").show()
    >>> spark.dataSource.register(bloom_spark.BloomFilters)
    >>> spark.read.format("bloom").load("/mnt/lake/orders").groupBy("column").avg("fpp").show()

Each function does its work once, when it is called, and returns a frame of rows that are there: one a file, with
the fields of `bloomcli.model.dataset.FileRow`. A file that fails is a row too (`status` "failed", `error`, `hint`).
Executors need bloomcli, and have to see the files under the paths that the driver sees.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bloomcli.commands.arguments import names, readers_policy
from bloomcli.commands.values import Value, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from bloomcli.datasets.spark_source import BloomFilters

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a directory, a glob, a URI; or several of them."""

__all__ = ["BloomFilters", "add", "fold", "inspect", "probe", "remove", "validate"]


def add(
    spark: SparkSession,
    paths: Paths,
    columns: Sequence[str],
    *,
    exclude: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    fpp: float | None = None,
    ndv: int | None = None,
    max_bytes: int | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    replace: bool = False,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> DataFrame:
    """Add Bloom filters to files, where there are none yet: a run may be started again.

    Files that have them all are skipped. One whose filters can't be read, must not be used or miss what is asked for
    fails, unless `replace` is given.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        columns: one or several leaf paths or globs.
        exclude: one or several leaf paths or globs of columns to leave out, whatever `columns` says.
        output: the directory below which the tree is mirrored; or
        in_place: replace each file itself, atomically.
        fpp: false-positive rate to meet, measured, between 0 and 1; 0.01 where none is given. Filters that are there
            already have to meet one that is given, too.
        ndv: distinct values per row group to size for, instead of measuring.
        max_bytes: cap of one filter's bitset, bytes.
        kind: ORC: "utf8" or "both".
        variant: Parquet, for tests and old readers: the header of a draft of 2018.
        mosaic_draft: Mosaic: write version 2 of the format, a draft.
        replace: build new filters where there are some already.
        readers: engines that read the files: columns in which one would lose rows by a sound filter get none. All
            known ones that read files as they are, if none is named here or by the policy.
        table_schema: file with the table's schema, which the driver reads.
        policy: policy file, which the driver reads.
        overwrite: let outputs replace files that exist.
        force: change files in place even within a Delta, Iceberg or Hudi table.
        dry_run: write nothing; rows say what would be done.

    Returns:
        One row a file, with the fields of `FileRow`.

    Raises:
        UsageError: contradicting options, or no files.
        UnsupportedError: paths that can't be written to, a session that can't run tasks, executors without bloomcli.
        UnreadableError: a directory can't be listed, or the Spark job failed.
    """
    options = {
        "columns": names(columns, "columns"),
        "exclude": names(exclude, "columns"),
        "fpp": fpp,
        "ndv": ndv,
        "max_bytes": max_bytes,
        "kind": kind,
        "variant": variant,
        "mosaic_draft": mosaic_draft,
        "replace": replace,
        "policy": readers_policy(policy, readers=readers, table_schema=table_schema),
        "overwrite": overwrite,
        "force": force,
        "dry_run": dry_run,
    }
    return _run(spark, "add", paths, options, output=output, in_place=in_place)


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
    """Remove Bloom filters from files; Parquet files that `add` changed become what they were, bit for bit.

    Args:
        spark: the session to run on.
        paths: files, directories and globs.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, whatever `columns` says.
        output: the directory below which the tree is mirrored; or
        in_place: replace each file itself, atomically.
        overwrite: let outputs replace files that exist.
        force: change files in place even within a Delta, Iceberg or Hudi table.
        dry_run: write nothing; rows say what would be done.

    Returns, Raises: as `add`.
    """
    options = {
        "columns": names(columns, "columns"),
        "exclude": names(exclude, "columns"),
        "overwrite": overwrite,
        "force": force,
        "dry_run": dry_run,
    }
    return _run(spark, "remove", paths, options, output=output, in_place=in_place)


def fold(
    spark: SparkSession,
    paths: Paths,
    *,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    fpp: float = 0.01,
    max_bytes: int | None = None,
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
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, whatever `columns` says.
        fpp: false-positive rate to keep to, measured, between 0 and 1.
        max_bytes: fold further, down to this size, even where that misses the rate.
        output: the directory below which the tree is mirrored; or
        in_place: replace each file itself, atomically.
        overwrite: let outputs replace files that exist.
        force: change files in place even within a Delta, Iceberg or Hudi table.
        dry_run: write nothing; rows say what would be done.

    Returns, Raises: as `add`.
    """
    options = {
        "columns": names(columns, "columns"),
        "exclude": names(exclude, "columns"),
        "fpp": fpp,
        "max_bytes": max_bytes,
        "overwrite": overwrite,
        "force": force,
        "dry_run": dry_run,
    }
    return _run(spark, "fold", paths, options, output=output, in_place=in_place)


def inspect(
    spark: SparkSession, paths: Paths, *, columns: Sequence[str] = (), exclude: Sequence[str] = ()
) -> DataFrame:
    """Sum up the filters of files, one row a file. The data source "bloom" has a row for each filter.

    Args:
        spark: the session to run on.
        paths: files, directories and globs, or URIs.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, whatever `columns` says.

    Returns, Raises: as `add`.
    """
    options = {"columns": names(columns, "columns"), "exclude": names(exclude, "columns")}
    return _run(spark, "inspect", paths, options)


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
    """Check that the filters of files are sound and there; `findings` says what isn't.

    `bloomcli.gate(paths, session=spark, ...)` gives one verdict instead, with baselines and samples.

    Args:
        spark: the session to run on.
        paths: files, directories and globs, or URIs.
        columns: one or several leaf paths or globs to check; none means all.
        exclude: one or several leaf paths or globs of columns that nothing is said of, whatever else names them.
        require: one or several leaf columns that must have a filter in every row group.
        max_fpp: highest measured false-positive rate accepted.
        max_oversize: how many times as large as its values need a filter may be, at least 1.
        readers: engines that read the files: where one would probe a filter wrongly is a finding.
        table_schema: file with the table's schema, which the driver reads.
        policy: policy file, which the driver reads.
        deep: read the columns again and prove that no value is missing.

    Returns, Raises: as `add`.
    """
    from bloomcli.commands.validate import asked_for

    asked = asked_for(policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table_schema=table_schema)
    options = {
        "columns": names(columns, "columns"),
        "exclude": names(exclude, "columns"),
        "require": names(require, "columns"),
        "policy": asked,
        "deep": deep,
    }
    return _run(spark, "validate", paths, options)


def probe(
    spark: SparkSession,
    paths: Paths,
    values: Value | Sequence[Value],
    *,
    column: str | None = None,
    exclude: Sequence[str] = (),
) -> DataFrame:
    """Ask the filters of files about values; `totals` says what a reader may skip for each.

    Args:
        spark: the session to run on.
        paths: files, directories and globs, or URIs.
        values: one or several: texts as a person types them, numbers, dates, UUIDs. They are read as the column's
            logical type.
        column: leaf path; may be left out where one column only has filters.
        exclude: one or several leaf paths or globs of columns that aren't meant where none is named.

    Returns, Raises: as `add`.
    """
    options = {"values": texts(values), "column": column, "exclude": names(exclude, "columns")}
    return _run(spark, "probe", paths, options)


def _run(
    spark: SparkSession,
    command: str,
    paths: Paths,
    options: dict[str, Any],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
) -> DataFrame:
    from bloomcli.datasets.spark import run
    from bloomcli.datasets.spark_frame import frame

    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    report = run(command, [os.fspath(p) for p in named], options, output=output, in_place=in_place, session=spark)
    return frame(spark, report)


def __getattr__(name: str) -> Any:
    """The data source, whose class can only be made where PySpark is."""
    if name != "BloomFilters":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from bloomcli.datasets.spark_source import BloomFilters
    except ImportError:
        from bloomcli.errors import UnsupportedError

        raise UnsupportedError("PySpark isn't installed", hint="pip install 'bloomcli[spark]'") from None
    return BloomFilters
