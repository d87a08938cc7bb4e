"""Advice on Spark: executors read the files, and the report is the same as without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.advised_lakes import LAKES, write

import bloomcli
from bloomcli import spark as bloom_spark
from bloomcli.model.advice import AdviseReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def comparable(report: AdviseReport) -> AdviseReport:
    """The report without times and without commands."""
    columns = tuple(replace(column, seconds_to_add=None) for column in report.columns)
    total = None if report.total is None else replace(report.total, seconds_to_add=0.0)
    commands = {"command": None, "upkeep": None, "page_index_command": None}
    return replace(report, columns=columns, total=total, seconds=0.0, **commands)


def test_executors_find_what_this_machine_finds_and_the_command_runs_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = write(LAKES["general"], tmp_path / "lake")
    log = tmp_path / "log.sql"
    log.write_text(
        "SELECT * FROM t WHERE id IN (90000, 90001, 45000) AND tenant = 900; SELECT * FROM t WHERE seq = 3"
    )
    options = {"columns": ["id", "tenant", "seq", "status"], "queries": log, "sample": "50%", "seed": 3}
    there = bloom_spark.advise(spark, lake, **options)
    here = bloomcli.advise([lake], **options)
    assert comparable(there) == comparable(here)
    assert here.command is not None
    assert there.command == here.command.replace(" --in-place", " --engine spark --in-place")
