"""Calls into Iceberg in a Spark session's Java, its exceptions, and Java functions made of Java methods.

A call takes about 50 microseconds, so code that runs for each data file makes few calls.

Py4J can't pass a Python function to Java. A function that runs entirely in the JVM takes less than a microsecond; a
call through Py4J takes 50, too long for each row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, Final

from bloomcli.datasets.spark_session import first_line
from bloomcli.tables import java
from bloomcli.tables.java import JavaSession, java_errors

ICEBERG: Final = "org.apache.iceberg"
_LISTS: Final = f"{ICEBERG}.relocated.com.google.common.collect.Lists"

NO_SUCH_FILE: Final = frozenset({"NotFoundException", "FileNotFoundException", "NoSuchFileException"})
"""The names of exceptions for a file that doesn't exist."""
VERSIONS: Final = (1, 2, 3)
WITH_ROW_IDS: Final = 3
"""The first format version with row ids."""
ENCRYPTION_KEY: Final = "encryption.key-id"
PLAINTEXT: Final = "PlaintextEncryptionManager"


def manager(table: Any) -> str:
    """The class of a table's EncryptionManager."""
    return str(table.encryption().getClass().getSimpleName())


def format_version(table: Any) -> int:
    """A table's format version."""
    return int(table.operations().current().formatVersion())


class Java(JavaSession):
    """The Java side of a classic Spark session with Iceberg."""

    def iceberg(self, name: str) -> Any:
        """An Iceberg class, by its name below ``org.apache.iceberg``."""
        return self.type(f"{ICEBERG}.{name}")

    def items(self, iterable: Any) -> list[Any]:
        """The items of a Java Iterable."""
        java_list = self.type(_LISTS).newArrayList(iterable)
        return [java_list.get(index) for index in range(java_list.size())]

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
    names: set[str] = set()
    try:
        for cause in _causes(error):
            kind = cause.getClass()
            while kind is not None:
                names.add(kind.getSimpleName())
                names |= {interface.getSimpleName() for interface in kind.getInterfaces()}
                kind = kind.getSuperclass()
    except java_errors():  # the Java process has ended
        pass
    return frozenset(names)


def raised_in(error: Exception, classes: str, methods: Collection[str], *, unknown: bool = True) -> bool:
    """Whether a Java exception was raised within one of `methods` of a class whose name ends with `classes`.

    If Java has ended, the answer is `unknown`.
    """
    try:
        frames = (frame for cause in _causes(error) for frame in cause.getStackTrace())
        return any(f.getMethodName() in methods and f.getClassName().endswith(classes) for f in frames)
    except java_errors():
        return unknown


def _causes(error: Exception) -> Iterator[Any]:
    exception = java.java_exception(error)
    while exception is not None:
        yield exception
        exception = exception.getCause()


def message(error: Exception) -> str:
    """The first line of a Java exception's message."""
    exception = java.java_exception(error)
    try:
        text = None if exception is None else exception.getMessage()
    except java_errors():
        text = None
    lines = str(text).strip().splitlines() if text else []
    return lines[0].strip().rstrip(".") if lines else first_line(error)


reading: Final = partial(java.reading, message)
"""Raises UnreadableError if a call into Java fails within the block, with the message of Iceberg's exception."""

GUAVA: Final = f"{ICEBERG}.relocated.com.google.common"
_FUNCTION: Final = f"{GUAVA}.base.Function"
_END: Final = "\0"
"""A character that no path contains."""

_PRIMITIVE: Final = {"void": "()V", "int": "()I", "long": "()J", "boolean": "()Z"}
_INVOKE: Final = "java.lang.invoke"


class Methods:
    """Methods of Java objects as ``java.lang.invoke.MethodHandle``, and handles as functional interfaces."""

    def __init__(self, java: Java) -> None:
        self._java = java
        self._lookup = java.type(f"{_INVOKE}.MethodHandles").publicLookup()
        self._classes: dict[str, Any] = {}

    def class_of(self, name: str) -> Any:
        """The ``java.lang.Class`` of a class, which may be in a jar that Spark added, or of a primitive type."""
        if name not in self._classes:
            if name in _PRIMITIVE:
                kind = self._java.type(f"{_INVOKE}.MethodType").fromMethodDescriptorString(_PRIMITIVE[name], None)
                self._classes[name] = kind.returnType()
            else:
                self._classes[name] = self._java.type("py4j.reflection.ReflectionUtil").classForName(name)
        return self._classes[name]

    def bound(self, target: Any, type_name: str, method: str, returns: str, *arguments: str) -> Any:
        """A handle of a public method of an object.

        Args:
            target: the object.
            type_name: the public class or interface that declares the method.
            method: its name.
            returns: the name of its return type.
            *arguments: the names of its arguments' types.
        """
        return self.unbound(type_name, method, returns, *arguments).bindTo(target)

    def unbound(self, type_name: str, method: str, returns: str, *arguments: str) -> Any:
        """A handle of a public method that takes the object as first argument. The arguments are those of `bound`."""
        return self._lookup.findVirtual(self.class_of(type_name), method, self._type(returns, arguments))

    def static(self, type_name: str, method: str, returns: str, *arguments: str) -> Any:
        """A handle of a public static method. The arguments are those of `bound`."""
        return self._lookup.findStatic(self.class_of(type_name), method, self._type(returns, arguments))

    def _type(self, returns: str, arguments: Sequence[str]) -> Any:
        kinds = self._java.list_of(map(self.class_of, arguments))
        return self._java.type(f"{_INVOKE}.MethodType").methodType(self.class_of(returns), kinds)

    def with_arguments(self, handle: Any, position: int, *values: Any) -> Any:
        """A handle without the arguments from a position on, which always have these values."""
        arguments = self._java.list_of(values).toArray()
        return self._java.type(f"{_INVOKE}.MethodHandles").insertArguments(handle, position, arguments)

    def as_interface(self, name: str, handle: Any) -> Any:
        """An object of a functional interface, such as ``java.util.function.Function``, that calls a handle."""
        return self._java.type(f"{_INVOKE}.MethodHandleProxies").asInterfaceInstance(self.class_of(name), handle)

    def then(self, first: Any, second: Any) -> Any:
        """A handle that calls `first`, and `second` with what `first` returns."""
        return self._java.type(f"{_INVOKE}.MethodHandles").filterReturnValue(first, second)

    def either(self, first: Any, second: Any) -> Any:
        """A handle that calls `first`, and `second` if that returns false."""
        return self._java.type(f"{_INVOKE}.MethodHandles").guardWithTest(first, first, second)

    def taking(self, handle: Any, returns: str, *arguments: str) -> Any:
        """A handle of other types, whose arguments and results are converted as Java's casts do."""
        return handle.asType(self._type(returns, arguments))

    def texts(self, items: Any, handle: Any) -> list[str]:
        """The result of a handle for each item of a Java List, as text; null becomes empty. A few calls for all."""
        if items.isEmpty():
            return []
        each = self._java.type(f"{GUAVA}.collect.Lists").transform(items, self.as_interface(_FUNCTION, handle))
        return str(self._java.type(f"{GUAVA}.base.Joiner").on(_END).useForNull("").join(each)).split(_END)
