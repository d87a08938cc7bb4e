"""The options of the commands: one class for each command, with defaults and checks.

The command line, the library's functions, worker processes and Spark use the same objects. They are immutable, can be
pickled, and contain neither input files nor progress callbacks. The functions of the package take the fields as
keywords, and the command line makes its options of them: each is written once, here, with its help.

Each value is checked when an object is made (`bloomcli.commands.option.Checked`). Code that uses options calls
`checked` first, which raises an error or returns complete options: the policy and the table's schema are read.
Calling it again costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Self, cast

from bloomcli import limits
from bloomcli.commands.option import (
    CHECKS,
    ENCRYPTION,
    LOOKUPS,
    OUTPUT,
    POLICY,
    RUN,
    SIZE,
    TABLES,
    WRITE,
    Checked,
    option,
    read_policy,
)
from bloomcli.commands.sampling import read_budget, share
from bloomcli.commands.values import Value, texts
from bloomcli.errors import UsageError
from bloomcli.formats.add_options import checked_options, own_options
from bloomcli.formats.format import OptionValues
from bloomcli.formats.keys import Keys
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.change import ADDITIONS
from bloomcli.model.file import POWER_OF_TWO, SIZES
from bloomcli.model.schema import ColumnNames
from bloomcli.policy.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Checked):
    """The options that all commands have."""

    command: ClassVar[str]
    """The name of the command and of its module."""
    heavy: ClassVar[bool] = False
    """Rows hold more than reports keep (`FileRow.reported`), so the driver processes them one by one."""

    names: ColumnNames | None = None
    """The names that the files' table has for their columns. `columns` and the policy then contain the table's paths.
    These names come from the table, not from the user."""
    keys: Keys | None = option(
        None, "The keys of encrypted files: a `bloomcli.Keys`, or a mapping of its fields.", "keys", group=ENCRYPTION
    )
    """On the command line several options: `bloomcli.cli.options.key_options`."""

    def checked(self) -> Self:
        """The same options, complete.

        Raises:
            UsageError: options that contradict each other, a figure out of range, a file that can't be read.
        """
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOptions(Options):
    """Options of `find`, except for the values."""

    command: ClassVar[str] = "find"

    column: str = option(
        "", "The leaf column that has the values.", "column", metavar="NAME", flags=("-c", "--column"), common=True
    )
    select: Sequence[str] = option(
        (),
        "Columns of the rows to show: leaf columns and groups.  [default: all]",
        "columns",
        metavar="NAMES",
        common=True,
    )
    limit: int | None = option(None, "Show the first N rows only.", "number", metavar="N", least=1, common=True)
    files_only: bool = option(False, "Show the paths of files with such rows, and no rows.", "flag", group=OUTPUT)
    maybe: bool = option(
        False, "Show the paths of files that may have such rows, and read no rows.", "flag", group=OUTPUT
    )
    partitions: tuple[tuple[str, Any], ...] = ()
    """The partition columns that the directories of the files have (`bloomcli.commands.partitions`), with their Arrow
    types. They come from the listing, not from the user."""
    as_files: bool = option(
        False, "Search the files of a table as plain files, with rows that the table has replaced or deleted.", "flag"
    )

    @property
    def rows(self) -> bool:
        """Whether the search returns rows, and not only files."""
        return not (self.files_only or self.maybe)

    def checked(self) -> Self:
        """The same options. Raises UsageError."""
        if not self.column:
            raise UsageError("no column to find values in", hint="name it with --column")
        if self.files_only and self.maybe:
            raise UsageError("--files-only and --maybe exclude each other", hint="leave one of them out")
        if (self.files_only or self.maybe) and (self.select or self.limit is not None):
            raise UsageError("--select and --limit are about rows", hint="leave out --files-only and --maybe")
        return self


Name = str | os.PathLike[str]

FPP: Final = 0.01
"""The default false-positive rate of filters."""

_SCHEMA: Final = (
    "The table's schema (Spark's or Iceberg's JSON, or DDL), for readers that look values up at its types."
)


def columns_option(text: str) -> Any:
    """The option ``--columns`` of a command."""
    return option((), text, "columns", metavar="NAMES", flags=("-c", "--columns", "--column"), common=True)


def exclude_option(text: str) -> Any:
    """The option ``--exclude`` of a command."""
    return option((), text, "columns", metavar="NAMES")


def rate_option(default: float | None, text: str) -> Any:
    """The option ``--fpp`` of a command."""
    return option(default, text, "rate", metavar="RATE", group=SIZE, common=True)


def readers_option(text: str) -> Any:
    """The option ``--readers`` of a command. The command line's help lists the known engines behind the text."""
    return option((), text, "engines", metavar="ENGINES", group=POLICY)


def policy_option(text: str) -> Any:
    """The options ``--policy`` and ``--no-policy`` of a command."""
    return option(None, text, "policy", metavar="FILE", group=POLICY, common=True)


def queries_option() -> Any:
    """The option ``--queries`` of a command."""
    return option(
        (),
        "A log of SQL queries, or a directory of them: statements that end in ;, or lines of JSON with a statement"
        ' under "query". They determine which columns are looked up, and by which values; repeats.',
        "paths",
        metavar="LOG",
        group=LOOKUPS,
        common=True,
    )


def dialect_option() -> Any:
    """The option ``--dialect`` of a command, by sqlglot's name."""
    return option(
        "spark",
        "The SQL dialect of the queries: spark, trino, duckdb, clickhouse, bigquery, ...",
        "text",
        metavar="NAME",
        group=LOOKUPS,
    )


def table_name_option() -> Any:
    """The option ``--table-name`` of a command."""
    return option(
        (),
        "The table's name in the queries.  [default: the only table that they read]",
        "names",
        metavar="NAMES",
        group=LOOKUPS,
    )


def threads_option() -> Any:
    """The option ``--threads`` of a command."""
    text = "Column chunks read at a time.  [default: the number of cores]"
    return option(None, text, "number", metavar="N", least=1, group=RUN)


def seed_option(text: str) -> Any:
    """The option ``--seed`` of a command: the same seed selects the same sample."""
    return option(0, text, "integer", metavar="N")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions(Options):
    """Options of commands that work on columns: leaf paths and globs."""

    columns: Sequence[str] = columns_option("Work only on these leaf columns; globs are allowed.")
    exclude: Sequence[str] = exclude_option("Leaf columns to leave out, even if --columns names them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions(ColumnOptions):
    """Options of `inspect`. `every` applies to many files, the options below it to one file."""

    command: ClassVar[str] = "inspect"

    columns: Sequence[str] = columns_option("Show only these leaf columns; globs are allowed.")
    exclude: Sequence[str] = exclude_option("Don't show these leaf columns.")
    every: bool = option(
        False,
        "Show every filter of a file instead of one line per column; for many files, every file, and with --format"
        " csv every filter of each file.",
        "flag",
        flags=("-a", "--all"),
        group=OUTPUT,
        common=True,
    )
    """The rows of many files contain every filter. The report on one file always does."""
    pages: bool = option(
        False,
        "List the pages of one column with their headers; in ORC the streams, in Mosaic the buckets.",
        "flag",
        group=OUTPUT,
    )
    indexes: bool = option(
        False,
        "List the index entries of one column: Parquet's column and offset index, ORC's row index and its filters"
        " joined by stripe, Mosaic's statistics.",
        "flag",
        group=OUTPUT,
    )
    schema: bool = option(False, "Show the schema as a tree, in the format's own terms.", "flag", group=OUTPUT)
    footer: bool = option(
        False, "Write the whole decoded footer as JSON: unknown fields by number, bytes in hex.", "flag", group=OUTPUT
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(ColumnOptions):
    """Options of commands that change files."""

    output: Name | None = option(
        None,
        "Write the new file here; for many files, below this directory. Outputs of earlier runs are kept, or made"
        " again if they don't match the options.",
        "output",
        metavar="FILE",
        flags=("-o", "--output"),
        group=WRITE,
        common=True,
    )
    in_place: bool = option(False, "Replace the file itself, atomically.", "flag", group=WRITE, common=True)
    force: bool = option(False, "Replace files even in a table whose log records their size.", "flag", group=WRITE)
    overwrite: bool = option(False, "Let --output replace an existing file.", "flag", group=WRITE)
    dry_run: bool = option(
        False,
        "Write nothing; show what would be done, and whether the output could be written.",
        "flag",
        flags=("-n", "--dry-run"),
        group=WRITE,
        common=True,
    )

    @property
    def reads_to_plan(self) -> bool:
        """Whether only the values of columns show what there is to do."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOptions(WriteOptions):
    """Options of `remove`."""

    command: ClassVar[str] = "remove"

    columns: Sequence[str] = columns_option("Remove only the filters of these leaf columns; globs are allowed.")
    exclude: Sequence[str] = exclude_option("Keep the filters of these leaf columns.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions(WriteOptions):
    """Options of `fold`."""

    command: ClassVar[str] = "fold"

    columns: Sequence[str] = columns_option("Fold only the filters of these leaf columns; globs are allowed.")
    exclude: Sequence[str] = exclude_option("Don't fold the filters of these leaf columns.")
    fpp: float = rate_option(FPP, "The highest false-positive rate of a folded filter, measured on its bits.")
    max_bytes: int | None = option(
        None,
        "Fold to at most this size, even if the filter then exceeds the rate.",
        "size",
        metavar="SIZE",
        least=limits.FILTER_MIN_BYTES,
        group=SIZE,
        common=True,
    )
    size: str = option(
        POWER_OF_TWO,
        "Sizes of folded filters: powers of two, or any multiple of 32 bytes. Tight sizes need --readers, which all"
        " have to accept them.",
        "choice",
        choices=SIZES,
        group=SIZE,
    )
    readers: Sequence[str] = readers_option(
        "Engines that read the files, for --size tight.  [default: all that read files directly]"
    )

    def checked(self) -> Self:
        """The readers by their usual names. Raises UsageError."""
        from bloomcli.checks.additions import refuse_without_readers

        policy = read_policy(None, readers=self.readers, size=self.size)
        refuse_without_readers(policy)
        return replace(self, readers=policy.whole.readers or ())

    def size_rule(self) -> SizeRule:
        """The rule for the size of folded filters."""
        return SizeRule(fpp=self.fpp, max_bytes=self.max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOptions(WriteOptions):
    """Options of `repair`."""

    command: ClassVar[str] = "repair"

    columns: Sequence[str] = columns_option(
        "Repair only these leaf columns; globs are allowed. With --add page-index, all columns get an offset index.  "
        "[default: all]"
    )
    exclude: Sequence[str] = exclude_option("Don't repair these leaf columns.")
    add: Sequence[str] = option(
        (),
        "Add what is missing, and read only columns that lack something: page-index, statistics. Repeats and takes"
        " commas.",
        "names",
        metavar="WHAT",
        group=WRITE,
        common=True,
    )
    threads: int | None = threads_option()

    @property
    def reads_to_plan(self) -> bool:
        """True for a mend: only values show what is wrong."""
        return not self.add

    def checked(self) -> Self:
        """The same options. Raises UsageError."""
        unknown = [name for name in self.add if name not in ADDITIONS]
        if unknown:
            raise UsageError(
                f"--add takes {' and '.join(ADDITIONS)}, not {unknown[0]!r}",
                hint=f"--add {','.join(ADDITIONS)} adds both",
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions(WriteOptions):
    """Options of `add`."""

    command: ClassVar[str] = "add"

    columns: Sequence[str] = columns_option(
        "Leaf columns to add filters for, as dotted paths; globs are allowed, and leave out columns that can't have a"
        " filter.  [default: the columns that the policy requires]"
    )
    fpp: float | None = rate_option(
        None,
        "False-positive rate that each filter has to meet, measured on its bits. ORC filters have the size that"
        " orc-core computes for the rate, and may miss it slightly: the report names these filters only if a rate is"
        " given.  [default: the policy's max-fpp for the column, or else 0.01]",
    )
    """If None, filters have to meet the policy's rate for the column. Without such a rate, new filters are made for
    `FPP`, and existing filters need not meet it."""
    ndv: int | None = option(
        None,
        "Size filters by formula for N distinct values per row group, instead of measuring. In ORC, N is at most the"
        " number of rows of a row group, except below lists and maps.",
        "number",
        metavar="N",
        least=1,
        group=SIZE,
    )
    max_bytes: int | None = option(
        None,
        "Maximum size of one filter's bitset in bytes, rounded down to a power of two unless --size is tight; the"
        " report names the filters that then miss the rate.",
        "size",
        metavar="SIZE",
        least=limits.FILTER_MIN_BYTES,
        group=SIZE,
    )
    size: str | None = option(
        None,
        "Sizes of Parquet filters: powers of two, or any multiple of 32 bytes, a third less on average. Tight sizes"
        " need --readers, or the policy's readers, which all have to accept them.  [default: the policy's, or else"
        " power-of-two]",
        "choice",
        choices=SIZES,
        group=SIZE,
    )
    format_options: OptionValues = option({}, "Options of single formats, by name.", "formats")
    """Options of single formats, by name. The command line and the functions take each by its own name, too."""
    replace: bool = option(False, "Build new filters for columns that have filters already.", "flag", group=WRITE)
    readers: Sequence[str] = readers_option(
        "Engines that read the files. Globs leave out columns in which one of them would lose rows because of a sound"
        " filter; naming such a column is an error. Impala needs filters of two blocks: 32 bytes more for up to 26"
        " distinct values in a row group.  [default: the policy's, or else all that read files directly]"
    )
    table_schema: Name | None = option(None, _SCHEMA, "file", metavar="FILE", group=POLICY)
    policy: Policy | Name | None = policy_option(
        "The policy, TOML. Without --columns, it selects the columns that get filters. Its rates, its readers, its"
        " table's schema and its settings for the rules about readers apply."
    )
    threads: int | None = threads_option()

    def checked(self) -> Self:
        """All settings about readers in the policy. Raises UsageError."""
        from bloomcli.checks.additions import refuse_without_readers

        checked_options(self.format_options)
        policy = read_policy(self.policy, readers=self.readers, table_schema=self.table_schema, size=self.size)
        refuse_without_readers(policy)
        if not self.columns and not policy.requires:
            raise UsageError(
                "no columns to add filters for"
                + (f": the policy {policy.path} requires none" if policy.path else ""),
                hint="name them with --columns, or require them in a policy;"
                " `bloom advise FILE` says which columns need filters",
            )
        return replace(self, policy=policy, readers=(), table_schema=None, size=None)

    @classmethod
    def of(cls, **keywords: Any) -> Self:
        """The options by keywords, among which those of single formats have their own names."""
        of_formats = {opt.name: keywords.pop(opt.name) for opt in own_options() if opt.name in keywords}
        settings = {name: value for name, value in of_formats.items() if value is not None and value is not False}
        options = cls(**keywords)
        return replace(options, format_options={**options.format_options, **settings})

    @property
    def sized(self) -> bool:
        """Whether the options determine the size of filters: by a rate, or by a number of values."""
        return self.fpp is not None or self.ndv is not None

    def size_rule(self) -> SizeRule:
        """The rule for the size of new filters."""
        return SizeRule(
            fpp=FPP if self.fpp is None else self.fpp,
            ndv=self.ndv,
            max_bytes=self.max_bytes,
            options=self.format_options,
            by_default=not self.sized,
        )


_LIBRARIES: Final = frozenset({"pandas", "polars", "pyarrow", "pyspark"})
"""Libraries whose columns and frames are values."""


def _texts_in(values: Any, column: str | None) -> tuple[str, ...]:
    """The texts of values, or of Arrow data, a series, or a data frame's column. Raises UsageError."""
    library = type(values).__module__.partition(".")[0]
    arrow = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    if column is None and not arrow and library not in _LIBRARIES:
        return texts(values)
    from bloomcli.commands.value_frames import texts_of_frame

    return texts_of_frame(values, column)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(Options):
    """Options of `probe`."""

    command: ClassVar[str] = "probe"

    values: Value | Sequence[Value] | Any = ()
    column: str | None = option(
        None,
        "The leaf column; optional if only one column has filters.",
        "column",
        metavar="NAME",
        flags=("-c", "--column"),
        common=True,
    )
    values_column: str | None = option(
        None, "The data frame's column with the values.  [default: the only one]", "column", in_cli=False
    )
    exclude: Sequence[str] = exclude_option("Leaf columns to ignore when --column is missing.")
    explain: bool = option(False, "Show the hash, the block and the bits of each lookup.", "flag", group=OUTPUT)
    skip_blank: bool = option(
        False, "Skip blank values if the column's type has none; for lines of a file.", "flag", in_cli=False
    )

    def checked(self) -> Self:
        """The values as texts. Raises UsageError."""
        values = _texts_in(self.values, self.values_column)
        if not values:
            raise UsageError("no values to probe", hint="name them with --value, or in a file with --values-from")
        return replace(self, values=values, values_column=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyOptions(Options):
    """Options of `survey`, which examines files to write a first policy for them."""

    command: ClassVar[str] = "survey"

    columns: Sequence[str] = ()
    """Leaf paths or globs that each file must have."""
    policy: Policy = field(default_factory=Policy)
    """The readers whose faults are findings, and the table's schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions(ColumnOptions):
    """Options of `validate` and `bloomcli.gate`."""

    command: ClassVar[str] = "validate"

    columns: Sequence[str] = columns_option(
        "Check only these leaf columns; globs are allowed. With --deep, columns without filters are checked too."
    )
    exclude: Sequence[str] = exclude_option(
        "Report nothing for these leaf columns, even if another option names them."
    )
    require: Sequence[str] = option(
        (),
        "Leaf columns that must have a filter in every row group that has values; globs are allowed.",
        "columns",
        metavar="NAMES",
        flags=("-r", "--require"),
        group=CHECKS,
        common=True,
    )
    max_fpp: float | None = option(
        None, "Highest accepted false-positive rate, measured.", "rate", metavar="RATE", group=CHECKS, common=True
    )
    max_oversize: float | None = option(
        None,
        "Highest accepted ratio of a filter's size to the size that its values need.",
        "factor",
        metavar="FACTOR",
        group=CHECKS,
    )
    deep: bool = option(
        False,
        "Read the columns again and prove that readers that skip data lose no value.",
        "flag",
        group=CHECKS,
        common=True,
    )
    policy: Policy | Name | None = policy_option("The policy, TOML; the other options take precedence.")
    readers: Sequence[str] = readers_option(
        "Engines that read the files: filters in which they look values up wrongly are findings."
    )
    table_schema: Name | None = option(None, _SCHEMA, "file", metavar="FILE", group=POLICY)
    sample_row_groups: str | None = option(
        None,
        "With --deep: read only this part of each file's row groups (ORC: stripes), 5% or a number.",
        "share",
        metavar="SHARE",
        group=CHECKS,
    )
    seed: int = seed_option("Seed of the samples: the same seed selects the same part.")
    threads: int | None = option(
        None,
        "Column chunks that --deep reads at a time.  [default: the number of cores]",
        "number",
        least=1,
        in_cli=False,
    )
    sample: str | None = option(
        None, "Check only this part of the files: 5%, or a number.", "share", metavar="SHARE", group=CHECKS
    )
    baseline: Name | None = option(None, "Known findings, which don't count.", "file", metavar="FILE", group=CHECKS)
    update_baseline: bool = option(False, "Write the findings of this run to the baseline.", "flag", group=CHECKS)

    def checked(self) -> Self:
        """All limits, readers and types in the policy, and the samples in their usual form. Raises UsageError."""
        if self.update_baseline and self.baseline is None:
            raise UsageError("there is no baseline to update", hint="add --baseline FILE")
        if self.sample_row_groups is not None and not self.deep:
            raise UsageError("a sample of row groups is for --deep: without it no values are read", hint="add --deep")
        policy = read_policy(
            self.policy,
            readers=self.readers,
            table_schema=self.table_schema,
            max_fpp=self.max_fpp,
            max_oversize=self.max_oversize,
        )
        if self.table_schema is not None and not any(part.readers for part in (policy.whole, *policy.files)):
            raise UsageError(
                "a table's schema is for readers, and none is named",
                path=os.fspath(self.table_schema),
                hint="--readers spark,trino, or readers in the policy",
            )
        return replace(
            self,
            policy=policy,
            readers=(),
            table_schema=None,
            max_fpp=None,
            max_oversize=None,
            sample=None if self.sample is None else share(self.sample).text,
            sample_row_groups=None if self.sample_row_groups is None else share(self.sample_row_groups).text,
        )


OF_MANY_FILES: Final = frozenset({"sample", "baseline", "update_baseline"})
"""The options of `validate` that `bloomcli.validate`, and the functions for Spark, don't take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions(ColumnOptions):
    """Options of `advise`."""

    command: ClassVar[str] = "advise"

    columns: Sequence[str] = columns_option("Examine only these leaf columns; globs are allowed.")
    exclude: Sequence[str] = exclude_option("Don't examine these leaf columns.")
    queries: Name | Sequence[Name] = queries_option()
    dialect: str = dialect_option()
    table_name: Sequence[str] = table_name_option()
    budget: str | None = option(
        None,
        "Maximum total size of new filters, such as 64MiB, or a share of the files, such as 2%. Selects the columns,"
        " and for each the rate --fpp or a higher one.",
        "text",
        metavar="SIZE",
        group=SIZE,
        common=True,
    )
    fpp: float = rate_option(
        FPP,
        "False-positive rate of new filters, at most the policy's max-fpp; with --budget, the lowest rate of a"
        " filter.",
    )
    present: float = option(
        0.5,
        "Share of the looked-up values that the files have. Counts for columns whose values aren't known from"
        " --queries.",
        "part",
        metavar="SHARE",
        group=LOOKUPS,
    )
    readers: Sequence[str] = readers_option(
        "Engines that read the files: columns in which one of them would lose rows because of a sound filter get"
        " none, and dictionaries count if all of them use dictionaries.  [default: the policy's, or else all that"
        " read files directly]"
    )
    table_schema: Name | None = option(None, _SCHEMA, "file", metavar="FILE", group=POLICY)
    policy: Policy | Name | None = option(
        None,
        "A policy with readers and the table's schema, or its file; the other options take precedence.",
        "policy",
        in_cli=False,
    )
    sample: str | None = option(
        None,
        "Read values from this part of the row groups, 5% or a number, and look them up in up to as many others."
        "  [default: a number that takes seconds]",
        "share",
        metavar="SHARE",
    )
    """The number or share (``5%``) of row groups from which values are read. They are looked up in filters that are
    built for as many other row groups. If None, a number that takes seconds."""
    seed: int = seed_option("Seed of the sample: the same seed selects the same part.")

    def checked(self) -> Self:
        """All settings about readers in the policy. Raises UsageError."""
        if self.budget is not None:
            read_budget(self.budget)
        if self.table_name and not self.queries:
            raise UsageError("a table's name is for finding it in queries", hint="add --queries FILE")
        policy = read_policy(self.policy, readers=self.readers, table_schema=self.table_schema)
        return replace(
            self,
            policy=policy,
            fpp=self.fpp if policy.whole.max_fpp is None else min(self.fpp, policy.whole.max_fpp),
            readers=(),
            table_schema=None,
            sample=None if self.sample is None else share(self.sample).text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions(ColumnOptions):
    """Options of `trial`."""

    command: ClassVar[str] = "trial"

    columns: Sequence[str] = columns_option(
        "The leaf columns to look values up in; globs are allowed.  [default: those that have filters, or that the"
        " queries look up]"
    )
    exclude: Sequence[str] = exclude_option("Don't look values up in these leaf columns.")
    readers: Sequence[str] = option(
        (),
        "Readers to run; the report shows which ones aren't installed.  [default: all that look at filters]",
        "trial-readers",
        metavar="READERS",
        common=True,
    )
    values: int | None = option(
        None,
        "Values of each column to look up: N that the file has, and N that it doesn't. With --queries: the N most"
        " frequent ones.  [default: as many as a minute allows, up to 20]",
        "number",
        metavar="N",
        least=1,
        group=LOOKUPS,
        common=True,
    )
    queries: Name | Sequence[Name] = queries_option()
    dialect: str = dialect_option()
    table_name: Sequence[str] = table_name_option()
    runs: int = option(
        5,
        "Number of timed runs of each lookup, alternately with filters and without.",
        "number",
        metavar="N",
        least=0,
        group=RUN,
    )
    fpp: float = rate_option(FPP, "False-positive rate of the filters in temporary copies.")
    sample: str | None = option(
        None,
        "For many files, try this part: 5%, or a number of files.  [default: up to 4, of up to 256 MiB together]",
        "share",
        metavar="SHARE",
    )
    seed: int = seed_option("Seed of the values and the files: the same seed selects the same ones.")
    timeout: float = option(
        300, "Time limit for the start of a reader, and for each lookup.", "seconds", metavar="SECONDS", group=RUN
    )
    keys: None = None
    """None if the readers get no keys."""

    def checked(self) -> Self:
        """The sample in its usual form. Raises UsageError."""
        if self.table_name and not self.queries:
            raise UsageError("a table's name is for finding it in queries", hint="add --queries FILE")
        return self if self.sample is None else replace(self, sample=share(self.sample).text)


def policy_path(options: Options) -> str | None:
    """The policy file of checked options; None without one, and for commands that read none."""
    policy = getattr(options, "policy", None)
    return policy.path if isinstance(policy, Policy) else None


def policy_of(options: AddOptions | AdviseOptions | ValidateOptions) -> Policy:
    """The policy of checked options."""
    if not isinstance(options.policy, Policy):
        raise TypeError("these options weren't checked")
    return options.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions(Options):
    """Options of `index build` and `index update`."""

    command: ClassVar[str] = "index"
    heavy: ClassVar[bool] = True

    columns: Sequence[str] = columns_option(
        "The leaf columns to index: whole paths. A file needn't have all of them."
    )
    fpp: float = rate_option(
        FPP, "The mean false-positive rate of the index's filters, as far as the files' filters have it."
    )
    dry_run: bool = option(
        False,
        "Write nothing; say what would be read, by the files' footers.",
        "flag",
        flags=("-n", "--dry-run"),
        group=WRITE,
        common=True,
    )
    allow_plaintext_index: bool = option(
        False,
        "Index encrypted columns, too: anybody who reads the index can then test whether they have a value.",
        "flag",
        group=ENCRYPTION,
    )

    def checked(self) -> Self:
        """The options with the names without duplicates. Raises UsageError."""
        columns = tuple(dict.fromkeys(self.columns))
        if not columns:
            raise UsageError("no columns to index", hint="name them with --columns")
        return replace(self, columns=columns)


OF_NEW_INDEXES: Final = frozenset({"columns", "fpp", "output", "overwrite"})
"""The options that only a new index takes: an update keeps those of the old one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTarget(Checked):
    """The index that `index build` and `index update` write."""

    output: str | os.PathLike[str] | None = option(
        None, "The index to write.", "output", metavar="INDEX", flags=("-o", "--output"), group=WRITE, common=True
    )
    overwrite: bool = option(False, "Let --output replace an existing file.", "flag", group=WRITE)
    force: bool = option(False, "Replace an index in a store even if an object lock is lost.", "flag", group=WRITE)

    @property
    def path(self) -> str:
        """The index; empty if a dry run has none."""
        return os.fspath(self.output or "")

    def checked(self, *, dry_run: bool, hint: str = "give output, or dry_run") -> Self:
        """The same target. Raises UsageError if an index is to be written and has no name."""
        if not self.output and not dry_run:
            raise UsageError("nowhere to write to", hint=hint)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(Checked):
    """A table, the selected part of it, and the way in which its files are replaced."""

    table: str = option(
        None,
        "Work on the data files of an Iceberg or Delta table instead of files: named as in Spark SQL or, to read it"
        " without Spark, by its directory.",
        "text",
        metavar="NAME",
        group=TABLES,
        common=True,
    )
    """The table's name in SQL: ``catalog.db.name``, ``delta.`/path` ``; to read it without Spark, also its
    directory."""
    where: str | None = option(
        None,
        "only files that may hold rows of this condition, according to partitions and statistics.",
        "text",
        metavar="SQL",
        group=TABLES,
    )
    from_properties: bool = option(
        False,
        "require the filters that the table's properties request (Iceberg:"
        " write.parquet.bloom-filter-*; Delta: parquet.bloom.filter.*).",
        "flag",
        group=TABLES,
    )
    commit_every: int | None = option(
        None,
        "replace N files by each commit.  [default: 1000 files or 64 GiB]",
        "number",
        metavar="N",
        least=1,
        group=TABLES,
    )
    new_row_ids: bool = option(
        False,
        "give rows of an Iceberg v3 table new row ids, instead of writing columns that keep them.",
        "flag",
        group=TABLES,
    )
    snapshot: int | None = option(
        None,
        "the files of this snapshot (Iceberg) or version (Delta).  [default: the newest]",
        "integer",
        metavar="ID",
        group=TABLES,
    )
    as_of: str | datetime | None = option(
        None,
        "the files of the snapshot at this time, such as 2026-11-01T12:00:00Z; without a zone it is in UTC.",
        "time",
        metavar="TIME",
        group=TABLES,
    )

    def __post_init__(self) -> None:
        """Check the options. Raises UsageError."""
        Checked.__post_init__(self)  # `super()` doesn't know the class that slots make
        if self.snapshot is not None and self.as_of is not None:
            raise UsageError("--snapshot and --as-of exclude each other", hint="leave one of them out")

    @property
    def time(self) -> datetime | None:
        """The time that `as_of` names, with its zone."""
        return cast("datetime | None", self.as_of)
