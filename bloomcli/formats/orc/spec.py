"""ORC's metadata messages (protobuf, described by orc.proto in this folder), and their names.

protobuf keeps unknown fields, so a message that is read, changed and written again loses nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from bloomcli import kernels
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.storage.os_errors import read_file

MAGIC: Final = b"ORC"
PACKAGE: Final = "bloomcli.orc"
POSTSCRIPT_MAX_BYTES: Final = 255
"""The postscript's length is stored in one byte, the file's last."""

VERSIONS: Final = ((0, 11), (0, 12))
"""File versions of released writers. In a later version, the same bytes may have another meaning."""

WRITERS: Final = {0: "ORC Java", 1: "ORC C++", 2: "Presto", 3: "Go", 4: "Trino", 5: "CUDF"}
ORC_JAVA: Final = 0
ORC_CPP: Final = 1


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(read_file(Path(__file__).with_name("orc.desc")))
    return pool


@cache
def message(name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def value_of(enum: str, name: str) -> int:
    """An enum's value by its name."""
    return int(_pool().FindEnumTypeByName(f"{PACKAGE}.{enum}").values_by_name[name].number)


@cache
def name_of(enum: str, value: int) -> str:
    """An enum value's name, or ``CODE 17`` for a value that the specification doesn't name."""
    descriptor = _pool().FindEnumTypeByName(f"{PACKAGE}.{enum}").values_by_number.get(value)
    return f"CODE {value}" if descriptor is None else str(descriptor.name)


def text(value: str | bytes) -> str:
    """A string field's text. protobuf gives bytes that aren't UTF-8 as bytes."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def parse(name: str, data: bytes, path: str, offset: int, field: str) -> Any:
    """Parse a message. `offset` is where its bytes (or their compressed form) start in the file.

    Raises CorruptFile for bytes that aren't such a message, UnsupportedError for a message of very many parts:
    protobuf allocates memory for each.
    """
    many = len(data) > orc_limits.MESSAGES_MAX
    if many and kernels.message_parts(data, orc_limits.MESSAGES_MAX) > orc_limits.MESSAGES_MAX:
        raise UnsupportedError(
            f"a {name} message of more than {orc_limits.MESSAGES_MAX} parts",
            path=path,
            offset=offset,
            field=field,
        )
    result = message(name)()
    try:
        result.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise CorruptFile(
            f"no valid {name} message: {error}",
            path=path,
            offset=offset,
            field=field,
            hint="the metadata is damaged; get the file from its source again",
        ) from None
    return result
