"""Delta Lake tables, changed by Delta's own transaction in the JVM of the user's Spark session.

jvm.py         calls of Java and Scala, and their errors
schema.py      names of columns, column mapping, filters that properties request
statistics.py  statistics and partition values of the log's entries
snapshot.py    a version: the features whose tables can be changed, and the entries of data files
reading.py     reads a version, whoever has read its entries from the log: Delta, or `log.py` without Spark
table.py       the table of a session, and its commits: conflicts, and commits with an unknown outcome
"""

from __future__ import annotations

from bloomcli.tables.delta.table import DeltaTable as DeltaTable
from bloomcli.tables.delta.table import open_table as open_table
