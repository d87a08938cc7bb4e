"""The footer's types in preorder."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.formats.orc import spec
from bloomcli.formats.orc.footer import Footer
from bloomcli.model.schema import SchemaNode


def schema_tree(footer: Footer) -> Iterator[SchemaNode]:
    """Yield every type."""
    for orc, message in zip(footer.types, footer.message.types, strict=True):
        pairs = [
            spec.parse("StringPair", raw, footer.path, footer.footer_at, f"types[{orc.id}].attributes")
            for raw in message.attributes
        ]
        yield SchemaNode(
            depth=len(orc.steps),
            name=orc.steps[-1] if orc.steps else "",
            path=".".join(orc.steps),
            type=orc.name,
            id=orc.id,
            column=orc.id if not orc.children and orc.kind != "STRUCT" else None,
            attributes=tuple((spec.text(pair.key), spec.text(pair.value)) for pair in pairs),
        )
