"""Iceberg tables: the files of a snapshot, and the `replace` snapshot that puts copies with other filters in place.

`reading` has what a search needs, and `schema` the columns and the requested filters, whoever has read the metadata:

    without Spark    `metadata` reads them from files, which a directory or a catalog of PyIceberg's names
    with Spark       `opening` resolves a table's name, `table` lists files by the session's library (`scans`), and
                     `commit` replaces them together with the delete files that apply to them (`deletes`)
"""

from __future__ import annotations

from bloomcli.tables.iceberg.commit import IcebergTable
from bloomcli.tables.iceberg.opening import open_table

__all__ = ["IcebergTable", "open_table"]
