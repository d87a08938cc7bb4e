"""Text reports contain every fact and no others, and tables stay tables."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from bloomcli.model.change import ChangeReport, FilterChange
from bloomcli.model.file import FilterFacts, Presence
from bloomcli.model.inspect import InspectReport
from bloomcli.model.probe import BitTrail, ProbeReport, ValueTotals, Verdict
from bloomcli.report import json, render, text, text_inspect
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Pairs, Style, line
from tools import json_schema

FILTER = FilterFacts(
    row_group=0,
    column="id",
    physical="INT64",
    logical=None,
    offset=100,
    length=1040,
    header_bytes=16,
    bitset_bytes=1024,
    blocks=32,
    algorithm="BLOCK",
    hash="XXHASH",
    compression="UNCOMPRESSED",
    values=500,
    ndv_estimate=498.2,
    fill=0.4,
    fpp=0.005,
    bits_per_value=16.4,
)
BROKEN = replace(
    FILTER,
    row_group=1,
    length=None,
    blocks=None,
    ndv_estimate=None,
    fill=None,
    fpp=None,
    bitset_bytes=None,
    problem="it is torn",
)
INSPECT = InspectReport(
    path="a\tb.parquet",
    format="parquet",
    file_bytes=10_000,
    rows=1000,
    row_groups=2,
    columns=3,
    created_by=None,
    filters=(FILTER, BROKEN),
)
CHANGE = FilterChange(
    row_group=0, column="id", action="add", bitset_bytes=1024, values=500, fpp=0.005, target_fpp=0.01
)
CHANGED = ChangeReport(
    path="a.parquet",
    format="parquet",
    command="add",
    output="b.parquet",
    dry_run=False,
    bytes_before=10_000,
    bytes_after=11_040,
    bytes_decoded=4_000,
    bytes_copied=9_000,
    seconds=0.25,
    changes=(CHANGE,),
)
TOTALS = ValueTotals(
    value="42",
    presence=Presence.MAYBE,
    answer=Presence.MAYBE,
    absent_row_groups=0,
    absent_bytes=0,
    row_groups=2,
    skipped_row_groups=0,
    skipped_bytes=0,
    stats_skipped_row_groups=1,
    gain_row_groups=0,
    gain_bytes=0,
)


def shown(blocks: object) -> str:
    """Blocks as plain text."""
    return "\n".join(render.plain(blocks))  # type: ignore[arg-type]


def test_inspect_says_why_a_filter_cannot_be_read() -> None:
    out = shown(text_inspect.inspect(INSPECT))
    assert "2, 1.0 KiB (10.2 % of the file), 1 unreadable" in out
    assert "row group 1, id: it is torn" in out


def test_headers_get_a_column_only_where_they_differ() -> None:
    other = replace(FILTER, compression="GZIP")
    out = shown(text_inspect.inspect(replace(INSPECT, filters=(FILTER, other))))
    assert "BLOCK, XXHASH, GZIP" in out
    assert "all filters" not in out
    assert "all filters" in shown(text_inspect.inspect(replace(INSPECT, filters=(FILTER,))))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {},
            "id = 42: maybe in all 2 row groups; a reader can't skip any (min/max alone: 1 row group)",
        ),
        ({"answer": Presence.NO_FILTER}, "no filter in all 2 row groups; a reader can't skip any"),
        ({"answer": Presence.UNKNOWN, "reason": "NaN"}, "the filters can't tell in all 2 row groups"),
        (
            {
                "absent_row_groups": 1,
                "absent_bytes": 2048,
                "skipped_row_groups": 1,
                "gain_row_groups": 1,
                "gain_bytes": 2048,
            },
            "absent in 1 of 2 row groups; a reader may skip 1 row group, 2.0 KiB (min/max alone: 1 row group);"
            " filters save 2.0 KiB of it",
        ),
        (
            {
                "answer": Presence.ABSENT,
                "absent_row_groups": 2,
                "absent_bytes": 4096,
                "skipped_row_groups": 2,
            },
            "absent everywhere; a reader may skip all 2 row groups, 4.0 KiB (min/max alone: 1 row group);"
            " filters save none of it",
        ),
        (
            {"answer": Presence.ABSENT, "absent_row_groups": 2, "absent_bytes": 4096, "skipped_row_groups": 1},
            "absent everywhere; a reader may skip all 2 row groups, 4.0 KiB"
            " (filters alone: 1, min/max alone: 1 row group)",
        ),
        (
            {
                "answer": Presence.ABSENT,
                "absent_row_groups": 2,
                "absent_bytes": 4096,
                "skipped_row_groups": 0,
                "stats_skipped_row_groups": 0,
                "dictionary_skipped_row_groups": 2,
            },
            "absent everywhere; a reader may skip all 2 row groups, 4.0 KiB"
            " (filters alone: 0, min/max alone: 0 row groups, dictionaries: 2 more)",
        ),
        ({"row_groups": 1}, "id = 42: maybe in 1 row group; a reader can't skip it (min/max alone: 1 row group)"),
        ({"value": ""}, "id = '': maybe in all 2 row groups"),
        (
            {"answer": Presence.ABSENT, "row_groups": 1, "absent_row_groups": 1, "absent_bytes": 2048},
            "absent everywhere; a reader may skip 1 row group, 2.0 KiB (",
        ),
    ],
)
def test_probe_sums_up_each_value(change: dict[str, object], says: str) -> None:
    totals = replace(TOTALS, **change)  # type: ignore[arg-type]
    report = ProbeReport(
        path="f",
        format="parquet",
        column="id",
        physical="INT64",
        logical=None,
        row_groups=2,
        total_bytes=4096,
        verdicts=(),
        totals=(totals,),
    )
    assert says in shown(text.probe(report))


def test_columns_that_globs_left_out_are_named_with_the_reason_and_no_filters() -> None:
    none = replace(CHANGE, action="keep", row_group=None, bitset_bytes=None, filters=0)
    left_out = [replace(none, column=f"flag{i}", reason="BOOLEAN: it has two values") for i in range(9)]
    out = shown(text.change(replace(CHANGED, changes=(CHANGE, *left_out))))
    assert "1 filter added," in out
    assert "keep" not in out
    named = ", ".join(f"flag{i}" for i in range(8))
    assert f"left out: {named}, ..., BOOLEAN: it has two values" in out
    dry = shown(text.change(replace(CHANGED, dry_run=True, output=None)))
    assert "dry run, nothing written" in dry
    assert "at most" in dry
    assert "would decode" in dry
    repaired = shown(text.change(replace(CHANGED, dry_run=True, output=None, command="repair")))
    assert " -> about " in repaired, "no page is read to count the pages"


def test_json_has_every_field_and_property_and_no_nan() -> None:
    document = json.document("inspect", replace(INSPECT, filters=(replace(FILTER, fpp=float("nan")),)))
    assert document["schema"] == "bloom/inspect/1"
    assert document["filter_bytes"] == 1040
    (row,) = document["filters"]  # type: ignore[misc]
    assert row["fpp"] is None  # type: ignore[index,call-overload]
    with pytest.raises(TypeError, match="inspect reports"):
        json.document("inspect", CHANGED)


def test_hashes_keep_their_64_bits_in_json() -> None:
    trail = BitTrail(hashed=b"\1\2", hash=(1 << 64) - 1, block=3, bits=(1,) * 8, present=(True,) * 8)
    verdict = Verdict(
        row_group=0,
        value="1",
        presence=Presence.MAYBE,
        answer=Presence.MAYBE,
        rows=1,
        chunk_bytes=1,
        row_group_bytes=1,
        stats_skip=None,
        trail=(trail,),
    )
    report = ProbeReport(
        path="f",
        format="parquet",
        column="id",
        physical="INT64",
        logical=None,
        row_groups=1,
        total_bytes=1,
        verdicts=(verdict,),
        totals=(),
    )
    found = json.document("probe", report)["verdicts"][0]["trail"][0]  # type: ignore[index,call-overload]
    assert found["hash"] == "f" * 16
    assert found["hashed"] == "0102"
    out = shown(text.probe(report))
    assert "hash 0xffffffffffffffff, block 3" in out


def test_every_document_is_described() -> None:
    for kind in json_schema.reachable(json.DOCUMENTS.values()):
        described = json_schema.object_schema(kind)
        assert described.text or kind is ProbeReport
        assert [k.name for k in described.keys] == list(json.keys(kind))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def everything() -> list[Block]:
    """One block of each kind."""
    grid = Grid((Head("name"), Head("n", figures=True)))
    grid.add("列 column", "1,000")
    grid.add(Cell("bad", Style.BAD), "2")
    return [Pairs((("file", Cell("f")),)), Gap(), grid, line("the end", Style.GOOD, indent=2)]


def test_terminals_get_colours_unless_the_user_or_the_terminal_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for term, no_color, coloured in (("xterm", "", True), ("xterm", "1", False), ("dumb", "", False)):
        monkeypatch.setenv("TERM", term)
        monkeypatch.setenv("NO_COLOR", no_color)
        stream = Terminal()
        render.write(everything(), stream)
        assert ("\x1b[31mbad" in stream.getvalue()) == coloured
        assert ("\x1b" in stream.getvalue()) == coloured
        assert "the end" in stream.getvalue()
