"""Reads a table's schema from a file (`--table-schema FILE`): JSON of Spark or Iceberg, or columns in SQL."""

from __future__ import annotations

import os
from typing import Final

from bloomcli import limits
from bloomcli.errors import UsageError
from bloomcli.policy import table_ddl, table_json
from bloomcli.policy.table_types import TableSchema, TableType
from bloomcli.storage.os_errors import option_file_error
from bloomcli.storage.registry import read_file

__all__ = ["TableSchema", "TableType", "parse", "read"]

_TEXT: Final = (
    "a table's schema is text: JSON of Spark or Iceberg (not compressed by gzip), or columns as in CREATE TABLE"
)


def read(path: str | os.PathLike[str]) -> TableSchema:
    """Read a table's schema from a file.

    Raises:
        UsageError: the file doesn't exist or isn't a schema. The error has the location in the file.
        UnreadableError: the file exists but can't be read.
    """
    name = os.fspath(path)
    try:
        data = read_file(name, limits.TABLE_SCHEMA_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        problem = option_file_error(error, name, "the table's schema") if isinstance(error, OSError) else None
        if problem is not None:
            raise problem from None
        why = (getattr(error, "strerror", None) or "not a path").lower()
        raise UsageError(f"the table's schema can't be read: {why}", path=name, hint="check the path") from None
    if len(data) > limits.TABLE_SCHEMA_MAX_BYTES:
        raise UsageError(
            f"larger than {limits.TABLE_SCHEMA_MAX_BYTES:,} bytes, the limit for a table's schema",
            path=name,
            hint=_TEXT,
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", path=name, offset=error.start, hint=_TEXT) from None
    return parse(text, name)


def parse(text: str, path: str) -> TableSchema:
    """Parse a table's schema; `path` names the file in errors. Raises UsageError."""
    parser = table_json.parse if text.lstrip()[:1] in {"{", "["} else table_ddl.parse
    return TableSchema(path=path, root=parser(text, path))
