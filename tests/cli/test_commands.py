"""Each command as a user calls it: what it prints, what it writes, how it exits."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom

import bloomcli


@pytest.mark.parametrize(
    ("options", "without", "others"),
    [
        (("-c", "id,status"), "status", ["user.email"]),
        (("-c", "status,score"), "status, score", ["id", "user.email"]),
        (("--exclude", "id,user.*"), "status, score, ok", ["id", "user.email"]),
    ],
)
def test_inspect_says_which_of_the_chosen_columns_have_no_filter(
    bloom: Bloom, filtered: Path, options: tuple[str, str], without: str, others: list[str]
) -> None:
    end = "; columns with filters: id, user.email." if "id" in others else ".\n"
    assert f"No Bloom filters for {without}{end}" in bloom("inspect", filtered, *options).out
    report = bloom("inspect", filtered, *options, "-f", "json").json
    assert (", ".join(report["columns_without_filters"]), report["other_columns_with_filters"]) == (without, others)


def test_inspect_of_chosen_columns_says_that_no_column_has_a_filter(bloom: Bloom, plain: Path) -> None:
    said = bloom("inspect", plain, "-c", "status").out
    assert "No Bloom filters for status or any other column. `bloom add" in said


def _words(text: bytes) -> bytes:
    return np.array([int(word, 16) for word in text.split()], "<u4").tobytes()


BITS: dict[str, Callable[[bytes], bytes]] = {
    "raw": bytes,
    "npy": lambda data: np.load(io.BytesIO(data)).tobytes(),
    "json": lambda data: bytes.fromhex(json.loads(data)["bitset"]),
    "csv": lambda data: _words(b" ".join(b" ".join(line.split(b",")[1:]) for line in data.split()[1:])),
    "hex": lambda data: _words(re.sub(rb"(?m)^#.*|^ *\S+", b"", data)),
}


@pytest.mark.parametrize("form", BITS)
def test_a_dump_has_the_bits_in_every_form_and_goes_to_a_new_file(
    bloom: Bloom, filtered: Path, tmp_path: Path, form: str
) -> None:
    target = tmp_path / form
    order = ("dump", filtered, "-c", "id", "-g", 1, "-f", form)
    done = bloom(*order, "-o", target)
    assert (done.code, done.out) == (0, "")
    assert BITS[form](target.read_bytes()) == bloomcli.dump(filtered, column="id", row_group=1).bitset
    if form not in {"raw", "npy"}:
        assert target.read_text() == bloom(*order).out
    again = bloom(*order, "-o", target)
    assert (again.code, "exists already" in again.err) == (2, True)
    assert bloom("dump", filtered, "-c", "nope", "-f", form, "-o", tmp_path / "x").code == 2
    assert not (tmp_path / "x").exists()


def test_probe_takes_negative_numbers(bloom: Bloom, plain: Path) -> None:
    report = bloom("probe", plain, "-c", "score", "-v", "-4.875", "--value=-1e300", "-f", "json")
    assert [(t["value"], t["answer"]) for t in report.json["totals"]] == [
        ("-4.875", "no filter"),
        ("-1e300", "absent"),
    ]
    assert bloom("probe", plain, "-c", "score", "-4.875").code == 0
    assert bloom("probe", plain, "-c", "score", "-1e300").code == 1


def test_blank_lines_and_a_mark_at_the_start_are_no_values_of_numbers(
    bloom: Bloom, plain: Path, tmp_path: Path
) -> None:
    values = tmp_path / "values.txt"
    values.write_bytes(b"\xef\xbb\xbf5\r\n\r\n  \n7\n\n")
    report = bloom("probe", plain, "-c", "id", "--values-from", values, "-f", "json")
    assert [t["value"] for t in report.json["totals"]] == ["5", "7"]
    assert [v["value"] for v in report.json["verdicts"]] == ["5"] * 3 + ["7"] * 3
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("a.parquet", "b.parquet"):
        (lake / name).write_bytes(plain.read_bytes())
    many = bloom("probe", lake, "-c", "id", "--values-from", values, "-f", "json")
    assert [[t["value"] for t in row["totals"]] for row in many.json["rows"]] == [["5", "7"]] * 2
    of_text = bloom("probe", plain, "-c", "status", "--values-from", values, "-f", "json")
    assert [t["value"] for t in of_text.json["totals"]] == ["5", "", "  ", "7", ""]
    values.write_text("\n\n")
    nothing = bloom("probe", plain, "-c", "id", "--values-from", values)
    assert (nothing.code, "no values to probe" in nothing.err) == (2, True)
    assert bloom("probe", plain, "-c", "id", "").code == 2


def test_add_leaves_out_or_refuses_what_a_reader_would_lose_rows_by(
    bloom: Bloom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = {"id": range(50), "half": pa.array(np.arange(50, dtype="float16"))}
    pq.write_table(pa.table(table), "f.parquet")
    every = bloom("add", "f.parquet", "-c", "*", "-o", "every.parquet")
    assert every.code == 0
    assert "left out: half, values are hashed at 2 bytes and DuckDB looks 4 up" in every.out
    refused = bloom("add", "f.parquet", "-c", "half", "-o", "refused.parquet")
    assert (refused.code, refused.out) == (2, "")
    assert "column half gets no filter" in refused.err
    assert "hint: `--readers spark,trino`" in refused.err
    assert not (tmp_path / "refused.parquet").exists()
    named = bloom("add", "f.parquet", "-c", "half", "--readers", "spark,trino", "-o", "named.parquet")
    assert named.code == 0
    (tmp_path / "bloom.toml").write_text('readers = ["spark"]\n')
    assert bloom("add", "f.parquet", "-c", "half", "--dry-run").code == 0
    assert bloom("add", "f.parquet", "-c", "half", "--dry-run", "--no-policy").code == 2
    assert bloom("add", "f.parquet", "-c", "half", "--dry-run", "--readers", "duckdb").code == 2
    (tmp_path / "other.toml").write_text('[off]\nreader-float16 = "nobody looks one up"\n')
    assert bloom("add", "f.parquet", "-c", "half", "--dry-run", "--policy", "other.toml").code == 0
    both = bloom("add", "f.parquet", "-c", "id", "--dry-run", "--policy", "other.toml", "--no-policy")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    for nothing in ("", " , "):
        empty = bloom("add", "f.parquet", "-c", "id", "--dry-run", "--readers", nothing)
        assert (empty.code, "it names nothing" in empty.err) == (2, True)
    unknown = bloom("add", "f.parquet", "-c", "id", "--dry-run", "--readers", "sparkle")
    assert (unknown.code, "did you mean spark" in unknown.err) == (2, True)
    done = bloom("add", "f.parquet", "-c", "id", "--dry-run", "--readers", "doris")
    assert done.out.count("remark: Doris may lose rows of files with filters (thread, ") == 2


def test_a_comma_in_a_column_name_is_escaped(bloom: Bloom, tmp_path: Path) -> None:
    path, out = tmp_path / "odd.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"a,b": [1, 2], "c": [3, 4]}), path)
    assert bloom("add", path, "-c", r"a\,b,c", "-o", out).code == 0
    assert {f.column for f in bloomcli.inspect(out).filters} == {"a,b", "c"}
    unescaped = bloom("add", path, "-c", "a,b", "-n")
    assert (unescaped.code, "no column 'a'" in unescaped.err) == (2, True)
    assert r"in --columns: 'a\,b'" in unescaped.err
    for command in ("add", "inspect", "validate", "remove", "fold"):
        assert r"\, is a comma within a name" in " ".join(bloom(command, "--help").out.split())


def test_an_empty_file_is_an_error_with_what_to_do(bloom: Bloom, tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    done = bloom("inspect", tmp_path / "empty.parquet")
    assert (done.code, done.err.splitlines()[1]) == (
        3,
        "hint: a writer that was stopped leaves such a file; get it from its source again",
    )


def test_a_removal_with_nothing_to_do_is_one_line(bloom: Bloom, plain: Path) -> None:
    done = bloom("remove", plain, "--in-place")
    assert (done.code, done.out) == (0, f"nothing written: {plain}: there are no filters\n")
    planned = bloom("remove", plain, "--dry-run", "--in-place")
    assert planned.out == f"dry run, nothing written: {plain}: there are no filters\n"
