"""Reports for HTML pages: with names that need escaping, and with large numbers of files, filters and findings."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from bloomcli.model.advice import AdviseReport, ColumnAdvice, QueryLog, UnservedPredicate
from bloomcli.model.dataset import ColumnFilters, DatasetReport, FileRow, Status
from bloomcli.model.file import ColumnSummary, FilterFacts, Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.trial import ReaderTrial, TrialReport
from bloomcli.rules import RULES
from support import advice, gates
from support.trial_reports import REPORT

NAMES: Final = (
    "id",
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "\"quotes\" and 'quotes'",
    "line\nbreak\r\ttab\x00nul",
    "\u202eright to left\u2066",
    "$\\frac{1}{2}$ &amp; {{ 7 * 7 }} {% raw %}",
    "@0@",
    "名前.élément.🌸",
    "lone \udcff surrogate \ufffe",
    "]]> --> <!-- <svg onload=alert(1)>",
    "x" * 5000,
    "",
)
"""Names of columns. Every page shows each of them as text."""


def of_file(row_groups: int = 8, columns: tuple[str, ...] = NAMES) -> InspectReport:
    """A file whose columns have a filter in most row groups; some filters can't be read."""
    chance = random.Random(7)
    filters = []
    offset = 4
    for group in range(row_groups):
        for number, name in enumerate(columns):
            if number % 5 == 4 and group % 3 == 0:
                continue
            facts = _facts(name, group, offset, 2 ** (5 + number % 9), chance)
            if group == 1 and number == 2:
                facts = replace(facts, problem="<b>no header</b> there", bitset_bytes=None, fill=None, fpp=None)
            filters.append(facts)
            offset += 4096
    return InspectReport(
        path="/data/<i>orders</i> & co.parquet",
        format="parquet",
        file_bytes=offset + 4096,
        rows=1000 * row_groups,
        row_groups=row_groups,
        columns=len(columns),
        created_by="<script>writer</script>",
        filters=tuple(filters),
        by_column=tuple(_summary(name, row_groups) for name in columns),
    )


def _facts(name: str, group: int, offset: int, size: int, chance: random.Random) -> FilterFacts:
    fill = chance.random()
    return FilterFacts(
        row_group=group,
        column=name,
        physical="INT64",
        logical=None,
        offset=offset,
        length=size + 15,
        bitset_bytes=size,
        blocks=size // 32,
        ndv_estimate=size / 2,
        fill=fill,
        fpp=fill**8,
    )


def _summary(name: str, row_groups: int) -> ColumnSummary:
    return ColumnSummary(
        column=name,
        physical="INT64",
        logical=None,
        nulls=3,
        compressed_bytes=1000,
        min="<b>1</b>",
        max="9",
        row_groups_with_filter=row_groups,
        filters=row_groups,
        bitset_bytes=4096,
        max_fpp=0.01,
    )


def of_lake(files: int, columns: tuple[str, ...] = NAMES) -> DatasetReport:
    """Files, some without filters, one of which can't be read."""
    rows = [
        FileRow(
            path=f"lake/day={number // 100:03}/<part>-{number:06}.parquet",
            status=Status.DONE,
            format="parquet",
            row_groups=4,
            columns=len(columns),
            filters=4 * len(columns),
            filter_bytes=4096,
            bytes_before=10_000 + number % 977,
            max_fpp=0.01,
            by_column=tuple(
                ColumnFilters(
                    column=name,
                    type="INT64",
                    row_groups_with_filter=with_filter,
                    row_groups_without_filter=4 - with_filter,
                    filters=with_filter,
                    unreadable=0,
                    bitset_bytes=1024 * with_filter,
                    max_fpp=0.001 * (1 + (number + at) % 9) if with_filter else None,
                )
                for at, name in enumerate(columns)
                for with_filter in ((4, 4, 2, 0)[(number // 50 + at) % 4],)
            ),
        )
        for number in range(files)
    ]
    torn = FileRow(path="lake/torn.parquet", status=Status.FAILED, error="<b>torn</b> (byte 7)", exit_code=3)
    return DatasetReport(command="inspect", engine="local", jobs=2, seconds=1.0, rows=(*rows, torn))


def of_check(findings: int, columns: tuple[str, ...] = NAMES) -> GateReport:
    """Findings of every rule."""
    found = [
        replace(
            gates.MISSING,
            id=list(RULES)[number % len(RULES)],
            severity=list(Severity)[number % 3],
            message="a <b>message</b>",
            row_group=number % 7,
            column=columns[number % len(columns)],
            hint="`bloom add '<FILE>'`",
            path=f"lake/part-{number % 977}.parquet",
            off="because" if number % 11 == 0 else None,
        )
        for number in range(findings)
    ]
    rows = (
        replace(gates.FOUND, path=f"lake/part-{number}.parquet", exit_code=1) for number in range(min(findings, 977))
    )
    return gates.gate(*found, rows=tuple(rows))


def of_advice(columns: tuple[str, ...] = NAMES) -> AdviseReport:
    """Columns with figures, of which every third is recommended; one can't have a filter and has no figures."""
    chance = random.Random(3)
    found = [
        advice.column(
            name,
            recommended=number % 3 == 0,
            reason="because <b>so</b>",
            reason_id="saves" if number % 3 == 0 else "sorted",
            fpp=0.01,
            filter_bytes=2.0 ** (15 + number % 9),
            spread=0.3,
            rates=advice.at_rates(
                [(fpp, 2.0 ** (14 + number % 9) * n) for fpp, n in ((0.1, 1), (0.01, 2), (0.001, 4))]
            ),
            present=advice.gain(*shares),
            absent=advice.gain(*shares),
            seconds_to_add=advice.exact(30),
            lookups=12,
        )
        for number, name in enumerate(columns)
        for shares in ((0.2 + 0.75 * chance.random(), 0.15 if number % 5 < 4 else 0.97),)
    ]
    flag = ColumnAdvice(
        column="<b>flag</b>", type="BOOLEAN", recommended=False, reason="BOOLEAN <i>", reason_id="unfilterable"
    )
    like = UnservedPredicate(kind="like", column=columns[1], count=12, example="a LIKE '<b>%'")
    return advice.report(
        *sorted([*found, flag], key=lambda column: not column.recommended),
        paths=("lake/<i>orders</i>",),
        readers=("spark", "trino"),
        budget_bytes=20 << 20,
        budget_used=9 << 20,
        queries=QueryLog(
            statements=100, about_table=80, unreadable=1, unreadable_examples=(), columns=(), unserved=(like,)
        ),
        command="bloom add 'lake/<i>orders</i>' --columns id --fpp 0.01 --in-place",
        failed=(("lake/torn.parquet", "<b>torn</b>"),),
    )


def of_trial(columns: tuple[str, ...] = NAMES) -> TrialReport:
    """Readers of which one loses rows, one never looks at filters, and one isn't installed."""

    def of(reader: ReaderTrial, **more: Any) -> ReaderTrial:
        kinds = ((number, name, kind) for number, name in enumerate(columns) for kind in ("present", "absent"))
        lookups = (replace(reader.lookups[0], column=name, kind=kind, unequal=number) for number, name, kind in kinds)
        return replace(reader, title=f"{reader.title} <1>", lookups=tuple(lookups), **more)

    duckdb, spark, polars, chdb, _ = REPORT.readers
    lost = replace(
        spark.differences[0], path="lake/<i>a</i>.parquet", value="<b>-0.0</b>", message="<b>loses</b> rows"
    )
    return replace(
        REPORT,
        paths=("lake/<i>orders</i>.parquet",),
        tried=("lake/<i>a</i>.parquet",),
        columns=columns,
        readers=(of(duckdb), of(spark, differences=(replace(lost, column=columns[1]),)), of(polars), chdb),
        failed=(("lake/torn.parquet", "<b>torn</b>"),),
        remarks=("a <b>remark</b>",),
    )


OF_EACH_KIND: Final[dict[str, Callable[[], Any]]] = {
    "file": of_file,
    "lake": lambda: of_lake(20),
    "check": lambda: of_check(60),
    "advice": of_advice,
    "trial": of_trial,
}
