"""The commands on files of tables that renamed, dropped and added columns after the files were written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import orcfiles
from support.table_names import by_id, by_name, field, orc_ids

import bloomcli
from bloomcli.commands import add, change, fold, inspect, probe, survey, validate
from bloomcli.commands.change import Target, change_where_needed
from bloomcli.commands.options import (
    AddOptions,
    FoldOptions,
    InspectOptions,
    ProbeOptions,
    RemoveOptions,
    SurveyOptions,
    ValidateOptions,
)
from bloomcli.datasets import task
from bloomcli.datasets.task import Task
from bloomcli.errors import NothingToFilter, UnknownColumn, UsageError
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import Status
from bloomcli.model.file import Presence
from bloomcli.policy.policy import ColumnPart, Limits, Part, Policy

ROWS = 300
NAMES = by_id(order_id=1, a=4, b=3, user__mail=6, name=9, extra=10)
"""`id` and `user.email` were renamed, `name` was dropped and added anew, `a` and `b` were renamed crosswise, and
`extra` was added."""
DROPPED = "name (not a column of the table)"
WITHOUT_NAME = (
    "the file doesn't have the table's column name: it was written before the column was added, or without it"
)


def values(prefix: str) -> list[str]:
    return [f"{prefix}{i}" for i in range(ROWS)]


@pytest.fixture(params=["parquet", "orc"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file from before the changes, with the field ids of its columns."""
    table = pa.table(
        [list(range(ROWS)), values("n"), values("a"), values("b"), [{"email": e} for e in values("e")]],
        schema=pa.schema(
            [
                field("id", pa.int64(), 1),
                field("name", pa.string(), 2),
                field("a", pa.string(), 3),
                field("b", pa.string(), 4),
                field("user", pa.struct([field("email", pa.string(), 6)]), 5),
            ]
        ),
    )
    path = tmp_path / f"old.{request.param}"
    if request.param == "parquet":
        pq.write_table(table, path, row_group_size=100, use_dictionary=False)
    else:
        orcfiles.write(tmp_path / "plain", table)
        orc_ids(tmp_path / "plain", path, {"id": 1, "name": 2, "a": 3, "b": 4, "user": 5, "user.email": 6})
    return path


def added(path: Path, columns: Sequence[str], **options: Any) -> ChangeReport:
    """The result of `add` for the file, as ``new`` next to it."""
    output = path.with_name("new")
    return change.run(path, AddOptions(columns=columns, names=NAMES, output=output, overwrite=True, **options))


def filtered(path: Path) -> set[str]:
    """The columns with filters, by the file's own names."""
    return {found.column for found in bloomcli.inspect(path).filters}


def answer(path: Path, column: str, value: str) -> Presence:
    (totals,) = probe.run(path, ProbeOptions(column=column, values=value, names=NAMES)).totals
    return totals.presence


def skipped(path: Path, options: AddOptions | RemoveOptions | FoldOptions) -> str:
    """The reason why a file isn't changed."""
    row = task.run(Task(options=options.checked(), path=str(path), size=-1))
    assert row.status is Status.SKIPPED
    assert row.reason is not None
    return row.reason


def test_add_takes_the_columns_by_the_names_of_the_table(path: Path) -> None:
    report = added(path, ["order_id", "user.mail"])
    assert {change.column for change in report.changes} == {"order_id", "user.mail"}
    assert filtered(path.with_name("new")) == {"id", "user.email"}
    new = path.with_name("new")
    assert answer(new, "order_id", "7") is answer(new, "user.mail", "e7") is Presence.MAYBE
    assert answer(new, "order_id", "-7") is answer(new, "user.mail", "zz") is Presence.ABSENT


def test_names_that_changed_places_name_the_other_column(path: Path) -> None:
    """A filter on the wrong one would be an answer that loses rows."""
    added(path, ["a"])
    new = path.with_name("new")
    assert filtered(new) == {"b"}
    assert (answer(new, "a", "b7"), answer(new, "a", "a7")) == (Presence.MAYBE, Presence.ABSENT)


def test_a_glob_selects_neither_what_was_dropped_nor_what_is_not_there(path: Path) -> None:
    report = added(path, ["*"])
    assert filtered(path.with_name("new")) == {"id", "a", "b", "user.email"}
    assert report.remarks == ()  # a partition column, for one, is in no file of Delta


def test_a_glob_says_why_where_it_selects_nothing_else(path: Path, tmp_path: Path) -> None:
    assert skipped(path, AddOptions(columns=["nam*", "ext*"], names=NAMES, in_place=True)) == (
        "the file doesn't have the table's columns name, extra:"
        " it was written before they were added, or without them"
    )
    flags = pa.table([[True]], schema=pa.schema([field("flag", pa.bool_(), 1)]))
    pq.write_table(flags, tmp_path / "flags")
    options = AddOptions(columns=["*"], names=by_id(flag=1, name=9), in_place=True)
    assert skipped(tmp_path / "flags", options).startswith("no column can have a filter (flag: BOOLEAN: it has two")


def test_add_does_what_it_can_where_some_columns_are_not_there(path: Path) -> None:
    report = added(path, ["name", "order_id"])
    assert {change.column for change in report.changes} == {"order_id"}
    assert WITHOUT_NAME in report.remarks
    assert filtered(path.with_name("new")) == {"id"}


def test_a_file_without_any_of_the_columns_is_skipped(path: Path) -> None:
    """Of the name that another column has had before."""
    before = path.read_bytes()
    for columns in (["name"], ["nam*"]):
        assert skipped(path, AddOptions(columns=columns, names=NAMES, in_place=True)) == WITHOUT_NAME
    assert path.read_bytes() == before
    with pytest.raises(NothingToFilter, match="doesn't have the table's column name"):
        added(path, ["name"])


def test_remove_and_fold_say_why_there_is_nothing_to_do(path: Path) -> None:
    assert skipped(path, RemoveOptions(columns=["name"], names=NAMES, in_place=True)) == WITHOUT_NAME
    why = "ORC's filters" if path.suffix == ".orc" else WITHOUT_NAME
    assert skipped(path, FoldOptions(columns=["name"], names=NAMES, in_place=True)).startswith(why)


@pytest.mark.parametrize("name", ["id", "user.email", DROPPED, "orderid", "ex", "zz*"])
def test_what_the_table_does_not_have_is_an_unknown_column(name: str, path: Path) -> None:
    near = {"id": "order_id", "user.email": "user.mail", "orderid": "order_id", "ex": "extra"}
    for run in (
        lambda: added(path, [name]),
        lambda: inspect.run(path, InspectOptions(columns=[name], names=NAMES)),
        lambda: validate.run(path, ValidateOptions(require=[name], names=NAMES)),
        lambda: probe.run(path, ProbeOptions(column=name, values="1", names=NAMES)),
        lambda: survey.run(path, SurveyOptions(columns=[name], names=NAMES)),
        lambda: change.run(path, RemoveOptions(columns=[name], names=NAMES, dry_run=True)),
    ):
        with pytest.raises(UnknownColumn) as caught:
            run()
        assert near.get(name, "") in str(caught.value.hint)


def test_columns_that_are_not_there_can_be_excluded(path: Path) -> None:
    report = added(path, ["*"], exclude=["name", "a", "user.mail"])
    assert {change.column for change in report.changes} == {"order_id", "b"}
    with pytest.raises(UsageError, match="all selected columns are excluded"):
        added(path, ["name"], exclude=["n*"])


def test_a_second_run_sees_that_its_output_is_there(path: Path) -> None:
    options = AddOptions(columns=["a"], names=NAMES, output=path.with_name("new")).checked()
    target = Target()
    assert isinstance(change_where_needed(path, add.Request(options), target), ChangeReport)
    assert change_where_needed(path, add.Request(options), target) == "the output is there already"
    other = AddOptions(columns=["b"], names=NAMES, output=path.with_name("new")).checked()
    assert isinstance(change_where_needed(path, add.Request(other), target), ChangeReport)
    assert filtered(path.with_name("new")) == {"a"}


@pytest.fixture
def with_filters(path: Path) -> Path:
    """The file with filters on `id`, on `a` and on the dropped `name`, as its writer could have made them."""
    output = path.with_name(f"filtered{path.suffix}")
    bloomcli.add(path, ["id", "a", "name"], output=output)
    return output


def test_inspect_shows_every_filter_under_the_names_of_the_table(with_filters: Path) -> None:
    report = inspect.run(with_filters, InspectOptions(names=NAMES))
    assert {found.column for found in report.filters} == {"order_id", "b", DROPPED}
    assert [column.column for column in report.by_column] == ["order_id", DROPPED, "b", "a", "user.mail"]
    assert ("not in the file", "name, extra") in report.details
    report = inspect.run(with_filters, InspectOptions(names=NAMES, columns=["order_id", "name"]))
    assert {found.column for found in report.filters} == {"order_id"}
    assert ("not in the file", "name") in report.details
    assert report.other_columns_with_filters == (DROPPED, "b")


def test_validate_checks_the_filters_of_dropped_columns_too(with_filters: Path) -> None:
    options = ValidateOptions(names=NAMES, deep=True, require=["order_id", "name", "*"], max_fpp=1e-60)
    report = validate.run(with_filters, options)
    assert report.values_checked == 3 * ROWS
    assert {f.column for f in report.findings if f.id == "filter-fpp"} == {"order_id", "b", DROPPED}
    assert {f.column for f in report.findings if f.id == "filter-required"} == {"a", "user.mail"}
    hints = {f.column: f.hint for f in report.findings}
    assert hints[DROPPED] == "remove without --columns removes the column's filters, with all others of the file"
    assert "--columns order_id" in (hints["order_id"] or "")


def test_remove_without_columns_removes_the_filters_of_dropped_columns_too(with_filters: Path, path: Path) -> None:
    output = with_filters.with_name("bare")
    change.run(with_filters, RemoveOptions(names=NAMES, output=output))
    assert output.read_bytes() == path.read_bytes()
    report = change.run(with_filters, RemoveOptions(columns=["order_id"], names=NAMES, output=output, overwrite=True))
    assert {change.column for change in report.changes} == {"order_id"}
    assert filtered(output) == {"a", "name"}


def test_fold_reports_the_names_of_the_table(tmp_path: Path) -> None:
    table = pa.table([list(range(ROWS))], schema=pa.schema([field("id", pa.int64(), 1)]))
    pq.write_table(table, tmp_path / "plain")
    bloomcli.add(tmp_path / "plain", ["id"], ndv=10**6, output=tmp_path / "large")
    options = FoldOptions(columns=["order_id"], names=NAMES, output=tmp_path / "small")
    report = change.run(tmp_path / "large", options)
    assert {(change.column, change.action) for change in report.changes} == {("order_id", "fold")}
    assert change_where_needed(tmp_path / "large", fold.Request(options), Target()) == ("the output is there already")


def test_survey_proposes_columns_of_the_table_only(with_filters: Path, path: Path) -> None:
    seen = survey.run(with_filters, SurveyOptions(names=NAMES)).seen
    assert {column.column for column in seen if column.filters} == {"order_id", "b"}
    seen = survey.run(path, SurveyOptions(names=NAMES)).seen
    assert {column.column for column in seen} == {"order_id", "a", "b", "user.mail"}


def test_a_policy_names_the_columns_of_the_table(path: Path) -> None:
    rules = Part(require=("order_id", "name"), columns=(ColumnPart(names=("b",), limits=Limits(require=True)),))
    policy = Policy(whole=rules)
    report = validate.run(path, ValidateOptions(names=NAMES, policy=policy))
    assert {finding.column for finding in report.findings} == {"order_id", "b"}
    change.run(path, AddOptions(names=NAMES, policy=policy, output=path.with_name("new")))
    assert filtered(path.with_name("new")) == {"id", "a"}
    assert validate.run(path.with_name("new"), ValidateOptions(names=NAMES, policy=policy)).findings == ()
    only = AddOptions(names=NAMES, policy=Policy(whole=Part(require=("name",))), in_place=True)
    assert skipped(path, only) == WITHOUT_NAME


def test_a_policy_can_require_every_column_of_the_table(path: Path) -> None:
    policy = Policy(whole=Part(require=("*",)))
    change.run(path, AddOptions(names=NAMES, policy=policy, output=path.with_name("new")))
    assert filtered(path.with_name("new")) == {"id", "a", "b", "user.email"}
    assert validate.run(path.with_name("new"), ValidateOptions(names=NAMES, policy=policy)).findings == ()


def test_the_schema_of_the_table_names_its_columns(tmp_path: Path) -> None:
    """Trino looks up the table's BIGINT in a filter of INT32 values. That it is one, only the schema says."""
    tags = pa.list_(field("element", pa.int32(), 2))
    pq.write_table(pa.table([[[1, 2]]], schema=pa.schema([field("tags", tags, 1)])), tmp_path / "f")
    schema = tmp_path / "schema.sql"
    schema.write_text("labels array<bigint>")
    options = AddOptions(
        columns=["labels.element"],
        names=by_id(labels__element=2),
        readers=["trino"],
        table_schema=schema,
        output=tmp_path / "new",
    )
    with pytest.raises(UsageError, match=r"column labels\.element gets no filter"):
        change.run(tmp_path / "f", options)


def test_probe_has_no_answer_for_a_missing_column(path: Path) -> None:
    """Its rows have nulls, or the default that Iceberg v3 gives them: they are never called absent."""
    report = probe.run(path, ProbeOptions(column="name", values=["n7", "zz"], names=NAMES))
    assert {v.presence for v in report.verdicts} == {v.answer for v in report.verdicts} == {Presence.UNKNOWN}
    assert {v.presence for v in report.totals} == {v.answer for v in report.totals} == {Presence.UNKNOWN}
    assert not report.absent_everywhere
    assert all(t.absent_row_groups == t.stats_skipped_row_groups == 0 for t in report.totals)
    assert {v.reason for v in report.verdicts} == {
        f"{WITHOUT_NAME}; its rows have the partition's value, the column's default or null"
    }
    same = probe.run(path, ProbeOptions(column="order_id", values="1", names=NAMES))
    assert (report.row_groups, report.total_bytes) == (same.row_groups, same.total_bytes)
    assert [v.rows for v in report.verdicts][: same.row_groups] == [v.rows for v in same.verdicts]
    assert {t.reason for t in report.totals} == {v.reason for v in report.verdicts}
    row = task.run(
        Task(options=ProbeOptions(column="name", values="zz", names=NAMES).checked(), path=str(path), size=-1)
    )
    assert (row.status, row.exit_code) == (Status.DONE, 0)


def test_probe_without_a_column_never_takes_a_dropped_one(path: Path) -> None:
    bloomcli.add(path, ["name"], output=path.with_name("new"))
    with pytest.raises(UsageError, match="no column has a filter"):
        probe.run(path.with_name("new"), ProbeOptions(values="n7", names=NAMES))


@pytest.mark.parametrize(
    ("kind", "stored", "there", "not_there"),
    [
        (pa.int32(), [1, 2], ["1", "+2"], [str(2**40), str(-(2**40))]),
        (pa.int32(), [1, 2], ["1.0", "2"], ["1.5"]),
        (pa.float32(), [0.5, 2.0], ["0.5", "2"], ["1e300", "3"]),
        (pa.float32(), [0.1], ["0.1", "0.10000000149011612"], ["0.2"]),
        (pa.decimal128(5, 2), [Decimal("1.50")], ["1.5", "1.5000"], ["12345678.00", "1.501"]),
        (pa.date32(), [dt.date(2026, 11, 1)], ["2026-11-01"], ["2026-11-02"]),
    ],
)
def test_a_value_that_only_the_wider_type_of_the_table_has_is_absent(
    kind: pa.DataType, stored: list[Any], there: list[str], not_there: list[str], tmp_path: Path
) -> None:
    """Such as a BIGINT in a file from when the column was an INT."""
    pq.write_table(pa.table([stored], schema=pa.schema([field("id", kind, 1)])), tmp_path / "f.parquet")
    orcfiles.write(tmp_path / "plain", pa.table({"id": pa.array(stored, kind)}))
    orc_ids(tmp_path / "plain", tmp_path / "f.orc", {"id": 1})
    for file in (tmp_path / "f.parquet", tmp_path / "f.orc"):
        options = AddOptions(columns=["x"], names=by_id(x=1), output=tmp_path / "new", overwrite=True)
        change.run(file, options)
        for values_, expected in ((there, Presence.MAYBE), (not_there, Presence.ABSENT)):
            found = probe.run(tmp_path / "new", ProbeOptions(column="x", values=values_, names=by_id(x=1)))
            assert {t.answer for t in found.totals} == {expected}


def test_a_file_without_rows_and_without_the_column_has_no_answers(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "f")
    report = probe.run(tmp_path / "f", ProbeOptions(column="b", values="1", names=by_name(a="a", b="b")))
    assert report.absent_everywhere
