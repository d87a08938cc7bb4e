"""The readers that `trial` can run, and the facts about each that need no import of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Final, NamedTuple

from bloomcli.errors import UsageError, install, near_names
from bloomcli.rules.reader_table import Reader as KnownReader
from bloomcli.rules.readers import reader as known_reader
from bloomcli.trials.readers.base import Reader

_PARQUET: Final = "parquet"
_ORC: Final = "orc"
_NO_SWITCH: Final[Mapping[str, str]] = {}


class Entry(NamedTuple):
    """A reader: its package, formats and options."""

    name: str
    title: str
    package: str
    """The name of the distribution for pip."""
    extra: str
    """The extra of bloomcli that installs it; empty for a package that bloomcli always needs."""
    formats: frozenset[str]
    """Formats that it reads."""
    rules: tuple[str, ...]
    """Its names in the table of readers: first that of the current release, then those of older releases, each with a
    colon and the first later version that it doesn't apply to."""
    switches: Mapping[str, str] = _NO_SWITCH
    """For each format, the option that switches filters off and nothing else."""
    aliases: tuple[str, ...] = ()

    @property
    def version(self) -> str | None:
        """The installed version; None if it isn't installed."""
        try:
            return version_of(self.package)
        except PackageNotFoundError:
            return None

    @property
    def known(self) -> KnownReader:
        """The row of the table of readers for the installed release, or for the current one."""
        major = (self.version or "").partition(".")[0]
        for name in self.rules[1:]:
            old, _, first_new = name.partition(":")
            if major.isdigit() and int(major) < int(first_new):
                return known_reader(old)
        return known_reader(self.rules[0])

    @property
    def probes(self) -> frozenset[str]:
        """The formats in whose filters it looks up values by itself."""
        return self.known.probes

    @property
    def install(self) -> str:
        """The command that installs it."""
        return install(self.extra, self.package) if self.extra else f"pip install {self.package}"

    def reader(self) -> Reader:
        """Start the reader in this process. Raises ImportError, BloomError, and any exception of the reader."""
        reader: Reader = import_module(f"bloomcli.trials.readers.{self.name}").InstalledReader()
        return reader


ENTRIES: Final = (
    Entry(
        "duckdb",
        "DuckDB",
        "duckdb",
        "trial",
        formats=frozenset({_PARQUET}),
        rules=("duckdb", "duckdb-1:2"),
    ),
    Entry(
        "spark",
        "Spark",
        "pyspark",
        "spark",
        formats=frozenset({_PARQUET, _ORC}),
        rules=("spark",),
        switches={_PARQUET: "parquet.filter.bloom.enabled"},
        aliases=("pyspark",),
    ),
    Entry(
        "datafusion",
        "DataFusion",
        "datafusion",
        "trial",
        formats=frozenset({_PARQUET}),
        rules=("datafusion", "datafusion-54:55"),
        switches={_PARQUET: "datafusion.execution.parquet.bloom_filter_on_read"},
    ),
    Entry(
        "pyarrow",
        "PyArrow",
        "pyarrow",
        "",
        formats=frozenset({_PARQUET, _ORC}),
        rules=("arrow",),
        aliases=("arrow", "arrow-cpp"),
    ),
    Entry("polars", "Polars", "polars", "trial", formats=frozenset({_PARQUET}), rules=("polars",)),
    Entry(
        "chdb",
        "chDB",
        "chdb",
        "trial",
        formats=frozenset({_PARQUET, _ORC}),
        rules=("clickhouse",),
        switches={_PARQUET: "input_format_parquet_bloom_filter_push_down"},
        aliases=("clickhouse",),
    ),
)
"""All readers, in the order in which they run if no reader is named."""

_BY_NAME: Final = {name: entry for entry in ENTRIES for name in (entry.name, *entry.aliases)}


def named(names: Iterable[str]) -> tuple[Entry, ...]:
    """The readers with these names, each once; all readers if there are no names.

    Raises:
        UsageError: a name is unknown; the hint has similar names.
    """
    entries = {entry.name: entry for entry in map(_one, names)}
    return tuple(entries.values()) or ENTRIES


def _one(name: str) -> Entry:
    key = name.strip().lower()
    if key in _BY_NAME:
        return _BY_NAME[key]
    near = near_names(key, _BY_NAME, n=2, cutoff=0.5)
    readers = "trial runs " + ", ".join(entry.name for entry in ENTRIES)
    raise UsageError(
        f"no reader {name!r} to run",
        hint=f"did you mean {' or '.join(near)}? {readers}" if near else f"{readers}; of other readers, see `bloom "
        "validate --readers`",
    )  # fmt: skip
