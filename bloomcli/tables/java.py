"""Access to the Java side of a Spark session, for both table formats: classes, exceptions, and calls without log.

Py4J resolves a class's name part by part, in about a millisecond each: `JavaSession.type` caches the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bloomcli.errors import BloomError, UnreadableError

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
        """A class, by its full name; a nested class is ``Outer$Inner``. If it doesn't exist, calling it fails."""
        if name not in self._types:
            found = self._view
            for part in name.split("."):
                found = getattr(found, part)
            self._types[name] = found
        return self._types[name]

    def list_of(self, items: Iterable[Any]) -> Any:
        """A ``java.util.ArrayList``."""
        found = self.type("java.util.ArrayList")()
        for item in items:
            found.add(item)
        return found

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
