"""A bounded run of the fuzzing program; `python tests/fuzz.py` runs as long as you like."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from support import footers, fuzzing, orcfiles, reader_values, thrift
from support.fuzzing import Trier, fuzz, mutated, seeds
from support.tables import write
from support.thrift import Fields

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.formats.orc import spec

FIXTURES = fuzzing.ROOT / "fixtures"
MUTATIONS_EACH = 1
"""Mutations of each fixture and hostile file, of which there are hundreds. The program runs as long as you like."""


def half(files: list[Path], config: pytest.Config) -> list[Path]:
    """Every second file, with an odd seed the others; all with --full. A file has always the same mutations."""
    return files if config.getoption("full") else files[config.getoption("seed") % 2 :: 2]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "orc", "mosaic"])
def test_no_mutated_file_breaks_the_contract(form: str, pytestconfig: pytest.Config) -> None:
    files = half([path for path in seeds() if path.suffix == f".{form}"], pytestconfig)
    found = [case for case in fuzz(files, "suite", cases=len(files) * MUTATIONS_EACH) if case is not None]
    assert not found, "\n".join(map(str, found))


ENCRYPTED = [path for path in seeds() if fuzzing.keys_of(path)]


@pytest.mark.slow
def test_no_mutated_encrypted_file_breaks_the_contract_with_its_keys(pytestconfig: pytest.Config) -> None:
    files = half(ENCRYPTED, pytestconfig)
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
def test_a_command_that_takes_too_long_is_reported() -> None:
    data = (FIXTURES / "parquet" / "orders.parquet").read_bytes()
    assert "it takes more than 0.0005 s of the processor" in broken(data, ".parquet", seconds=0.0005)


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


def unsized(metadata: Fields) -> None:
    """`b` has no total_compressed_size."""
    footers.meta(metadata, 0, 1).pop(7)


def too_large(metadata: Fields) -> None:
    """The pages of `b` end after the data's end."""
    footers.meta(metadata, 0, 1)[7] = (thrift.I64, 1 << 20)


def without_codec(metadata: Fields) -> None:
    """`b` has a filter, and no codec."""
    footers.set_filter(0, 1, 4, 79)(metadata)
    footers.meta(metadata, 0, 1).pop(4)


@pytest.mark.slow
def test_what_add_makes_of_another_column_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that doesn't check the other columns' metadata before it writes. In the last file, it writes new
    filters over the claimed place of another column's filter."""
    without(tmp_path, monkeypatch, "formats/parquet/plan.py", "if puts:", "if puts is None:")
    table = pa.table({"a": pa.array(range(50), pa.int64()), "b": pa.array(range(50), pa.int64())})
    data = write(tmp_path / "f.parquet", table, rows=50, store_schema=False).read_bytes()
    claimed = footers.set_filter(0, 1, len(footers.split(data)[0]) + 4, None)
    with Trier() as trier:
        for change, message in (
            (unsized, "validate can't read what was written"),
            (too_large, "doesn't pass validate --deep.*filter-overlap"),
            (without_codec, "validate can't read what was written"),
            (claimed, "errors that the original hasn't"),
        ):
            found = trier.broken(footers.edited(data, change), ".parquet")
            assert found is not None
            assert re.search(message, found.what, re.DOTALL), found


@pytest.fixture
def filtered(tmp_path: Path) -> Path:
    """A Parquet file with filters on all columns that can have them."""
    bloomcli.add(FIXTURES / "parquet" / "orders.parquet", ["*"], output=tmp_path / "f", replace=True)
    return tmp_path / "f"


def test_values_of_parquet_are_looked_up_in_every_filter(filtered: Path) -> None:
    assert reader_values.parquet_lost(filtered) == []
    data = bytearray(filtered.read_bytes())
    claims = footers.claims(bytes(data))
    for _, _, offset, length in claims:
        data[offset + 20 : offset + length] = bytes(length - 20)  # all but the header and some bits
    filtered.write_bytes(data)
    lost = reader_values.parquet_lost(filtered)
    assert len(lost) > len(claims) / 2


def test_values_of_orc_are_looked_up_in_every_filter(tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "plain", orcfiles.everything())
    bloomcli.add(tmp_path / "plain", ["int64", "string", "float64", "date"], output=tmp_path / "f")
    assert reader_values.orc_lost(tmp_path / "f") == []
    file = orcfiles.split(tmp_path / "f")
    ids = {name: n + 1 for n, name in enumerate(orcfiles.everything().column_names)}
    for name in ("int64", "string", "float64", "date"):
        index = file.filters(ids[name])
        for item in index.bloom_filter:
            item.utf8bitset = bytes(len(item.utf8bitset))
        file.set_filters(ids[name], index)
    (tmp_path / "f").write_bytes(file.join())
    assert [text.split(", ")[2].split(":")[0] for text in reader_values.orc_lost(tmp_path / "f")] == [
        "int64",
        "float64",
        "string",
        "date",
    ]


def test_rows_of_orc_are_known_where_the_statistics_fit_the_values(tmp_path: Path) -> None:
    path = tmp_path / "f.orc"
    table = pa.table({"n": pa.array([5, None, 7, 5], pa.int64()), "s": ["b", "a", None, "b"]})
    orcfiles.write(path, table)
    numbers, texts = (reader_values.orc_rows(path, turn) for turn in (0, 1))
    assert numbers == reader_values.KnownRows(option="n", text="5", rows=[0, 3])
    assert texts is not None
    assert (texts.option, table["s"].to_pylist()[texts.rows[0]]) == ("s", texts.text)
    whole = path.read_bytes()
    for part, field, wrong in (
        ("int_statistics", "maximum", 6),
        ("", "number_of_values", 4),
        ("", "has_null", False),
    ):
        file = orcfiles.File.split(whole)
        statistics = spec.message("ColumnStatistics").FromString(file.footer.statistics[1])
        setattr(getattr(statistics, part) if part else statistics, field, wrong)
        file.footer.statistics[1] = statistics.SerializeToString()
        path.write_bytes(file.join())
        assert reader_values.orc_rows(path, 0) is None
        assert reader_values.orc_rows(path, 1) == texts
