"""For any table and any options: no value goes missing, and a file comes back whole when its filters go."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import blooms
from support.tables import COMPRESSIONS, leaves, packed, write

import bloomcli
from bloomcli.model.file import Presence

pytestmark = pytest.mark.slow

QUICK = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class File:
    """A table and how it is written."""

    table: pa.Table
    options: dict[str, Any]


TEXT = st.text(max_size=12)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "f32": (pa.float32(), st.floats(width=32)),
    "f64": (pa.float64(), st.floats()),
    "text": (pa.string(), TEXT),
    "blob": (pa.binary(), st.binary(max_size=20)),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4)),
    "texts": (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.none() | st.lists(st.none() | TEXT, max_size=3), max_size=3),
    ),
    "struct": (pa.struct([("x", pa.float64())]), st.fixed_dictionaries({"x": st.none() | st.floats()})),
}


@st.composite
def files(draw: st.DrawFn) -> File:
    """One to three columns of any kind, up to 60 rows, in any layout."""
    rows = draw(st.integers(0, 60))
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    columns = {}
    for name in names:
        kind, values = KINDS[name]
        columns[name] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
    options = {
        "rows": draw(st.sampled_from([7, 20, 1000])),
        "page_version": draw(st.sampled_from([1, 2])),
        "dictionary": draw(st.booleans()),
        "compression": draw(st.sampled_from(COMPRESSIONS)),
        "write_page_index": draw(st.booleans()),
        "data_page_size": draw(st.sampled_from([64, 1 << 20])),
        "write_batch_size": draw(st.sampled_from([3, 1024])),
        "dictionary_pagesize_limit": draw(st.sampled_from([40, 1 << 20])),
        "store_schema": draw(st.booleans()),
    }
    return File(pa.table(columns), options)


@contextmanager
def written(file: File) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield write(Path(folder) / "in.parquet", file.table, **file.options)


rates = st.floats(1e-6, 0.9)
caps = st.none() | st.sampled_from([32, 64, 1024])


@QUICK
@given(files(), rates, caps, st.none() | st.integers(1, 5000))
def test_no_value_is_ever_missing(file: File, fpp: float, cap: int | None, ndv: int | None) -> None:
    with written(file) as path:
        out = path.with_name("out")
        report = bloomcli.add(path, ["*"], output=out, fpp=fpp, max_bytes=cap, ndv=ndv, readers="spark")
        checked = bloomcli.validate(out, deep=True, require=["*"])
        assert checked.findings == ()
        for change in report.changes:
            assert change.bitset_bytes is not None
            assert cap is None or change.bitset_bytes <= cap
            bits = bloomcli.dump(out, column=change.column, row_group=change.row_group).bitset
            assert len(bits) == change.bitset_bytes
            assert change.misses_target == (blooms.rate(bits) > fpp)
            assert ndv is not None or cap is not None or not change.misses_target
        assert repr(pq.read_table(out).to_pylist()) == repr(file.table.to_pylist())  # NaN equals itself as text


@QUICK
@given(files(), st.randoms(use_true_random=False), rates, rates)
def test_rounds_of_adds_replacements_and_removals_end_where_they_began(
    file: File, random: Any, first: float, second: float
) -> None:
    with written(file) as path:
        before = path.read_bytes()
        schema = pq.ParquetFile(path).schema
        columns = [schema.column(i).path for i in range(len(schema))]
        random.shuffle(columns)
        for column in columns:
            bloomcli.add(path, [column], in_place=True, fpp=first, readers="spark")
        bloomcli.add(path, columns[:1], in_place=True, fpp=second, replace=True, readers="spark")
        bloomcli.fold(path, in_place=True, fpp=max(first, second))
        assert bloomcli.validate(path, deep=True, require=columns).findings == ()
        random.shuffle(columns)
        for column in columns:
            bloomcli.remove(path, columns=[column], in_place=True)
        assert path.read_bytes() == before


@QUICK
@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=50), rates, st.booleans())
def test_probe_says_maybe_of_every_value_and_never_more_often_than_the_bits_allow(
    values: list[int | None], fpp: float, dictionary: bool
) -> None:
    file = File(pa.table({"c": pa.array(values, pa.int64())}), {"dictionary": dictionary})
    present = set(leaves(values))
    others = [v for v in range(-50, 50) if v not in present]
    with written(file) as path:
        bloomcli.add(path, ["c"], in_place=True, fpp=fpp)
        report = bloomcli.probe(path, [str(v) for v in [*present, *others]], column="c")
        if not values:
            assert report.absent_everywhere
            return
        bits = bloomcli.dump(path, column="c").bitset
        plain = packed("<q")
        for value, verdict in zip([*present, *others], report.verdicts, strict=True):
            block, positions = blooms.positions(blooms.hash_of(plain(value)), len(bits) // 32)
            words = [int.from_bytes(bits[block * 32 + w * 4 :][:4], "little") for w in range(8)]
            hit = all(word >> bit & 1 for word, bit in zip(words, positions, strict=True))
            assert hit or value not in present
            assert verdict.presence is (Presence.MAYBE if hit and present else Presence.ABSENT)
