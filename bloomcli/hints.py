"""Command lines that hints name: as a shell takes them, without the file's name.

What `bloom add` needs besides for files of one format, `bloomcli.formats.format.Format.adding` knows.
"""

from __future__ import annotations


def adding(column: str, *options: str) -> str:
    """`bloom add` for a column."""
    return _quoted("add", column, *options)


def folding(column: str, fpp: float) -> str:
    """`bloom fold` for a column, down to a rate."""
    return _quoted("fold", column, "--fpp", f"{fpp:g}")


def removing(column: str) -> str:
    """`bloom remove` for a column."""
    return _quoted("remove", column)


def listed(column: str) -> str:
    """A name as `--columns` takes it: commas separate columns, so that one within a name needs a backslash."""
    return column.replace(",", "\\,")


def _quoted(command: str, column: str, *options: str) -> str:
    """As a shell takes it."""
    import shlex

    return f"`{shlex.join(['bloom', command, *options, '--columns', listed(column)])}`"
