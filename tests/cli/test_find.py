"""bloom find: arguments, formats, outputs and exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import click
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom
from support.found_lake import made

import bloomcli
from bloomcli.cli.find import command
from bloomcli.cli.value_arguments import split_in_any_order


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("lake"))


def test_the_exit_code_is_that_of_grep(bloom: Bloom, lake: Path) -> None:
    assert bloom("find", "5", lake, "-c", "id").code == 0
    assert bloom("find", "99999", lake, "-c", "id").code == 1
    assert bloom("find", "-5", lake, "-c", "id").code == 1
    assert bloom("find", "5", lake, "-c", "nope").code == 2
    assert bloom("find", "5", lake / "missing.parquet", "-c", "id").code == 3
    assert bloom("find", "5", lake, "-c", "id", "--maybe").code == 0
    assert bloom("find", "99999", lake, "-c", "id", "--files-only").code == 1


@pytest.mark.slow
def test_a_value_is_found_without_importing_pandas(lake: Path, tmp_path: Path) -> None:
    """Which takes longer than looking the value up in a thousand files."""
    assert find_spec("pandas") is not None
    code = """
import sys
from bloomcli.cli import run
for options in (["--maybe"], ["--files-only"], ["--format", "jsonl"], ["--index", f"{sys.argv[2]}/index"]):
    assert run(["find", "5", sys.argv[1], "-c", "id", *options]) == 0, options
    assert "pandas" not in sys.modules, options
for column, file in (("id", "ids"), ("id", "ids.csv"), ("id", "ids.parquet"), ("flag", "ids.parquet")):
    options = ["--values-from", f"{sys.argv[2]}/{file}", *(["--values-column", column] if "." in file else [])]
    assert run(["find", *options, sys.argv[1] if column == "id" else options[1], "-c", column]) == 0, options
    assert "pandas" not in sys.modules, options
"""
    bloomcli.index_build(lake, ["id"], output=tmp_path / "index")
    (tmp_path / "ids").write_bytes(b"5\r\n\r\n6\n")
    (tmp_path / "ids.csv").write_text("id,name\n5,\n6,a\n")
    pq.write_table(pa.table({"id": [5, 6], "flag": [True, None]}), tmp_path / "ids.parquet")
    done = subprocess.run([sys.executable, "-c", code, lake, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_format_has_the_same_rows(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    order = ("find", "-v", "5", "-v", "4000", lake, "-c", "id", "--select", "id,name")
    rows = [json.loads(line) for line in bloom(*order, "-f", "jsonl").out.splitlines()]
    assert [set(row) for row in rows] == [{"path", "stripe", "row_group", "row", "value", "record"}] * 2
    found = list(csv.DictReader(io.StringIO(bloom(*order, "-f", "csv").out)))
    assert [(r["path"], int(r["row"]), int(r["id"]), r["name"]) for r in found] == [
        (r["path"], r["row"], r["record"]["id"], r["record"]["name"]) for r in rows
    ]
    assert bloom(*order, "-f", "parquet", "-o", tmp_path / "hits.parquet").code == 0
    table = pq.read_table(tmp_path / "hits.parquet").to_pylist()
    assert [row["record"] for row in table] == [row["record"] for row in rows]
    assert [row["row"] for row in table] == [row["row"] for row in rows]
    text = bloom(*order).out.splitlines()
    assert text[0] == f"{rows[0]['path']}: row {rows[0]['row']} (row group {rows[0]['row_group']}): " + json.dumps(
        rows[0]["record"]
    )
    paths = sorted({row["path"] for row in rows})
    assert bloom(*order, "-f", "paths").out.splitlines() == paths
    files = ("find", "-v", "5", "-v", "4000", lake, "-c", "id", "--files-only")
    assert bloom(*files).out.splitlines() == paths
    assert [json.loads(line)["path"] for line in bloom(*files, "-f", "jsonl").out.splitlines()] == paths
    assert set(bloom(*files[:-1], "--maybe").out.splitlines()) >= set(paths)
    report = bloom(*order, "-f", "json").json
    assert (report["schema"], report["rows"], report["exit_code"]) == ("bloom/find/1", 2, 0)


def test_an_output_is_not_replaced(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    out = tmp_path / "hits.csv"
    assert bloom("find", "5", lake, "-c", "id", "-f", "csv", "-o", out).code == 0
    assert out.read_text().startswith("path,stripe,row_group,row,value,id,")
    again = bloom("find", "5", lake, "-c", "id", "-f", "csv", "-o", out)
    assert (again.code, "exists already" in again.err) == (2, True)


@pytest.mark.parametrize(
    "order",
    [
        ["--files-only", "--maybe"],
        ["--files-only", "--limit", "3"],
        ["--maybe", "-f", "csv"],
        ["-f", "parquet"],
        ["-f", "json", "-o", "x"],
        ["-o", "s3://lake/x"],
        ["--limit", "0"],
    ],
    ids=" ".join,
)
def test_options_that_contradict_each_other_are_refused(bloom: Bloom, lake: Path, order: list[str]) -> None:
    done = bloom("find", "5", lake, "-c", "id", *order)
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize("form", ["text", "jsonl", "csv"])
def test_values_that_python_cannot_hold_are_written_as_text(bloom: Bloom, tmp_path: Path, form: str) -> None:
    broken = pa.array([b"caf\xe9", None]).cast(pa.binary()).view(pa.string())
    far = pa.array([8 * 10**17, 5], pa.int64()).cast(pa.timestamp("us"))
    fine = pa.array([1_700_000_000_000_000_001, 7], pa.int64()).cast(pa.timestamp("ns"))
    lists = pa.ListArray.from_arrays([0, 2, 2], pa.concat_arrays([broken.slice(0, 1)] * 2))
    struct = pa.StructArray.from_arrays([broken, far], ["t", "f"])
    table = pa.table({"id": [5, 6], "broken": broken, "far": far, "fine": fine, "lists": lists, "struct": struct})
    pq.write_table(table, tmp_path / "odd.parquet")
    done = bloom("find", "-v", "5", "-v", "6", tmp_path / "odd.parquet", "-c", "id", "-f", form)
    assert done.code == 0, done.err
    if form == "jsonl":
        record = json.loads(done.out.splitlines()[0])["record"]
        assert record["broken"] == "caf\ufffd"
        assert record["lists"] == ["caf\ufffd"] * 2
        assert record["struct"]["t"] == "caf\ufffd"
        assert record["fine"].endswith(".000000001")
        assert record["far"].startswith("27320-12-28")


@pytest.mark.parametrize("form", ["text", "jsonl", "csv", "parquet"])
def test_columns_of_view_types_are_found_and_written(bloom: Bloom, tmp_path: Path, form: str) -> None:
    views = {
        "t": pa.array(["a", "b", None], pa.string_view()),
        "b": pa.array([b"a", b"b", None], pa.binary_view()),
        "s": pa.array([{"x": "a"}, {"x": "b"}, None], pa.struct([("x", pa.string_view())])),
        "l": pa.array([["a"], ["b", "c"], None], pa.list_(pa.string_view())),
        "m": pa.array([[("a", b"1")], [("b", b"2")], None], pa.map_(pa.string_view(), pa.binary_view())),
    }
    path, out = tmp_path / "views.parquet", tmp_path / "hits"
    pq.write_table(pa.table(views), path)
    assert pq.read_schema(path).field("t").type == pa.string_view()
    for column in ("t", "b", "s.x", "l.list.element", "m.key_value.key"):
        done = bloom("find", "b", path, "-c", column, "-f", form, "-o", out)
        assert done.code == 0, done.err
        assert "1 row in 1 of 1 file" in done.err
        if form == "parquet":
            record = pq.read_table(out).column("record")[0].as_py()
            assert record == {name: array[1].as_py() for name, array in views.items()}
        out.unlink()


def test_csv_distinguishes_null_from_the_empty_text_and_the_records_columns_from_the_others(
    bloom: Bloom, tmp_path: Path
) -> None:
    table = pa.table({"id": [5, 5], "path": ["", None], "text": [' a "b",\n', "c"], "yes": [True, None]})
    pq.write_table(table, tmp_path / "a.parquet")
    out = tmp_path / "hits.csv"
    assert bloom("find", "5", tmp_path / "a.parquet", "-c", "id", "-f", "csv", "-o", out).code == 0
    assert out.read_text().splitlines()[0] == "path,stripe,row_group,row,value,id,record.path,text,yes"
    as_is = "header=true, all_varchar=true, allow_quoted_nulls=false"
    read = duckdb.sql(f"SELECT \"record.path\", text, yes FROM read_csv('{out}', {as_is})")
    assert read.fetchall() == [("", r' a "b",\n', "true"), (None, "c", None)]


@pytest.mark.parametrize("target", ["standard output", "a file"])
def test_csv_escapes_what_terminals_and_logs_of_ci_interpret_in_names_and_values(
    bloom: Bloom, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = "\n::warning::x\x1b]0;PWN\x07\x7f\u2028##[error]\\"
    table = pa.table({"id": [5], bad: [bad], "list": [[bad]], "struct": [{bad: bad}], "bytes": [bad.encode()]})
    pq.write_table(table, tmp_path / "::error::a.parquet")
    out = tmp_path / "hits.csv"
    more = ["-o", out] if target == "a file" else []
    done = bloom("find", "5", "::error::a.parquet", "-c", "id", "-f", "csv", *more)
    assert done.code == 0, done.err
    text = out.read_text() if more else done.out
    lines = text.split("\n")
    assert len(lines) == 3, "a header, a row, and the end of the last line"
    assert not any(line.lstrip().startswith("::") for line in lines)
    assert "##[" not in text
    assert text.replace("\n", "").isprintable()
    ((path, *_, cell, listed, struct, data),) = list(csv.reader(lines[1:2]))
    assert (path, cell) == ("::error::a.parquet", r"\n::warning::x\x1b]0;PWN\x07\x7f\u2028#\x23[error]\\")
    assert (json.loads(listed), json.loads(struct)) == ([bad], {bad: bad})
    assert data == "0x" + bad.encode().hex()


def test_the_report_says_whether_files_have_rows_may_have_some_or_failed(
    bloom: Bloom, lake: Path, tmp_path: Path
) -> None:
    assert "found: no rows in " in bloom("find", "-v", "-1", lake, "-c", "id").err
    assert " has such rows\n" in bloom("find", "5", lake, "-c", "id", "--files-only").err
    assert " may have such rows\n" in bloom("find", "5", lake, "-c", "id", "--maybe").err
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1cut off")
    done = bloom("find", "5", bad, lake, "-c", "id", "-f", "jsonl")
    assert (done.code, len(done.out.splitlines())) == (3, 1)
    assert "failed: 1 file, in which there may be more\n" in done.err
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": [1]}), other)
    pairs = ((bad, other), (other, bad))
    assert [bloom("find", "5", *pair, "-c", "id").code for pair in pairs] == [3, 3], "the gravest, in any order"


def test_an_output_in_no_directory_names_what_was_given(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    done = bloom("find", "5", lake, "-c", "id", "-f", "csv", "-o", tmp_path / "none" / "x.csv")
    assert (done.code, ".tmp" in done.err, "x.csv: can't be written" in done.err) == (3, False, True)


def test_an_output_in_a_store_is_refused_with_the_command_that_copies_it(bloom: Bloom, lake: Path) -> None:
    done = bloom("find", "5", lake, "-c", "id", "-f", "csv", "-o", "s3://lake/found rows.csv")
    assert done.code == 2
    assert "-o 'found rows.csv'; `aws s3 cp 'found rows.csv' 's3://lake/found rows.csv'` copies it there" in done.err
    assert "write it with -o x.csv" in bloom("find", "5", lake, "-c", "id", "-o", "https://host/x.csv").err


def test_a_text_of_a_pipe_that_is_no_value_has_no_line(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"six\n",))
    writer.start()
    done = bloom("find", "--values-from", pipe, lake, "-c", "id")
    writer.join()
    assert (done.code, "'six' is not a value" in done.err, "line" in done.err) == (2, True, False)


def test_a_report_of_a_part_does_not_read_as_of_all_files(bloom: Bloom, lake: Path, tmp_path: Path) -> None:
    index = tmp_path / "x.idx"
    assert bloom("index", "build", lake, "-c", "id", "-o", index).code == 0
    (lake / "zz.parquet").write_bytes(b"PAR1")
    done = bloom("find", "1", lake, "-c", "id", "--index", index)
    assert done.code == 3
    assert "searched file" in done.err.split("found: ")[1].splitlines()[0]
    assert "failed: 1 file, in which there may be more" in done.err
    assert "`bloom index update` adds those that can be read" in done.err


@pytest.fixture
def tree(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in which `tr` is the first directory of the lake."""
    (tmp_path / "tr").symlink_to(lake / "day=1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", ["tr", "tr/*.parquet", "file:{tree}/tr", "t*/"])
def test_values_follow_the_path_or_one_comes_before_it(bloom: Bloom, tree: Path, path: str) -> None:
    path = path.format(tree=tree)
    found = bloom("find", path, "3", "-c", "id", "-f", "jsonl", "-q")
    assert (found.code, len(found.out.splitlines())) == (0, 1)
    assert bloom("find", "3", path, "-c", "id", "-f", "jsonl", "-q").out == found.out
    assert " of 3 found" in bloom("find", path, "3", "-5", "4", "-c", "id").err


def test_several_paths_after_the_value_are_searched(bloom: Bloom, tree: Path) -> None:
    done = bloom("find", "3", "missing", "tr", "missing.parquet", "-c", "id")
    assert done.code == 3
    assert "found: 1 row in " in done.err
    assert "failed: 2 files" in done.err


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("s3://nowhere/orders/", "https://host/x"), "s3://nowhere/orders/"),
        (("https://host/x", "s3://nowhere/orders/"), "s3://nowhere/orders/"),
        (("missing.parquet", "/api/v1"), "missing.parquet"),
        (("/api/v1", "missing.parquet"), "missing.parquet"),
        (("missing/", "3"), "missing/"),
        (("3", "missing/"), "missing/"),
        (("/api/v1", "missing/"), "/api/v1"),
    ],
)
def test_what_is_the_path_is_seen_by_its_form_if_it_isnt_there(
    tree: Path, arguments: tuple[str, ...], path: str
) -> None:
    with click.Context(command, info_name="find"):
        assert split_in_any_order(arguments, (), listed=False, from_file=False) == (
            [path],
            [a for a in arguments if a != path],
        )


def test_neither_a_path_nor_its_form_is_an_error_that_says_the_order(bloom: Bloom, tree: Path) -> None:
    done = bloom("find", "3", "missing", "-c", "id")
    assert (done.code, done.out) == (3, "")
    assert "3: no such file or directory, and no argument after it is one: missing\n" in done.err
    assert "the path comes before the values" in done.err


@pytest.mark.parametrize("arguments", [("3", "tr"), ("tr", "3"), ("3", "t*/*.parquet"), ("t*/*.parquet", "3")])
def test_names_of_files_in_both_places_are_refused_and_the_hint_finds_the_value(
    bloom: Bloom, tree: Path, arguments: tuple[str, ...]
) -> None:
    Path("3").touch()
    refused = bloom("find", *arguments, "-c", "id")
    assert (refused.code, refused.out) == (2, "")
    hint = shlex.split(refused.err.splitlines()[1].removeprefix("hint: bloom "))
    assert hint == ["find", max(arguments), "-c", "id", "-v", "3"]
    assert bloom(*hint).code == 0


def test_all_arguments_are_values_where_a_list_names_the_files(bloom: Bloom, tree: Path) -> None:
    Path("list").write_text("tr\n")
    done = bloom("find", "--files-from", "list", "3", "5", "-c", "id")
    assert done.code == 0
    assert "of 2 found" in done.err
    assert bloom("find", "3", "tr", "--files-from", "list", "-c", "id").code == 0
