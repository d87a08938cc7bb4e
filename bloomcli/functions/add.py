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
            names them. Without any, the columns that the policy requires, where they lack a filter.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        output: the file to write; or
        in_place: replace the file itself, atomically.
        force: replace it even within a Delta, Iceberg or Hudi table, whose log records the file's size.
        overwrite: let `output` replace a file that exists.
        fpp: false-positive rate to meet, between 0 and 1; if None, the policy's for the column, or else 0.01. ORC's
            filters have the size that orc-core gives them for the rate, and may miss it by a little: the report
            names those only if a rate is given.
        ndv: distinct values per row group to size for, instead of measuring. In ORC not more than a row group's
            rows, except below lists and maps, where a row has several.
        max_bytes: cap of one filter's bitset, bytes; rounded down to a power of two, unless `size` is "tight".
        size: "power-of-two", or "tight" for any multiple of 32 bytes, a third less on average. Tight sizes need
            `readers` (or the policy's), all of which take such filters; ORC's filters have them always. The policy's
            if None, or else "power-of-two".
        kind: ORC: "utf8" (the default), or "both" to write BLOOM_FILTER streams for old readers too.
        variant: Parquet, for tests and old readers: write one of the headers of the drafts of 2018
            ("parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"), hashed with Murmur3.
        mosaic_draft: Mosaic: write version 2 of the format, a draft that released readers refuse; without it
            filters can't be added to a Mosaic file. It has no effect on other formats.
        format_options: options of single formats, by name; for those of formats that other packages add.
        replace: build new filters where a column has filters already.
        readers: the engines that read the file. Globs leave columns out in which one of them would lose rows by a
            sound filter; where such a column is named, that is an error. All known engines that read files as they
            are, if none is named here or by the policy. Filters have at least two blocks where Impala is among them.
        table_schema: file with the table's schema, for readers that look values up at its types.
        policy: a policy, or the file that holds one. Its `readers`, its `table-schema` and its settings for the rules
            about readers apply; the arguments of this function take precedence.
        dry_run: write nothing; the report says what would be done, sizes being upper bounds.
        threads: column chunks decoded at a time; the machine's cores by default.
        progress: called with ("copy" or "decode", bytes done, bytes in all), from several threads.
        jobs: of many files: files at a time; as many as there are cores if None.
        fail_fast: of many files: stop at the first one that fails, and change none if one is refused.
        on_row: of many files: called with each file's row as the file is done.

    Returns:
        The report of one file. Of a directory, a pattern or a list, the report on many files: a `DatasetReport` with
        one row per file. In these, only missing filters are added, and files that have all of them are skipped.

    Raises:
        UsageError: contradicting options, an unknown or BOOLEAN column, one in which a reader would lose rows, a
            column that has a filter already, an unknown reader, a policy or a schema that can't be read.
        UnreadableError: the file can't be read, or changed meanwhile.
        UnsupportedError: encrypted columns, a signed footer, an unknown codec or encoding.
        WriteError: the output could not be written; the original is whole, nothing is left behind.
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
