"""The values that `find` looks for, converted for a column.

A value is found by the bytes that the column stores for it, its forms. A value may have several forms (zeros of both
signs), and several texts may have the same value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.concurrency.threads import Stop
from bloomcli.filters.split_block import SplitBlockFilter
from bloomcli.formats.answer import positions_in
from bloomcli.formats.arrays import as_int64s, binaries, counting, int64s, numbers_of
from bloomcli.model.file import Column
from bloomcli.values.literals import Literal, kind_of, not_boolean, parse

FEW: Final = 256
"""Up to this number, values are looked up one by one, with the dictionary's answer; more are looked up in batches."""

_PARSED_TOGETHER: Final = 1 << 14
"""Texts that are parsed before a check for cancellation; they take a tenth of a second."""
_TEXTS: Final = ("STRING", "ENUM", "JSON")
_NUMBERS: Final = {
    "BOOLEAN": pa.uint8(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.int32(),
    "DOUBLE": pa.int64(),
}
"""Integer types of the same width as a physical type's PLAIN values, or as Arrow's bytes for booleans."""
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, eq=False)
class WantedValues:
    """The values to find, converted for a column: once for all files in which the column has the same type."""

    texts: pa.LargeBinaryArray
    """The values as given, in UTF-8."""
    forms: pa.Array
    """The values as the column may store them: integers of its width, or bytes."""
    owners: pa.Int64Array
    """For each form, the position of its text."""
    hashes: bytes
    """The hash of each form in filters, uint64s in native order; empty for booleans."""
    keys: pa.Array | list[Any] | None
    """For each form, a key that compares with results of `decode_bound`, ascending; None if the type has no order."""
    nan: int | None = None
    """The position of a text that is NaN."""
    literals: Sequence[Literal] | None = None
    """The literal of each text, if they are few."""
    sharing: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """For a form that several different texts have, such as 42 and 042: the positions of those that don't own it."""

    def owner_of(self, forms: pa.Int64Array) -> pa.Int64Array:
        """For each position of a form, the position of its text. The position behind the last form is that of NaN."""
        if self.nan is None:
            return self.owners.take(forms)
        return pa.concat_arrays([self.owners, int64s([self.nan])]).take(forms)

    def with_form(self, forms: pa.Int64Array) -> pa.Int64Array:
        """The positions of all texts that have one of the forms at these positions, as for `owner_of`."""
        owners = pc.unique(self.owner_of(forms))
        if not self.sharing:
            return owners
        others = (at for form in forms.to_pylist() for at in self.sharing.get(form, ()))
        return pa.concat_arrays([owners, int64s(others)])

    @cached_property
    def every(self) -> pa.Int64Array:
        """The positions of all forms."""
        return counting(0, len(self.forms))

    @cached_property
    def by_hash(self) -> tuple[bytes, pa.Int64Array]:
        """The hashes, ascending, and the position of the form of each. Lookups in this order read a filter from start
        to end: a hash's block is its high half times the number of blocks.
        """
        hashes = pa.Array.from_buffers(pa.uint64(), len(self.forms), [None, pa.py_buffer(self.hashes)])
        order = pc.array_sort_indices(hashes)
        ascending = hashes.take(order).buffers()[1].to_pybytes()[: len(self.hashes)]
        return ascending, order.cast(pa.int64())

    def within(self, positions: pa.Int64Array, low: Any, high: Any) -> pa.Int64Array:
        """The positions, of ascending ones, of forms that bounds don't exclude.

        Args:
            positions: the positions.
            low, high: results of `decode_bound`; None if unknown.
        """
        unordered = low is not None and high is not None and low > high  # such bounds exclude nothing
        if self._key_of is None or (low is None and high is None) or unordered:
            return positions
        numbers = numbers_of(positions)
        start = 0 if low is None else bisect_left(numbers, low, key=self._key_of)
        end = len(numbers) if high is None else bisect_right(numbers, high, start, key=self._key_of)
        return positions[start:end]

    @cached_property
    def _key_of(self) -> Callable[[int], Any] | None:
        """The key at a position."""
        if self.keys is None or isinstance(self.keys, list):
            return None if self.keys is None else self.keys.__getitem__
        keys = self.keys
        if pa.types.is_integer(keys.type):
            return memoryview(keys.buffers()[1]).cast("q" if keys.type.bit_width == 64 else "i").__getitem__
        return lambda at: keys[at].as_py()

    def likely(self, values: pa.Array) -> pa.Int64Array:
        """The positions of values that may be one of the forms, by a filter of all forms.

        A hash and a lookup in this filter take a fifth of the time of a lookup in a table of many forms.

        Args:
            values: a column's values as `comparable` returns them. Their hashes must be XXH64.
        """
        if not self.hashes:  # booleans
            return counting(0, len(values))
        if values.null_count == len(values):
            return counting(0, 0)
        return as_int64s(positions_in(self._filter, xxh64_of(values), len(values)))

    def likely_forms(self, parts: Sequence[pa.Array]) -> pa.Int64Array:
        """The positions of forms that may be one of these values, by a filter of the values: few, if the values were
        left by `likely`. `parts`: the values, as for `likely`."""
        arrays = [part.drop_null() for part in parts if part.null_count < len(part)]
        if not self.hashes:
            return self.every
        filter_ = _filter_of(b"".join(map(xxh64_of, arrays)))
        return as_int64s(positions_in(filter_, self.hashes, len(self.forms)))

    @cached_property
    def _filter(self) -> SplitBlockFilter:
        return _filter_of(self.hashes)


def _filter_of(hashes: bytes) -> SplitBlockFilter:
    """A filter of hashes with 16 bits for each, which has a rate of one in a thousand."""
    count = len(hashes) // 8
    filter_ = SplitBlockFilter.empty(32 * (count // 16 + 1))
    filter_.insert_hashes(hashes, count)
    return filter_


def without_blanks(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Remove the blanks at the ends of texts, which have no meaning in a CHAR."""
    return pc.ascii_rtrim(texts.view(pa.large_string()), " ").view(pa.large_binary())


def xxh64_of(forms: pa.Array) -> bytes:
    """The XXH64 of each form, uint64s in native order."""
    hashes = bytearray(8 * len(forms))
    if not len(forms):
        return b""
    _, *buffers = forms.buffers()
    views = [memoryview(b"" if buffer is None else buffer).cast("B") for buffer in buffers]
    if pa.types.is_large_binary(forms.type):
        kernels.hash_binary(views[0][8 * forms.offset :], views[1], len(forms), hashes)
    else:
        width = forms.type.bit_width // 8
        kernels.hash_plain_fixed(views[0][width * forms.offset :], width, len(forms), hashes, True)
    return bytes(hashes)


def wanted(
    texts: pa.LargeBinaryArray,
    column: Column,
    forms_of: Callable[[Literal], Sequence[bytes]],
    path: str,
    hashes_of: Callable[[pa.Array], bytes] = xxh64_of,
    stop: Stop | None = None,
) -> WantedValues:
    """Convert values for a column. Values that the column can't store have no forms.

    Args:
        texts: one text or more.
        column: the column, as `FilterFile.literal_column` returns it.
        forms_of: returns all forms that a file may store for a value.
        path: the file, for errors.
        hashes_of: hashes forms as the format's filters do, with a result as `WantedValues.hashes`.
        stop: cancels it.

    Raises:
        LiteralError: a text isn't a value of the column's type.
        Stopped: soon after `stop` is set.
    """
    many = len(texts) > FEW
    converted = _in_batches(texts, column, hashes_of) if many else None
    if converted is not None:
        return converted
    literals: list[Literal] = []
    for at in range(0, len(texts), _PARSED_TOGETHER):
        if stop is not None:
            stop.check()
        some = (text.decode("utf-8", "surrogateescape") for text in texts[at : at + _PARSED_TOGETHER].to_pylist())
        literals += [parse(text, column, path=path) for text in some]
    boolean = column.physical == "BOOLEAN"
    entries: list[tuple[Any, bytes, int]] = []
    nans: list[int] = []
    for at, literal in enumerate(literals):
        if literal.unknowable is not None and literal.impossible is None and not boolean:
            nans.append(at)  # of all types but BOOLEAN only NaN is unknowable
            continue
        if boolean and not literal.encodings:
            raise not_boolean(literal, column, path)
        entries += [(literal.order_key, form, at) for form in forms_of(literal)]
    ordered = all(key is not None for key, *_ in entries)
    entries.sort(key=None if ordered else itemgetter(1, 2))  # equal values stay in the order in which they were given
    number, every_form = _NUMBERS.get(column.physical), [form for _, form, _ in entries]
    if number is None:
        stored: pa.Array = binaries(every_form)
    else:
        stored = pa.Array.from_buffers(number, len(entries), [None, pa.py_buffer(b"".join(every_form))])
    owners = int64s(at for *_, at in entries)
    sharing = _sharing(stored, owners, texts)
    if others := _different_texts(nans, texts):
        sharing[len(entries)] = others
    return WantedValues(
        texts,
        stored,
        owners,
        b"" if boolean else hashes_of(stored),
        [key for key, *_ in entries] if ordered else None,
        nans[0] if nans else None,
        None if many and not boolean else tuple(literals),  # of booleans, there are no hashes to look up together
        sharing,
    )


def _in_batches(
    texts: pa.LargeBinaryArray, column: Column, hashes_of: Callable[[pa.Array], bytes]
) -> WantedValues | None:
    """Convert integers or strings in compiled code; None if a text needs `parse`."""
    kind = kind_of(column)
    owners = counting(0, len(texts))
    if column.physical == "BYTE_ARRAY" and kind in _TEXTS:
        forms: pa.Array = texts
    elif (
        column.physical in {"INT32", "INT64"}
        and column.signed
        and (column.logical is None or kind == "INTEGER")
        and column.wide is None
    ):
        stored = _NUMBERS[column.physical]
        try:
            narrow = pc.cast(pc.cast(texts, pa.large_string()), _SIGNED.get(column.bit_width or 0, stored))
        except pa.ArrowInvalid:
            return None
        if _hex_made_negative(texts, narrow):
            return None
        forms = narrow.cast(stored)
    else:
        return None
    order = pc.array_sort_indices(forms)  # equal values stay in the order in which they were given
    forms = forms.take(order)
    owners = owners.take(order)
    sharing = {} if forms.type == texts.type else _sharing(forms, owners, texts)
    return WantedValues(texts, forms, owners, hashes_of(forms), forms, sharing=sharing)


def _sharing(forms: pa.Array, owners: pa.Int64Array, texts: pa.LargeBinaryArray) -> dict[int, list[int]]:
    """`WantedValues.sharing` of forms, of which equal ones are neighbours."""
    runs: dict[int, list[int]] = {}
    first = following = -1
    for at in pc.indices_nonzero(pc.equal(forms[1:], forms[:-1])).to_pylist():
        first = first if at == following else at
        following = at + 1
        runs.setdefault(first, [owners[first].as_py()]).append(owners[following].as_py())
    every = ((at, _different_texts(run, texts)) for at, run in runs.items())
    return {at: others for at, others in every if others}


def _different_texts(run: Sequence[int], texts: pa.LargeBinaryArray) -> list[int]:
    """The positions of texts that are written differently than the first one, and each other."""
    by_text: dict[bytes, int] = {}
    for at in run:
        by_text.setdefault(texts[at].as_py(), at)
    return list(by_text.values())[1:]


def _hex_made_negative(texts: pa.LargeBinaryArray, numbers: pa.Array) -> bool:
    """Whether Arrow parsed a text such as 0xffffffff as -1."""
    minimum = pc.min(numbers).as_py()
    if minimum is None or minimum >= 0:
        return False
    has_hex: bool | None = pc.any(
        pc.match_substring(texts.filter(pc.less(numbers, 0)), b"x", ignore_case=True)
    ).as_py()
    return bool(has_hex)


def comparable(values: pa.Array, column: Column) -> pa.Array:
    """Convert a column's values to the type of `WantedValues.forms`."""
    kind = _NUMBERS.get(column.physical, pa.large_binary())
    if column.physical == "BOOLEAN" or column.physical not in _NUMBERS:
        return values.cast(kind)
    return values if values.type == kind else values.view(kind)
