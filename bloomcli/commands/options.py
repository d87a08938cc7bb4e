"""The options of the commands: one class for each command, with defaults and checks.

The command line, the library's functions, worker processes and Spark use the same objects. They are immutable, can be
pickled, and contain neither input files nor progress callbacks. `bloomcli.add`, `bloomcli.remove` and the other
functions of the package document the options: each field is an argument of the same name, with the same default.

Code that uses options calls `checked` first, which raises an error or returns complete options: names are tuples, and
the policy and the table's schema are read. Calling it again costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, Self

from bloomcli import limits
from bloomcli.commands.arguments import names as tuple_of
from bloomcli.commands.arguments import paths, read_policy
from bloomcli.commands.options_base import Options
from bloomcli.errors import UsageError
from bloomcli.formats.add_options import checked_options
from bloomcli.formats.format import OptionValues
from bloomcli.formats.size_rule import SizeRule
from bloomcli.model.sizes import POWER_OF_TWO, SIZES
from bloomcli.policy.policy import Policy

if TYPE_CHECKING:
    from bloomcli.commands.values import Value

Name = str | os.PathLike[str]

FPP: Final = 0.01
"""The default false-positive rate of filters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions(Options):
    """Options of commands that work on columns: leaf paths and globs."""

    columns: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def checked(self) -> Self:
        """The names as tuples. Raises UsageError."""
        return replace(self, columns=tuple_of(self.columns, "columns"), exclude=tuple_of(self.exclude, "columns"))


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions(ColumnOptions):
    """Options of `inspect`. `every` applies to many files, the options below it to one file."""

    command: ClassVar[str] = "inspect"

    every: bool = False
    """The rows of many files contain every filter. The report on one file always does."""
    pages: bool = False
    indexes: bool = False
    schema: bool = False
    footer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions(ColumnOptions):
    """Options of commands that change files."""

    output: Name | None = None
    """The file to write; for several files, the directory below which their tree is written."""
    in_place: bool = False
    force: bool = False
    overwrite: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveOptions(WriteOptions):
    """Options of `remove`."""

    command: ClassVar[str] = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldOptions(WriteOptions):
    """Options of `fold`."""

    command: ClassVar[str] = "fold"

    fpp: float = FPP
    max_bytes: int | None = None
    size: str = POWER_OF_TWO
    """``power-of-two``, or ``tight``: any number of blocks."""
    readers: Sequence[str] = ()

    def checked(self) -> Self:
        """The names as tuples. Raises UsageError."""
        from bloomcli.checks.sizes import refuse_without_readers

        _check_sizes(self.fpp, self.max_bytes, self.size)
        policy = read_policy(None, readers=self.readers, size=self.size)
        refuse_without_readers(policy)
        return replace(ColumnOptions.checked(self), readers=policy.whole.readers or ())

    def size_rule(self) -> SizeRule:
        """The rule for the size of folded filters."""
        return SizeRule(fpp=self.fpp, max_bytes=self.max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions(WriteOptions):
    """Options of `add`."""

    command: ClassVar[str] = "add"

    fpp: float | None = None
    """None: filters have to meet the policy's rate for the column. Without such a rate, new filters are made for
    `FPP`, and existing filters need not meet it."""
    ndv: int | None = None
    max_bytes: int | None = None
    size: str | None = None
    """``power-of-two``, or ``tight``: any number of blocks; None: the policy's, or powers of two."""
    kind: str | None = None
    variant: str | None = None
    mosaic_draft: bool = False
    format_options: OptionValues = field(default_factory=dict)
    """Options of single formats, by name. `kind`, `variant` and `mosaic_draft` can be given here, too."""
    replace: bool = False
    readers: Sequence[str] = ()
    table_schema: Name | None = None
    policy: Policy | Name | None = None
    threads: int | None = None

    def checked(self) -> Self:
        """The names as tuples, and all settings about readers in the policy. Raises UsageError."""
        checked = ColumnOptions.checked(self)
        from bloomcli.checks.sizes import refuse_without_readers

        _check_sizes(FPP if self.fpp is None else self.fpp, self.max_bytes, self.size)
        if self.ndv is not None and self.ndv < 1:
            raise UsageError(f"a number of distinct values is 1 or more, not {self.ndv}")
        checked_options(self._of_formats())
        policy = read_policy(self.policy, readers=self.readers, table_schema=self.table_schema, size=self.size)
        refuse_without_readers(policy)
        if not checked.columns and not policy.requires:
            raise UsageError(
                "no columns to add filters for"
                + (f": the policy {policy.path} requires none" if policy.path else ""),
                hint="name them with --columns, or require them in a policy;"
                " `bloom advise FILE` says which columns need filters",
            )
        return replace(checked, policy=policy, readers=(), table_schema=None, size=None)

    @property
    def sized(self) -> bool:
        """Whether the options determine the size of filters: by a rate, or by a number of values."""
        return self.fpp is not None or self.ndv is not None

    def _of_formats(self) -> OptionValues:
        """The options of single formats that were given."""
        named = {"kind": self.kind, "variant": self.variant, "mosaic_draft": self.mosaic_draft, **self.format_options}
        return {name: value for name, value in named.items() if value is not None and value is not False}

    def size_rule(self) -> SizeRule:
        """The rule for the size of new filters."""
        return SizeRule(
            fpp=FPP if self.fpp is None else self.fpp,
            ndv=self.ndv,
            max_bytes=self.max_bytes,
            options=self._of_formats(),
            by_default=not self.sized,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions(Options):
    """Options of `probe`."""

    command: ClassVar[str] = "probe"

    values: Value | Sequence[Value] = ()
    column: str | None = None
    exclude: Sequence[str] = ()
    explain: bool = False
    skip_blank: bool = False

    def checked(self) -> Self:
        """The values as texts. Raises UsageError."""
        from bloomcli.commands.values import texts

        values = texts(self.values)
        if not values:
            raise UsageError("no values to probe", hint="name them with --value, or in a file with --values-from")
        return replace(self, values=values, exclude=tuple_of(self.exclude, "columns"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyOptions(Options):
    """Options of `survey`, which examines files to write a first policy for them."""

    command: ClassVar[str] = "survey"

    columns: Sequence[str] = ()
    """Leaf paths or globs that each file must have."""
    policy: Policy | None = None
    """The readers whose faults are findings, and the table's schema."""

    def checked(self) -> Self:
        """The names as a tuple. Raises UsageError."""
        return replace(self, columns=tuple_of(self.columns, "columns"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions(ColumnOptions):
    """Options of `validate`."""

    command: ClassVar[str] = "validate"

    require: Sequence[str] = ()
    max_fpp: float | None = None
    max_oversize: float | None = None
    readers: Sequence[str] = ()
    table_schema: Name | None = None
    policy: Policy | Name | None = None
    deep: bool = False
    sample_row_groups: str | None = None
    seed: int = 0
    threads: int | None = None

    def checked(self) -> Self:
        """The names as tuples, and all limits, readers and types in the policy. Raises UsageError."""
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
            ColumnOptions.checked(self),
            require=tuple_of(self.require, "columns"),
            policy=policy,
            readers=(),
            table_schema=None,
            max_fpp=None,
            max_oversize=None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions(ValidateOptions):
    """Options of `validate` on the command line, and of `bloomcli.gate`: for many files, with a baseline."""

    sample: str | None = None
    baseline: Name | None = None
    update_baseline: bool = False

    def checked(self) -> Self:
        """As `ValidateOptions`; also normalizes the samples' texts. Raises UsageError."""
        from bloomcli.commands.sampling import share

        if self.sample_row_groups is not None and not self.deep:
            raise UsageError("a sample of row groups is for --deep: without it no values are read", hint="add --deep")
        if self.update_baseline and self.baseline is None:
            raise UsageError("there is no baseline to update", hint="add --baseline FILE")
        return replace(
            ValidateOptions.checked(self),
            sample=None if self.sample is None else share(self.sample).text,
            sample_row_groups=None if self.sample_row_groups is None else share(self.sample_row_groups).text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviseOptions(ColumnOptions):
    """Options of `advise`."""

    command: ClassVar[str] = "advise"

    budget: str | None = None
    """Bytes that all new filters together may take, or ``2%`` of the bytes of all files."""
    queries: Name | Sequence[Name] = ()
    dialect: str = "spark"
    table_name: Sequence[str] = ()

    fpp: float = FPP
    readers: Sequence[str] = ()
    table_schema: Name | None = None
    policy: Policy | Name | None = None
    sample: str | None = None
    """The number or share (``5%``) of row groups from which values are read. They are looked up in filters that are
    built for as many other row groups. None: a number that takes seconds."""
    seed: int = 0

    def checked(self) -> Self:
        """The names as tuples, and all settings about readers in the policy. Raises UsageError."""
        from bloomcli.commands.budgets import read_budget
        from bloomcli.commands.sampling import share

        _check_sizes(self.fpp, None)
        if self.budget is not None:
            read_budget(self.budget)
        queries = paths(self.queries)
        table_name = tuple_of(self.table_name, "table names")
        if table_name and not queries:
            raise UsageError("a table's name is for finding it in queries", hint="add --queries FILE")
        policy = read_policy(self.policy, readers=self.readers, table_schema=self.table_schema)
        return replace(
            ColumnOptions.checked(self),
            policy=policy,
            queries=queries,
            table_name=table_name,
            readers=(),
            table_schema=None,
            sample=None if self.sample is None else share(self.sample).text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions(ColumnOptions):
    """Options of `trial`."""

    command: ClassVar[str] = "trial"

    readers: Sequence[str] = ()
    values: int = 20
    queries: Name | Sequence[Name] = ()
    dialect: str = "spark"
    table_name: Sequence[str] = ()
    seed: int = 0
    fpp: float = FPP
    runs: int = 5
    sample: str = "4"
    timeout: float = 300.0

    def checked(self) -> Self:
        """The names as tuples, and the sample's text normalized. Raises UsageError."""
        from bloomcli.commands.sampling import share

        _check_sizes(self.fpp, None)
        for what, number, least in (("values", self.values, 1), ("runs", self.runs, 0)):
            if number < least:
                raise UsageError(f"--{what} is {least} or more, not {number}")
        if not self.timeout > 0:
            raise UsageError(f"a time limit is longer than 0 seconds, not {self.timeout:g}")
        queries, table_name = paths(self.queries), tuple_of(self.table_name, "table names")
        if table_name and not queries:
            raise UsageError("a table's name is for finding it in queries", hint="add --queries FILE")
        return replace(
            ColumnOptions.checked(self),
            readers=tuple_of(self.readers, "readers"),
            queries=queries,
            table_name=table_name,
            sample=share(self.sample).text,
        )


def policy_of(options: AddOptions | AdviseOptions | ValidateOptions) -> Policy:
    """The policy of checked options."""
    if not isinstance(options.policy, Policy):
        raise TypeError("these options weren't checked")
    return options.policy


def _check_sizes(fpp: float, max_bytes: int | None, size: str | None = None) -> None:
    if size is not None and size not in SIZES:
        raise UsageError(f"no rule for sizes is called {size!r}", hint=" or ".join(SIZES))
    if not 0 < fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
    if max_bytes is not None and max_bytes < limits.FILTER_MIN_BYTES:
        raise UsageError(f"the smallest filter has {limits.FILTER_MIN_BYTES} bytes; a cap of {max_bytes} leaves none")
