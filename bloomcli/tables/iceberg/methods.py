"""Makes Java functions of Java methods, because Py4J can't pass a Python function to Java.

A function that runs entirely in the JVM takes less than a microsecond; a call through Py4J takes 50, too long for
each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomcli.tables.iceberg.java import Java

_PRIMITIVE: Final = {"void": "()V", "int": "()I", "long": "()J"}
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
        return self._lookup.findVirtual(self.class_of(type_name), method, self._kind(returns, arguments))

    def static(self, type_name: str, method: str, returns: str, *arguments: str) -> Any:
        """A handle of a public static method of a class. The arguments are those of `bound`."""
        return self._lookup.findStatic(self.class_of(type_name), method, self._kind(returns, arguments))

    def _kind(self, returns: str, arguments: Sequence[str]) -> Any:
        """A ``java.lang.invoke.MethodType``."""
        kinds = self._java.type("java.util.ArrayList")()
        for name in arguments:
            kinds.add(self.class_of(name))
        return self._java.type(f"{_INVOKE}.MethodType").methodType(self.class_of(returns), kinds)

    def with_arguments(self, handle: Any, position: int, *values: Any) -> Any:
        """A handle without the arguments from a position on, which always have these values."""
        given = self._java.type("java.util.ArrayList")()
        for value in values:
            given.add(value)
        return self._java.type(f"{_INVOKE}.MethodHandles").insertArguments(handle, position, given.toArray())

    def as_interface(self, name: str, handle: Any) -> Any:
        """An object of a functional interface, such as ``java.util.function.Function``, that calls a handle."""
        return self._java.type(f"{_INVOKE}.MethodHandleProxies").asInterfaceInstance(self.class_of(name), handle)

    def then(self, first: Any, second: Any) -> Any:
        """A handle that calls `first`, and `second` with what `first` returns."""
        return self._java.type(f"{_INVOKE}.MethodHandles").filterReturnValue(first, second)
