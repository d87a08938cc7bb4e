"""The Java side of a Spark session, for both table formats: classes, exceptions, calls without log, and the libraries
and settings that a session needs, as command-line options.

Py4J resolves a class's name part by part, in about a millisecond each: `JavaSession.type` caches the classes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bloomcli.errors import BloomError, UnreadableError
from bloomcli.model.paths import shown_setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_SPARK: Final = "4.1"
"""The Spark version for which these libraries are built."""
_SETTINGS: Final = {
    "iceberg": (
        "spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ),
    "delta": (
        "spark.jars.packages=io.delta:delta-spark_4.1_2.13:4.4.0",
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
    ),
}


class JavaSession:
    """The Java side of a classic Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.spark: Any = session._jsparkSession
        self._view: Any = session._jvm
        self._types: dict[str, Any] = {}

    def type(self, name: str) -> Any:
        """A class, by its full name; a nested class is ``Outer$Inner``. If it doesn't exist, calling it fails."""
        if name not in self._types:
            member = self._view
            for part in name.split("."):
                member = getattr(member, part)
            self._types[name] = member
        return self._types[name]

    def list_of(self, items: Iterable[Any]) -> Any:
        """A ``java.util.ArrayList``."""
        java_list = self.type("java.util.ArrayList")()
        for item in items:
            java_list.add(item)
        return java_list

    def has(self, name: str) -> bool:
        """Whether a class exists in the session."""
        from py4j.java_gateway import JavaClass

        return isinstance(self.type(name), JavaClass)


def java_errors() -> tuple[type[Exception], ...]:
    """The exceptions that calls into Java raise: Py4J's, PySpark's for some Java exceptions, and the socket's if Java
    has ended."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Py4JError, PySparkException, OSError)


def java_exception(error: Exception) -> Any:
    """The Java exception behind an error; None if the error doesn't come from Java."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


@contextmanager
def reading(message: Callable[[Exception], str], what: str, path: str) -> Iterator[None]:
    """Raise UnreadableError if a call into Java fails within the block.

    Args:
        message: returns an error's text.
        what: what failed.
        path: the table, or a file.
    """
    try:
        yield
    except BloomError:
        raise
    except java_errors() as error:
        raise UnreadableError(f"{what}: {message(error)}", path=path) from None


@contextmanager
def without_log() -> Iterator[None]:
    """Keep PySpark from logging exceptions of the block: they are raised as errors of bloom."""
    from pyspark.logger import PySparkLogger  # a plain logger of this name rejects PySpark's arguments

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def settings(kind: str) -> tuple[str, ...]:
    """The options that set up a session for a format, ``iceberg`` or ``delta``."""
    return tuple(part for setting in _SETTINGS[kind] for part in ("--conf", setting))


def library_hint(session: Any, kind: str, name: str) -> str:
    """The hint for a session without a format's library: a command line with its settings, after those of catalogs.

    Args:
        session: the session.
        kind: ``iceberg`` or ``delta``.
        name: the table's name.
    """
    catalogs = [pair for pair in session.sparkContext.getConf().getAll() if pair[0].startswith("spark.sql.catalog.")]
    given = [word for pair in sorted(catalogs) for word in ("--conf", shown_setting("=".join(pair)))]
    command = shlex.join(["bloom", "inspect", "--table", name, *given, *settings(kind)])
    here = str(session.version)
    other = "" if here.startswith(f"{_SPARK}.") else f"`pip install 'pyspark=={_SPARK}.*'`, as this is Spark {here}; "
    return f"{other}`{command}`; in Python, give the settings to SparkSession.builder.config; see docs/tables.md"
