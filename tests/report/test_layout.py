"""Layout of reports in a given width."""

from __future__ import annotations

from operator import itemgetter

import pytest

from bloomcli.report.fitting import fit, wrap_text
from bloomcli.report.human import CUT
from bloomcli.report.layout import Cell, Columns, Gap, Grid, Head, Line, Pairs, Paragraph, line


def lines(block: object, columns: int | None) -> list[str]:
    """The text of a block's lines."""
    return ["".join(text for text, _ in pieces).rstrip() for pieces in fit([block], columns)]  # type: ignore[list-item]


def table(*rows: tuple[str, ...], prose: str | None = None) -> Grid:
    """A grid of files with a figure of each rank."""
    heads = (Head("file", path=True), Head("status"), Head("rows", figures=True, rank=2), Head("size", figures=True))
    grid = Grid((*heads, *([Head("note", prose=True)] if prose is not None else [])))
    for row in rows:
        grid.add(*row, *([prose] if prose is not None else []))
    return grid


ROWS = (("lake/a/one.parquet", "done", "1,000", "1.0 KiB"), ("lake/a/two.parquet", "failed", "-", "-"))


def test_without_a_width_and_where_it_fits_a_table_is_whole() -> None:
    whole = lines(table(*ROWS), None)
    assert whole == lines(table(*ROWS), len(whole[1]))
    assert whole[1] == "lake/a/one.parquet  done    1,000  1.0 KiB"


def test_the_common_directory_moves_above_the_table_before_a_column_is_left_out() -> None:
    assert lines(table(*ROWS), 41) == [
        "in lake/a/:",
        "file         status   rows     size",
        "one.parquet  done    1,000  1.0 KiB",
        "two.parquet  failed      -        -",
    ]


def test_a_column_that_is_the_same_in_every_row_moves_first() -> None:
    same = [(path, "done", rows, "-") for path, _, rows, _ in ROWS]
    assert lines(table(*same), 30)[:2] == ["in each line: status done", "empty in each line: size"]
    assert lines(table(*same), 30)[2:] == [
        "file                 rows",
        "lake/a/one.parquet  1,000",
        "lake/a/two.parquet      -",
    ]


def test_the_least_important_column_is_left_out_and_named() -> None:
    assert lines(table(*ROWS), 30) == [
        "in lake/a/:",
        "file         status     size",
        "one.parquet  done    1.0 KiB",
        "two.parquet  failed        -",
        "not shown: rows (a wider",
        "  terminal or --format csv",
        "  shows all columns)",
    ]


def columns(*heads: Head) -> Grid:
    """A grid of a name and the columns of a test, with a legend of each."""
    legend = [(head.title, f"{head.title} means {head.title}.") for head in heads]
    grid = Grid((Head("name"), *heads), legend=[*legend, (CUT, "cut."), ("", "Always.")])
    grid.add("id", *("9" * int(head.title[1:]) for head in heads))
    return grid


def test_a_column_comes_back_where_one_that_is_more_important_is_too_wide() -> None:
    grid = columns(Head("a10", rank=1), Head("b30", rank=2), Head("c5", rank=3), Head("d9", rank=4))
    assert lines(grid, 26)[0] == "name  a10         c5"
    assert "not shown: b30, d9 (a" in lines(grid, 26)


def test_columns_of_one_rank_are_shown_or_left_out_together() -> None:
    grid = columns(Head("m10", rank=2), Head("n10", rank=2), Head("o3", rank=1))
    assert lines(grid, 33)[0] == "name  m10         n10         o3"
    assert lines(grid, 31)[0] == "name  o3"


def test_a_legend_explains_only_what_the_table_shows() -> None:
    grid = columns(Head("a10", rank=1), Head("b30", rank=2))
    assert lines(grid, None)[-1] == "a10 means a10. b30 means b30. Always."
    assert lines(grid, 40)[-1] == "a10 means a10. Always."


@pytest.mark.parametrize(
    ("value", "cut"),
    [
        ("2024-12-24T12:04:58.000149Z", "2024-12-24T12:04:58…"),
        ("-2989999999999.9999999701", "-2989999999999.9999…"),
        ("-1059000000007000000000000000.1234510590", "…"),
        ("1.2345678901234567890123e+300", "…"),
        ("99.66666666666667", "99.66666666666667"),
        ("12345678901234567890123", "…"),
    ],
)
def test_only_the_fraction_of_a_number_or_time_is_cut(value: str, cut: str) -> None:
    grid = Grid((Head("name"), Head("min", most=20)), legend=[(CUT, "cut.")])
    grid.add("a" * 20, value)
    assert lines(grid, 100)[1] == "a" * 20 + "  " + value
    assert "cut." not in lines(grid, 100)
    narrow = lines(grid, 42)
    assert narrow[1].split()[-1] == (value if len(value) <= 20 else cut)
    assert ("cut." in narrow) == (cut != value)


def test_rows_stack_with_all_columns_where_the_others_do_not_fit() -> None:
    assert lines(table(*ROWS), 24) == [
        "in lake/a/:",
        "one.parquet",
        "  status done",
        "  rows 1,000",
        "  size 1.0 KiB",
        "two.parquet",
        "  status failed  rows -",
        "  size -",
    ]


def test_prose_wraps_within_its_column_or_goes_below_the_row() -> None:
    grid = table(*ROWS, prose="")
    grid.rows[0] = (*grid.rows[0][:-1], Cell("the columns have filters already; copied as it is"))
    assert lines(grid, 70) == [
        "in lake/a/:",
        "file         status   rows     size  note",
        "one.parquet  done    1,000  1.0 KiB  the columns have filters already;",
        "                                     copied as it is",
        "two.parquet  failed      -        -",
    ]
    assert lines(grid, 40) == [
        "in lake/a/:",
        "file         status   rows     size",
        "one.parquet  done    1,000  1.0 KiB",
        "  the columns have filters already;",
        "  copied as it is",
        "two.parquet  failed      -        -",
    ]


@pytest.mark.parametrize("columns", range(20, 60))
def test_numbers_types_and_commands_are_never_broken(columns: int) -> None:
    text = "12 files, 1.5 KiB -> 2.5 MiB (+0.35 %) of INT64 (DATE) took 4 ms; `bloom add --columns id`"
    found = wrap_text(text, columns, 2)
    assert " ".join(found) == text
    for whole in ("1.5 KiB", "-> 2.5 MiB", "(+0.35 %)", "INT64 (DATE)", "4 ms", "`bloom add --columns id`"):
        assert sum(whole in part for part in found) == 1
    assert all(len(part) <= columns - 2 * (n > 0) or "`" in part for n, part in enumerate(found))


def test_long_words_stay_whole_and_whole_lines_are_not_wrapped() -> None:
    path = "/data/" + "x" * 80
    assert lines(line(f"wrote {path}: done"), 40) == ["wrote", f"  {path}:", "  done"]
    assert lines(Line(Cell("a b " * 20), whole=True), 40) == [("a b " * 20).rstrip()]


def test_pairs_wrap_below_their_values_and_paragraphs_are_filled() -> None:
    assert lines(Pairs((("name", Cell("one two three four")),)), 20) == ["name  one two three", "      four"]
    paragraph = Paragraph((Cell("one two"), Cell("three four five six seven")))
    assert lines(paragraph, 20) == ["one two three four", "five six seven"]
    assert lines(paragraph, None) == ["one two", "three four five six seven"]
    assert lines(Paragraph((Cell("- one two three four five"),)), 20) == ["- one two three four", "  five"]
    assert lines(Gap(), 20) == [""]


def test_wide_characters_count_as_two_cells() -> None:
    grid = Grid((Head("name"), Head("n", figures=True, rank=1)))
    grid.add("列列列列列列列列", "1,000")
    grid.add("b", "2")
    assert lines(grid, 23)[0].startswith("name")
    assert lines(grid, 22)[3].startswith("not shown: n")


def test_a_column_that_says_nothing_of_any_item_is_left_out_if_it_is_optional() -> None:
    columns: Columns[tuple[str, str]] = [
        (Head("hidden", shown=False), itemgetter(0)),
        (Head("optional", optional=True), itemgetter(1)),
        (Head("always"), itemgetter(1)),
    ]
    assert [head.title for head in Grid.of([("a", "-"), ("b", "")], columns).heads] == ["always"]
    assert [head.title for head in Grid.of([("a", "-"), ("b", "c")], columns).heads] == ["optional", "always"]
