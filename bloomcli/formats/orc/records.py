"""Reads rows of an ORC file with pyarrow: the chosen columns of a stripe, and then some of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc

from bloomcli.concurrency.threads import Stop
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.arrays import SourceStream
from bloomcli.formats.orc import limits as orc_limits
from bloomcli.formats.orc import spec
from bloomcli.formats.orc.arrow_forms import Numbered, forms_of
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.splice import file_end
from bloomcli.formats.orc.values import CRASHING, GEOSPATIAL, TIMESTAMPS, ValueReader, check_sizes
from bloomcli.storage.sources import RereadSource
from bloomcli.words import counted

_ROWS_AT_ONCE: Final = 8192
_TOO_FAR: Final = "out of range for nanosecond"
"""Part of pyarrow's error about timestamps before 1677 or after 2262."""
_HINT: Final = "--select names the columns to read"


class Records:
    """Reads rows of an open file. The last stripe stays in memory."""

    def __init__(self, footer: Footer) -> None:
        self._source = RereadSource(footer.source)
        self._footer = footer.over(self._source)
        self._held: tuple[int, frozenset[int] | None, pa.RecordBatch] | None = None

    def rows(self, stripe: Stripe, rows: pa.Int64Array, chosen: frozenset[int] | None) -> Iterator[pa.RecordBatch]:
        """Rows of a stripe by their numbers in it: the columns with these ids (all if None).

        Raises CorruptFile, UnsupportedError.
        """
        whole = self.stripe(stripe, chosen)
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            yield self._pruned(self.guarded(stripe, partial(whole.take, some)), chosen)

    def none(self, chosen: frozenset[int] | None) -> pa.RecordBatch:
        """No rows of the columns with these ids (all if None). Raises CorruptFile."""
        schema = self.guarded(None, lambda: self._reader.schema)
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
        return self._pruned(empty, chosen)

    def stripe(self, stripe: Stripe, chosen: frozenset[int] | None) -> pa.RecordBatch:
        """Read a whole stripe; of structs only the chosen fields. Raises CorruptFile, UnsupportedError."""
        if self._held is not None and self._held[:2] == (stripe.ordinal, chosen):
            return self._held[2]
        self._held = None
        if stripe.rows > orc_limits.VALUES_MAX:
            raise UnsupportedError(
                f"the rows of stripe {stripe.ordinal} can't be read: it has {stripe.rows}, more than the "
                f"{orc_limits.VALUES_MAX} that are read",
                **self._footer.place(stripe),
                hint="write the file with smaller stripes",
            )
        batch = self._read(stripe, chosen)
        if batch.num_rows != stripe.rows:
            raise self._fault(stripe, f"{counted(batch.num_rows, 'row')} where the footer says {stripe.rows}")
        self._held = stripe.ordinal, chosen, batch
        return batch

    def _read(self, stripe: Stripe, chosen: frozenset[int] | None) -> pa.RecordBatch:
        try:
            with self._source.keeping():
                self._check(stripe, chosen)
        except CorruptFile as error:
            error.add_to_hint([_HINT])
            raise
        try:
            return self.guarded(stripe, lambda: self._reader.read_stripe(stripe.ordinal, self._names(chosen)))
        except CorruptFile as error:
            if _TOO_FAR not in error.reason:
                raise
        return self._with_far_timestamps(stripe, chosen)

    def _check(self, stripe: Stripe, chosen: frozenset[int] | None) -> None:
        """Check the tags of unions and the lengths of texts, by whose damage pyarrow crashes. Raises CorruptFile."""
        footer, stripe_footer = self._footer, self._footer.stripe_footer(stripe)
        for orc in (orc for orc in footer.types if chosen is None or _any(orc, chosen)):
            if orc.kind in CRASHING and all(above.kind != "UNION" for above in footer.ancestors(orc)):
                check_sizes(footer, stripe_footer, orc)

    def _with_far_timestamps(self, stripe: Stripe, chosen: frozenset[int] | None) -> pa.RecordBatch:
        """Read a stripe with timestamps beyond the range of nanoseconds in 64 bits. This class decodes those of
        top-level columns, in microseconds; pyarrow reads the other columns, and refuses such timestamps in them."""
        types = self._footer.types
        tops = [t for t in (types[child] for child in types[0].children) if chosen is None or _any(t, chosen)]
        far = [t for t in tops if t.kind in TIMESTAMPS]
        others = frozenset(range(1, len(types))) if chosen is None else chosen
        near = others - {t.id for t in far}
        columns: dict[str, pa.Array] = {t.steps[-1]: self._micros(stripe, t) for t in far}
        if len(far) < len(tops):
            read = self.guarded(stripe, lambda: self._reader.read_stripe(stripe.ordinal, self._names(near)))
            columns |= {name: read.column(name) for name in read.schema.names if name not in columns}
        arrays = [columns[t.steps[-1]] for t in tops]
        fields = _fields([self._reader.schema.field(types[0].children.index(t.id)) for t in tops], arrays)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _micros(self, stripe: Stripe, orc: OrcType) -> pa.Array:
        """The timestamps of a column of a stripe."""
        footer = self._footer
        reader = ValueReader(footer, footer.stripe_footer(stripe), orc, Numbered, Stop())
        kind = pa.timestamp("us", "UTC" if orc.kind == "TIMESTAMP_INSTANT" else None)
        chunks, rows = [], []
        for values, numbered in reader.take(stripe.rows):
            moments = forms_of(values, reader.leaf).to_pylist()
            try:
                micros = [int.from_bytes(moment, "little", signed=True) // 1000 for moment in moments]
                chunks.append(pa.array(micros, pa.int64()))
            except OverflowError:
                raise self._fault(stripe, f"a timestamp of column {orc.label} is out of range") from None
            rows.append(numbered.numbers)
        present = pa.chunked_array(rows, pa.int64()).combine_chunks()
        at = pc.index_in(pa.array(range(stripe.rows), pa.int64()), value_set=present)
        return pa.chunked_array(chunks, pa.int64()).combine_chunks().take(at).cast(kind)

    @cached_property
    def _reader(self) -> pa.orc.ORCFile:
        return pa.orc.ORCFile(pa.PythonFile(self._as_binary() or SourceStream(self._source), "r"))

    def _as_binary(self) -> SourceStream | None:
        """The file with geometries and geographies as BINARY, which has the same streams: pyarrow refuses a file with
        these types. None without them."""
        footer = self._footer
        ids = [orc.id for orc in footer.types if orc.kind in GEOSPATIAL]
        if not ids:
            return None
        message = spec.message("Footer")()
        message.CopyFrom(footer.message)
        for each in ids:
            message.types[each].kind = spec.value_of("TypeKind", "BINARY")
        return SourceStream(self._source, footer.footer_at, file_end(footer, message))

    def guarded(self, stripe: Stripe | None, read: Callable[[], Any]) -> Any:
        """Call a function of pyarrow. Raises CorruptFile, UnsupportedError if it refuses the stripe or, for None, the
        schema."""
        try:
            return read()
        except (pa.ArrowException, OSError, ValueError, IndexError, NotImplementedError, MemoryError) as error:
            if isinstance(error, BloomError):
                raise
            if isinstance(error, MemoryError):
                what = "the schema doesn't" if stripe is None else f"the rows of stripe {stripe.ordinal} don't"
                raise UnsupportedError(f"{what} fit in memory", path=self._source.path, hint=_HINT) from None
            raise self._fault(stripe, " ".join(str(error).split())[:200]) from None

    def _fault(self, stripe: Stripe | None, detail: str) -> CorruptFile:
        if stripe is None:
            return CorruptFile(f"the schema can't be read: {detail}", path=self._source.path, hint=_HINT)
        reason = f"the rows of stripe {stripe.ordinal} can't be read: {detail}"
        return CorruptFile(reason, **self._footer.place(stripe), hint=_HINT)

    def _names(self, chosen: frozenset[int] | None) -> list[str] | None:
        """The paths that select columns in pyarrow; None for all columns, which is needed if names are ambiguous."""
        types = self._footer.types
        if chosen is None or any("." in step for orc in types for step in orc.steps[-1:]):
            return None
        paths: dict[str, None] = {}
        for column in sorted(chosen):
            above = [*self._footer.ancestors(types[column]), types[column]]
            depth = next((i for i, orc in enumerate(above) if orc.kind != "STRUCT"), len(above) - 1)
            paths[".".join(above[depth].steps)] = None
        return list(paths)

    def _pruned(self, batch: pa.RecordBatch, chosen: frozenset[int] | None) -> pa.RecordBatch:
        """The chosen columns, and of structs the chosen fields."""
        if chosen is None:
            return batch
        root = self._footer.types[0]
        if root.kind != "STRUCT":
            return batch
        columns = _kept(self._footer.types, root, [field.name for field in batch.schema], chosen)
        arrays = [_selected(self._footer.types, orc, batch.column(at), chosen) for at, orc in columns]
        fields = _fields([batch.schema.field(at) for at, _ in columns], arrays)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _fields(fields: Sequence[pa.Field], arrays: Sequence[pa.Array]) -> list[pa.Field]:
    """The fields with the arrays' types. They keep their metadata, which have the field ids of tables."""
    return [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]


def _kept(
    types: Sequence[OrcType], parent: OrcType, names: Sequence[str], chosen: frozenset[int]
) -> list[tuple[int, OrcType]]:
    """The positions and types of the chosen ones among a struct's fields as pyarrow returns them."""
    children = [types[child] for child in parent.children]
    if len(names) != len(children):  # pyarrow has left some out
        children = [orc for orc in children if _any(orc, chosen)]
    return [(at, orc) for at, orc in enumerate(children[: len(names)]) if _any(orc, chosen)]


def _any(orc: OrcType, chosen: frozenset[int]) -> bool:
    return not chosen.isdisjoint(range(orc.id, orc.last + 1))


def _selected(types: Sequence[OrcType], orc: OrcType, array: pa.Array, chosen: frozenset[int]) -> pa.Array:
    """A column with the chosen fields of its structs."""
    if orc.kind == "STRUCT":
        kept = _kept(types, orc, [field.name for field in array.type], chosen)
        arrays = [_selected(types, child, array.field(at), chosen) for at, child in kept]
        fields = _fields([array.type.field(at) for at, _ in kept], arrays)
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pc.is_null(array)) if kept else array
    if orc.kind == "LIST":
        (element,) = (types[child] for child in orc.children)
        values = _selected(types, element, array.values, chosen)
        (field,) = _fields([array.type.value_field], [values])
        mask = pc.is_null(array) if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, pa.list_(field), mask=mask)
    return array
