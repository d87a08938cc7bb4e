"""Calls into the Java of a Spark session: its classes, and what its exceptions say.

A class's name is looked up part by part, at a millisecond each: `Java.type` keeps the classes. A call takes about 50
microseconds, so that what is done once per data file makes few of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bloomcli.datasets.spark_session import first_line
from bloomcli.errors import BloomError, UnreadableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ICEBERG: Final = "org.apache.iceberg"
_LISTS: Final = f"{ICEBERG}.relocated.com.google.common.collect.Lists"


class Java:
    """The Java side of a classic Spark session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.spark: Any = session._jsparkSession
        self._view: Any = session._jvm
        self._types: dict[str, Any] = {}

    def type(self, name: str) -> Any:
        """A class, by its full name; a nested one's as ``Outer$Inner``. Where there is none, a call to it fails."""
        if name not in self._types:
            package, _, last = name.rpartition(".")
            found = self._view
            for part in package.split("."):
                found = getattr(found, part)
            self._types[name] = getattr(found, last)
        return self._types[name]

    def has(self, name: str) -> bool:
        """Whether the session has a class."""
        from py4j.java_gateway import JavaClass

        return isinstance(self.type(name), JavaClass)

    def iceberg(self, name: str) -> Any:
        """A class of Iceberg's, by its name below ``org.apache.iceberg``."""
        return self.type(f"{ICEBERG}.{name}")

    def items(self, iterable: Any, *, close: bool = False) -> list[Any]:
        """The items of a Java Iterable; with `close` it is closed."""
        try:
            found = self.type(_LISTS).newArrayList(iterable)
        finally:
            if close:
                iterable.close()
        return [found.get(index) for index in range(found.size())]

    def longs(self, numbers: Sequence[int]) -> Any:
        """A List<Long>: Py4J makes Integers of small numbers."""
        gateway: Any = self.session.sparkContext._gateway
        array = gateway.new_array(gateway.jvm.long, len(numbers))
        for index, number in enumerate(numbers):
            array[index] = number
        return self.iceberg("util.ArrayUtil").toLongList(array)


def java_errors() -> tuple[type[Exception], ...]:
    """What calls into Java raise: PySpark has exceptions of its own for some of Java's."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return (Py4JError, PySparkException, OSError)


def kinds(error: Exception) -> frozenset[str]:
    """The simple names of the Java classes and interfaces of an exception and of its causes.

    Empty where no Java exception has arrived, as after a lost connection.
    """
    found: set[str] = set()
    try:
        for java in _causes(error):
            kind = java.getClass()
            while kind is not None:
                found.add(kind.getSimpleName())
                found |= {one.getSimpleName() for one in kind.getInterfaces()}
                kind = kind.getSuperclass()
    except java_errors():  # the Java process has ended
        pass
    return frozenset(found)


def raised_in(error: Exception, classes: str, methods: Collection[str]) -> bool:
    """Whether a Java exception was raised within some methods of classes whose names end so."""
    try:
        frames = (frame for java in _causes(error) for frame in java.getStackTrace())
        return any(f.getMethodName() in methods and f.getClassName().endswith(classes) for f in frames)
    except java_errors():
        return True


def _causes(error: Exception) -> Iterator[Any]:
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        yield java
        java = java.getCause()


def message(error: Exception) -> str:
    """The first line of what a Java exception says."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        text = None if java is None else java.getMessage()
    except java_errors():
        text = None
    lines = str(text).strip().splitlines() if text else []
    return lines[0].strip().rstrip(".") if lines else first_line(error)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep PySpark from writing the exceptions of the block to its own log: they are raised as errors of bloom's."""
    from pyspark.logger import PySparkLogger  # a plain logger of this name takes none of PySpark's arguments

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


@contextmanager
def reading(what: str, path: str) -> Iterator[None]:
    """Raise UnreadableError where a call into Java fails within the block."""
    try:
        yield
    except BloomError:
        raise
    except java_errors() as error:
        raise UnreadableError(f"{what}: {message(error)}", path=path) from None
