"""The record of a format: its name, its magic bytes, the code that opens its files, its options of `bloom add`.

Each format's folder has a module ``format`` with the folder's records, ``FORMATS``, and `bloomcli.formats.registry`
finds them there. A record names the code that reads and writes files by its dotted path and doesn't import it:
recognising a file imports only the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from bloomcli import hints

OptionValues = Mapping[str, str | bool]
"""Values of the options of `bloom add` that belong to one format, by name; only options that were given."""

NO_OPTIONS: Final[OptionValues] = {}


class Sizes(Enum):
    """The sizes that a format's filters can have."""

    POWERS_OF_TWO = auto()
    """Powers of two only."""
    ANY = auto()
    """Any number of blocks. Powers of two are the default, because some readers take nothing else."""
    OWN = auto()
    """The size that the format's own rule gives, not rounded to a power of two."""


class Magic(NamedTuple):
    """Bytes at a fixed place in every file of a format."""

    data: bytes
    at: int
    """Their offset from the file's start or, if negative, from its end."""
    alone: bool = True
    """Whether they identify the format alone. Otherwise a file that has no other magic was cut off."""


class Option(NamedTuple):
    """An option of `bloom add` for the files of one format."""

    name: str
    """The keyword argument of `bloomcli.add`; on the command line ``--name``, with hyphens for underscores."""
    help: str
    noun: str
    """The meaning of the option, for errors: ``kind of filter``."""
    choices: tuple[str, ...] = ()
    """The possible values; empty for a flag."""
    ignored_elsewhere: bool = False
    """Whether files of other formats ignore the option. Otherwise it is an error for them."""
    in_tables: bool = True
    """Whether it is also an option for tables, which don't have files of every format."""
    old_readers: frozenset[str] = frozenset()
    """Choices that only old readers need: the faults of today's readers don't count for them."""
    fact: str | None = None
    """The field of `FilterFacts` with the choice that a filter was made by; None if no field has it."""

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")


class Format(NamedTuple):
    """One format of files."""

    name: str
    """The name in reports and JSON; `FilterFile.format` of the files that `opener` opens."""
    title: str
    """The name in messages."""
    opener: str
    """The class or function that makes a `FilterFile` of a `Source`: ``package.module:name``."""
    magics: tuple[Magic, ...] = ()
    detector: str | None = None
    """For a format without magic bytes: the function that says of a `Source` whether it is of this format,
    ``package.module:name``. It is called for files that no magic recognises."""
    suffixes: tuple[str, ...] = ()
    """Endings of file names, in lower case, each with its dot. They show the expected format; a file's bytes
    decide its format."""
    writers: tuple[str, ...] = ()
    """Modules that changing a file imports. They are imported once, before processes are forked."""
    unit: str = "row group"
    """The unit that `validate --deep` reads and `--require` counts."""
    options: tuple[Option, ...] = ()
    """Options of `bloom add` for files of this format."""
    needs: tuple[str, ...] = ()
    """Options without which `bloom add` refuses every file of the format, for command lines in hints."""
    rate_margin: float = 1.0
    """The factor from a limit to the value of `--fpp` at which measured rates meet the limit."""
    takes_keys: bool = False
    """Whether its files can be encrypted: the opener then also takes `Keys`, or None."""
    indexed_values: str | None = None
    """For a format whose filters an index takes: the function that hashes values of a column for it, without a file,
    ``package.module:name``. Its arguments are those of `bloomcli.formats.parquet.lookups.hashed_values`."""
    hashed_by_width: bool = True
    """Whether a number's hash depends on the width at which the column stores it: a reader that hashes the number at
    another width doesn't find it."""

    sizes: Sizes = Sizes.POWERS_OF_TWO
    """The sizes of its filters, for ``--size``."""

    def option(self, name: str) -> Option | None:
        """The option of this name; None where the format has none."""
        return next((option for option in self.options if option.name == name), None)

    def adding(self, column: str, *options: str, limit: float | None = None, after: str = "") -> hints.Hint:
        """The hint with `bloom add` for a column, before a text. With a limit, the filters meet it."""
        rate = () if limit is None else ("--fpp", f"{limit * self.rate_margin:g}")
        return hints.adding(column, *options, *rate, *self.needs, after=after)


def enumerated(words: Sequence[str], joint: str) -> str:
    """Words in a sentence: ``a, b or c`` with the joint ``or``."""
    return f" {joint} ".join(filter(None, (", ".join(words[:-1]), words[-1])))
