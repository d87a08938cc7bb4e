"""README's first commands in a checkout: `pip install .`, then Spark, whose workers start in the sources' folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from support import checkout, datasets

import bloomcli

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = "import sys\nfrom bloomcli.__main__ import main\nsys.exit(main())\n"
"""As pip writes one for `bloom`."""

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
    (root / "bin" / "bloom").write_text(SCRIPT)
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


def test_in_a_checkout_executors_import_the_installed_package(tmp_path: Path, installed: Path, sources: Path) -> None:
    lake = datasets.plain(tmp_path / "lake", 4)
    spark = ["--engine", "spark", "--master", "local[2]", "--conf", "spark.ui.enabled=false", "--format", "json"]
    report = json.loads(start(installed, sources, "bloom", "add", lake, "-c", "id", "--in-place", *spark))
    assert (report["engine"], report["files"], report["done"], report["failed"]) == ("spark", 4, 4, 0)
    checked = bloomcli.gate(lake, deep=True)
    assert (checked.filters_checked, checked.exit_code) == (8, 0)


def test_in_a_session_of_the_callers_own_too_which_stays_unchanged(
    tmp_path: Path, installed: Path, sources: Path
) -> None:
    lake = datasets.plain(tmp_path / "lake", 4)
    assert start(installed, sources, "job.py", lake) == "['done', 'done', 'done', 'done']\nNone\n"
