"""Looks a row group's minimum and maximum up in its filter. If one is missing, the filter is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bloomcli.formats.deep_check import has_two_forms
from bloomcli.formats.dictionary import HashLookup
from bloomcli.formats.orc import hashes, statistics
from bloomcli.formats.orc.schema import OrcType
from bloomcli.model.file import Column

_SHORTENED: Final = ("STRING", "CHAR", "VARCHAR")
_NOT_VALUES: Final = ("TIMESTAMP", "TIMESTAMP_INSTANT", "LIST", "MAP", "UNION")
"""Bounds of timestamps are rounded to milliseconds; filters of compound columns hold lengths."""


def missing_bounds(stats: Any, orc: OrcType, typed: Column, bits: HashLookup) -> Iterator[tuple[str, bytes]]:
    """Yield each bound that is a value but isn't in the filter: ("minimum" or "maximum", its PLAIN bytes in `typed`).

    Source: the Apache ORC specification, StringStatistics: long bounds are shortened, in lower_bound and upper_bound,
    and aren't values of the column.
    """
    if stats is None or orc.kind in _NOT_VALUES or orc.kind not in hashes.HASHABLE or orc.fault is not None:
        return
    low, high = statistics.bounds(stats, orc)
    if orc.kind in _SHORTENED:
        found = stats.string_statistics
        low = low if found.HasField("minimum") else None
        high = high if found.HasField("maximum") else None
    for which, bound in (("minimum", low), ("maximum", high)):
        if bound is None or has_two_forms(bound, orc.kind):
            continue
        if not bits.check(hashes.encoded_hash(bound, orc, typed)):
            yield which, bound
