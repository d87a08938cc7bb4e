"""Facts about all data files of a scan, with a few calls into Java for each fact instead of for each file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bloomcli.tables.iceberg.java import ICEBERG, Java
from bloomcli.tables.iceberg.methods import GUAVA, Methods

_STRING: Final = "java.lang.String"
_FILE: Final = f"{ICEBERG}.ContentFile"
_TASK: Final = f"{ICEBERG}.FileScanTask"
_STRUCT: Final = f"{ICEBERG}.StructLike"


class Tasks:
    """Iceberg's FileScanTasks in a Java List."""

    def __init__(self, java: Java, scan: Any) -> None:
        self._java = java
        self._methods = Methods(java)
        found = scan.planFiles()
        try:
            self.java_list = java.type(f"{GUAVA}.collect.Lists").newArrayList(found)
        finally:
            found.close()
        self._file = self._methods.unbound(_TASK, "file", _FILE)

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
        partition = self._methods.unbound(_FILE, "partition", _STRUCT)
        of_file = self._methods.then(self._file, partition)
        for spec in {id(one): one for one in specs}.values():
            if not spec.isPartitioned():
                continue
            own = [index for index, one in enumerate(specs) if one is spec]
            to_path = self._methods.bound(spec, f"{ICEBERG}.PartitionSpec", "partitionToPath", _STRING, _STRUCT)
            tasks = self.java_list
            if len(own) < len(specs):
                tasks = self._java.type("java.util.ArrayList")()
                for index in own:
                    tasks.add(self.java_list.get(index))
            for index, text in zip(
                own, self._methods.texts(tasks, self._methods.then(of_file, to_path)), strict=True
            ):
                texts[index] = text
        return texts

    def _each(self, method: str, returns: str) -> list[str]:
        handle = self._methods.unbound(_FILE, method, returns)
        return self._methods.texts(self.java_list, self._methods.then(self._file, handle))
