"""bloomcli.add"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.commands import add as command
from bloomcli.commands.options import AddOptions
from bloomcli.commands.progress import Progress
from bloomcli.formats.format import NO_OPTIONS, OptionValues
from bloomcli.functions.files import Files, OnRow, RunOptions, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.policy.policy import Policy


@takes_files(DatasetReport)
def add(
    path: Files,
    columns: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
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
    policy: Policy | str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> ChangeReport:
    """Add Bloom filters to a file. Existing bytes are copied, never re-encoded.

    Each filter is built at an upper bound and folded to the smallest power of two whose measured
    false-positive rate meets `fpp`. With `ndv` its size is arrow-rs's formula instead: the next power of
    two of -8 n / ln(1 - fpp^(1/8)) bits. With `size="tight"` it has any multiple of 32 bytes: the
    smallest one found whose measured rate meets `fpp`, or with `ndv` whose expected rate does.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        columns: one or several leaf paths or globs. Globs leave out columns that can't have a filter: the report
            names them. By default, the columns that the policy requires and that have no filter.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        output: the file to write; or
        in_place: replace the file itself, atomically.
        force: replace it even within a Delta, Iceberg or Hudi table, whose log records the file's size.
        overwrite: let `output` replace a file that exists.
        fpp: false-positive rate to meet, between 0 and 1; if None, the policy's rate for the column, or else 0.01.
            ORC filters have the size that orc-core computes for the rate, and may miss it slightly: the report names
            these filters only if a rate is given.
        ndv: distinct values per row group, from which the size is computed instead of measured. In ORC at most the
            rows of a row group, except below lists and maps, where a row has several values.
        max_bytes: maximum size of one filter's bitset, bytes; rounded down to a power of two, unless `size` is
        "tight". size: "power-of-two", or "tight" for any multiple of 32 bytes, a third less on average. Tight sizes
        need
            `readers` (or the policy's), all of which accept such filters. ORC filters always have tight sizes. If
            None, the policy's, or else "power-of-two".
        kind: ORC: "utf8" (the default), or "both" to also write BLOOM_FILTER streams, for old readers.
        variant: Parquet, for tests and old readers: write one of the headers of the 2018 drafts
            ("parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"), hashed with Murmur3.
        mosaic_draft: Mosaic: write version 2 of the format, a draft that released readers refuse; without it
            filters can't be added to a Mosaic file. It has no effect on other formats.
        format_options: options of single formats, by name; for formats that other packages add.
        replace: build new filters for columns that have filters already.
        readers: the engines that read the file. Globs leave out columns in which one of them would lose rows because
            of a sound filter; naming such a column is an error. By default the policy's readers, or else all known
            engines that read files directly. If Impala is one of them, filters have at least two blocks.
        table_schema: file with the table's schema, for readers that look values up at its types.
        policy: a policy, or its file. Its `readers`, its `table-schema` and its settings for the rules
            about readers apply; the arguments of this function take precedence.
        dry_run: write nothing; the report shows what would be done, with upper bounds of sizes.
        threads: column chunks decoded at a time; the machine's cores by default.
        progress: called with ("copy" or "decode", bytes done, total bytes), from several threads.
        jobs: for many files: files at a time; by default the number of cores.
        fail_fast: for many files: stop at the first file that fails, and change no file if one is refused.
        on_row: for many files: called with each file's row when the file is done.

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file; there,
        only missing filters are added, and files that have all filters are skipped.

    Raises:
        UsageError: contradicting options, an unknown or BOOLEAN column, one in which a reader would lose rows, a
            column that has a filter already, an unknown reader, a policy or a schema that can't be read.
        UnreadableError: the file can't be read, or changed during the run.
        UnsupportedError: encrypted columns, a signed footer, an unknown codec or encoding.
        WriteError: the output couldn't be written. The original is unchanged, and nothing is left behind.
    """
    options = AddOptions(
        columns=columns,
        exclude=exclude,
        output=output,
        in_place=in_place,
        force=force,
        overwrite=overwrite,
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
        dry_run=dry_run,
        threads=threads,
    )
    return run(
        path,
        options,
        command.run,
        RunOptions(jobs, fail_fast, on_row),
        progress=progress,
    )
