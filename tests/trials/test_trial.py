"""`bloomcli.trial`: finds lost rows, removes its copies, and reports readers that don't run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.object_stores import SCHEME, MemoryObjects
from support.processes import children, started, wait_until
from support.trials import FAST, NO_JAVA, of, orders, trial, zeros

import bloomcli
from bloomcli import limits
from bloomcli.commands import change
from bloomcli.commands.options import AddOptions, TrialOptions
from bloomcli.errors import UnsupportedError, WriteError
from bloomcli.model.trial import TrialReport
from bloomcli.storage import registry
from bloomcli.storage.base import Source
from bloomcli.trials import files
from bloomcli.trials import trial as trials

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files: empty again after every trial, and the original unchanged."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    monkeypatch.setenv("TMPDIR", str(path))
    yield path
    assert [p.name for p in path.iterdir() if p.name.startswith("bloom-trial-")] == []


@pytest.mark.interop
def test_datafusion_loses_negative_zeros_by_another_writers_filters_and_not_by_ours(tmp_path: Path) -> None:
    path = zeros(tmp_path / "f.parquet")
    readers = ["datafusion", "duckdb", "chdb"]
    report = trial(path, "c", readers=readers)
    (difference,) = report.differences
    assert (difference.value, difference.rule) == ("0.0", "reader-negative-zero")
    assert (difference.rows_with, difference.rows_without) == (0, 100)
    assert of(report, "datafusion").comparison == "switch"
    assert of(report, "datafusion").switch == "datafusion.execution.parquet.bloom_filter_on_read"
    assert {of(report, name).status for name in ("duckdb", "chdb")} == {"equal"}
    bloomcli.add(path, ["c"], in_place=True, replace=True)
    report = trial(path, "c", readers=readers)
    assert (report.differences, report.exit_code) == ((), 0)


@pytest.mark.interop
def test_filters_without_the_files_values_are_found_by_every_reader_that_looks(tmp_path: Path) -> None:
    """Damaged filters lose rows in each reader that trusts them."""
    path = orders(tmp_path / "f.parquet", filters=True)
    data, other = bytearray(path.read_bytes()), (tmp_path / "g.parquet")
    for found in bloomcli.inspect(path).filters:  # emptied: every value is absent
        start, size = found.offset + (found.header_bytes or 0), found.bitset_bytes or 0
        data[start : start + size] = bytes(size)
    other.write_bytes(data)
    report = trial(other, "id")
    assert {reader.reader: reader.status for reader in report.readers} == {
        "duckdb": "unequal",
        "datafusion": "unequal",
        "chdb": "unequal",
        "pyarrow": "equal",
        "polars": "equal",
    }
    assert {difference.rule for difference in report.differences} == {None}
    assert {(d.rows_with, d.rows_without) for d in report.differences} == {(0, 1)}


@pytest.mark.interop
@pytest.mark.parametrize("rule", ["filter-hash", "filter-compression", "filter-algorithm"])
def test_a_reader_that_fails_with_filters_only_is_a_finding(fixtures: Path, rule: str) -> None:
    report = trial(fixtures / "rules" / rule / "broken.parquet", "name", readers=["chdb", "duckdb"])
    assert of(report, "duckdb").status == "equal"
    assert of(report, "chdb").status == "unequal"
    assert report.differences
    for difference in report.differences:
        assert (difference.rule, difference.rows_with) == (rule, None)
        rows = "1 row" if difference.rows_without else "0 rows"
        assert f"fails with filters, and returns {rows} without: Code: 117" in difference.message
    assert report.exit_code == 1


@pytest.mark.interop
def test_duckdb_loses_intervals_by_filters_without_their_normal_form(fixtures: Path) -> None:
    folder = fixtures / "rules" / "reader-interval"
    report = trial(folder / "broken.parquet", "lasts", readers=["duckdb"], values=20)
    assert report.differences
    assert {difference.rule for difference in report.differences} == {"reader-interval"}
    assert trial(folder / "sound.parquet", "lasts", readers=["duckdb"], values=20).differences == ()


@pytest.mark.interop
def test_filters_are_added_for_columns_without_and_the_others_kept(tmp_path: Path) -> None:
    path = orders(tmp_path / "f.parquet", filters=True)
    report = trial(path, "id", "name", readers=["duckdb", "datafusion"], values=3)
    assert {reader.comparison for reader in report.readers} == {"removed", "switch"}
    for reader in report.readers:
        assert reader.status == "equal"
        for lookups in reader.lookups:
            assert lookups.row_groups_with is not None
            if lookups.kind == "absent":
                assert lookups.row_groups_with <= 3


@pytest.mark.interop
def test_times_are_ratios_of_interleaved_runs_with_quartiles(tmp_path: Path) -> None:
    report = trial(orders(tmp_path / "f.parquet"), "id", readers=["duckdb"], values=3, runs=4)
    for lookups in of(report, "duckdb").lookups:
        assert lookups.ratio is not None
        assert lookups.seconds_with is not None
        assert lookups.ratio.count == lookups.seconds_with.count == 12
        assert 0 < lookups.ratio.low <= lookups.ratio.median <= lookups.ratio.high
    report = trial(orders(tmp_path / "f.parquet"), "id", readers=["duckdb"], runs=0)
    assert {lookups.ratio for lookups in of(report, "duckdb").lookups} == {None}


@pytest.mark.interop
def test_frequent_values_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f.parquet"
    rows = limits.TRIAL_ROWS_COMPARED + 1
    pq.write_table(pa.table({"c": ["often"] * rows + ["once"]}), path)
    report = trial(path, "c")
    for reader in report.readers:
        (present, _) = reader.lookups
        assert (present.rows_without, present.rows_with) == (rows + 1, rows + 1), reader.reader


@pytest.mark.slow
def test_a_reader_that_is_not_installed_is_a_row_and_none_at_all_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = orders(tmp_path / "f.parquet", 100)
    from bloomcli.trials import readers

    entries = [e._replace(package="no-such-package" if e.name == "polars" else e.package) for e in readers.ENTRIES]
    monkeypatch.setattr(readers, "_BY_NAME", {entry.name: entry for entry in entries})
    report = trial(path, "id", readers=["polars", "pyarrow"])
    polars = of(report, "polars")
    assert (polars.status, polars.version, polars.hint) == ("not-installed", None, "pip install 'bloomcli[trial]'")
    assert (of(report, "pyarrow").status, report.exit_code) == ("equal", 0)
    with pytest.raises(UnsupportedError, match="none of the readers is installed: Polars") as raised:
        trial(path, "id", readers=["polars"])
    assert raised.value.hint == "pip install 'bloomcli[trial]'"


@pytest.mark.interop
def test_a_reader_that_does_not_answer_is_a_row_with_its_error(tmp_path: Path) -> None:
    report = trial(orders(tmp_path / "f.parquet", 100), "id", readers=["duckdb"], timeout=0.001)
    duckdb = of(report, "duckdb")
    assert (duckdb.status, duckdb.reason) == ("failed", "no answer for 0.001 s: it starts")
    assert report.exit_code == 3


@pytest.mark.interop
def test_a_reader_that_crashes_is_a_row_with_its_error(tmp_path: Path) -> None:
    path, known = orders(tmp_path / "f.parquet"), set(children(os.getpid()))
    killed: list[str] = []

    def crash(step: str) -> None:
        if step == "DuckDB: 1 of 8 lookups":
            (child,) = set(children(os.getpid())) - known
            os.kill(child, signal.SIGSEGV)
            killed.append("DuckDB")

    # so many runs that the next lookup takes long enough to crash in it
    options = TrialOptions(columns=["id"], readers=["duckdb"], values=4, runs=500)
    report = trials.run([str(path)], options, on_step=crash)
    assert killed == ["DuckDB"]
    duckdb = of(report, "duckdb")
    assert duckdb.status == "failed"
    assert duckdb.reason is not None
    assert "its process ended by SIGSEGV: id = " in duckdb.reason
    assert sum(lookups.lookups for lookups in duckdb.lookups) >= 1
    assert report.exit_code == 3
    assert set(children(os.getpid())) == known


@contextmanager
def running(path: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a trial that has made its copies, and started its reader."""
    args = ["trial", path, "-c", "id", "--readers", "duckdb", "--runs", "100000"]
    with started(
        [sys.executable, "-m", "bloomcli", *map(str, args)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        copies = "bloom-trial-*/0/with-filters.parquet"
        assert wait_until(lambda: process.poll() or (any(folder.glob(copies)) and children(process.pid)))
        assert process.poll() is None
        yield process


@pytest.mark.interop
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_signal_leaves_neither_copies_nor_processes(tmp_path: Path, folder: Path, number: int) -> None:
    path = orders(tmp_path / "f.parquet")
    with running(path, folder) as process:
        (child,) = children(process.pid)
        process.send_signal(number)
        process.communicate(timeout=600)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert not Path(f"/proc/{child}").exists()
    assert list(folder.iterdir()) == []


@pytest.mark.interop
def test_the_next_trial_removes_the_copies_of_a_killed_one_and_not_those_of_a_running_one(
    tmp_path: Path, folder: Path
) -> None:
    path = orders(tmp_path / "f.parquet")
    with running(path, folder) as process:
        (left,) = folder.iterdir()
        os.utime(left, (0, 0))
        trial(path, "id", readers=["pyarrow"])
        assert left.is_dir(), "its trial runs"
        process.kill()
    assert left.is_dir()
    trial(path, "id", readers=["pyarrow"])
    assert not left.exists()


def test_copies_that_do_not_fit_are_an_error_before_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  as shutil's
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 30, 1 << 30, 100))
    monkeypatch.setattr(change, "run", no_copy(change.run))
    with pytest.raises(WriteError, match=r"a temporary copy needs 3[0-9.]+ KiB and .* has 100 B free") as raised:
        trial(orders(tmp_path / "f.parquet"), "id", readers=["pyarrow"])
    assert "TMPDIR=" in str(raised.value.hint)


def no_copy(run: Callable[..., Any]) -> Callable[..., Any]:
    """An `add` that fails the test if it writes."""

    def checked(path: str, options: AddOptions) -> Any:
        assert options.dry_run
        return run(path, options)

    return checked


@pytest.mark.interop
def test_a_sample_of_a_dataset_is_tried(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for day in range(6):
        (lake / f"day={day}").mkdir(parents=True)
        orders(lake / f"day={day}" / "part.parquet", 200)
    (lake / "notes.txt").write_text("no data")

    def tried(seed: int) -> TrialReport:
        return bloomcli.trial(lake, columns=["id"], readers=["pyarrow"], sample="2", seed=seed, **FAST)

    report = tried(5)
    assert len(report.tried) == 2
    assert report.rows == 400
    assert report.sample == "2"
    assert of(report, "pyarrow").lookups[0].lookups == 8
    assert tried(5).tried == report.tried
    assert any(tried(seed).tried != report.tried for seed in (0, 1))


@pytest.mark.interop
def test_fields_of_a_variant_are_looked_up_by_path_where_a_reader_has_variants(fixtures: Path) -> None:
    """DuckDB has, and finds them; it reads every row group. DataFusion and ClickHouse see a struct. Spark: see
    test_trial_spark.py."""
    path = fixtures / "parquet" / "spark_variant.parquet"
    columns = ["v:$.user.id", "v:$['a.b']"]
    report = trial(path, *columns, readers=["duckdb", "chdb", "datafusion"], values=1, runs=0)
    for reader in report.readers:
        assert [(found.variant_path, found.kind, found.not_found) for found in reader.lookups] == [
            (name, kind, 0) for name in columns for kind in ("present", "absent")
        ]
    duckdb, chdb = of(report, "duckdb"), of(report, "chdb")
    assert [(one.row_groups_without, one.row_groups_with) for one in duckdb.lookups] == [(2, 2)] * 4
    assert {one.rows_read_with for one in chdb.lookups} == {None}  # it counts no rows for the element of a tuple


@pytest.mark.interop
def test_each_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One footer says which columns the file has, and how the queries' literals and the values are read."""
    opened: list[str] = []

    def open_counted(path: str) -> Source:
        opened.append(path)
        return registry.open_source(path)

    monkeypatch.setattr(files, "open_source", open_counted)
    paths = [orders(tmp_path / f"{name}.parquet", 200) for name in "ab"]
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE id = 5;")
    bloomcli.trial(paths, queries=[log], readers=["pyarrow"], **FAST)
    assert opened == list(map(str, paths))


@pytest.mark.interop
def test_a_file_without_a_suffix_that_cannot_be_read_is_named_and_one_of_no_format_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    good = orders(folder / "a.parquet", 200)
    (folder / "b").write_bytes(b"PAR1" + bytes(50) + good.read_bytes()[-8:])
    (folder / "c").write_bytes(b"no format")
    report = bloomcli.trial([folder], columns=["id"], readers=["pyarrow"], sample="100%", **FAST)
    assert report.tried == (str(good),)
    ((path, reason),) = report.failed
    assert (path, report.exit_code) == (str(folder / "b"), 3)
    assert "footer" in reason
    (folder / "b").rename(folder / "A")  # comes first, and queries are resolved by the next one
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE id = 5;")
    report = bloomcli.trial([folder], queries=[log], readers=["pyarrow"], sample="100%", **FAST)
    assert report.tried == (str(good),)
    assert str(folder / "A") in dict(report.failed)


@pytest.mark.slow
def test_objects_are_copied_to_this_machine_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryObjects()
    monkeypatch.setitem(registry.known_stores(), SCHEME, store)
    data = orders(tmp_path / "f.parquet", 200).read_bytes()
    store.client.store(f"{SCHEME}://lake/f.parquet", data)
    report = bloomcli.trial(f"{SCHEME}://lake/f.parquet", columns=["id"], readers=["pyarrow"], **FAST)
    assert report.tried == (f"{SCHEME}://lake/f.parquet",)
    assert of(report, "pyarrow").status == "equal"
    monkeypatch.setattr(limits, "TRIAL_DOWNLOAD_MAX_BYTES", len(data) - 1)
    with pytest.raises(UnsupportedError, match="readers run on local files") as raised:
        bloomcli.trial(f"{SCHEME}://lake/f.parquet", columns=["id"], readers=["pyarrow"], **FAST)
    assert raised.value.path == f"{SCHEME}://lake/f.parquet"


def test_readers_are_those_of_the_extra() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {line.partition(">")[0] for line in extras["trial"]}
    from bloomcli.trials.readers import ENTRIES

    assert names == {entry.package for entry in ENTRIES if entry.extra == "trial"} == {*NO_JAVA} - {"pyarrow"}
