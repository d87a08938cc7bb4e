"""The policy that `validate --init` writes: the survey, the requirements, and that the dataset meets them."""

from __future__ import annotations

import pickle
import re
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import datasets, footers
from support.engines import ROOT
from support.mosaicfiles import write as write_mosaic
from support.tasks import plan_tasks

import bloomcli
from bloomcli.commands.options import SurveyOptions, ValidateOptions, policy_of
from bloomcli.commands.survey import run as run_survey
from bloomcli.datasets import local
from bloomcli.errors import CorruptFile, UnknownColumn
from bloomcli.model.dataset import FileRow, Status, SurveyedColumn
from bloomcli.model.file import Severity
from bloomcli.model.validate import Finding
from bloomcli.policy import globs
from bloomcli.policy.policy import Part, Policy
from bloomcli.policy.policy_file import load
from bloomcli.policy.starter import starter_policy
from bloomcli.rules import RULES
from bloomcli.storage.listing import expand


def row(path: str, *seen: SurveyedColumn, form: str = "parquet") -> FileRow:
    """A row of the survey."""
    return FileRow(path=path, status=Status.DONE, format=form, row_groups=1, seen=seen)


def seen(column: str, fpp: float | None = 0.009, *, filters: int = 1, everywhere: bool = True) -> SurveyedColumn:
    """A column with filters."""
    return SurveyedColumn(
        column=column, filters=filters, everywhere=everywhere, unreadable=0, bitset_bytes=64 * filters, max_fpp=fpp
    )


def survey(path: Path | str, **options: Any) -> FileRow:
    """The survey of one file."""
    return run_survey(path, SurveyOptions(**options))


def policy_given(**options: Any) -> Policy:
    """The policy that results from options."""
    return policy_of(ValidateOptions(**options).checked())


def replace_paths(paths: Sequence[str]) -> Part:
    """A part with these globs."""
    return Part(paths=tuple(paths), require=("found",))


def surveyed(*paths: Path | str, **options: Any) -> list[FileRow]:
    """The survey of the files, by the local engine."""
    tasks = plan_tasks("survey", expand([str(p) for p in paths]), options)
    return list(local.run(tasks, jobs=1).rows)


def made(rows: Sequence[FileRow], folder: Path) -> Policy:
    """The policy that is written, read again."""
    path = folder / "bloom.toml"
    path.write_text(starter_policy(rows, base=str(folder)), encoding="utf-8")
    return load(path)


def gate(policy: Policy, *paths: Path | str) -> dict[str, set[str]]:
    """Each file's findings worse than notes, by the local engine."""
    tasks = plan_tasks("validate", expand([str(p) for p in paths]), {"policy": policy})
    rows = local.run(tasks, jobs=1).rows
    assert any(r.status in (Status.DONE, Status.FOUND) for r in rows)
    return {r.path: {f.id for f in r.findings if f.severity is not Severity.NOTE} for r in rows}


# --- survey


def test_a_column_with_filters_everywhere_is_distinguished_from_one_with_some(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", "c", "d"], "none": [1, 2, 3, 4]})
    pq.write_table(table, path, row_group_size=2)
    bloomcli.add(path, ["id", "name"], in_place=True)
    report = survey(path)
    assert (report.format, report.row_groups, report.bytes_before) == ("parquet", 2, path.stat().st_size)
    facts = bloomcli.inspect(path).filters
    for column in report.seen:
        mine = [f for f in facts if f.column == column.column]
        assert column.filters == len(mine) == 2
        assert column.bitset_bytes == sum(f.bitset_bytes or 0 for f in mine)
        assert column.max_fpp == max(f.fpp or 0 for f in mine)
        assert (column.everywhere, column.unreadable) == (True, 0)
    assert [c.column for c in report.seen] == ["id", "name"]


def test_a_column_that_lacks_a_filter_in_one_row_group_is_not_everywhere(tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    bloomcli.add(path, ["id", "name"], in_place=True)
    footers.edit_file(path, path, footers.set_filter(1, 0, None, None))
    assert [(c.column, c.filters, c.everywhere) for c in survey(path).seen] == [("id", 1, False), ("name", 2, True)]


def test_groups_of_columns_have_rates_but_can_not_be_required() -> None:
    found = {c.column: c for c in survey(ROOT / "fixtures" / "orc" / "java_types.orc").seen}
    assert not found["person"].everywhere
    assert found["person"].max_fpp is not None
    assert found["person.age"].everywhere


@pytest.mark.parametrize("name", ["orc/java_types.orc", "orc/java_both_kinds.orc", "mosaic/draft_types.mosaic"])
def test_files_of_other_formats_are_surveyed_too(name: str) -> None:
    path = ROOT / "fixtures" / name
    facts = bloomcli.inspect(path).filters
    report = survey(path)
    assert facts
    assert sum(c.filters for c in report.seen) == len(facts)
    assert {c.column for c in report.seen} == {f.column for f in facts}
    assert max(c.max_fpp or 0 for c in report.seen) == max(f.fpp or 0 for f in facts)


@pytest.mark.parametrize(
    "name", ["parquet/pyarrow_empty.parquet", "orc/cpp_empty.orc", "mosaic/released_empty.mosaic"]
)
def test_in_a_file_without_rows_no_column_lacks_a_filter(name: str) -> None:
    report = survey(ROOT / "fixtures" / name)
    assert report.seen
    assert all(c.everywhere for c in report.seen)


def test_an_unreadable_filter_is_counted(tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    bloomcli.add(path, ["id"], in_place=True)
    first = bloomcli.inspect(path).filters[0]
    data = bytearray(path.read_bytes())
    data[first.offset] = 0xFF
    path.write_bytes(data)
    (column,) = survey(path).seen
    assert (column.filters, column.unreadable, column.everywhere) == (2, 1, True)


def test_a_file_that_can_not_be_read_is_an_error_and_a_row_of_a_dataset(tmp_path: Path) -> None:
    datasets.mixed(tmp_path)
    with pytest.raises(CorruptFile):
        survey(tmp_path / "bad" / "cut.parquet")
    rows = {Path(r.path).name: r for r in surveyed(tmp_path)}
    assert rows["cut.parquet"].status is Status.FAILED
    assert rows["notes.txt"].status is Status.SKIPPED
    done = rows["done.parquet"]
    assert (done.status, done.columns, done.filters, done.row_groups) == (Status.DONE, 1, 2, 2)
    assert done.max_fpp == done.seen[0].max_fpp
    assert pickle.loads(pickle.dumps(done)) == done


def test_what_no_limit_helps_is_found_and_notes_are_not() -> None:
    boolean = survey(ROOT / "fixtures" / "parquet" / "spark_types.parquet")
    assert {(f.id, f.column) for f in boolean.findings} == {("filter-boolean", "flag")}
    noted = survey(ROOT / "fixtures" / "parquet" / "orders.parquet")
    assert noted.findings == ()


def test_readers_that_are_named_are_asked(tmp_path: Path) -> None:
    path = tmp_path / "narrow.parquet"
    pq.write_table(pa.table({"id": pa.array(range(100), pa.int32())}), path)
    bloomcli.add(path, ["id"], in_place=True)
    (tmp_path / "t.sql").write_text("id BIGINT")
    policy = policy_given(readers=["trino"], table_schema=tmp_path / "t.sql")
    assert [f.id for f in survey(path, policy=policy).findings] == ["reader-widened"]
    assert survey(path, policy=policy_given(readers=["trino"])).findings == ()


def test_a_requested_column_must_exist(tmp_path: Path) -> None:
    path = datasets.write(tmp_path / "a.parquet")
    with pytest.raises(UnknownColumn, match="no column 'nmae'"):
        survey(path, columns=["id", "nmae"])
    (failed,) = surveyed(path, columns=["nmae"])
    assert (failed.status, failed.exit_code) == (Status.FAILED, 2)


# --- the text


def test_columns_of_all_files_are_required_and_others_named(tmp_path: Path) -> None:
    rows = [
        row("a.parquet", seen("id"), seen("name"), seen("tag", everywhere=False)),
        row("b.parquet", seen("name"), seen("id", 0.02)),
    ]
    text = starter_policy(rows, base=str(tmp_path))
    assert tomllib.loads(text)["require"] == ["id", "name"]
    assert '# "tag", # has filters in 1 of 2 files' in text
    assert '"id", # 2 filters, 128 bytes, worst rate 0.02\n' in text
    assert "from 2 files (2 parquet)" in text


@pytest.mark.parametrize(
    ("worst", "limit"),
    [(0.0, 0.001), (1e-9, 0.001), (0.0011, 0.01), (0.01, 0.01), (0.0101, 0.02), (0.3, 0.5), (0.5, 0.5)],
)
def test_the_worst_rate_is_rounded_up(worst: float, limit: float, tmp_path: Path) -> None:
    text = starter_policy([row("a.orc", seen("id", worst)), row("b.orc", seen("id", 0.0))], base=str(tmp_path))
    assert tomllib.loads(text)["max-fpp"] == limit


def test_a_rate_that_says_nothing_sets_no_limit(tmp_path: Path) -> None:
    text = starter_policy([row("x/a.orc", seen("id", 0.8)), row("x/b.orc", seen("id"))], base=str(tmp_path))
    assert "max-fpp" not in tomllib.loads(text)
    assert "0.8, of id in x/a.orc" in text
    assert "max-fpp" not in tomllib.loads(starter_policy([row("a.orc", seen("id", None))], base=str(tmp_path)))


def test_folders_that_differ_get_parts_of_their_own(tmp_path: Path) -> None:
    base = str(tmp_path)
    rows = [
        row(f"{base}/lake/orders/year=2023/a.orc", seen("id"), seen("user"), form="orc"),
        row(f"{base}/lake/orders/year=2024/a.parquet", seen("user"), seen("id")),
        row(f"{base}/lake/events/a.parquet", seen("id", 0.04)),
        row(f"{base}/lake/tags/deep/a.parquet", seen("id"), seen("tag")),
        row(f"{base}/lake/tags/deeper/still/a.parquet", seen("id"), seen("tag"), seen("more")),
        row(f"{base}/lake/top.parquet", seen("id"), seen("top")),
    ]
    table = tomllib.loads(starter_policy(rows, base=base))
    assert (table["require"], table["max-fpp"]) == (["id"], 0.05)
    assert table["files"] == [
        {"paths": ["lake/orders/**"], "require": ["user"], "max-fpp": 0.01},
        {"paths": ["lake/tags/**"], "require": ["tag"], "max-fpp": 0.01},
    ]
    policy = made(rows, tmp_path)
    for one in rows:
        assert set(policy.for_file(one.path).require) <= {c.column for c in one.seen}


def test_partitions_of_one_table_are_one_folder(tmp_path: Path) -> None:
    rows = [
        row(f"{tmp_path}/t/y={y}/m={m}/a.orc", seen("id"), *[seen("b")] * (y == 1)) for y in (1, 2) for m in (1, 2)
    ]
    assert "files" not in tomllib.loads(starter_policy(rows, base=str(tmp_path)))


def test_files_elsewhere_get_whole_globs(tmp_path: Path) -> None:
    rows = [
        row("s3://bucket/lake/a/x.orc", seen("id"), seen("a")),
        row("s3://bucket/lake/b/x.orc", seen("id")),
        row("s3://other/c/x.orc", seen("id")),
        row("/data/lake/d/x.orc", seen("id"), seen("d")),
        row("/data/lake/e/x.orc", seen("id")),
        row(f"{tmp_path}/here/x.orc", seen("id"), seen("h")),
        row(f"{tmp_path}/x.orc", seen("id")),
    ]
    policy = made(rows, tmp_path)
    assert [part.paths for part in policy.files] == [("/data/lake/d/**",), ("here/**",), ("s3://bucket/lake/a/**",)]
    for one in rows:
        assert set(policy.for_file(one.path).require) == {c.column for c in one.seen}


def test_an_empty_file_takes_nothing_from_what_is_required(tmp_path: Path) -> None:
    empty = row("a.orc", seen("id", None, filters=0), seen("none", None, filters=0))
    for rows in ([empty, row("b.orc", seen("id"))], [row("b.orc", seen("id")), empty]):
        assert tomllib.loads(starter_policy(rows, base=str(tmp_path)))["require"] == ["id"]
    assert "require" not in tomllib.loads(starter_policy([empty], base=str(tmp_path)))


def test_files_that_failed_or_are_something_else_are_reported_or_left_out(tmp_path: Path) -> None:
    rows = [
        row("a.orc", seen("id")),
        FileRow(path="bad\n.orc", status=Status.FAILED, error="x"),
        FileRow(path="notes.txt", status=Status.SKIPPED),
    ]
    text = starter_policy(rows, base=str(tmp_path))
    assert tomllib.loads(text)["require"] == ["id"]
    assert "1 more file could not be read, the first: bad\N{REPLACEMENT CHARACTER}.orc" in text
    assert "from 1 file (1 parquet)" in text


def test_only_requested_columns_are_required(tmp_path: Path) -> None:
    base = str(tmp_path)
    every = [seen("id"), seen("a[0]"), seen("a0"), seen("user.mail", everywhere=False), seen("user.name", 0.04)]
    rows = [row(f"{base}/x/a.orc", *every, seen("more")), row(f"{base}/y/a.orc", *every)]

    def required(*columns: str) -> list[str]:
        table = tomllib.loads(starter_policy(rows, base=base, columns=columns))
        assert table["max-fpp"] == 0.05, "limits are for all columns"
        assert "files" not in table or columns == ("mor?",)
        return list(table.get("require", ())) + [n for p in table.get("files", ()) for n in p["require"]]

    assert required("id") == ["id"]
    assert required("user.*") == ["user.name"]
    assert required("a[0]") == ["a[[]0]"], "a name before the glob that it looks like"
    assert required("a*") == ["a[[]0]", "a0"]
    assert required("mor?") == ["more"]
    assert '"user.mail"' in starter_policy(rows, base=base, columns=["user.*"])
    assert '"user.mail"' not in starter_policy(rows, base=base, columns=["id"])


def test_readers_and_the_tables_schema_are_written(tmp_path: Path) -> None:
    (tmp_path / 'a "b".sql').write_text("id BIGINT")
    text = starter_policy(
        [row("a.orc", seen("id"))], base=str(tmp_path), readers=["spark", "trino"], table_schema='a "b".sql'
    )
    (tmp_path / "bloom.toml").write_text(text)
    policy = load(tmp_path / "bloom.toml")
    assert policy.whole.readers == ("spark", "trino")
    assert policy.whole.table is not None


def test_what_fails_all_the_same_stands_at_the_top_and_is_not_required(tmp_path: Path) -> None:
    findings = tuple(
        Finding(id=rule, severity=Severity.ERROR, message="x", column=column)
        for rule, column in (("filter-boolean", "f\nx"), ("filter-boolean", "g"), ("filter-length", None))
    )
    rows = [replace(row("a.orc", seen("id"), seen("f\nx"), seen("g")), findings=findings), row("b.orc", seen("id"))]
    text = starter_policy(rows, base=str(tmp_path))
    assert "#   filter-boolean: 2 findings, the first: f\N{REPLACEMENT CHARACTER}x in a.orc\n" in text
    assert "#   filter-length: 1 finding, the first: a.orc\n" in text
    assert tomllib.loads(text)["require"] == ["id"]
    alone = starter_policy(rows[:1], base=str(tmp_path))
    assert tomllib.loads(alone)["require"] == ["id"], "the policy can't ask for what another rule forbids"
    assert '# "g", # has filters in 1 of 1 file, but none may have one (filter-boolean)\n' in alone


def test_many_columns_with_some_filters_are_summed_up(tmp_path: Path) -> None:
    rows = [row("a.orc", *(seen(f"c{i}") for i in range(50))), row("b.orc")]
    text = starter_policy(rows, base=str(tmp_path))
    assert "# 30 more columns have some filters" in text
    assert tomllib.loads(text)["require"] == []
    one = starter_policy([row("a.orc", *(seen(f"c{i}") for i in range(21))), row("b.orc")], base=str(tmp_path))
    assert "# 1 more column has some filters" in one
    single = starter_policy([row("a.orc", seen("id"))], base=str(tmp_path))
    assert '"id", # 1 filter, 64 bytes, worst rate 0.009' in single


@pytest.mark.parametrize(
    "rows", [[], [row("a.orc")], [row("a.orc", seen("id"))]], ids=["no file", "no filter", "one"]
)
def test_what_is_commented_out_can_be_taken_up(rows: list[FileRow], tmp_path: Path) -> None:
    text = starter_policy(rows, base=str(tmp_path))
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.json").write_text('{"type": "struct", "fields": []}')
    taken, count = re.subn(r"^# (\[.*\]|[a-z-]+ = .*)$", r"\1", text, flags=re.MULTILINE)
    assert count >= 9
    (tmp_path / "bloom.toml").write_text(taken)
    policy = load(tmp_path / "bloom.toml")
    assert policy.whole.readers
    assert policy.whole.table is not None
    assert policy.whole.max_fpp is not None
    assert policy.whole.require
    assert policy.exclude
    assert policy.whole.off
    assert policy.whole.severity
    assert policy.whole.columns
    assert policy.files


def test_the_rules_that_it_names_are_there(tmp_path: Path) -> None:
    text = starter_policy([], base=str(tmp_path))
    named = set(re.findall(r"\b(?:filter|reader|profit)-[a-z-]+", text))
    assert {"filter-required", "filter-fpp"} <= named <= set(RULES)


ODD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\0") | st.sampled_from("*?[]!#\\ \"'\n\udcff="),
    min_size=1,
    max_size=6,
)


@given(ODD.filter(lambda n: n not in {".", ".."}), ODD)
def test_odd_names_of_folders_and_columns_are_held(folder: str, column: str) -> None:
    if any("\ud800" <= c <= "\udfff" for c in column):
        return  # a column's name is UTF-8
    rows = [row(f"/base/{folder}/x.orc", seen("id"), seen(column)), row("/base/plain folder/x.orc", seen("id"))]
    table = tomllib.loads(starter_policy(rows, base="/base"))
    if "=" in folder or column == "id" or folder == "plain folder":
        assert table["require"] == ["id"]
        return
    (part,) = table["files"]
    (name,) = part["require"]
    assert fnmatchcase(column, name), "as commands take columns"
    assert name == column or not fnmatchcase("id", name)
    assert globs.problem(part["paths"][0]) is None
    policy = Policy(base="/base", files=(replace_paths(part["paths"]),))
    assert policy.for_file(rows[0].path).require == ("found",)
    assert policy.for_file(rows[1].path).require == ()


# --- the dataset passes


ODD_COLUMNS = ("", " ", "\t", "a[0]", "a0", "*", "?", "x y", "[", "]", "!", "a.b", "b[!c]", "bd")


def test_columns_of_any_name_can_be_requested(tmp_path: Path) -> None:
    with_filter = [name for name in ODD_COLUMNS if name not in {"a0", "bd"}]
    path = tmp_path / "odd.parquet"
    pq.write_table(
        pa.table([pa.array(range(100))] * len(ODD_COLUMNS), names=list(ODD_COLUMNS)),
        path,
        bloom_filter_options={name: {"ndv": 100, "fpp": 0.01} for name in with_filter},
    )
    policy = made(surveyed(path), tmp_path)
    assert len(policy.whole.require) == len(with_filter) - 1
    assert gate(policy, path) == {str(path): set()}
    assert '# "", # has filters in 1 of 1 file, but a policy can\'t name it' in (tmp_path / "bloom.toml").read_text()
    for name in with_filter[1:]:
        pq.write_table(
            pa.table([pa.array(range(100))] * len(ODD_COLUMNS), names=list(ODD_COLUMNS)),
            path,
            bloom_filter_options={other: {"ndv": 100, "fpp": 0.01} for other in with_filter if other != name},
        )
        assert gate(policy, path) == {str(path): {"filter-required"}}, name


def lake(root: Path, forms: Sequence[str], tables: dict[str, Sequence[str]], fpp: float = 0.01) -> Path:
    """Tables of two partitions in these formats, each with filters on its columns."""
    for seed, (name, columns) in enumerate(tables.items()):
        for year in (2023, 2024):
            for form in forms:
                path = root / name / f"year={year}" / f"part.{form}"
                if form == "mosaic":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_mosaic(path, datasets.table(seed=seed * 9 + year))
                else:
                    datasets.write(path, seed=seed * 9 + year)
                if columns:
                    bloomcli.add(path, columns, in_place=True, fpp=fpp, mosaic_draft=form == "mosaic")
    return root


FORMS = ["parquet", "orc", "mosaic"]


def test_the_dataset_passes_the_policy_made_of_it(tmp_path: Path) -> None:
    root = lake(tmp_path / "lake", FORMS, {"orders": ["id", "name"], "events": ["id"]}, fpp=0.03)
    policy = made(surveyed(root), tmp_path)
    assert policy.whole.require == ("id",)
    assert [part.paths for part in policy.files if part.require] == [("lake/orders/**",)]
    found = gate(policy, root)
    assert len(found) == 4 * len(FORMS)
    assert set().union(*found.values()) == set()


def test_files_that_lost_a_filter_or_whose_filter_got_worse_no_longer_pass(tmp_path: Path) -> None:
    root = lake(tmp_path / "lake", FORMS, {"orders": ["id", "name"], "events": ["id"]})
    policy = made(surveyed(root), tmp_path)
    lost = [root / "orders" / "year=2024" / f"part.{form}" for form in FORMS]
    for path in lost:
        bloomcli.remove(path, columns=["name"], in_place=True)
    worse = root / "orders" / "year=2023" / "part.parquet"
    bloomcli.add(worse, ["id"], in_place=True, fpp=0.4, replace=True)
    found = {path: ids for path, ids in gate(policy, root).items() if ids}
    assert found == {**{str(path): {"filter-required"} for path in lost}, str(worse): {"filter-fpp"}}


@pytest.mark.slow
def test_every_fixture_meets_what_is_asked_of_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that it fails only by the reported findings."""
    monkeypatch.chdir(ROOT)
    some = 0
    folders = [Path("fixtures") / form for form in ("parquet", "orc", "mosaic")]
    for paths in (folders, *([folder] for folder in folders)):
        policy = made(surveyed(*paths), tmp_path)
        found = gate(policy, *paths)
        assert {i for ids in found.values() for i in ids} & {"filter-required", "filter-fpp"} == set()
    for path in (p for folder in folders for p in folder.iterdir()):
        rows = surveyed(path)
        if rows[0].status is Status.DONE:
            rules_found = {finding.id for finding in rows[0].findings}
            assert gate(made(rows, tmp_path), path) == {str(path): rules_found}, path
            some += bool(rules_found)
    assert some > 1


def test_a_policy_of_a_relative_dataset_is_for_the_folder_it_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake(tmp_path / "in" / "lake", ["parquet"], {"orders": ["id", "name"], "events": ["id"]})
    monkeypatch.chdir(tmp_path / "in")
    policy = made(surveyed("lake"), tmp_path / "in")
    assert [part.paths for part in policy.files] == [("lake/orders/**",)]
    monkeypatch.chdir(tmp_path)
    assert set().union(*gate(policy, Path("in/lake")).values()) == set()
    assert "name" in policy.for_file("in/lake/orders/new.parquet").require
