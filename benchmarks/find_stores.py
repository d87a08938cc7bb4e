"""Counts the requests of `bloom find` to an object store for files with a hit, by their layout.

    python benchmarks/find_stores.py FOLDER [--files 20] [--output FILE]

The store is that of `benchmarks/stores.py`: MinIO behind the tests' proxy, with 20 ms and 100 MB/s. Requests are
those that the proxy counted for ranges of the files, and seconds are those of the whole command. Each file has one
row with the value, in the middle. `RESULTS-FIND-STORES.md` has the results.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from stores import BUCKET, Figure, Lake, lake, put_all, table_of

NOT_BOUNDED: Final = float("inf")
WITH_INDEX: Final = 2
"""Requests for a file with a hit, at most."""


class Layout(NamedTuple):
    """The layout of files in which a value is looked up."""

    name: str
    groups: int
    rows: int
    """Of a row group."""
    columns: int
    options: dict[str, Any]
    most: float = WITH_INDEX
    """Requests for a file with a hit with an index, at most."""


LAYOUTS: Final = (
    Layout("one row group of 10,000 rows, 4 columns", 1, 10_000, 4, {}),
    Layout("10 row groups of 10,000 rows, 4 columns", 10, 10_000, 4, {}),
    Layout("the same with page indexes", 10, 10_000, 4, {"write_page_index": True}),
    Layout("10 row groups of 10,000 rows, 20 columns", 10, 10_000, 20, {}),
    Layout("4 row groups of 200,000 rows, 10 columns", 4, 200_000, 10, {}),
    Layout(
        "the same with page indexes, by the id in order",
        4,
        200_000,
        10,
        {"write_page_index": True, "data_page_size": 64 << 10},
    ),
    Layout("4 row groups of 200,000 rows, 10 columns, the id in the middle", 4, 200_000, 10, {}),
    Layout("2 row groups of 1,000,000 rows, 4 columns", 2, 1_000_000, 4, {}, NOT_BOUNDED),
    Layout(
        "2 row groups of 1,000,000 rows, 4 columns with page indexes, by the id in order",
        2,
        1_000_000,
        4,
        {"write_page_index": True},
        NOT_BOUNDED,
    ),
)


def written(folder: Path, layout: Layout) -> bytes:
    """A file with the value in one row."""
    rng = np.random.default_rng(3)
    count = layout.groups * layout.rows
    ids = np.sort(rng.integers(0, 1 << 60, count)) if "order" in layout.name else rng.integers(0, 1 << 60, count)
    names = [f"c{n}" for n in range(layout.columns - 1)]
    names.insert(len(names) // 2 if "middle" in layout.name else 0, "id")
    table = pa.table({name: ids if name == "id" else rng.integers(0, 1 << 60, count) for name in names})
    path = folder / "find.parquet"
    blooms = {"id": {"ndv": layout.rows, "fpp": 0.0001}}  # a false positive adds a row group
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "bloom_filter_options": blooms}
    pq.write_table(table, path, row_group_size=layout.rows, **options, **layout.options)
    return path.read_bytes()


def value_of(folder: Path) -> int:
    """The value to find, in a row in the middle."""
    file = pq.ParquetFile(folder / "find.parquet")
    group = file.read_row_group(file.num_row_groups // 2, columns=["id"]).column(0)
    value = group[len(group) // 2 + 1].as_py()  # the one before is a false positive of another row group
    return int(value)


def find(made: Lake, folder: Path, layout: Layout, files: int) -> Iterator[Figure]:
    """`find` with an index and without, of one column and of all."""
    prefix = layout.name.replace(" ", "-").replace(",", "")
    put_all(made, prefix, written(folder, layout), files)
    where, value, index = f"s3://{BUCKET}/{prefix}/", value_of(folder), folder / f"{prefix}.bloom-index"
    made.bloom("index", "build", where, "-c", "id", "-o", index, "--overwrite")
    for name, options, most in (
        ("with an index", ("--index", index), layout.most),
        ("with an index, one column", ("--index", index, "--select", "id"), layout.most),
        ("without an index", (), NOT_BOUNDED),
        ("--maybe", ("--maybe",), NOT_BOUNDED),
    ):
        run = made.bloom("find", value, where, "-c", "id", *options)
        requests = run.kinds.get("GetObject", 0) / files
        yield Figure(f"{layout.name}, {name}: requests for a file", requests, most, form="{:.2f}")
        yield Figure(f"{layout.name}, {name}: KiB for a file", run.downloaded / files / 1024, NOT_BOUNDED)
        yield Figure(f"{layout.name}, {name}: seconds", run.seconds, NOT_BOUNDED, form="{:.2f}")


def main() -> int:
    """Measure, print the table; return 1 if a figure exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20, help="files of a layout")
    parser.add_argument("--output", type=Path, help="write the table there too")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    figures: list[Figure] = []
    layouts: Sequence[Layout] = LAYOUTS
    with lake() as made:
        for layout in layouts:
            for figure in find(made, options.folder, layout, options.files):
                figures.append(figure)
                print(table_of([figure]).splitlines()[-1], flush=True)
    text = table_of(figures)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
