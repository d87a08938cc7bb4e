"""A version of a Delta table: its protocol, its metadata, and the entries of its data files."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bloomcli.tables.delta.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LISTED: Final = ("path", "partitionValues", "size", "deletionVector")
"""The fields that identify an entry's file."""


class Snapshot:
    """A version of a table."""

    def __init__(self, jvm: Jvm, snapshot: Any) -> None:
        """`snapshot` is Delta's own ``Snapshot``."""
        self._jvm = jvm
        self._snapshot = snapshot
        self.version: int = snapshot.version()

    @cached_property
    def protocol(self) -> dict[str, Any]:
        """The log's ``protocol``."""
        found: dict[str, Any] = json.loads(self._snapshot.protocol().json())["protocol"]
        return found

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The log's ``metaData``."""
        found: dict[str, Any] = json.loads(self._snapshot.metadata().json())["metaData"]
        return {**found, "configuration": found.get("configuration") or {}}

    def listed(self) -> list[dict[str, Any]]:
        """The entries of all data files, ordered by path, with only the fields that identify the file."""
        return _collected(self._entries().select(*_LISTED))

    def entries(self, paths: Collection[str]) -> dict[str, dict[str, Any]]:
        """The complete entries of some paths, by path."""
        if not paths:
            return {}
        from pyspark.sql.functions import broadcast

        chosen = self._jvm.frame(self._jvm.texts(list(paths)).toDF(self._jvm.strings(["path"])))
        return {e["path"]: e for e in _collected(self._entries().join(broadcast(chosen), "path", "left_semi"))}

    def _entries(self) -> DataFrame:
        return self._jvm.frame(self._snapshot.allFiles().toDF())


def _collected(entries: DataFrame) -> list[dict[str, Any]]:
    from pyspark.sql.functions import struct, to_json

    rows = entries.select(to_json(struct("*"))).collect()
    return sorted(({"partitionValues": {}, **json.loads(row[0])} for row in rows), key=lambda entry: entry["path"])
