"""What a run that nothing disturbs makes of a dataset."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import datasets

import bloomcli

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_COMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Bloom's own code does the work of these tests: plans for a few rows that aren't compiled start sooner."""


@pytest.fixture(scope="package")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which compiles no plans for the tests of this folder."""
    for name, value in NOT_COMPILED.items():
        spark.conf.set(name, value)
    yield spark
    for name in NOT_COMPILED:
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def undisturbed(origin: Path) -> dict[str, str]:
    """The results of an uninterrupted run."""
    lake = shutil.copytree(origin, origin.with_name("undisturbed"))
    assert bloomcli.add([lake], ["id"], in_place=True, jobs=1).exit_code == 3
    return datasets.digests(lake)
