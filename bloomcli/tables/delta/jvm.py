"""Calls of Java and Scala in a Spark session's JVM.

Large data is passed as one JSON text: a call takes a tenth of a millisecond, and a table has many files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

from bloomcli.datasets.spark_session import first_line
from bloomcli.tables import java
from bloomcli.tables.java import JavaSession, java_errors, java_exception

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELTA: Final = "org.apache.spark.sql.delta"
_STRINGS: Final = "[Ljava.lang.String;"


class Jvm(JavaSession):
    """The JVM of a classic Spark session."""

    @cached_property
    def _mapper(self) -> Any:
        return self.type(f"{DELTA}.util.JsonUtils").mapper()

    def _reader(self, class_name: str) -> Any:
        return self._mapper.readerFor(self.type("org.apache.spark.util.Utils").classForName(class_name, True, False))

    def python(self, value: Any) -> Any:
        """Convert a Java or Scala object to Python, by its JSON."""
        return json.loads(self._mapper.writeValueAsString(value))

    def strings(self, values: Sequence[str]) -> Any:
        """A ``String[]``."""
        return self._reader(_STRINGS).readValue(json.dumps(list(values)))

    def texts(self, values: Sequence[str]) -> Any:
        """A Java ``Dataset`` of texts, with the column ``value``."""
        listed = self._reader("java.util.ArrayList").readValue(json.dumps(list(values)))
        return self.spark.createDataset(listed, self.type("org.apache.spark.sql.Encoders").STRING())

    def actions(self, kind: str, values: Sequence[Mapping[str, Any]]) -> Any:
        """A ``java.util.List`` of the log's actions, from parsed JSON.

        They are read like a table's snapshot: Delta's ``Action.fromJson`` would make missing fields empty.

        Args:
            kind: ``addFile`` or ``removeFile``.
            values: the actions.
        """
        encoders = getattr(self.type(f"{DELTA}.implicits.package$"), "MODULE$")
        encoder = getattr(encoders, f"{kind}Encoder")()
        reader = self.spark.read().schema(encoder.schema()).option("mode", "FAILFAST")
        read = reader.json(self.texts([json.dumps(value) for value in values]))
        return self._view.java.util.ArrayList(getattr(read, "as")(encoder).collectAsList())

    def seq(self, java_list: Any) -> Any:
        """An immutable Scala ``Seq`` of a Java list."""
        return self._view.PythonUtils.toSeq(java_list)

    def map(self, values: Mapping[str, str]) -> Any:
        """An immutable Scala ``Map``."""
        java_map = self._view.java.util.HashMap()
        for key, value in values.items():
            java_map.put(key, value)
        return self._view.PythonUtils.toScalaMap(java_map)

    def columns(self, leaves: Iterable[tuple[str, str]]) -> Any:
        """A Scala ``Seq`` of leaf columns: of each the names around it, and its ``StructField``.

        Args:
            leaves: dotted paths, and types in Spark's JSON, such as ``long``.
        """
        types = self._view.org.apache.spark.sql.types
        metadata = getattr(getattr(types, "Metadata$"), "MODULE$").empty()
        columns = self._view.java.util.ArrayList()
        for path, kind in leaves:
            *above, name = path.split(".")
            around = self._reader("java.util.ArrayList").readValue(json.dumps(above))
            field = types.StructField(name, types.DataType.fromJson(json.dumps(kind)), True, metadata)
            columns.add(self._view.scala.Tuple2(self.seq(around), field))
        return self.seq(columns)

    @property
    def none(self) -> Any:
        """Scala's ``None``."""
        return self._view.scala.Option.empty()

    def frame(self, java_frame: Any) -> DataFrame:
        """A Java ``Dataset`` as a frame of the session."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(java_frame, self.session)

    def hadoop_path(self, path: str) -> Any:
        """A Hadoop ``Path``."""
        return self._view.org.apache.hadoop.fs.Path(path)

    def copy(self, settings: Mapping[str, str]) -> Any:
        """A copy of the Java session with other settings. The user's session doesn't change."""
        copy = self.spark.cloneSession()
        for key, value in settings.items():
            copy.conf().set(key, value)
        return copy

    @contextmanager
    def active(self, session: Any) -> Iterator[None]:
        """Make Delta use a Java session's settings in this thread. Calls in the user's session end that."""
        sessions = self.type(self.spark.getClass().getName())
        before = sessions.getActiveSession()
        sessions.setActiveSession(session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()


def class_names(error: Exception) -> list[str]:
    """The names of an error's Java class and its superclasses; empty if the error doesn't come from Java."""
    found_error = java_exception(error)
    if found_error is None:
        return []
    names: list[str] = []
    try:
        at = found_error.getClass()
        while at is not None:
            names.append(at.getName())
            at = at.getSuperclass()
    except java_errors():  # the Java process has ended
        pass
    return names


def message(error: Exception) -> str:
    """The first line of an error's message, without class name and stack traces."""
    line = first_line(error)
    head, colon, rest = line.partition(": ")
    return rest if colon and "." in head and " " not in head else line


reading: Final = partial(java.reading, message)
"""Raises UnreadableError if a call into Java fails within the block, with the message of Delta's exception."""
