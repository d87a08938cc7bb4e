"""Writes taxi trips like those that New York City publishes, with random values: python3 trips.py FOLDER."""

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS, FILES = 40_000, 4


def month(number: int) -> pa.Table:
    """The trips of a month, in the order of their times."""
    chance = random.Random(number)  # noqa: S311  example data
    start = datetime(2026, number + 1, 1)
    return pa.table(
        {
            "trip_id": [f"{chance.getrandbits(64):016x}" for _ in range(ROWS)],
            "medallion": [f"{chance.randrange(13_000):05d}" for _ in range(ROWS)],
            "pickup": [start + timedelta(minutes=trip) for trip in range(ROWS)],
            "distance": [round(chance.expovariate(0.4), 2) for _ in range(ROWS)],
            "payment": [chance.choice(["card", "cash", "app"]) for _ in range(ROWS)],
        }
    )


folder = Path(sys.argv[1])
folder.mkdir()
for number in range(FILES):
    pq.write_table(month(number), folder / f"2026-{number + 1:02d}.parquet", row_group_size=4_000)
