"""Reports and found rows as fragments of HTML, for notebooks. Every text is escaped.

Long reports are cut, and say so. A fragment has the blocks of the text report, with tables for its grids. It has no
scripts, and its styles are within its elements, because other cells of the notebook share the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bloomcli.model.advice import AdviseReport
from bloomcli.model.change import ChangeReport
from bloomcli.model.dataset import DatasetReport
from bloomcli.model.find import FindReport, ReachableReport
from bloomcli.model.gate import GateReport
from bloomcli.model.index import IndexFacts, IndexReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.probe import ProbeReport
from bloomcli.model.report import Report
from bloomcli.model.trial import TrialReport
from bloomcli.model.validate import ValidateReport
from bloomcli.report.human import CUT
from bloomcli.report.layout import Block, Cell, Gap, Grid, Head, Pairs, Paragraph, Style, line
from bloomcli.words import plural

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_SHOWN: Final = 50
"""The most rows of a table."""
FOUND_SHOWN: Final = 20
"""The most rows of those that `find` has found."""
_COLUMNS_SHOWN: Final = 20
"""The most columns of found rows."""
_BLOCKS_SHOWN: Final = 200
"""The most lines and tables of a report."""
_TEXT_SHOWN: Final = 300
"""The most characters of a text."""

_STYLES: Final = {
    Style.PLAIN: "",
    Style.TITLE: "font-weight:bold",
    Style.DIM: "opacity:0.7",
    Style.GOOD: "color:#2e7d32",
    Style.WARN: "color:#b26a00",
    Style.BAD: "color:#c62828",
}


def html(report: Report) -> str:
    """A report as HTML."""
    return fragment(_blocks(report))


def fragment(blocks: Iterable[Block]) -> str:
    """Blocks of a text report as HTML."""
    every = [block for block in islice(blocks, _BLOCKS_SHOWN + 1) if not isinstance(block, Gap)]
    if len(every) > _BLOCKS_SHOWN:
        every[_BLOCKS_SHOWN:] = [
            line(f"{CUT} The report is longer: `bloom` on the command line shows all.", Style.DIM)
        ]
    return f'<div class="bloom">{"".join(part for block in every for part in _parts(block))}</div>'


def _blocks(report: Report) -> Iterable[Block]:
    from bloomcli.report import (
        text,
        text_advice,
        text_dataset,
        text_find,
        text_gate,
        text_inspect,
        text_trial,
    )

    writers: dict[type, Callable[[Any], Iterable[Block]]] = {
        AdviseReport: text_advice.advice,
        ChangeReport: text.change,
        DatasetReport: text_dataset.dataset,
        FindReport: lambda item: map(line, text_find.lines(item)),
        GateReport: text_gate.gate,
        IndexFacts: text_find.index_facts,
        IndexReport: text_find.index_change,
        InspectReport: text_inspect.inspect,
        ProbeReport: text.probe,
        ReachableReport: text_find.reachable,
        TrialReport: text_trial.trial,
        ValidateReport: text_gate.one_file,
    }
    return writers[type(report)](report)


def found(batches: Sequence[pa.RecordBatch], report: FindReport, *, more: bool, begun: bool) -> str:
    """Found rows as HTML, above the report on the search.

    Args:
        batches: the first rows, at least `FOUND_SHOWN` if there are as many.
        report: the report so far.
        more: there may be further rows.
        begun: the rows were read elsewhere, so that there are none to show.
    """
    from bloomcli.report.found_rows import rows_of
    from bloomcli.report.text_find import problems

    rows = list(islice((row for batch in batches for row in rows_of(batch)), FOUND_SHOWN + 1))
    more = more or len(rows) > FOUND_SHOWN
    blocks: list[Block] = [_found_grid(rows[:FOUND_SHOWN])] if rows else []
    if begun:
        blocks.append(line("The rows have been read: call `find` again to read them again.", Style.DIM))
    if more and rows:
        rest = f"These are the first {plural(min(len(rows), FOUND_SHOWN), 'row')}; `to_arrow()` returns all."
        blocks.append(line(rest, Style.DIM))
    else:
        blocks += _blocks(report) if report.files else [line("No file could be searched.", Style.BAD)]
    for text, hint in problems(report.errors):
        blocks.append(line(text if hint is None else f"{text}; hint: {hint}", Style.BAD))
    return fragment(blocks)


def _found_grid(rows: Sequence[dict[str, Any]]) -> Grid:
    names = dict.fromkeys(name for row in rows for name in row["record"] or {})
    shown = list(names)[:_COLUMNS_SHOWN]
    grid = Grid((Head("path"), Head("row", figures=True), *map(Head, shown)))
    for row in rows:
        record = row["record"] or {}
        grid.add(row["path"], f"{row['row']}", *(_found_value(record.get(name)) for name in shown))
    if len(names) > len(shown):
        left = plural(len(names) - len(shown), "more column")
        grid.explain("", f"{CUT} and {left}; `select` chooses columns.")
    return grid


def _found_value(value: Any) -> Cell:
    if value is None:
        return Cell("null", Style.DIM)
    return Cell(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _parts(block: Block) -> Iterator[str]:
    match block:
        case Grid():
            yield from _grid(block.without_graphics())
        case Pairs(items):
            rows = "".join(
                f"<tr><th style='text-align:left'>{_text(name)}</th>{_cell(cell)}</tr>" for name, cell in items
            )
            yield f"<table>{rows}</table>"
        case Paragraph(lines):
            yield f"<p>{'<br>'.join(map(_styled, lines))}</p>"
        case Gap():
            pass
        case _:
            yield f"<div style='margin-left:{block.indent}ch'>{_styled(block.cell)}</div>"


def _grid(grid: Grid) -> Iterator[str]:
    heads = "".join(f"<th>{_text(head.title)}</th>" for head in grid.heads)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in grid.rows[:ROWS_SHOWN]:
        yield f"<tr>{''.join(_cell(cell, head.figures) for cell, head in zip(row, grid.heads, strict=True))}</tr>"
    yield "</tbody></table>"
    if len(grid.rows) > ROWS_SHOWN:
        yield f"<div>{CUT} {ROWS_SHOWN} of {len(grid.rows):,} lines.</div>"
    cut = any(cell.text.endswith(CUT) for row in grid.rows[:ROWS_SHOWN] for cell in row)
    legend = " ".join(sentence for title, sentence in grid.legend if title != CUT or cut)
    if legend:
        yield f"<div>{_styled(Cell(legend, Style.DIM))}</div>"


def _cell(cell: Cell, figures: bool = False) -> str:
    return f"<td style='text-align:{'right' if figures else 'left'}'>{_styled(cell)}</td>"


def _styled(cell: Cell) -> str:
    style = _STYLES[cell.style]
    return f"<span style='{style}'>{_text(cell.text)}</span>" if style else _text(cell.text)


def _text(text: str) -> str:
    """A text, escaped and cut. What is in backquotes is code."""
    shown = text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 1] + CUT
    shown = shown.encode("utf-8", "backslashreplace").decode()
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(shown))
