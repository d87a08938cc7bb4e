"""What `bloom validate` takes besides files: the gate's options, in one bundle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from bloomcli.cli import options
from bloomcli.cli.reader_options import policy_options, readers_option, table_schema_option

F = TypeVar("F", bound=Callable[..., Any])

FORMS: Final = ("text", "json", "junit", "sarif", "github")
"""What a gate's report can be written as."""


def _reports(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for value in values:
        form, equals, path = value.partition("=")
        if not equals or not path or form not in FORMS:
            raise click.BadParameter(f"{value!r} is not FORM=FILE with FORM one of {', '.join(FORMS)}", ctx, param)
        pairs.append((form, path))
    return tuple(pairs)


def gate_options(function: F) -> F:
    """Add the gate's options."""
    for option in reversed(
        (
            click.option(
                "-r",
                "--require",
                metavar="NAMES",
                multiple=True,
                callback=options.split_names,
                shell_complete=options.complete_columns,
                help="Leaf columns that must have a filter in every row group; repeats, takes commas and globs.",
            ),
            click.option(
                "--max-fpp",
                type=options.Rate(),
                metavar="RATE",
                help="Highest measured false-positive rate accepted.",
            ),
            click.option(
                "--max-oversize",
                type=click.FloatRange(min=1),
                metavar="FACTOR",
                help="How many times as large as its values need a filter may be.",
            ),
            click.option("--deep", is_flag=True, help="Read the columns again and prove that no value is missing."),
            policy_options("The policy, TOML."),
            readers_option("Engines that read the files: find what they would probe wrongly. Known:"),
            table_schema_option("The table's schema (Spark's or Iceberg's JSON, or DDL), for --readers."),
            click.option("--sample", metavar="SHARE", help="Look at this part of the files only: 5%, or a number."),
            click.option(
                "--sample-row-groups",
                metavar="SHARE",
                help="With --deep: read this part of each file's row groups (ORC: stripes) only.",
            ),
            click.option(
                "--seed",
                type=int,
                default=0,
                show_default=True,
                metavar="N",
                help="Seed of the samples: the same one takes the same part.",
            ),
            click.option(
                "--baseline",
                type=click.Path(readable=False, dir_okay=False, path_type=str),
                metavar="FILE",
                help="Known findings, which don't count.",
            ),
            click.option("--update-baseline", is_flag=True, help="Write today's findings to the baseline."),
            click.option(
                "--max-per-rule",
                type=click.IntRange(min=0),
                metavar="N",
                help="Findings shown of a rule, in text and annotations; 0 for all.  [default: 5, annotations 10]",
            ),
            click.option(
                "--report",
                "reports",
                metavar="FORM=FILE",
                multiple=True,
                callback=_reports,
                help="Also write the result to a file, as json, junit, sarif, github or text; repeats.",
            ),
            click.option("--init", is_flag=True, help="Write a commented policy of what the files have, and stop."),
            click.option(
                "--explain",
                metavar="[RULE]",
                is_flag=False,
                flag_value="",
                help="Explain a rule, or list them, and stop.",
            ),
        )
    ):
        function = option(function)
    return function
