"""Finds binary extensions in the footer's structures, whose content bloom doesn't know.

Field 32767 of any structure may hold bytes in a format of the writer's choice. The experimental FlatBuffers metadata
(parquet-format issue 530, its schema in pull request 544, Arrow C++ pull request 48431) are such an extension of
FileMetaData, with a second copy of the offsets of filters and page indexes. Source: the Parquet format's
BinaryProtocolExtensions.md. Its example writes the field's number as a plain varint, 08 FF FF 01, which the compact
protocol reads as -16384 (zigzag): both ids are treated as the extension.

New filters are written after all existing bytes, so nothing moves that an extension may refer to. If filters are cut
out, the bytes after them move.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from bloomcli import kernels
from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.footer import Footer
from bloomcli.formats.parquet.spec import Struct
from bloomcli.words import plural

_FIELDS: Final = (32767, -16384)


class Extension(NamedTuple):
    """A structure's extension."""

    struct: str
    """`FileMetaData`, `ColumnMetaData`, ..."""
    path: str
    """The field path of the structure in errors; empty for FileMetaData."""
    offset: int
    """The file offset of the field."""
    bytes: int

    @property
    def text(self) -> str:
        """The extension's description, for reports."""
        return f"a binary extension (field 32767 of {self.struct}, {plural(self.bytes, 'byte')})"


def of_footer(footer: Footer) -> Extension | None:
    """The extension of FileMetaData."""
    return _of(footer.top, footer)


def remarks(footer: Footer, what: str) -> tuple[str, ...]:
    """The remark on new filters or page indexes in a file whose FileMetaData have an extension."""
    found = of_footer(footer)
    if found is None:
        return ()
    return (
        f"the footer has {found.text}, such as FlatBuffers metadata: a reader that uses it in place of the footer "
        f"doesn't see the new {what}",
    )


def refuse(footer: Footer) -> None:
    """Raise UnsupportedError if a structure on the path to the filters has an extension: then none can be cut out."""
    found = next(_all(footer), None)
    if found is not None:
        raise UnsupportedError(
            f"the footer has {found.text}, such as FlatBuffers metadata: it may say where filters and page indexes "
            "lie, and would be wrong once filters are taken out or replaced",
            path=footer.path,
            offset=found.offset,
            field=f"{found.path}.32767" if found.path else "32767",
            hint="`bloom add` without --replace and `bloom repair` with --add change only chunks that have none; for "
            "the others, write the file again without the extension",
        )


def _all(footer: Footer) -> Iterator[Extension]:
    """Yield the extensions of the footer's structures: FileMetaData, row groups, chunks and their metadata."""
    for struct in (footer.top, *map(footer.group_struct, range(footer.row_group_count))):
        if (found := _of(struct, footer)) is not None:
            yield found
    for key in footer.chunk_keys():
        chunk = footer.chunk_struct(key)
        for part in (chunk, chunk.struct("meta_data", "ColumnMetaData")):
            if part is not None and (found := _of(part, footer)) is not None:
                yield found


def _of(struct: Struct, footer: Footer) -> Extension | None:
    for number in _FIELDS:
        raw = struct.spans.get(number)
        if raw is not None and raw[0] == spec.BINARY:
            span = spec.Span(*raw)
            size = len(kernels.compact_bytes(struct.data, span.start))
            return Extension(struct.name, struct.location.field, footer.start + span.header, size)
    return None
