"""Tables are read without PySpark and without Java, by every command that reads, and the output says so."""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import condition, exp
from support import iceberg_metadata
from support.cli import Bloom
from support.one_process import commands

import bloomcli
from bloomcli.commands.options import ValidateOptions
from bloomcli.datasets.engine import LocalEngine, plan_files, run_tasks
from bloomcli.errors import BloomError, UsageError, install
from bloomcli.model.paths import shown_setting
from bloomcli.model.table_statistics import Kind
from bloomcli.tables.base import Leaf
from bloomcli.tables.conditions import Condition
from bloomcli.tables.delta.statistics import CHAR, statistics_of
from bloomcli.tables.java import library_hint
from bloomcli.tables.reading import TableEngine
from bloomcli.tables.without_spark import open_snapshot

Alone = Callable[..., tuple[int, str, str]]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A Delta table of two files, from one of which a row is deleted by an overwrite."""
    path = str(tmp_path / "lake" / "events")
    for start in (0, 100):
        rows = pa.table(
            {"id": range(start, start + 100), "name": [f"n{number}" for number in range(start, start + 100)]}
        )
        deltalake.write_deltalake(path, rows, mode="append")
    deltalake.DeltaTable(path).delete("id = 5")
    return path


@pytest.fixture(scope="module")
def alone() -> Iterator[Alone]:
    """Runs commands in a process that can't import PySpark and finds no Java."""
    missing = "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None\n"
    with commands({"PATH": "/nowhere", "JAVA_HOME": "/nowhere"}, before=missing) as run:

        def call(*arguments: str) -> tuple[int, str, str]:
            done = run(*arguments)
            assert "Traceback" not in done.err, done.err
            return done.code, done.out, done.err

        yield call


def rows(out: str) -> list[Any]:
    return [json.loads(line)["record"]["id"] for line in out.splitlines()]


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether another test's session runs in this process decides nothing here."""
    monkeypatch.setattr("bloomcli.tables.without_spark.is_running", lambda: False)


@pytest.mark.parametrize(
    "part",
    [
        ["--where", "id < 100"],
        ["--snapshot", "0"],
        ["--as-of", "2999-01-01 00:00:00+00:00"],
        ["--where", "id > 0 AND id < 99"],
    ],
)
def test_a_policy_of_a_part_of_a_table_is_for_that_part(
    bloom: Bloom, table: str, part: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = bloom("validate", "--table", table, *part, "--init")
    line = shlex.split(made.out.rpartition("now: bloom ")[2])
    assert line == ["validate", "--table", table, *part]
    assert bloom(*line).code == 0


def test_a_table_without_files_is_said_to_have_none(bloom: Bloom, tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    deltalake.DeltaTable.create(path, deltalake.Schema([deltalake.Field("id", "long")]))
    for command in (["validate"], ["advise"], ["validate", "--init"]):
        done = bloom(*command, "--table", path)
        assert (done.code, done.out) == (2, "")
        assert "the table has no data files" in done.err
    done = bloom("find", "1", "--table", path, "--column", "id")
    assert (done.code, done.out) == (1, "")
    assert "found: nothing, because there is no file to search\n" in done.err


@pytest.mark.slow
def test_commands_read_a_table_by_its_directory_and_say_what_they_read(table: str, alone: Alone) -> None:
    said = f"read without Spark: the Delta log of {table}"
    code, out, err = alone("find", "-v", "5", "-v", "6", "-v", "150", "-c", "id", "--table", table, "-f", "jsonl")
    assert (code, sorted(rows(out)), f"note: {said}\n" in err) == (0, [6, 150], True)
    code, out, err = alone("find", "5", "-c", "id", "--table", table, "--snapshot", "1", "-q", "-f", "jsonl")
    assert (code, rows(out), err) == (0, [5], "")
    for command in (("inspect",), ("probe", "6", "-c", "id"), ("validate", "--deep")):
        code, out, err = alone(*command, "--table", table)
        assert (code, said in " ".join(out.split())) == (0, True), (command, out, err)
    code, out, err = alone("advise", "--table", table, "--columns", "id", "-f", "json")
    assert (code, json.loads(out)["files"]) == (0, 2), err
    code, out, err = alone(
        "trial", "--table", table, "-c", "id", "--readers", "pyarrow", "--values", "2", "-f", "json"
    )
    assert (code, json.loads(out)["files"]) == (0, 2), err


def test_the_hint_of_a_change_keeps_what_was_asked_for_and_shows_no_key(table: str, alone: Alone) -> None:
    asked = ["--exclude", "a\\,b", "--dry-run", "--fpp", "0.001", "--max-bytes", "1024", "--where", "id < 5"]
    secret = ["--footer-key", "hex:00112233445566778899aabbccddeeff", "--conf", "spark.password=secret"]
    code, _, err = alone("add", *asked, *secret, "-c", "id,name", "--table", table)
    hint = shlex.split(err.split("hint: ")[1])
    assert (code, hint[:4]) == (2, ["bloom", "add", "--table", f"delta.`{table}`"])
    at = hint.index("spark.password=***")
    assert hint[at - 1] == "--conf"
    assert [*hint[-len(asked) - 4 : at - 1], *hint[at + 1 :]] == [*asked, "--columns", "id,name"]
    assert hint.count("spark.password=***") == 1
    assert "00112233" not in err
    assert "secret" not in err
    _, _, err = alone("remove", "-n", "--table", table)
    assert err.splitlines()[-1].endswith(" --dry-run")


def test_hints_for_a_table_have_the_settings_of_the_session_that_knows_its_name(table: str) -> None:
    words = ("--master", "local[1]", "--conf", "spark.sql.catalog.ice=a.b.Catalog")
    engine = TableEngine(open_snapshot(table), LocalEngine(jobs=1), words=words)
    report = run_tasks(engine, plan_files(engine, (), ValidateOptions(require=["id"])))
    hints = {shlex.join(shlex.split(str(finding.hint).strip("`"))) for row in report.rows for finding in row.findings}
    assert hints == {shlex.join(["bloom", "add", "--table", f"delta.`{table}`", *words, "--columns", "id"])}
    conf = {"spark.sql.catalog.ice": "a.b.Catalog", "spark.sql.catalog.ice.token": "0123", "spark.app.name": "bloom"}
    session = SimpleNamespace(version="4.1.0", sparkContext=SparkConf(conf))
    words = ("--conf", "spark.sql.catalog.ice=a.b.Catalog", "--conf", "spark.sql.catalog.ice.token=***")
    assert shlex.join(["--table", "ice.db.t", *words]) in library_hint(session, "iceberg", "ice.db.t")
    assert "spark.app.name" not in library_hint(session, "iceberg", "ice.db.t")


class SparkConf(dict[str, str]):
    """Spark's settings as a context returns them."""

    def getConf(self) -> SparkConf:  # noqa: N802
        return self

    def getAll(self) -> list[tuple[str, str]]:  # noqa: N802
        return list(self.items())


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("spark.sql.catalog.ice.uri=http://h:1/a", None),
        ("spark.sql.catalog.ice.uri=thrift://u:p@h:1", "spark.sql.catalog.ice.uri=thrift://***@h:1"),
        ("spark.hadoop.fs.s3a.secret.key=0123", "spark.hadoop.fs.s3a.secret.key=***"),
        ("spark.hadoop.fs.azure.account.key.a=0123", "spark.hadoop.fs.azure.account.key.a=***"),
        ("spark.driver.extraJavaOptions=-DtrustStorePassword=x", "spark.driver.extraJavaOptions=***"),
        ("spark.sql.catalog.x.key-prefix=a/b", None),
        ("spark.sql.catalog.x.key_columns=id", None),
        ("spark.cassandra.keyspace=db", None),
        ("spark.kerberos.keytab=/etc/k", None),
        ("spark.sql.catalog.sas.type=rest", None),
        ("spark.hadoop.fs.azure.account.key.prefix=0123", "spark.hadoop.fs.azure.account.key.prefix=***"),
        ("spark.hadoop.fs.azure.account.key.keyspace=0123", "spark.hadoop.fs.azure.account.key.keyspace=***"),
        ("spark.hadoop.fs.azure.sas.box.a=sv=1&sig=0123", "spark.hadoop.fs.azure.sas.box.a=***"),
        ("spark.hadoop.fs.s3a.access.key=0123", "spark.hadoop.fs.s3a.access.key=***"),
        ("spark.hadoop.fs.s3a.encryption.key=0123", "spark.hadoop.fs.s3a.encryption.key=***"),
        (
            "spark.hadoop.fs.gs.auth.service.account.private.key.id=01",
            "spark.hadoop.fs.gs.auth.service.account.private.key.id=***",
        ),
        ("spark.sql.catalog.x.s3.access-key-id=0123", "spark.sql.catalog.x.s3.access-key-id=***"),
        (
            "spark.sql.catalog.x.adls.auth.shared-key.account.key=01",
            "spark.sql.catalog.x.adls.auth.shared-key.account.key=***",
        ),
        ("spark.sql.catalog.x.header.Authorization=Basic 0123", "spark.sql.catalog.x.header.Authorization=***"),
        ("spark.sql.catalog.x.credential=a:b", "spark.sql.catalog.x.credential=***"),
    ],
)
def test_command_lines_show_no_setting_that_may_be_secret(setting: str, said: str | None) -> None:
    assert shown_setting(setting) == (said or setting)


@pytest.mark.slow
def test_functions_read_a_table_as_the_commands_do(table: str) -> None:
    said = f"read without Spark: the Delta log of {table}"
    now, before = bloomcli.Table(table), bloomcli.Table(Path(table), snapshot=1)
    found = [bloomcli.find(one, [5, 6, 150], column="id").to_arrow()["record"].to_pylist() for one in (now, before)]
    assert [sorted(row["id"] for row in rows) for rows in found] == [[6, 150], [5, 6, 150]]
    assert len(bloomcli.find(table, [5], column="id", as_files=True).to_arrow()) == 1
    probed = bloomcli.probe(now, 6, column="id")
    for report in (bloomcli.inspect(now), probed):
        assert (len(report.rows), report.table.name, report.remarks[:1]) == (2, f"delta.`{table}`", (said,))
    assert probed.version_before == 2
    for gate in (bloomcli.validate(now, deep=True, columns="*"), bloomcli.gate(now)):
        assert (gate.files, gate.ok) == (2, True)
    assert bloomcli.advise(now, columns="id").files == 2
    assert bloomcli.trial(before, columns="id", readers="pyarrow", values=2).files == 2


def test_functions_refuse_what_a_table_can_t_do(table: str) -> None:
    named = bloomcli.Table(table)
    for wrong, said in (
        (lambda: bloomcli.add(named, ["id"], in_place=True), "add changes tables with Spark"),
        (lambda: bloomcli.repair(named, dry_run=True), "repair changes tables with Spark"),
        (lambda: bloomcli.find(named, 1, column="id", as_files=True), "leave out one of them"),
        (lambda: bloomcli.inspect(bloomcli.Table(table, from_properties=True)), "are for add and validate"),
        (lambda: bloomcli.inspect([named]), "takes a path or several paths"),
        (lambda: bloomcli.Table(table, snapshot=1, as_of="2026-01-01"), "exclude each other"),
        (lambda: bloomcli.Table(5), "name takes a path"),
        (lambda: bloomcli.inspect(bloomcli.Table("nowhere/t")), "no table is there"),
    ):
        with pytest.raises(BloomError, match=re.escape(said)):
            wrong()


def test_values_of_a_file_and_an_index_find_the_same_rows(table: str, tmp_path: Path, bloom: Bloom) -> None:
    (tmp_path / "ids").write_text("".join(f"{number}\n" for number in (5, 6, 150, 151, 7000)))
    wanted = ("find", "--values-from", tmp_path / "ids", "-c", "id", "--table", table, "-f", "jsonl", "-q")
    assert sorted(rows(bloom(*wanted).out)) == [6, 150, 151]
    assert bloom("index", "build", table, "-c", "id", "-o", tmp_path / "index").code == 0
    assert sorted(rows(bloom(*wanted, "--index", tmp_path / "index").out)) == [6, 150, 151]
    assert len(rows(bloom(*wanted, "--limit", "2").out)) == 2


def test_a_name_that_nothing_here_finds_is_an_error_that_says_how_to_install_it(alone: Alone) -> None:
    code, _, err = alone("inspect", "--table", "ice.db.orders")
    assert code == 2
    assert "a catalog of PyIceberg's configuration" in err
    assert install("iceberg") in err
    assert install("spark") in err


@pytest.mark.slow
def test_every_command_takes_a_condition_and_reads_the_files_that_may_meet_it(table: str, bloom: Bloom) -> None:
    some = bloomcli.Table(table, where="id < 50 and name like 'n%'")
    found = bloomcli.find(some, [6, 150], column="id")
    assert [row["record"]["id"] for row in found.to_arrow().to_pylist()] == [6]
    probed = bloomcli.probe(some, 6, column="id")
    reports = (bloomcli.inspect(some), bloomcli.validate(some, deep=True), bloomcli.advise(some, columns="id"),
               bloomcli.trial(some, columns="id", readers="pyarrow", values=2))  # fmt: skip
    assert [len(probed.rows), *(report.files for report in reports)] == [1] * 5
    done = bloom("inspect", "--table", table, "--where", "id + 1 = 6")
    assert (done.code, f"--engine spark --table 'delta.`{table}`'" in done.err) == (4, True)


CONDITIONS = """
n = 7
n <> 7
not n in (7, 12)
n between 3 and 7 and not t like 'b%'
n not between 3 and 17
n > 6.5 or t < 'b'
n is null
not (n is null or f < 0)
n <=> null or t is distinct from 'a7'
f > 2.5
f <= -1e-9
f <> 0
d >= date'2026-02-01' and d < '2026-02-20'
d in (date'2026-01-05', null)
d not in (date'2026-01-05', null)
at >= timestamp'2026-01-20 00:00:00Z'
at < timestamp'1960-01-01 00:00:00Z' or m = 12.50
m not in (12.50, 13.75)
m < 0.001
b
not b
b is not true
p = 1
p is null
p <> 1 and n > 10
p in (1, 2) or n = 0
false or q = 'x\\'y'
q >= 'ü' and q is not null
""".strip().splitlines()


@pytest.mark.slow
def test_files_with_rows_that_meet_a_condition_are_never_left_out(tmp_path: Path) -> None:
    chance = random.Random(5)
    kinds = {"n": pa.int64(), "t": pa.string(), "f": pa.float64(), "d": pa.date32(), "m": pa.decimal128(9, 2),
             "at": pa.timestamp("us", "UTC"), "b": pa.bool_(), "p": pa.int32(), "q": pa.string()}  # fmt: skip
    for _ in range(14):
        start, rows = chance.randrange(20), chance.randrange(1, 4)
        partition = {"p": chance.choice([1, 2, None]), "q": chance.choice(["x'y", "ü b/=%", None])}
        data = [
            {"n": n, "t": f"{'ab'[n % 2]}{n}", "f": chance.choice([n - 3.5, float("-inf"), None, -0.0]),
             "d": date(2026, 1, 1) + timedelta(days=3 * n), "m": Decimal(n * 125) / 100,
             "at": datetime(chance.choice([1950, 2026]), 1, n + 1, tzinfo=UTC), "b": bool(n % 3)}
            for n in range(start, start + rows)
        ]  # fmt: skip
        rest = {name: None for name in kinds if chance.random() < 0.1}
        table = pa.Table.from_pylist([{**row, **rest, **partition} for row in data], pa.schema(list(kinds.items())))
        deltalake.write_deltalake(str(tmp_path / "t"), table, mode="append", partition_by=["p", "q"])
    opened = open_snapshot(str(tmp_path / "t"))
    files, left = opened.files(), 0
    names = dict(file.partition.split("/")[0].split("=") for file in files)
    assert set(names) == {"p"}
    con = duckdb.connect()
    con.sql("set timezone = 'UTC'")
    for where in CONDITIONS:
        kept = {file.path for file in opened.files(where)}
        for file in files:
            row = opened.rows([file]).constants[file.path]
            rows = pq.ParquetFile(file.path).read()
            for name in ("p", "q"):
                rows = rows.append_column(name, pa.array([row[name]] * len(rows), pa.string()).cast(kinds[name]))
            sql = exp.select("count(*)").from_("rows").where(condition(where, dialect="spark")).sql("duckdb")
            met = con.sql(sql).fetchall() != [(0,)]
            assert file.path in kept or not met, (where, rows.to_pylist())
            left += file.path not in kept
    assert left > len(CONDITIONS) * len(files) / 3


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("id = 5; drop table t", "isn't a condition in Spark's SQL"),
        ("id = 5 union select 1", "isn't a condition in Spark's SQL"),
        ("", "isn't a condition in Spark's SQL"),
        ("(" * 100_000 + "id = 5", "isn't a condition in Spark's SQL"),
        ("id = 'five'", "compares the column id, of the type long, with 'five'"),
        ("id = '5.5'", "compares the column id, of the type long, with '5.5'"),
        ("id = 1e999999999", "compares the column id, of the type long, with "),
        ("id > 1e-999999999", "compares the column id, of the type long, with "),
        ("id in (1, date'2026-01-01')", "compares the column id, of the type long, with '2026-01-01'"),
        ("name = 5", "compares the column name, of the type string, with '5'"),
        ("name = X'ff'", "compares the column name, of the type string, with '0xff'"),
        ("nme = 'n5'", "no column 'nme' hint: did you mean name?"),
        ("lower(name) = 'n5'", "\"LOWER(name) = 'n5'\" can't be evaluated without Spark"),
        ("name like '%5'", "can't be evaluated without Spark"),
        ("name like 'n_5%'", "can't be evaluated without Spark"),
        ("id = id", "'id = id' can't be evaluated without Spark"),
        ("1 = 1", "'1 = 1' can't be evaluated without Spark"),
        ("id in (select 5)", "can't be evaluated without Spark"),
        ("id in (1, rand())", "can't be evaluated without Spark"),
        ("exists (select 1)", "can't be evaluated without Spark"),
        ("id = :id", "can't be evaluated without Spark"),
        ("5", "can't be evaluated without Spark"),
    ],
)
def test_what_is_no_condition_or_can_t_be_evaluated_is_refused_by_name(table: str, where: str, said: str) -> None:
    with pytest.raises(BloomError) as error:
        open_snapshot(table).files(where)
    assert said in " ".join(str(error.value).split())


def test_bounds_of_old_timestamps_may_be_a_minute_off_and_texts_of_char_are_not_compared(table: str) -> None:
    at = Leaf("at", "timestamp", Kind.INSTANT, names=("at",))
    for year, kept in (("1890", True), ("2026", False)):
        said = {"numRecords": 1, "nullCount": {"at": 0}, "minValues": {"at": f"{year}-01-01T10:00:58.000Z"},
                "maxValues": {"at": f"{year}-01-01T10:00:58.000Z"}}  # fmt: skip
        file = statistics_of({"stats": json.dumps(said)}, [at], ())
        where = f"at = timestamp'{year}-01-01 10:00:00Z'"
        assert Condition(where, open_snapshot(table), [at]).may_be_met(file) is kept
    (wrong,) = statistics_of(
        {"partitionValues": {"n": "1e999999999"}}, [Leaf("n", "long", Kind.NUMBER, names=("n",))], ["n"]
    ).partition
    assert wrong.problem is not None
    with pytest.raises(UsageError, match="it has instants"):
        Condition("at = timestamp'2026-01-01 10:00:00'", open_snapshot(table), [at])
    with pytest.raises(UsageError, match="the column c, of the type char, with 'a'"):
        Condition("c = 'a'", open_snapshot(table), [Leaf("c", CHAR, Kind.TEXT)])


@pytest.mark.parametrize("unions", [False, True], ids=["as usual", "every type may be null"])
def test_an_iceberg_table_is_read_without_spark(tmp_path: Path, alone: Alone, unions: bool) -> None:
    metadata = iceberg_metadata.write(tmp_path / "t")
    for manifest in metadata.parent.glob("m*.avro") if unions else ():
        iceberg_metadata.with_unions(manifest)
    code, out, err = alone("find", "-v", "3", "-v", "4", "-c", "id", "--table", str(tmp_path / "t"), "-f", "jsonl")
    assert (code, [json.loads(line)["record"] for line in out.splitlines()]) == (0, [{"id": 4, "p": "x"}]), err
    assert f"note: read without Spark: the Iceberg metadata file {metadata}\n" in err
    code, out, err = alone("validate", "--deep", "--columns", "*", "--table", str(metadata))
    assert (code, "1 file" in out) == (0, True), (out, err)


def test_a_delta_log_without_a_schema_is_an_error_that_says_so(tmp_path: Path, alone: Alone) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    metadata = {"id": "t", "format": {"provider": "parquet"}, "partitionColumns": [], "configuration": {}}
    for schema in ({}, {"schemaString": None}):
        actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata | schema}]
        (log / f"{0:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
        code, _, err = alone("inspect", "--table", str(tmp_path / "t"))
        assert (code, "the table's metadata in the Delta log have no schema" in err) == (3, True), err


def changed(document: Any) -> Iterator[Any]:
    """Copies of a JSON document in which one value is of another type, or missing."""
    for key in document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ():
        for value in (None, 5, -(10**30), "x", [], {}, [None], {"x": {}}):
            copy = json.loads(json.dumps(document))
            copy[key] = value
            yield copy
        for inner in changed(document[key]):
            copy = json.loads(json.dumps(document))
            copy[key] = inner
            yield copy


def read_all(path: str) -> bool:
    """Read all of a table's metadata; False for an error of bloom. Another error is a bug."""
    try:
        table = open_snapshot(path)
        files = table.files()
        table.names()
        table.rows(files)
        list(table.statistics(files))
        table.filter_requests()
        table.files("id = 5 and (name > 'n1' or id is null)" if table.format == "delta" else "id = 4 and p = 'x'")
    except BloomError:
        return False
    return True


@pytest.mark.slow
def test_wrong_metadata_of_any_form_are_errors_and_never_bugs(table: str, tmp_path: Path) -> None:
    log = Path(table) / "_delta_log"
    results = set()
    for path in sorted(log.glob("*.json")):
        kept = path.read_text()
        lines = [json.loads(line) for line in kept.splitlines()]
        for wrong in changed(lines):
            path.write_text("".join(json.dumps(line) + "\n" for line in wrong))
            results.add(read_all(table))
        path.write_text(kept)
    metadata = iceberg_metadata.write(tmp_path / "t")
    kept = metadata.read_text()
    for wrong in changed(json.loads(kept)):
        metadata.write_text(json.dumps(wrong))
        results.add(read_all(str(metadata)))
    metadata.write_text(kept)
    assert read_all(str(metadata))
    for manifest in metadata.parent.glob("*.avro"):
        whole = manifest.read_bytes()
        for end in range(0, len(whole), 7):
            manifest.write_bytes(whole[:end] + b"\xff" + whole[end + 1 :])
            results.add(read_all(str(metadata)))
            manifest.write_bytes(whole[:end])
            results.add(read_all(str(metadata)))
        manifest.write_bytes(whole)
    assert results == {True, False}
