"""The values behind hashes, for the few that are shown: a stripe is read again, up to the row group with them.

They are read as `column_reader` reads them, not by pyarrow: ORC C++ makes room for whatever a damaged file claims.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from bloomcli import civil
from bloomcli.formats.orc.column_reader import DIRECT, FLOATS, REPEATED, TIMESTAMPS, VERSIONS, Rows, Streams
from bloomcli.formats.orc.footer import Footer, Stripe
from bloomcli.formats.orc.schema import OrcType
from bloomcli.formats.orc.streams import byte_runs, integers
from bloomcli.source import Source

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()

Values = Callable[[int], list[Any]]
"""Gives the next values."""


class ShownValues:
    """The texts of a stripe's values."""

    def __init__(self, source: Source, footer: Footer, stripe: Stripe) -> None:
        self._source = source
        self._footer = footer
        self._stripe = stripe
        self._kept: dict[tuple[int, int], list[Any]] = {}

    def text(self, orc: OrcType, group: int, index: int) -> str:
        """The text of a column's present value at `index` of a row group. Slow."""
        if (orc.id, group) not in self._kept:
            self._kept = {(orc.id, group): self._read(orc, group)}
        return text_of(self._kept[orc.id, group][index], orc)

    def _read(self, orc: OrcType, group: int) -> list[Any]:
        stripe = self._footer.stripe_footer(self._stripe)
        rows = Rows(self._source, self._footer, stripe, orc)
        read = _values(Streams(self._source, self._footer, stripe, orc), orc)
        for before in range(group):
            for count in rows.values(self._footer.rows_in(self._stripe, before)):
                read(count)
        return [v for count in rows.values(self._footer.rows_in(self._stripe, group)) for v in read(count)]


def text_of(value: Any, orc: OrcType) -> str:
    """A value's text: bytes that are no UTF-8 escaped, years that Python has not as Arrow writes them."""
    if orc.kind == "DATE":
        try:
            return str(dt.date.fromordinal(_EPOCH + value))
        except (ValueError, OverflowError):
            import pyarrow as pa

            return str(pa.scalar(value, pa.date32()).cast(pa.string()).as_py())
    if orc.kind in TIMESTAMPS:
        return civil.moment_text(value).replace("T", " ") + ("Z" if orc.kind == "TIMESTAMP_INSTANT" else "")
    if isinstance(value, bytes) and orc.kind != "BINARY":
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _values(streams: Streams, orc: OrcType) -> Values:
    encoding, entries = streams.encoding()
    if orc.kind in REPEATED:
        lengths = streams.lengths()
        return lambda count: lengths.take(count).cast("q").tolist()
    data = streams.open("DATA")
    if orc.kind in TIMESTAMPS:
        seconds = integers(data, VERSIONS[encoding], signed=True)
        nanos = integers(streams.open("SECONDARY"), VERSIONS[encoding], signed=False)
        wall = streams.zone().wall
        return lambda count: list(map(wall, seconds.take(count).cast("q"), nanos.take(count).cast("q")))
    if orc.kind == "BYTE":
        runs = byte_runs(data)
        return lambda count: runs.take(count).cast("b").tolist()
    if orc.kind == "FLOAT":
        return lambda count: memoryview(bytes(data.take(count * FLOATS["FLOAT"]))).cast("f").tolist()
    if orc.kind == "DOUBLE":
        return lambda count: memoryview(bytes(data.take(count * FLOATS["DOUBLE"]))).cast("d").tolist()
    if orc.kind not in {"STRING", "VARCHAR", "CHAR", "BINARY"}:
        numbers = integers(data, VERSIONS[encoding], signed=True)
        return lambda count: numbers.take(count).cast("q").tolist()
    sizes = streams.lengths()
    if encoding in DIRECT:
        return lambda count: [bytes(data.take(size)) for size in sizes.take(count).cast("q").tolist()]
    blob = streams.open("DICTIONARY_DATA")
    entry = [bytes(blob.take(size)) for size in sizes.take(entries).cast("q").tolist()]
    places = integers(data, VERSIONS[encoding], signed=False)
    return lambda count: [entry[place] for place in places.take(count).cast("q").tolist()]
