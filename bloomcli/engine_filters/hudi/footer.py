"""Finds Hudi's filter of record keys in the footer of a base file, and its faults.

    org.apache.hudi.bloomfilter      the filter as base64; com.uber.hoodie.bloomfilter in old releases
    hoodie_bloom_filter_type_code    DYNAMIC_V0; SIMPLE if it is missing
    hoodie_min_record_key            the smallest key, hoodie_max_record_key the largest one, in the order of Java's
                                     strings

The filter has the UTF-8 of each row's `_hoodie_record_key`: the key that the table's key generator made, of several
fields `id:k1,n:42`. Hudi's index BLOOM looks keys up in it before it writes: first in the bounds, then in the filter.
Sources: HoodieBloomFilterWriteSupport, FileFormatUtils.readBloomFilterFromMetadata, HoodieKeyLookupHandle.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bloomcli import kernels
from bloomcli.engine_filters import base
from bloomcli.engine_filters.base import EngineFilter, EngineFilters, finding, measured
from bloomcli.engine_filters.hudi.layout import COLUMN, Decoded, LayoutError, dynamic, simple
from bloomcli.errors import CorruptFile, UnreadableError, UnsupportedError
from bloomcli.formats.base import FilterFile, FooterEntry
from bloomcli.model.file import EngineFilterFacts
from bloomcli.model.probe import BitTrail
from bloomcli.model.validate import Finding
from bloomcli.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

KEYS: Final = ("org.apache.hudi.bloomfilter", "com.uber.hoodie.bloomfilter")
TYPE: Final = "hoodie_bloom_filter_type_code"
BOUNDS: Final = ("hoodie_min_record_key", "hoodie_max_record_key")
_DECODERS: Final[Mapping[str, Callable[[bytes], Decoded]]] = {"SIMPLE": simple, "DYNAMIC_V0": dynamic}
_SHOWN: Final = 80
"""Characters of a key in a message."""
_BASE_FILE: Final = re.compile(r"[^/_]+_\d+-\d+-\d+_\d+\.(?:parquet|orc)")
"""Names of base files: file id, write token, instant."""


class RecordKeyFilter(EngineFilter):
    """The filter of a base file's record keys."""

    loses = "under the index BLOOM, an upsert of a key that it misses inserts a second row without an error"
    rebuild = "Hudi writes new filters with the files of `CALL run_clustering(table => 'NAME')`"

    def __init__(self, facts: EngineFilterFacts, decoded: Decoded | None, text: bytes) -> None:
        self.facts, self._text = facts, text
        if decoded is not None:
            self.rows, self.header, self._jenkins = decoded.rows, decoded.header, decoded.hash == "jenkins"

    def check(self, forms: pa.Array) -> bytearray:
        """For each record key, whether the filter may have it. Hudi has no empty keys: they aren't ruled out."""
        import pyarrow as pa
        import pyarrow.compute as pc

        forms = forms.cast(pa.large_binary())
        flags = bytearray(len(forms))
        if not len(forms):
            return flags
        _, offsets, data = forms.buffers()
        ends = memoryview(offsets).cast("B").cast("q")[forms.offset : forms.offset + len(forms) + 1]
        text = memoryview(b"" if data is None else data).cast("B")
        for row in self.rows:
            kernels.chained_check(row.bitset, row.bits, row.k, self._jenkins, text, ends, flags)
        for at in pc.indices_nonzero(pc.equal(pc.binary_length(forms), 0)).to_pylist():
            flags[at] = 1
        return flags

    def trail(self, form: bytes) -> BitTrail:
        """The bits of a record key."""
        trail = None
        for row in self.rows:
            first, bits = kernels.chained_bits(form, row.bits, row.k, self._jenkins)
            present = tuple(bool(row.bitset[bit >> 3] >> (bit & 7) & 1) for bit in bits)
            trail = BitTrail(hashed=form, hash=first, block=None, bits=tuple(bits), present=present)
            if all(present):
                break
        assert trail is not None  # noqa: S101  a filter without a problem has rows
        return trail

    def has(self, form: bytes) -> bool:
        """Whether the filter may have a record key."""
        return not form or super().has(form)

    def elsewhere(self, file: FilterFile) -> Iterator[Finding]:
        """Compare the footer with the copy in the table's metadata."""
        from bloomcli.engine_filters.hudi.copies import copy_of, digest

        try:
            copy = copy_of(file.source.path)
        except (UnreadableError, UnsupportedError) as error:
            damaged = isinstance(error, CorruptFile)
            rule, hint = (base.COPY, self.rebuild) if damaged else (base.NOT_CHECKED, error.hint)
            yield finding(rule, self.facts, f"the table's copies can't be read: {error.reason}", hint)
            return
        if copy is None:
            return
        kind = _kind(copy.type)
        if copy.text != digest(self._text) or kind != self.facts.kind:
            other = "another filter" if kind == self.facts.kind else f"it as {kind}"
            text = f"the table's metadata have {other} for the file, in {copy.path}"
            yield finding(base.COPY, self.facts, f"{text}: queries and upserts by it lose rows", self.rebuild)

    def outside(self, forms: pa.Array) -> Sequence[str]:
        """The record keys that the footer's smallest and largest key leave out."""
        import pyarrow as pa
        import pyarrow.compute as pc

        low, high = self.facts.low, self.facts.high
        if low is None or high is None:
            return ()
        forms = forms.cast(pa.large_binary())
        suspects = forms.filter(
            pc.or_(
                pc.less(forms, pa.scalar(low.encode(), forms.type)),
                pc.greater(forms, pa.scalar(high.encode(), forms.type)),
            )
        )
        keys = (value.decode("utf-8", "replace") for value in suspects.to_pylist())
        return [key for key in keys if not _java_order(low) <= _java_order(key) <= _java_order(high)]


def _java_order(text: str) -> bytes:
    """The order of Java's strings, by units of UTF-16; that of UTF-8 differs for characters beyond U+FFFF."""
    return text.encode("utf-16-be", "surrogatepass")


def filters_of(file: FilterFile) -> EngineFilters:
    """The filter of a base file's record keys."""
    entries = file.footer_entries()
    name = next((key for key in KEYS if key in entries), None)
    facts = EngineFilterFacts(kind="hudi-simple", column=COLUMN, place=f"footer key {name or KEYS[0]}")
    if name is None:
        missing = _missing(file, entries)
        return EngineFilters() if missing is None else EngineFilters((), [finding(base.MISSING, facts, *missing)])
    return EngineFilters([_filter(file, entries, name)])


def _missing(file: FilterFile, entries: Mapping[str, FooterEntry]) -> tuple[str, str] | None:
    """The message and the hint on a base file without a filter; None for other files."""
    keys = [key for key in (*BOUNDS, TYPE) if key in entries]
    if keys:
        shown = f"the footer has {keys[0]}"
    elif any(column.path == COLUMN for column in file.columns) and _BASE_FILE.fullmatch(
        file.source.path.rpartition("/")[2]
    ):
        shown = "the file has the name and the record keys of a base file"
    else:
        return None
    return f"{shown}, and no filter: under the index BLOOM, upserts fail with an exception", RecordKeyFilter.rebuild


def _kind(code: str) -> str:
    """The kind of a filter, as reports name it, by Hudi's name of its type."""
    return "hudi-" + code.lower().replace("_", "-")


def _filter(file: FilterFile, entries: Mapping[str, FooterEntry], name: str) -> EngineFilter:
    entry = entries[name]
    code = entries[TYPE].value.decode("utf-8", "backslashreplace") if TYPE in entries else "SIMPLE"
    low, high = (entries[key].value.decode("utf-8", "backslashreplace") if key in entries else None for key in BOUNDS)
    facts = EngineFilterFacts(
        kind=_kind(code),
        column=COLUMN,
        place=f"footer key {name}",
        offset=entry.offset,
        length=len(entry.value),
        values=file.rows,
        setting="hoodie.index.bloom.num_entries",
        low=low,
        high=high,
    )
    decoded, rule, problem = _decoded(entry.value, code)
    if decoded is not None:
        facts = measured(facts, decoded.rows)
        facts = replace(facts, hash=decoded.hash, sized_for=decoded.sized_for, asked_fpp=decoded.asked_fpp)
    if problem is None:
        problem = _no_text(file)
    filter_ = RecordKeyFilter(facts, decoded, entry.value)
    faults: list[Finding] = []
    if problem is None and decoded is not None:
        ends = [entries[key].value for key in BOUNDS if key in entries]
        lost = [end.decode("utf-8", "backslashreplace") for end in ends if not filter_.has(end)]
        if lost:
            rule, problem = base.MISSES, f"it doesn't have the file's own key {lost[0][:_SHOWN]!r}"
    if problem is not None:
        filter_.facts = replace(facts, problem=problem)
        faults.append(finding(rule, facts, f"{problem}: {_CONSEQUENCES[rule]}", filter_.rebuild))
    filter_.faults = faults
    return filter_


_CONSEQUENCES: Final = {
    base.MISSES: RecordKeyFilter.loses,
    base.DAMAGED: "under the index BLOOM, upserts fail or insert keys a second time",
    base.LABEL: "Hudi reads other bytes as its bits, and inserts keys a second time",
}


def _no_text(file: FilterFile) -> str | None:
    """Why the column has no record keys; None if it has text, or if the file has no such column."""
    kinds = {file.literal_column(c).physical for c in file.columns if c.path == COLUMN} - {"BYTE_ARRAY"}
    return f"the column {COLUMN} is {kinds.pop()}, not text" if kinds else None


def _decoded(text: bytes, code: str) -> tuple[Decoded | None, str, str | None]:
    """A filter, the rule that it breaks, and its problem; None if it has none."""
    try:
        data = b64decode(text, validate=True)
    except binascii.Error as error:
        return None, base.DAMAGED, f"its text isn't base64 ({str(error).lower()})"
    decode = _DECODERS.get(code.upper())
    others = [name for name, other in _DECODERS.items() if other is not decode and _is_whole(other, data)]
    if decode is None:
        return None, base.LABEL, f"its type, {code!r}, is unknown"
    try:
        decoded = decode(data)
    except LayoutError as error:
        reason, at = error.args
        if others:
            return None, base.LABEL, f"its type says {code}, and its bytes are those of {others[0]}"
        return None, base.DAMAGED, f"{reason} (byte {at} of its {counted(len(data), 'byte')})"
    if others and decoded.end != len(data):
        return None, base.LABEL, f"its type says {code}, and its bytes are those of {others[0]}"
    return decoded, base.DAMAGED, None


def _is_whole(decode: Callable[[bytes], Decoded], data: bytes) -> bool:
    """Whether bytes are a filter of a type, without a byte after it."""
    try:
        return decode(data).end == len(data)
    except LayoutError:
        return False
