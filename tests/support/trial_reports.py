"""A report of `trial`: readers that gain, lose rows, never look at filters, aren't installed, or fail."""

from __future__ import annotations

from dataclasses import replace

from bloomcli.model.reader_use import ReaderUse
from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups, TrialReport

HALF = Quartiles(low=0.41, median=0.5, high=0.62, count=100)
LOOKUPS = TrialLookups(
    column="id",
    kind="present",
    lookups=20,
    unequal=0,
    not_found=0,
    rows_without=20,
    rows_with=20,
    row_groups=200,
    row_groups_without=182,
    row_groups_with=24,
    rows_read_without=None,
    rows_read_with=None,
    bytes_without=6_910_690,
    bytes_with=1_743_291,
    seconds_without=HALF,
    seconds_with=HALF,
    ratio=HALF,
)
IN_ROWS = replace(
    LOOKUPS,
    row_groups_without=None,
    row_groups_with=None,
    rows_read_without=2_000_000,
    rows_read_with=20_000,
    bytes_without=None,
    bytes_with=None,
)
NEVER = ReaderUse(
    reader="polars", title="Polars", verdict="never-looks", columns=("id",), reason="never looks at filters"
)
READER = ReaderTrial(
    reader="duckdb",
    title="DuckDB",
    version="2.0.0",
    status="equal",
    uses_filters=True,
    uses=(),
    comparison="added",
    switch=None,
    reason=None,
    hint=None,
    lookups=(LOOKUPS, replace(LOOKUPS, kind="absent", row_groups_with=0)),
    differences=(),
    seconds=1.5,
)
LOST = RowDifference(
    path="orders.parquet",
    column="id",
    value="0.0",
    rows_without=100,
    rows_with=0,
    rule="reader-negative-zero",
    message="Spark 4.3.0: id = 0.0 returns 0 rows with filters and 100 without",
)
REPORT = TrialReport(
    paths=("orders.parquet",),
    files=1,
    tried=("orders.parquet",),
    rows=100_000,
    row_groups=10,
    columns=("id",),
    values=20,
    within=None,
    queries=(),
    seed=0,
    fpp=0.01,
    runs=5,
    sample=None,
    readers=(
        READER,
        replace(
            READER,
            reader="spark",
            title="Spark",
            version="4.3.0",
            status="unequal",
            comparison="switch",
            switch="parquet.filter.bloom.enabled",
            lookups=(replace(IN_ROWS, unequal=1),),
            differences=(LOST,) * 7,
        ),
        replace(READER, reader="polars", title="Polars", version="2.1.0", uses_filters=False, uses=(NEVER,), lookups=(
            replace(IN_ROWS, rows_read_without=None, rows_read_with=None, not_found=2),)),
        replace(READER, reader="chdb", title="chDB", version=None, status="not-installed", comparison=None,
                lookups=(), reason="not installed", hint="pip install 'bloomcli[trial]'"),
        replace(READER, reader="datafusion", title="DataFusion", version="55.0.0", status="failed", comparison=None,
                lookups=(), reason="its process ended by SIGSEGV: id = 5 with filters"),
    ),
    failed=(("b.parquet", "the file ends in the middle of its footer"),),
    seconds=12.25,
)  # fmt: skip
