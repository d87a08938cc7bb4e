"""What both table formats take of a Spark session's Java: its classes, its exceptions, and quiet calls.

A class's name is looked up part by part, at a millisecond each: `JavaSession.type` keeps the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JavaSession:
    """The Java side of a classic Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.spark: Any = session._jsparkSession
        self._view: Any = session._jvm
        self._types: dict[str, Any] = {}

    def type(self, name: str) -> Any:
        """A class, by its full name; a nested one's as ``Outer$Inner``. Where there is none, a call to it fails."""
        if name not in self._types:
            found = self._view
            for part in name.split("."):
                found = getattr(found, part)
            self._types[name] = found
        return self._types[name]

    def has(self, name: str) -> bool:
        """Whether the session has a class."""
        from py4j.java_gateway import JavaClass

        return isinstance(self.type(name), JavaClass)


def java_errors() -> tuple[type[Exception], ...]:
    """What calls into Java raise: PySpark has exceptions of its own for some of Java's, and where Java has ended, the
    error is that of its socket."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Py4JError, PySparkException, OSError)


def java_exception(error: Exception) -> Any:
    """The Java exception of an error; None where the error isn't one of Java's."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


@contextmanager
def without_log() -> Iterator[None]:
    """Keep PySpark from writing the exceptions of the block to its own log: they are raised as errors of bloom's."""
    from pyspark.logger import PySparkLogger  # a plain logger of this name takes none of PySpark's arguments

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
