"""What `find` and a format exchange: the values that are looked for, where they may be, and the rows that have them.

    texts -> WantedValues -> FilterFile.candidates: row groups -> FilterFile.matches: rows -> FilterFile.records

A value is looked for by the bytes that the column stores for it, its forms. Several forms may be one value (zeros of
both signs), and one value may be given several times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bloomcli import kernels
from bloomcli.concurrency.cancellation import Stop
from bloomcli.errors import UnsupportedError
from bloomcli.formats.arrays import binaries, counting, int64s
from bloomcli.formats.filter_answer import FilterLookup
from bloomcli.model.file import Column
from bloomcli.named_tuple import NamedTuple
from bloomcli.values.column_types import kind_of
from bloomcli.values.literals import Literal, parse

FEW: Final = 256
"""So many values are looked up one by one, with the dictionary's answer; more are looked up in batches."""

_PARSED_TOGETHER: Final = 1 << 14
"""Texts that are parsed, in a tenth of a second, until it is noticed that the search is stopped."""
_TEXTS: Final = ("STRING", "ENUM", "JSON")
_NUMBERS: Final = {"INT32": pa.int32(), "INT64": pa.int64(), "FLOAT": pa.int32(), "DOUBLE": pa.int64()}
"""The integers that have the bytes of a value of the physical type."""
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_TRUE: Final = {"true": True, "false": False, "1": True, "0": False}


class WantedValues(NamedTuple):
    """The values that are looked for in a column."""

    texts: pa.LargeBinaryArray
    """As they were given, in UTF-8."""
    forms: pa.Array
    """What the column may have stored for them: integers of its width, or bytes. Each once."""
    owners: pa.Int64Array
    """Of each form the position of its text."""
    hashes: bytes
    """Of each form its XXH64, a uint64 in native order; empty for booleans. They ascend where many were converted in
    batches."""
    keys: pa.Array | list[Any] | None
    """Of each form a key that compares with the results of `decode_bound`; None without an order."""
    nan: int | None = None
    """The position of a text that is NaN."""
    literals: Sequence[Literal] | None = None
    """Of each text, where they are few."""


class Candidates(NamedTuple):
    """The values that a row group may have."""

    row_group: int
    rows: int
    chunk_bytes: int
    """Compressed bytes of the column."""
    forms: pa.Array
    """Positions of the forms that may be there."""
    nan: bool = False
    """NaN is looked for, and may be there."""
    trusted: bool = True
    """No filter contradicts the row group's statistics."""
    stripe: int | None = None
    """The stripe that the row group is of, in a format that has stripes."""

    @property
    def possible(self) -> bool:
        """The column has to be read."""
        return self.nan or len(self.forms) > 0

    @property
    def indexed_unit(self) -> int:
        """The number of the row group, or of the stripe, as an index has it."""
        return self.row_group if self.stripe is None else self.stripe


class Matches(NamedTuple):
    """Rows that have a value."""

    rows: pa.Int64Array
    """Positions in the row group, ascending, each once."""
    texts: pa.Int64Array
    """Of each row the position of the text of a value that it has."""


class StoredHashes(NamedTuple):
    """Hashes of some values that a row group stores."""

    hashes: bytes | bytearray
    """As `WantedValues.hashes` has them, of each value or of each different one."""
    values: int
    """How many hashes there are."""
    pages: int
    """Data pages that were decoded for them."""


class RowGroupHashes(NamedTuple):
    """A row group whose values are read before it is known which of them are looked for."""

    candidates: Candidates
    """Without values."""
    hashes: Iterator[StoredHashes] | None
    """Of all its values; None where it has none of those that are looked for. Raises CorruptFile, UnsupportedError,
    Stopped."""


class ColumnSearch(ABC):
    """Finds the rows that have values of one column of an open file."""

    pages_read = 0
    """Data pages that were decoded."""
    pages_left_out = 0
    """Data pages of the row groups that were read, which the page index rules out."""
    pages_follow = False
    """`matches` is called for every row group that may have a value."""
    row_groups: Container[int] | None = None
    """The row groups (in ORC the stripes) that may have a value, as an index says; None: all."""
    bounds_checked = False
    """No filter and no value of `row_groups` contradicts the statistics: an index has seen to that."""
    stop: Stop | None = None
    """Ends the conversion of values, and the search."""
    boolean = False
    """The column has booleans: millions of texts are two values."""
    values_filtered = False
    """The values are those that the filters of `row_groups` leave: where that is one, it may have all of them."""

    @abstractmethod
    def wanted(self, texts: pa.LargeBinaryArray) -> WantedValues:
        """The values as the column stores them. Raises LiteralError, Stopped."""

    @abstractmethod
    def candidates(self, wanted: WantedValues) -> Iterator[Candidates]:
        """Of each row group the values that filters, statistics and dictionaries don't rule out."""

    def row_group_hashes(
        self, count: int, ranges: Sequence[tuple[Any, Any]] | None, stop: Stop
    ) -> Iterator[RowGroupHashes] | None:
        """Each row group, and the hashes of its values.

        Args:
            count: of the values that are looked for.
            ranges: the least and the greatest key of each part of them, as `WantedValues.keys`; None if they have no
                order.
            stop: ends it.

        Returns:
            None where `candidates` tells in less time which values a row group may have, or where nothing is read
            but by `matches`: the default.
        """
        del count, ranges, stop
        return None

    @abstractmethod
    def matches(self, wanted: WantedValues, candidates: Candidates) -> Iterator[Matches]:
        """The rows of a row group that have one of the candidates, in order. Raises CorruptFile, UnsupportedError."""

    def prepare(  # noqa: B027  most formats have nothing to announce
        self, wanted: WantedValues, candidates: Candidates, columns: Sequence[str] | None, *, rows: bool
    ) -> None:
        """Announce that `matches` and, with `rows`, `records` of a row group follow. Nothing by default."""

    @abstractmethod
    def records(
        self, candidates: Candidates, rows: pa.Int64Array, columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a row group by their positions, in order: these columns (None: all). Raises CorruptFile."""

    def no_records(self, columns: Sequence[str] | None) -> pa.RecordBatch:
        """What `records` would give of no rows: these columns (None: all), from the metadata. Raises CorruptFile,
        UnsupportedError."""
        del columns
        raise UnsupportedError("the columns of this format's records aren't known before they are read")

    def record_schema(self) -> pa.Schema:
        """The columns of records, without any being read. Raises as `no_records`."""
        return self.no_records(None).schema

    def filter_lookup(self, wanted: WantedValues, columns: Sequence[str] | None) -> FilterLookup | None:
        """What tells of like files whether they can't have the values, for records of these columns (None: all); None
        where nothing does."""
        del wanted, columns
        return None

    @abstractmethod
    def scanned_bytes(self, columns: Sequence[str] | None) -> int:
        """Compressed bytes of the searched column and of these columns (None: all) in the whole file."""


def without_blanks(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Texts without the blanks at their ends, which have no meaning in a CHAR."""
    return pc.ascii_rtrim(texts.view(pa.large_string()), " ").view(pa.large_binary())


def xxh64_of(forms: pa.Array) -> bytes:
    """Of each form its XXH64, a uint64 in native order."""
    found = bytearray(8 * len(forms))
    if not len(forms):
        return b""
    _, *buffers = forms.buffers()
    views = [memoryview(b"" if buffer is None else buffer).cast("B") for buffer in buffers]
    if pa.types.is_large_binary(forms.type):
        kernels.hash_binary(views[0], views[1], forms.offset, len(forms), True, None, found)
    else:
        kernels.hash_fixed(views[0], forms.type.bit_width // 8, forms.offset, len(forms), None, found)
    return bytes(found)


def wanted(
    texts: pa.LargeBinaryArray,
    column: Column,
    forms_of: Callable[[Literal], Sequence[bytes]],
    path: str,
    hashes_of: Callable[[pa.Array], bytes] = xxh64_of,
    stop: Stop | None = None,
) -> WantedValues:
    """The values as a column stores them. Those that it can't store have no forms.

    Args:
        texts: one or more.
        column: as `FilterFile.literal_column` gives it.
        forms_of: all that a file may have stored for a value.
        path: the file's, for errors.
        hashes_of: gives what the format's filters hash each form to, as `WantedValues.hashes` has it.
        stop: ends it.

    Raises:
        LiteralError: a text isn't a value of the column's type.
        Stopped: soon after `stop` is set.
    """
    many = len(texts) > FEW
    fast = _in_batches(texts, column, hashes_of) if many else None
    if fast is not None:
        return fast
    literals: list[Literal] = []
    for at in range(0, len(texts), _PARSED_TOGETHER):
        if stop is not None:
            stop.check()
        literals += [parse(_decoded(text), column, path=path) for text in texts[at : at + _PARSED_TOGETHER]]
    if column.physical == "BOOLEAN":
        return _booleans(texts, literals, column, path)
    forms: dict[bytes, int] = {}
    keys: list[Any] = []
    nan = None
    for at, literal in enumerate(literals):
        if literal.unknowable is not None and literal.impossible is None:
            nan = at  # of all types but BOOLEAN only NaN is unknowable
            continue
        for form in forms_of(literal):
            if form not in forms:
                forms[form] = at
                keys.append(literal.order_key)
    stored = _stored(list(forms), column)
    return WantedValues(
        texts,
        stored,
        int64s(forms.values()),
        hashes_of(stored),
        None if None in keys else keys,
        nan,
        None if many else literals,
    )


def _in_batches(
    texts: pa.LargeBinaryArray, column: Column, hashes_of: Callable[[pa.Array], bytes]
) -> WantedValues | None:
    """Millions of integers or strings, converted in compiled code; None where a text needs `parse`."""
    kind = kind_of(column)
    owners = counting(0, len(texts))
    if column.physical == "BYTE_ARRAY" and kind in _TEXTS:
        forms: pa.Array = texts
    elif column.physical in {"INT32", "INT64"} and column.signed and (column.logical is None or kind == "INTEGER"):
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
    hashes = pa.Array.from_buffers(pa.uint64(), len(forms), [None, pa.py_buffer(hashes_of(forms))])
    # In the order of the hashes, lookups go through a filter from start to end: a hash's block is its high half times
    # the number of blocks. Equal values stay in the order in which they were given.
    order = pc.array_sort_indices(hashes)
    forms = forms.take(order)
    ascending = hashes.take(order).buffers()[1].to_pybytes()[: 8 * len(forms)]
    return WantedValues(texts, forms, owners.take(order), ascending, forms)


def _hex_made_negative(texts: pa.LargeBinaryArray, numbers: pa.Array) -> bool:
    """Whether Arrow took a text such as 0xffffffff for -1."""
    least = pc.min(numbers).as_py()
    if least is None or least >= 0:
        return False
    found: bool | None = pc.any(pc.match_substring(texts.filter(pc.less(numbers, 0)), b"x", ignore_case=True)).as_py()
    return bool(found)


def _decoded(text: pa.Scalar) -> str:
    found: bytes = text.as_py()
    return found.decode("utf-8", "surrogateescape")


def _booleans(texts: pa.LargeBinaryArray, literals: list[Literal], column: Column, path: str) -> WantedValues:
    from bloomcli.errors import LiteralError

    forms: dict[bool, int] = {}
    for at, literal in enumerate(literals):
        value = _TRUE.get(literal.text.strip().lower())
        if value is None:
            raise LiteralError(
                f"{literal.text!r} is not a value of column {column.path}, BOOLEAN",
                text=literal.text,
                path=path,
                hint="write it like true",
            )
        forms.setdefault(value, at)
    stored = int64s(map(int, forms)).cast(pa.uint8())
    return WantedValues(texts, stored, int64s(forms.values()), b"", None, literals=literals)


def _stored(forms: list[bytes], column: Column) -> pa.Array:
    number = _NUMBERS.get(column.physical)
    if number is None:
        return binaries(forms)
    return pa.Array.from_buffers(number, len(forms), [None, pa.py_buffer(b"".join(forms))])


def comparable(values: pa.Array, column: Column) -> pa.Array:
    """A column's values as `WantedValues.forms` has them."""
    number = _NUMBERS.get(column.physical)
    if number is not None:
        return values if values.type == number else values.view(number)
    return values.cast(pa.uint8() if column.physical == "BOOLEAN" else pa.large_binary())
