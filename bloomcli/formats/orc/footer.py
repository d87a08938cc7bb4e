"""Reads an ORC file's tail and its stripes' footers.

    "ORC" | stripes | [stripe statistics] | metadata | footer | postscript | u8 postscript length

The postscript names the compression of footer and metadata; the postscript itself isn't compressed. A stripe has
index streams, data streams and a footer. The offset of a stream follows from the lengths of the streams before it.

`schema_tree` and `footer_tree` show the footer as it is: known fields by name, unknown ones by number, bytes as hex.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.base import Tree, binary
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.compression import Codec, codec_of, next_checksum
from bloomcli.formats.orc.schema import OrcType, read_types
from bloomcli.model.schema import SchemaNode
from bloomcli.storage.base import Source
from bloomcli.words import counted

_HINT: Final = "the file is cut off or damaged; get it from its source again"

_STREAMS_OF_A_TYPE: Final = 32
"""Maximum number of streams of a column in a stripe: there are ten kinds, and encrypted columns have some twice."""
_STREAMS_HELD: Final = 1 << 18
"""Maximum number of streams of stripe footers in memory: each takes some 300 bytes."""

ENCRYPTED_INDEX: Final = "ENCRYPTED_INDEX"
"""The kind of a stream that covers the index streams of all encrypted columns."""

INDEX_KINDS: Final = ("ROW_INDEX", "DICTIONARY_COUNT", "BLOOM_FILTER", "BLOOM_FILTER_UTF8", ENCRYPTED_INDEX)
"""Streams that lie in a stripe's index area (orc-core, StreamName.getArea)."""


class Stripe(NamedTuple):
    """One stripe's location. Lengths are bytes on disk."""

    ordinal: int
    offset: int
    index_length: int
    data_length: int
    footer_length: int
    rows: int

    @property
    def footer_at(self) -> int:
        """Offset of its footer."""
        return self.offset + self.index_length + self.data_length

    @property
    def end(self) -> int:
        """The first byte after the stripe."""
        return self.footer_at + self.footer_length

    @property
    def field(self) -> str:
        """The stripe's field path, for errors."""
        return f"stripes[{self.ordinal}]"


class Stream(NamedTuple):
    """One stream of a stripe."""

    kind: str
    column: int
    offset: int
    length: int
    position: int
    """Its position in the stripe footer's list."""

    @property
    def range(self) -> tuple[int, int]:
        """Its offset and length."""
        return self.offset, self.length


class Encoding(NamedTuple):
    """How a stripe stores a column."""

    name: str
    entries: int
    """Entries of its dictionary; 0 without one."""
    bloom: int | None
    """ColumnEncoding.bloomEncoding; None where it isn't written."""


DICTIONARIES: Final = ("DICTIONARY", "DICTIONARY_V2")
"""The encodings in which every value is an entry of a dictionary."""


@dataclass(frozen=True)
class StripeFooter:
    """A stripe's footer: the message, and the locations of its streams."""

    stripe: Stripe
    message: Any
    streams: tuple[Stream, ...]

    @cached_property
    def _by_column(self) -> dict[int, list[Stream]]:
        by_column: dict[int, list[Stream]] = {}
        for stream in self.streams:
            by_column.setdefault(stream.column, []).append(stream)
        return by_column

    def of_column(self, column: int) -> Sequence[Stream]:
        """A column's streams, in order."""
        return self._by_column.get(column, ())

    def find(self, kind: str, column: int) -> Stream | None:
        """The stream of a kind of a column."""
        return next((s for s in self.of_column(column) if s.kind == kind), None)

    def encoding(self, column: int) -> Encoding | None:
        """A column's encoding; None where the footer has none."""
        if column >= len(self.message.columns):
            return None
        message = self.message.columns[column]
        bloom = int(message.bloom_encoding) if message.HasField("bloom_encoding") else None
        return Encoding(spec.name_of("EncodingKind", message.kind), int(message.dictionary_size), bloom)


class Footer:
    """The parsed tail of one file.

    Attributes:
        postscript, message: the PostScript and Footer messages.
        codec: the compression of every other part.
        tail_start: offset of the metadata section, after the stripes.
        metadata_raw: the bytes between the stripes and the footer, as stored.
        types: the type tree, by column id.
        stripes: in file order.
        source: the file's bytes.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._stripe_footers: dict[int, StripeFooter] = {}
        self._streams_held = 0
        self.path = source.path
        self.file_bytes = source.size
        self.postscript, postscript_at = _read_postscript(source)
        self.codec: Codec = codec_of(self.postscript, source.path, postscript_at)
        self.footer_at = postscript_at - self.postscript.footer_length
        extra = self.postscript.metadata_length + self.postscript.stripe_statistics_length
        self.tail_start = self.footer_at - extra
        if self.footer_at < 0 or self.tail_start < 0:
            raise self._fault("footer and metadata are longer than the file", postscript_at, "footerLength")
        if self.postscript.footer_length > limits.FOOTER_MAX_BYTES:
            raise UnsupportedError(
                f"a footer of {counted(self.postscript.footer_length, 'byte')}", path=self.path, offset=self.footer_at
            )
        raw = source.read_at(self.footer_at, self.postscript.footer_length)
        data = self.codec.metadata(raw, self.footer_at, "footer")
        self.message = spec.parse("Footer", data, self.path, self.footer_at, "footer")
        self.types: tuple[OrcType, ...] = read_types(self.message.types, self.path, self.footer_at)
        self.stripes = tuple(self._stripe(i, s) for i, s in enumerate(self.message.stripes))
        groups = sum(map(self.row_groups, self.stripes))
        if groups > orc_limits.ROW_GROUPS_MAX:
            raise self._fault(f"{counted(groups, 'row group')} are more than a file has", self.footer_at, "stripes")

    def over(self, source: Source) -> Self:
        """The same footer of another source with the same bytes."""
        footer = copy(self)
        footer.source = source
        return footer

    def _fault(self, reason: str, offset: int, field: str) -> CorruptFile:
        return CorruptFile(reason, path=self.path, offset=offset, field=field, hint=_HINT)

    def _stripe(self, ordinal: int, info: Any) -> Stripe:
        stripe = Stripe(
            ordinal, info.offset, info.index_length, info.data_length, info.footer_length, info.number_of_rows
        )
        if stripe.offset < len(spec.MAGIC) or stripe.end > self.tail_start:
            raise self._fault(
                f"stripe {ordinal} lies at {stripe.offset} to {stripe.end}, outside the file's data",
                self.footer_at,
                stripe.field,
            )
        return stripe

    def user_metadata(self) -> Iterator[tuple[str, bytes]]:
        """The writer's own keys and values. Raises CorruptFile."""
        for raw in self.message.metadata:
            item = spec.parse("UserMetadataItem", raw, self.path, self.footer_at, "metadata")
            yield spec.text(item.name), item.value

    def statistics(self, column: int) -> Any | None:
        """The file's statistics of a column, as stored. Raises CorruptFile."""
        messages = self.message.statistics
        if column >= len(messages):
            return None
        return spec.parse("ColumnStatistics", messages[column], self.path, self.footer_at, f"statistics[{column}]")

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return int(self.message.number_of_rows)

    @property
    def stride(self) -> int:
        """Rows of a row group; 0 if the file has no row index."""
        return int(self.message.row_index_stride)

    @cached_property
    def sizing_rows(self) -> int:
        """Rows by which filters are sized: the stride, or with a very large one those of the largest row group."""
        if self.stride <= orc_limits.STRIDE_TRUSTED:
            return self.stride
        return max((min(stripe.rows, self.stride) for stripe in self.stripes), default=0)

    def row_groups(self, stripe: Stripe) -> int:
        """The number of row groups of a stripe."""
        return -(-stripe.rows // self.stride) if self.stride else 0

    def units(self, stripe: Stripe) -> Sequence[int]:
        """The rows of each row group of a stripe. Without a row index, a stripe with rows is one unit."""
        stride = self.stride or stripe.rows
        whole, rest = divmod(stripe.rows, stride) if stride else (0, 0)
        return [stride] * whole + [rest] * (rest > 0)

    def place(self, stripe: Stripe, part: str = "") -> dict[str, Any]:
        """Where a stripe, or a part of it, is: the path, offset and field of an error about it."""
        return {"path": self.path, "offset": stripe.offset, "field": stripe.field + part}

    @property
    def version(self) -> tuple[int, ...]:
        """The file version, (0, 12) for ORC v1."""
        return tuple(self.postscript.version) or (0, 11)

    @cached_property
    def version_error(self) -> UnsupportedError | None:
        """The error about a file of a version in which the same bytes may have another meaning."""
        if self.version in spec.VERSIONS:
            return None
        return UnsupportedError(
            f"file version {'.'.join(map(str, self.version))}; 0.11 and 0.12 are known",
            path=self.path,
            field="version",
            hint="rewrite the file with a released writer",
        )

    def refuse_unknown_version(self) -> None:
        """Raise the error about the file's version, if there is one."""
        if self.version_error is not None:
            raise self.version_error

    @property
    def created_by(self) -> str:
        """The writer by name, with its version."""
        name = spec.WRITERS.get(self.message.writer, f"writer {self.message.writer}")
        software = f" {spec.text(self.message.software_version)}" if self.message.HasField("software_version") else ""
        return f"{name}{software}, writer version {self.postscript.writer_version}"

    @cached_property
    def _parents(self) -> Sequence[int | None]:
        parents: list[int | None] = [None] * len(self.types)
        for above in self.types:
            for child in above.children:
                parents[child] = above.id
        return parents

    def ancestors(self, orc: OrcType) -> list[OrcType]:
        """The types above a type, from the root down."""
        types = []
        at = self._parents[orc.id]
        while at is not None:
            types.append(self.types[at])
            at = self._parents[at]
        return types[::-1]

    @cached_property
    def encrypted_columns(self) -> frozenset[int]:
        """Ids of the columns below an encrypted root."""
        if not self.message.HasField("encryption"):
            return frozenset()
        encryption = spec.parse("Encryption", self.message.encryption, self.path, self.footer_at, "encryption")
        roots = {v.root for v in encryption.variants}
        return frozenset(i for t in self.types if t.id in roots for i in range(t.id, t.last + 1))

    def will_read_stripes(self) -> None:
        """Announce that the footers of all stripes are about to be read."""
        read = self._stripe_footers
        self.source.will_read((s.footer_at, s.footer_length) for s in self.stripes if s.ordinal not in read)

    def stripe_footer(self, stripe: Stripe) -> StripeFooter:
        """A stripe's footer. It is read once, except in files with very many streams.

        Raises CorruptFile if its streams are longer than the stripe.
        """
        footer = self._stripe_footers.get(stripe.ordinal)
        if footer is None:
            footer = self._read_stripe_footer(stripe)
            self._streams_held += len(footer.streams)
            if self._streams_held > _STREAMS_HELD:  # a file of many stripes and columns: read them again
                self._stripe_footers.clear()
                self._streams_held = len(footer.streams)
            self._stripe_footers[stripe.ordinal] = footer
        return footer

    def _read_stripe_footer(self, stripe: Stripe) -> StripeFooter:
        at = stripe.footer_at
        field = f"{stripe.field}.footer"
        data = self.codec.metadata(self.source.read_at(at, stripe.footer_length), at, field)
        message = spec.parse("StripeFooter", data, self.path, at, field)
        if len(message.streams) > _STREAMS_OF_A_TYPE * len(self.types):
            raise self._fault(
                f"{counted(len(message.streams), 'stream')} of {counted(len(self.types), 'column')} can't be",
                at,
                f"{field}.streams",
            )
        streams = []
        offset = stripe.offset
        for position, stream in enumerate(message.streams):
            kind = spec.name_of("StreamKind", stream.kind)
            streams.append(Stream(kind, stream.column, offset, stream.length, position))
            offset += stream.length
            if offset > at:
                raise self._fault(
                    f"the streams take {counted(offset - stripe.offset, 'byte')} or more, the stripe has"
                    f" {at - stripe.offset}",
                    at,
                    f"{field}.streams[{position}]",
                )
        once = [(s.kind, s.column) for s in streams if not s.kind.startswith(("ENCRYPTED", "CODE"))]
        if len(set(once)) < len(once):
            kind, column = next(k for i, k in enumerate(once) if k in once[:i])
            raise self._fault(f"column {column} has two {kind} streams", at, f"{field}.streams")
        return StripeFooter(stripe, message, tuple(streams))

    @property
    def metadata_at(self) -> int:
        """Offset of the metadata section."""
        return int(self.footer_at - self.postscript.metadata_length)

    def read_metadata(self) -> Any:
        """The metadata section (statistics of stripes), a message; without fields if the file has none. Raises
        CorruptFile, UnsupportedError."""
        at, length = self.metadata_at, self.postscript.metadata_length
        if length > limits.FOOTER_MAX_BYTES:
            raise UnsupportedError(f"metadata of {counted(length, 'byte')}", path=self.path, offset=at)
        data = self.codec.metadata(self.source.read_at(at, length), at, "metadata") if length else b""
        return spec.parse("Metadata", data, self.path, at, "metadata")

    @cached_property
    def of_stripes(self) -> tuple[Sequence[Any], CorruptFile | UnsupportedError | None]:
        """The statistics of all columns of each stripe, as stored; none, and the error, if they can't be read."""
        try:
            return self.read_metadata().stripe_statistics, None
        except (CorruptFile, UnsupportedError) as error:
            return (), error.with_traceback(None)  # which would keep the bytes

    def stripe_statistics(self, stripe: Stripe, column: int) -> Any | None:
        """A stripe's statistics of a column, as stored; None if there are none that can be read: `of_stripes` has
        the error, which `proof.of_section` reports."""
        of_stripes, _ = self.of_stripes
        if stripe.ordinal >= len(of_stripes):
            return None
        of_columns = of_stripes[stripe.ordinal].column_statistics
        return of_columns[column] if column < len(of_columns) else None

    def read_stream(self, stream: Stream, stripe: Stripe) -> bytes:
        """A filter stream's bytes, decompressed."""
        return self.codec.decompress(*self._raw(stream, stripe))

    def read_index(self, stream: Stream, stripe: Stripe) -> bytes:
        """A row index stream's bytes, decompressed."""
        return self.codec.metadata(*self._raw(stream, stripe))

    def stream_checksum(self, stream: Stream, stripe: Stripe) -> int:
        """The checksum of a stream, as `compression.Packer` computes it."""
        checksum = 0
        for chunk in self.codec.chunks(*self._raw(stream, stripe)):
            checksum = next_checksum(checksum, chunk)
        return checksum

    def _raw(self, stream: Stream, stripe: Stripe) -> tuple[bytes, int, str]:
        """A stream's bytes on disk, its offset and its field path."""
        field = f"{stripe.field}.streams[{stream.position}]"
        if stream.length > orc_limits.FILTER_STREAM_MAX_BYTES:
            raise UnsupportedError(
                f"a stream of {counted(stream.length, 'byte')}", path=self.path, offset=stream.offset, field=field
            )
        return self.source.read_at(stream.offset, stream.length), stream.offset, field


def _read_postscript(source: Source) -> tuple[Any, int]:
    """The PostScript and its offset, from one read of the file's last 256 bytes."""
    size = min(source.size, spec.POSTSCRIPT_MAX_BYTES + 1)
    tail = source.read_at(source.size - size, size)
    length = tail[-1] if tail else 0
    at = source.size - 1 - length
    if length == 0 or at < len(spec.MAGIC):
        raise CorruptFile(
            f"the postscript's length, {length}, can't be in a file of {counted(source.size, 'byte')}",
            path=source.path,
            offset=max(source.size - 1, 0),
            hint=_HINT,
        )
    message = spec.parse("PostScript", tail[-1 - length : -1], source.path, at, "postscript")
    if message.magic not in {"", "ORC"}:
        raise CorruptFile(
            f"the postscript's magic is {message.magic!r}, not 'ORC'", path=source.path, offset=at, hint=_HINT
        )
    return message, at


def schema_tree(footer: Footer) -> Iterator[SchemaNode]:
    """Yield every type."""
    for orc, message in zip(footer.types, footer.message.types, strict=True):
        pairs = [
            spec.parse("StringPair", raw, footer.path, footer.footer_at, f"types[{orc.id}].attributes")
            for raw in message.attributes
        ]
        attributes = [(spec.text(pair.key), spec.text(pair.value)) for pair in pairs]
        if message.HasField("crs"):
            attributes.append(("crs", spec.text(message.crs)))
        if message.HasField("algorithm"):
            attributes.append(("algorithm", spec.name_of("EdgeAlgorithm", message.algorithm)))
        yield SchemaNode(
            depth=len(orc.steps),
            name=orc.steps[-1] if orc.steps else "",
            path=".".join(orc.steps),
            type=orc.name,
            id=orc.id,
            column=orc.id if not orc.children and orc.kind != "STRUCT" else None,
            attributes=tuple(attributes),
        )


_MESSAGES: Final = {
    ("Footer", "statistics"): "ColumnStatistics",
    ("Footer", "metadata"): "UserMetadataItem",
    ("Footer", "encryption"): "Encryption",
    ("Type", "attributes"): "StringPair",
}
"""Fields of type bytes in orc.proto that hold messages."""

_ENUMS: Final = {
    ("Type", "kind"): "TypeKind",
    ("Type", "algorithm"): "EdgeAlgorithm",
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
        fields: dict[str, Tree] = {}
        kind = message.DESCRIPTOR.name
        for field, value in message.ListFields():
            if field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
                fields[field.name] = [self._value(kind, field, item) for item in value]
            else:
                fields[field.name] = self._value(kind, field, value)
        for unknown in UnknownFieldSet(message):
            number = str(unknown.field_number)
            value = self._unknown(unknown)
            if number in fields:  # a repeated one
                before = fields[number]
                fields[number] = [*before, value] if isinstance(before, list) else [before, value]
            else:
                fields[number] = value
        return fields

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
    path, at, metadata_at = footer.path, footer.footer_at, footer.metadata_at
    metadata = footer.read_metadata()
    return {
        "postscript": tree(footer.postscript, path, at + footer.postscript.footer_length, "postscript"),
        "footer": {
            "offset": at,
            "length": int(footer.postscript.footer_length),
            **tree(footer.message, path, at, "footer"),
        },
        "metadata": {
            "offset": metadata_at,
            "length": at - metadata_at,
            **tree(metadata, path, metadata_at, "metadata"),
        },
    }
