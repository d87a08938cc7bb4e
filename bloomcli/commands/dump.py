"""dump: one filter's bits."""

from __future__ import annotations

import os

from bloomcli.commands.columns import only_column
from bloomcli.formats.keys import Keys, keys_of
from bloomcli.formats.registry import open_file
from bloomcli.model.inspect import FilterDump
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted


@convert_os_errors_of_file
@counted
def dump(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    row_group: int = 0,
    stripe: int = 0,
    keys: Keys | None = None,
) -> FilterDump:
    """Read one filter's header and bitset.

    Args:
        path: the file, local or a URI.
        column: leaf path; optional if only one column has filters.
        row_group: counted from 0; in ORC within its stripe.
        stripe: ORC: the stripe, counted from 0.
        keys: the keys of an encrypted file: a `Keys`, or a mapping of its fields.

    Returns the facts, the header's bytes, and the bitset: in Parquet blocks of 32 bytes, each eight
    little-endian 32-bit words; in ORC little-endian longs.

    Raises:
        UsageError: the row group doesn't exist, or has no filter.
        CorruptFile: the filter can't be read.
    """
    with open_source(path) as source:
        file = open_file(source, keys=None if keys is None else keys_of(keys))
        return file.dump(only_column(file, column, purpose="dump"), row_group, stripe)
