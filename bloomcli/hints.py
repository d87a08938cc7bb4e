"""The command lines that hints name, as they can be given for this file."""

from __future__ import annotations

_MOSAIC = "mosaic"


def adding(file_format: str, column: str, *options: str) -> str:
    """`bloom add` for a column, with what its format and its name need, but without the file's name."""
    return _quoted("add", column, *options, *(["--mosaic-draft"] if file_format == _MOSAIC else []))


def shrinking(file_format: str, column: str, fpp: float) -> str:
    """What makes a column's filters smaller: ORC's can't be folded."""
    if file_format == "orc":
        return adding(file_format, column, "--replace", "--fpp", f"{fpp:g}")
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
