"""bloom advise"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bloomcli.cli import grouped, options, output
from bloomcli.cli.dataset import Dataset, dataset_options, engine_of, named_paths, table_options
from bloomcli.cli.options import policy_file
from bloomcli.cli.reports import prepare, save_all
from bloomcli.commands.option import WRITE
from bloomcli.commands.options import AdviseOptions
from bloomcli.errors import UsageError
from bloomcli.words import plural

if TYPE_CHECKING:
    from bloomcli.advice.command_line import Source
    from bloomcli.datasets.engine import Engine

_policy_options = options.bundle(
    grouped.option(
        "--policy",
        "new_policy",
        type=options.FILE,
        metavar="FILE",
        help="Also write the recommended filters as a policy, for `bloom add --policy` and `bloom validate`.",
        group=WRITE,
        common=True,
    ),
    grouped.option("--overwrite", is_flag=True, help="Let --policy replace an existing file.", group=WRITE),
)
"""Options for the policy that is written."""


@grouped.command(
    short_help="Advise which columns need filters, at which sizes.",
    epilog="""\b
Examples:
  bloom advise /data/orders
  bloom advise /data/orders --queries queries.sql --readers spark,trino
  bloom advise /data/orders --budget 2% --queries logs/ --table-name orders
  bloom advise /data/orders --policy bloom.toml
  bloom advise /data/orders --report html=advice.html
  bloom advise orders.parquet --columns 'user.*' --sample 50 --seed 7
  bloom advise orders/ -f json | jq '.columns[]|select(.recommended)|.column'
  bloom advise --table ice.db.orders --queries queries.sql

\b
How to get a query log, as lines of JSON with the key "query":
  Spark SQL, Thrift Server, Kyuubi, from event logs:
    jq -c 'select(.Event|endswith("SQLExecutionStart"))' LOG |
    jq -c '{query: .description}'
  Trino, since its start; an event listener keeps more:
    SELECT query FROM system.runtime.queries WHERE state = 'FINISHED'
  Databricks:
    SELECT statement_text AS query FROM system.query.history
    WHERE statement_type = 'SELECT'
  Snowflake:
    SELECT query_text AS "query" FROM snowflake.account_usage.query_history
  BigQuery:
    SELECT query FROM `region-us`.INFORMATION_SCHEMA.JOBS
  ClickHouse:
    SELECT query FROM system.query_log WHERE type = 'QueryFinish'""",
)
@options.files_argument
@options.options_of(AdviseOptions)
@_policy_options
@options.format_option("text", "json", "csv")
@options.reports_option("text", "json", "csv", "html")
@table_options()
@dataset_options
def command(
    dataset: Dataset,
    new_policy: str | None,
    overwrite: bool,
    form: str,
    reports: tuple[tuple[str, str], ...],
    **options_: Any,
) -> int:
    """Advise which columns need Bloom filters, at which sizes, and which columns don't.

    Reads the footers of all files, and the values of a sample of their row groups. Sampled values, and
    values that the columns don't have, are looked up in min/max statistics, dictionaries, existing
    filters, and new filters that are built in memory. A filter is recommended if lookups (= and IN) read
    clearly less with it than today. Existing filters are judged, too. No file is changed.

    The report begins with what lookups read today and with filters, what the filters cost, and the command
    that adds them. Without --queries, half of the looked-up values are ones that the column has (--present
    sets the share), all columns count equally, and columns of measures, such as DOUBLE or TIMESTAMP, get a
    filter only if --columns names them.

    A budget is spent on the filters that save most per byte: columns that are looked up often get large
    filters, and other columns small ones.

    Exits with 0 whether or not a filter is recommended, and with 3 if a file could not be read.
    """
    from bloomcli.advice import advise
    from bloomcli.report import text_advice

    if overwrite and new_policy is None:
        raise UsageError("--overwrite is for --policy", hint="add --policy FILE")
    chosen = AdviseOptions(policy=policy_file(None, no_policy=False), **options_)
    if new_policy is not None:
        from bloomcli.cli.policies import check

        check(new_policy, overwrite=overwrite, others=(chosen.table_schema, *options_["queries"]))
    prepare(reports, (new_policy, dataset.files_from, options_["table_schema"], *options_["queries"]))
    paths = named_paths(dataset)
    engine = engine_of(dataset)
    source = _source(dataset, chosen, engine)
    report = advise.advise(engine, paths, chosen, source)
    output.write("advise", report, form, text_advice.advice)
    if report.fpp < chosen.fpp and options.was_given("fpp"):
        sys.stdout.flush()
        output.say(f"bloom: --fpp {chosen.fpp:g} is above the policy's max-fpp, so {report.fpp:g} was used", err=True)
    if report.failed:
        (_, first), *others = report.failed
        more = f"; {plural(len(others), 'more file')} could not be read" if others else ""
        sys.stdout.flush()
        output.say(f"bloom: {first}{more}", err=True)
    save_all(reports, lambda other, stream: output.write("advise", report, other, text_advice.advice, stream))
    if new_policy is not None:
        from bloomcli.cli.policies import write_recommended

        sys.stdout.flush()  # the next step may fail
        write_recommended(new_policy, report, source, chosen, overwrite=overwrite, quiet=form != "text")
    return report.exit_code


def _source(dataset: Dataset, chosen: AdviseOptions, runs: Engine) -> Source:
    """The files, as the commands in the report name them."""
    from bloomcli.advice.command_line import of_paths, of_table, reader_options

    engine, readers = dataset.engine_words, reader_options(chosen)
    if dataset.table is not None:
        from bloomcli.tables.reading import TableEngine

        name = runs.table.name_in_sql if isinstance(runs, TableEngine) else dataset.table.table
        return of_table(name, where=dataset.table.where, engine=engine, readers=readers)
    return of_paths(
        dataset.paths,
        files_from=dataset.files_from,
        engine=engine,
        readers=readers,
        single=dataset.single is not None,
    )
