"""The columns that pyarrow decodes, stripe by stripe: decimals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from bloomcli import limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc.column_reader import Rows
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.source import Source

_DECODED: Final = {"DECIMAL": "decimal128("}
"""What pyarrow has to decode each kind as: its buffers are read by these widths."""


class ArrowReader:
    """Decodes stripes of chosen columns with pyarrow."""

    def __init__(self, source: Source, footer: Footer, columns: Sequence[OrcType]) -> None:
        from pyarrow import ArrowException, orc

        for column in columns:
            _check_decodable(footer, column)
        self._source = source
        self._footer = footer
        self._columns = columns
        self._names = sorted({_selection(footer, c) for c in columns})
        try:
            self._file = orc.ORCFile(source.arrow_file())
        except (ArrowException, OSError) as error:
            raise self._fault(f"the file can't be decoded ({error})", None) from None

    def _fault(self, reason: str, stripe: Stripe | None) -> CorruptFile:
        return CorruptFile(
            reason,
            path=self._footer.path,
            offset=stripe.offset if stripe else None,
            field=stripe.field if stripe else None,
            hint="the data is damaged, or holds values that can't be decoded exactly",
        )

    def _check_rows(self, stripe: Stripe) -> None:
        """pyarrow makes room for as many values as are claimed, so they have to be there, and not too many."""
        most_rows = limits.ORC_ARROW_ROWS_MAX
        streams = self._footer.stripe_footer(stripe)
        for column in self._columns:
            rows = Rows(self._source, self._footer, streams, column)
            groups = range(self._footer.row_groups(stripe) if stripe.rows <= most_rows else 0)
            values = sum(n for group in groups for n in rows.values(self._footer.rows_in(stripe, group)))
            if max(values, stripe.rows) > most_rows:
                raise UnsupportedError(
                    f"column {column.label} has more than {most_rows} values in the stripe",
                    path=self._footer.path,
                    offset=stripe.offset,
                    field=stripe.field,
                    hint="write the file with smaller stripes",
                )
            data = streams.find("DATA", column.id)
            most = 0 if data is None else self._footer.codec.most_bytes(data.length)
            if column.kind == "DECIMAL" and values > most:  # a byte each, at least
                raise self._fault(f"column {column.label} has {values} values, and bytes for {most} at most", stripe)

    def stripe(self, stripe: Stripe) -> Arrays:
        """Decode the whole stripe. Raises CorruptFile, UnsupportedError."""
        from pyarrow import ArrowException

        self._check_rows(stripe)
        try:
            batch = self._file.read_stripe(stripe.ordinal, columns=self._names)
        except (ArrowException, OSError) as error:
            raise self._fault(f"the stripe can't be decoded ({error})", stripe) from None
        if batch.num_rows != stripe.rows:
            raise self._fault(f"the stripe has {batch.num_rows} rows, its footer says {stripe.rows}", stripe)
        tops = {c.id: _top(batch, c, self._footer.path) for c in self._columns}
        for column in self._columns:
            decoded = str(_descend(tops[column.id].slice(0, 0), column, self._footer).type)
            if not decoded.startswith(_DECODED[column.kind]):
                raise self._fault(f"column {column.path}, {column.name}, was decoded as {decoded}", stripe)
        return Arrays(self._footer, stripe, tops)


class Arrays:
    """A decoded stripe: the top-level columns' arrays by the ids of the columns that are wanted of them."""

    def __init__(self, footer: Footer, stripe: Stripe, tops: dict[int, Any]) -> None:
        self._footer = footer
        self._stripe = stripe
        self._tops = tops

    def array(self, column: OrcType, group: int) -> Any:
        """A column's values in a row group."""
        start, rows = group * self._footer.stride, self._footer.rows_in(self._stripe, group)
        return _descend(self._tops[column.id].slice(start, rows), column, self._footer)


def _ancestors(footer: Footer, orc: OrcType) -> list[OrcType]:
    """The types from the top-level column down to the type itself."""
    return [*footer.above(orc)[1:], orc]


def _selection(footer: Footer, orc: OrcType) -> str:
    """What pyarrow selects a column by: names of nested structs, down to the first list or map."""
    chain = _ancestors(footer, orc)
    names = [chain[0].steps[-1]]
    for parent, child in itertools.pairwise(chain):
        if parent.kind != "STRUCT":
            break
        names.append(child.steps[-1])
    return ".".join(names)


def undecodable(footer: Footer, orc: OrcType) -> str | None:
    """Why pyarrow can't be asked for a column's values; None where it can."""
    if orc.fault is not None:
        return orc.fault
    if not orc.id:
        return "the file's root is no struct"
    if any(t.kind == "UNION" for t in footer.above(orc)):
        return "it lies within a union"
    if footer.paths[_selection(footer, orc)] > 1:
        return "it can't be told from others of the same name"
    if footer.too_wide is not None:
        return f"{orc.name} can't be decoded beside the file's {footer.too_wide.name}"
    return None


def _check_decodable(footer: Footer, orc: OrcType) -> None:
    """Nothing reaches pyarrow that it ends the process at, or takes for something else."""
    if (reason := undecodable(footer, orc)) is not None:
        raise UnsupportedError(
            f"column {orc.label} can't be decoded: {reason}",
            path=footer.path,
            field=f"types[{orc.id}]",
            hint="leave it out of --columns",
        )


def check_name(footer: Footer, orc: OrcType) -> None:
    """pyarrow selects columns by name, so another of the same name could be decoded. Raises UnsupportedError."""
    if not orc.id:
        raise UnsupportedError(
            "the file's root is no struct: it can't be decoded",
            path=footer.path,
            field="types[0]",
            hint="write the file with a struct at its root",
        )
    if footer.paths[_selection(footer, orc)] > 1:
        raise UnsupportedError(
            f"column {orc.label} can't be told from others of the same name",
            path=footer.path,
            field=f"types[{orc.id}]",
            hint="leave it out of --columns",
        )


def _top(batch: Any, orc: OrcType, path: str) -> Any:
    index = batch.schema.get_all_field_indices(orc.steps[0])
    if len(index) != 1:
        raise UnsupportedError(
            f"column {orc.path} can't be told from others of the same name", path=path, hint="leave it out"
        )
    return batch.column(index[0])


def _descend(array: Any, orc: OrcType, footer: Footer) -> Any:
    """The leaf's values in a slice of its top-level column: elements of lists and maps one after the other."""
    chain = _ancestors(footer, orc)
    if len(chain) == 1:
        return array
    import pyarrow as pa
    import pyarrow.compute as pc

    for parent, child in itertools.pairwise(chain):
        if parent.kind == "STRUCT":
            array = pc.struct_field(array, [array.type.get_field_index(child.steps[-1])])
        elif parent.kind == "LIST":
            array = array.flatten()
        elif parent.kind == "MAP":
            entries = pa.list_(pa.struct([array.type.key_field, array.type.item_field]))
            array = pc.struct_field(array.cast(entries).flatten(), [0 if child.steps[-1] == "_key" else 1])
        else:
            raise UnsupportedError(f"column {orc.path} lies within a union", path=footer.path, hint="leave it out")
    return array
