"""For any table and any layout of a Mosaic file: no value goes missing, and the file comes back whole."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import blooms
from support.mosaicfiles import DRAFT, read, write

import bloomcli
from bloomcli.model.file import Presence

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    "i8": (pa.int8(), st.integers(-128, 127)),
    "i16": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "i32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats()),
    "date": (pa.date32(), st.dates(dt.date(1, 1, 1))),
    "text": (pa.string(), st.text(max_size=12)),
}
OTHERS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "a list": (
        pa.list_(pa.list_(pa.int64())),
        st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=3),
    ),
    "the map": (
        pa.map_(pa.string(), pa.binary()),
        st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3),
    ),
    "blob": (pa.binary(), st.binary(max_size=9)),
}


@dataclass(frozen=True)
class File:
    """A table and how it is written."""

    table: pa.Table
    columns: list[str]
    """Those that may have filters."""
    options: dict[str, Any]


@st.composite
def files(draw: st.DrawFn) -> File:
    """One to four columns that may have filters, others among them, up to 60 rows, in any layout."""
    rows = draw(st.integers(0, 60))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    others = draw(st.lists(st.sampled_from(sorted(OTHERS)), max_size=2, unique=True))
    columns = {}
    for name in draw(st.permutations([*names, *others])):
        kind, values = {**KINDS, **OTHERS}[name]
        few = st.sampled_from(draw(st.lists(st.none() | values, min_size=1, max_size=3)))  # constants, dictionaries
        drawn = few if draw(st.booleans()) else st.none() | values
        columns[name] = pa.array(draw(st.lists(drawn, min_size=rows, max_size=rows)), kind)
    options = {
        "batch": draw(st.sampled_from([7, 20, 1000])),
        "num_buckets": draw(st.integers(0, 6)),
        "compression": draw(st.sampled_from([0, 1])),
        "page_size_threshold": draw(st.sampled_from([1, 100, 1 << 15])),
        "max_dict_entries": draw(st.sampled_from([0, 2, 255])),
        "stats_columns": draw(st.lists(st.sampled_from(names), unique=True)),
    }
    return File(pa.table(columns), names, options)


@contextmanager
def written(file: File) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield write(Path(folder) / "in.mosaic", file.table, **file.options)


rates = st.floats(1e-6, 0.9)
caps = st.none() | st.sampled_from([32, 64, 1024])


def plain(array: pa.Array) -> Iterator[bytes]:
    """The bytes of a column's values as the draft hashes them, taken from Arrow's buffers one by one."""
    for value in array.drop_null():
        if pa.types.is_boolean(value.type):
            yield bytes([value.as_py()])
        elif pa.types.is_string(value.type):
            yield value.as_buffer().to_pybytes()
        else:
            yield pa.array([value], value.type).buffers()[1].to_pybytes()[: value.type.bit_width // 8]


@QUICK
@given(files(), rates, caps, st.none() | st.integers(1, 5000))
def test_no_value_is_ever_missing_and_no_bit_is_set_for_nothing(
    file: File, fpp: float, cap: int | None, ndv: int | None
) -> None:
    with written(file) as path:
        out = path.with_name("out")
        report = bloomcli.add(path, file.columns, output=out, fpp=fpp, max_bytes=cap, ndv=ndv, **DRAFT)
        checked = bloomcli.validate(out, deep=True, require=file.columns)
        assert checked.findings == ()
        size = file.options["batch"]
        for change in report.changes:
            assert change.bitset_bytes is not None
            assert cap is None or change.bitset_bytes <= cap
            bits = bloomcli.dump(out, column=change.column, row_group=change.row_group or 0).bitset
            assert change.misses_target == (blooms.rate(bits) > fpp)
            assert ndv is not None or cap is not None or not change.misses_target
            part = file.table[change.column].combine_chunks().slice((change.row_group or 0) * size, size)
            values = set(plain(part))
            if pa.types.is_floating(part.type):
                width = part.type.bit_width // 8
                zeros = {bytes(width), bytes(width - 1) + b"\x80"}
                values |= zeros if values & zeros else set()
            assert blooms.build(values, len(bits)) == bits


@QUICK
@given(files(), st.randoms(use_true_random=False), rates, rates)
def test_rounds_of_adds_replacements_and_removals_end_where_they_began(
    file: File, random: Any, first: float, second: float
) -> None:
    with written(file) as path:
        before = path.read_bytes()
        columns = list(file.columns)
        random.shuffle(columns)
        for column in columns:
            bloomcli.add(path, [column], in_place=True, fpp=first, **DRAFT)
        bloomcli.add(path, columns[:1], in_place=True, fpp=second, replace=True, **DRAFT)
        bloomcli.fold(path, in_place=True, fpp=max(first, second))
        assert bloomcli.validate(path, deep=True, require=columns).findings == ()
        random.shuffle(columns)
        for column in columns:
            bloomcli.remove(path, columns=[column], in_place=True)
        assert path.read_bytes() == before
        assert repr(read(path).to_pylist()) == repr(file.table.to_pylist())  # NaN equals itself as text


@QUICK
@given(st.lists(st.none() | st.integers(-128, 127), max_size=50), rates, st.booleans())
def test_statistics_and_filters_never_rule_out_a_value_that_exists(
    values: list[int | None], fpp: float, statistics: bool
) -> None:
    table = pa.table({"c": pa.array(values, pa.int8())})
    with written(File(table, ["c"], {"batch": 20, "stats_columns": ["c"] if statistics else []})) as path:
        bloomcli.add(path, ["c"], in_place=True, fpp=fpp, **DRAFT)
        asked = [str(v) for v in range(-129, 129)]
        verdicts = {(v.row_group, v.value): v for v in bloomcli.probe(path, asked, column="c").verdicts}
        for group in range((len(values) + 19) // 20):
            for value in set(values[group * 20 : group * 20 + 20]) - {None}:
                verdict = verdicts[group, str(value)]
                assert verdict.presence is Presence.MAYBE
                assert not verdict.stats_skip
            for outside in ("-129", "128"):
                assert verdicts[group, outside].presence is Presence.ABSENT
