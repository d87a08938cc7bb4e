"""bloomcli.add"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from bloomcli.commands import add as command
from bloomcli.commands.keywords import AddKeywords
from bloomcli.commands.option import takes_options
from bloomcli.commands.options import AddOptions
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
    return run(path, options_of(AddOptions.of, options, columns=columns), options, command.run)
