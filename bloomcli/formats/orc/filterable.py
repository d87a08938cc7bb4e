"""Which ORC columns can have filters that readers find values by."""

from __future__ import annotations

from bloomcli.formats.orc import values
from bloomcli.formats.orc.column_reader import readable
from bloomcli.formats.orc.footer import Footer


def reasons_against(footer: Footer) -> dict[int, str]:
    """What each type is that can't have a filter, by id."""
    found: dict[int, str] = {}
    for orc in footer.types:
        if orc.kind == "BOOLEAN":
            found[orc.id] = "boolean: it has two values, and no reader uses a filter on it"
        elif any(t.kind == "UNION" for t in footer.above(orc)):
            found[orc.id] = "within a union: its values can't be hashed exactly"
        elif orc.kind not in values.HASHABLE or orc.fault is not None:
            found[orc.id] = f"{orc.name}: its values can't be hashed exactly"
        elif footer.too_wide is not None and not readable(footer, orc):
            found[orc.id] = f"{orc.name}: it can't be decoded beside the file's {footer.too_wide.name}"
    return found
