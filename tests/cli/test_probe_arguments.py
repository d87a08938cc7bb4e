"""Arguments of `bloom probe`: which are paths and which are values, whatever a shell makes of a pattern."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from support import datasets
from support.cli import Bloom, Result


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files in a directory `tr` of the working directory: ids from 0 and from 1,000,000, every third number."""
    datasets.write(tmp_path / "tr" / "a.parquet", seed=0)
    datasets.write(tmp_path / "tr" / "b.parquet", seed=1)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pasted(bloom: Bloom, refused: Result) -> Result:
    """The output of the command line in a hint."""
    (hint,) = [line.replace("`", "") for line in refused.err.splitlines() if line.startswith("hint: ")]
    return bloom(*shlex.split(hint.removeprefix("hint: bloom ")))


def test_a_value_after_files_of_a_shells_pattern_is_refused_and_the_hint_probes_them_all(
    bloom: Bloom, tree: Path
) -> None:
    refused = bloom("probe", "tr/a.parquet", "tr/b.parquet", "-c", "id", "1000003", "-f", "json")
    assert (refused.code, refused.out) == (2, "")
    assert "the value 'tr/b.parquet' is the name of an existing file" in refused.err
    assert "hint: bloom probe tr/a.parquet tr/b.parquet -c id -f json -v 1000003\n" in refused.err
    report = pasted(bloom, refused)
    assert report.code == 0
    assert [row["path"] for row in report.json["rows"]] == ["tr/a.parquet", "tr/b.parquet"]
    assert [t["value"] for row in report.json["rows"] for t in row["totals"]] == ["1000003"] * 2


@pytest.mark.parametrize("name", ["x.parquet", "X.ORC", "s3://bucket/x.mosaic"])
def test_a_value_with_a_known_suffix_is_refused_and_the_hint_looks_it_up(bloom: Bloom, tree: Path, name: str) -> None:
    refused = bloom("probe", "tr/a.parquet", name, "-c", "name")
    assert (refused.code, refused.out) == (2, "")
    assert "ends like a data file" in refused.err
    assert f"name = {name}: " in pasted(bloom, refused).out


def test_a_value_that_is_a_files_name_is_refused_and_the_hint_looks_it_up(bloom: Bloom, tree: Path) -> None:
    (tree / "42").touch()
    refused = bloom("probe", "tr/a.parquet", "42", "-c", "id")
    assert refused.code == 2
    assert "id = 42: " in pasted(bloom, refused).out


@pytest.mark.parametrize(
    "arguments", [("3", "tr/a.parquet"), ("3", "tr/a.parquet", "-5"), ("3", "-5", "tr/a.parquet")]
)
def test_a_value_before_its_file_is_refused_and_the_hint_looks_it_up(
    bloom: Bloom, tree: Path, arguments: tuple[str, ...]
) -> None:
    refused = bloom("probe", "-c", "id", *arguments, "-f", "json")
    assert (refused.code, refused.out) == (2, "")
    totals = pasted(bloom, refused).json["totals"]
    assert [total["value"] for total in totals] == [one for one in arguments if one != "tr/a.parquet"]


@pytest.mark.parametrize("path", ["tr", "tr/*.parquet"])
def test_values_follow_a_directory_or_a_pattern_as_they_follow_a_file(bloom: Bloom, tree: Path, path: str) -> None:
    report = bloom("probe", path, "-c", "id", "-5", "3", "-f", "json").json
    assert [row["path"] for row in report["rows"]] == ["tr/a.parquet", "tr/b.parquet"]
    assert [[t["value"] for t in row["totals"]] for row in report["rows"]] == [["-5", "3"]] * 2


def test_files_without_a_value_are_no_values(bloom: Bloom, tree: Path) -> None:
    datasets.write(tree / "tr" / "c.parquet")
    refused = bloom("probe", "tr/a.parquet", "tr/b.parquet", "tr/c.parquet", "-c", "id")
    assert refused.code == 2
    assert "no values to probe" in refused.err


def test_with_value_all_arguments_are_paths(bloom: Bloom, tree: Path) -> None:
    report = bloom(
        "probe", "tr/a.parquet", "tr/b.parquet", "-c", "id", "-v", "-5", "--value", "1000003", "-f", "json"
    )
    assert report.code == 0
    assert [[t["value"] for t in row["totals"]] for row in report.json["rows"]] == [["-5", "1000003"]] * 2
    assert bloom("probe", "tr/a.parquet", "3", "-c", "id", "-v", "-5").code == 3  # there is no file "3"


def test_with_values_from_a_file_all_arguments_are_paths(bloom: Bloom, tree: Path) -> None:
    (tree / "values").write_text("3\n")
    report = bloom("probe", "tr/a.parquet", "tr/b.parquet", "-c", "id", "--values-from", "values", "-f", "json")
    assert len(report.json["rows"]) == 2
    refused = bloom("probe", "tr/a.parquet", "-4", "-c", "id", "--values-from", "values", "--exclude", "a\\,b,c")
    assert refused.code == 2
    assert "'-4' isn't a file" in refused.err
    assert (
        "hint: bloom probe tr/a.parquet -c id --exclude 'a\\,b' --exclude c --values-from values -v -4" in refused.err
    )


def test_with_a_list_of_files_a_value_that_is_a_files_name_is_refused(bloom: Bloom, tree: Path) -> None:
    (tree / "list").write_text("tr\n")
    refused = bloom("probe", "--files-from", "list", "-c", "id", "tr/a.parquet", "3", "-f", "json")
    assert refused.code == 2
    report = pasted(bloom, refused).json
    assert [[t["value"] for t in row["totals"]] for row in report["rows"]] == [["3"]] * 2


def test_a_hint_for_many_files_names_their_pattern_if_it_means_exactly_these(bloom: Bloom, tree: Path) -> None:
    for number in range(40):
        datasets.write(tree / "tr" / f"{number}.parquet", rows=4)
    names = sorted(f"tr/{path.name}" for path in (tree / "tr").iterdir())
    refused = bloom("probe", *names, "1000003", "-c", "id", "-f", "json")
    assert refused.code == 2
    assert "hint: bloom probe 'tr/*.parquet' -c id -f json -v 1000003\n" in refused.err
    assert [row["path"] for row in pasted(bloom, refused).json["rows"]] == names
    assert "hint: name values with --value VALUE\n" in bloom("probe", *names[1:], "3", "-c", "id").err
    remote = [f"s3://bucket/{number}.parquet" for number in range(40)]
    assert "hint: name values with --value VALUE\n" in bloom("probe", *remote, "3", "-c", "id").err


def test_a_columns_name_before_the_value_gets_a_hint_with_the_option(bloom: Bloom, tree: Path) -> None:
    assert bloom("add", "tr/a.parquet", "-c", "id", "-o", "out.parquet").code == 0
    refused = bloom("probe", "out.parquet", "id", "3")
    assert (refused.code, refused.out) == (2, "")
    assert "hint: `bloom probe out.parquet --column id 3`\n" in refused.err
    assert pasted(bloom, refused).code == 0
    assert "write it like 42" in bloom("probe", "out.parquet", "-c", "id", "id", "3").err, "the column is chosen"
    assert "write it like 42" in bloom("probe", "out.parquet", "other", "3").err
