"""Finds Paimon's filters of a data file, and their faults.

Readers compare only for equality with them (``=``, ``IN``), when they plan if the index is in the manifest, else when
they read the file. A listed index file that isn't there stops every query with a condition.
Sources: FileIndexEvaluator, FileIndexPredicate, BloomFilterFileIndex.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from bloomcli import limits
from bloomcli.engine_filters import base
from bloomcli.engine_filters.base import BitRow, EngineFilter, EngineFilters, finding, measured
from bloomcli.engine_filters.paimon import table
from bloomcli.engine_filters.paimon.index_file import BLOOM, Embedded, Entry, IndexFile, Stored
from bloomcli.engine_filters.paimon.table import DataFile, Schema
from bloomcli.engine_filters.paimon.values import FLOATS, HashedType, hashed_type, hashes_of, literal_hash
from bloomcli.errors import BloomError, CorruptFile, UnreadableError
from bloomcli.filters.kirsch_mitzenmacher import KirschMitzenmacherFilter, size_for
from bloomcli.formats.base import FilterFile
from bloomcli.hints import NAME, Command, Hint
from bloomcli.model.file import Column, EngineFilterFacts
from bloomcli.model.probe import BitTrail
from bloomcli.storage.base import Source
from bloomcli.storage.registry import open_source, store_of
from bloomcli.words import counted

KIND: Final = "paimon"
HEAD_BYTES: Final = 4
"""The number of hash functions, before the bits."""
MOST_FUNCTIONS: Final = 127
"""Readers take the number's bytes as signed ones."""
DEFAULT_ITEMS: Final = 1_000_000
DEFAULT_FPP: Final = 0.1
BYTE: Final = 8
REBUILD: Final = "CALL sys.rewrite_file_index('DATABASE.TABLE') writes indexes again, in Spark and Flink"


_AGAIN: Final = Hint(Command("add", ("--replace",), (NAME,)), " writes it again")


class ColumnFilter(EngineFilter):
    """The filter of a column."""

    loses = "a query with = or IN doesn't find their rows"
    bits: KirschMitzenmacherFilter | None = None

    def __init__(
        self,
        facts: EngineFilterFacts,
        typed: Column | None = None,
        kind: HashedType | None = None,
        hint: str = REBUILD,
    ) -> None:
        self.facts, self._typed, self.kind = facts, typed, kind
        self.rebuild = hint
        self.resize = hint if isinstance(hint, Hint) else None

    def check(self, forms: pa.Array) -> bytearray:
        """For each value, whether the filter may have it: none, if the index says that no row has a value."""
        flags = bytearray(len(forms))
        if self.bits is None:
            return flags
        hashes = self._hashes(forms)
        if hashes is None:
            return bytearray(b"\1") * len(forms)
        self.bits.check_hashes(hashes, len(forms), flags)
        return flags

    def check_values(self, values: pa.Array, column: Column) -> bytearray:
        """Which values the filter may have, a byte for each. They are as Arrow reads them."""
        del column
        flags = bytearray(len(values))
        if self.bits is not None and self.kind is not None:
            self.bits.check_hashes(hashes_of(values, self.kind), len(values), flags)
        return flags

    def _hashes(self, forms: pa.Array) -> bytes | None:
        """The hashes of values in the form in which they are found; None for a form without a hash."""
        typed, kind, types = self._typed, self.kind, pa.types
        if kind is None or typed is None:
            return None
        if types.is_integer(forms.type) and typed.physical in FLOATS:
            forms = forms.view(FLOATS[typed.physical])
        elif kind.per_second and types.is_int64(forms.type) and typed.unit in _UNITS:
            forms = forms.view(pa.timestamp(_UNITS[typed.unit]))
        elif types.is_large_binary(forms.type) and not kind.is_text:
            return None
        return hashes_of(forms, kind)

    def has(self, form: bytes) -> bool:
        """Whether the filter may have a value. `form`: its PLAIN bytes."""
        if self.kind is None or self._typed is None:
            return True
        value_hash = literal_hash(form, self._typed, self.kind)
        return value_hash is None or (self.bits is not None and self.bits.check(value_hash))

    def trail(self, form: bytes) -> BitTrail:
        """The bits that a value selects."""
        assert self.kind is not None and self._typed is not None  # noqa: S101  else it has a problem
        value_hash = literal_hash(form, self._typed, self.kind) or 0
        _, bits, present = (None, (), ()) if self.bits is None else self.bits.trail(value_hash)
        return BitTrail(hashed=form, hash=value_hash, block=None, bits=bits, present=present)


_UNITS: Final = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}


def filters_of(file: FilterFile, columns: Container[str] | None) -> EngineFilters:
    """The filters of these columns (all if None) of a data file in a directory ``bucket-...``, by its table's newest
    snapshot."""
    try:
        return _listed(file, own_path(file), columns)
    except BloomError as error:
        facts = EngineFilterFacts(kind=KIND, column="", place="its metadata or index file")
        rule = base.DAMAGED if isinstance(error, CorruptFile) else base.NOT_CHECKED
        return _faulty(facts, rule, error.message, error.hint)


def _listed(file: FilterFile, path: str, columns: Container[str] | None) -> EngineFilters:
    data_file = table.data_file(path)
    if data_file is None or (data_file.embedded is None and not data_file.index_names):
        return _unlisted(file, path, data_file, columns)
    if data_file.embedded is not None:
        return _filters(file, data_file, columns, Embedded(data_file.manifest, data_file.embedded), "manifest")
    place = f"index file {', '.join(data_file.index_names)}"
    facts = EngineFilterFacts(kind=KIND, column="", place=place)
    if len(data_file.index_names) > 1:
        return _faulty(facts, base.DAMAGED, "the manifest lists several index files, and readers fail")
    with opened(sidecar(path, data_file.index_names[0])) as source:
        if source is None:
            text = "the manifest lists it, and it isn't there: queries with a condition on any column fail"
            return _faulty(facts, base.MISSING, text, _AGAIN)
        return _filters(file, data_file, columns, source, place, _AGAIN)


@contextmanager
def opened(path: str) -> Iterator[Source | None]:
    """Open an index file; None if there is none. Raises UnreadableError."""
    with ExitStack() as stack:
        source = None
        try:
            source = stack.enter_context(open_source(path))
        except UnreadableError:
            if store_of(path).fingerprint(path) is not None:
                raise
        yield source


def own_path(file: FilterFile) -> str:
    """The path of a data file: the one that a link leads to."""
    path = file.source.path
    return store_of(path).link_target(path) or path


def sidecar(path: str, name: str) -> str:
    """The path of an index file beside a data file."""
    store = store_of(path)
    return store.join(store.directory(path), name)


def _faulty(facts: EngineFilterFacts, rule: str, problem: str, hint: str | None = REBUILD) -> EngineFilters:
    facts = replace(facts, problem=problem)
    return EngineFilters([ColumnFilter(facts)], [finding(rule, facts, f"{facts.place}: {problem}", hint)])


def _unlisted(
    file: FilterFile, path: str, data_file: DataFile | None, columns: Container[str] | None
) -> EngineFilters:
    """The filters beside a file that no manifest lists; no reader uses them."""
    name = path.replace("\\", "/").rpartition("/")[2] + ".index"
    with opened(sidecar(path, name)) as source:
        if source is None:
            return EngineFilters()
        filters = _filters(file, data_file, columns, source, f"index file {name}")
    for filter_ in filters.filters:
        filter_.facts = replace(filter_.facts, problem="no manifest of the newest snapshot lists it")
        filter_.faults = ()
    return EngineFilters(filters.filters)


def _filters(
    file: FilterFile,
    data_file: DataFile | None,
    columns: Container[str] | None,
    stored: Stored,
    place: str,
    hint: str = REBUILD,
) -> EngineFilters:
    facts = EngineFilterFacts(kind=KIND, column="", place=place, path=stored.path, values=file.rows)
    try:
        index = IndexFile(stored)
    except CorruptFile as error:
        return _faulty(facts, base.DAMAGED, f"{error.reason} (byte {error.offset}): readers fail", hint)
    in_file = {column.path: column for column in file.columns}
    shared = set(index.overlapping())
    filters = []
    for entry in index.entries:
        if columns is not None and entry.column not in columns:
            continue
        column = in_file.get(entry.column)
        typed = None if column is None else file.literal_column(column)
        filters.append(_filter(index, entry, facts, data_file, typed, hint, overlaps=entry in shared))
    return EngineFilters(filters)


def _filter(
    index: IndexFile,
    entry: Entry,
    facts: EngineFilterFacts,
    data_file: DataFile | None,
    typed: Column | None,
    hint: str,
    *,
    overlaps: bool,
) -> ColumnFilter:
    offset = None if entry.empty or isinstance(index.stored, Embedded) else entry.start
    facts = replace(facts, column=entry.column, offset=offset, length=max(entry.length, 0))
    if entry.kind != BLOOM:
        facts = replace(facts, kind=f"{KIND}-{entry.kind}", problem="another index than a Bloom filter")
        return ColumnFilter(facts)
    schema = Schema() if data_file is None else data_file.schema
    kind = hashed_type(schema.types.get(entry.column))
    filter_ = ColumnFilter(replace(facts, hash=None if kind is None else kind.hash), typed, kind, hint)
    if not entry.empty:
        try:
            if entry.length - HEAD_BYTES > limits.FILTER_MAX_BYTES:
                raise CorruptFile(f"{counted(entry.length, 'byte')}: more than a filter can have", offset=entry.start)
            body = index.body(entry)
            k = int.from_bytes(body[:HEAD_BYTES], "big", signed=True)
            if not 1 <= k <= MOST_FUNCTIONS or len(body) <= HEAD_BYTES:
                raise CorruptFile(
                    f"{k} hash functions, {counted(len(body) - HEAD_BYTES, 'byte')} of bits", offset=entry.start
                )
        except CorruptFile as error:
            return _damaged(filter_, f"{error.reason} (byte {error.offset})")
        filter_.header, bits = body[:HEAD_BYTES], body[HEAD_BYTES:]
        filter_.bits = KirschMitzenmacherFilter(bits, k)
        filter_.rows = [BitRow(bits, len(bits) * BYTE, k)]
        items, fpp = asked(schema.options, entry.column, len(bits) * BYTE, k)
        setting = f"file-index.bloom-filter.{entry.column}.items"
        filter_.facts = replace(
            measured(filter_.facts, filter_.rows), sized_for=items, asked_fpp=fpp, setting=setting
        )
        if overlaps:
            return _damaged(filter_, "its bytes are those of another index, too")
    if kind is None or typed is None or not kind.stored_as(typed):
        filter_.facts = replace(filter_.facts, problem=base.NOT_LOOKED_UP)
    return filter_


def _damaged(filter_: ColumnFilter, problem: str) -> ColumnFilter:
    filter_.faults = [finding(base.DAMAGED, filter_.facts, f"{problem}: readers fail or lose rows", filter_.rebuild)]
    filter_.facts = replace(filter_.facts, problem=problem)
    return filter_


def asked(options: Mapping[str, Any], column: str, bits: int, k: int) -> tuple[int, float]:
    """The number of values and the rate for which a filter's size was chosen: the table's options, if they result in
    this size, else those that k shows."""
    prefix = f"file-index.bloom-filter.{column}."
    try:
        items, fpp = (
            int(options.get(prefix + "items", DEFAULT_ITEMS)),
            float(options.get(prefix + "fpp", DEFAULT_FPP)),
        )
        if 0 < fpp < 1 and (bits, k) == size_for(items, fpp, BYTE):
            return items, fpp
    except (TypeError, ValueError, OverflowError):
        pass
    return max(round(bits * math.log(2) / k), 1), 0.5**k
