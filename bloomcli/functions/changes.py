"""The functions that change files: bloomcli.add, remove, fold and repair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from bloomcli.commands import change
from bloomcli.commands.keywords import AddKeywords, FoldKeywords, RemoveKeywords, RepairKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import AddOptions, FoldOptions, RemoveOptions, RepairOptions
from bloomcli.functions.files import Files, ProgressOption, RunOptions, options_of, run, takes_files
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport


@takes_files(DatasetReport)
@takes_options(AddOptions, RunOptions, ProgressOption)
def add(path: Files, columns: Sequence[str] = (), **options: Unpack[AddKeywords]) -> ChangeReport:
    """Add Bloom filters to a file. Existing bytes are copied, never re-encoded.

    Each filter is built at an upper bound and folded to the smallest power of two whose measured
    false-positive rate meets `fpp`. With `ndv` its size is arrow-rs's formula instead: the next power of
    two of -8 n / ln(1 - fpp^(1/8)) bits. With `size="tight"` it has any multiple of 32 bytes: the
    smallest one found whose measured rate meets `fpp`, or with `ndv` whose expected rate does.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

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
    return run(path, options_of(AddOptions.of, options, columns=columns), options, change.run)


@takes_files(DatasetReport)
@takes_options(RemoveOptions, RunOptions, ProgressOption)
def remove(path: Files, **options: Unpack[RemoveKeywords]) -> ChangeReport:
    """Remove Bloom filters.

    In Parquet and Mosaic, removing the filters that `add` added restores the original file, bit for bit. In ORC, all
    other streams and all fields of the footers stay the same, but the footers are encoded and compressed again, and
    those of another writer may then have other bytes.

    Filters at the file's end, among page indexes, are cut out. For filters between row groups, only the references
    are removed: their bytes stay, because pages can't move.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`.
    """
    return run(path, options_of(RemoveOptions, options), options, change.run)


@takes_files(DatasetReport)
@takes_options(FoldOptions, RunOptions, ProgressOption)
def fold(path: Files, **options: Unpack[FoldKeywords]) -> ChangeReport:
    """Fold filters to the smallest size whose measured false-positive rate still meets `fpp`.

    A split-block filter of z blocks (z even) becomes exactly the filter that z/2 blocks would have given,
    by ORing neighbouring blocks: block i of the smaller one is chosen by the same hashes as 2i and 2i+1.
    From its bits alone, a filter of z blocks can be resized exactly to divisors of z; at the other sizes of
    `size="tight"`, some of its blocks are copied into two new blocks.

    Args:
        path: a file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; CorruptFile if a filter can't be read.
    """
    return run(path, options_of(FoldOptions, options), options, change.run)


@takes_files(DatasetReport)
@takes_options(RepairOptions, RunOptions, ProgressOption)
def repair(path: Files, **options: Unpack[RepairKeywords]) -> ChangeReport:
    """Mend what readers skip by besides filters, or add it where it is missing: statistics and page indexes.

    Without `add`, the columns are read, and statistics and page indexes that are wrong are replaced by right ones, or
    taken out where the format has no right value. With `add`, only columns that lack something are read. No page
    changes, and columns without a finding keep their metadata.

    Args:
        path: a Parquet file, a directory, a quoted pattern or a URI; or a list of them.
        {options}

    Returns:
        The report on one file. For a directory, a pattern or a list, a `DatasetReport` with one row per file.

    Raises:
        As `add`; UnsupportedError for files of other formats.
    """
    return run(path, options_of(RepairOptions, options), options, change.run)
