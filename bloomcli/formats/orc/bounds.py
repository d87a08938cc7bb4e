"""Looks a row group's minimum and maximum up in its filter: a missing one proves the filter wrong at no cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomcli.formats.deep_check import has_two_forms
from bloomcli.formats.dictionary import HashLookup
from bloomcli.formats.orc import statistics, values
from bloomcli.formats.orc.schema import OrcType
from bloomcli.model.file import Column

_SHORTENED: Final = ("STRING", "CHAR", "VARCHAR")
_NOT_VALUES: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT", "LIST", "MAP", "UNION")
"""Timestamps' bounds are in milliseconds, rounded one way or another; of compound columns lengths are hashed."""


def missing_bounds(stats: Any, orc: OrcType, typed: Column, bits: HashLookup) -> Iterator[tuple[str, bytes]]:
    """("minimum" or "maximum", its PLAIN bytes in `typed`) where that is a value and not in the row group's filter.

    Source: the Apache ORC specification, StringStatistics: long bounds stand in lower_bound and upper_bound,
    shortened, and are not values of the column.
    """
    if stats is None or orc.kind in _NOT_VALUES or orc.kind not in values.HASHABLE or orc.fault is not None:
        return
    low, high = statistics.bounds(stats, orc)
    if orc.kind in _SHORTENED:
        found = stats.string_statistics
        low = low if found.HasField("minimum") else None
        high = high if found.HasField("maximum") else None
    for which, bound in (("minimum", low), ("maximum", high)):
        if bound is None or has_two_forms(bound, orc.kind):
            continue
        if not bits.check(values.encoded_hash(bound, orc, typed)):
            yield which, bound
