"""Reads delete files of tables: Parquet and ORC with pyarrow, Avro with fastavro (optional: ``bloomcli[avro]``)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq

from bloomcli.datasets.record_shape import RecordField, Shape, apply_shape
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.storage.registry import open_source
from bloomcli.words import counted

_ROWS_AT_ONCE: Final = 1 << 16
_AVRO_ID: Final = "field-id"
"""Iceberg's attribute for the id of a field. Source: Iceberg's specification, "Appendix A: Avro"."""


def delete_rows(path: str, kind: str, shape: Shape, size: int | None = None) -> Iterator[pa.StructArray]:
    """Yield the rows of a delete file, batch by batch.

    Args:
        path: the file.
        kind: its format, according to the table's metadata.
        shape: the columns; found by field ids, or by names in files without ids.
        size: its bytes, according to the table's metadata; None if they don't have it.

    Raises:
        CorruptFile: it can't be decoded, or has another size.
        UnreadableError: the store can't read it.
        UnsupportedError: its format isn't supported, or the package that reads it isn't installed.
    """
    read = _READERS.get(kind)
    if read is None:
        raise UnsupportedError(
            f"a delete file of the format {kind}: its deleted rows can't be read",
            path=path,
            hint="rewrite the table's delete files, or use --files-only without --table",
        )
    with open_source(path) as source:
        if size is not None and source.size != size:
            raise CorruptFile(
                f"the delete file has {counted(source.size, 'byte')}, and the table says {size}",
                path=path,
                hint="the file is cut off or was replaced; restore it",
            )
        data = source.read_at(0, source.size)
    try:
        for batch in read(data, shape):
            yield apply_shape(pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)), shape, path)
    except ImportError:
        raise UnsupportedError(
            "delete files in Avro are read by fastavro, which isn't installed",
            path=path,
            hint="pip install 'bloomcli[avro]'",
        ) from None
    except (pa.ArrowException, OSError, ValueError, LookupError, EOFError, TypeError) as error:
        if isinstance(error, BloomError):
            raise
        said = " ".join(str(error).split())[:200]
        raise CorruptFile(f"the delete file can't be read: {said}", path=path) from None


def _of_parquet(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    there = set(file.schema_arrow.names)
    columns = [field.name for field in shape]
    chosen = columns if all(field.field_id is None and field.name in there for field in shape) else None
    rows = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=chosen, use_threads=False):
        rows += batch.num_rows
        yield batch
    if rows != file.metadata.num_rows:  # Arrow ends early, without an error, if pages are damaged
        raise ValueError(f"the pages have {counted(rows, 'row')}, and the footer says {file.metadata.num_rows}")


def _of_orc(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    del shape  # all columns are read
    file = pyarrow.orc.ORCFile(pa.BufferReader(data))
    for stripe in range(file.nstripes):
        yield file.read_stripe(stripe)


def _of_avro(data: bytes, shape: Shape) -> Iterator[pa.RecordBatch]:
    import fastavro

    blocks = fastavro.block_reader(io.BytesIO(data))
    schema = blocks.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise ValueError("its rows aren't records")
    chosen = [(field, name) for field in shape if (name := _avro_name(schema["fields"], field)) is not None]
    for block in blocks:
        rows: list[Any] = list(block)
        arrays = [pa.array([_plain(row[name], field) for row in rows], field.type) for field, name in chosen]
        fields = [pa.field(field.name, field.type, metadata=_id_of(field)) for field, _ in chosen]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _avro_name(fields: list[Mapping[str, Any]], field: RecordField) -> str | None:
    """The name of a field in a file; None if the file doesn't have it."""
    with_ids = any(_AVRO_ID in one for one in fields)
    for one in fields:
        if (
            one.get(_AVRO_ID) == field.field_id
            if with_ids and field.field_id is not None
            else one["name"] in field.names
        ):
            return str(one["name"])
    return None


def _id_of(field: RecordField) -> dict[bytes, bytes]:
    return {} if field.field_id is None else {b"PARQUET:field_id": str(field.field_id).encode()}


def _plain(value: Any, field: RecordField) -> Any:
    """A value of fastavro in a form that pyarrow converts."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime) and getattr(field.type, "tz", None) is None:
        return value.replace(tzinfo=None)
    return value


_READERS: Final[Mapping[str, Callable[[bytes, Shape], Iterator[pa.RecordBatch]]]] = {
    "parquet": _of_parquet,
    "orc": _of_orc,
    "avro": _of_avro,
}
