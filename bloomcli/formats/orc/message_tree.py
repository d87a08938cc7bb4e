"""Decodes ORC's messages to objects of JSON: known fields by name, unknown ones by number, bytes as hex."""

from __future__ import annotations

import math
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from bloomcli.errors import UnsupportedError
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Footer
from bloomcli.values.trees import Tree, binary

_MESSAGES: Final = {
    ("Footer", "statistics"): "ColumnStatistics",
    ("Footer", "metadata"): "UserMetadataItem",
    ("Footer", "encryption"): "Encryption",
    ("Type", "attributes"): "StringPair",
}
"""Fields of type bytes in orc.proto that hold messages."""

_ENUMS: Final = {
    ("Type", "kind"): "TypeKind",
    ("Stream", "kind"): "StreamKind",
    ("ColumnEncoding", "kind"): "EncodingKind",
    ("PostScript", "compression"): "CompressionKind",
}
"""Fields of type uint32 in orc.proto that hold enum values."""

_LENGTH_DELIMITED: Final = 2
_GROUP: Final = 3


class _Writer:
    """Turns messages into objects, up to a number of parts."""

    def __init__(self, path: str, offset: int, field: str) -> None:
        self._path, self._offset, self._field = path, offset, field
        self._parts = 0

    def _count(self) -> None:
        self._parts += 1
        if self._parts > orc_limits.DUMP_MAX_PARTS:
            raise UnsupportedError(
                f"metadata of more than {orc_limits.DUMP_MAX_PARTS} parts",
                path=self._path,
                offset=self._offset,
                field=self._field,
                hint="`bloom inspect` without --footer sums them up",
            )

    def message(self, message: Any) -> dict[str, Tree]:
        """A message's fields that are set, then the unknown ones."""
        found: dict[str, Tree] = {}
        kind = message.DESCRIPTOR.name
        for field, value in message.ListFields():
            if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
                found[field.name] = [self._value(kind, field, item) for item in value]
            else:
                found[field.name] = self._value(kind, field, value)
        for unknown in UnknownFieldSet(message):
            number = str(unknown.field_number)
            value = self._unknown(unknown)
            if number in found:  # a repeated one
                before = found[number]
                found[number] = [*before, value] if isinstance(before, list) else [before, value]
            else:
                found[number] = value
        return found

    def _value(self, kind: str, field: Any, value: Any) -> Tree:
        self._count()
        inner = _MESSAGES.get((kind, field.name))
        if inner is not None:
            return self.message(spec.parse(inner, value, self._path, self._offset, f"{self._field}.{field.name}"))
        enum = _ENUMS.get((kind, field.name))
        if enum is not None:
            return spec.name_of(enum, value)
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return self.message(value)
        if isinstance(value, bytes):  # protobuf gives a string that isn't UTF-8 as bytes
            return binary(value, text=(kind, field.name) == ("UserMetadataItem", "value"))
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value  # type: ignore[no-any-return]  # a number, a truth value or text

    def _unknown(self, unknown: Any) -> Tree:
        self._count()
        if unknown.wire_type == _LENGTH_DELIMITED:
            return binary(unknown.data, text=False)
        if unknown.wire_type == _GROUP:
            return {str(item.field_number): self._unknown(item) for item in unknown.data}
        return int(unknown.data)


def tree(message: Any, path: str, offset: int, field: str) -> dict[str, Tree]:
    """A message as an object. Raises UnsupportedError if it has very many parts."""
    return _Writer(path, offset, field).message(message)


def footer_tree(footer: Footer) -> dict[str, Tree]:
    """Postscript, footer, and the metadata section with the stripes' statistics. Raises CorruptFile,
    UnsupportedError."""
    path, at = footer.path, footer.footer_at
    length = footer.postscript.metadata_length
    raw = footer.read_metadata()
    metadata = spec.parse("Metadata", raw, path, at - length, "metadata")
    return {
        "postscript": tree(footer.postscript, path, at + footer.postscript.footer_length, "postscript"),
        "footer": {
            "offset": at,
            "length": int(footer.postscript.footer_length),
            **tree(footer.message, path, at, "footer"),
        },
        "metadata": {"offset": at - length, "length": int(length), **tree(metadata, path, at - length, "metadata")},
    }
