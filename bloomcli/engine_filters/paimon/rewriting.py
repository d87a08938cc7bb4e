"""Writes the filters of a listed index file again, from the column's values. The manifests record neither the file's
size nor a checksum, so that a new file of the same name needs no commit. Every other index keeps its bytes."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final

import numpy as np

from bloomcli import limits
from bloomcli.engine_filters.base import Rewrite
from bloomcli.engine_filters.paimon import table
from bloomcli.engine_filters.paimon.filters import (
    BYTE,
    HEAD_BYTES,
    MOST_FUNCTIONS,
    REBUILD,
    opened,
    own_path,
    sidecar,
)
from bloomcli.engine_filters.paimon.index_file import BLOOM, Entry, IndexFile, new_index
from bloomcli.engine_filters.paimon.values import HashedType, hashed_type, hashes_of
from bloomcli.engine_filters.proof import column_values
from bloomcli.errors import CorruptFile, UnsupportedError, UsageError, WriteError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, functions_for, size_for
from bloomcli.formats.base import FilterFile
from bloomcli.formats.size_rule import SizeRule
from bloomcli.hints import NAME, Command, Hint
from bloomcli.model.change import FilterChange
from bloomcli.model.file import Column
from bloomcli.storage.base import Source
from bloomcli.storage.registry import open_source

_GROWTH: Final = 1.02
"""By this factor the expected values grow until the measured rate meets the rule."""


def rewrite_of(
    file: FilterFile, columns: Sequence[Column], rule: SizeRule, *, folds: bool, named: Container[str]
) -> Rewrite | None:
    """The index file of a data file with new filters of these columns; None if the manifest lists none.

    Of an index file that isn't there, all columns get one. Arguments and errors are those of `registry.rewrite_of`.
    """
    path = own_path(file)
    data_file = table.data_file(path)
    if data_file is None or data_file.embedded is not None or len(data_file.index_names) != 1:
        return None
    (name,) = data_file.index_names
    index_path = sidecar(path, name)
    with opened(index_path) as source:
        index = None if source is None else IndexFile(source)
        if index is None and folds:
            raise CorruptFile(
                f"the manifest lists the index file {name}, and it isn't there",
                path=path,
                hint=Hint(Command("add", ("--replace",), (NAME,)), " makes it"),
            )
        entries = {} if index is None else {entry.column: entry for entry in index.entries if entry.kind == BLOOM}
        new: dict[str, bytes] = {}
        changes, decoded = [], 0
        for column in columns:
            entry = entries.get(column.path)
            kind = hashed_type(data_file.schema.types.get(column.path))
            stored = kind is not None and kind.stored_as(file.literal_column(column))
            if column.path not in named and (not stored or (entry is None and index is not None)):
                continue
            if entry is None and index is not None:
                raise UsageError(f"the index file has no filter of column {column.path}", path=path, hint=REBUILD)
            if kind is None or not stored:
                raise UnsupportedError(f"column {column.path} can't have a filter of Paimon", path=path)
            body, change = _filter(file, column, kind, rule.of(column.path), entry, folds=folds)
            decoded += sum(unit.chunk_bytes for unit in file.unit_facts(column, ()))
            changes.append(change)
            if change.action != "keep":
                new[column.path] = body
        if not changes:
            return None
        try:
            data = new_index(new) if index is None else index.with_filters(new)
        except CorruptFile as error:
            error.hint = "an index that would be kept is damaged: name its column in --columns, too, or " + REBUILD
            raise
        return Rewrite(
            path=index_path,
            fingerprint=None if source is None else source.fingerprint,
            decoded=decoded,
            size=0 if source is None else source.size,
            data=data,
            changes=tuple(changes),
            verify=lambda written: _verify(written, index, new),
        )


def _filter(
    file: FilterFile, column: Column, kind: HashedType, rule: SizeRule, entry: Entry | None, *, folds: bool
) -> tuple[bytes, FilterChange]:
    """The body of a new filter, and the change."""
    count, distinct = 0, np.array([], np.uint64)
    for values in column_values(file, column):
        count += len(values)
        distinct = np.union1d(distinct, np.frombuffer(hashes_of(values, kind), np.uint64))
    old = None if entry is None or entry.empty else max(entry.length - HEAD_BYTES, 0)
    bits = _built(distinct.tobytes(), len(distinct), rule)
    keeps = folds and old is not None and len(bits.bitset) >= old
    change = FilterChange(
        row_group=None,
        column=column.path,
        action="keep" if keeps else "fold" if folds else "add" if entry is None else "replace",
        bitset_bytes=old if keeps else len(bits.bitset),
        old_bitset_bytes=old,
        values=count,
        fpp=None if keeps else bits.fpp,
        target_fpp=rule.fpp,
        misses_target=not keeps and rule.ndv is None and bits.fpp > rule.fpp,
        source="pages",
    )
    return bits.k.to_bytes(HEAD_BYTES, "big") + bits.bitset, change


def _built(hashes: bytes, count: int, rule: SizeRule) -> KirschMitzenmacherFilter:
    """A filter of hashes that meets a rule, as far as its limit of bytes allows."""
    most = min(limits.FILTER_MAX_BYTES, rule.max_bytes or limits.FILTER_MAX_BYTES) * BYTE
    values = max(count, 1) if rule.ndv is None else rule.ndv
    while True:
        bits, functions = size_for(values, rule.fpp, BYTE)
        if capped := bits >= most:
            bits, functions = most, functions_for(values, most)
        filter_ = KirschMitzenmacherFilter.empty(bits, min(functions, MOST_FUNCTIONS))
        filter_.insert_hashes(hashes, count)
        if capped or rule.ndv is not None or filter_.fpp <= rule.fpp:
            return filter_
        values = int(values * _GROWTH) + 1


def _verify(written: Source, before: IndexFile | None, new: Mapping[str, bytes]) -> None:
    """Check that a written index file has the new filters and, of every other index, the bytes from before."""
    expected: dict[tuple[str, str], bytes | None] = {}
    if before is not None:
        with open_source(before.stored.path) as source:
            for entry in before.entries:
                if entry.kind != BLOOM or entry.column not in new:
                    expected[entry.column, entry.kind] = (
                        None if entry.empty else source.read_at(entry.start, entry.length)
                    )
    expected |= {(column, BLOOM): body for column, body in new.items()}
    index = IndexFile(written)
    if {(e.column, e.kind): None if e.empty else index.body(e) for e in index.entries} != expected:
        raise WriteError("the written index file isn't what was planned", path=written.path)
