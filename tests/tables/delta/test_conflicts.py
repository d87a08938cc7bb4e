"""Other commits while data files of a Delta table are replaced: no update is lost, and no row comes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JNetworkError
from support.delta_tables import Lake, info, made
from support.table_stages import Run, stages

from bloomcli.datasets.hadoop_paths import portable
from bloomcli.errors import UnreadableError, UnsupportedError, WriteError
from bloomcli.tables.base import Conflict, Replacement, UnknownOutcome
from bloomcli.tables.delta import DeltaTable

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOUCHING = {
    "delete": ("delete from {t} where id = 3", {3: None}),
    "delete of a whole file": ("delete from {t} where id < 10", dict.fromkeys(range(10))),
    "update": ("update {t} set v = -1 where id = 3", {3: -1}),
}
"""Statements on the file with the ids below 10, and the new values of `v` by id; None for deleted rows."""

APART = {
    "an append and a delete in another file": (
        ("insert into {t} select 50, 9", "delete from {t} where id = 13"),
        {50: 9, 13: None},
    ),
    "a column added": (("alter table {t} add columns (w string)",), {}),
}
"""Statements that don't change that file. After a change of the schema Delta has the commit tried again, so that no
other statement is beside it."""


def values(lake: Lake) -> dict[int, int]:
    """`v` by id. Every id exists once."""
    rows = lake.sql("select id, v from {t}").collect()
    found = {row.id: row.v for row in rows}
    assert len(found) == len(rows)
    return found


def after(changes: dict[int, int | None]) -> dict[int, int]:
    """The result of `values` after a statement."""
    return {i: v for i, v in {**dict.fromkeys(range(20), 0), **changes}.items() if v is not None}


def prepared(lake: Lake, *, vectors: bool = True, **properties: str) -> tuple[DeltaTable, list[Replacement]]:
    """A table of two files, and new files for both. Each is a copy of the first one: the log names files by relative
    paths, and Spark takes seconds to write them."""
    kept = lake.folder.parents[1] / "-".join(["conflicts", str(vectors), *properties, *properties.values()])
    if kept.exists():
        shutil.copytree(kept, lake.folder)
    else:
        lake.create("id bigint, v bigint", enableDeletionVectors=str(vectors).lower(), **properties)
        lake.insert("id, 0 from range(10)").insert("id, 0 from range(10, 20)")
        shutil.copytree(lake.folder, kept)
    table = lake.open()
    return table, made(table, table.files())


def low(new: Sequence[Replacement]) -> Replacement:
    """The replacement of the file with the ids below 10."""
    (found,) = (r for r in new if 3 in pq.read_table(portable(r.old.path), columns=["id"])["id"].to_pylist())
    return found


@pytest.mark.parametrize(
    ("what", "vectors", "during"),
    [
        ("delete", True, False),
        ("delete", True, True),
        ("delete of a whole file", True, True),
        ("update", False, True),
    ],
)
def test_what_touches_a_file_is_a_conflict_that_names_it(
    lake: Lake, what: str, vectors: bool, during: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, new = prepared(lake, vectors=vectors)
    touched, (statement, changes) = low(new).old.path, TOUCHING[what]
    if during:
        within(monkeypatch, lambda: lake.sql(statement))
    else:
        lake.sql(statement)
    with pytest.raises(Conflict) as caught:
        table.commit(new, info())
    assert caught.value.paths == {touched}
    assert lake.version == 3, "nothing comes after the statement"
    assert table.remove_files([r.path for r in new]) == []
    table.refresh()
    left = {file.path: file for file in table.files()}
    rest = made(table, [left[r.old.path] for r in new if r.old.path in left])
    table.commit(rest, info())
    assert values(lake) == after(changes)


def within(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> None:
    """Run another commit between the start of the next transaction and its commit."""
    prepare, waiting = DeltaTable._prepare, [work]

    def prepare_and_work(*arguments: Any) -> tuple[Any, Any, Any]:
        found = prepare(*arguments)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(DeltaTable, "_prepare", prepare_and_work)


@pytest.mark.parametrize("what", APART)
def test_what_touches_no_file_is_no_conflict(lake: Lake, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, new = prepared(lake)
    new = [low(new)]
    statements, changes = APART[what]
    within(monkeypatch, lambda: [lake.sql(statement) for statement in statements])
    version = table.commit(new, info())
    assert (values(lake), lake.version) == (after(changes), version)
    assert lake.open().files("id = 3")[0].path == new[0].path
    table.refresh()
    made_by_others = [change.run is None for change in table.changes(2)]
    assert made_by_others == [True] * len(statements) + [False]


def test_row_tracking_that_is_enabled_during_a_commit_numbers_the_rows_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/tables.md says: before and after a commit, row tracking keeps all ids."""
    table, new = prepared(lake)
    one = [low(new)]
    within(monkeypatch, lambda: lake.sql("alter table {t} set tblproperties ('delta.enableRowTracking' = 'true')"))
    version = table.commit(one, info())

    def ids(version: int) -> dict[int, int]:
        found = lake.sql(f"select id, _metadata.row_id from {{t}} version as of {version}").collect()
        return {row.id: row.row_id for row in found}

    between, after_it = ids(version - 1), ids(version)
    assert len(set(after_it.values())) == len(after_it) == 20
    assert {i for i in after_it if after_it[i] != between[i]} == set(range(10))
    table.refresh()
    lake.replace(["v"])
    assert ids(lake.version) == after_it


def test_compaction_takes_all_files(lake: Lake) -> None:
    table, new = prepared(lake)
    lake.sql("optimize {t}")
    with pytest.raises(Conflict) as caught:
        table.commit(new, info())
    assert caught.value.paths == {r.old.path for r in new}
    assert lake.version == 3, "nothing comes after the compaction"


def test_a_compaction_that_began_before_leaves_the_new_files_alone(lake: Lake) -> None:
    table, new = prepared(lake)
    jvm = table._jvm
    with jvm.active(jvm.copy({})):
        other = table._table.startTransaction(jvm.none)
        entries = list(table._snapshot.entries([r.old.record.path for r in new]).values())
        other.trackFilesRead(jvm.seq(jvm.actions("addFile", entries)))
        compacting = lake.open()
        compacting._entry_paths = {r.path: f"x-{i}" for i, r in enumerate(new)}
        prepared_by_other = compacting._prepare(other, new, {r.path: 0 for r in new}, info())
        table.commit(new, info())
        with pytest.raises(Exception, match=r"(?i)concurrent"):
            other.commit(*prepared_by_other)
    assert len(lake.rows()) == 20


def test_deletes_that_came_between_are_carried_over_once_the_table_is_refreshed(lake: Lake) -> None:
    table, new = prepared(lake)
    lake.sql("delete from {t} where id = 3")
    table.refresh()
    now = {file.path: file for file in table.files()}
    table.commit([r._replace(old=now[r.old.path]) for r in new], info())
    assert sorted(json.loads(row)["id"] for row in lake.rows()) == [i for i in range(20) if i != 3]


def test_an_entry_s_newer_statistics_are_carried_over(lake: Lake) -> None:
    table, new = prepared(lake)
    path = lake.folder / "_delta_log" / f"{lake.version + 1:020}.json"
    (first, *_) = sorted(lake.open()._snapshot.entries([r.old.record.path for r in new]).values(), key=str)
    path.write_text(json.dumps({"add": {**first, "tags": {"recomputed": "yes"}, "dataChange": False}}) + "\n")
    version = table.commit(new, info())
    assert [e.get("tags") for e in lake.log(version)["add"]].count({"recomputed": "yes"}) == 1


def test_new_files_that_a_vacuum_took_away_are_not_committed(lake: Lake) -> None:
    table, replacements = prepared(lake)
    before, version = values(lake), lake.version
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    lake.spark.conf.set(check, "false")
    try:
        lake.sql("vacuum {t} retain 0 hours")
    finally:
        lake.spark.conf.unset(check)
    with pytest.raises(WriteError, match="new files can't be found"):
        table.commit(replacements, info())
    assert values(lake) == before
    assert all("add" not in lake.log(later) for later in range(version + 1, lake.version + 1))


def test_a_new_file_that_isn_t_there_or_is_short_commits_nothing(lake: Lake) -> None:
    table, (first, second) = prepared(lake)
    (short,) = [r._replace(size=r.size + 1) for r in (first,)]
    with pytest.raises(WriteError, match=f"has {first.size} bytes, and {first.size + 1} were written"):
        table.commit([short, second], info())
    Path(second.path.removeprefix("file:")).unlink()
    with pytest.raises(WriteError, match=Path(second.path).name):
        table.commit([first, second], info())
    assert lake.version == 2
    assert table.remove_files([second.path]) == []
    table.commit([first], info())
    committed = [first.path, first.old.path]
    assert table.remove_files(committed) == sorted(committed), "only what wasn't committed is removed"
    assert len(lake.rows()) == 20


def test_a_feature_that_came_between_is_refused(lake: Lake) -> None:
    table, new = prepared(lake)
    protocol = {**table._snapshot.protocol, "minWriterVersion": 7, "minReaderVersion": 3}
    protocol["writerFeatures"] = [*protocol.get("writerFeatures", []), "icebergWriterCompatV9"]
    protocol.setdefault("readerFeatures", ["deletionVectors"])
    path = lake.folder / "_delta_log" / f"{lake.version + 1:020}.json"
    path.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(UnsupportedError, match="icebergWriterCompatV9"):
        table.commit(new, info())
    table.refresh()
    with pytest.raises(UnsupportedError, match="icebergWriterCompatV9"):
        table.check_changes()


def test_a_commit_whose_answer_is_lost_is_found_in_the_history(lake: Lake) -> None:
    lake.create("id bigint", compatibility_symlinkFormatManifest_enabled="true").insert("id from range(10)")
    (lake.folder / "_symlink_format_manifest").rename(lake.folder / "away")
    (lake.folder / "_symlink_format_manifest").write_text("no directory: Delta's work after the commit fails")
    table = lake.open()
    new = made(table, table.files())
    with pytest.raises(Exception, match=r"(?i)manifest"):
        lake.insert("id from range(10, 11)")  # committed as well
    assert table.commit(new, info()) == lake.version
    assert len(lake.rows()) == 11
    assert {r.path for r in new} < {file.path for file in lake.open().files()}


def broken_at(stage: str) -> AbstractContextManager[Run]:
    """The connection to Java breaks at a stage of the next commit."""

    def at(reached: str, count: int, paths: object) -> None:
        del count, paths
        if reached == stage:
            raise Py4JNetworkError("the connection broke")

    return stages(at)


def test_a_broken_connection_is_a_commit_or_isn_t_known(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomcli.tables.delta.table._LATE_SECONDS", (0.1,))
    table, new = prepared(lake)
    said = "may still take place: Spark's Java process has ended or doesn't answer: the connection broke"
    with broken_at("committing"), pytest.raises(UnknownOutcome, match=said):
        table.commit(new, info())
    with broken_at("landed"):
        assert table.commit(new, info()) == lake.version == 3
    assert len(lake.rows()) == 20


def test_a_commit_that_fails_leaves_the_table_as_it_was(lake: Lake) -> None:
    table, new = prepared(lake)
    log = lake.folder / "_delta_log"
    kept = log.rename(lake.folder.with_name("log"))
    log.write_text("no directory")
    try:
        with pytest.raises(WriteError):
            table.commit(new, info())
        with pytest.raises(UnreadableError):
            table.refresh()
    finally:
        log.unlink()
        kept.rename(log)
    assert (lake.version, len(lake.rows())) == (2, 20)
    assert table.remove_files([r.path for r in new]) == []
    assert not [r for r in new if Path(r.path.removeprefix("file:")).exists()]
