"""A bounded run of the fuzzing program; `python tests/fuzz.py` runs as long as you like."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from support import footers, fuzzing
from support.fuzzing import Trier, fuzz, mutated, seeds

import bloomcli
from bloomcli.errors import BloomError

FIXTURES = fuzzing.ROOT / "fixtures"
MUTATIONS_EACH = 1
"""Mutations of each fixture and hostile file, of which there are hundreds. The program runs as long as you like."""


def some(files: list[Path], config: pytest.Config) -> list[Path]:
    """Every third file, with other seeds the others; all with --full. A file has always the same mutations."""
    return files if config.getoption("full") else files[config.getoption("seed") % 3 :: 3]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "orc", "mosaic"])
def test_no_mutated_file_breaks_the_contract(form: str, pytestconfig: pytest.Config) -> None:
    files = some([path for path in seeds() if path.suffix == f".{form}"], pytestconfig)
    found = [case for case in fuzz(files, "suite", cases=len(files) * MUTATIONS_EACH) if case is not None]
    assert not found, "\n".join(map(str, found))


ENCRYPTED = [path for path in seeds() if fuzzing.keys_of(path)]


@pytest.mark.slow
def test_no_mutated_encrypted_file_breaks_the_contract_with_its_keys(pytestconfig: pytest.Config) -> None:
    files = some(ENCRYPTED, pytestconfig)
    found = [case for case in fuzz(files, "encrypted", cases=len(files) * 4) if case is not None]
    assert not found, "\n".join(map(str, found))


def test_most_mutations_of_encrypted_files_get_past_the_cipher(tmp_path: Path) -> None:
    read, path = 0, tmp_path / "f.parquet"
    for source in ENCRYPTED:
        keys = fuzzing.keys_of(source)
        for n in range(4):
            path.write_bytes(mutated(source.read_bytes(), ".parquet", f"reach {n}", 1, keys)[0])
            with contextlib.suppress(BloomError):
                bloomcli.inspect(path, keys=keys)
                read += 1
    assert read > 2 * len(ENCRYPTED)


@pytest.mark.parametrize("suffix", [".parquet", ".orc", ".mosaic"])
def test_mutations_are_the_same_for_a_seed_and_change_the_file(suffix: str) -> None:
    path = next(p for p in seeds() if p.suffix == suffix)
    data = path.read_bytes()
    first = [mutated(data, suffix, f"seed {n}") for n in range(20)]
    assert first == [mutated(data, suffix, f"seed {n}") for n in range(20)]
    assert sum(made == data for made, _ in first) <= 2
    assert len({made for made, _ in first}) >= 18


def test_parquet_mutations_are_reached() -> None:
    """Most mutations leave the footer readable, because they test the code that runs after it is read."""
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    read = 0
    for n in range(40):
        made, _ = mutated(data, ".parquet", f"reach {n}", 1)
        try:
            footers.places(made)
        except Exception:  # noqa: BLE001  whatever the test's own parser stumbles over
            continue
        read += 1
    assert read > 25


# --- what a run would find is found


def broken(data: bytes, suffix: str, **limits: float) -> str:
    """The text about a file."""
    with Trier(**limits) as trier:  # type: ignore[arg-type]
        found = trier.broken(data, suffix)
    assert found is not None
    return f"{found.step}: {found.what}"


@pytest.mark.slow
def test_a_command_without_memory_for_its_threads_ends() -> None:
    """CPython waits forever for a thread that ends for lack of memory before it has started."""
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    with Trier(memory=1 << 12) as trier:
        found = trier.broken(data, ".parquet")
    assert found is None or re.search("MemoryError|it ends with 70|the process is ended", found.what)


def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, code: str, other: str) -> None:
    """Try files with a package in which some code is replaced. Python compiles only that module again. Left out
    are the compiled files that another process is writing."""
    shutil.copytree(fuzzing.ROOT / "bloomcli", tmp_path / "bloomcli", ignore=shutil.ignore_patterns("*.pyc.*"))
    (tmp_path / "tests").symlink_to(fuzzing.ROOT / "tests")
    (tmp_path / "fixtures").symlink_to(fuzzing.ROOT / "fixtures")
    changed = tmp_path / "bloomcli" / module
    text = changed.read_text()
    assert code in text, "it is done by other code now"
    changed.write_text(text.replace(code, other))
    monkeypatch.setattr(fuzzing, "ROOT", tmp_path)


@pytest.mark.slow
def test_a_value_that_add_loses_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose kernels read one value too few."""
    insertion = "kernels.sbbf_insert(self._mutable(), hashes, count)"
    other = insertion.replace("count)", "max(count - 1, 0))")
    without(tmp_path, monkeypatch, "filters/split_block.py", insertion, other)
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    assert "values that pyarrow reads are in no filter" in broken(data, ".parquet")  # validate is as blind
