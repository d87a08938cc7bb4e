"""Paimon's filters of columns: read as Paimon wrote them, proven, found faulty where they are, and written again."""

from __future__ import annotations

import csv
import os
import random
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from support.object_stores import SCHEME, MemoryObjects

import bloomcli
from bloomcli import kernels
from bloomcli.cli import run
from bloomcli.engine_filters.paimon.index_file import BLOOM, EMPTY, Embedded, IndexFile, new_index
from bloomcli.errors import BloomError, CorruptFile, UsageError
from bloomcli.model.dataset import Status
from bloomcli.model.file import Presence
from bloomcli.model.validate import Finding
from bloomcli.storage import registry
from bloomcli.storage.lookups import shared

COLUMNS = [
    "text",
    "fixed",
    "raw",
    "tiny",
    "small",
    "whole",
    "big",
    "real",
    "wide",
    "day",
    "clock",
    "milli",
    "micro",
    "nano",
    "local",
]
FORMATS = pytest.mark.parametrize("name", ["parquet", "orc"])
ROWS = 300


def data_file(tables: Path, name: str, *, current: bool = True) -> Path:
    """The data file of a table; `large` has two, of which the first was replaced."""
    found = [path for path in (tables / name / "bucket-0").iterdir() if path.suffix in {".parquet", ".orc"}]
    found.sort(key=lambda path: (tables / name / "snapshot" / "snapshot-2").exists() and is_listed(path))
    return found[-1 if current else 0]


def is_listed(path: Path) -> bool:
    return all(one.problem is None for one in bloomcli.inspect(path).engine_filters)


def index_of(path: Path) -> Path:
    return path.with_name(path.name + ".index")


def index(path: Path) -> IndexFile:
    return IndexFile(Embedded("", index_of(path).read_bytes()))


def replaced(path: Path, column: str, body: bytes | None) -> None:
    """Give a column's filter another body; None: an empty index."""
    found = index(path)
    data = bytearray(found.with_filters({} if body is None else {column: body}))
    if body is None:
        entry = next(one for one in found.entries if one.column == column and one.kind == BLOOM)
        struct.pack_into(">i", data, entry.at, EMPTY)
    index_of(path).write_bytes(data)


def body_of(path: Path, column: str) -> bytes:
    found = index(path)
    return found.body(next(one for one in found.entries if one.column == column and one.kind == BLOOM))


def faults(path: Path) -> list[Finding]:
    """The findings of the proof, but for those about columns in which it looks nothing up."""
    return [one for one in bloomcli.validate(path, deep=True).findings if one.id != "filter-not-checked"]


# --- an implementation of the hashes that shares no code with bloomcli, but for XXH64


def signed(number: int, bits: int = 64) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def wang(key: int) -> int:
    key = signed(~key + (key << 21))
    key = signed(key ^ (key >> 24))
    key = signed(key + (key << 3) + (key << 8))
    key = signed(key ^ (key >> 14))
    key = signed(key + (key << 2) + (key << 4))
    key = signed(key ^ (key >> 28))
    return signed(key + (key << 31))


def hash_of(value: Any, column: str) -> int:
    if isinstance(value, bytes):
        return kernels.xxh64(value)
    if column == "real":
        value = struct.unpack("<i", struct.pack("<f", value))[0]
    elif column == "wide":
        value = struct.unpack("<q", struct.pack("<d", value))[0]
    return wang(value)


def bits_of(hashes: Iterable[int], m: int, k: int) -> bytes:
    bits = bytearray(m // 8)
    for value in hashes:
        for turn in range(1, k + 1):
            at = signed(value + turn * (value >> 32), 32)
            at = (~at if at < 0 else at) % m
            bits[at >> 3] |= 1 << (at & 7)
    return bytes(bits)


def plain_values(path: Path, column: str) -> list[Any]:
    """The values as Paimon hashes them: integers, floats or bytes."""
    read = orc.ORCFile(path).read() if path.suffix == ".orc" else pq.read_table(path)
    values = read[column].combine_chunks().drop_null()
    kind = values.type
    if pa.types.is_timestamp(kind):
        unit = 10**3 if column == "milli" else 10**6
        per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return [value * unit // per_second for value in values.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_string(kind):
        return [value.rstrip().encode() for value in values.to_pylist()]
    return list(values.to_pylist())


@pytest.mark.parametrize("name", ["parquet", "orc", "embedded", "large"])
def test_the_bits_are_those_that_paimon_set_for_the_values(tables: Path, name: str) -> None:
    path = data_file(tables, name)
    found = [one for one in bloomcli.inspect(path).engine_filters if one.kind == "paimon" and one.column in COLUMNS]
    assert len(found) == {"embedded": 2, "large": 1}.get(name, len(COLUMNS))
    for one in found:
        values = plain_values(path, one.column)
        assert len(values) == ROWS - ROWS // 50
        dumped = bloomcli.dump(path, column=one.column)
        assert (one.bits, one.hash_functions) == (8 * len(dumped.bitset), int.from_bytes(dumped.header, "big"))
        hashes = (hash_of(value, one.column) for value in values)
        assert bits_of(hashes, 8 * len(dumped.bitset), dumped.header[-1]) == dumped.bitset, one.column
        if name != "embedded":
            assert body_of(path, one.column) == dumped.header + dumped.bitset


@FORMATS
def test_filters_are_shown_with_their_place_their_size_and_the_values_that_they_were_sized_for(
    tables: Path, name: str
) -> None:
    path = data_file(tables, name)
    found = {(one.column, one.kind): one for one in bloomcli.inspect(path).engine_filters}
    assert set(found) == {*((c, "paimon") for c in (*COLUMNS, "tags[colour]")), ("tiny", "paimon-bitmap")}
    one = found["text", "paimon"]
    assert (one.place, one.path) == (f"index file {path.name}.index", str(index_of(path)))
    assert (one.bits, one.hash_functions, one.hash) == (1440, 3, "xxh64")
    assert (one.values, one.sized_for, one.asked_fpp) == (ROWS, 300, 0.1)
    assert one.fill is not None
    assert one.fpp == pytest.approx(one.fill**3)
    assert one.ndv_estimate == pytest.approx(294, rel=0.05)
    assert found["tags[colour]", "paimon"].problem is not None
    assert found["tiny", "paimon-bitmap"].problem == "another index than a Bloom filter"


def test_an_index_in_the_manifest_is_found_there(tables: Path) -> None:
    found = bloomcli.inspect(data_file(tables, "embedded")).engine_filters
    assert {(one.column, one.place, one.problem) for one in found} == {
        ("text", "manifest", None),
        ("whole", "manifest", None),
    }
    assert {Path(str(one.path)).parent.name for one in found} == {"manifest"}


def test_a_file_that_is_named_from_within_its_directory_or_by_a_link_has_its_filters(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data_file(tables, "parquet")
    folder, link = tables / "folder", tables / "link.parquet"
    folder.symlink_to(path.parent)
    link.symlink_to(path)
    monkeypatch.chdir(path.parent)
    for named in (path.name, f"./{path.name}", f"../bucket-0/{path.name}", link, folder / path.name):
        assert bloomcli.fold(named, dry_run=True).changes, named
        assert not [one for one in bloomcli.inspect(named).engine_filters if "no manifest" in str(one.problem)], named
        assert len(bloomcli.inspect(named).engine_filters) == 17, named


@pytest.mark.parametrize("gone", ["schema/schema-0", "manifest"])
def test_metadata_that_are_gone_are_named_and_no_filter_is_used(
    tables: Path, capsys: pytest.CaptureFixture[str], gone: str
) -> None:
    path, removed = data_file(tables, "parquet"), tables / "parquet" / gone
    if removed.is_dir():
        for one in removed.iterdir():
            one.unlink()
    else:
        removed.unlink()
    replaced(path, "whole", struct.pack(">i", 3) + bytes(180))
    clear_caches()
    assert run(["inspect", str(path)]) == 0
    text = capsys.readouterr().out
    assert f"paimon: {tables / 'parquet' / gone}" in text
    assert " can't be read: no such file" in text
    assert run(["validate", str(path)]) == 0
    assert "()" not in capsys.readouterr().out
    assert sum(batch.num_rows for batch in bloomcli.find(path, ["-447"], column="whole", as_files=True)) == 1


@pytest.mark.parametrize("snapshot", ["{}", '{"baseManifestList": null, "deltaManifestList": "m"}'])
def test_a_snapshot_without_manifest_lists_is_damaged(tables: Path, snapshot: str) -> None:
    (tables / "parquet" / "snapshot" / "snapshot-1").write_text(snapshot)
    (found,) = bloomcli.validate(data_file(tables, "parquet")).findings
    assert (found.id, "doesn't name its manifest lists" in found.message) == ("engine-filter-damaged", True)


def test_a_type_of_an_absurd_precision_has_no_hash(tables: Path) -> None:
    path, schema = data_file(tables, "parquet"), tables / "parquet" / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"TIMESTAMP(3)"', f'"TIMESTAMP({"9" * 5000})"'))
    clear_caches()
    found = bloomcli.validate(path, deep=True).findings
    assert {one.column for one in found if one.id == "filter-not-checked"} == {"milli", "tags[colour]"}


def test_an_index_file_that_cannot_be_opened_is_a_note_and_nothing_is_ruled_out(tables: Path) -> None:
    path = data_file(tables, "parquet")
    index_of(path).unlink()
    index_of(path).mkdir()
    assert [one.problem for one in bloomcli.inspect(path).engine_filters] == [f"{index_of(path)}: it is a directory"]
    assert [one.id for one in bloomcli.validate(path, deep=True).findings] == ["filter-not-checked"]
    assert bloomcli.probe(path, ["keyé 1"], column="text").totals[0].answer is not Presence.ABSENT


@pytest.mark.slow
def test_every_form_of_the_report_has_the_filters(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data_file(tables, "parquet")
    page = tables / "page.html"
    assert run(["inspect", str(path), "--report", f"html={page}"]) == 0
    text = capsys.readouterr().out
    assert text.count("paimon: index file") == 1
    assert run(["inspect", str(path), "--format", "csv"]) == 0
    assert run(["inspect", str(path.parent), "--all", "--format", "csv"]) == 0
    one, many = capsys.readouterr().out.split("path,row_group,")[1:]
    rows = list(csv.DictReader(("path,row_group," + one).splitlines()))
    assert {row["column"] for row in rows} == {*COLUMNS, "tags[colour]"}
    assert {row["place"] for row in rows} == {f"index file {path.name}.index"}
    assert many.splitlines() == one.splitlines()
    for shown in ("besides 17 that an engine keeps", "paimon-bitmap", "tags[colour]"):
        assert shown in page.read_text()


@pytest.mark.slow
def test_reports_on_a_folder_count_the_filters_of_each_column(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tables / "page.html"
    assert run(["inspect", str(tables / "large"), "--report", f"html={page}"]) == 0
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if line.startswith("text ")).split()[-1] == "1"
    assert "1 of an engine not used: no manifest of the newest snapshot lists it" in out
    assert "No file has a Bloom filter of its format, besides 1 that engines keep." in page.read_text()
    assert [one.engine_filters for one in bloomcli.inspect(tables / "embedded").by_column] == [1, 1]
    with pytest.raises(UsageError, match="15 columns have filters"):
        bloomcli.dump(data_file(tables, "parquet"))


@pytest.mark.slow
def test_a_dry_run_on_a_folder_skips_a_file_whose_filters_stay(tables: Path) -> None:
    path = str(data_file(tables, "parquet"))
    (row,) = (one for one in bloomcli.fold(tables / "parquet", dry_run=True).rows if one.path == path)
    assert (row.status, row.reason) == (Status.SKIPPED, "no filter can be smaller")


def test_an_index_file_that_no_manifest_lists_is_shown_and_used_by_nothing(tables: Path) -> None:
    path = data_file(tables, "large", current=False)
    (one,) = bloomcli.inspect(path).engine_filters
    assert one.problem == "no manifest of the newest snapshot lists it"
    replaced(path, "text", struct.pack(">i", 3) + bytes(64))
    assert faults(path) == []
    assert bloomcli.probe(path, ["keyé 1"], column="text").totals[0].answer is not Presence.ABSENT


@FORMATS
def test_no_value_is_missing_by_the_proof(tables: Path, name: str) -> None:
    report = bloomcli.validate(data_file(tables, name), deep=True)
    assert {(one.id, one.column) for one in report.findings} == {
        ("filter-not-checked", "tags[colour]"),
        *([("filter-not-checked", "fixed")] if name == "orc" else []),
    }
    assert report.filters_checked == len(COLUMNS) - (name == "orc")
    proven = len(COLUMNS) - (name == "orc")  # ORC pads a CHAR with blanks
    assert report.values_checked == proven * (ROWS - ROWS // 50)


@FORMATS
def test_probe_finds_every_row_s_value_and_excludes_most_absent_ones(tables: Path, name: str) -> None:
    path = data_file(tables, name)
    for column, texts, absent in (
        ("text", [f"keyé {row}" for row in range(48)], [f"nokey {row}" for row in range(100)]),
        ("small", [str(row * 7 - 900) for row in range(48)], [str(row * 7 - 899) for row in range(100)]),
        ("day", ["1970-01-01", "1970-04-01"], [f"1970-02-{day:02}" for day in range(1, 29)]),
        ("micro", ["1970-01-01 00:00:00"], [f"1970-01-01 00:00:00.{n:06}" for n in range(1, 100)]),
        ("nano", ["1970-01-01 00:00:00.000000100"], [f"1970-01-01 00:00:00.{n:06}" for n in range(1, 100)]),
        ("real", ["NaN", "-0.0"], [f"{n}.77" for n in range(100)]),
    ):
        there = bloomcli.probe(path, texts, column=column)
        assert {one.presence for one in there.engine_filters} <= {Presence.MAYBE, Presence.UNKNOWN}, column
        found = bloomcli.probe(path, absent, column=column).engine_filters
        assert sum(one.presence is Presence.ABSENT for one in found) > 0.8 * len(absent), column


def test_probe_explains_the_bits(tables: Path) -> None:
    report = bloomcli.probe(data_file(tables, "parquet"), ["-450"], column="whole", explain=True)
    (trail,) = report.engine_filters[0].trail
    assert trail.hash == wang(-450) % (1 << 64)
    assert trail.present == (True, True, True)


def test_find_uses_the_filter(tables: Path) -> None:
    path = data_file(tables, "parquet")

    def found() -> int:
        return sum(batch.num_rows for batch in bloomcli.find(path, ["-447"], column="whole", as_files=True))

    assert found() == 1
    replaced(path, "whole", struct.pack(">i", 3) + bytes(180))
    assert found() == 0, "the filter that says so is asked"


# --- faults


def cut(path: Path) -> None:
    index_of(path).write_bytes(index_of(path).read_bytes()[:-5])


def patch(at: int, data: bytes) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        whole = bytearray(index_of(path).read_bytes())
        whole[at : at + len(data)] = data
        index_of(path).write_bytes(whole)

    return edit


def entry_patch(field: int, value: int) -> Callable[[Path], None]:
    """Change the start (0) or the length (4) of the filter of `text`."""

    def edit(path: Path) -> None:
        entry = next(one for one in index(path).entries if one.column == "text")
        patch(entry.at + field, struct.pack(">i", value))(path)

    return edit


FAULTS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "zeroed": (lambda path: replaced(path, "text", struct.pack(">i", 3) + bytes(180)), "misses", "294 of 294 values"),
    "empty over rows": (lambda path: replaced(path, "text", None), "misses", "294 of 294 values"),
    "cut": (cut, "damaged", "the file ends at"),
    "absent": (lambda path: index_of(path).unlink(), "missing", "queries with a condition on any column fail"),
    "no index": (patch(0, bytes(8)), "damaged", "no file index"),
    "version": (patch(8, struct.pack(">i", 2)), "damaged", "version 2"),
    "huge header": (patch(12, struct.pack(">i", 2**31 - 1)), "damaged", "a header of 2147483647 bytes"),
    "negative header": (patch(12, struct.pack(">i", -1)), "damaged", "a header of -1 bytes"),
    "columns": (patch(16, struct.pack(">i", 2**31 - 1)), "damaged", "the header ends within its columns"),
    "negative columns": (patch(16, struct.pack(">i", -7)), "damaged", "-7 columns"),
    "name": (patch(20, b"\xff\xff"), "damaged", "a name that ends behind the header"),
    "start": (entry_patch(0, 2**31 - 1), "damaged", "the file ends at"),
    "start in header": (entry_patch(0, 3), "damaged", "from 3 on"),
    "length": (entry_patch(4, 2**31 - 1), "damaged", "2147483647 bytes: more than"),
    "length beyond the end": (entry_patch(4, 100_000), "damaged", "the file ends at"),
    "negative length": (entry_patch(4, -2), "damaged", "-2 bytes"),
    "short": (entry_patch(4, 4), "damaged", "0 bytes of bits"),
    "overlap": (entry_patch(4, 400), "damaged", "another index"),
    "no hash functions": (lambda path: replaced(path, "text", bytes(184)), "damaged", "0 hash functions"),
    "signed hash functions": (
        lambda path: replaced(path, "text", struct.pack(">i", 200) + bytes(180)),
        "damaged",
        "200 hash functions",
    ),
    "overfilled": (lambda path: replaced(path, "text", struct.pack(">i", 3) + b"\xff" * 20), "overfilled", "is 1;"),
}


@pytest.mark.parametrize(("edit", "rule", "text"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_a_finding_and_new_filters_mend_it(
    tables: Path, edit: Callable[[Path], None], rule: str, text: str
) -> None:
    path = data_file(tables, "parquet")
    edit(path)
    found = faults(path)
    assert f"engine-filter-{rule}" in {one.id for one in found}
    assert any(text in one.message for one in found), [one.message for one in found]
    bloomcli.inspect(path)  # shows what can be read
    bloomcli.probe(path, ["x"], column="text")
    if index_of(path).exists():
        try:
            index(path)
        except CorruptFile:
            with pytest.raises(CorruptFile):  # which other indexes are in it isn't known
                bloomcli.add(path, ["text"], replace=True, in_place=True)
            return
    columns = COLUMNS if rule == "missing" or text.startswith("another") else ["text", found[0].column or "text"]
    bloomcli.add(path, columns, replace=True, in_place=True)
    assert faults(path) == []


def test_an_oversized_filter_is_a_note_and_fold_makes_it_smaller(tables: Path) -> None:
    path = data_file(tables, "large")
    (found,) = bloomcli.validate(path, deep=True).findings
    assert found.id == "engine-filter-oversized"
    assert "--replace --columns text --in-place" in str(found.hint)
    (advice,) = bloomcli.advise(path).engine_filters
    assert (advice.setting, advice.bytes) == ("file-index.bloom-filter.text.items=300", 599_071)
    before, data = index_of(path).stat().st_size, path.read_bytes()
    planned = bloomcli.fold(path, dry_run=True)
    assert index_of(path).stat().st_size == before
    report = bloomcli.fold(path, in_place=True)
    assert (report.output, report.bytes_before, report.bytes_after) == (
        str(index_of(path)),
        before,
        planned.bytes_after,
    )
    (change,) = report.changes
    assert (change.action, change.column) == ("fold", "text")
    assert change.bitset_bytes is not None
    assert change.bitset_bytes < 500
    assert change.fpp is not None
    assert change.fpp <= 0.01
    assert path.read_bytes() == data
    assert faults(path) == []
    again = bloomcli.fold(path, in_place=True)
    assert (again.output, again.changes[0].action) == (None, "keep")


@FORMATS
def test_only_the_chosen_filters_change(tables: Path, name: str) -> None:
    path = data_file(tables, name)
    before, data = index(path), path.read_bytes()
    kept = {(one.column, one.kind): before.body(one) for one in before.entries}
    columns = ["text", "whole", "nano", "real"]
    bloomcli.add(path, columns, fpp=0.001, replace=True, in_place=True)
    after = index(path)
    assert [one[:2] for one in after.entries] == [one[:2] for one in before.entries]
    for one in after.entries:
        changed = one.column in columns and one.kind == BLOOM
        assert (after.body(one) != kept[one.column, one.kind]) == changed
    assert path.read_bytes() == data
    assert faults(path) == []
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name, index_of(path).name]


def test_kept_indexes_that_share_bytes_are_not_copied_once_for_each(tables: Path) -> None:
    path = data_file(tables, "parquet")
    found = {(one.column, one.kind): one for one in index(path).entries}
    whole, bitmap = found["whole", BLOOM], found["tiny", "bitmap"]
    patch(bitmap.at, struct.pack(">ii", whole.start, whole.length))(path)
    before = index_of(path).read_bytes()
    with pytest.raises(CorruptFile, match=r"the index b.* of column .* has bytes of another one"):
        bloomcli.add(path, ["text"], replace=True, in_place=True)
    assert index_of(path).read_bytes() == before
    bloomcli.add(path, ["whole"], replace=True, in_place=True)
    assert [one.id for one in faults(path)] == []


@pytest.fixture
def reachable(tables: Path) -> Iterator[Path]:
    """The tables in a folder that other users can reach."""
    with tempfile.TemporaryDirectory() as top:
        shutil.copytree(tables, top, dirs_exist_ok=True)
        for one in (Path(top), *Path(top).rglob("*")):
            one.chmod(0o755)
        yield Path(top)


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """Be another user if this one is root, whom modes don't bind."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize(
    ("folder", "file", "said"),
    [
        (0o555, 0o644, "can't be written: permission denied"),
        (0o777, 0o000, "can't be read: permission denied"),
        (0o777, 0o444, None),
    ],
    ids=["read-only folder", "unreadable file", "read-only file"],
)
def test_a_user_without_rights_gets_an_error_that_names_the_index_file_and_leaves_nothing(
    reachable: Path, folder: int, file: int, said: str | None
) -> None:
    path = data_file(reachable, "large")
    target, old = index_of(path), index_of(path).read_bytes()
    bloomcli.fold(path, in_place=True)  # imports what the other user may not be able to read
    target.write_bytes(old)
    before = sorted(path.parent.iterdir())
    path.parent.chmod(folder)
    target.chmod(file)
    try:
        with bound_by_modes():
            if said is None:
                bloomcli.fold(path, in_place=True)
            else:
                with pytest.raises(BloomError, match=said) as caught:
                    bloomcli.fold(path, in_place=True)
                assert (caught.value.path, caught.value.exit_code) == (str(target), 3)
    finally:
        path.parent.chmod(0o755)
    assert target.stat().st_mode & 0o777 == file, "a new file has the old one's mode, as a data file's has"
    target.chmod(0o644)
    assert (target.read_bytes() == old) is (said is not None)
    assert sorted(path.parent.iterdir()) == before


def test_a_glob_leaves_out_columns_without_a_filter(tables: Path) -> None:
    path = data_file(tables, "parquet")
    report = bloomcli.add(path, ["t*"], replace=True, in_place=True)
    assert [change.column for change in report.changes] == ["text", "tiny"]


@pytest.mark.slow
def test_a_directory_s_index_files_are_folded(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["fold", str(tables / "large"), "--in-place", "--format", "json"])
    assert (code, index_of(data_file(tables, "large")).stat().st_size < 1000) == (0, True), capsys.readouterr().out


@pytest.mark.parametrize("name", ["embedded", "parquet"])
def test_the_data_file_is_never_changed_in_place(tables: Path, name: str) -> None:
    path = data_file(tables, name)
    data = path.read_bytes()
    with pytest.raises(UsageError, match="a Paimon table") as caught:
        bloomcli.add(path, ["whole"], in_place=True, readers=["spark"])
    assert "sys.rewrite_file_index" in str(caught.value.hint)
    if name == "embedded":
        with pytest.raises(UsageError, match="a Paimon table"):
            bloomcli.fold(path, in_place=True)
    with pytest.raises(UsageError, match="no filter of column tags"):
        bloomcli.add(data_file(tables, "parquet"), ["tags.key_value.key"], replace=True, in_place=True)
    assert path.read_bytes() == data


def test_a_table_isn_t_searched_as_plain_files(tables: Path) -> None:
    with pytest.raises(UsageError, match="a Paimon table"):
        bloomcli.find(tables / "parquet", ["1"], column="whole")


def test_a_run_looks_the_table_up_once(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    for path in (one for one in (tables / "large").rglob("*") if one.is_file()):
        store.client.store(f"{SCHEME}://lake/{path.relative_to(tables)}", path.read_bytes())
    lake = f"{SCHEME}://lake/large/"
    paths = [f"{lake}bucket-0/{path.name}" for path in (tables / "large/bucket-0").glob("*.parquet")]
    for path in paths:
        bloomcli.inspect(path)

    def of_the_table(call: Callable[[], object]) -> list[tuple[str, str]]:
        store.client.requests.clear()
        call()
        return [(one.kind, one.key) for one in store.client.requests if "bucket-0" not in one.key]

    once = [("LIST", "large/"), ("LIST", "large/snapshot/"), ("GET", "large/snapshot/snapshot-2")]
    assert of_the_table(lambda: bloomcli.inspect(paths[0])) == once
    assert of_the_table(lambda: list(map(bloomcli.inspect, paths))) == once * 2
    with shared():
        assert of_the_table(lambda: list(map(bloomcli.inspect, paths))) == once
    assert of_the_table(lambda: bloomcli.inspect(paths[0])) == once, "the next run looks again"
    clear_caches()
    store.client.on_request = lambda _: time.sleep(0.01)  # the threads ask for the same at the same time
    with shared(), ThreadPoolExecutor(2) as threads:
        found = of_the_table(lambda: list(threads.map(bloomcli.inspect, paths)))
    assert set(once) < set(found)
    assert len(found) == len(set(found))
    found = of_the_table(lambda: list(bloomcli.find(lake, ["keyé 1"], column="text", as_files=True)))
    assert found.count(once[1]) == 1


def test_without_fastavro_the_report_says_what_is_missing(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bloomcli.engine_filters.paimon import table

    table._entries.cache_clear()
    monkeypatch.setitem(sys.modules, "fastavro", None)
    path = data_file(tables, "parquet")
    (one,) = bloomcli.inspect(path).engine_filters
    assert "fastavro" in str(one.problem)
    (found,) = bloomcli.validate(path, deep=True).findings
    assert (found.id, "pip install" in str(found.hint)) == ("filter-not-checked", True)


@pytest.mark.slow
def test_damaged_metadata_of_the_table_end_in_findings_and_never_in_another_exception(tables: Path) -> None:
    """Flips bytes of the index file, the manifests, the schema and the snapshot."""
    dice = random.Random(36)
    path = data_file(tables, "parquet")
    root = tables / "parquet"
    files = [
        index_of(path),
        *(root / "manifest").iterdir(),
        root / "schema" / "schema-0",
        root / "snapshot/snapshot-1",
    ]
    for turn in range(160):
        target = files[turn % len(files)]
        whole = target.read_bytes()
        edited = bytearray(whole)
        for _ in range(dice.choice((1, 1, 2, 8))):
            at = dice.randrange(min(len(edited), 600))
            edited[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, edited[at] ^ 1 << dice.randrange(8)))
        if turn % 9 == 0:
            del edited[dice.randrange(len(edited)) :]
        target.write_bytes(edited)
        clear_caches()
        for call in (
            lambda: bloomcli.inspect(path),
            lambda: bloomcli.validate(path, deep=True),
            lambda: bloomcli.fold(path, dry_run=True),
        ):
            try:
                call()
            except BloomError as error:
                assert error.reason
        target.write_bytes(whole)
    clear_caches()
    assert faults(path) == []


def clear_caches() -> None:
    from bloomcli.engine_filters.paimon import table

    table._entries.cache_clear()
    table._schema.cache_clear()


def test_names_are_written_as_java_writes_them() -> None:
    names = {"a\0b": b"1234x", "ключ": b"5678y", "\U0001f600": b"9"}
    data = new_index(names)
    assert b"a\xc0\x80b" in data
    assert "\U0001f600".encode("utf-16-be")[:1] == b"\xd8"
    assert b"\xed\xa0\xbd\xed\xb8\x80" in data
    found = IndexFile(Embedded("", data))
    assert {one.column: found.body(one) for one in found.entries} == names
