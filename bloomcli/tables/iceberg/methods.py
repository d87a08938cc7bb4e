"""Makes Java functions of Java methods, because Py4J can't pass a Python function to Java.

A function that runs entirely in the JVM takes less than a microsecond; a call through Py4J takes 50, too long for
each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomcli.tables.iceberg.java import ICEBERG, Java

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

    def either(self, first: Any, second: Any) -> Any:
        """A handle that calls `first`, and `second` if that returns false."""
        return self._java.type(f"{_INVOKE}.MethodHandles").guardWithTest(first, first, second)

    def taking(self, handle: Any, returns: str, *arguments: str) -> Any:
        """A handle of other types, whose arguments and results are converted as Java's casts do."""
        return handle.asType(self._type(returns, arguments))

    def with_last(self, handle: Any, position: int, value: Any) -> Any:
        """A handle whose last argument, at `position`, has a value."""
        gateway = self._java.gateway
        values = gateway.new_array(gateway.jvm.Object, 1)
        values[0] = value
        return self._java.type(f"{_INVOKE}.MethodHandles").insertArguments(handle, position, values)

    def texts(self, items: Any, handle: Any) -> list[str]:
        """The result of a handle for each item of a Java List, as text; null becomes empty. A few calls for all."""
        if items.isEmpty():
            return []
        each = self._java.type(f"{GUAVA}.collect.Lists").transform(items, self.as_interface(_FUNCTION, handle))
        return str(self._java.type(f"{GUAVA}.base.Joiner").on(_END).useForNull("").join(each)).split(_END)
