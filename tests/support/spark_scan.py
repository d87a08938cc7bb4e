"""The number of rows that a Spark query read, by Spark's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def scan(frame: DataFrame, condition: Any) -> tuple[list[Any], int]:
    """The rows of a frame that meet a condition, and the number of rows that the frame's single scan read."""
    chosen = frame.where(condition)
    rows = sorted(chosen.collect())
    plan = chosen._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    leaves = plan.collectLeaves()
    assert leaves.length() == 1
    return rows, leaves.apply(0).metrics().apply("numOutputRows").value()
