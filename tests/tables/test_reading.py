"""Commands on real Iceberg and Delta tables: a snapshot's files under the table's column names, and whole runs."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT
from support.terminal import on_terminal

from bloomcli import spark as bloom_spark
from bloomcli.cli import run as cli
from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.tables.opening import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Json = Callable[..., tuple[int, Any]]


@pytest.fixture
def output(capfd: pytest.CaptureFixture[str]) -> Json:
    """Run a command with `--format json`: its exit code and its report."""

    def call(*arguments: str) -> tuple[int, Any]:
        capfd.readouterr()
        code = cli([*arguments, "--format", "json"])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return code, json.loads(out) if out else err

    return call


@pytest.fixture(scope="module")
def iceberg(spark: SparkSession) -> str:
    """A table whose column name was renamed to label; one of its files lacks a column, and three rows are deleted."""
    name = "ice.db.reading"
    spark.sql(
        f"create table {name} (id bigint, name string, day date) using iceberg partitioned by (day) tblproperties("
        "'format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    spark.sql(f"insert into {name} select id, concat('n', id), date'2026-11-01' from range(0, 1000)")
    spark.sql(f"alter table {name} rename column name to label")
    spark.sql(f"alter table {name} add column extra string")
    spark.sql(f"insert into {name} select id, concat('n', id), date'2026-11-02', 'x' from range(1000, 2000)")
    spark.sql(f"delete from {name} where id in (1, 2, 1500)")
    spark.sql(f"alter table {name} set tblproperties ('write.parquet.bloom-filter-enabled.column.label'='true')")
    return name


@pytest.fixture(scope="module")
def delta(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Delta table with deletion vectors, two files and three deleted rows."""
    name = f"delta.`{tmp_path_factory.mktemp('delta')}`"
    spark.sql(
        f"create table {name} (id bigint, label string, day date) using delta partitioned by (day) tblproperties("
        "'delta.enableDeletionVectors'='true')"
    )
    for day, start in ((1, 0), (2, 1000)):
        rows = f"select id, concat('n', id), date'2026-11-0{day}' from range({start}, {start + 1000}, 1, 1)"
        spark.sql(f"insert into {name} {rows}")
    spark.sql(f"delete from {name} where id in (1, 2, 1500)")
    return name


def rows(spark: SparkSession, name: str) -> list[Any]:
    return spark.table(name).orderBy("id").collect()


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_run_from_a_dry_one_to_removal(
    spark: SparkSession, kind: str, output: Json, request: pytest.FixtureRequest
) -> None:
    name = request.getfixturevalue(kind)
    before = rows(spark, name)
    first = {row.path: row.bytes_before for row in bloom_spark.remove_from_table(spark, name, dry_run=True).collect()}
    code, planned = output("add", "--table", name, "--columns", "id,label", "--dry-run", "--commit-every", "1")
    assert (code, planned["planned"], [c["version"] for c in planned["commits"]]) == (0, 2, [None, None])
    assert (planned["table"], planned["engine"]) == ({"name": name, "format": kind}, "spark")
    code, added = output("add", "--table", name, "--columns", "id,label")
    assert (code, added["done"], [c["files"] for c in added["commits"]]) == (0, 2, [2])
    assert rows(spark, name) == before
    code, checked = output("validate", "--table", name, "--deep", "--require", "id,label")
    assert (code, checked["filters_checked"], checked["values_checked"]) == (0, 4, 4000)
    assert (checked["table"]["name"], checked["version"]) == (name, added["commits"][0]["version"])
    code, old = output("inspect", "--table", name, "--snapshot", str(added["version_before"]))
    assert (code, old["files"], [row["filters"] for row in old["rows"]]) == (0, 2, [0, 0])
    assert {row["path"] for row in old["rows"]} == set(first)
    code, again = output("add", "--table", name, "--columns", "id,label")
    assert (code, again["skipped"], again["commits"]) == (0, 2, [])
    code, removed = output("remove", "--table", name)
    assert (code, removed["done"]) == (0, 2)
    originals = {path: Path(path).read_bytes() for path in first}
    assert sorted(Path(row["output"]).read_bytes() for row in removed["rows"]) == sorted(originals.values())
    assert rows(spark, name) == before


def test_columns_are_those_of_the_table_and_files_may_lack_some(
    spark: SparkSession, iceberg: str, output: Json
) -> None:
    code, added = output("add", "--table", iceberg, "--columns", "label,extra", "--dry-run")
    assert code == 0
    assert sorted(row["columns"] for row in added["rows"]) == [1, 2]
    code, error = output("add", "--table", iceberg, "--columns", "name")
    assert (code, "the table has no column 'name'" in error) == (2, True)
    code, error = output("probe", "--table", iceberg, "--column", "id", "abc")
    assert code == 2
    assert error.startswith(f"bloom: {iceberg}: ")
    assert (error.count("abc"), ".parquet" in error) == (1, False), "one error, not one for each file"
    frame = bloom_spark.probe_table(spark, iceberg, "n1500", column="label")
    assert {row.totals[0].value for row in frame.collect()} == {"n1500"}


def test_a_condition_and_the_properties_choose_files_and_columns(
    spark: SparkSession, iceberg: str, output: Json
) -> None:
    where = ["--where", "day = date'2026-11-02'"]
    code, checked = output("validate", "--table", iceberg, "--from-properties", *where)
    (finding,) = checked["findings"]
    assert (code, finding["id"], finding["column"]) == (1, "filter-required", "label")
    assert finding["hint"] == f"`bloom add --table {iceberg} --columns label`"
    frame = bloom_spark.add_to_table(
        spark, iceberg, where="day = date'2026-11-02'", from_properties=True, dry_run=True
    )
    assert [(row.status, row.columns) for row in frame.collect()] == [("planned", 1)]
    assert output("inspect", "--table", iceberg, *where)[1]["files"] == 1


def test_reports_fit_a_terminal_and_json_stays_whole(spark: SparkSession, delta: str) -> None:
    added = [row.status for row in bloom_spark.add_to_table(spark, delta, ["label"], ndv=100_000).collect()]
    assert added == ["done"] * 2
    commands = [
        ["inspect"],
        ["validate", "--require", "id"],
        ["probe", "--column", "label", "n7"],
        ["add", "--columns", "id", "--commit-every", "1", "--dry-run"],
        ["fold", "--columns", "label", "--dry-run"],
        ["remove", "--dry-run"],
    ]
    for command in commands:
        if command[0] in {"inspect", "add"}:
            report = json.loads(on_terminal([*command, "--table", delta, "--format", "json"], 80).out)
            assert report.get("failed", 0) == 0, (command, report)
        shown = on_terminal([*command, "--table", delta], 80)
        wide = [line for line in shown.out.splitlines() if len(line) > 80]
        assert all(".parquet" in line or "`bloom " in line for line in wide), "names and commands are never cut"
        assert shown.err == ""
    folded = bloom_spark.fold_table(spark, delta).collect()
    assert [row.status for row in folded] == ["done"] * 2
    assert [row.status for row in bloom_spark.fold_table(spark, delta).collect()] == ["skipped"] * 2
    found = bloom_spark.validate_table(spark, delta, require=["id"]).collect()
    assert [finding.id for row in found for finding in row.findings] == ["filter-required"] * 2
    assert [row.filters for row in bloom_spark.inspect_table(spark, delta, snapshot=1).collect()] == [0]
    assert all(row.bytes_after < row.bytes_before for row in folded)
    assert [row.status for row in bloom_spark.remove_from_table(spark, delta).collect()] == ["done"] * 2


def test_policies_and_baselines_work_on_tables(delta: str, output: Json, tmp_path: Path) -> None:
    policy, known = tmp_path / "bloom.toml", tmp_path / "known.json"
    assert cli(["validate", "--table", delta, "--init", "--policy", str(policy)]) == 0
    policy.write_text("require = ['id']\nexclude = ['**/day=2026-11-01/*']\n")
    given = ["validate", "--table", delta, "--policy", str(policy), "--baseline", str(known)]
    code, first = output(*given, "--update-baseline")
    assert (code, first["files_found"], first["excluded"]) == (0, 1, 1)
    code, again = output(*given)
    assert (code, again["known"], again["errors"]) == (0, 1, 0)
    assert output("validate", "--table", delta, "--sample", "1", "--require", "id")[1]["files"] == 1


def test_the_documentation_s_example_runs(spark: SparkSession) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tables.md").read_text(), re.DOTALL)
    (block,) = (each for each in blocks if "bloom_spark" in each)
    spark.sql("create table ice.db.orders (id bigint, day date) using iceberg partitioned by (day)")
    spark.sql("insert into ice.db.orders select id, date_add(date'2026-10-31', int(id % 2)) from range(100)")
    scope: dict[str, Any] = {"spark": spark}
    exec(block, scope)
    assert [row.status for row in scope["rows"].collect()] == ["done"]


@pytest.mark.parametrize(
    ("create", "name", "error", "text"),
    [
        ("create table plain (id int) using parquet", "plain", UnsupportedError, "a table of plain files (parquet)"),
        ("create view of_nothing as select 1 as id", "of_nothing", UnsupportedError, "a view has no files"),
        (None, "ice.db.nothing", UsageError, "no such table"),
        (None, "not a name", UsageError, "isn't the name of a table"),
        (None, "ice.db.reading.files", UsageError, "metadata table"),
    ],
)
def test_what_is_no_table_of_these_formats_is_refused_by_name(
    spark: SparkSession, iceberg: str, create: str | None, name: str, error: type[Exception], text: str
) -> None:
    del iceberg
    if create is not None:
        spark.sql(create)
    with pytest.raises(error, match=re.escape(text)):
        open_table(spark, name)


@pytest.mark.parametrize("provider", ["hudi", "paimon"])
def test_hudi_and_paimon_are_refused_by_name(provider: str) -> None:
    from bloomcli.tables import opening

    refusal = opening._refusal(None, "t", provider)
    assert isinstance(refusal, UnsupportedError)
    assert f"a {provider.capitalize()} table" in refusal.reason
    assert "bloom add -o DIRECTORY" in (refusal.hint or "")


def test_a_spark_connect_session_is_refused() -> None:
    connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        open_table(connect, "t")


def test_advice_is_about_the_snapshot_s_columns_and_its_command_adds_to_the_table(
    spark: SparkSession, iceberg: str, output: Json, tmp_path: Path
) -> None:
    table = iceberg
    log = tmp_path / "log.sql"
    log.write_text("SELECT * FROM t WHERE label = 'n7' AND id > 3;")
    code, found = output("advise", "--table", table, "--queries", str(log))
    assert code == 0, found
    columns = {column["column"]: column for column in found["columns"]}
    assert columns.keys() == {"id", "label", "day", "extra"}
    assert (columns["label"]["lookups"], columns["id"]["lookups"]) == (1, 0)
    assert columns["id"]["reason_id"] in {"not-queried", "sorted"}
    assert found["files"] == 2
    report = bloom_spark.advise_table(spark, table, columns=["label"])
    (label,) = report.columns
    assert (label.column, label.lookups, label.rows) == ("label", None, 2000)
    if report.command is not None:
        assert report.command.startswith(f"bloom add --table {shlex.quote(table)} --columns label --fpp 0.01")
