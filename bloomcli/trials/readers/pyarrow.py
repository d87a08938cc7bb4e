"""PyArrow's datasets. They skip row groups by statistics, and never use filters."""

from __future__ import annotations

import pyarrow.dataset as ds

from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics, Rows, rows_of


class InstalledReader(Reader):
    """Runs scans of one file."""

    def query(self, lookup: Lookup) -> Query:
        """Prepare a scan with a filter."""
        data = ds.dataset(lookup.path, format=lookup.format, partitioning=None)
        condition = ds.field(*lookup.names) == lookup.value

        def run() -> Rows:
            if not lookup.whole:
                return int(data.count_rows(filter=condition))
            return rows_of(data.to_table(filter=condition))

        return Query(run, ReadMetrics)
