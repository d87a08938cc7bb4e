"""The schema and the whole footer as trees."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.errors import UnsupportedError
from bloomcli.formats.mosaic import limits as mosaic_limits
from bloomcli.formats.mosaic import spec
from bloomcli.formats.mosaic.footer import Footer, RowGroup
from bloomcli.model.schema import SchemaNode
from bloomcli.values.trees import Tree, binary


def schema_tree(footer: Footer) -> Iterator[SchemaNode]:
    """Yield the columns in the order that the writer was given."""
    for index in footer.schema.order:
        column = footer.columns[index]
        yield SchemaNode(
            depth=1,
            name=column.name,
            path=column.name,
            type=column.type_name,
            repetition=None if column.nullable else "required",
            column=index,
            attributes=(("bucket", str(column.bucket)),),
        )


def footer_tree(footer: Footer) -> dict[str, Tree]:
    """Footer, schema block and row-group index. Raises UnsupportedError if they have very many parts."""
    parts = sum(1 + len(g.buckets) + len(g.statistics) + len(g.filters) for g in footer.row_groups)
    if parts + len(footer.columns) > mosaic_limits.DUMP_MAX_PARTS:
        raise UnsupportedError(
            f"metadata of more than {mosaic_limits.DUMP_MAX_PARTS} parts",
            path=footer.path,
            offset=footer.footer_at,
            field="footer",
            hint="`bloom inspect` without --footer sums them up",
        )
    schema = footer.schema
    return {
        "footer": {
            "offset": footer.footer_at,
            "length": spec.FOOTER_BYTES,
            "index_offset": footer.index_at,
            "schema_offset": footer.schema_at,
            "buckets": schema.buckets,
            "row_groups": len(footer.row_groups),
            "compression": footer.compression,
            "version": footer.version,
            "reserved": binary(footer.tail[26:28], text=False),
            "magic": spec.MAGIC.decode(),
        },
        "schema": {
            "offset": footer.schema_at,
            "length": footer.index_at - footer.schema_at,
            "byte_pair_rules": schema.rules,
            "order": list(schema.order),
            "columns": [
                {"name": c.name, "type": c.type_name, "nullable": c.nullable, "bucket": c.bucket}
                for c in schema.columns
            ],
        },
        "index": {
            "offset": footer.index_at,
            "length": footer.footer_at - footer.index_at,
            "row_groups": [_row_group(group) for group in footer.row_groups],
        },
    }


def _row_group(group: RowGroup) -> dict[str, Tree]:
    return {
        "rows": group.rows,
        "buckets": [
            {
                "bucket": b.id,
                "offset": b.offset,
                "length": b.size,
                "unpacked_length": b.unpacked,
                "layout": b.layout,
            }
            for b in group.buckets
        ],
        "statistics": [
            {
                "column": column,
                "nulls": found.nulls,
                "minimum": None if found.minimum is None else binary(found.minimum, text=False),
                "maximum": None if found.maximum is None else binary(found.maximum, text=False),
            }
            for column, found in group.statistics.items()
        ],
        "filters": [{"column": f.column, "offset": f.offset, "length": f.length} for f in group.filters],
    }
