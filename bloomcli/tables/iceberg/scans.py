"""Facts about all data files of a scan, with a few calls into Java for each fact instead of for each file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from bloomcli.tables.iceberg.java import ICEBERG, Java
from bloomcli.tables.iceberg.methods import GUAVA, Methods

_OBJECT: Final = "java.lang.Object"
_STRING: Final = "java.lang.String"
_FILE: Final = f"{ICEBERG}.ContentFile"
_TASK: Final = f"{ICEBERG}.FileScanTask"
_STRUCT: Final = f"{ICEBERG}.StructLike"


class Tasks:
    """Iceberg's FileScanTasks in a Java List."""

    def __init__(self, java: Java, java_list: Any) -> None:
        self._java = java
        self._methods = Methods(java)
        self.java_list = java_list
        self._file = self._methods.unbound(_TASK, "file", _FILE)

    @classmethod
    def planned(cls, java: Java, scan: Any) -> Tasks:
        """The tasks of a scan."""
        found = scan.planFiles()
        try:
            return cls(java, java.type(f"{GUAVA}.collect.Lists").newArrayList(found))
        finally:
            found.close()

    def paths(self) -> list[str]:
        """Each data file's path."""
        return self._each("location", _STRING)

    def sizes(self) -> list[int]:
        """Each data file's bytes."""
        return [int(text) for text in self._each("fileSizeInBytes", "long")]

    def formats(self) -> list[str]:
        """Each data file's format, such as ``parquet``."""
        return [text.lower() for text in self._each("format", f"{ICEBERG}.FileFormat")]

    def spec_ids(self) -> list[int]:
        """The id of the partition spec of each data file."""
        return [int(text) for text in self._each("specId", "int")]

    def first_row_ids(self) -> list[int | None]:
        """The id of each data file's first row; None if the table's metadata don't have it."""
        return [int(text) if text else None for text in self._each("firstRowId", "java.lang.Long")]

    def sequences(self) -> list[int | None]:
        """Each data file's data sequence number."""
        return [int(text) if text else None for text in self._each("dataSequenceNumber", "java.lang.Long")]

    def partitions(self, specs: Sequence[Any]) -> list[str]:
        """Each data file's partition, such as ``day=2026-11-01/region=eu``; empty in an unpartitioned spec.

        Args:
            specs: the PartitionSpec of each file.
        """
        texts = [""] * len(specs)
        for spec, own, tasks in self._by_spec(specs):
            to_path = self._methods.bound(spec, f"{ICEBERG}.PartitionSpec", "partitionToPath", _STRING, _STRUCT)
            for index, text in zip(
                own, self._methods.texts(tasks, self._methods.then(self._partition, to_path)), strict=True
            ):
                texts[index] = text
        return texts

    def identities(self, specs: Sequence[Any]) -> list[dict[int, Any]]:
        """Each data file's values in the partition fields that are columns, by the columns' field ids.

        A value is parsed JSON, in the form of Iceberg's specification, "Appendix D: Single-value serialization".

        Args:
            specs: the PartitionSpec of each file.
        """
        found: list[dict[int, Any]] = [{} for _ in specs]
        for spec, own, tasks in self._by_spec(specs):
            types = self._java.items(spec.partitionType().fields())
            for position, field in enumerate(self._java.items(spec.fields())):
                if not field.transform().isIdentity():
                    continue
                to_json = self._value_to_json(position, types[position].type())
                for index, text in zip(own, self._methods.texts(tasks, to_json), strict=True):
                    found[index][int(field.sourceId())] = json.loads(text)
        return found

    def _value_to_json(self, position: int, kind: Any) -> Any:
        """A handle that returns a partition field of a task's data file as JSON."""
        get = self._methods.unbound(_STRUCT, "get", _OBJECT, "int", "java.lang.Class")
        get = self._methods.with_arguments(get, 1, position, self._methods.class_of(_OBJECT))
        to_json = self._methods.static(
            f"{ICEBERG}.SingleValueParser", "toJson", _STRING, f"{ICEBERG}.types.Type", _OBJECT
        )
        value = self._methods.then(self._partition, get)
        return self._methods.then(value, to_json.bindTo(kind))

    @cached_property
    def _partition(self) -> Any:
        """A handle that returns the partition of a task's data file."""
        return self._methods.then(self._file, self._methods.unbound(_FILE, "partition", _STRUCT))

    def _by_spec(self, specs: Sequence[Any]) -> Iterator[tuple[Any, list[int], Any]]:
        """Yield each spec with partition fields, the positions of its tasks, and the tasks in a Java List."""
        for spec in {id(one): one for one in specs}.values():
            if not spec.isPartitioned():
                continue
            own = [index for index, one in enumerate(specs) if one is spec]
            tasks = self.java_list
            if len(own) < len(specs):
                tasks = self._java.type("java.util.ArrayList")()
                for index in own:
                    tasks.add(self.java_list.get(index))
            yield spec, own, tasks

    def _each(self, method: str, returns: str) -> list[str]:
        handle = self._methods.unbound(_FILE, method, returns)
        return self._methods.texts(self.java_list, self._methods.then(self._file, handle))
