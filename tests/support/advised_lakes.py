"""Generated lakes with a known truth for `advise`: which columns need filters, and the result of an exhaustive
run.

The exhaustive run shares nothing with `advise` but the rules of `bloomcli.advice.recommend`: pyarrow reads every
value, `bloom add` writes filters for every column into a copy, and `bloom probe` looks values up in all of its row
groups.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import bloomcli
from bloomcli.advice.recommend import recommend
from bloomcli.model.advice import ColumnAdvice, LookupCost, LookupGain
from bloomcli.model.file import Presence
from support.advice import exact, report

FILES: Final = 6
GROUPS: Final = 5
ROWS: Final = 2_000
"""Of a row group."""
TOTAL: Final = FILES * GROUPS * ROWS
LOOKUPS: Final = 120


Columns = Callable[[np.random.Generator], dict[str, pa.Array]]
"""Makes a lake's columns."""


@dataclass(frozen=True)
class Lake:
    """A lake's columns, and the expected reasons of the advice."""

    columns: Columns
    reasons: dict[str, str]
    """For each leaf column, the id of the reason that an expert would give; comments explain it."""
    rows: int = ROWS
    """Of a row group."""


def write(lake: Lake, folder: Path, *, seed: int = 1) -> Path:
    """Write the files of a lake."""
    folder.mkdir()
    for name, data in _files(lake.columns, lake.rows, seed).items():
        (folder / name).write_bytes(data)
    return folder


@functools.cache
def _files(columns: Columns, rows: int, seed: int) -> dict[str, bytes]:
    """The files of a lake by name, made once: many tests write the same."""
    table = pa.table(columns(np.random.default_rng(seed)))
    per_file = -(-table.num_rows // FILES)
    # of columns with many values, pages are plain, as they are in row groups of a usual size
    options: dict[str, Any] = {"dictionary_pagesize_limit": 2048, "store_decimal_as_integer": True}
    found = {}
    for number in range(FILES):
        file = pa.BufferOutputStream()
        pq.write_table(table.slice(number * per_file, per_file), file, row_group_size=rows, **options)
        found[f"part-{number:02}.parquet"] = file.getvalue().to_pybytes()
    return found


def texts(numbers: Iterable[int], form: str = "{:x}@example.org") -> pa.Array:
    """Texts of numbers."""
    return pa.array([form.format(int(n) * 2654435761 % 2**40) for n in numbers])


def cents(number: int) -> Decimal:
    """An amount of money."""
    return Decimal(int(number)).scaleb(-2)


def shuffled(rng: np.random.Generator, count: int = TOTAL) -> np.ndarray[Any, Any]:
    """Unique numbers in random order, with gaps between them."""
    return rng.permutation(count).astype(np.int64) * 3


def skewed(rng: np.random.Generator, different: int, count: int = TOTAL) -> np.ndarray[Any, Any]:
    """Numbers whose frequency falls with their rank, as words' do."""
    weights = 1 / np.arange(1, different + 1)
    return rng.choice(different, count, p=weights / weights.sum()).astype(np.int64) * 3


def in_own_groups(rng: np.random.Generator, each: int, different: int, rows: int = ROWS) -> np.ndarray[Any, Any]:
    """Few values in each row group, and far apart: a tenant's rows follow each other, tenants are in random order."""
    chosen = [rng.choice(different, each, replace=False) * 3 for _ in range(FILES * GROUPS)]
    return np.concatenate([rng.choice(some, rows) for some in chosen]).astype(np.int64)


def general(rng: np.random.Generator) -> dict[str, pa.Array]:
    """A column of each kind that advice distinguishes."""
    ids = shuffled(rng)
    return {
        "id": pa.array(ids),
        "seq": pa.array(np.arange(TOTAL) * 3),
        "near": pa.array(np.arange(TOTAL) * 3 + rng.integers(0, ROWS, TOTAL)),
        "tenant": pa.array(in_own_groups(rng, 20, 600)),
        "word": texts(skewed(rng, 20_000)),
        "status": pa.array(rng.choice(["open", "paid", "sent", "lost", "done"], TOTAL)),
        "one": pa.array(np.full(TOTAL, 7)),
        "flag": pa.array(rng.random(TOTAL) < 0.5),
        "sparse": pa.array(rng.permutation(TOTAL) * 3, mask=rng.random(TOTAL) < 0.95),
        "nothing": pa.array([None] * TOTAL, pa.int64()),
        "half": pa.array(rng.random(TOTAL).astype(np.float16)),
        "user": pa.StructArray.from_arrays([texts(rng.permutation(TOTAL))], ["email"]),
        "tags": pa.ListArray.from_arrays(np.arange(TOTAL + 1) * 2, pa.array(rng.integers(0, 50, TOTAL * 2))),
    }


GENERAL: Final = Lake(
    columns=general,
    reasons={
        "id": "saves",
        "seq": "sorted",
        "near": "sorted",  # min/max leaves a row group or two
        "tenant": "saves",  # few values in a row group, and different ones in the next
        "word": "saves",  # most words are rare
        "status": "few-values",
        "one": "few-values",
        "flag": "unfilterable",
        "sparse": "saves",
        "nothing": "unknown",
        "half": "loses-rows",  # DuckDB
        "user.email": "saves",
        "tags.list.element": "few-values",
    },
)


def tpch_orders(rng: np.random.Generator) -> dict[str, pa.Array]:
    """ORDERS as dbgen writes it: ten orders of a customer, and more rows in a row group than there are days."""
    dates = np.datetime64("1992-01-01") + rng.integers(0, 2406 // 4, TOTAL).astype("timedelta64[D]")
    return {
        "o_orderkey": pa.array(np.arange(TOTAL) * 4),
        "o_custkey": pa.array(rng.integers(0, TOTAL // 10, TOTAL) * 3),
        "o_orderstatus": pa.array(rng.choice(["F", "O", "P"], TOTAL, p=[0.49, 0.49, 0.02])),
        "o_totalprice": pa.array(map(cents, rng.integers(85_000, 55_000_000, TOTAL)), pa.decimal128(15, 2)),
        "o_orderdate": pa.array(rng.permutation(dates)),
        "o_orderpriority": pa.array(
            rng.choice(["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"], TOTAL)
        ),
        "o_clerk": texts(rng.integers(0, 100, TOTAL), "Clerk#{:012}"),
        "o_shippriority": pa.array(np.zeros(TOTAL, np.int32)),
        "o_comment": texts(rng.permutation(TOTAL), "carefully final {:x} packages haggle"),
    }


TPCH_ORDERS: Final = Lake(
    columns=tpch_orders,
    reasons={
        "o_orderkey": "sorted",
        "o_custkey": "saves",
        "o_orderstatus": "few-values",
        "o_totalprice": "seldom-looked-up",
        "o_orderdate": "few-values",  # every row group has more than half of the days
        "o_orderpriority": "few-values",
        "o_clerk": "few-values",
        "o_shippriority": "few-values",
        "o_comment": "saves",
    },
)


def clickbench(rng: np.random.Generator) -> dict[str, pa.Array]:
    """`hits` of ClickBench: sorted by counter and date; a user's hits follow each other, in random order of users."""
    users = rng.integers(1, 2**62, TOTAL // 12)
    visits = np.repeat(rng.choice(users, TOTAL // 4), 4)
    pages = skewed(rng, 30_000)
    return {
        "WatchID": pa.array(rng.permutation(TOTAL).astype(np.int64) * 154_435_871),
        "JavaEnable": pa.array(rng.integers(0, 2, TOTAL).astype(np.int16)),
        "CounterID": pa.array(np.sort(rng.integers(0, 6000, TOTAL)).astype(np.int32)),
        "EventDate": pa.array((np.arange(TOTAL) % ROWS * 31 // ROWS + 15_887).astype(np.uint16)),
        "UserID": pa.array(visits),
        "RegionID": pa.array(skewed(rng, 300).astype(np.int32)),
        "URL": texts(pages, "http://example.org/{:x}"),
        "URLHash": pa.array((pages * 2_862_933_555_777_941_757) % 2**61),
        "RefererHash": pa.array(rng.integers(0, 2**61, TOTAL)),
        "SearchPhrase": pa.array(np.where(rng.random(TOTAL) < 0.87, "", "word")),
        "IsRefresh": pa.array((rng.random(TOTAL) < 0.1).astype(np.int16)),
        "TraficSourceID": pa.array(rng.integers(-1, 10, TOTAL).astype(np.int16)),
    }


CLICKBENCH: Final = Lake(
    columns=clickbench,
    reasons={
        "WatchID": "saves",
        "JavaEnable": "few-values",
        "CounterID": "sorted",
        "EventDate": "few-values",  # the days of a month are in every row group
        "UserID": "saves",
        "RegionID": "few-values",
        "URL": "saves",
        "URLHash": "saves",
        "RefererHash": "saves",
        "SearchPhrase": "few-values",
        "IsRefresh": "few-values",
        "TraficSourceID": "few-values",
    },
)

LAKES: Final = {"general": GENERAL, "tpch-orders": TPCH_ORDERS, "clickbench": CLICKBENCH}


@dataclass(frozen=True)
class _Group:
    """A row group of one column: its values, and where it is."""

    path: Path
    number: int
    values: frozenset[Any]
    nbytes: int


def _groups(folder: Path, column: str) -> list[_Group]:
    found = []
    for path in sorted(folder.glob("*.parquet")):
        file = pq.ParquetFile(path)
        leaf = [file.schema.column(i).path for i in range(len(file.schema))].index(column)
        for number in range(file.num_row_groups):
            array: Any = file.read_row_group(number, columns=[column]).column(0).combine_chunks()
            while isinstance(array, pa.StructArray | pa.ListArray):
                array = array.flatten() if isinstance(array, pa.ListArray) else array.field(0)
            metadata = file.metadata.row_group(number)
            assert metadata.column(leaf).path_in_schema == column
            nbytes = sum(metadata.column(i).total_compressed_size for i in range(metadata.num_columns))
            found.append(_Group(path, number, frozenset(array.drop_null().unique().to_pylist()), nbytes))
    return found


def absent_value(rng: random.Random, known: Sequence[Any], present: frozenset[Any]) -> Any:
    """An absent value between those of the column; None if there is none."""
    for _ in range(100):
        near = rng.choice(known)
        step = rng.choice([1, 2])
        more: Any = "z" * step if isinstance(near, str) else timedelta(step) if isinstance(near, date) else step
        value = near + more
        if value not in present and known[0] <= value <= known[-1]:
            return value
    return None


def exhaustive(folder: Path, filtered: Path, column: str, *, seed: int, fpp: float = 0.01) -> ColumnAdvice:
    """The figures of a column by looking values up in every row group of the files with filters, with its
    recommendation."""
    groups = [group for group in _groups(folder, column) if group.values]
    rng = random.Random(seed)
    everything = frozenset().union(*(group.values for group in groups))
    known = sorted(everything)
    present = [rng.choice(sorted(rng.choice(groups).values)) for _ in range(LOOKUPS)]
    absent = [value for _ in range(LOOKUPS) if (value := absent_value(rng, known, everything)) is not None]
    kinds = {"present": present, "absent": absent}
    sizes = {
        (path, fact.row_group): fact.bitset_bytes or 0
        for path in {group.path for group in groups}
        for fact in bloomcli.inspect(filtered / path.name, columns=[column]).filters
    }
    gains, saved = {}, []
    for kind, values in kinds.items():
        if not values:
            continue
        gain, less = _looked_up(groups, filtered, column, values, sizes)
        gains[kind] = gain
        saved.append(less)
    each = sum(len(group.values) for group in groups) / len(groups)
    bounds = [(min(group.values), max(group.values)) for group in groups]
    figures = ColumnAdvice(
        column=column,
        type="",
        recommended=False,
        reason="",
        reason_id="",
        row_groups=len(groups),
        rows=TOTAL,
        nulls=0,
        distinct=exact(len(everything)),
        distinct_per_row_group=exact(each),
        overlap=exact(
            sum(least <= value <= most for least, most in bounds for value in present) / len(groups) / len(present)
        ),
        filter_bytes=exact(sum(sizes.values())),
        saved_bytes=exact(sum(saved) / len(saved)),
        **gains,
    )
    return recommend(figures, report(fpp=fpp))


def _looked_up(
    groups: Sequence[_Group], filtered: Path, column: str, values: Sequence[Any], sizes: dict[tuple[Path, int], int]
) -> tuple[LookupGain, float]:
    """The costs of lookups of the values, and the mean bytes that a lookup reads less with filters."""
    today = after = today_bytes = after_bytes = filter_bytes = 0
    nbytes = {(group.path, group.number): group.nbytes for group in groups}
    for path in {group.path for group in groups}:
        report = bloomcli.probe(filtered / path.name, [str(value) for value in values], column=column)
        for verdict in report.verdicts:
            place = (path, verdict.row_group)
            if verdict.stats_skip or place not in nbytes:
                continue
            today += 1
            today_bytes += nbytes[place]
            filter_bytes += sizes[place]
            if verdict.presence is not Presence.ABSENT:
                after += 1
                after_bytes += nbytes[place]
    count, share = len(values), len(values) * len(groups)
    gain = LookupGain(
        values=count,
        today=LookupCost(row_groups=exact(today / share), bytes=exact(today_bytes / count)),
        with_filter=LookupCost(row_groups=exact(after / share), bytes=exact(after_bytes / count)),
    )
    return gain, (today_bytes - after_bytes - filter_bytes) / count
