"""The options of `bloom validate`, without those that name the files."""

from __future__ import annotations

from typing import Final

import click

from bloomcli.cli import options
from bloomcli.cli.completion import complete_columns, complete_explained
from bloomcli.cli.reader_options import policy_options, readers_option, table_schema_option

FORMS: Final = ("text", "json", "csv", "junit", "sarif", "github")
"""Forms of a gate's report for standard output."""


_check_options = options.bundle(
    click.option(
        "-r",
        "--require",
        metavar="NAMES",
        multiple=True,
        callback=options.split_names,
        shell_complete=complete_columns,
        help="Leaf columns that must have a filter in every row group; repeats, takes commas and globs.",
    ),
    click.option(
        "--max-fpp",
        type=options.Rate(),
        metavar="RATE",
        help="Highest accepted false-positive rate, measured.",
    ),
    click.option(
        "--max-oversize",
        type=click.FloatRange(min=1),
        metavar="FACTOR",
        help="Highest accepted ratio of a filter's size to the size that its values need.",
    ),
    click.option("--deep", is_flag=True, help="Read the columns again and prove that no value is missing."),
    policy_options("The policy, TOML."),
    readers_option("Engines that read the files: filters in which they look values up wrongly are findings. Known:"),
    table_schema_option("The table's schema (Spark's or Iceberg's JSON, or DDL), for --readers."),
)
"""Options for the checks."""

_file_options = options.bundle(
    click.option("--sample", metavar="SHARE", help="Check only this part of the files: 5%, or a number."),
    click.option(
        "--sample-row-groups",
        metavar="SHARE",
        help="With --deep: read only this part of each file's row groups (ORC: stripes).",
    ),
    options.seed_option("Seed of the samples: the same seed selects the same part."),
    click.option(
        "--baseline",
        type=options.FILE,
        metavar="FILE",
        help="Known findings, which don't count.",
    ),
    click.option("--update-baseline", is_flag=True, help="Write the findings of this run to the baseline."),
)
"""Options that select the files, and the known findings."""

_report_options = options.bundle(
    click.option(
        "--max-per-rule",
        type=click.IntRange(min=0),
        metavar="N",
        help="Findings shown per rule, in text and annotations; 0 for all.  [default: 5, annotations 10]",
    ),
    options.all_option("Show every finding, as --max-per-rule 0."),
    options.reports_option(*FORMS, "html"),
    click.option("--init", is_flag=True, help="Write a commented policy that the files meet, and stop."),
    click.option(
        "--explain",
        metavar="[RULE|KEY]",
        is_flag=False,
        flag_value="",
        shell_complete=complete_explained,
        help="Explain a rule or a key of the policy, or list them, and stop.",
    ),
)
"""Options for the output, and options that replace the check."""

gate_options = options.bundle(_check_options, _file_options, _report_options)
"""The gate's options."""
