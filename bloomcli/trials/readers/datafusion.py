"""DataFusion. Its metrics: the row groups that remain after statistics and filters, and the bytes that it reads."""

from __future__ import annotations

import re
from typing import Any, Final

import datafusion
import pyarrow as pa
from datafusion import col, lit

from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics, rows_of
from bloomcli.trials.texts import quoted_name, storage_of

_SWITCH: Final = "datafusion.execution.parquet.bloom_filter_on_read"
_LEFT: Final = re.compile(r"row_groups_pruned_bloom_filter\{[^}]*\}=\d+ total → (\d+) matched")
"""Finds the row groups that remain after filters; with filters off, those that remain after statistics."""


class InstalledReader(Reader):
    """Two sessions of DataFusion: one with filters, one without."""

    def __init__(self) -> None:
        self._sessions = {
            on: datafusion.SessionContext(datafusion.SessionConfig().set(_SWITCH, "true" if on else "false"))
            for on in (True, False)
        }
        self._tables: dict[tuple[bool, str], Any] = {}

    def query(self, lookup: Lookup) -> Query:
        """Prepare a filtered data frame."""
        table = self._table(lookup)
        top, *inner = lookup.names
        field, kind = col(quoted_name(top)), table.schema().field(top).type
        for name in inner:
            field, kind = field[name], kind.field(name).type
        frame = table.filter(field == lit(lookup.value.cast(storage_of(kind))))
        if not lookup.whole:
            from datafusion import functions

            frame = frame.aggregate([], [functions.count(lit(1)).alias("rows")])

        def run() -> Any:
            batches = frame.collect()
            if not lookup.whole:
                return sum(batch.column(0)[0].as_py() for batch in batches)
            return rows_of(pa.Table.from_batches(batches)) if batches else []

        return Query(run, lambda: _read(frame))

    def _table(self, lookup: Lookup) -> Any:
        key = (lookup.filters, lookup.path)
        if key not in self._tables:
            self._tables[key] = self._sessions[lookup.filters].read_parquet(lookup.path)
        return self._tables[key]


def _read(frame: Any) -> ReadMetrics:
    metrics = frame.execution_plan().collect_metrics()
    scanned = [metric_set.sum_by_name("bytes_scanned") for _, metric_set in metrics]
    return ReadMetrics(
        row_groups=sum(map(int, _LEFT.findall(repr(metrics)))), bytes=sum(value for value in scanned if value)
    )
