"""For any table in any ORC layout: no value goes missing, no stream changes, filters come and go without a trace."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import orcfiles
from support.tables import leaves

import bloomcli
from bloomcli.model.file import Presence

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
TEXT = st.text(max_size=12)


def ints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**digits) + 1, 10**digits - 1)
    return whole.map(lambda v: Decimal(f"{v}E-{scale}"))


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    **{f"i{b}": (getattr(pa, f"int{b}")(), ints(b)) for b in (8, 16, 32, 64)},
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats()),
    "text": (pa.string(), TEXT),
    "blob": (pa.binary(), st.binary(max_size=20)),
    "d9": (pa.decimal128(9, 2), decimals(9, 2)),
    "d38": (pa.decimal128(38, 18), decimals(38, 18)),
    "date": (pa.date32(), st.dates()),
    # Arrow's writer stores fractions of seconds before 1970 wrongly
    "moment": (pa.timestamp("ns"), st.integers(0, (1 << 63) - 1)),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | ints(64), max_size=4)),
    "struct": (pa.struct([("x", pa.float64())]), st.fixed_dictionaries({"x": st.none() | st.floats()})),
    "map": (pa.map_(pa.string(), pa.int32()), st.lists(st.tuples(TEXT, st.none() | ints(32)), max_size=3)),
}
LEAVES = {"list": ["list._elem"], "struct": ["struct.x"], "map": ["map._key", "map._value"]}


@dataclass(frozen=True)
class File:
    """A table and how it is written."""

    table: pa.Table
    options: dict[str, Any]

    @property
    def columns(self) -> list[str]:
        """Leaf paths."""
        return [path for name in self.table.column_names for path in LEAVES.get(name, [name])]


@st.composite
def files(draw: st.DrawFn) -> File:
    """One to four columns of any kind, up to 60 rows, in any layout."""
    rows = draw(st.integers(0, 60))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    columns = {}
    for name in names:
        kind, values = KINDS[name]
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
    options = {
        "stride": draw(st.sampled_from([1, 7, 20, 10_000])),
        "batch_size": draw(st.sampled_from([1, 13, 1024])),
        "stripe_size": draw(st.sampled_from([1, 64 << 20])),
        "compression": draw(st.sampled_from(orcfiles.COMPRESSIONS)),
        "dictionary_key_size_threshold": draw(st.sampled_from([0.0, 1.0])),
        "file_version": draw(st.sampled_from(["0.11", "0.12"])),
    }
    return File(pa.table(columns), options)


@contextmanager
def written(file: File) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield orcfiles.write(Path(folder) / "in.orc", file.table, **file.options)


def rows(path: Path) -> str:
    """The rows as text, in which NaN equals itself; moments as numbers, as Python has no nanoseconds."""
    table = orcfiles.read(path)
    if "moment" in table.column_names:
        at = table.column_names.index("moment")
        table = table.set_column(at, "moment", table["moment"].cast(pa.int64()))
    return repr(table.to_pylist())


rates = st.floats(1e-6, 0.9)
kinds = st.sampled_from([None, "utf8", "both"])


@QUICK
@given(files(), rates, kinds, st.none() | st.sampled_from([32, 100, 4096]), st.none() | st.integers(1, 5000))
def test_no_value_is_ever_missing_and_no_stream_changes(
    file: File, fpp: float, kind: str | None, cap: int | None, ndv: int | None
) -> None:
    with written(file) as path:
        out = path.with_name("out")
        report = bloomcli.add(path, file.columns, output=out, fpp=fpp, kind=kind, max_bytes=cap, ndv=ndv)
        assert bloomcli.validate(out, deep=True, require=file.columns).findings == ()
        for change in report.changes:
            assert cap is None or (change.bitset_bytes or 0) <= cap
        assert list(orcfiles.unfiltered(orcfiles.split(out))) == list(orcfiles.unfiltered(orcfiles.split(path)))
        assert rows(out) == rows(path)


@QUICK
@given(files(), st.randoms(use_true_random=False), rates, kinds)
def test_rounds_of_adds_replacements_and_removals_leave_every_stream_as_it_was(
    file: File, random: Any, fpp: float, kind: str | None
) -> None:
    with written(file) as path:
        before = path.read_bytes()
        streams = list(orcfiles.unfiltered(orcfiles.split(path)))
        columns = file.columns
        random.shuffle(columns)
        for column in columns:
            bloomcli.add(path, [column], in_place=True, fpp=fpp, kind=kind)
        bloomcli.add(path, columns[:1], in_place=True, fpp=0.01, replace=True)
        assert bloomcli.validate(path, deep=True, require=columns).findings == ()
        random.shuffle(columns)
        for column in columns:
            bloomcli.remove(path, columns=[column], in_place=True)
        after = orcfiles.split(path)
        assert [after.streams(s) for s in range(len(after.stripes))] == streams
        if file.options["compression"] == "uncompressed":
            assert path.read_bytes() == before


def typed(value: Any) -> str:
    """A value as a user types it."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


@QUICK
@given(st.sampled_from(["i8", "i64", "f64", "text", "blob", "d9", "d38", "date"]), st.data(), rates)
def test_neither_filters_nor_statistics_rule_out_a_value_that_exists(
    name: str, data: st.DataObject, fpp: float
) -> None:
    kind, strategy = KINDS[name]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30))
    present = {typed(v): v for v in leaves(values) if not (isinstance(v, float) and math.isnan(v))}
    if not present:
        return
    with written(File(pa.table({"c": pa.array(values, kind)}), {"stride": 10})) as path:
        bloomcli.add(path, ["c"], in_place=True, fpp=fpp)
        for verdict in bloomcli.probe(path, list(present), column="c").verdicts:
            there = present[verdict.value] in values[verdict.row_group * 10 :][:10]
            assert not there or (verdict.presence is Presence.MAYBE and not verdict.stats_skip)
