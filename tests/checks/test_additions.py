"""`add` guards readers: columns in which one would lose rows by a sound filter get none, unless nobody reads so."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.tables import write
from support.tasks import plan_tasks

import bloomcli
from bloomcli.checks.additions import Readers
from bloomcli.commands.add import Request
from bloomcli.commands.options import AddOptions
from bloomcli.datasets import local
from bloomcli.errors import UsageError
from bloomcli.model.dataset import DatasetReport, Status
from bloomcli.model.file import Column
from bloomcli.policy.policy import FilePolicy, Part, Policy
from bloomcli.policy.policy_file import load
from bloomcli.storage.listing import expand

ROWS = 60
DECIMALS = [Decimal(i) / 4 for i in range(ROWS)]
TABLE = {
    "id": pa.array(range(ROWS), pa.int64()),
    "half": pa.array(np.arange(ROWS, dtype="float16")),
    "long": pa.array(DECIMALS, pa.decimal256(40, 2)),
    "price": pa.array(DECIMALS, pa.decimal128(20, 2)),
    "at": pa.array(range(ROWS), pa.timestamp("ms")),
    "code": pa.array(range(ROWS), pa.int32()),
}
LOST = {"half": "reader-float16", "long": "reader-decimal-width"}
"""Columns in which an engine that reads the unchanged file loses rows, with the rule."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "f.parquet", TABLE)


def filtered(path: Path) -> set[str]:
    return {fact.column for fact in bloomcli.inspect(path).filters}


def test_a_glob_leaves_out_what_a_reader_would_lose_rows_by_and_says_which_reader_version_and_rule(
    path: Path,
) -> None:
    report = bloomcli.add(path, ["*"], in_place=True)
    assert filtered(path) == set(TABLE) - set(LOST)
    left_out = {c.column: c.reason or "" for c in report.changes if c.reason is not None}
    assert left_out.keys() == LOST.keys()
    for column, rule in LOST.items():
        assert f"[{rule}] (measured, DuckDB" in left_out[column]
        assert "2.0.0" in left_out[column]
    assert all((c.action, c.filters) == ("keep", 0) for c in report.changes if c.reason is not None)
    assert bloomcli.validate(path, readers=["duckdb"], deep=True).findings == ()


@pytest.mark.parametrize("column", LOST)
@pytest.mark.parametrize("target", [{"in_place": True}, {"dry_run": True}], ids=str)
def test_a_name_is_refused_with_reader_version_evidence_and_a_way_out_and_nothing_is_written(
    path: Path, column: str, target: dict[str, Any]
) -> None:
    before = path.read_bytes()
    for names in ([column], ["id", column], ["*", column]):
        with pytest.raises(UsageError, match=f"column {column} gets no filter: .*DuckDB looks") as caught:
            bloomcli.add(path, names, **target)
        assert f"[{LOST[column]}] (measured, DuckDB" in caught.value.reason
        assert "`--readers spark,trino`" in (caught.value.hint or "")
        assert f"`bloom validate --explain {LOST[column]}`" in (caught.value.hint or "")
        assert caught.value.path == str(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("column", LOST)
def test_what_the_readers_named_read_rightly_gets_a_filter(path: Path, column: str) -> None:
    bloomcli.add(path, [column], in_place=True, readers=["spark", "clickhouse"])
    assert filtered(path) == {column}
    assert bloomcli.validate(path, readers=["spark"], deep=True).findings == ()
    assert [f.id for f in bloomcli.validate(path, readers=["duckdb"]).findings] == [LOST[column]]
    with pytest.raises(UsageError, match="DuckDB"):
        bloomcli.add(path, [column], in_place=True, replace=True, readers=["spark", "duckdb"])


def test_globs_of_nothing_else_are_an_error_that_says_why(path: Path) -> None:
    with pytest.raises(UsageError, match="none of the selected columns can have a filter") as caught:
        bloomcli.add(path, ["ha*", "lon*"], in_place=True)
    assert "half: values are hashed at 2 bytes and DuckDB looks 4 up" in (caught.value.hint or "")


SCHEMA = "id bigint, half float, long double, price decimal(20,2), at timestamp, code bigint"


def test_what_depends_on_a_tables_schema_counts_where_one_is_given(path: Path, tmp_path: Path) -> None:
    schema = tmp_path / "table.sql"
    schema.write_text(SCHEMA)
    assert {"at", "code"} <= filtered_by(path, tmp_path, ())
    assert {"at", "code"} & filtered_by(path, tmp_path, (), table_schema=schema) == set()
    for column, reader in (("at", "Iceberg"), ("code", "Trino")):
        with pytest.raises(UsageError, match=f"column {column} gets no filter: .*{reader} looks"):
            bloomcli.add(path, [column], dry_run=True, table_schema=schema)
    assert {"at", "code"} <= filtered_by(path, tmp_path, ("spark",), table_schema=schema)
    assert "at" not in filtered_by(path, tmp_path, ("iceberg",)), "who is named is meant as validate means it"


def filtered_by(path: Path, folder: Path, readers: tuple[str, ...], **options: Any) -> set[str]:
    bloomcli.add(path, ["*"], output=folder / "out", overwrite=True, readers=readers, **options)
    return filtered(folder / "out")


def test_an_old_release_is_a_note_unless_it_is_named(path: Path) -> None:
    report = bloomcli.add(path, ["*"], dry_run=True)
    (note,) = report.remarks
    assert note.startswith(
        "DataFusion up to 54 loses rows by the filters on price [reader-decimal-width] (measured, "
    )
    assert bloomcli.add(path, ["*"], dry_run=True, readers=["spark"]).remarks == ()
    with pytest.raises(UsageError, match="DataFusion up to 54"):
        bloomcli.add(path, ["price"], dry_run=True, readers=["datafusion-54"])
    findings = bloomcli.validate(path, require=["price"], readers=["datafusion-54"]).findings
    (hint,) = (finding.hint for finding in findings if finding.id == "filter-required")
    assert hint is not None
    assert hint.startswith("the column can't have a filter (")
    assert "DataFusion up to 54" in hint


def test_reports_in_threads_about_a_named_reader_are_notes(path: Path) -> None:
    notes = bloomcli.add(path, ["id"], dry_run=True, readers=["doris", "starrocks"]).remarks
    assert [note.partition(" may lose rows")[0] for note in notes] == ["Doris", "Doris", "StarRocks"]
    assert all("(thread, " in note for note in notes)
    assert bloomcli.add(path, ["id"], dry_run=True).remarks == ()


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ('readers = ["spark"]', False),
        ("readers = []", False),
        ('readers = ["duckdb"]', True),
        ('[off]\nreader-float16 = "nobody looks one up"', False),
        ('[severity]\nreader-float16 = "note"', False),
        ('[[files]]\npaths = ["f.*"]\nreaders = ["trino"]', False),
        ('[[files]]\npaths = ["other/**"]\nreaders = ["trino"]', True),
    ],
    ids=str,
)
def test_the_policy_says_who_reads_and_what_is_switched_off(path: Path, text: str, refused: bool) -> None:
    policy = path.with_name("bloom.toml")
    policy.write_text(text + "\n")
    for given in (policy, load(policy)):
        if refused:
            with pytest.raises(UsageError, match="column half gets no filter"):
                bloomcli.add(path, ["half"], dry_run=True, policy=given)
        else:
            bloomcli.add(path, ["half"], dry_run=True, policy=given)
    if "float16" in text:  # what is off stays off, whoever reads
        bloomcli.add(path, ["half"], dry_run=True, policy=policy, readers=["duckdb"])
    else:
        with pytest.raises(UsageError, match="column half gets no filter"):
            bloomcli.add(path, ["half"], dry_run=True, policy=policy, readers=["duckdb"])


def dataset(path: Path, **options: Any) -> DatasetReport:
    return local.run(plan_tasks("add", expand([str(path)]), options, in_place=True), jobs=1)


def test_in_a_dataset_a_glob_leaves_columns_out_with_a_note_and_a_name_is_that_files_row(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    write(lake / "a.parquet", TABLE)
    write(lake / "b.parquet", {"id": TABLE["id"], "half": TABLE["code"]})
    named = {Path(row.path).name: row for row in dataset(lake, columns=("half",)).rows}
    assert (named["a.parquet"].status, named["a.parquet"].exit_code) == (Status.FAILED, 2)
    assert "column half gets no filter: values are hashed at 2 bytes" in (named["a.parquet"].error or "")
    assert "--readers" in (named["a.parquet"].hint or "")
    assert named["b.parquet"].status is Status.DONE
    every = {Path(row.path).name: row for row in dataset(lake, columns=("*",)).rows}
    assert [row.status for row in every.values()] == [Status.DONE] * 2
    reason = every["a.parquet"].reason or ""
    assert "left out: half, values are hashed at 2 bytes and DuckDB looks 4 up" in reason
    assert "[reader-float16]" in reason
    assert every["b.parquet"].reason is None
    again = dataset(lake, columns=("*",))
    assert [row.status for row in again.rows] == [Status.SKIPPED] * 2
    policy = Policy(whole=Part(readers=("spark",)))
    report = dataset(lake, columns=("half", "long"), policy=policy)
    assert {Path(row.path).name: row.status for row in report.rows} == {
        "a.parquet": Status.DONE,
        "b.parquet": Status.FAILED,  # it has no such column
    }
    assert filtered(lake / "a.parquet") == set(TABLE)


def test_a_column_that_has_filters_already_is_not_refused_where_nothing_is_to_be_written(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", {"half": TABLE["half"]}, blooms={"half": {"ndv": 100}})
    assert [row.status for row in dataset(path, columns=("half",)).rows] == [Status.SKIPPED]
    assert [row.status for row in dataset(path, columns=("half",), replace=True).rows] == [Status.FAILED]


def test_unknown_readers_and_schemas_that_do_not_exist_are_errors(path: Path) -> None:
    with pytest.raises(UsageError, match="unknown reader 'sparkle'"):
        bloomcli.add(path, ["id"], dry_run=True, readers=["sparkle"])
    with pytest.raises(UsageError, match="the table's schema can't be read"):
        bloomcli.add(path, ["id"], dry_run=True, table_schema=path.with_name("nosuch.sql"))
    with pytest.raises(UsageError, match="the policy can't be read"):
        bloomcli.add(path, ["id"], dry_run=True, policy=path.with_name("nosuch.toml"))


def test_a_draft_of_2018_is_for_readers_that_are_not_known_here(path: Path) -> None:
    bloomcli.add(path, ["half"], in_place=True, variant="parquet-2018-12byte")
    assert filtered(path) == {"half"}


# --- filters of one block


def test_filters_have_two_blocks_unless_nobody_needs_them(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", {"c": pa.array([1, 2, 3])})
    sizes = {}
    for readers in ((), ("impala",), ("spark", "trino")):
        bloomcli.add(path, ["c"], output=tmp_path / "out", overwrite=True, readers=readers)
        sizes[readers] = [f.bitset_bytes for f in bloomcli.inspect(tmp_path / "out").filters]
        assert bloomcli.validate(tmp_path / "out", deep=True).findings == ()
    assert sizes == {(): [64], ("impala",): [64], ("spark", "trino"): [32]}
    ndv = bloomcli.add(path, ["c"], output=tmp_path / "out", overwrite=True, ndv=1)
    assert [c.bitset_bytes for c in ndv.changes] == [64]
    bloomcli.add(path, ["c"], in_place=True, ndv=5000)
    bloomcli.fold(path, in_place=True, fpp=0.9)
    assert [f.bitset_bytes for f in bloomcli.inspect(path).filters] == [64]


def test_a_cap_of_one_block_is_kept_and_the_report_says_who_loses_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", {"c": pa.array([1, 2, 3])})
    report = bloomcli.add(path, ["c"], in_place=True, max_bytes=32)
    assert [c.bitset_bytes for c in report.changes] == [32]
    assert [note.partition(" (")[0] for note in report.remarks] == [
        "Impala loses rows by filters of one block, which this cap requires [reader-single-block]"
    ]
    assert bloomcli.add(path, ["c"], in_place=True, max_bytes=32, replace=True, readers=["spark"]).remarks == ()


def test_the_readers_of_a_file_are_everyone_those_named_or_nobody() -> None:
    half = Column(path="h", index=0, physical="FIXED_LEN_BYTE_ARRAY", logical="FLOAT16", type_length=2)
    for rules, refused, least in (
        (FilePolicy(), True, 64),
        (FilePolicy(readers=("spark",), readers_given=True), False, 32),
        (FilePolicy(readers=("duckdb-1", "impala"), readers_given=True), True, 64),
        (FilePolicy(readers_given=True), False, 32),
        (FilePolicy(off={"reader-single-block": "no Impala", "reader-float16": "none looked up"}), False, 32),
    ):
        readers = Readers("parquet", rules)
        assert ((readers.refusal(half) is not None), readers.smallest()) == (refused, least)
    assert Readers("orc", FilePolicy()).refusal(half) is None
    assert Readers("mosaic", FilePolicy()).who == []


def test_a_request_without_columns_is_an_error() -> None:
    with pytest.raises(UsageError, match="no columns"):
        Request(AddOptions())
