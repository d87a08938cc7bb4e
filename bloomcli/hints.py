"""Command lines in hints, quoted for a shell.

The code that finds a fault makes a hint with `FILE` in place of the file and, if the column is unknown, `NAME` in
place of the column. `completed` replaces them by the real names.

`bloomcli.formats.format.Format.adding` adds the options that `bloom add` needs for files of one format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from bloomcli.model.paths import shown

FILE: Final = "FILE"
NAME: Final = "NAME"

_COMMAND: Final = re.compile(f"`bloom (add|fold|remove|repair) {FILE} ")
_COLUMN: Final = f" --columns {NAME} --in-place`"


def adding(column: str, *options: str) -> str:
    """`bloom add` for a column."""
    return _quoted("add", column, *options)


def replacing(*options: str) -> str:
    """`bloom add` that builds a column's filters again; the column isn't known yet."""
    return f"{_quoted('add', NAME, '--replace', *options)} writes a sound filter in its place"


def folding(column: str, fpp: float) -> str:
    """`bloom fold` for a column, down to a rate."""
    return _quoted("fold", column, "--fpp", f"{fpp:g}")


def removing(column: str) -> str:
    """`bloom remove` for a column."""
    return _quoted("remove", column)


def removing_all() -> str:
    """`bloom remove` for all filters of a file."""
    return f"`bloom remove {FILE} --in-place`"


def repairing(column: str) -> str:
    """`bloom repair` for a column, and what it does."""
    return f"{_quoted('repair', column)} mends it"


def listed(column: str) -> str:
    """A name as `--columns` takes it: commas separate columns, so a comma within a name needs a backslash."""
    return column.replace(",", "\\,")


def completed(
    hint: str | None, path: str | None, column: str | None = None, readers: Sequence[str] = ()
) -> str | None:
    """A hint with complete command lines.

    Args:
        hint: a hint; None stays None.
        path: the file's path; None if it isn't known.
        column: the column of the finding; None if it isn't known.
        readers: the engines that read the file, if a policy or an option names them: `bloom add` needs them, too.
    """
    import shlex

    if hint is None or path is None:
        return hint
    name = quoted(path)

    def command(found: re.Match[str]) -> str:
        engines = f"--readers {shlex.quote(','.join(readers))} " if readers and found[1] == "add" else ""
        return f"`bloom {found[1]} {name} {engines}"

    if column is not None:
        hint = hint.replace(_COLUMN, f" --columns {shlex.quote(listed(column))} --in-place`")
    return _COMMAND.sub(command, hint)


def quoted(path: str) -> str:
    """A path quoted for a shell, as an argument that isn't an option; without a password or a signature."""
    import shlex

    return shlex.quote(f"./{path}" if path.startswith("-") else shown(path))


def on_table(hint: str | None, path: str, table: str) -> str | None:
    """A completed hint whose command lines change a file's table instead of the file.

    Args:
        hint: the hint; None stays None.
        path: the file's path.
        table: the table's name in Spark SQL.
    """
    import shlex

    if hint is None:
        return None
    command = re.compile(rf"`bloom (add|fold|remove|repair) {re.escape(quoted(path))} (.*?) --in-place`")
    return command.sub(lambda found: f"`bloom {found[1]} --table {shlex.quote(table)} {found[2]}`", hint)


def joined(hints: Sequence[tuple[str, str]]) -> str | None:
    """A common hint for several files; None if their hints differ in more than the file.

    Args:
        hints: the paths of the files, and the completed hint of each.
    """
    common = {
        re.sub(rf"`bloom (\w+) {re.escape(quoted(path))} ", rf"`bloom \1 {FILE} ", hint) for path, hint in hints
    }
    if len(common) != 1:
        return None
    files = " ".join(dict.fromkeys(quoted(path) for path, _ in hints))
    return _COMMAND.sub(lambda found: f"`bloom {found[1]} {files} ", common.pop())


def _quoted(command: str, column: str, *options: str) -> str:
    """A command line quoted for a shell, in backquotes."""
    import shlex

    return f"`{shlex.join(['bloom', command, FILE, *options, '--columns', listed(column), '--in-place'])}`"
