"""The ways to add a filter to a file, and their baselines. Each runs in a separate process.

    python benchmarks/ways.py WAY FILE OUTPUT COLUMN GROUP     one way; prints the seconds of the work inside as JSON

FILE and OUTPUT may be directories of files. GROUP is the number of rows in a row group that the way makes.

`bloom add` and `cp` run as commands. Spark is the exception: its job is timed inside a running session, in
`SparkSessionWay`.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FPP: Final = 0.01


def pyarrow_rewrite(file: str, output: str, column: str, group: int) -> None:
    """Read the file and write it again, with the filter."""
    import pyarrow.parquet as pq

    pq.write_table(
        pq.read_table(file),
        output,
        compression="zstd",
        row_group_size=group,
        bloom_filter_options={column: {"ndv": group, "fpp": FPP}},
    )


def duckdb_copy(file: str, output: str, column: str, group: int) -> None:
    """COPY the file; DuckDB chooses the columns that get filters: those that it dictionary-encodes."""
    del column
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (FROM read_parquet('{file}')) TO '{output}' (FORMAT parquet, COMPRESSION zstd, "
            f"ROW_GROUP_SIZE {group}, BLOOM_FILTER_FALSE_POSITIVE_RATIO {FPP})"
        )


def datafusion_copy(file: str, output: str, column: str, group: int) -> None:
    """COPY the file with arrow-rs on all cores, with a filter on the one column. Rows may change their order."""
    import datafusion

    context = datafusion.SessionContext()
    context.register_parquet("t", file)
    context.sql(
        f"COPY t TO '{output}' STORED AS PARQUET OPTIONS ('format.compression' 'zstd(1)',"
        f" 'format.max_row_group_size' '{group}', 'format.bloom_filter_enabled::{column}' 'true',"
        f" 'format.bloom_filter_fpp::{column}' '{FPP}', 'format.bloom_filter_ndv::{column}' '{group}')"
    ).collect()


def arro3_rewrite(file: str, output: str, column: str, group: int) -> None:
    """Read and write with arrow-rs on one core. Its Python package has filters for all columns or for none."""
    del column
    from arro3.io import read_parquet, write_parquet

    options = {"bloom_filter_enabled": True, "bloom_filter_fpp": FPP, "bloom_filter_ndv": group}
    write_parquet(read_parquet(file), output, compression="zstd(1)", max_row_group_size=group, **options)


def clickhouse_insert(file: str, output: str, column: str, group: int) -> None:
    """INSERT INTO FUNCTION file; ClickHouse writes filters for all columns or for none."""
    del column
    from chdb import session

    settings = {
        "output_format_parquet_write_bloom_filter": 1,
        "output_format_parquet_row_group_size": group,
        "output_format_parquet_compression_method": "'zstd'",
        "engine_file_truncate_on_insert": 1,
    }
    listed = ", ".join(f"{name} = {value}" for name, value in settings.items())
    session.Session().query(
        f"INSERT INTO FUNCTION file('{output}', Parquet) SELECT * FROM file('{file}', Parquet) SETTINGS {listed}"
    )


def bloomcli_add(file: str, output: str, column: str, group: int) -> None:
    """The call behind `bloom add`, in a process that has imported its modules."""
    del group
    import bloomcli

    bloomcli.add(file, [column], output=output, fpp=FPP)


def decode(file: str, output: str, column: str, group: int) -> None:
    """Decode the one column, and write nothing."""
    del output, group
    import pyarrow.parquet as pq

    pq.read_table(file, columns=[column])


PROCESSES: Final[dict[str, Callable[[str, str, str, int], None]]] = {
    "call": bloomcli_add,
    "pyarrow": pyarrow_rewrite,
    "duckdb": duckdb_copy,
    "datafusion": datafusion_copy,
    "arro3": arro3_rewrite,
    "clickhouse": clickhouse_insert,
    "decode": decode,
}
COMMANDS: Final = ("bloom", "cp", "cp+sync", *PROCESSES)
IMPORTS: Final = {
    "call": ("pyarrow", "bloomcli.commands.add", "bloomcli.formats.parquet.file"),
    "pyarrow": ("pyarrow.parquet",),
    "decode": ("pyarrow.parquet",),
    "duckdb": ("duckdb",),
    "datafusion": ("datafusion",),
    "arro3": ("arro3.io",),
    "clickhouse": ("chdb.session",),
}
PEERS: Final = ("datafusion", "arro3", "pyarrow", "duckdb", "clickhouse", "spark")
"""Other ways that may put the filter into a file."""
WRITERS: Final = ("bloom", "call", *PEERS)
"""Ways that may put the filter into a file."""

TITLES: Final = {
    "bloom": "`bloom add`",
    "call": "`bloomcli.add`, a script",
    "pyarrow": "pyarrow read + write",
    "duckdb": "DuckDB COPY",
    "datafusion": "DataFusion COPY (arrow-rs, all cores)",
    "arro3": "arro3 read + write (arrow-rs, one core)",
    "clickhouse": "ClickHouse INSERT INTO FUNCTION file",
    "spark": "Spark rewrite (session started)",
    "cp": "`cp`",
    "cp+sync": "`cp`, then `sync FILE`",
    "decode": "decode the column (pyarrow)",
}


def python(*arguments: str) -> list[str]:
    """A command of this Python."""
    return [sys.executable, *arguments]


def environment() -> dict[str, str]:
    """The environment that measures the repository's bloomcli, compiled to bytecode as pip compiles packages."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)}


def command(way: str, file: Path, output: Path, column: str, group: int = 0) -> list[str]:
    """The command line of a way; `group` is the number of rows in a row group of a rewrite."""
    if way == "bloom":
        add = ("-m", "bloomcli", "add", str(file), "--columns", column, "-o", str(output))
        return python(*add, "--overwrite", "--fpp", str(FPP), "--format", "json")
    if way == "cp":
        return ["cp", str(file), str(output)]
    if way == "cp+sync":
        return ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "sh", str(file), str(output)]
    return python(str(Path(__file__).resolve()), way, str(file), str(output), column, str(group))


def run(argv: list[str]) -> tuple[float, str]:
    """(seconds of wall time from start to end, standard output) of a command that must succeed."""
    started = time.perf_counter()
    done = subprocess.run(argv, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, done.stdout


def inside(way: str, output: str, seconds: float) -> float | None:
    """Seconds of the work alone, without the interpreter's start and imports; None if unknown."""
    if way in PROCESSES:
        return float(json.loads(output)["seconds"])
    return None if way == "bloom" else seconds


class SparkSessionWay:
    """A Spark session that rewrites files with a filter; started once, before anything is timed."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(ROOT / "tests"))
        from support.engines import start_spark

        self.session = start_spark(folder / "spark")
        self.version = self.session.version

    def rewrite(self, file: Path, output: Path, column: str, ndv: int) -> float:
        """Seconds of one job."""
        started = time.perf_counter()
        (
            self.session.read.parquet(str(file))
            .write.mode("overwrite")
            .option("compression", "zstd")
            .option(f"parquet.bloom.filter.enabled#{column}", "true")
            .option(f"parquet.bloom.filter.expected.ndv#{column}", str(ndv))
            .option(f"parquet.bloom.filter.fpp#{column}", str(FPP))
            .option("parquet.bloom.filter.max.bytes", str(128 << 20))
            .parquet(str(output))
        )
        return time.perf_counter() - started

    def stop(self) -> None:
        """End the session."""
        self.session.stop()


def main() -> None:
    """Run one way."""
    way, file, output, column, group = sys.argv[1:]
    for name in IMPORTS[way]:
        importlib.import_module(name)
    started = time.perf_counter()
    if Path(file).is_dir():
        Path(output).mkdir()
        for one in sorted(Path(file).iterdir()):
            PROCESSES[way](str(one), str(Path(output) / one.name), column, int(group))
    else:
        PROCESSES[way](file, output, column, int(group))
    print(json.dumps({"seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()
