"""A format that another package adds, in one folder, works in every command: tests/formats/toy is such a package.

It is installed as pip installs it, and `bloom` runs in another process than the tests: many commands in one, as each
would import all that they need again.
"""

from __future__ import annotations

import functools
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.datasets import write as write_known
from support.one_process import Run, commands

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).with_name("toy")
IDS = random.Random(7).sample(range(1_000_000), 900)
NAMES = [f"näme {i % 400}" for i in range(900)]

Bloom = Callable[..., Any]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with the toy format installed."""
    source, target = tmp_path_factory.mktemp("toy") / "source", tmp_path_factory.mktemp("site")
    shutil.copytree(TOY, source, ignore=shutil.ignore_patterns("__pycache__"))
    install = ["pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation", "--target", target, source]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    assert (target / "bloom_toy" / "format.py").is_file()
    return target


@pytest.fixture(scope="module")
def run_in_one(site: Path) -> Iterator[Run]:
    """Runs commands of `bloom` where the toy format is installed, all in one process."""
    with commands(environment(site)) as run:
        yield run


@pytest.fixture
def bloom(run_in_one: Run) -> Bloom:
    """Run `bloom` with the toy format installed, and return its report. Fails at another exit code."""
    return functools.partial(reported, run_in_one)


def reported(run: Run, command: str, *arguments: object, code: int = 0, form: str | None = "json") -> Any:
    """The report of a command that must end with this exit code."""
    done = run(command, *arguments, *(["--format", form] if form else []))
    assert done.code == code, done.err
    return done.json if form == "json" else done.out


def start(site: Path | None, *arguments: object, text: bool = True) -> subprocess.CompletedProcess[Any]:
    command = [sys.executable, "-m", "bloomcli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=text, env=environment(site), timeout=600)


def environment(site: Path | None) -> dict[str, str]:
    """The variables of a process that finds the toy format, and this checkout."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [*([site] if site else []), ROOT]))}


@pytest.fixture(scope="module")
def toy_file(site: Path) -> Iterator[Callable[[Path, int], Path]]:
    """Writes a toy file of 900 rows in three row groups; the second argument is added to each id."""
    sys.path.insert(0, str(site))
    from bloom_toy import spec

    def write(path: Path, more: int = 0) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(spec.written({"id": [i + more for i in IDS], "name": NAMES}, 300))
        return path

    yield write
    sys.path.remove(str(site))


@pytest.fixture
def path(tmp_path: Path, toy_file: Callable[[Path, int], Path]) -> Path:
    return toy_file(tmp_path / "f.toy", 0)


@pytest.fixture
def filtered(path: Path, bloom: Bloom) -> Path:
    """The file with filters on both columns."""
    out = path.with_name("filtered.toy")
    bloom("add", path, "--columns", "*", "--fpp", "0.01", "-o", out)
    return out


def test_without_the_package_the_format_is_unknown(path: Path) -> None:
    done = start(None, "inspect", path)
    assert done.returncode == 3
    assert "no Mosaic, ORC or Parquet file" in done.stderr


def test_the_unknown_format_error_names_it_too(tmp_path: Path, run_in_one: Run) -> None:
    (tmp_path / "f").write_bytes(b"nothing that is known")
    done = run_in_one("inspect", tmp_path / "f")
    assert done.code == 3
    assert "no Mosaic, ORC, Parquet or Toy file" in done.err
    assert "b'MOSA' or b'TOYF' at its end" in done.err
    assert "bloom reads Mosaic, ORC, Parquet and Toy files" in done.err


def test_inspect_shows_filters_that_meet_the_rate(filtered: Path, bloom: Bloom) -> None:
    report = bloom("inspect", filtered)
    assert (report["format"], report["rows"], report["row_groups"], report["columns"]) == ("toy", 900, 3, 2)
    assert [(f["row_group"], f["column"]) for f in report["filters"]] == [
        (group, column) for group in range(3) for column in ("id", "name")
    ]
    assert all(0 < f["fpp"] <= 0.01 and f["values"] == 300 for f in report["filters"])
    assert "name" in bloom("inspect", filtered, form="text")


def test_probe_finds_every_value_in_its_row_group_and_excludes_others(filtered: Path, bloom: Bloom) -> None:
    for row, (number, name) in enumerate(zip(IDS, NAMES, strict=True)):
        if row % 90 == 0:
            for column, value in (("id", number), ("name", name)):
                verdicts = bloom("probe", filtered, "--column", column, value)["verdicts"]
                assert verdicts[row // 300]["presence"] == "maybe"
    absent = bloom("probe", filtered, "--column", "id", "-1", code=1)
    assert {verdict["presence"] for verdict in absent["verdicts"]} == {"absent"}
    assert "block" in bloom("probe", filtered, "-c", "id", "-1", "--explain", form="text", code=1)


def test_dump_gives_the_bits_that_are_in_the_file(filtered: Path, bloom: Bloom, site: Path) -> None:
    fact = bloom("inspect", filtered)["filters"][2]
    options = ["--column", "id", "--row-group", str(fact["row_group"]), "--format", "raw"]
    done = start(site, "dump", filtered, *options, text=False)
    data = filtered.read_bytes()[fact["offset"] :][: fact["length"]]
    assert done.stdout[-fact["bitset_bytes"] :] == data[fact["header_bytes"] :]
    assert fact["bitset_bytes"] >= 256


def test_find_refuses_files_of_a_format_without_a_search_whatever_the_column(path: Path, run_in_one: Run) -> None:
    for column in ("name", "nowhere"):
        done = run_in_one("find", "1", path, "-c", column)
        assert done.code == 4
        assert "find reads no files of the format toy" in done.err
        assert f"`bloom probe` with --column {column}" in done.err


def test_an_option_of_another_format_is_refused(path: Path, bloom: Bloom, run_in_one: Run, tmp_path: Path) -> None:
    done = run_in_one("add", path, "-c", "id", "-o", tmp_path / "out.toy", "--kind", "both")
    assert done.code == 2
    assert "Toy has one kind of filter" in done.err
    assert "leave --kind out: it is for ORC" in done.err
    bloom("add", path, "-c", "id", "-o", tmp_path / "out.toy", "--mosaic-draft")


def test_validate_deep_finds_a_value_that_is_not_in_its_filter(filtered: Path, bloom: Bloom) -> None:
    report = bloom("validate", filtered, "--deep")
    assert (report["findings"], report["values_checked"], report["filters_checked"]) == ([], 1800, 6)
    data = bytearray(filtered.read_bytes())
    data[:8] = struct.pack("<q", -5)  # the first id of the first row group
    filtered.write_bytes(data)
    assert bloom("validate", filtered)["findings"] == []
    (finding,) = bloom("validate", filtered, "--deep", code=1)["findings"]
    assert (finding["id"], finding["row_group"], finding["column"]) == ("value-missing", 0, "id")


def test_the_hint_of_a_wanted_filter_and_the_readers_rules_know_the_format(path: Path, bloom: Bloom) -> None:
    options = ("--require", "id", "--readers", "spark,trino,impala,starrocks")
    (finding,) = bloom("validate", path, *options, code=1)["findings"]
    assert finding["message"] == "no filter in 3 of 3 row groups"
    assert finding["hint"] == f"`bloom add {path} --readers spark,trino,impala,starrocks --columns id --in-place`"
    bloom("add", path, "--columns", "id", "--in-place", "--readers", "spark,trino,impala,starrocks")
    assert bloom("validate", path, *options, "--max-fpp", "0.01", "--max-oversize", "4")["findings"] == []


@pytest.fixture
def lake(tmp_path: Path, toy_file: Callable[[Path, int], Path]) -> Path:
    """Toy files in folders, a Parquet file among them, and a file of no format."""
    folder = tmp_path / "lake"
    for number in range(4):
        toy_file(folder / f"part={number}" / f"f{number}.toy", number * 1_000_000)
    write_known(folder / "other.parquet")
    (folder / "notes.txt").write_text("no data")
    (folder / "broken.toy").write_bytes(b"no data either")
    return folder


def test_a_dataset_is_changed_and_checked_by_local_processes(lake: Path, bloom: Bloom) -> None:
    """add, inspect, probe, validate, fold and remove on the lake; in the end every file has its original bytes."""
    before = {path: path.read_bytes() for path in lake.rglob("*.toy")}
    report = bloom("add", lake, "--columns", "id", "--in-place", "--jobs", 2, code=3)
    status = {Path(row["path"]).name: row["status"] for row in report["rows"]}
    assert status == {f"f{n}.toy": "done" for n in range(4)} | {
        "other.parquet": "done",
        "notes.txt": "skipped",
        "broken.toy": "failed",
    }
    again = bloom("add", lake, "--columns", "id", "--in-place", "--jobs", 2, code=3)
    assert {row["status"] for row in again["rows"]} == {"skipped", "failed"}
    (lake / "broken.toy").unlink()
    del before[lake / "broken.toy"]
    assert sum(row["filters"] or 0 for row in bloom("inspect", lake, "--jobs", 2)["rows"]) == 4 * 3 + 2
    probed = bloom("probe", lake, "--column", "id", "-v", IDS[0] + 2_000_000, "--jobs", 2)
    assert [
        Path(r["path"]).name for r in probed["rows"] if r["totals"] and r["totals"][0]["presence"] == "maybe"
    ] == ["f2.toy"]
    checked = bloom("validate", lake, "--deep", "--jobs", 2)
    assert (checked["findings"], checked["filters_checked"]) == ([], 4 * 3 + 2)
    bloom("fold", lake, "--fpp", "0.2", "--in-place", "--jobs", 2)
    bloom("remove", lake, "--in-place", "--jobs", 2)
    assert {path: path.read_bytes() for path in before} == before


def site_with_entry_point(value: str, site: Path, folder: Path) -> Path:
    """A folder of packages in which the toy format's entry point has another value."""
    shutil.copytree(site, folder / "broken")
    (found,) = (folder / "broken").glob("*.dist-info/entry_points.txt")
    found.write_text(f"[bloomcli.formats]\ntoy = {value}\n")
    return folder / "broken"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("bloom_absent.format:FORMATS", "can't be loaded: No module named 'bloom_absent'"),
        ("bloom_toy.format:OTHER", "can't be loaded"),
        ("bloom_toy.spec:MAGIC", "is not a tuple of formats"),
    ],
)
def test_an_entry_point_without_records_is_reported(
    value: str, message: str, site: Path, path: Path, tmp_path: Path
) -> None:
    broken = site_with_entry_point(value, site, tmp_path)
    done = start(broken, "inspect", path)
    assert done.returncode == 4
    assert f"the format 'toy', which another package adds as {value}, " in done.stderr
    assert message in done.stderr


def test_bloom_s_own_formats_need_no_entry_points(site: Path, tmp_path: Path) -> None:
    broken = site_with_entry_point("bloom_absent.format:FORMATS", site, tmp_path)
    assert start(broken, "inspect", ROOT / "fixtures" / "parquet" / "orders.parquet").returncode == 0
