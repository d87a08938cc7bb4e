"""The record that an Iceberg table keeps to replace a data file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Record:
    """A data file of a planned scan. Java is called only when an attribute is read."""

    tasks: Any
    """Iceberg's FileScanTasks, in a Java List."""
    index: int
    """The file's position in it."""
    partition_spec: Any
    """The PartitionSpec that the file was written with."""
    snapshot: int
    """The id of the scanned snapshot."""

    @cached_property
    def task(self) -> Any:
        """Iceberg's FileScanTask."""
        return self.tasks.get(self.index)

    @cached_property
    def file(self) -> Any:
        """Iceberg's DataFile, with its metrics."""
        return self.task.file()

    @cached_property
    def sequence(self) -> int:
        """The data sequence number: 0 in format version 1."""
        number = self.file.dataSequenceNumber()
        return 0 if number is None else int(number)
