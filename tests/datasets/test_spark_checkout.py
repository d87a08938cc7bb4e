"""README's first commands in a checkout: `pip install .`, then Spark, whose workers start in the sources' folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support import checkout, datasets

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
import os, sys
from pyspark.sql import SparkSession
from bloomcli import spark as bloom_spark
os.environ["PYSPARK_PYTHON"] = sys.executable
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = bloom_spark.add(session, sys.argv[1], columns=["id"], in_place=True)
print(sorted(row.status for row in frame.select("status").collect()))
print(session.sparkContext.environment.get("PYTHONSAFEPATH"))
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which nothing was built."""
    folder = checkout.copy(tmp_path_factory.mktemp("sources") / "bloom")
    assert not list((folder / "bloomcli").glob("kernels*.so"))
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package elsewhere, with its compiled module, and its script."""
    root = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT / "bloomcli", root / "lib" / "bloomcli", ignore=shutil.ignore_patterns("__pycache__", "*.c"))
    (root / "bin").mkdir()
    (root / "bin" / "job.py").write_text(JOB)
    return root


def start(installed: Path, sources: Path, script: str, *arguments: object) -> str:
    """The output of a script of the installed package, started in the checkout."""
    env = os.environ | {"PYTHONPATH": str(installed / "lib")}
    for name in ("PYTHONSAFEPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        env.pop(name, None)
    command = [sys.executable, str(installed / "bin" / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=sources, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_in_a_checkout_executors_import_the_installed_package_and_the_session_stays_unchanged(
    tmp_path: Path, installed: Path, sources: Path
) -> None:
    lake = datasets.plain(tmp_path / "lake", 4)
    assert start(installed, sources, "job.py", lake) == "['done', 'done', 'done', 'done']\nNone\n"
