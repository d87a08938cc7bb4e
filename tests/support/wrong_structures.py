"""Kinds of wrong structures in Parquet files that readers skip by, and what engines do with each.

A kind is one patch of a file of `support.skipped_rows`, the rule of `validate --deep` that finds it, and a question
that a reader of the file answers wrongly if it trusts the structure.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from bloomcli.model.file import Severity
from support import patches as at
from support import thrift
from support.patches import MAXS, MINS, NULL_COUNTS, NULL_PAGES, Edit
from support.skipped_rows import GROUP, PAGE, WRITERS, table
from support.skipping_engines import ENGINES, Answer, Ask, CrashError, Question, Spark
from support.thrift import Fields

BOUNDS: Final = "statistics-bounds"
COUNTS: Final = "statistics-counts"
PAGE_BOUNDS: Final = "page-index-bounds"
PAGE_COUNTS: Final = "page-index-counts"
LOCATIONS: Final = "page-index-locations"
ENCODINGS: Final = "statistics-encodings"
SORTING: Final = "sorting-columns"
SIZES: Final = "size-statistics"
ERROR, NOTE = Severity.ERROR, Severity.NOTE
RIGHT: Final = "right"
LOSES: Final = "loses"
WRONG: Final = "wrong"
REFUSES: Final = "refuses"
CRASHES: Final = "crashes"
WITHOUT: Final = "/"
"""Between what an engine does with skipping and what it does without."""

PAGE_OF_TABLE: Final = Path(__file__).parents[2] / "docs" / "wrong-structures.md"
HEAD: Final = """\
# Wrong structures and what engines do with them

**Reference.** This page shows which wrong metadata make which engine lose rows. It is written by `python
tests/interop/update_wrong_structures.py`.

Each file is a sound Parquet file of 200 rows, by the writer in brackets, in which one structure was patched. `bloom
validate --deep --columns '*'` finds the fault by the rule that is the heading. The engines, with their default
settings, looked a value up that the structure excludes, or answered the question in brackets: Spark 4.3, DuckDB
2.0.1, DataFusion 55, Polars 2.1, ClickHouse (chdb 4.4) and PyArrow 26.

| word | the engine's answer |
|---|---|
| right | that of the sound file |
| loses | rows are missing, without an error |
| wrong | other rows or another number, without an error |
| refuses | an error |
| crashes | the engine's process ends |

A word after `/` is the answer with filter pushdown and statistics switched off, if that isn't right either.
"""

_CASTS: Final = {"money": "DECIMAL(20, 2)", "cents": "DECIMAL(9, 2)", "ratio": "FLOAT"}


class Kind(NamedTuple):
    """A kind of wrong structure."""

    what: str
    writer: str
    edit: Edit
    rule: str
    question: Question
    severity: Severity = ERROR

    @property
    def file(self) -> bytes:
        """The patched file."""
        return self.edit(WRITERS[self.writer]())


def _equal(column: str, pick: Callable[..., Any], page: int | None = None, *, whole: bool = False) -> Question:
    """A value of the last row group, or of one of its pages, or of the whole file, that a column has."""
    first = 0 if whole else GROUP if page is None else GROUP + page * PAGE
    values = table()[column].to_pylist()[first : None if page is None else first + PAGE]
    return Question(
        column, "=", pick(value for value in values if value is not None), _CASTS.get(column), _key(column)
    )


def _key(column: str) -> str:
    return "id" if column == "up" else "up"


def _ask(column: str, test: str) -> Question:
    return Question(column, test, key=_key(column))


def _max_too_low(column: str) -> Edit:
    return at.bounds(column, MAX_VALUE="MIN_VALUE", MAX="MIN")


def _bounds(writer: str, type_: str, column: str, *, low: bool = False) -> Kind:
    """A row group's maximum that is the minimum, or the other way around, in both forms."""
    word = "min too high" if low else "max too low"
    edit = at.bounds(column, MIN_VALUE="MAX_VALUE", MIN="MAX") if low else _max_too_low(column)
    question = _equal(column, min if low else max, whole=writer == "DuckDB")
    return Kind(f"row group: {word}, {type_}", writer, edit, BOUNDS, question)


def _page(writer: str, type_: str, column: str, *, low: bool = False, page: int = 1) -> Kind:
    """A page's maximum that is the minimum, or the other way around."""
    word = "min too high" if low else "max too low"
    edit = at.page_bounds(column, page, *((MINS, MAXS) if low else (MAXS, MINS)))
    return Kind(f"page: {word}, {type_}", writer, edit, PAGE_BOUNDS, _equal(column, min if low else max, page))


_OLD_BOUNDS_ONLY: Final = dict.fromkeys(("MAX_VALUE", "MIN_VALUE", "MAX_EXACT", "MIN_EXACT"))
_EXCHANGED: Final = {"MAX_VALUE": "MIN_VALUE", "MIN_VALUE": "MAX_VALUE"}
_ONE: Final = (1).to_bytes(9, "big")


def _no_orders(metadata: Fields) -> None:
    del metadata[at.COLUMN_ORDERS]


def _first_rows(numbers: list[int]) -> Callable[[Fields], None]:
    def edit(index: Fields) -> None:
        for place, number in zip(index[at.LOCATIONS][1].values, numbers, strict=True):
            place[3] = (thrift.I64, number)

    return edit


def _place_of(page: int, other: int) -> Callable[[Fields], None]:
    """A page is said to be where another one is."""

    def edit(index: Fields) -> None:
        places = index[at.LOCATIONS][1].values
        places[page] = {**places[other], 3: places[page][3]}

    return edit


def _all_pages(field: int, value: Any) -> Callable[[Fields], None]:
    def edit(index: Fields) -> None:
        index[field][1].values[:] = [value] * len(index[field][1].values)

    return edit


def _group_rows(more: int) -> Callable[[Fields], None]:
    def edit(metadata: Fields) -> None:
        group = metadata[4][1].values[at.LAST]
        group[at.ROWS] = (thrift.I64, group[at.ROWS][1] + more)

    return edit


_CUT: Final = b"text number 1"
_UNSIGNED_AS_SIGNED: Final = struct.pack("<I", 2_140_000_000)
_LEVELS: Final = at.levels(GROUP, 0)
_UNENCODED: Final = at.added(at.UNENCODED, thrift.I64, [1] * 5)
_HISTOGRAMS: Final = at.added(at.DEFINITION, thrift.I64, [PAGE, 0] * 5)
_ORDER: Final = "column index: boundary_order"
_ONLY: Final = ": all pages dictionary-encoded"
_END: Final = 4
"""The number of the last page."""
_REAL: Final = _equal("price", max)._replace(column="real")
"""Other values of `real` are NaN."""
_ALL: Final = _ask("id", "rows")
_OTHER: Final = _equal("text", max, 2)._replace(key="id")
"""Other rows of `id` are returned by wrong first rows."""


def _asked(column: str, ask: Any) -> Question:
    """A question: itself, a test, the number of a page of which the greatest value is sought, or `max` or `min`."""
    if isinstance(ask, Question):
        return ask
    if isinstance(ask, str):
        return _ask(column, ask)
    return _equal(column, max, ask) if isinstance(ask, int) else _equal(column, ask)


def _group(what: str, writer: str, column: str, *edits: Edit, ask: Any = max, **fields: Any) -> Kind:
    """Bounds of a row group: edits, and other statistics."""
    edit = at.in_turn(*edits, at.stats(column, **fields))
    return Kind(f"row group: {what}", writer, edit, BOUNDS, _asked(column, ask))


def _counts(what: str, writer: str, column: str, ask: Any, **fields: Any) -> Kind:
    return Kind(f"row group: {what}", writer, at.stats(column, **fields), COUNTS, _asked(column, ask))


def _nulls(
    what: str, writer: str, column: str, edit: Callable[[Fields], None], ask: Any, severity: Severity = ERROR
) -> Kind:
    return Kind(what, writer, at.column_index(column, edit), PAGE_COUNTS, _asked(column, ask), severity)


def _ends(what: str, writer: str, column: str, edit: Callable[[Fields], None], ask: Any) -> Kind:
    return Kind(what, writer, at.column_index(column, edit), PAGE_BOUNDS, _asked(column, ask))


def _places(what: str, writer: str, edit: Callable[[Fields], None], ask: Any) -> Kind:
    return Kind(f"offset index: {what}", writer, at.offset_index("id", edit), LOCATIONS, _asked("id", ask))


def _sorted(what: str, writer: str, column: str, **flags: bool) -> Kind:
    edit = at.sorted_by(column, **flags)
    return Kind(f"sorting_columns: {what}", writer, edit, SORTING, _asked(column, "order"))


def _sizes(what: str, writer: str, edit: Edit) -> Kind:
    return Kind(what, writer, edit, SIZES, _equal("text", max), NOTE)


KINDS: Final[list[Kind]] = [
    # The bounds of row groups
    _bounds("Arrow", "INT32", "up"),
    _bounds("Spark", "INT64", "id"),
    _bounds("DataFusion", "UINT_32", "unsigned"),
    _bounds("Polars", "UINT_64", "wide"),
    _bounds("DuckDB", "FLOAT", "ratio"),
    _bounds("Arrow", "DOUBLE", "price"),
    _bounds("Spark", "STRING", "text"),
    _bounds("DuckDB", "STRING in a dictionary", "word"),
    _bounds("Polars", "DECIMAL in fixed bytes", "money"),
    _bounds("Spark", "DECIMAL in INT32", "cents"),
    _bounds("DataFusion", "DATE", "day"),
    _bounds("Polars", "TIMESTAMP", "at"),
    _bounds("Arrow", "BOOLEAN", "flag"),
    _bounds("DuckDB", "BYTE_ARRAY", "fixed"),
    _bounds("DataFusion", "FIXED_LEN_BYTE_ARRAY", "fixed"),
    _bounds("DuckDB", "INT64", "id", low=True),
    _bounds("Arrow", "STRING", "text", low=True),
    _bounds("DataFusion", "DOUBLE", "price", low=True),
    _bounds("DuckDB", "DECIMAL in fixed bytes", "money", low=True),
    _bounds("Polars", "DATE", "day", low=True),
    _bounds("Spark", "TIMESTAMP", "at", low=True),
    _group("min above max, INT64", "Spark", "id", at.bounds("id", **_EXCHANGED, MAX="MIN", MIN="MAX")),
    _group("min above max, STRING", "DataFusion", "text", at.bounds("text", **_EXCHANGED)),
    _group("UINT_32 compared as signed", "Arrow", "unsigned", MAX_VALUE=_UNSIGNED_AS_SIGNED),
    _group("decimals compared as unsigned bytes", "Arrow", "money", ask=min, MIN_VALUE=_ONE, MIN=_ONE),
    _group("max cut and not incremented, STRING", "Spark", "text", MAX_VALUE=_CUT),
    _group("max is the empty text", "DuckDB", "text", MAX_VALUE=b"", MAX=b""),
    _group("max of the wrong width, INT64", "DataFusion", "id", MAX_VALUE=b"\x7f\0\0\0", MAX=None),
    _group("only the old max, too low, INT64", "Arrow", "id", at.bounds("id", MAX="MIN"), **_OLD_BOUNDS_ONLY),
    _group(
        "the old max too low, the new one right",
        "DuckDB",
        "id",
        at.bounds("id", MAX="MIN"),
        ask=_equal("id", max, whole=True),
    ),
    _group("max too low, no column orders", "Arrow", "id", _max_too_low("id"), at.footer(_no_orders)),
    _group("max too low, in IEEE 754 total order", "Arrow", "price", at.order("price", 2), _max_too_low("price")),
    _group(
        "max too high, and said to be exact",
        "Arrow",
        "id",
        ask="max",
        MAX_VALUE=at.int64(1000),
        MAX=None,
        MAX_EXACT=True,
    ),
    # The counts of row groups
    _counts("null_count is all, STRING", "Spark", "text", max, NULLS=GROUP),
    _counts("null_count is all, STRING", "Arrow", "text", "IS NOT NULL", NULLS=GROUP),
    _counts("null_count is all, INT64", "Polars", "id", max, NULLS=GROUP),
    _counts("null_count is all, DATE", "DataFusion", "day", "IS NOT NULL", NULLS=GROUP),
    _counts("null_count is 0, STRING", "Arrow", "text", "IS NULL", NULLS=0),
    _counts("null_count is 0, INT64", "DuckDB", "gap", "IS NULL", NULLS=0),
    _counts("null_count is 0, STRING", "Spark", "text", "IS NULL", NULLS=0),
    _counts("no null_count", "Arrow", "text", "IS NULL", NULLS=None)._replace(severity=Severity.WARNING),
    _counts("no null_count", "DuckDB", "gap", "count", NULLS=None)._replace(severity=Severity.WARNING),
    _counts("no null_count", "Spark", "text", max, NULLS=None)._replace(severity=Severity.WARNING),
    _counts("null_count too high", "DataFusion", "text", "count", NULLS=90),
    _counts("null_count above num_values", "Polars", "text", max, NULLS=5 * GROUP),
    _counts("null_count below 0", "Spark", "text", max, NULLS=-1),
    _counts("nan_count is all", "DuckDB", "real", _REAL, NANS=2 * GROUP),
    _counts("nan_count is 0", "DuckDB", "real", _REAL, NANS=0),
    _counts("distinct_count is 1", "DuckDB", "word", "count", DISTINCT=1)._replace(severity=NOTE),
    Kind("row group: num_rows too low", "Arrow", at.footer(_group_rows(-PAGE)), COUNTS, _ALL),
    Kind("row group: num_rows too high", "Spark", at.footer(_group_rows(PAGE)), COUNTS, _ALL),
    Kind("file: num_rows too low", "DataFusion", at.rows(GROUP, whole_file=True), COUNTS, _ALL),
    Kind("file: num_rows too high", "Polars", at.rows(3 * GROUP, whole_file=True), COUNTS, _ALL),
    Kind("column: num_values too low", "Arrow", at.meta("id", at.num_values(-PAGE)), COUNTS, _ALL),
    # Encodings and orders
    Kind(f"encoding_stats{_ONLY}", "Arrow", at.meta("long", at.dictionary_pages), ENCODINGS, _asked("long", _END)),
    Kind(f"encodings{_ONLY}", "Arrow", at.meta("long", at.plain_dictionary), ENCODINGS, _asked("long", _END)),
    _sorted("ascending, INT64", "Arrow", "id", everywhere=True),
    _sorted("ascending, STRING", "DataFusion", "text", everywhere=True),
    _sorted("descending", "Spark", "up", descending=True),
    # The counts of pages
    _nulls("page: null_pages is true, INT64", "Arrow", "id", at.of_page(NULL_PAGES, 2, True), 2),
    _nulls("page: null_pages is true, INT64", "DataFusion", "id", at.of_page(NULL_PAGES, 2, True), "IS NOT NULL"),
    _nulls("page: null_pages is true, STRING", "Spark", "text", at.of_page(NULL_PAGES, 2, True), 2),
    _nulls("page: null_pages is true, DOUBLE", "Polars", "price", at.of_page(NULL_PAGES, 2, True), "IS NOT NULL"),
    _nulls("page: null_pages is true in all pages", "Spark", "id", _all_pages(NULL_PAGES, True), max),
    _nulls("page: null_pages is false, only nulls", "Spark", "gap", at.of_page(NULL_PAGES, 0, False), max),
    _nulls("page: null_counts is 0", "Arrow", "text", at.of_page(NULL_COUNTS, 1, 0), "IS NULL"),
    _nulls("page: null_counts is 0 in all pages", "Spark", "text", _all_pages(NULL_COUNTS, 0), "IS NULL"),
    _nulls("page: null_counts is all", "DataFusion", "id", at.of_page(NULL_COUNTS, 1, PAGE), "IS NOT NULL"),
    _nulls("page: null_counts is all", "Spark", "text", at.of_page(NULL_COUNTS, 1, PAGE), 1),
    _nulls("page: nan_counts is 0", "Arrow", "real", at.added(at.NAN_COUNTS, thrift.I64, [0] * 5), _REAL),
    _nulls("page: nan_counts is all", "Arrow", "price", at.added(at.NAN_COUNTS, thrift.I64, [PAGE] * 5), max),
    _nulls("column index: a page less", "Arrow", "id", at.without_last(NULL_PAGES, MINS, MAXS, NULL_COUNTS), _END),
    _nulls("column index: lists of different lengths", "Spark", "id", at.without_last(MAXS), _END),
    # The bounds of pages
    _page("Arrow", "INT32", "up"),
    _page("Spark", "INT64", "id"),
    _page("DataFusion", "UINT_32", "unsigned"),
    _page("Arrow", "UINT_64", "wide"),
    _page("Polars", "FLOAT", "ratio"),
    _page("DataFusion", "DOUBLE", "price"),
    _page("Spark", "STRING", "text"),
    _page("Arrow", "STRING in a dictionary", "word"),
    _page("Arrow", "DECIMAL in fixed bytes", "money"),
    _page("Spark", "DECIMAL in INT32", "cents"),
    _page("DataFusion", "DATE", "day"),
    _page("Spark", "TIMESTAMP", "at"),
    _page("DataFusion", "BOOLEAN", "flag"),
    _page("Arrow", "FIXED_LEN_BYTE_ARRAY", "fixed"),
    _page("Spark", "BYTE_ARRAY", "fixed", low=True),
    _page("Polars", "INT64", "id", low=True),
    _page("Arrow", "STRING", "text", low=True),
    _page("DataFusion", "TIMESTAMP", "at", low=True),
    _page("Spark", "DECIMAL in fixed bytes", "money", low=True),
    _ends("page: max cut and not incremented, STRING", "Arrow", "text", at.of_page(MAXS, 1, _CUT), 1),
    _ends("page: max is the empty text", "Spark", "text", at.of_page(MAXS, 1, b""), 1),
    _ends("page: max has no bytes, INT64", "Arrow", "id", at.of_page(MAXS, 1, b""), 1),
    _ends(f"{_ORDER} ascending, and isn't", "Spark", "id", at.exchanged(at.ORDER, thrift.I32, 1), max),
    _ends(f"{_ORDER} ascending, and isn't", "Arrow", "text", at.exchanged(at.ORDER, thrift.I32, 1), min),
    _ends(f"{_ORDER} descending, and isn't", "Spark", "up", at.exchanged(at.ORDER, thrift.I32, 2), min),
    _ends("column index: can't be read", "DataFusion", "id", at.added(NULL_PAGES, thrift.I64, [0] * 5), max),
    # The locations of pages
    _places("first row of a page one too high", "Spark", at.in_location(2, 3, 1), _OTHER),
    _places("first row of a page one too low", "Arrow", at.in_location(2, 3, -1), _OTHER),
    _places("first rows of all pages are 0", "DataFusion", _first_rows([0] * 5), _OTHER),
    _places("first rows descend", "Arrow", _first_rows([0, 60, 40, 20, 80]), _OTHER),
    _places("offset one too high", "Spark", at.in_location(2, 1, 1), 2),
    _places("offset of another page", "DataFusion", _place_of(2, 1), 2),
    _places("offset of another page", "Arrow", _place_of(2, 1), _OTHER),
    _places("size without the page header", "Polars", at.in_location(2, 2, -20), 2),
    _places("size too high", "Arrow", at.in_location(2, 2, 500), 2),
    _places("a page less", "Spark", at.without_last(at.LOCATIONS), _END),
    _places("can't be read", "Arrow", at.added(at.LOCATIONS, thrift.I64, [0] * 5), max),
    # Sizes
    _sizes("size_statistics: unencoded bytes", "Spark", at.meta("text", at.sizes(1, (thrift.I64, 7)))),
    _sizes("size_statistics: histogram of definition levels", "DataFusion", at.meta("text", at.sizes(3, _LEVELS))),
    _sizes("offset index: unencoded bytes of pages", "Arrow", at.offset_index("text", _UNENCODED)),
    _sizes("column index: histograms of pages", "Spark", at.column_index("text", _HISTOGRAMS)),
]


def outcome(ask: Ask, sound: Path, broken: Path, question: Question, *, skips: bool) -> str:
    """What an engine does with the broken file, compared with what it answers about the sound one."""
    right = ask(sound, question, skips)
    assert right, question
    try:
        found = ask(broken, question, skips)
    except CrashError:
        return CRASHES
    except Exception:  # noqa: BLE001  each engine has its own errors
        return REFUSES
    return compared(found, right, question)


def compared(found: Answer, right: Answer, question: Question) -> str:
    """The name of an answer."""
    if found == right:
        return RIGHT
    rows = question.test not in ("order", "count", "min", "max")
    return LOSES if rows and len(found) < len(right) and set(found) <= set(right) else WRONG


def cell(ask: Ask, kind: Kind, sound: Path, broken: Path) -> str:
    """What an engine does with a kind, as the table says it. It is asked without skipping only if it goes wrong."""
    found = outcome(ask, sound, broken, kind.question, skips=True)
    if found == RIGHT:
        return found
    without = outcome(ask, sound, broken, kind.question, skips=False)
    return found if without == RIGHT else f"{found}{WITHOUT}{without}"


def cells(ask: Ask, folder: Path) -> list[str]:
    """An engine's column of the table. The files are written to `folder`."""
    for writer, sound in WRITERS.items():
        (folder / f"{writer}.parquet").write_bytes(sound())
    files = []
    for number, kind in enumerate(KINDS):
        broken = folder / f"{number}.parquet"
        broken.write_bytes(kind.file)
        files.append((folder / f"{kind.writer}.parquet", broken))
    if isinstance(ask, Spark):
        _prepare(ask, files)
    return [cell(ask, kind, *pair) for kind, pair in zip(KINDS, files, strict=True)]


def _prepare(ask: Spark, files: Sequence[tuple[Path, Path]]) -> None:
    """Let Spark answer what it is asked below all at once, except about the files that the page says it refuses: each
    would only make a query fail."""
    for skips in (True, False):
        asked = []
        for kind, (sound, broken), known in zip(KINDS, files, recorded()["Spark"], strict=False):
            first, _, without = known.partition(WITHOUT)
            if skips or first != RIGHT:
                asked.append((sound, kind.question))
                if (first if skips else without) not in (REFUSES, CRASHES):
                    asked.append((broken, kind.question))
        ask.prepare(asked, skips)


def recorded() -> dict[str, list[str]]:
    """The columns of all engines, as the page has them; nothing for a kind that it doesn't have yet."""
    found = {}
    for line in PAGE_OF_TABLE.read_text().splitlines():
        if re.match(r"\|(?!kind\||-)\S", line):
            what, cases, *outcomes = line.strip("|").split("|")
            found |= {(what, case): outcomes for case in cases.split("; ")}
    rows = [found.get(_place(kind), [""] * len(ENGINES)) for kind in KINDS]
    return {engine: [row[number] for row in rows] for number, engine in enumerate(ENGINES)}


def _place(kind: Kind) -> tuple[str, str]:
    """What is wrong, and in which type, by which writer and for which question."""
    what, _, type_ = kind.what.partition(", ")
    question = "" if kind.question.test == "=" else f", {kind.question.text}"
    return what, f"{type_} ({kind.writer}{question})".strip()


def text(columns: Mapping[str, Sequence[str]]) -> str:
    """The page: a table for each rule, with a line for all types of a kind with which each engine does the same."""
    lines = [HEAD]
    for rule, kinds in groupby(enumerate(KINDS), lambda each: each[1].rule):
        rows: dict[tuple[str, ...], list[str]] = {}
        for number, kind in kinds:
            what, case = _place(kind)
            rows.setdefault((what, *(columns[engine][number] for engine in ENGINES)), []).append(case)
        lines += [f"## {rule}", "", f"[The rule](../bloomcli/rules/pages/{rule}.md).", ""]
        lines += [f"|kind|files|{'|'.join(ENGINES)}|", "|---" * (2 + len(ENGINES)) + "|"]
        lines += [f"|{what}|{'; '.join(cases)}|{'|'.join(found)}|" for (what, *found), cases in rows.items()]
        lines.append("")
    return "\n".join(lines)
