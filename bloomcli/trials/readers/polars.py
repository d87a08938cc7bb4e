"""Polars. It skips row groups by statistics, and never uses filters."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics, Rows, rows_of


class InstalledReader(Reader):
    """Runs lazy scans of one file."""

    def query(self, lookup: Lookup) -> Query:
        """Prepare a scan with a filter."""
        top, *inner = lookup.names
        scan = pl.scan_parquet(lookup.path, hive_partitioning=False)
        field = pl.nth(scan.collect_schema().names().index(top))  # pl.col takes * and ^...$ as patterns
        for name in inner:
            field = field.struct.field(name)
        series = pl.Series(values=pa.array([lookup.value]))
        frame = scan.filter(field == pl.lit(series).first())

        def run() -> Rows:
            if not lookup.whole:
                return int(frame.select(pl.len()).collect().item())
            return rows_of(frame.collect().to_arrow())

        return Query(run, ReadMetrics)
