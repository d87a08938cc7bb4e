"""Adds Iceberg's two row lineage columns to a Parquet file, and changes nothing else.

    original:       body                 | footer  | length | PAR1
    with lineage:   body | chunks, index | footer' | length | PAR1

Iceberg numbers the rows of a table of format version 3: a row without its own id has the id `first row id of the data
file + position`. Each new data file gets a new first row id in its commit, so a copy of a file keeps the ids of its
rows only if it stores them as columns: ``_row_id``, ascending by one, and ``_last_updated_sequence_number``, which is
the same in all rows.

Each row group gets a chunk of one page for each of the columns, in DELTA_BINARY_PACKED: 128 rows take 5 bytes. They
have a page index if the file's other columns have one, because readers expect one for all columns or none. In a file
with an encrypted footer they are encrypted by the footer's key.

Source: Iceberg's table specification, "Row Lineage" and "Reserved Field IDs".
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from bloomcli.errors import UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet import spec
from bloomcli.formats.parquet.encryption import Cipher, Encryption, Kind
from bloomcli.formats.parquet.footer import COLUMN_INDEX, OFFSET_INDEX, Footer
from bloomcli.formats.parquet.page_index import ASCENDING, IndexedPage, encoded_column_index, encoded_offset_index
from bloomcli.formats.parquet.schema import leaf_columns
from bloomcli.formats.parquet.spec import STRUCT, Struct, encoded, list_header, varint, zigzag
from bloomcli.formats.parquet.splice import Edit, apply_edits, encrypted_tail, set_fields
from bloomcli.model.schema import RowLineage
from bloomcli.storage.base import Source
from bloomcli.storage.sources import ExtendedSource
from bloomcli.words import counted

ROW_ID: Final = "_row_id"
LAST_UPDATED: Final = "_last_updated_sequence_number"
_FIELD_IDS: Final = {ROW_ID: 2147483540, LAST_UPDATED: 2147483539}
_DELTA: Final = "DELTA_BINARY_PACKED"
_BLOCK: Final = 128
_MINIBLOCKS: Final = 4
_ARROW_KEY: Final = b"ARROW:schema"


def with_lineage(
    source: Source, footer: Footer, lineage: RowLineage, *, appends: bool = False
) -> ExtendedSource | None:
    """Add the two columns; None if the file has them already, as files do that Iceberg has rewritten.

    Args:
        source: the file.
        footer: its footer.
        lineage: the first row id and the sequence number of the file.
        appends: keep the whole file, with its footer, and append chunks and footer.

    Raises:
        UnsupportedError: the file has only one of the columns, or rows without an id in it; the footer is signed, its
            key isn't known, or its Arrow schema can't be read.
        CorruptFile: the footer is damaged.
    """
    columns = {column.path: column.index for column in leaf_columns(footer.top)}  # by their names in the file
    present = [name for name in _FIELD_IDS if name in columns]
    if len(present) == len(_FIELD_IDS):
        _refuse_missing_ids(footer, columns[ROW_ID])
        return None
    if present:
        raise UnsupportedError(f"the file has {present[0]} and not the other row lineage column", path=footer.path)
    encryption = footer.encryption
    cipher = None if encryption is None or encryption.plaintext_footer else encryption.footer_cipher
    if footer.signed and (cipher is None or not cipher.has_aad):
        raise UnsupportedError("the file is encrypted: it can't get the row lineage columns", path=footer.path)
    start = footer.file_bytes if appends else footer.start
    if encryption is None or cipher is None:
        chunks, new = _Columns(footer, lineage, start).build()
        return ExtendedSource(source, start, chunks + new + len(new).to_bytes(4, "little") + spec.MAGIC)
    as_stored = Footer(footer.path, footer.file_bytes, footer.start, encryption.stored)
    as_stored.encryption = encryption
    chunks, new = _Columns(as_stored, lineage, start, encryption).build()
    return ExtendedSource(source.stored, start, chunks + encrypted_tail(source, cipher, new))


def _refuse_missing_ids(footer: Footer, ordinal: int) -> None:
    """Raise UnsupportedError if some rows get their id from the file's first row id and their position.

    Iceberg writes such files if a MERGE both copies rows and inserts others. A missing sequence number does no harm:
    it is that of the file, which the commit keeps.
    """
    for chunk in footer.chunks({ordinal}):
        if chunk.num_values and chunk.null_count != 0:
            raise UnsupportedError(
                f"some rows of row group {chunk.row_group} have no {ROW_ID} of their own, and would get new ones",
                path=footer.path,
                hint="rewrite_data_files writes row ids for all rows; --new-row-ids accepts new ones",
            )


class _Chunk(NamedTuple):
    """One column chunk: its page, and its facts for the footer."""

    name: str
    offset: int
    page: bytes
    """The page with its header, as they are stored."""
    rows: int
    low: bytes
    high: bytes
    cipher: Cipher | None
    """None if the file isn't encrypted."""


class _Columns:
    """Builds the chunks, page indexes and footer of a file with the two columns."""

    def __init__(self, footer: Footer, lineage: RowLineage, start: int, encryption: Encryption | None = None) -> None:
        self.footer = footer
        self.encryption = encryption
        self.lineage = lineage
        self.start = start
        self.indexed = any(footer.metadata(key).offset_index_offset for key in footer.chunk_keys({0}))

    def build(self) -> tuple[bytes, bytes]:
        """Return the pages with their indexes, which start at `start`, and FileMetaData."""
        groups = list(self._groups())
        out = [chunk.page for chunks in groups for chunk in chunks]
        at = self.start + sum(map(len, out))
        edits = self._schema()
        for group, chunks in enumerate(groups):
            metadata = []
            for chunk in chunks:
                index: dict[str, int] = {}
                for name, data in _indexes(chunk) if self.indexed and chunk.rows else ():
                    out.append(data)
                    index |= {f"{name}_offset": at, f"{name}_length": len(data)}
                    at += len(data)
                metadata.append(_column_chunk(chunk, index))
            edits += self._row_group(group, metadata, sum(len(chunk.page) for chunk in chunks))
        return b"".join(out), apply_edits(self.footer.raw, edits)

    def _groups(self) -> Iterator[list[_Chunk]]:
        """Yield the two chunks of each row group."""
        at, first = self.start, self.lineage.first_row_id
        for group in range(self.footer.row_group_count):
            rows = self.footer.row_group(group).rows
            if rows > parquet_limits.LINEAGE_MAX_ROWS:
                raise UnsupportedError(
                    f"row group {group} has {counted(rows, 'row')}; row lineage is kept for at most"
                    f" {parquet_limits.LINEAGE_MAX_ROWS}",
                    path=self.footer.path,
                )
            columns = (ROW_ID, first, 1), (LAST_UPDATED, self.lineage.sequence_number, 0)
            chunks = []
            for position, (name, start, step) in enumerate(columns, len(self.footer.columns)):
                cipher = self._cipher(group, position)
                page = _page(rows, start, step, cipher)
                ends = (start, start + step * max(rows - 1, 0))
                low, high = (value.to_bytes(8, "little", signed=True) for value in ends)
                chunks.append(_Chunk(name, at, page, rows, low, high, cipher))
                at += len(page)
            yield chunks
            first += rows

    def _cipher(self, group: int, position: int) -> Cipher | None:
        """The cipher of a new chunk: by the footer's key."""
        if self.encryption is None or self.encryption.footer_cipher is None:
            return None
        ordinal = self.footer.group_struct(group).integer("ordinal")
        ordinals = group if ordinal is None else ordinal, position
        return Cipher(self.encryption.footer_cipher.key, self.encryption.algorithm, ordinals)

    def _schema(self) -> list[Edit]:
        """The edits of the schema and of the columns' sort orders."""
        top, raw = self.footer.top, self.footer.raw
        elements = [
            encoded(
                "SchemaElement",
                {"type": "INT64", "repetition_type": "OPTIONAL", "name": name.encode(), "field_id": number},
            )
            for name, number in _FIELD_IDS.items()
        ]
        edits = _extend(top, "schema", elements)
        root = Struct("SchemaElement", raw, top.list_starts("schema")[0], self.footer.location.at("schema[0]"))
        edits += set_fields(root, {"num_children": root.required_int("num_children") + len(elements)})
        if top.span("column_orders") is not None:
            edits += _extend(top, "column_orders", [encoded("ColumnOrder", {"TYPE_ORDER": {}})] * len(elements))
        return edits + self._arrow_schema()

    def _arrow_schema(self) -> list[Edit]:
        """The edit of the Arrow schema in the metadata, in which arrow-rs expects all columns."""
        edits = []
        for pair in self.footer.key_values():
            span, value = pair.span("value"), pair.binary("value")
            if pair.binary("key") == _ARROW_KEY and span is not None and value:
                try:
                    new = _extended_arrow_schema(value)
                except ValueError as error:
                    raise UnsupportedError(
                        f"{_ARROW_KEY.decode()} in the footer can't be read: {error}", path=self.footer.path
                    ) from None
                edits.append(Edit(span.start, span.end, varint(len(new)) + new))
        return edits

    def _row_group(self, index: int, metadata: list[bytes], page_bytes: int) -> list[Edit]:
        """The edits of one row group: its chunks, and its sizes."""
        group = self.footer.group_struct(index)
        sizes = {"total_byte_size": group.required_int("total_byte_size") + page_bytes}
        stored = group.integer("total_compressed_size")
        if stored is not None:
            sizes["total_compressed_size"] = stored + page_bytes
        return _extend(group, "columns", metadata) + set_fields(group, sizes)


def _extended_arrow_schema(value: bytes) -> bytes:
    """Add the two columns to an encoded Arrow schema. Raises ValueError if it can't be read."""
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(b64decode(value, validate=True)))
    for name, number in _FIELD_IDS.items():
        schema = schema.append(pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)}))
    return b64encode(schema.serialize())


def _page(rows: int, first: int, step: int, cipher: Cipher | None) -> bytes:
    """A data page (version 1, not compressed) with its header, as they are stored."""
    if not rows:
        return b""
    levels = varint(rows << 1) + b"\x01"  # one run of definition level 1: no row is null
    block = zigzag(step) + bytes(_MINIBLOCKS)  # the smallest difference; the others exceed it by 0, in 0 bits
    values = varint(_BLOCK) + varint(_MINIBLOCKS) + varint(rows) + zigzag(first) + block * -(-(rows - 1) // _BLOCK)
    body = len(levels).to_bytes(4, "little") + levels + values
    stored = _stored(cipher, body, Kind.DATA_PAGE, 0)
    head = {
        "num_values": rows,
        "encoding": _DELTA,
        "definition_level_encoding": "RLE",
        "repetition_level_encoding": "RLE",
    }
    sizes = {"uncompressed_page_size": len(body), "compressed_page_size": len(stored)}
    header = encoded("PageHeader", {"type": "DATA_PAGE", **sizes, "data_page_header": head})
    return _stored(cipher, header, Kind.DATA_PAGE_HEADER, 0) + stored


def _stored(cipher: Cipher | None, module: bytes, kind: Kind, page: int | None = None) -> bytes:
    """A module as it is stored."""
    return module if cipher is None else cipher.encrypt(module, kind, page)


def _indexes(chunk: _Chunk) -> Iterator[tuple[str, bytes]]:
    """Yield the names and the bytes of the page indexes, as they are stored."""
    bounds = encoded_column_index([IndexedPage(chunk.low, chunk.high, nulls=0)], ASCENDING)
    places = encoded_offset_index([(chunk.offset, len(chunk.page), 0)])
    yield COLUMN_INDEX, _stored(chunk.cipher, bounds, Kind.COLUMN_INDEX)
    yield OFFSET_INDEX, _stored(chunk.cipher, places, Kind.OFFSET_INDEX)


def _column_chunk(chunk: _Chunk, index: dict[str, int]) -> bytes:
    """Encode a ColumnChunk. `index`: the fields of its page index."""
    metadata = {
        "type": "INT64",
        "encodings": ["RLE", _DELTA],
        "path_in_schema": [chunk.name.encode()],
        "codec": "UNCOMPRESSED",
        "num_values": chunk.rows,
        "total_uncompressed_size": len(chunk.page),
        "total_compressed_size": len(chunk.page),
        "data_page_offset": chunk.offset,
        "statistics": {"null_count": 0, "max_value": chunk.high, "min_value": chunk.low} if chunk.rows else {},
    }
    fields: dict[str, Any] = {"file_offset": chunk.offset, "meta_data": metadata, **index}
    if chunk.cipher is not None:
        fields["crypto_metadata"] = {"ENCRYPTION_WITH_FOOTER_KEY": {}}
    return encoded("ColumnChunk", fields)


def _extend(struct: Struct, field: str, items: list[bytes]) -> list[Edit]:
    """The edits that append structures to a list."""
    span = struct.span(field)
    starts = struct.list_starts(field)
    if span is None or not starts:
        raise struct.location.fault(f"{struct.name} has no {field}", struct.start, field)
    header = list_header(STRUCT, len(starts) - 1 + len(items))
    return [Edit(span.start, starts[0], header), Edit(starts[-1], starts[-1], b"".join(items))]
