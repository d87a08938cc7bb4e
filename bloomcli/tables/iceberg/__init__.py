"""Iceberg tables: the files of a snapshot, and the `replace` snapshot that puts copies with other filters in place.

All access uses the Iceberg library of the user's Spark session. `opening` resolves a table's name, `schema` and
`properties` read the columns and the requested filters, `checks` refuses tables that would lose something, and
`commit` replaces files together with the delete files that apply to them (`deletes`).
"""

from __future__ import annotations

from bloomcli.tables.iceberg.opening import open_table
from bloomcli.tables.iceberg.table import IcebergTable

__all__ = ["IcebergTable", "open_table"]
