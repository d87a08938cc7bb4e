"""Generated lakes with a known truth for `advise`: which columns need filters, and why the others don't."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILES: Final = 6
GROUPS: Final = 5
ROWS: Final = 2_000
"""Of a row group."""
TOTAL: Final = FILES * GROUPS * ROWS


Columns = Callable[[np.random.Generator], dict[str, pa.Array]]
"""Makes a lake's columns."""


@dataclass(frozen=True)
class Lake:
    """A lake's columns, and the expected reasons of the advice."""

    columns: Columns
    reasons: dict[str, str]
    """For each leaf column, the id of the reason that an expert would give; comments explain it."""


def write(lake: Lake, folder: Path) -> Path:
    """Write the files of a lake."""
    folder.mkdir()
    for name, data in _files(lake.columns).items():
        (folder / name).write_bytes(data)
    return folder


@functools.cache
def _files(columns: Columns) -> dict[str, bytes]:
    """The files of a lake by name, made once: many tests write the same."""
    table = pa.table(columns(np.random.default_rng(1)))
    per_file = -(-table.num_rows // FILES)
    # of columns with many values, pages are plain, as they are in row groups of a usual size
    options: dict[str, Any] = {"dictionary_pagesize_limit": 2048, "store_decimal_as_integer": True}
    found = {}
    for number in range(FILES):
        file = pa.BufferOutputStream()
        pq.write_table(table.slice(number * per_file, per_file), file, row_group_size=ROWS, **options)
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
