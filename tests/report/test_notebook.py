"""Reports and found rows in notebooks: short `repr`s, HTML in which everything is escaped, tables."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.errors import UsageError
from bloomcli.model.find import Place, ReachableReport
from bloomcli.model.inspect import FilterDump
from bloomcli.model.report import Report, Rows
from bloomcli.model.validate import ValidateReport
from bloomcli.report import json as json_report
from bloomcli.report import notebook

ROOT = Path(__file__).parents[2]
ODD = "<script>alert(1)</script>"


class Elements(HTMLParser):
    """The elements of a fragment, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002  as the base class has it
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(report: Any) -> Elements:
    """What a notebook shows: elements of text and tables alone."""
    found = Elements(report._repr_html_())
    assert set(found.tags) <= {"div", "span", "p", "br", "code", "table", "thead", "tbody", "tr", "th", "td"}
    return found


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose columns and values are HTML, with filters."""
    folder = tmp_path_factory.mktemp("odd")
    table = pa.table({ODD: ["<b>x</b>", "y"] * 600, "id": range(1200)})
    pq.write_table(table, folder / "plain.parquet", row_group_size=10)
    bloomcli.add(folder / "plain.parquet", [ODD, "id"], output=folder / "odd.parquet")
    return folder / "odd.parquet"


@pytest.fixture(scope="module")
def reports(odd: Path) -> dict[str, Any]:
    """A report of each kind, by its class."""
    index = odd.with_suffix(".bloom-index")
    found = [
        bloomcli.inspect(odd),
        bloomcli.inspect([odd.parent]),
        bloomcli.probe(odd, ["<b>x</b>"], column=ODD),
        bloomcli.validate(odd, max_fpp=1e-9),
        bloomcli.validate([odd], max_fpp=1e-9),
        bloomcli.advise(odd.with_name("plain.parquet")),
        bloomcli.remove(odd, dry_run=True),
        bloomcli.index_build(odd, [ODD], output=index),
        bloomcli.index_inspect(index),
        bloomcli.find(odd, "x", column=ODD).report,
        bloomcli.trial(odd, columns=["id"], readers=["duckdb"], values=1, runs=1),
    ]
    place = Place(kind=ODD, path="/lake/t/1.parquet", kept_by=(ODD,))
    reachable = ReachableReport(
        table="db.t", location="/lake/t", format="iceberg", column="id", time="2026-11-26T16:00:00Z", bloom="0.1.0",
        version=1, versions=(1,), refs=(), values=1, values_found=1, looked_at=(), metadata_files=1, places=(place,),
    )  # fmt: skip
    return {type(report).__name__: report for report in (*found, reachable)}


@pytest.mark.slow
def test_every_report_of_a_command_is_shown(reports: dict[str, Any]) -> None:
    kinds = [*json_report.DOCUMENTS.values(), ValidateReport]
    assert reports.keys() == {kind.__name__ for kind in kinds if kind is not FilterDump}
    assert all(isinstance(report, Report) for report in reports.values())
    for report in reports.values():
        assert len(repr(report)) < 700
        shown(report)


@pytest.mark.slow
def test_everything_is_escaped(reports: dict[str, Any], odd: Path) -> None:
    assert ODD in shown(reports["InspectReport"]).text
    assert ODD in shown(reports["ProbeReport"]).text
    assert ODD in shown(reports["ReachableReport"]).text
    assert "<b>x</b>" in shown(bloomcli.find(odd, "<b>x</b>", column=ODD)).text


def test_large_reports_are_cut_and_say_so(reports: dict[str, Any], odd: Path) -> None:
    verdicts = shown(reports["ProbeReport"])
    assert verdicts.tags.count("tr") < 60
    assert f"{notebook.ROWS_SHOWN} of 120 lines" in verdicts.text
    rows = shown(bloomcli.find(odd, "y", column=ODD))
    assert rows.tags.count("tr") == notebook.FOUND_SHOWN + 1
    assert "These are the first 20 rows" in rows.text
    wide = pa.table({f"c{number}": [1] for number in range(30)} | {"text": ["long" * 1000]})
    pq.write_table(wide, odd.with_name("wide.parquet"))
    found = shown(bloomcli.find(odd.with_name("wide.parquet"), 1, column="c1"))
    assert "11 more columns" in found.text
    chosen = shown(bloomcli.find(odd.with_name("wide.parquet"), 1, column="c1", select="text"))
    assert len(chosen.text) < 1000


def test_showing_found_rows_takes_none_of_them(odd: Path) -> None:
    rows = bloomcli.find(odd, "y", column=ODD)
    first = rows._repr_html_()
    assert rows._repr_html_() == first
    assert rows.to_arrow().num_rows == 600
    assert "have been read" in shown(rows).text
    assert rows.to_arrow().num_rows == rows.to_pandas().shape[0] == 600


def test_rows_that_have_been_read_are_not_silently_none(odd: Path) -> None:
    rows = bloomcli.find(odd, "y", column=ODD)
    assert sum(map(len, rows)) == 600
    for again in (rows.to_arrow, rows.to_pandas, lambda: list(rows)):
        with pytest.raises(UsageError, match="the rows have been read"):
            again()


def test_files_that_fail_are_an_error_of_the_table_and_named_in_notebooks(odd: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    for column, exit_code, place in (("id", 3, "damaged.parquet"), ("ids", 2, "no column")):
        rows = bloomcli.find([odd, tmp_path], 3, column=column)
        with pytest.raises(bloomcli.BloomError, match=place) as raised:
            rows.to_pandas()
        assert (raised.value.exit_code, raised.value.hint is not None) == (exit_code, True)
        assert place in shown(rows).text
        assert sum(map(len, rows)) == rows.report.rows == (column == "id")


def test_found_rows_are_a_table_and_a_data_frame(odd: Path) -> None:
    table = bloomcli.find(odd, [3, 4], column="id").to_arrow()
    assert table.column_names == ["path", "stripe", "row_group", "row", "value", "record"]
    assert table.column("record").to_pylist() == [{ODD: "y", "id": 3}, {ODD: "<b>x</b>", "id": 4}]
    frame = bloomcli.find(odd, [3, 4], column="id").to_pandas()
    assert list(frame["record.id"]) == [3, 4]
    none = bloomcli.find(odd, [-1], column="id").to_arrow()
    assert (none.num_rows, none.schema.types) == (0, table.schema.types)


def test_the_error_of_files_that_failed_speaks_of_other_files_only_if_there_are_some(tmp_path: Path) -> None:
    for number, column in enumerate("ab"):
        pq.write_table(pa.table({column: [1]}), tmp_path / f"{number}.parquet")
    first, rest = str(tmp_path / "0.parquet"), "iterating over the found rows gives those of the other files"
    for paths, column, others in ((first, "c", False), (tmp_path, "c", False), (tmp_path, "a", True)):
        with pytest.raises(UsageError, match="no column") as raised:
            bloomcli.find(paths, 1, column=column).to_arrow()
        assert (rest in str(raised.value)) == others


def test_files_with_other_columns_are_one_table(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "a": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "b": [True]}), tmp_path / "2.parquet")
    table = bloomcli.find([tmp_path], 1, column="id").to_arrow()
    assert table.column("record").to_pylist() == [{"id": 1, "a": "x", "b": None}, {"id": 1, "a": None, "b": True}]
    pq.write_table(pa.table({"id": [1], "a": [2]}), tmp_path / "3.parquet")
    with pytest.raises(bloomcli.BloomError, match="types that don't go together") as raised:
        bloomcli.find([tmp_path], 1, column="id").to_arrow()
    assert "hint: select" in str(raised.value)


def test_rows_of_reports_are_tables(reports: dict[str, Any]) -> None:
    for name, report in reports.items():
        if isinstance(report, Rows):
            assert report.to_arrow().num_rows == len(report._rows()[1]), name
    inspected = reports["InspectReport"]
    assert inspected.to_arrow().column("fpp").to_pylist() == [one.fpp for one in inspected.filters]
    assert reports["ChangeReport"].to_arrow().column("action")[0].as_py() == "remove"
    assert list(reports["ValidateReport"].to_pandas()["severity"].unique()) == ["error"]
    advised = reports["AdviseReport"].to_arrow()
    assert advised.column("distinct.estimate").to_pylist() == [
        column.distinct and column.distinct.estimate for column in reports["AdviseReport"].columns
    ]
    empty = dataclasses.replace(inspected, filters=())
    assert empty.to_arrow().schema == inspected.to_arrow().schema


def test_names_that_are_not_text_are_shown_and_in_tables(reports: dict[str, Any]) -> None:
    bytes_in_name = dataclasses.replace(reports["DatasetReport"].rows[0], path="a\udcff")
    report = dataclasses.replace(reports["DatasetReport"], rows=(bytes_in_name,))
    assert report.to_arrow().column("path").to_pylist() == ["a\\udcff"]
    report._repr_html_().encode()


def test_a_repr_is_short_and_leaves_out_what_is_unknown() -> None:
    text = repr(bloomcli.inspect(ROOT / "fixtures" / "parquet" / "spark_types.parquet"))
    assert len(text) < 400
    assert "filters=<40 × FilterFacts>" in text
    assert "=None" not in text
    assert not re.search("stripes|requests", text)
