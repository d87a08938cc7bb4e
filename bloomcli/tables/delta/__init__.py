"""Delta Lake tables, changed by Delta's own transaction in the JVM of the user's Spark session.

jvm.py         calls of Java and Scala, and their errors
actions.py     the log's entries for files: full paths, names of new files, replacements
schema.py      names of columns, column mapping, filters that properties request
features.py    the table features whose tables can be changed
commits.py     transactions: conflicts, and commits with an unknown outcome
table.py       the table
"""

from __future__ import annotations

from bloomcli.tables.delta.table import DeltaTable as DeltaTable
from bloomcli.tables.delta.table import open_table as open_table
