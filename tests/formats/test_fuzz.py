"""A bounded run of the fuzzing program; `python tests/fuzz.py` goes on for as long as wanted."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support import footers, fuzzing, orcfiles, values
from support.fuzzing import Trier, fuzz, mutated, seeds

import bloomcli

FIXTURES = fuzzing.ROOT / "fixtures"
MUTATIONS_EACH = 3
"""Of each fixture and hostile file; with all of them a run takes about a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "orc", "mosaic"])
def test_no_mutated_file_breaks_the_contract(form: str) -> None:
    files = [path for path in seeds() if path.suffix == f".{form}"]
    found = [case for case in fuzz(files, "suite", cases=len(files) * MUTATIONS_EACH) if case is not None]
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("suffix", [".parquet", ".orc", ".mosaic"])
def test_mutations_are_the_same_for_a_seed_and_change_the_file(suffix: str) -> None:
    path = next(p for p in seeds() if p.suffix == suffix)
    data = path.read_bytes()
    first = [mutated(data, suffix, f"seed {n}") for n in range(20)]
    assert first == [mutated(data, suffix, f"seed {n}") for n in range(20)]
    assert sum(made == data for made, _ in first) <= 2
    assert len({made for made, _ in first}) >= 18


def test_parquet_mutations_are_reached() -> None:
    """Most leave the footer readable: faults behind it are what they are for."""
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
    """What is said of a file."""
    with Trier(**limits) as trier:  # type: ignore[arg-type]
        found = trier.broken(data, suffix)
    assert found is not None
    return f"{found.step}: {found.what}"


def test_a_command_that_takes_too_long_is_told() -> None:
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    assert "it takes more than 0.0005 s of the processor" in broken(data, ".parquet", seconds=0.0005)


def test_a_command_that_takes_too_much_memory_is_told() -> None:
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    assert re.search("MemoryError|it ends with 70|the process is ended", broken(data, ".parquet", memory=1 << 12))


def test_a_value_that_add_loses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose kernels see one value less than there are."""
    shutil.copytree(fuzzing.ROOT / "bloomcli", tmp_path / "bloomcli", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").symlink_to(fuzzing.ROOT / "tests")
    (tmp_path / "fixtures").symlink_to(fuzzing.ROOT / "fixtures")
    module = tmp_path / "bloomcli" / "filters" / "split_block.py"
    text = module.read_text()
    insertion = "kernels.sbbf_insert(self._mutable(), hashes, count)"
    assert insertion in text, "hashes are inserted by other code now"
    module.write_text(text.replace(insertion, insertion.replace("count)", "max(count - 1, 0))")))
    monkeypatch.setattr(fuzzing, "ROOT", tmp_path)
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    assert "values that pyarrow reads are in no filter" in broken(data, ".parquet")  # validate is as blind


@pytest.fixture
def filtered(tmp_path: Path) -> Path:
    """A Parquet file with a filter on each column that can have one."""
    bloomcli.add(FIXTURES / "parquet" / "orders.parquet", ["*"], output=tmp_path / "f", replace=True)
    return tmp_path / "f"


def test_values_of_parquet_are_looked_up_in_every_filter(filtered: Path) -> None:
    assert values.parquet_lost(filtered) == []
    data = bytearray(filtered.read_bytes())
    claims = footers.claims(bytes(data))
    for _, _, offset, length in claims:
        data[offset + 20 : offset + length] = bytes(length - 20)  # all but the header and some bits
    filtered.write_bytes(data)
    lost = values.parquet_lost(filtered)
    assert len(lost) > len(claims) / 2


def test_values_of_orc_are_looked_up_in_every_filter(tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "plain", orcfiles.everything())
    bloomcli.add(tmp_path / "plain", ["int64", "string", "float64", "date"], output=tmp_path / "f")
    assert values.orc_lost(tmp_path / "f") == []
    file = orcfiles.split(tmp_path / "f")
    ids = {name: n + 1 for n, name in enumerate(orcfiles.everything().column_names)}
    for name in ("int64", "string", "float64", "date"):
        index = file.filters(ids[name])
        for item in index.bloom_filter:
            item.utf8bitset = bytes(len(item.utf8bitset))
        file.set_filters(ids[name], index)
    (tmp_path / "f").write_bytes(file.join())
    assert [text.split(", ")[2].split(":")[0] for text in values.orc_lost(tmp_path / "f")] == [
        "int64",
        "float64",
        "string",
        "date",
    ]
