"""Decides which ORC columns can have filters that readers use."""

from __future__ import annotations

from bloomcli.formats.orc import hashes
from bloomcli.formats.orc.footer import Footer
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.values import TIMESTAMPS, why_zone_unknown


def unfilterable_types(footer: Footer) -> dict[int, str]:
    """Types that can't have a filter, by column id, each with the reason as a noun phrase."""
    found: dict[int, str] = {}
    for orc in footer.types:
        if orc.id in footer.encrypted_columns:
            found[orc.id] = "encrypted: bloom has no keys; let the engine that wrote the file write it with filters"
        elif orc.kind == "BOOLEAN":
            found[orc.id] = "boolean: it has two values, and no reader uses a filter on it"
        elif not orc.id:
            found[orc.id] = f"{orc.name} at the file's root, which is no struct: readers look columns up by name"
        elif any(t.kind == "UNION" for t in footer.ancestors(orc)):
            found[orc.id] = "within a union: its values can't be hashed exactly"
        elif orc.kind not in hashes.HASHABLE or orc.fault is not None:
            found[orc.id] = f"{orc.name}: its values can't be hashed exactly"
        elif orc.kind in TIMESTAMPS and (reason := _why_zone_unknown(footer, orc)) is not None:
            found[orc.id] = f"{orc.name}: {reason}"
    return found


def _why_zone_unknown(footer: Footer, orc: OrcType) -> str | None:
    """Why the timestamps of some stripe can't be converted; None if all can be."""
    stripes = (footer.stripe_footer(s) for s in footer.stripes if s.rows)
    return next((why for s in stripes if (why := why_zone_unknown(s, orc)) is not None), None)
