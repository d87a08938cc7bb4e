"""Each command as a user calls it: what it prints, what it writes, how it exits."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import Bloom

import bloomcli


def test_inspect_shows_every_filter_measured(bloom: Bloom, filtered: Path) -> None:
    result = bloom("inspect", filtered, "--all")
    assert result.code == 0
    assert result.err == ""
    rows = [line.split() for line in result.out.splitlines() if "BYTE_ARRAY" in line or "INT64" in line]
    assert [(row[0], row[1]) for row in rows] == [
        (str(g), column) for g in range(3) for column in ("id", "user.email")
    ]
    assert "all filters  BLOCK, XXHASH, UNCOMPRESSED" in result.out


def test_inspect_limits_to_columns_and_globs(bloom: Bloom, filtered: Path) -> None:
    report = bloom("inspect", filtered, "--columns", "user.*", "--format", "json").json
    assert report["schema"] == "bloom/inspect/1"
    assert {f["column"] for f in report["filters"]} == {"user.email"}
    assert report["row_groups"] == 3
    assert report["filter_bytes"] == sum(f["length"] for f in report["filters"])


def test_inspect_as_csv_has_a_row_a_filter(bloom: Bloom, filtered: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(bloom("inspect", filtered, "-f", "csv").out)))
    assert len(rows) == 6
    assert float(rows[0]["fpp"]) == pytest.approx(bloomcli.inspect(filtered).filters[0].fpp)


def test_inspect_of_a_file_without_filters_says_what_to_do(bloom: Bloom, plain: Path) -> None:
    result = bloom("inspect", plain)
    assert result.code == 0
    assert "bloom add" in result.out


def test_inspect_of_chosen_columns_without_filters_says_which_columns_have_some(bloom: Bloom, filtered: Path) -> None:
    result = bloom("inspect", filtered, "-c", "status,score")
    assert result.code == 0
    assert "No Bloom filters for status, score; columns with filters: id, user.email." in result.out
    assert "No Bloom filters." not in result.out
    assert "filters     none of the chosen columns\n" in result.out
    report = bloom("inspect", filtered, "-c", "status", "-f", "json").json
    assert report["columns_without_filters"] == ["status"]
    assert report["other_columns_with_filters"] == ["id", "user.email"]


def test_inspect_of_chosen_columns_says_which_of_them_have_no_filter(
    bloom: Bloom, filtered: Path, plain: Path
) -> None:
    result = bloom("inspect", filtered, "-c", "id,status")
    assert "No Bloom filters for status.\n" in result.out
    assert "all filters" in result.out
    excluded = bloom("inspect", filtered, "--exclude", "id,user.*")
    assert "No Bloom filters for status, score, ok; columns with filters: id, user.email." in excluded.out
    none = bloom("inspect", plain, "-c", "status")
    assert "No Bloom filters for status or any other column. `bloom add" in none.out
    everything = bloom("inspect", filtered, "-f", "json").json
    assert (everything["columns_without_filters"], everything["other_columns_with_filters"]) == ([], [])


def test_dump_formats_hold_the_same_bits(bloom: Bloom, filtered: Path, tmp_path: Path) -> None:
    expected = bloomcli.dump(filtered, column="id", row_group=1).bitset
    document = bloom("dump", filtered, "-c", "id", "-g", 1, "--format", "json").json
    assert bytes.fromhex(document["bitset"]) == expected
    lines = bloom("dump", filtered, "-c", "id", "-g", 1).out.splitlines()
    words = [int(word, 16) for line in lines if not line.startswith("#") for word in line.split()[1:]]
    assert np.array(words, "<u4").tobytes() == expected


def test_probe_says_per_row_group_and_exits_like_grep(bloom: Bloom, filtered: Path) -> None:
    present = bloom("probe", filtered, "--column", "id", "7007")
    assert present.code == 0
    assert "absent in 2 of 3 row groups" in present.out
    absent = bloom("probe", filtered, "--column", "id", "7008", "--format", "json")
    assert absent.code == 1
    (totals,) = absent.json["totals"]
    assert totals["skipped_row_groups"] == 3
    assert totals["stats_skipped_row_groups"] == 2
    assert totals["gain_row_groups"] == 1


def test_probe_without_a_column_where_one_only_has_filters(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.parquet"
    assert bloom("add", plain, "-c", "id", "-o", one).code == 0
    assert bloom("probe", one, "14").code == 0
    several = tmp_path / "two.parquet"
    assert bloom("add", plain, "-c", "id,score", "-o", several).code == 0
    refused = bloom("probe", several, "14")
    assert refused.code == 2
    assert "id, score" in refused.err


def test_probe_takes_negative_numbers_and_values_from_files(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    bloom("add", plain, "-c", "score", "-o", path)
    values = tmp_path / "values.txt"
    values.write_text("-5\n0\r\n")
    report = bloom("probe", path, "-v", "-4.875", "--value=-1e300", "--values-from", values, "-f", "json")
    assert [t["value"] for t in report.json["totals"]] == ["-4.875", "-1e300", "-5", "0"]
    assert [t["presence"] for t in report.json["totals"]] == ["maybe", "absent", "maybe", "maybe"]
    assert bloom("probe", path, "-4.875").code == 0
    assert bloom("probe", path, "-1e300").code == 1


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


def test_probe_explains_hash_block_and_bits(bloom: Bloom, filtered: Path) -> None:
    result = bloom("probe", filtered, "-c", "id", "7007", "--explain")
    assert "hashed 8 bytes 5f1b000000000000" in result.out
    assert "word:bit 0:" in result.out
    assert "8 of 8" in result.out or "all set" in result.out


def test_probe_says_when_a_type_cannot_hold_a_value(bloom: Bloom, filtered: Path) -> None:
    result = bloom("probe", filtered, "-c", "id", str(1 << 70))
    assert result.code == 1
    assert "INT64 holds" in result.out


def test_add_then_remove_gives_the_file_back(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    out, back = tmp_path / "out.parquet", tmp_path / "back.parquet"
    added = bloom("add", plain, "--columns", "id", "--column", "user.*,score", "-o", out)
    assert added.code == 0
    assert "12 filters added" in added.out
    assert pq.read_table(out).equals(pq.read_table(plain))
    assert bloom("remove", out, "-o", back).code == 0
    assert back.read_bytes() == plain.read_bytes()


def test_a_dry_run_writes_nothing_and_says_what_it_would(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    result = bloom("add", plain, "-c", "id", "-o", out, "--dry-run", "-f", "json")
    assert result.code == 0
    assert not out.exists()
    assert result.json["output"] is None
    assert result.json["bytes_decoded"] > 0
    assert bloom("add", plain, "-c", "id", "-o", out).code == 0
    assert out.stat().st_size <= result.json["bytes_after"]


def test_fold_shrinks_without_reading_columns(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    large, folded = tmp_path / "large.parquet", tmp_path / "folded.parquet"
    bloom("add", plain, "-c", "id", "--ndv", 500_000, "-o", large)
    result = bloom("fold", large, "--fpp", "1%", "-o", folded, "-f", "json")
    assert result.code == 0
    assert result.json["bytes_decoded"] == 0
    fresh = tmp_path / "fresh.parquet"
    bloom("add", plain, "-c", "id", "--fpp", "0.01", "-o", fresh)
    assert folded.read_bytes() == fresh.read_bytes()


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


def test_a_cap_is_kept_and_what_misses_the_target_is_named(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    result = bloom("add", plain, "-c", "id", "--max-bytes", "256B", "-o", tmp_path / "capped.parquet")
    assert result.code == 0
    assert "3 filters too small for the target false-positive rate: id" in result.out


def test_validate_finds_and_exits_with_one(bloom: Bloom, filtered: Path) -> None:
    clean = bloom("validate", filtered, "--deep", "--require", "id", "--max-fpp", "0.01")
    assert clean.code == 0, clean.out
    assert "none of 6,000 values is missing from them; statistics and indexes of their columns agree" in " ".join(
        clean.out.split()
    )
    found = bloom("validate", filtered, "--require", "score", "--max-fpp", "0.0000001")
    assert found.code == 1
    assert "filter-required" in found.out
    assert "filter-fpp" in found.out


def test_in_place_replaces_the_file(bloom: Bloom, plain: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    path.write_bytes(plain.read_bytes())
    assert bloom("add", path, "-c", "id", "--in-place").code == 0
    assert len(bloomcli.inspect(path).filters) == 3
    assert bloom("remove", path, "--in-place").code == 0
    assert path.read_bytes() == plain.read_bytes()


def test_a_comma_in_a_column_name_is_escaped(bloom: Bloom, tmp_path: Path) -> None:
    import pyarrow as pa

    path, out = tmp_path / "odd.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"a,b": [1, 2], "c": [3, 4]}), path)
    assert bloom("add", path, "-c", r"a\,b,c", "-o", out).code == 0
    assert {f.column for f in bloomcli.inspect(out).filters} == {"a,b", "c"}
    unescaped = bloom("add", path, "-c", "a,b", "-n")
    assert (unescaped.code, "no column 'a'" in unescaped.err) == (2, True)
    assert r"in --columns: 'a\,b'" in unescaped.err
    for command in ("add", "inspect", "validate", "remove", "fold"):
        assert r"\, is a comma within a name" in " ".join(bloom(command, "--help").out.split())


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (("java_types.orc", "-c", "big", "-s", "7"), "--stripe takes 0 to 1"),
        (("java_types.orc", "-c", "big", "-s", "1", "-g", "7"), "--row-group"),
    ],
)
def test_a_part_that_a_file_lacks_is_an_error_with_the_parts_that_it_has(
    bloom: Bloom, fixtures: Path, asked: tuple[str, ...], hint: str
) -> None:
    done = bloom("dump", fixtures / "orc" / asked[0], *asked[1:])
    assert done.code == 2
    assert hint in done.err.splitlines()[-1]


def test_an_empty_file_is_an_error_with_what_to_do(bloom: Bloom, tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    done = bloom("inspect", tmp_path / "empty.parquet")
    assert (done.code, done.err.splitlines()[1]) == (
        3,
        "hint: a writer that was stopped leaves such a file; get it from its source again",
    )


def test_a_dump_goes_to_a_new_file(bloom: Bloom, filtered: Path, tmp_path: Path) -> None:
    for form in ("hex", "raw", "npy", "csv", "json"):
        target = tmp_path / form
        done = bloom("dump", filtered, "-c", "id", "-f", form, "-o", target)
        assert (done.code, done.out) == (0, "")
        if form in {"hex", "csv", "json"}:
            assert target.read_text() == bloom("dump", filtered, "-c", "id", "-f", form).out
        else:
            assert target.stat().st_size
        again = bloom("dump", filtered, "-c", "id", "-f", form, "-o", target)
        assert (again.code, "exists already" in again.err) == (2, True)
    assert bloom("dump", filtered, "-c", "nope", "-o", tmp_path / "x").code == 2
    assert not (tmp_path / "x").exists()


def test_a_removal_with_nothing_to_do_is_one_line(bloom: Bloom, plain: Path) -> None:
    done = bloom("remove", plain, "--in-place")
    assert (done.code, done.out) == (0, f"nothing written: {plain}: there are no filters\n")
    planned = bloom("remove", plain, "--dry-run", "--in-place")
    assert planned.out == f"dry run, nothing written: {plain}: there are no filters\n"
