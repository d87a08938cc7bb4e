"""What an Iceberg table keeps of a data file to replace it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """A data file as a scan planned it."""

    file: Any
    """Iceberg's DataFile, with its metrics."""
    task: Any
    """Iceberg's FileScanTask."""
    partition_spec: Any
    """The PartitionSpec that the file was written with."""
    snapshot: int
    """The id of the snapshot that was planned."""

    @property
    def sequence(self) -> int:
        """The data sequence number: 0 in format version 1."""
        number = self.file.dataSequenceNumber()
        return 0 if number is None else int(number)

    def deletes(self) -> list[Any]:
        """The delete files that apply to the data file in that snapshot."""
        found = self.task.deletes()
        return [found.get(index) for index in range(found.size())]
