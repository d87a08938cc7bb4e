"""Reports for HTML pages: with names that need escaping, and with large numbers of files, filters and findings."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from bloomcli.model.advice import (
    AdviseReport,
    AtRate,
    ColumnAdvice,
    Interval,
    LookupCost,
    LookupGain,
    QueryLog,
    UnservedPredicate,
)
from bloomcli.model.dataset import ColumnFilters, DatasetReport, FileRow, Status
from bloomcli.model.file import ColumnSummary, FilterFacts, Severity
from bloomcli.model.gate import GateReport
from bloomcli.model.inspect import InspectReport
from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups, TrialReport
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES

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
        Finding(
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
    rows = tuple(
        FileRow(path=f"lake/part-{number}.parquet", status=Status.FOUND, row_groups=7, filters=7, exit_code=1)
        for number in range(min(findings, 977))
    )
    return GateReport(engine="local", jobs=2, seconds=1.0, files_found=len(rows), findings=tuple(found), rows=rows)


def of_advice(columns: tuple[str, ...] = NAMES) -> AdviseReport:
    """Columns with figures, of which every third is recommended; one can't have a filter and has no figures."""
    chance = random.Random(3)
    found = [_advised(name, number, chance) for number, name in enumerate(columns)]
    found.append(
        ColumnAdvice(
            column="<b>flag</b>", type="BOOLEAN", recommended=False, reason="BOOLEAN <i>", reason_id="unfilterable"
        )
    )
    return AdviseReport(
        paths=("lake/<i>orders</i>",),
        files=40,
        row_groups=160,
        rows=4_000_000,
        bytes=1 << 30,
        sampled_files=12,
        sampled_row_groups=20,
        seed=7,
        fpp=0.01,
        readers=("spark", "trino"),
        columns=tuple(sorted(found, key=lambda column: not column.recommended)),
        budget_bytes=20 << 20,
        budget_used=9 << 20,
        queries=QueryLog(
            statements=100,
            about_table=80,
            unreadable=1,
            unreadable_examples=(),
            columns=(),
            unserved=(UnservedPredicate(kind="like", column=columns[1], count=12, example="a LIKE '<b>%'"),),
        ),
        command="bloom add 'lake/<i>orders</i>' --columns id --fpp 0.01 --in-place",
        failed=(("lake/torn.parquet", "<b>torn</b>"),),
        seconds=12.0,
    )


def _interval(estimate: float, spread: float) -> Interval:
    return Interval(estimate=estimate, low=estimate * (1 - spread), high=min(estimate * (1 + spread), 1e12))


def _advised(name: str, number: int, chance: random.Random) -> ColumnAdvice:
    before, after = 0.2 + 0.75 * chance.random(), 0.02 + 0.1 * chance.random()
    size = 2.0 ** (14 + number % 9)

    def cost(share: float) -> LookupCost:
        rows = Interval(estimate=share, low=share * 0.8, high=min(share * 1.2, 1))
        return LookupCost(row_groups=rows, bytes=_interval(share * 1e9, 0.2))

    gain = LookupGain(values=100, today=cost(before), with_filter=cost(after))
    rates = tuple(
        AtRate(
            fpp=fpp,
            filter_bytes=_interval(size * factor, 0.1),
            present=cost(after),
            absent=cost(after),
            queried=None,
            saved_present=None,
            saved_absent=None,
            saved_queried=None,
        )
        for fpp, factor in ((0.1, 1), (0.05, 1), (0.01, 2), (0.001, 4))
    )
    return ColumnAdvice(
        column=name,
        type="INT64",
        recommended=number % 3 == 0,
        reason="because <b>so</b>",
        reason_id="saves" if number % 3 == 0 else "sorted",
        fpp=0.01,
        filter_bytes=_interval(size * 2, 0.1),
        filter_share=0.01,
        seconds_to_add=_interval(30, 0.5),
        rows=4_000_000,
        nulls=3,
        column_bytes=1 << 24,
        distinct=_interval(90_000, 0.1),
        distinct_per_row_group=_interval(20_000, 0.1),
        overlap=_interval(before, 0.1),
        present=gain,
        absent=gain,
        rates=rates,
        saved_bytes=_interval((before - after) * 1e8 * (-0.1 if number % 5 == 4 else 1), 0.3),
        lookups=12,
        sampled_row_groups=20,
    )


def of_trial(columns: tuple[str, ...] = NAMES) -> TrialReport:
    """Readers of which one loses rows, one never looks at filters, and one isn't installed."""
    difference = RowDifference(
        path="lake/<i>a</i>.parquet",
        column=columns[1],
        value="<b>-0.0</b>",
        rows_without=3,
        rows_with=0,
        rule="reader-negative-zero",
        message="<b>loses</b> 3 rows",
    )
    return TrialReport(
        paths=("lake/<i>orders</i>.parquet",),
        files=4,
        tried=("lake/<i>a</i>.parquet",),
        rows=1000,
        row_groups=10,
        columns=columns,
        values=20,
        within=None,
        queries=(),
        seed=1,
        fpp=0.01,
        runs=5,
        sample="1",
        readers=(
            _tried("duckdb", "DuckDB <1>", "equal", columns),
            _tried("trino", "Trino", "unequal", columns, (difference,)),
            _tried("polars", "Polars", "equal", columns, uses_filters=False),
            _tried("spark", "Spark", "not-installed", (), version=None),
        ),
        failed=(("lake/torn.parquet", "<b>torn</b>"),),
        remarks=("a <b>remark</b>",),
    )


def _tried(
    reader: str,
    title: str,
    status: str,
    columns: tuple[str, ...],
    differences: tuple[RowDifference, ...] = (),
    *,
    uses_filters: bool = True,
    version: str | None = "1.0",
) -> ReaderTrial:
    return ReaderTrial(
        reader=reader,
        title=title,
        version=version,
        status=status,
        uses_filters=uses_filters,
        uses=(),
        comparison="switch" if columns else None,
        switch="<b>filters</b>=off",
        reason=None if columns else "it isn't installed",
        hint=None if columns else "pip install 'bloomcli[trial]'",
        lookups=tuple(
            _looked_up(column, kind, 0.1 if uses_filters else 1.0)
            for column in columns
            for kind in ("present", "absent")
        ),
        differences=differences,
        seconds=1.0,
    )


def _looked_up(column: str, kind: str, share: float) -> TrialLookups:
    return TrialLookups(
        column=column,
        kind=kind,
        lookups=20,
        unequal=0,
        not_found=1,
        rows_without=20,
        rows_with=20,
        row_groups=200,
        row_groups_without=160,
        row_groups_with=round(160 * share),
        rows_read_without=1000,
        rows_read_with=100,
        bytes_without=None,
        bytes_with=None,
        seconds_without=Quartiles(low=0.01, median=0.012, high=0.02, count=100),
        seconds_with=Quartiles(low=0.004, median=0.005, high=0.007, count=100),
        ratio=Quartiles(low=0.3 + share / 2, median=0.4 + share / 2, high=0.6 + share / 2, count=100),
    )
