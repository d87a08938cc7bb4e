"""For any table in any layout of any format: no value goes missing, and filters come and go without a trace."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import blooms, mosaicfiles, orcfiles, tables

import bloomcli
from bloomcli.model.file import Presence

pytestmark = pytest.mark.slow

SOME = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
ROWS = st.integers(0, 60)
TEXT = st.text(max_size=12)
BLOB = st.binary(max_size=20)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
Kinds = dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]]


def ints(*widths: int) -> Kinds:
    """Columns of integers."""
    return {f"i{n}": (getattr(pa, f"int{n}")(), st.integers(-(1 << n - 1), (1 << n - 1) - 1)) for n in widths}


def decimals(digits: int, scale: int) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A column of decimals."""
    values = st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda v: Decimal(f"{v}E-{scale}"))
    return pa.decimal128(digits, scale), values


FLOATS: Final[Kinds] = {"f32": (pa.float32(), st.floats(width=32)), "f64": (pa.float64(), st.floats())}
TEXTS: Final[Kinds] = {"text": (pa.string(), TEXT), "blob": (pa.binary(), BLOB)}
NESTED: Final[Kinds] = {
    "list": (pa.list_(pa.int64()), st.lists(st.none() | LONGS, max_size=4)),
    "struct": (pa.struct([("x", pa.float64())]), st.fixed_dictionaries({"x": st.none() | st.floats()})),
}


class File(NamedTuple):
    """A file that was written."""

    table: pa.Table
    options: dict[str, Any]
    columns: list[str]
    """Those that can have filters."""


class Format(NamedTuple):
    """What tables of a format hold, and how they are written and read."""

    kinds: Kinds
    others: Kinds
    """Of columns without filters."""
    options: dict[str, st.SearchStrategy[Any]]
    write: Callable[..., Path]
    read: Callable[[Path], pa.Table]
    leaves: dict[str, list[str]]
    """The paths of columns that have other names than their top-level columns."""
    add: dict[str, Any]
    """Options of `add` that all filters need."""
    kind: st.SearchStrategy[str | None] = st.none()
    """Kinds of filters."""


PARQUET: Final = Format(
    {
        **ints(32),
        "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
        **FLOATS,
        **TEXTS,
        **NESTED,
        "texts": (
            pa.list_(pa.list_(pa.string())),
            st.lists(st.none() | st.lists(st.none() | TEXT, max_size=3), max_size=3),
        ),
    },
    {},
    {
        "rows": st.sampled_from([7, 20, 1000]),
        "page_version": st.sampled_from([1, 2]),
        "dictionary": st.booleans(),
        "compression": st.sampled_from(tables.COMPRESSIONS),
        "write_page_index": st.booleans(),
        "data_page_size": st.sampled_from([64, 1 << 20]),
        "write_batch_size": st.sampled_from([3, 1024]),
        "dictionary_pagesize_limit": st.sampled_from([40, 1 << 20]),
        "store_schema": st.booleans(),
    },
    tables.write,
    pq.read_table,
    {"list": ["list.list.element"], "struct": ["struct.x"], "texts": ["texts.list.element.list.element"]},
    {"readers": "spark"},
)
ORC: Final = Format(
    {
        **ints(8, 16, 32, 64),
        **FLOATS,
        **TEXTS,
        **NESTED,
        "d9": decimals(9, 2),
        "d38": decimals(38, 18),
        "date": (pa.date32(), st.dates()),
        # Arrow's writer stores fractions of seconds before 1970 wrongly
        "moment": (pa.timestamp("ns"), st.integers(0, (1 << 63) - 1)),
        "map": (
            pa.map_(pa.string(), pa.int32()),
            st.lists(st.tuples(TEXT, st.none() | st.just(7)), max_size=3),
        ),
    },
    {},
    {
        "stride": st.sampled_from([1, 7, 20, 10_000]),
        "batch_size": st.sampled_from([1, 13, 1024]),
        "stripe_size": st.sampled_from([1, 64 << 20]),
        "compression": st.sampled_from(orcfiles.COMPRESSIONS),
        "dictionary_key_size_threshold": st.sampled_from([0.0, 1.0]),
        "file_version": st.sampled_from(["0.11", "0.12"]),
    },
    orcfiles.write,
    orcfiles.read,
    {"list": ["list._elem"], "struct": ["struct.x"], "map": ["map._key", "map._value"]},
    {},
    st.sampled_from([None, "utf8", "both"]),
)
MOSAIC: Final = Format(
    {
        "bool": (pa.bool_(), st.booleans()),
        **ints(8, 16, 32, 64),
        **FLOATS,
        "date": (pa.date32(), st.dates(dt.date(1, 1, 1))),
        "text": TEXTS["text"],
    },
    {
        "a list": (
            pa.list_(pa.list_(pa.int64())),
            st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=3),
        ),
        "the map": (pa.map_(pa.string(), pa.binary()), st.dictionaries(TEXT, BLOB, max_size=3)),
        "blob": TEXTS["blob"],
    },
    {
        "batch": st.sampled_from([7, 20, 1000]),
        "num_buckets": st.integers(0, 6),
        "compression": st.sampled_from([0, 1]),
        "page_size_threshold": st.sampled_from([1, 100, 1 << 15]),
        "max_dict_entries": st.sampled_from([0, 2, 255]),
    },
    mosaicfiles.write,
    mosaicfiles.read,
    {},
    mosaicfiles.DRAFT,
)
FORMATS: Final = {"parquet": PARQUET, "orc": ORC, "mosaic": MOSAIC}
every_format = pytest.mark.parametrize("of", FORMATS.values(), ids=FORMATS)


def drawn(data: st.DataObject, of: Format) -> File:
    """One to four columns, up to 60 rows, in any layout."""
    rows = data.draw(ROWS)
    names = data.draw(st.lists(st.sampled_from(sorted(of.kinds)), min_size=1, max_size=4, unique=True))
    others = data.draw(st.lists(st.sampled_from(sorted(of.others)), max_size=2, unique=True)) if of.others else []
    columns = {}
    for name in data.draw(st.permutations([*names, *others])):
        kind, values = {**of.kinds, **of.others}[name]
        few = st.sampled_from(data.draw(st.lists(st.none() | values, min_size=1, max_size=3)))  # dictionaries
        value = few if data.draw(st.booleans()) else st.none() | values
        columns[name] = pa.array(data.draw(st.lists(value, min_size=rows, max_size=rows)), kind)
    options = {name: data.draw(values) for name, values in of.options.items()}
    if of is MOSAIC:
        # paimon-mosaic takes NaN for both bounds if it comes first, which `validate` rightly reports
        bounded = [name for name in names if name not in FLOATS or not pc.any(pc.is_nan(columns[name])).as_py()]
        options["stats_columns"] = data.draw(st.lists(st.sampled_from(bounded), unique=True)) if bounded else []
    leaves = [path for name in columns if name in names for path in of.leaves.get(name, [name])]
    return File(pa.table(columns), options, leaves)


@contextmanager
def written(of: Format, file: File) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield of.write(Path(folder) / "in", file.table, **file.options)


def rows(of: Format, path: Path) -> str:
    """The rows as text, in which NaN equals itself; moments as numbers, as Python has no nanoseconds."""
    table = of.read(path)
    moments = [(at, name) for at, name in enumerate(table.column_names) if name == "moment"]
    for at, name in moments:
        table = table.set_column(at, name, table[name].cast(pa.int64()))
    return repr(table.to_pylist())


def trace(of: Format, path: Path, file: File) -> object:
    """What is there again when all filters have gone: all bytes, or of a compressed ORC file every stream, because
    compressors give different bytes for its footers."""
    if of is not ORC or file.options["compression"] == "uncompressed":
        return path.read_bytes()
    whole = orcfiles.split(path)
    return [whole.streams(stripe) for stripe in range(len(whole.stripes))]


rates = st.floats(1e-6, 0.9)


@every_format
@SOME
@given(st.data(), rates, st.none() | st.sampled_from([32, 64, 1024]), st.none() | st.integers(1, 5000))
def test_no_value_is_ever_missing(
    of: Format, data: st.DataObject, fpp: float, cap: int | None, ndv: int | None
) -> None:
    file = drawn(data, of)
    with written(of, file) as path:
        out, kind = path.with_name("out"), data.draw(of.kind)
        report = bloomcli.add(path, file.columns, output=out, fpp=fpp, max_bytes=cap, ndv=ndv, kind=kind, **of.add)
        assert bloomcli.validate(out, deep=True, require=file.columns).findings == ()
        for change in report.changes:
            assert cap is None or (change.bitset_bytes or 0) <= cap
            if of is not ORC:
                bits = bloomcli.dump(out, column=change.column, row_group=change.row_group or 0).bitset
                assert len(bits) == change.bitset_bytes
                assert change.misses_target == (blooms.rate(bits) > fpp)
                assert ndv is not None or cap is not None or not change.misses_target
            if of is MOSAIC:
                size = file.options["batch"]
                part = file.table[change.column].combine_chunks().slice((change.row_group or 0) * size, size)
                assert blooms.build(hashed(part), len(bits)) == bits, "no bit is set for nothing"
        if of is ORC:
            assert list(orcfiles.unfiltered(orcfiles.split(out))) == list(orcfiles.unfiltered(orcfiles.split(path)))
        if of is not MOSAIC:  # whose released reader refuses files with filters
            assert rows(of, out) == rows(of, path)


def hashed(array: pa.Array) -> set[bytes]:
    """The bytes of a column's values as Mosaic's draft hashes them, taken from Arrow's buffers one by one."""
    values = set()
    for value in array.drop_null():
        if pa.types.is_boolean(value.type):
            values.add(bytes([value.as_py()]))
        elif pa.types.is_string(value.type):
            values.add(value.as_buffer().to_pybytes())
        else:
            values.add(pa.array([value], value.type).buffers()[1].to_pybytes()[: value.type.bit_width // 8])
    if pa.types.is_floating(array.type):
        width = array.type.bit_width // 8
        zeros = {bytes(width), bytes(width - 1) + b"\x80"}
        values |= zeros if values & zeros else set()
    return values


@every_format
@SOME
@given(st.data(), st.randoms(use_true_random=False), rates, rates)
def test_rounds_of_adds_replacements_and_removals_end_where_they_began(
    of: Format, data: st.DataObject, random: Any, first: float, second: float
) -> None:
    file = drawn(data, of)
    with written(of, file) as path:
        before, table, kind = trace(of, path, file), rows(of, path), data.draw(of.kind)
        columns = file.columns
        random.shuffle(columns)
        for column in columns:
            bloomcli.add(path, [column], in_place=True, fpp=first, kind=kind, **of.add)
        bloomcli.add(path, columns[:1], in_place=True, fpp=second, replace=True, **of.add)
        if of is not ORC:
            bloomcli.fold(path, in_place=True, fpp=max(first, second))
        assert bloomcli.validate(path, deep=True, require=columns).findings == ()
        random.shuffle(columns)
        for column in columns:
            bloomcli.remove(path, columns=[column], in_place=True)
        assert trace(of, path, file) == before
        assert rows(of, path) == table


def typed(value: Any) -> str:
    """A value as a user types it."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


@every_format
@SOME
@given(st.data(), rates)
def test_neither_filters_nor_statistics_rule_out_a_value_that_exists(
    of: Format, data: st.DataObject, fpp: float
) -> None:
    name = data.draw(st.sampled_from(sorted(set(of.kinds) - set(of.leaves) - {"moment", "f32", "bool"})))
    kind, strategy = of.kinds[name]
    values = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=30))
    present = {typed(v): v for v in values if v is not None and v == v}
    layout = {"rows": 10} if of is PARQUET else {"stride": 10} if of is ORC else {"batch": 10, "stats_columns": ["c"]}
    with written(of, File(pa.table({"c": pa.array(values, kind)}), layout, ["c"])) as path:
        bloomcli.add(path, ["c"], in_place=True, fpp=fpp, **of.add)
        for verdict in bloomcli.probe(path, list(present), column="c").verdicts if present else ():
            there = present[verdict.value] in values[verdict.row_group * 10 :][:10]
            assert not there or (verdict.presence is Presence.MAYBE and not verdict.stats_skip)
        if name.startswith("i"):
            bits = kind.bit_width
            outside = [str(-(1 << bits - 1) - 1), str(1 << bits - 1)]
            assert {v.presence for v in bloomcli.probe(path, outside, column="c").verdicts} == {Presence.ABSENT}
