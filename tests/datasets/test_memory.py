"""Memory is bounded by batches and filters, not by the file or the row group: measured as peak resident size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.peak_memory import GIVES_BACK

from bloomcli import limits

MIB = 1 << 20
ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
sys.path.insert(0, "tests")
import pyarrow  # what decompresses; its own size is not the question
from support.peak_memory import peak, reset
from bloomcli.cli import run
reset()
before = peak()
code = run(sys.argv[1:])
print(code, peak() - before, file=sys.stderr)
"""


def growth(*args: object) -> int:
    """Bytes by which a command's peak resident size is above that of the interpreter with its libraries."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, args)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | GIVES_BACK,
        check=True,
    )
    code, grown = done.stderr.split()
    assert code == "0"
    return int(grown)


def columns(rows: int) -> dict[str, pa.Array]:
    """Random integers and random 36-byte strings, 44 bytes a row."""
    random = np.random.default_rng(7)
    text = random.integers(97, 122, (rows, 36), np.uint8).tobytes()
    offsets = np.arange(0, 36 * rows + 1, 36, np.int32)
    strings = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text))
    return {"i": pa.array(random.integers(-(1 << 60), 1 << 60, rows)), "s": strings}


def write(path: Path, rows: int) -> Path:
    """One row group."""
    pq.write_table(pa.table(columns(rows)), path, row_group_size=rows, use_dictionary=False, compression="zstd")
    assert pq.ParquetFile(path).num_row_groups == 1
    return path


@pytest.mark.slow
def test_memory_does_not_grow_with_the_row_group(tmp_path: Path) -> None:
    small, large = write(tmp_path / "small.parquet", 250_000), write(tmp_path / "large.parquet", 2_000_000)
    assert large.stat().st_size > 50 * MIB
    added, validated = [], []
    for path in (small, large):
        out = path.with_suffix(".out")
        added.append(growth("add", path, "-c", "i,s", "--ndv", "100000", "-o", out, "--threads", "2"))
        validated.append(growth("validate", out, "--deep"))
    for peaks in (added, validated):
        assert peaks[1] < peaks[0] + 24 * MIB, peaks
        assert peaks[1] < 48 * MIB, peaks


def write_orc(path: Path, rows: int) -> Path:
    """One stripe, with a column that isn't used."""
    money = pa.array(np.random.default_rng(8).integers(0, 10**9, rows)).cast(pa.decimal128(19, 0))
    table = pa.table({**columns(rows), "d": money})
    orc.write_table(table, path, stripe_size=1 << 30, compression="zstd", dictionary_key_size_threshold=0)
    assert orc.ORCFile(path).nstripes == 1
    return path


@pytest.mark.slow
def test_memory_does_not_grow_with_an_orc_stripe_whose_columns_are_read_from_their_streams(tmp_path: Path) -> None:
    small, large = write_orc(tmp_path / "small.orc", 200_000), write_orc(tmp_path / "large.orc", 1_200_000)
    assert large.stat().st_size > 30 * MIB
    added, validated, filters = [], [], []
    for path in (small, large):
        out = path.with_suffix(".out")
        added.append(growth("add", path, "-c", "i,s", "-o", out, "--threads", "2"))
        validated.append(growth("validate", out, "--deep", "--columns", "i,s"))
        filters.append(out.stat().st_size - path.stat().st_size)
    for peaks in (added, validated):
        assert peaks[1] - peaks[0] < 2.5 * (filters[1] - filters[0]) + 12 * MIB, (peaks, filters)
        assert peaks[1] < 60 * MIB, (peaks, filters)


@pytest.mark.slow
def test_memory_is_bounded_by_the_stripes_of_columns_that_pyarrow_decodes(tmp_path: Path) -> None:
    """Ten stripes take as much memory as one; a stripe of the column has 16 bytes for each row."""
    stripes = []
    for name, count in (("one", 1), ("ten", 10)):
        path = tmp_path / f"{name}.orc"
        money = pa.array(np.random.default_rng(7).integers(0, 10**9, 500_000)).cast(pa.decimal128(19, 0))
        with orc.ORCWriter(path, stripe_size=1, batch_size=500_000, compression="uncompressed") as writer:
            for _ in range(count):
                writer.write(pa.table({"d": money}))
        assert orc.ORCFile(path).nstripes == count
        stripes.append(growth("add", path, "-c", "d", "-o", path.with_suffix(".out"), "--threads", "1"))
    assert stripes[1] < stripes[0] + 24 * MIB, stripes


# --- filters in flight

ROOM = limits.FILTERS_IN_FLIGHT_MAX_BYTES


def write_groups(path: Path, groups: int, columns: int, values: int) -> Path:
    """Equal row groups of distinct integers: each chunk gets a filter of the full size."""
    numbers = np.arange(values, dtype=np.int32) * 1_003
    table = pa.table({f"c{i}": numbers + np.int32(i) for i in range(columns)})
    with pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False) as writer:
        for _ in range(groups):
            writer.write_table(table, row_group_size=values)
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 chunks of 3 MB, whose filters have 4 MiB each at 0.01 %, 8 MiB at 0.0001 %."""
    return write_groups(tmp_path_factory.mktemp("many") / "many.parquet", 6, 8, 800_000)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 32])
def test_memory_does_not_grow_with_the_filters(many: Path, threads: int, tmp_path: Path) -> None:
    out = tmp_path / "out"
    peak = growth("add", many, "-c", "*", "--fpp", "0.0001", "-o", out, "--threads", threads)
    assert out.stat().st_size - many.stat().st_size > 190 * MIB
    out.unlink()
    assert peak < ROOM + (4 if threads == 2 else 40) * MIB, "threads hold pages; without the ceiling, 32 take 270 MiB"


@pytest.mark.slow
def test_memory_does_not_grow_with_filters_that_are_taken_out_replaced_or_folded(many: Path, tmp_path: Path) -> None:
    loose, out = tmp_path / "loose", tmp_path / "out"
    growth("add", many, "-c", "*", "--fpp", "0.000001", "-o", loose, "--threads", "2")
    assert loose.stat().st_size - many.stat().st_size > 380 * MIB
    orders: dict[str, tuple[object, ...]] = {
        "remove": (),
        "fold": ("--fpp", "0.0001"),
        "add": ("-c", "*", "--fpp", "0.0001", "--replace", "--threads", "2"),
    }
    for command, options in orders.items():
        peak = growth(command, loose, *options, "-o", out, "--overwrite")
        assert peak < ROOM + 40 * MIB, command
        out.unlink()
    loose.unlink()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_filters_of_an_orc_file(tmp_path: Path) -> None:
    path, out = tmp_path / "in.orc", tmp_path / "out"
    numbers = np.arange(400_000, dtype=np.int64) * 1_000_003
    table = pa.table({f"c{i}": numbers + i for i in range(4)})
    with orc.ORCWriter(path, stripe_size=1, batch_size=400_000, compression="uncompressed") as writer:
        for _ in range(60):
            writer.write(table)
    assert orc.ORCFile(path).nstripes == 60
    peak = growth("add", path, "-c", "*", "--fpp", "0.0001", "-o", out, "--threads", "8")
    assert out.stat().st_size - path.stat().st_size > 150 * MIB
    assert peak < ROOM + 40 * MIB


@pytest.mark.slow
def test_filters_are_written_while_the_body_is_copied_where_others_would_wait_for_their_memory(
    many: Path, tmp_path: Path
) -> None:
    """The same bytes as without that: nothing is lost between the copied bytes and the filters written after them."""
    outs = []
    for name, ceiling in (("free", 1 << 40), ("tight", 8 * MIB)):
        out = tmp_path / name
        program = (
            "import sys\n"
            "from bloomcli import limits\n"
            f"limits.FILTERS_IN_FLIGHT_MAX_BYTES = {ceiling}\n"
            "from bloomcli.storage.local.copying import NewFile\n"
            "placed = []\n"
            "real = NewFile.write_at\n"
            "def write_at(self, offset, data):\n"
            "    placed.append(offset)\n"
            "    assert self.position < offset\n"
            "    real(self, offset, data)\n"
            "NewFile.write_at = write_at\n"
            "import time\n"
            "copy = NewFile.copy_range\n"
            "def slowly(self, *args, **more):\n"
            "    time.sleep(0.1)\n"
            "    copy(self, *args, **more)\n"
            "NewFile.copy_range = slowly\n"
            "from bloomcli.cli import run\n"
            "print(run(sys.argv[1:]), len(placed), file=sys.stderr)\n"
        )
        arguments = ["add", many, "-c", "c0,c1", "-o", out, "--threads", "2"]
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
        code, placed = map(int, done.stderr.split())
        assert code == 0
        assert (placed > 0) is (name == "tight")
        outs.append(out)
    assert outs[0].read_bytes() == outs[1].read_bytes()


@pytest.mark.slow
def test_a_value_of_find_takes_at_most_a_hundred_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    numbers = random.integers(0, 1 << 40, 300_000)
    path = tmp_path / "f.parquet"
    options = {"i": {"ndv": 100_000, "fpp": 0.01}}
    pq.write_table(pa.table({"i": numbers}), path, row_group_size=100_000, bloom_filter_options=options)
    peaks = []
    for count in (1_200_000, 3_200_000):
        values = tmp_path / "values.txt"
        others = random.integers(0, 1 << 40, count)
        values.write_text("\n".join(map(str, [*numbers[:10].tolist(), *others.tolist()])))
        out = tmp_path / f"{count}.csv"
        peaks.append(
            growth("find", "--values-from", values, path, "-c", "i", "-f", "csv", "-o", out, "-q", "-j", "1")
        )
        assert out.read_text().count("\n") > 10
    assert peaks[1] - peaks[0] < 100 * 2_000_000, peaks
    assert peaks[1] < 400 * MIB, peaks
