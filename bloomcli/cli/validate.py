"""bloom validate"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from bloomcli.cli import grouped, options, output
from bloomcli.cli.completion import complete_explained
from bloomcli.cli.dataset import Dataset, dataset_options, engine_of, named_paths, run_tasks, table_options
from bloomcli.cli.options import policy_file
from bloomcli.cli.reports import prepare, save_all
from bloomcli.commands.option import CHECKS, OUTPUT
from bloomcli.commands.options import ValidateOptions
from bloomcli.errors import BloomError, UsageError
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.model.gate import GateReport
    from bloomcli.validation.gate import GateRequest, GateResults


FORMS: Final = ("text", "json", "csv", "junit", "sarif", "github")
"""Forms of the report for standard output."""

_report_options = options.bundle(
    grouped.option(
        "--max-per-rule",
        type=click.IntRange(min=0),
        metavar="N",
        help="Findings shown per rule, in text and annotations; 0 for all.  [default: 5, annotations 10]",
        group=OUTPUT,
    ),
    options.all_option("Show every finding, as --max-per-rule 0."),
    options.reports_option(*FORMS, "html"),
    grouped.option(
        "--init", is_flag=True, help="Write a commented policy that the files meet, and stop.", group=CHECKS
    ),
    grouped.option(
        "--explain",
        metavar="[RULE|KEY]",
        is_flag=False,
        flag_value="",
        shell_complete=complete_explained,
        help="Explain a rule or a key of the policy, or list them, and stop.",
        group=OUTPUT,
        common=True,
    ),
)
"""Options for the output, and options that replace the check."""


@grouped.command(
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
@options.options_of(ValidateOptions)
@_report_options
@options.format_option(*FORMS)
@table_options(properties=True)
@partial(dataset_options, findings=True)
def command(
    dataset: Dataset,
    init: bool,
    explain: str | None,
    no_policy: bool,
    max_per_rule: int | None,
    every: bool,
    reports: tuple[tuple[str, str], ...],
    form: str,
    **options_: Any,
) -> int:
    """Check that filters are sound, that required ones exist, and (--deep) that none misses a value.

    Always checks the structure: headers, lengths, offsets, overlaps with other parts of the file, and known
    faulty writers. Each finding has the id of a rule, which --explain explains.

    A policy contains a team's requirements for its files: bloom.toml, or [tool.bloom] in pyproject.toml, in this
    folder or the nearest parent folder that has one. --init writes a policy.

    Exits with 1 if there is a finding worse than a note that is neither switched off nor in the baseline.
    """
    if explain is not None:
        return _explain(explain, form)
    if every and max_per_rule:
        raise UsageError("--all and --max-per-rule exclude each other", hint="leave one of them out")
    per_rule = 0 if every else max_per_rule
    if options.was_given("seed") and options_["sample"] is None and options_["sample_row_groups"] is None:
        raise UsageError("--seed needs a sample", hint="add --sample 5%")
    if init:
        from bloomcli.cli.policies import write_starter

        return write_starter(dataset, options_)
    from bloomcli.validation import gate

    policy = policy_file(options_.pop("policy"), no_policy=no_policy)
    request = gate.request(ValidateOptions(policy=policy, **options_))
    prepare(reports, (policy, options_["baseline"], options_["table_schema"]))
    results = _validate(dataset, request, print_errors=not reports and form in {"text", "json"})
    baseline = results.new_baseline()
    if baseline is not None:
        from bloomcli.validation.baseline import save

        save(baseline)
        if not options.is_quiet():
            entries = plural(len(baseline.entries), "entry")
            output.say(f"wrote the baseline {baseline.path}: {entries} of known findings", err=True)
    report = results.report(baseline)
    _write(report, form, per_rule, sys.stdout, quiet=options.is_quiet())
    save_all(reports, lambda other, stream: _write(report, other, per_rule, stream))
    return report.exit_code


def _validate(dataset: Dataset, request: GateRequest, *, print_errors: bool) -> GateResults:
    from bloomcli.validation import gate

    if dataset.single is not None:
        return _single(dataset.single, request, print_errors=print_errors)
    paths = named_paths(dataset)
    engine = engine_of(dataset)
    chosen = request.choose(engine.find(paths, request.options), paths)
    done = run_tasks(engine, engine.plan(chosen.files, request.options))
    return gate.results(request, chosen, done)


def _single(path: str, request: GateRequest, *, print_errors: bool) -> GateResults:
    """Check one file. If it can't be read, text and JSON raise the error unless there are findings already; other
    forms of report contain the error."""
    from bloomcli.datasets import task
    from bloomcli.datasets.engine import choose_engine
    from bloomcli.model.dataset import DatasetReport
    from bloomcli.validation import gate

    engine = choose_engine()
    chosen = request.choose(engine.find([path], request.options), [path])
    rows = []
    with output.Bars() as bars:
        for file_task in engine.plan(chosen.files, request.options):  # empty if the policy excludes the file
            if print_errors:
                from bloomcli.commands import validate

                try:
                    row = task.validate_row(validate.run(file_task.path, request.options, progress=bars))
                except BloomError as error:
                    if not error.findings:
                        raise
                    row = task.failed_row(file_task.path, error)
            else:
                row = task.run(file_task, bars)
            rows.append(row)
    seconds = sum(row.seconds for row in rows)
    done = DatasetReport(command="validate", engine="local", jobs=1, seconds=seconds, rows=tuple(rows))
    return gate.results(request, chosen, done)


def _write(report: GateReport, form: str, per_rule: int | None, stream: TextIO, *, quiet: bool = False) -> None:
    limit = {} if per_rule is None else {"per_rule": per_rule}
    if form in {"junit", "sarif"}:
        from bloomcli.report import junit, sarif

        (junit if form == "junit" else sarif).write(report, stream)
    elif form == "github":
        from bloomcli.report import github

        github.write(report, stream, **limit)
    else:
        from bloomcli.report import text_gate

        text = text_gate.faults if quiet else text_gate.gate
        output.write("validate", report, form, lambda gate_report: text(gate_report, **limit), stream)


def _explain(name: str, form: str) -> int:
    """Print the page of a rule or of a key of the policy, or list them. No file is checked."""
    for parameter, option in (("init", "--init"), ("reports", "--report"), ("quiet", "--quiet")):
        if options.was_given(parameter):
            raise UsageError(f"--explain checks no files, so {option} has no meaning")
    if form != "text":
        raise UsageError(
            f"--explain prints text, not {form}", hint="a SARIF report has the pages of the rules that it names"
        )
    from bloomcli.report import render, text_gate

    render.write(text_gate.page_of(name) if name else text_gate.all_pages(), sys.stdout)
    return 0
