"""Spark, on all cores of this machine. Its metrics: the rows of the row groups that it doesn't skip."""

from __future__ import annotations

from typing import Any, Final

from bloomcli.datasets.spark_session import session, sql_type
from bloomcli.trials.readers.base import Lookup, Query, Reader, ReadMetrics, Rows
from bloomcli.trials.texts import escaped_literal, is_binary, sql_text

_SWITCH: Final = "parquet.filter.bloom.enabled"
_CONF: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}


class InstalledReader(Reader):
    """A local session of Spark."""

    def __init__(self) -> None:
        self._session = session("local[*]", _CONF)
        self._frames: dict[tuple[bool, str], Any] = {}
        self._types: dict[tuple[str, tuple[str, ...]], str] = {}

    def query(self, lookup: Lookup) -> Query:
        """Prepare a filtered data frame."""
        frame = self._frame(lookup)
        column = self._column(lookup, frame)
        selection = frame.where(f"{column} = {self._literal(lookup, frame, column)}")
        selection = selection.selectExpr("cast(struct(*) as string) as r" if lookup.whole else "count(*) as r")

        def run() -> Rows:
            rows = selection.collect()
            return [row[0] for row in rows] if lookup.whole else int(rows[0][0])

        return Query(run, lambda: ReadMetrics(rows=_rows_read(selection)))

    def _frame(self, lookup: Lookup) -> Any:
        """The data frame of a file, cached so that Spark reads the schema once."""
        key = (lookup.filters, lookup.path)
        if key not in self._frames:
            reader = self._session.read.format(lookup.format)
            if lookup.format == "parquet":
                reader = reader.option(_SWITCH, str(lookup.filters).lower())
            self._frames[key] = reader.load(lookup.path)
        return self._frames[key]

    def _column(self, lookup: Lookup, frame: Any) -> str:
        """The column; of a field of a VARIANT, which Spark reads as one value, the expression with its type."""
        inside = lookup.in_variant
        if inside is not None:
            top = ".".join(map(_name, inside.names))
            if frame.selectExpr(top).dtypes[0][1] == "variant":
                kind = sql_type(lookup.value.type)
                return f"try_variant_get({top}, {escaped_literal(inside.path)}, '{kind}')"
        return ".".join(map(_name, lookup.names))

    def _literal(self, lookup: Lookup, frame: Any, column: str) -> str:
        key = (lookup.path, lookup.names)
        if key not in self._types:
            self._types[key] = frame.selectExpr(column).dtypes[0][1]
        kind, value = self._types[key], lookup.value
        if is_binary(value.type):
            data: bytes = value.as_py()
            return f"X'{data.hex()}'" if kind == "binary" else escaped_literal(data.decode("utf-8"))
        text = escaped_literal(sql_text(value))
        return text if kind == "string" else f"CAST({text} AS {kind})"

    def close(self) -> None:
        """Stop the session."""
        self._session.stop()


def _rows_read(frame: Any) -> int | None:
    """The number of rows that the scan of the last run returned; None if the plan has no scan, or several."""
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    leaves = plan.collectLeaves()
    if leaves.length() != 1:
        return None
    leaf = leaves.apply(0)
    if leaf.getClass().getSimpleName().endswith("QueryStageExec"):
        inner = leaf.plan().collectLeaves()
        leaf = inner.apply(0) if inner.length() == 1 else leaf
    metrics = leaf.metrics()
    return int(metrics.apply("numOutputRows").value()) if metrics.contains("numOutputRows") else None


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
