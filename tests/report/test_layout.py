"""How reports fit a width."""

from __future__ import annotations

import pytest

from bloomcli.report.fitting import laid_out
from bloomcli.report.layout import Cell, Gap, Grid, Head, Line, Pairs, Paragraph, line
from bloomcli.report.wrapping import wrapped


def lines(block: object, columns: int | None) -> list[str]:
    """The text of a block's lines."""
    return ["".join(text for text, _ in pieces).rstrip() for pieces in laid_out([block], columns)]  # type: ignore[list-item]


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
    assert lines(table(*same), 30)[:2] == ["in every row: status done", "empty in every row: size"]
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
    found = wrapped(text, columns, 2)
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
