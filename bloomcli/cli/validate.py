"""bloom validate"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from bloomcli.cli import options, output
from bloomcli.cli.dataset import Dataset, check_engine, dataset_options, meter, named_paths, spark_session
from bloomcli.cli.gate_options import FORMS, gate_options
from bloomcli.cli.reader_options import policy_file
from bloomcli.errors import UsageError

if TYPE_CHECKING:
    from bloomcli.model.gate import GateReport
    from bloomcli.validation.gate import GateRequest


@click.command(
    short_help="Prove that filters are sound and miss no value.",
    epilog="""\b
Examples:
  bloom validate orders.parquet --require id,user.email --max-fpp 0.01
  bloom validate orders.parquet --deep
  bloom validate /data/orders --init
  bloom validate /data/orders --policy bloom.toml --format sarif > bloom.sarif
  bloom validate /data/orders --sample 5% --deep --sample-row-groups 10%
  bloom validate --explain filter-stray-bits""",
)
@options.files_argument
@options.columns_option("Check the filters of these leaf columns only; globs are allowed.")
@options.exclude_option("Say nothing of these leaf columns, whatever else names them.")
@gate_options
@options.format_option(*FORMS)
@dataset_options
def command(
    dataset: Dataset,
    init: bool,
    explain: str | None,
    no_policy: bool,
    policy: str | None,
    max_per_rule: int | None,
    reports: tuple[tuple[str, str], ...],
    form: str,
    **asked_for: Any,
) -> int:
    """Check that filters are sound, wanted ones are there, and (--deep) that none misses a value.

    Structure always: headers, lengths, offsets, overlaps with other parts of the file, and the wrong
    filters that known writers leave. Each finding has a rule's stable id, which --explain explains.

    A policy says what a team asks of its files: bloom.toml, or [tool.bloom] in pyproject.toml, in this
    folder or the nearest one above that has one. --init writes one.

    Exits with 1 if there is a finding worse than a note that is neither switched off nor in the baseline.
    """
    if explain is not None:
        return _explain(explain, form)
    if options.was_given("seed") and asked_for["sample"] is None and asked_for["sample_row_groups"] is None:
        raise UsageError("--seed is of a sample, and none is asked for", hint="--sample 5%")
    if init:
        from bloomcli.cli.starter import write_policy

        return write_policy(dataset, policy, asked_for)
    found = policy_file(policy, no_policy=no_policy)
    from bloomcli.validation import gate

    asked = gate.ask(policy=found, **asked_for)
    if reports:
        from bloomcli.cli.reports import check

        check([path for _, path in reports], (found, asked_for["baseline"], asked_for["table_schema"]))
    report = _run(dataset, asked, errors_told=not reports and form in {"text", "json"})
    _write(report, form, max_per_rule, sys.stdout)
    sys.stdout.flush()  # what comes next may fail
    for other, path in reports:
        _save(report, other, path, max_per_rule)
    return report.exit_code


def _run(dataset: Dataset, asked: GateRequest, *, errors_told: bool) -> GateReport:
    from bloomcli.validation import gate

    if dataset.single is not None:
        return _single(dataset.single, asked, errors_told=errors_told)
    check_engine(dataset)
    paths = named_paths(dataset)
    if dataset.engine == "spark":
        from bloomcli.datasets import spark

        session = spark_session(dataset)
        return asked.report(spark.run("validate", paths, asked.options(), session=session, choose=asked.choose))
    from bloomcli.datasets import local

    tasks = gate.tasks_for(asked, paths)
    with output.Bars() as bars:
        done = local.run(tasks, jobs=dataset.jobs, fail_fast=dataset.fail_fast, on_row=meter(bars, tasks))
    return asked.report(done)


def _single(path: str, asked: GateRequest, *, errors_told: bool) -> GateReport:
    """One file. Where it can't be read a person is told so by the error; other forms of report hold it, and
    where something was found before, all do."""
    from bloomcli.datasets import task
    from bloomcli.errors import BloomError
    from bloomcli.validation import gate

    tasks = gate.tasks_for(asked, [path])
    if not tasks:  # the policy excludes it
        return gate.none(asked)
    (one,) = tasks
    with output.Bars() as bars:
        if errors_told:
            from bloomcli.commands.validate import validate

            try:
                row = task.validated(validate(one.path, progress=bars, **one.options))
            except BloomError as error:
                if not error.findings:
                    raise
                row = task.failed(one.path, error)
        else:
            row = task.run(one, bars)
    return gate.alone(row, asked, row.seconds)


def _write(report: GateReport, form: str, per_rule: int | None, stream: TextIO) -> None:
    limit = {} if per_rule is None else {"per_rule": per_rule}
    if form == "junit":
        from bloomcli.report import junit

        junit.write(report, stream)
    elif form == "sarif":
        from bloomcli.report import sarif

        sarif.write(report, stream)
    elif form == "github":
        from bloomcli.report import github

        github.write(report, stream, **limit)
    elif form == "json":
        from bloomcli.report import json

        json.write("validate", report, stream)
    else:
        from bloomcli.report import render, text_gate

        render.write(text_gate.gate(report, **limit), stream)


def _save(report: GateReport, form: str, path: str, per_rule: int | None) -> None:
    from bloomcli.cli.reports import save

    stream = io.StringIO()
    _write(report, form, per_rule, stream)
    save(path, stream.getvalue())


def _explain(name: str, form: str) -> int:
    """Rules are texts: they take the place of the look at files, and of what would be made of that."""
    for parameter, option in (("init", "--init"), ("reports", "--report")):
        if options.was_given(parameter):
            raise UsageError(f"--explain looks at no files: there is nothing for {option}")
    if form != "text":
        raise UsageError(
            f"--explain prints text, not {form}", hint="a SARIF report has the pages of the rules that it names"
        )
    from bloomcli.report import render, text_rules

    render.write(text_rules.rule_page(name) if name else text_rules.rule_list(), sys.stdout)
    return 0
