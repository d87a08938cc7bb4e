"""dump: one filter's bits."""

from __future__ import annotations

import os
from dataclasses import replace

from bloomcli.commands.columns import only_column
from bloomcli.engine_filters.base import EngineFilter
from bloomcli.engine_filters.registry import filters_of
from bloomcli.errors import CorruptFile, UsageError
from bloomcli.formats.keys import Keys, keys_of
from bloomcli.formats.registry import open_file
from bloomcli.hints import Command, Hint
from bloomcli.model.file import UNVERIFIED, Column, FilterFacts
from bloomcli.model.inspect import FilterDump
from bloomcli.storage.os_errors import convert_os_errors_of_file
from bloomcli.storage.registry import open_source
from bloomcli.storage.traffic import counted


@convert_os_errors_of_file
@counted
def dump(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    row_group: int = 0,
    stripe: int = 0,
    keys: Keys | None = None,
    engine_filter: str | None = None,
) -> FilterDump:
    """Read one filter's header and bitset.

    Args:
        path: the file, local or a URI.
        column: leaf path; optional if only one column has filters.
        row_group: counted from 0; in ORC within its stripe.
        stripe: ORC: the stripe, counted from 0.
        keys: the keys of an encrypted file: a `Keys`, or a mapping of its fields.
        engine_filter: the kind of a filter that an engine keeps for the file, as `inspect` names it. Without it, such
            a filter is read only where the column has no other.

    Returns the facts, the header's bytes, and the bitset: in Parquet blocks of 32 bytes, each eight
    little-endian 32-bit words; in ORC little-endian longs.

    Raises:
        UsageError: the row group doesn't exist, or has no filter.
        CorruptFile: the filter can't be read.
    """
    with open_source(path) as source:
        file = open_file(source, keys=None if keys is None else keys_of(keys))
        chosen = only_column(file, column, purpose="dump")
        unverified = UNVERIFIED if file.unverified else None
        if engine_filter is not None or chosen.index not in file.filtered_columns():
            kept = filters_of(file, {chosen.index}).filters
            filters = [filter_ for filter_ in kept if engine_filter in {None, filter_.facts.kind}]
            if filters:
                return replace(_of_engine(source.path, filters[0], chosen), unverified=unverified)
            if engine_filter is not None:
                raise UsageError(
                    f"column {chosen.path} has no filter of the kind {engine_filter!r}",
                    path=source.path,
                    hint=Hint(Command("inspect"), " lists the filters that engines keep"),
                )
        return replace(file.dump(chosen, row_group, stripe), unverified=unverified)


def _of_engine(path: str, filter_: EngineFilter, column: Column) -> FilterDump:
    """The bits of a filter that an engine keeps: its rows of bits one after the other."""
    facts = filter_.facts
    if not filter_.rows:
        raise CorruptFile(
            facts.problem or "an empty index has no bits",
            path=facts.path or path,
            offset=facts.offset,
            field=facts.place,
        )
    bitset = b"".join(row.bitset for row in filter_.rows)
    common = FilterFacts(
        row_group=0,
        column=column.path,
        physical=column.physical,
        logical=column.logical,
        offset=facts.offset or 0,
        length=facts.length,
        header_bytes=len(filter_.header),
        bitset_bytes=len(bitset),
        algorithm=facts.kind,
        hash=facts.hash,
        values=facts.values,
        ndv_estimate=facts.ndv_estimate,
        fill=facts.fill,
        fpp=facts.fpp,
        hash_functions=facts.hash_functions,
        untrusted=facts.problem,
    )
    return FilterDump(path=path, facts=common, header=filter_.header, bitset=bitset, engine_filter=facts)
