"""Extracts the values of columns within unions, with their rows, from stripes that pyarrow decodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli.formats.orc.arrow_forms import RowForms, forms_of_arrow
from bloomcli.formats.orc.schema import OrcType


def values_of(top: pa.Array, path: Sequence[OrcType]) -> RowForms:
    """The values of a column as forms.

    Args:
        top: the top-level column that contains it, with all rows of a stripe.
        path: the types from that column's down to its own.
    """
    array, rows = top, pa.array(range(len(top)), pa.int64())
    for orc, child in pairwise(path):
        at = orc.children.index(child.id)
        if orc.kind == "UNION":
            chosen = pc.equal(array.type_codes, pa.scalar(at, pa.int8()))
            array, rows = array.field(at).filter(chosen), rows.filter(chosen)
            continue
        there = array.is_valid()
        array, rows = array.filter(there), rows.filter(there)
        if orc.kind == "STRUCT":
            array = array.field(child.steps[-1])  # pyarrow leaves other fields out
        else:
            lists = array if orc.kind == "LIST" else pa.ListArray.from_arrays(array.offsets, _entries(array, at))
            rows = rows.take(pc.list_parent_indices(lists))
            array = lists.flatten()
    there = array.is_valid()
    return RowForms(forms_of_arrow(array.filter(there), path[-1]), rows.filter(there))


def _entries(maps: pa.MapArray, at: int) -> pa.Array:
    return maps.items if at else maps.keys
