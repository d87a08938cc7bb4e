"""Hints with a command line. The command is data, and its text is quoted for a shell.

The code that finds a fault names the command and, where it knows it, the column. `completed` fills in what only its
caller knows: the file, the column of the finding, and the engines that read the file. `on_table` names a table
instead of the file, and `joined` makes one hint of the hints of several files.

`bloomcli.formats.format.Format.adding` adds the options that `bloom add` needs for files of one format.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from bloomcli.model.paths import shown

FILE: Final = "FILE"
"""Stands for a file that isn't known yet."""
NAME: Final = "NAME"
"""Stands for a column that isn't known yet."""
_CHANGING: Final = frozenset({"add", "fold", "remove", "repair"})


class Command(NamedTuple):
    """A command line of `bloom` for files, or for a table. `str` quotes it for a shell."""

    name: str
    options: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """For ``--columns``; empty: all columns."""
    files: tuple[str, ...] = (FILE,)
    readers: tuple[str, ...] = ()
    """The engines that read the files: `bloom add` needs them, the other commands don't."""
    table: str | None = None
    """The table to change instead of the files, as Spark SQL names it."""

    @property
    def changes(self) -> bool:
        """Whether the command changes the files in place."""
        return self.name in _CHANGING

    def __str__(self) -> str:
        words = ["bloom", self.name]
        words += map(argument, self.files) if self.table is None else ("--table", self.table)
        if self.readers and self.name == "add":
            words += "--readers", ",".join(self.readers)
        words += self.options
        if self.columns:
            words += "--columns", ",".join(map(listed, self.columns))
        if self.changes and self.table is None:
            words.append("--in-place")
        return command_line(words)


class Hint(str):
    """A hint's text, which contains a command line in backquotes, and the command as data.

    Reports take hints as text. This class lets the command be completed after the text around it was written. An
    f-string with a hint loses the command: `before` and `after` are for the text around it.
    """

    __slots__ = ("_after", "_before", "command")
    command: Command
    _after: str
    _before: str

    def __new__(cls, command: Command, after: str = "", before: str = "") -> Self:
        """Make the hint ``before`command`after``."""
        self = super().__new__(cls, f"{before}`{command}`{after}")
        self.command, self._after, self._before = command, after, before
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[Command, str, str]]:
        return type(self), (self.command, self._after, self._before)

    def with_command(self, command: Command) -> Hint:
        """The hint with another command in the same text."""
        return Hint(command, self._after, self._before)

    def preceded_by(self, text: str) -> Hint:
        """The hint after another text."""
        return Hint(self.command, self._after, text + self._before)


def adding(column: str, *options: str, after: str = "") -> Hint:
    """`bloom add` for a column."""
    return Hint(Command("add", options, (column,)), after)


def replacing(*options: str) -> Hint:
    """`bloom add` that builds a column's filters again; the column isn't known yet."""
    return adding(NAME, "--replace", *options, after=" writes a sound filter in its place")


def folding(column: str, fpp: float) -> Hint:
    """`bloom fold` for a column, down to a rate."""
    return Hint(Command("fold", ("--fpp", f"{fpp:g}"), (column,)))


def removing(*columns: str, after: str = "") -> Hint:
    """`bloom remove` for columns; without columns for all filters of a file."""
    return Hint(Command("remove", columns=columns), after)


MENDS: Final = " mends it"


def repairing(*columns: str, after: str = MENDS) -> Hint:
    """`bloom repair` for columns, or for all, and what it does."""
    return Hint(Command("repair", columns=columns), after)


def listed(column: str) -> str:
    """A name as `--columns` takes it: commas separate columns, and spaces around them have no meaning, so a comma
    within a name, and a space at its start or end, need a backslash."""
    return re.sub(r"^(?=\s)|(?=\s\Z)|(?=,)", r"\\", column)


def completed(
    hint: str | None, path: str | None, column: str | None = None, readers: Sequence[str] = ()
) -> str | None:
    """A hint with a complete command line.

    Args:
        hint: a hint; None stays None, and a hint without a command stays as it is.
        path: the file's path; None if it isn't known.
        column: the column of the finding; None if it isn't known.
        readers: the engines that read the file, if a policy or an option names them: `bloom add` needs them, too.
    """
    if not isinstance(hint, Hint) or path is None:
        return hint
    command = hint.command
    if command.columns == (NAME,) and column is not None:
        command = command._replace(columns=(column,))
    return hint.with_command(command._replace(files=(path,), readers=tuple(readers) or command.readers))


def argument(path: str) -> str:
    """A path as an argument that isn't an option, not quoted; without a password or a signature."""
    return shown(f"./{path}" if path.startswith("-") else path)


def extended(hint: str | None, texts: Iterable[str]) -> str | None:
    """A hint with further texts after it, each after a semicolon; None if there is no text at all."""
    if not isinstance(hint, Hint):
        return "; ".join(filter(None, [hint, *texts])) or None
    return Hint(hint.command, "; ".join([hint._after, *texts]), hint._before)


def quoted(path: str) -> str:
    """A path as an argument, quoted for a shell."""
    return _in_shell(argument(path))


def command_line(words: Iterable[str]) -> str:
    """The words of a command, quoted for a shell, in one line."""
    return " ".join(map(_in_shell, words))


def _in_shell(word: str) -> str:
    """Quote a word for a shell: with control characters, which reports escape, as in $'...' of bash and zsh."""
    if word.isprintable():
        return shlex.quote(word)
    octal = (
        c if c.isprintable() else "".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape"))
        for c in re.sub(r"[\\']", r"\\\g<0>", word)
    )
    return f"$'{''.join(octal)}'"


def on_table(hint: str | None, table: str, engine: tuple[str, ...] = ()) -> str | None:
    """A hint whose command works on a table instead of a file.

    Args:
        hint: the hint; None stays None, and a hint without a command stays as it is.
        table: the table's name in Spark SQL. A command that already has a table keeps it.
        engine: the options of the Spark session that knows the name.
    """
    if not isinstance(hint, Hint) or hint.command.table is not None:
        return hint
    return hint.with_command(hint.command._replace(table=table, options=(*hint.command.options, *engine)))


def joined(hints: Iterable[str]) -> str | None:
    """A common hint for several files and columns; None if the completed hints differ in anything else, or if the
    files' columns differ, for which the command would change too much."""
    columns: dict[str, dict[str, None]] = {}
    common: set[str] = set()
    for hint in hints:
        if isinstance(hint, Hint):
            command = hint.command
            for file in command.files:
                columns.setdefault(file, {}).update(dict.fromkeys(command.columns))
            common.add(hint.with_command(command._replace(files=(FILE,), columns=command.columns and (NAME,))))
        else:
            common.add(hint)
    if len(common) != 1 or len({frozenset(named) for named in columns.values()}) > 1:
        return None
    hint = common.pop()
    if not isinstance(hint, Hint):
        return hint
    return hint.with_command(hint.command._replace(files=tuple(columns), columns=tuple(next(iter(columns.values())))))
