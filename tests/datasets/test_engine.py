"""One place chooses the engine for a dataset, and both engines take the same steps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import ROOT
from support import datasets
from support.modules import facts

from bloomcli.commands.options import AddOptions, InspectOptions
from bloomcli.datasets.engine import LocalEngine, choose_engine, plan_files
from bloomcli.datasets.spark import SparkEngine
from bloomcli.datasets.task import Task
from bloomcli.errors import UnsupportedError, UsageError

SESSION: Any = SimpleNamespace(
    builder=None,
    createDataFrame=None,
    conf={},
    sparkContext=SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=dict)),
)
"""What a session has that is looked at before a job starts."""
ENGINES = {"bloomcli.datasets.local", "bloomcli.datasets.spark"}


def engines_imported(path: Path) -> set[str]:
    """The engines' modules that a file imports, at any depth."""
    imports = facts(path).imports
    return ENGINES & {name for found in imports for name in (found.module, f"{found.module}.{found.name}")}


@pytest.mark.slow
def test_only_one_module_knows_the_engines() -> None:
    package = ROOT / "bloomcli"
    users = {p.relative_to(package).as_posix() for p in package.rglob("*.py") if engines_imported(p)}
    users.discard("tables/reading.py")  # a table needs a Spark session: no other engine supports it
    of_values = {"datasets/spark_find.py", "finding/on_spark.py"}
    users -= of_values  # values are a data frame, which only Spark has
    assert users == {"datasets/engine.py", "datasets/spark.py"}, "Spark's workers isolate files by the local engine"


def test_a_session_or_the_name_chooses_spark_and_nothing_else_does() -> None:
    session = SESSION
    assert choose_engine() == LocalEngine()
    assert choose_engine("local", jobs=3, fail_fast=True) == LocalEngine(jobs=3, fail_fast=True)
    assert choose_engine(session=session) == choose_engine("spark", session=session) == SparkEngine(session)


def test_both_engines_find_and_plan_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.mixed(tmp_path / "lake")
    monkeypatch.chdir(tmp_path)
    options = AddOptions(columns="id", output="out")
    plans: list[list[Task]] = [
        plan_files(engine, ["lake"], options) for engine in (choose_engine(), choose_engine(session=SESSION))
    ]
    local, spark = ([(t.path, t.output, t.size, t.walked, t.command) for t in plan] for plan in plans)
    assert local
    assert spark == [(f"{tmp_path}/{path}", f"{tmp_path}/{output}", *rest) for path, output, *rest in local]


def test_paths_of_a_cluster_are_for_spark_and_are_not_changed(tmp_path: Path) -> None:
    engine = choose_engine(session=SESSION)
    (found,) = engine.find([datasets.write(tmp_path / "a.parquet").as_uri()], InspectOptions())
    assert found.path == str(tmp_path / "a.parquet")
    with pytest.raises(UnsupportedError, match="hdfs: URIs can be read, but not changed"):
        engine.find(["hdfs://node/a.parquet"], AddOptions(columns="id", in_place=True))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="the directory holds no files"):
        plan_files(engine, [str(tmp_path / "empty")], InspectOptions())
