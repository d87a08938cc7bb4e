"""Calls into Iceberg in a Spark session's Java, and access to its exceptions.

A call takes about 50 microseconds, so code that runs for each data file makes few calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from bloomcli.datasets.spark_session import first_line
from bloomcli.errors import BloomError, UnreadableError
from bloomcli.tables import java
from bloomcli.tables.java import JavaSession, java_errors

ICEBERG: Final = "org.apache.iceberg"
_LISTS: Final = f"{ICEBERG}.relocated.com.google.common.collect.Lists"

NO_SUCH_FILE: Final = frozenset({"NotFoundException", "FileNotFoundException", "NoSuchFileException"})
"""The names of exceptions for a file that doesn't exist."""


class Java(JavaSession):
    """The Java side of a classic Spark session with Iceberg."""

    def iceberg(self, name: str) -> Any:
        """An Iceberg class, by its name below ``org.apache.iceberg``."""
        return self.type(f"{ICEBERG}.{name}")

    def items(self, iterable: Any, *, close: bool = False) -> list[Any]:
        """The items of a Java Iterable; with `close` it is closed."""
        try:
            found = self.type(_LISTS).newArrayList(iterable)
        finally:
            if close:
                iterable.close()
        return [found.get(index) for index in range(found.size())]

    @property
    def gateway(self) -> Any:
        """Py4J's gateway, which makes Java arrays."""
        return self.session.sparkContext._gateway

    def longs(self, numbers: Sequence[int]) -> Any:
        """A List<Long>: Py4J makes Integers of small numbers."""
        array = self.gateway.new_array(self.gateway.jvm.long, len(numbers))
        for index, number in enumerate(numbers):
            array[index] = number
        return self.iceberg("util.ArrayUtil").toLongList(array)


def class_names(error: Exception) -> frozenset[str]:
    """The simple names of the Java classes and interfaces of an exception and of its causes.

    Empty if the error has no Java exception, such as after a lost connection.
    """
    found: set[str] = set()
    try:
        for one in _causes(error):
            kind = one.getClass()
            while kind is not None:
                found.add(kind.getSimpleName())
                found |= {interface.getSimpleName() for interface in kind.getInterfaces()}
                kind = kind.getSuperclass()
    except java_errors():  # the Java process has ended
        pass
    return frozenset(found)


def raised_in(error: Exception, classes: str, methods: Collection[str], *, unknown: bool = True) -> bool:
    """Whether a Java exception was raised within one of `methods` of a class whose name ends with `classes`.

    If Java has ended, the answer is `unknown`.
    """
    try:
        frames = (frame for one in _causes(error) for frame in one.getStackTrace())
        return any(f.getMethodName() in methods and f.getClassName().endswith(classes) for f in frames)
    except java_errors():
        return unknown


def _causes(error: Exception) -> Iterator[Any]:
    found = java.java_exception(error)
    while found is not None:
        yield found
        found = found.getCause()


def message(error: Exception) -> str:
    """The first line of a Java exception's message."""
    found = java.java_exception(error)
    try:
        text = None if found is None else found.getMessage()
    except java_errors():
        text = None
    lines = str(text).strip().splitlines() if text else []
    return lines[0].strip().rstrip(".") if lines else first_line(error)


@contextmanager
def reading(what: str, path: str) -> Iterator[None]:
    """Raise UnreadableError if a call into Java fails within the block."""
    try:
        yield
    except BloomError:
        raise
    except java_errors() as error:
        raise UnreadableError(f"{what}: {message(error)}", path=path) from None
