"""The keywords of the package's functions, for editors and type checkers: the fields of the options' classes.

``tests/architecture/test_options.py`` checks that each has the names and types of its class's fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypedDict

from bloomcli.commands.options import Name
from bloomcli.concurrency.threads import Progress
from bloomcli.formats.keys import Keys
from bloomcli.formats.keywords import FormatKeywords, TableFormatKeywords
from bloomcli.model.dataset import FileRow
from bloomcli.policy.policy import Policy


class ExcludeKeyword(TypedDict, total=False):
    """The columns to leave out, and the keys of encrypted files."""

    exclude: Sequence[str]
    keys: Keys | None


class ColumnKeywords(ExcludeKeyword, total=False):
    """Keywords of `ColumnOptions`."""

    columns: Sequence[str]


class RunKeywords(TypedDict, total=False):
    """Keywords of `RunOptions`, for many files."""

    jobs: int | None
    fail_fast: bool
    on_row: Callable[[FileRow], None] | None


class ProgressKeyword(TypedDict, total=False):
    """The progress of one file."""

    progress: Progress | None


class TargetKeywords(TypedDict, total=False):
    """Keywords of `WriteOptions` that say where new files are written."""

    output: Name | None
    in_place: bool
    force: bool
    overwrite: bool


class DryRunKeyword(TypedDict, total=False):
    """Whether nothing is written."""

    dry_run: bool


class ReaderKeywords(TypedDict, total=False):
    """What is known of the readers."""

    readers: Sequence[str]
    table_schema: Name | None
    policy: Policy | Name | None


class FilterKeywords(ExcludeKeyword, DryRunKeyword, ReaderKeywords, TableFormatKeywords, total=False):
    """Keywords of `AddOptions`, except for the columns, the target, the threads and formats that no table has."""

    fpp: float | None
    ndv: int | None
    max_bytes: int | None
    size: str | None
    replace: bool


class AddOnSparkKeywords(FilterKeywords, FormatKeywords, TargetKeywords, total=False):
    """Keywords of `AddOptions` on Spark."""


class AddKeywords(AddOnSparkKeywords, RunKeywords, ProgressKeyword, total=False):
    """Keywords of `bloomcli.add`."""

    threads: int | None


class RemoveOnSparkKeywords(ColumnKeywords, TargetKeywords, DryRunKeyword, total=False):
    """Keywords of `RemoveOptions`."""


class RemoveKeywords(RemoveOnSparkKeywords, RunKeywords, ProgressKeyword, total=False):
    """Keywords of `bloomcli.remove`."""


class FoldRuleKeywords(ColumnKeywords, DryRunKeyword, total=False):
    """Keywords of `FoldOptions`, except for the target."""

    fpp: float
    max_bytes: int | None
    size: str
    readers: Sequence[str]


class FoldOnSparkKeywords(FoldRuleKeywords, TargetKeywords, total=False):
    """Keywords of `FoldOptions`."""


class FoldKeywords(FoldOnSparkKeywords, RunKeywords, ProgressKeyword, total=False):
    """Keywords of `bloomcli.fold`."""


class RepairRuleKeywords(ColumnKeywords, DryRunKeyword, total=False):
    """Keywords of `RepairOptions`, except for the target and the threads."""

    add: Sequence[str]


class RepairOnSparkKeywords(RepairRuleKeywords, TargetKeywords, total=False):
    """Keywords of `RepairOptions` on Spark."""


class RepairKeywords(RepairOnSparkKeywords, RunKeywords, ProgressKeyword, total=False):
    """Keywords of `bloomcli.repair`."""

    threads: int | None


class InspectKeywords(ColumnKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.inspect`."""

    every: bool
    pages: bool
    indexes: bool
    schema: bool
    footer: bool


class ProbeOnSparkKeywords(ExcludeKeyword, total=False):
    """Keywords of `ProbeOptions` on Spark."""

    column: str | None
    values_column: str | None


class ProbeKeywords(ProbeOnSparkKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.probe`."""

    explain: bool
    skip_blank: bool


class ValidateOnSparkKeywords(ColumnKeywords, ReaderKeywords, total=False):
    """Keywords of `ValidateOptions` on Spark."""

    require: Sequence[str]
    max_fpp: float | None
    max_oversize: float | None
    deep: bool


class RowGroupSampleKeywords(TypedDict, total=False):
    """The row groups of each file that a deep check reads."""

    sample_row_groups: str | None
    seed: int


class ValidateKeywords(ValidateOnSparkKeywords, RowGroupSampleKeywords, RunKeywords, ProgressKeyword, total=False):
    """Keywords of `bloomcli.validate`."""

    threads: int | None


class GateKeywords(ValidateOnSparkKeywords, RowGroupSampleKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.gate`."""

    sample: str | None
    baseline: Name | None
    update_baseline: bool


class IndexUpdateOnSparkKeywords(DryRunKeyword, total=False):
    """Keywords of `bloomcli.spark.index_update`."""

    force: bool
    keys: Keys | None
    allow_plaintext_index: bool


class IndexBuildOnSparkKeywords(IndexUpdateOnSparkKeywords, total=False):
    """Keywords of `bloomcli.spark.index_build`."""

    output: Name | None
    fpp: float
    overwrite: bool


class IndexUpdateKeywords(IndexUpdateOnSparkKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.index_update`."""


class IndexBuildKeywords(IndexBuildOnSparkKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.index_build`."""


class QueryKeywords(TypedDict, total=False):
    """Logs of queries."""

    queries: Name | Sequence[Name]
    dialect: str
    table_name: Sequence[str]


class AdviseOnSparkKeywords(ColumnKeywords, QueryKeywords, ReaderKeywords, total=False):
    """Keywords of `AdviseOptions`."""

    budget: str | None
    fpp: float
    present: float
    sample: str | None
    seed: int


class AdviseKeywords(AdviseOnSparkKeywords, RunKeywords, total=False):
    """Keywords of `bloomcli.advise`."""


class TrialKeywords(QueryKeywords, total=False):
    """Keywords of `bloomcli.trial`."""

    columns: Sequence[str]
    exclude: Sequence[str]
    readers: Sequence[str]
    values: int | None
    seed: int
    fpp: float
    runs: int
    sample: str | None
    timeout: float


class WhereKeyword(TypedDict, total=False):
    """The selected part of a table."""

    where: str | None


class PropertiesKeyword(TypedDict, total=False):
    """Whether the table's properties request filters."""

    from_properties: bool


class CommitKeywords(WhereKeyword, total=False):
    """Keywords of `TableOptions` for commands that change files."""

    commit_every: int | None
    new_row_ids: bool


class SnapshotKeywords(WhereKeyword, total=False):
    """Keywords of `TableOptions` for commands that read a snapshot."""

    snapshot: int | None
    as_of: str | datetime | None


class AddToTableKeywords(FilterKeywords, CommitKeywords, PropertiesKeyword, total=False):
    """Keywords of `bloomcli.spark.add_to_table`."""


class RemoveFromTableKeywords(ColumnKeywords, DryRunKeyword, CommitKeywords, total=False):
    """Keywords of `bloomcli.spark.remove_from_table`."""


class FoldTableKeywords(FoldRuleKeywords, CommitKeywords, total=False):
    """Keywords of `bloomcli.spark.fold_table`."""


class RepairTableKeywords(RepairRuleKeywords, CommitKeywords, total=False):
    """Keywords of `bloomcli.spark.repair_table`."""


class InspectTableKeywords(ColumnKeywords, SnapshotKeywords, total=False):
    """Keywords of `bloomcli.spark.inspect_table`."""


class ValidateTableKeywords(ValidateOnSparkKeywords, SnapshotKeywords, PropertiesKeyword, total=False):
    """Keywords of `bloomcli.spark.validate_table`."""


class ProbeTableKeywords(ProbeOnSparkKeywords, SnapshotKeywords, total=False):
    """Keywords of `bloomcli.spark.probe_table`."""


class AdviseTableKeywords(AdviseOnSparkKeywords, SnapshotKeywords, total=False):
    """Keywords of `bloomcli.spark.advise_table`."""
