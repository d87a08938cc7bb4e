"""ORC files of some kilobytes that claim gigabytes: bounded memory and work, or a refusal that names the ceiling."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support import measured_command, orcfiles, orchostile, work
from support.processes import wait_until

import bloomcli

HUGE_STRIDE: Final = Path(__file__).parents[1] / "hostile" / "rowindexstride-huge.orc"
MEMORY_MAX: Final = 512 << 20
PIECES_MAX: Final = 15_000
"""The most is 13,423, for 2^27 equal integers."""
HELD: Final = 3
"""The pieces after which a process waits for its stop."""


def ran(*arguments: object, code: int | None = None) -> measured_command.Done:
    """Run a command in its own process, and check its work and memory against the limits."""
    found = measured_command.run(*arguments)
    assert "Traceback" not in found.text
    assert found.memory < MEMORY_MAX, f"{found.memory >> 20} MiB"
    assert found.pieces < PIECES_MAX
    assert code is None or found.code == code, found.text
    return found


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--kind", "both"]], ids=["utf8", "both"])
def test_filters_are_sized_by_the_rows_that_exist_where_the_stride_is_huge(
    tmp_path: Path, options: list[str]
) -> None:
    out = tmp_path / "out.orc"
    ran("add", HUGE_STRIDE, "-c", "*", "--replace", "-o", out, *options, code=0)
    assert out.stat().st_size < 4 << 10
    report = bloomcli.validate(out, deep=True)
    assert report.values_checked == 160 * (2 if options else 1)
    assert {f.id for f in report.findings} == {"row-index-positions"}, "it has more entries than row groups now"
    assert {f.bitset_bytes for f in bloomcli.inspect(out).filters} == {48}


@pytest.mark.slow
@pytest.mark.parametrize("name", orchostile.READ)
def test_values_that_take_no_room_in_the_file_take_little_in_memory(tmp_path: Path, name: str) -> None:
    path = orchostile.READ[name](tmp_path)
    assert path.stat().st_size < 1 << 20
    out = tmp_path / "out.orc"
    ran("add", path, "-c", "c", "--max-bytes", "4KiB", "-o", out, "--threads", 2, code=0)
    found = ran("validate", out, "--deep", "--no-policy")
    wrong = {line.split()[1] for line in found.text.splitlines() if line.startswith(("error ", "warning "))}
    of_less = {"filter-all-zero:", "statistics-bounds:", "statistics-counts:", "row-index-positions:"}
    assert wrong <= of_less, "statistics are those of a file that claims less"
    assert "value-missing" not in found.text


DATA: Final = {"too many values", "lists of lists", "many long strings", "too large a dictionary"}
"""Files whose data claim too much, which nothing reads that has no filters to add or to check."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(name for name in orchostile.READ if name not in {"growing integers", "equal strings"}), *sorted(DATA)]
)
def test_find_decodes_a_batch_at_a_time(tmp_path: Path, name: str) -> None:
    path = orchostile.READ[name](tmp_path) if name in orchostile.READ else orchostile.REFUSED[name][0](tmp_path)
    value = "2024-01-01" if name == "equal moments" else "5"
    done = measured_command.run("find", value, path, "-c", "c", "--files-only")
    assert "Traceback" not in done.text
    assert done.code in {0, 1, 2, 3, 4}, done.text
    assert done.memory < MEMORY_MAX, f"{done.memory >> 20} MiB"


@pytest.mark.slow
def test_records_that_do_not_fit_in_memory_are_refused(tmp_path: Path) -> None:
    path = orchostile.equal_integers(tmp_path)
    limited = f"ulimit -v 1500000; exec {sys.executable} -m bloomcli find 5 {path} -c c --limit 3"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert "the rows of stripe 0 don't fit in memory" in done.stderr
    assert "--select" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, "add" if name in DATA else "validate") for name in orchostile.REFUSED),
        *((name, command) for name in orchostile.REFUSED if "filters" in name for command in ("add", "inspect")),
        *(("a large footer", command) for command in ("add", "inspect")),
    ],
)
def test_what_claims_too_much_is_refused_by_a_ceiling(tmp_path: Path, name: str, command: str) -> None:
    make, ceiling = orchostile.REFUSED[name]
    path = make(tmp_path)
    assert path.stat().st_size < 1 << 20
    options = {
        "add": ["-c", "*", "--replace", "--max-bytes", "4KiB", "-o", tmp_path / "out.orc"],
        "validate": ["--deep", "--no-policy"],
        "inspect": [],
    }[command]
    found = ran(command, path, *options)
    filters = "filters" in name
    assert found.code in ({int(command == "validate")} if filters else {3, 4}), found.text
    assert (filters and command == "add") or ceiling in " ".join(found.text.split())
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_a_row_index_that_claims_too_much_is_none(tmp_path: Path) -> None:
    path = orchostile.a_large_row_index(tmp_path)
    ran("inspect", path, code=0)
    ran("validate", path, "--deep", "--no-policy")


@pytest.mark.slow
def test_a_filter_of_120_mib_is_checked_within_the_memory(tmp_path: Path) -> None:
    path = orchostile.one_large_filter(tmp_path)
    ran("inspect", path, code=0)
    found = ran("validate", path, "--deep", "--no-policy", code=1)
    assert "2 of 2 values" in found.text


def test_filters_larger_than_readers_take_are_refused_before_they_are_built(tmp_path: Path) -> None:
    path = orchostile.equal_integers(tmp_path)
    found = ran("add", path, "-c", "c", "-o", tmp_path / "out.orc", code=4)
    assert "the filters of column c would take" in found.text
    assert "--max-bytes" in found.text


def big(folder: Path, make: Callable[[Path], Path], stripes: int) -> Path:
    """The same stripe many times over."""
    file = orcfiles.split(make(folder))
    part = file.stripes[0]
    for _ in range(stripes - 1):
        again = type(part)(b"", file.footer.stripes.add(), part.footer, part.streams)
        again.info.CopyFrom(part.info)
        file.stripes.append(again)
    file.footer.number_of_rows *= stripes
    (folder / "big.orc").write_bytes(file.join())
    return folder / "big.orc"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number", "command"),
    [
        ("decimals", signal.SIGINT, "add"),
        ("decimals", signal.SIGTERM, "add"),
        ("equal strings", signal.SIGINT, "add"),
        ("decimals", signal.SIGTERM, "validate"),
        ("one long string", signal.SIGINT, "validate"),
        ("growing integers", signal.SIGINT, "validate"),
    ],
)
def test_whatever_is_decoded_a_stop_is_obeyed_before_the_next_piece(
    tmp_path: Path, name: str, number: signal.Signals, command: str
) -> None:
    path = big(tmp_path, orchostile.READ[name], 40)
    folder, counts = tmp_path / "work", tmp_path / "counts"
    folder.mkdir()
    counts.mkdir()
    options = ["-c", "c", "--max-bytes", "4KiB", "-o", str(folder / "out.orc")]
    if command == "validate":
        small = tmp_path / "small.orc"
        shutil.copyfile(orcfiles.edited(path, tmp_path / "f", lambda _: None), small)
        put_filters(path, small)
        path, options = small, ["--deep", "--no-policy"]
    before = set(tmp_path.iterdir())
    process = subprocess.Popen(
        [sys.executable, "-m", "bloomcli", command, str(path), *options],
        env=work.counting(counts, HELD),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert wait_until(lambda: sum(work.pieces(counts)) >= HELD or process.poll() is not None)
    process.send_signal(number)
    _, error = process.communicate(timeout=600)
    ended = 143 if command == "add" else -signal.SIGTERM  # a command that only reads has nothing to clean up
    assert process.returncode == (130 if number is signal.SIGINT else ended), error
    assert sum(work.pieces(counts)) < HELD + (os.cpu_count() or 1), "each thread ends at its next check"
    assert b"Traceback" not in error
    assert not list(folder.iterdir())
    assert set(tmp_path.iterdir()) == before


def put_filters(path: Path, target: Path) -> None:
    """Write filters for a file without reading its values: full ones, so that none is missing."""

    def edit(file: orcfiles.File) -> None:
        index = orcfiles.spec.message("BloomFilterIndex")()
        info = file.stripes[0].info
        for _ in range(-(-info.number_of_rows // file.footer.row_index_stride)):
            index.bloom_filter.add(num_hash_functions=3, utf8bitset=b"\xff" * 8)
        packed = file.packed(index.SerializeToString())
        for stripe, part in enumerate(file.stripes):
            if len(part.footer.streams) == len(part.streams):  # they share one message
                file.insert(
                    file.place(orcfiles.ROW_INDEX, 1, stripe) + 1, orcfiles.BLOOM_FILTER_UTF8, 1, packed, stripe
                )
                part.footer.columns[1].bloom_encoding = 1

    orcfiles.edited(path, target, edit)
