"""The options that name logs of queries, for `bloom advise` and `bloom trial`."""

from __future__ import annotations

from typing import Final

import click

from bloomcli.cli import options

query_options: Final = options.bundle(
    click.option(
        "--queries",
        metavar="LOG",
        multiple=True,
        type=options.PATH,
        help="A log of SQL queries, or a directory of them: statements that end in ;, or lines of JSON with a"
        ' statement under "query". They determine which columns are looked up, and by which values; repeats.',
    ),
    click.option(
        "--dialect",
        default="spark",
        show_default=True,
        metavar="NAME",
        help="The SQL dialect of the queries: spark, trino, duckdb, clickhouse, bigquery, ...",
    ),
    click.option(
        "--table-name",
        metavar="NAMES",
        multiple=True,
        callback=options.split_names,
        help="The table's name in the queries; repeats.  [default: the only table that they read]",
    ),
)
"""Options for logs of queries."""
