"""A directory of Parquet files for tests of `find`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

FILES: Final = 4
ROWS: Final = 2000
GROUP: Final = 500


def made(lake: Path) -> Path:
    """Write files into partitions of a directory. The ids are 7 * n modulo their number, so that each occurs once."""
    for file in range(FILES):
        numbers = range(file * ROWS, (file + 1) * ROWS)
        table = pa.table(
            {
                "id": [7 * n % (FILES * ROWS) for n in numbers],
                "name": [f"name {n % 10}" for n in numbers],
                "place": [{"city": f"c{n % 3}", "zip": n} for n in numbers],
            }
        )
        (lake / f"day={file}").mkdir()
        pq.write_table(
            table,
            lake / f"day={file}/part.parquet",
            row_group_size=GROUP,
            use_dictionary=False,
            write_page_index=True,
            data_page_size=800,
            write_batch_size=100,
            bloom_filter_options={"id": {"ndv": GROUP, "fpp": 0.001}},
        )
    (lake / "notes.txt").write_text("nothing")
    return lake


def place_of(number: int) -> tuple[int, int]:
    """The file and the row of an id."""
    found = next(n for n in range(FILES * ROWS) if 7 * n % (FILES * ROWS) == number)
    return divmod(found, ROWS)
