"""Hostile Parquet files: bloom takes bounded work and memory, or refuses them with a reason, and can be interrupted.

Work is counted in pieces (`support/counting`), between which a stop is obeyed, because seconds depend on the machine.

`hostile/README.md` describes each file.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import footers, measured_command, thrift, work
from support.pagefiles import MEBI, one_page, one_string, prefixes, squeezed, steps
from support.processes import wait_until
from support.tables import write
from support.thrift import Fields

import bloomcli
from bloomcli.cli import run
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import limits as parquet_limits

pytestmark = pytest.mark.slow

HOSTILE: Final = Path(__file__).parents[1] / "hostile"
MEMORY_MAX_BYTES: Final = 512 << 20
PIECES_MAX: Final = 2500
"""The most is 2,049, for a page of 1 GiB that is decompressed once, in windows of 1 MiB."""
BLOOM: Final = [sys.executable, "-m", "bloomcli"]

DAMAGED: Final = {
    "bomb-delta256m": ("delta header", "row_groups[0].columns[0]"),
    "bomb-delta2g": ("delta header", "row_groups[0].columns[0]"),
    "byte-array-with-delta-binary-packed": (
        "values of the type BYTE_ARRAY in the encoding DELTA_BINARY_PACKED",
        "row_groups[0].columns[0]",
    ),
    "empty-dictionary-referred-to-1": ("a dictionary index of 0, but the dictionary has 0 values", "row_groups[0]"),
    "empty-dictionary-referred-to-2": ("a dictionary index of 0, but the dictionary has 0 values", "row_groups[0]"),
    "repetition-type-minus-one": ("the repetition type -1; the valid ones are 0 to 2", "schema[1].repetition_type"),
    "repetition-type-unknown": ("a level of 2, but the highest is 1", "row_groups[0].columns[5]"),
    "rle-level-above-maximum-1": ("a level of 244, but the highest is 1", "row_groups[0].columns[1]"),
    "rle-level-above-maximum-2": ("a level of 17, but the highest is 1", "row_groups[1].columns[0]"),
    "rle-level-above-maximum-3": ("a level of 191, but the highest is 1", "row_groups[0].columns[1]"),
}
"""Files that contradict themselves, with the message and the field."""
BEYOND: Final = dict.fromkeys(
    ("bomb-deltab_26", "bomb-deltab_28", "bomb-deltab_30"), "more than 33554432 different values"
)
"""Files that claim more than a ceiling allows."""
READ: Final = {"bomb-delta-byte-array-1m": 1, "bomb-dict2g": 1, "bomb-nulls2g": 0, "bomb-zstd1g": 1}
"""Valid files, with the number of their distinct values."""


def test_every_hostile_file_is_listed_here() -> None:
    assert {path.stem for path in HOSTILE.glob("*.parquet")} == DAMAGED.keys() | BEYOND.keys() | READ.keys()


@pytest.mark.parametrize("name", sorted(path.stem for path in HOSTILE.glob("*.parquet")))
def test_a_hostile_file_takes_bounded_memory_and_work(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    done = measured_command.run("add", HOSTILE / f"{name}.parquet", "-c", "*", "--replace", "-o", out)
    assert done.code == (3 if name in DAMAGED else 4 if name in BEYOND else 0), done.errors
    assert done.pieces < PIECES_MAX
    assert done.memory < MEMORY_MAX_BYTES
    assert list(tmp_path.iterdir()) == ([out] if name in READ else [])
    if name in READ:
        checked = measured_command.run("validate", "--deep", out)
        assert (checked.code, checked.errors) == (0, "")
        assert checked.pieces < PIECES_MAX
        assert checked.memory < MEMORY_MAX_BYTES
        assert out.stat().st_size < 2 * (HOSTILE / f"{name}.parquet").stat().st_size
        ndv = bloomcli.inspect(out).filters[0].ndv_estimate
        assert ndv == pytest.approx(READ[name], abs=0.2)
    else:
        assert done.errors.startswith(f"bloom: {HOSTILE / name}.parquet: ")
        message, place = DAMAGED.get(name) or (BEYOND[name], "row_groups[0].columns[0]")
        assert message in done.errors
        assert place in done.errors
        assert ", byte " in done.errors
        assert "hint: " in done.errors


@pytest.mark.parametrize(
    ("offset", "length", "offset_field"),
    [
        (1, 20, footers.OFFSET_INDEX_OFFSET),
        (1 << 40, 20, footers.COLUMN_INDEX_OFFSET),
        (None, 1 << 30, footers.OFFSET_INDEX_OFFSET),
        (None, -5, footers.COLUMN_INDEX_OFFSET),
        (-9, 20, footers.OFFSET_INDEX_OFFSET),
    ],
)
def test_page_indexes_outside_the_file_are_refused(
    tmp_path: Path, offset_field: int, offset: int | None, length: int
) -> None:
    def lie(metadata: Fields) -> None:
        chunk = footers.chunk(metadata, 1, 0)
        if offset is not None:
            chunk[offset_field] = (thrift.I64, offset)
        chunk[offset_field + 1] = (thrift.I32, length)

    whole = write(tmp_path / "whole", {"c": [f"v{i}" for i in range(60)]}, rows=30, write_page_index=True)
    bloomcli.add(whole, ["c"], ndv=1000, in_place=True)  # large enough to be folded
    path = tmp_path / "work" / "f"
    path.parent.mkdir()
    path.write_bytes(footers.edited(whole.read_bytes(), lie))
    out = path.with_name("out")
    for command in (
        lambda: bloomcli.add(path, ["c"], output=out, replace=True),
        lambda: bloomcli.add(path, ["c"], dry_run=True, replace=True),
        lambda: bloomcli.remove(path, output=out),
        lambda: bloomcli.fold(path, output=out, fpp=0.5),
        lambda: bloomcli.validate(path),
    ):
        with pytest.raises(
            CorruptFile, match=r"the (offset|column) index lies at .* outside the file's data"
        ) as caught:
            command()
        assert list(path.parent.iterdir()) == [path]
        assert (caught.value.path, caught.value.field) == (
            str(path),
            "row_groups[1].columns[0]." + ("offset" if offset_field == 4 else "column") + "_index_offset",
        )
        assert (caught.value.offset or 0) > len(footers.split(path.read_bytes())[0])


def test_a_page_that_does_not_fit_its_checksum_gets_no_filter(tmp_path: Path) -> None:
    array = pa.array([f"value {i}" for i in range(300)])
    for dictionary, version in ((True, "1.0"), (False, "1.0"), (False, "2.0")):
        path = tmp_path / "f"
        pq.write_table(
            pa.table({"c": array}),
            path,
            write_page_checksum=True,
            use_dictionary=dictionary,
            data_page_version=version,
            compression="none",
        )
        bloomcli.add(path, ["c"], output=tmp_path / "sound")
        assert bloomcli.validate(tmp_path / "sound", deep=True).findings == ()
        (tmp_path / "sound").unlink()
        data = bytearray(path.read_bytes())
        data[data.index(b"value 77") + 7] ^= 1
        path.write_bytes(data)
        with pytest.raises(CorruptFile, match="don't match the checksum") as caught:
            bloomcli.add(path, ["c"], output=tmp_path / "out")
        assert (caught.value.offset, caught.value.field) == (4, "row_groups[0].columns[0]")
        assert list(tmp_path.iterdir()) == [path]


GROUPS: Final = 40
"""Row groups with the same page, each of which takes hundreds of pieces of work."""


def blocks(path: Path, groups: int) -> Path:
    """1 GiB of blocks without bits, compressed."""
    head = b"".join(map(thrift.varint, (8, 1, (1 << 31) - 1))) + thrift.zigzag(0)
    body, size = squeezed([head, *[bytes(MEBI)] * 1000])
    return one_page(path, body, "INT64", "DELTA_BINARY_PACKED", (1 << 31) - 1, size=size, groups=groups)


def levels(path: Path, groups: int) -> Path:
    """1 GiB of definition levels in runs of one, all null."""
    runs = [b"\x02\0" * (MEBI // 2)] * 1000
    body, size = squeezed([(1000 * MEBI).to_bytes(4, "little"), *runs])
    return one_page(path, body, "INT64", "PLAIN", 500 * MEBI, size=size, optional=True, groups=groups)


def indices(path: Path, groups: int) -> Path:
    """1 GiB of dictionary indices in runs of one, all of the first of two entries."""
    body, size = squeezed([b"\1", *[b"\x02\0" * (MEBI // 2)] * 1000])
    return one_page(
        path, body, "INT32", "RLE_DICTIONARY", 500 * MEBI, size=size, dictionary=bytes(range(8)), groups=groups
    )


def empty_strings(path: Path, groups: int) -> Path:
    """1 GiB of empty strings."""
    body, size = squeezed([bytes(MEBI)] * 1000)
    return one_page(path, body, "BYTE_ARRAY", "PLAIN", 250 * MEBI, size=size, groups=groups)


def numbers(path: Path, groups: int) -> Path:
    """1 GiB of INT64 without equal neighbours; they exceed a ceiling only after a while."""
    body, size = squeezed([(bytes(8) + b"\1" * 8) * (MEBI // 16)] * 250)
    return one_page(path, body, "INT64", "PLAIN", 250 * MEBI // 8, size=size, groups=groups)


SLOW: Final = {
    prefixes: 222,
    steps: 513,
    blocks: 515,
    levels: 1002,
    indices: 2005,
    empty_strings: 2001,
    one_string: 1003,
    numbers: 751,
}
"""The pieces that each row group of a file is decoded in: they take some milliseconds each."""
HELD: Final = 3
"""The pieces after which a process waits for its stop."""


@pytest.mark.parametrize(("make", "number"), list(zip(SLOW, itertools.cycle((signal.SIGINT, signal.SIGTERM)))))
def test_decoding_is_stopped_before_the_next_piece_and_leaves_nothing(
    tmp_path: Path, make: Callable[[Path, int], Path], number: signal.Signals
) -> None:
    lake, counts = tmp_path / "lake", tmp_path / "counts"
    lake.mkdir()
    counts.mkdir()
    path = make(lake / "slow.parquet", GROUPS)
    before = path.read_bytes()
    process = subprocess.Popen(
        [*BLOOM, "add", path, "-c", "c", "--in-place", "--threads", "2"],
        env=work.counting(counts, HELD),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert wait_until(lambda: sum(work.pieces(counts)) >= HELD)
    assert wait_until(lambda: len(list(lake.iterdir())) > 1), "it has begun to write"
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    assert process.returncode in {130, 128 + number, -number}
    assert sum(work.pieces(counts)) in {HELD, HELD + 1}, "each of the two threads ends at its next check"
    assert b"Traceback" not in errors
    assert list(lake.iterdir()) == [path]
    assert path.read_bytes() == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_decoding_in_worker_processes_is_stopped_before_the_next_piece_too(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The signal goes to the parent alone, and each worker reads one chunk for seconds."""
    lake, out, counts = tmp_path / "lake", tmp_path / "out", tmp_path / "counts"
    lake.mkdir()
    counts.mkdir()
    for name in ("a", "b"):
        indices(lake / f"{name}.parquet", GROUPS)
    process = subprocess.Popen(
        [*BLOOM, "add", lake, "-c", "c", "-o", out, "--jobs", "2", "--threads", "1"],
        env=work.counting(counts, HELD),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert wait_until(lambda: work.pieces(counts) == [HELD, HELD])
    assert len(list(out.rglob("*"))) >= 2, "both workers have begun to write"
    process.send_signal(number)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == code
    assert work.pieces(counts) == [HELD, HELD]
    assert b"Traceback" not in errors
    assert list(out.rglob("*")) == []


def test_decoding_that_nothing_holds_is_stopped_long_before_its_end(tmp_path: Path) -> None:
    counts = tmp_path / "counts"
    counts.mkdir()
    process = subprocess.Popen(
        [*BLOOM, "add", indices(tmp_path / "slow.parquet", GROUPS), "-c", "c", "--in-place"],
        env=work.counting(counts),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(lambda: sum(work.pieces(counts)) > 100)
    process.send_signal(signal.SIGINT)
    assert process.wait(600) == 130
    assert sum(work.pieces(counts)) < GROUPS * SLOW[indices] / 2


@pytest.mark.parametrize("make", SLOW)
def test_slow_files_take_bounded_memory_and_each_row_group_the_same_number_of_pieces(
    tmp_path: Path, make: Callable[[Path, int], Path]
) -> None:
    """Fewer pieces would be too large to be stopped soon; more would be work that grows faster than the data."""
    done = measured_command.run(
        "add", make(tmp_path / "slow.parquet", 1), "-c", "c", "-o", tmp_path / "out", "--jobs", "1"
    )
    assert done.code == 0, done.errors
    assert done.pieces == pytest.approx(SLOW[make], rel=0.2)
    assert done.memory < MEMORY_MAX_BYTES


SCHEMA: Final = thrift.encode(
    {
        1: (thrift.I32, 1),
        2: (
            thrift.LIST,
            thrift.Items(
                thrift.STRUCT,
                [
                    {4: (thrift.BINARY, b"schema"), 5: (thrift.I32, 1)},
                    {1: (thrift.I32, 2), 3: (thrift.I32, 0), 4: (thrift.BINARY, b"c")},
                ],
            ),
        ),
        3: (thrift.I64, 0),
    }
)[:-1]
"""FileMetaData with a column, up to the number of rows."""
NEXT_IS_LIST: Final = b"\x19"


def empty(count: int) -> bytes:
    """A list of empty structures, which take a byte each."""
    return b"\xfc" + thrift.varint(count) + bytes(count)


MANY: Final = {
    "row groups": lambda n: SCHEMA + NEXT_IS_LIST + empty(n) + b"\0",
    "schema elements": lambda n: b"\x15\2" + NEXT_IS_LIST + empty(n) + b"\x16\0" + NEXT_IS_LIST + b"\x0c\0",
    "chunks": lambda n: SCHEMA + NEXT_IS_LIST + b"\x1c" + NEXT_IS_LIST + empty(n) + b"\x16\0\x16\0\0\0",
}


COMMANDS: Final = (
    "inspect {}", "validate {}", "probe {} 1 -c c", "find 1 {} -c c", "add {} -c * -o out", "remove {} -o out",
    "fold {} -o out", "dump {} -c c", "advise {}",
)  # fmt: skip


@pytest.mark.parametrize(("command", "what"), list(zip(COMMANDS, itertools.cycle(MANY))))
def test_a_footer_of_empty_structures_is_refused_by_name_before_it_takes_memory(
    tmp_path: Path, what: str, command: str
) -> None:
    path = tmp_path / "many.parquet"
    count = 4_000_000
    path.write_bytes(footers.join(b"PAR1", MANY[what](count)))
    tracemalloc.start()
    try:
        assert run(command.format(path).split()) != 0
        assert tracemalloc.get_traced_memory()[1] < 6 * count, "a start took 40 bytes"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("what", MANY)
def test_the_refusal_names_the_list_and_its_limit(tmp_path: Path, what: str) -> None:
    path = tmp_path / "many.parquet"
    path.write_bytes(footers.join(b"PAR1", MANY[what](parquet_limits.LIST_MAX + 1)))
    with pytest.raises(UnsupportedError, match=f"has more than {parquet_limits.LIST_MAX} elements") as caught:
        bloomcli.add(path, ["*"], output=tmp_path / "out")
    assert caught.value.field is not None
    assert caught.value.field.rpartition(".")[2] in {"row_groups", "schema", "columns"}
    assert caught.value.offset is not None
    assert caught.value.hint


def test_the_chunks_of_all_row_groups_are_limited_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_limits, "CHUNKS_MAX", 1000)
    path = tmp_path / "many.parquet"
    pq.write_table(pa.table({f"c{n}": [1, 2, 3] for n in range(100)}), path, row_group_size=1)
    assert bloomcli.inspect(path).row_groups == 3
    pq.write_table(pa.table({f"c{n}": range(12) for n in range(100)}), path, row_group_size=1)
    with pytest.raises(UnsupportedError, match="column chunks of all row groups has more than 1000 elements"):
        bloomcli.inspect(path)
