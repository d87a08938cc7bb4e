"""The policy file: ``bloom.toml``, or ``[tool.bloom]`` in pyproject.toml. The parser is strict and ignores nothing.

An unknown key, and a value that is invalid or redundant, is an error with its line. One error reports all problems of
a file. The reference of the keys is `docs/policy.md`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from bloomcli import limits
from bloomcli.errors import PolicyError, UnreadableError
from bloomcli.policy import toml
from bloomcli.policy.policy import Policy
from bloomcli.policy.policy_keys import Keys, Problem
from bloomcli.policy.toml import key_lines, line_of
from bloomcli.storage.names import folder_of
from bloomcli.storage.os_errors import hint, is_file, option_file_error, reason
from bloomcli.storage.registry import read_file

# imported only when a policy is read: every command calls `find`, and mostly there is no policy

NAME: Final = "bloom.toml"
PYPROJECT: Final = "pyproject.toml"


class FoundPolicy(str):
    """The path of a policy that was found in a directory above, not named by the user.

    A pull request may have brought it, so it may only refer to files below its directory (see `Keys`).
    """

    __slots__ = ()


def find(start: str | os.PathLike[str]) -> Path | None:
    """Return the policy file of a directory or of the nearest directory above it; None if there is none.

    bloom.toml takes precedence over pyproject.toml, which counts only if it has a table ``[tool.bloom]``. An invalid
    pyproject.toml counts if it contains the text ``tool.bloom``, so that `load` reports the problem.

    Args:
        start: a directory, or a file in it.
    """
    here = Path(os.path.abspath(start))  # noqa: PTH100  Path.absolute keeps `..`
    for folder in (here, *here.parents):
        own = folder / NAME
        if _is_file(own):
            return own
        shared = folder / PYPROJECT
        if _is_file(shared) and _has_table(shared):
            return shared
    return None


def _is_file(path: Path) -> bool:
    try:
        return is_file(path)
    except UnreadableError as error:
        if isinstance(error.__cause__, PermissionError):
            return False  # a parent directory without search permission belongs to somebody else
        raise


def _has_table(path: Path) -> bool:
    try:
        data = read_file(path, limits.POLICY_MAX_BYTES + 1)
    except PermissionError:
        return False
    except OSError as error:
        raise UnreadableError(
            f"the policy can't be read: {reason(error)}", path=str(path), hint=hint(error)
        ) from None
    try:
        tool = toml.parse(_decode(data[: limits.POLICY_MAX_BYTES])).get("tool")
    except (UnicodeDecodeError, toml.InvalidToml):
        return b"tool.bloom" in data
    return isinstance(tool, dict) and "bloom" in tool


def load(path: str | os.PathLike[str], *, readers: Sequence[str] = ()) -> Policy:
    """Read a policy file.

    Args:
        path: the file; a `FoundPolicy` if the user didn't name it.
        readers: engines from options. A table schema in the file applies to them.

    Raises:
        UnreadableError: the file exists but can't be read.
        PolicyError: the file doesn't exist, isn't TOML or is invalid. The path has the line and `field` the key;
            several problems are one line each in the message.
    """
    name = os.fspath(path)
    text = _text(name)
    table = _toml(text, name)
    within: tuple[str, ...] = ()
    if Path(name).name == PYPROJECT:
        within = ("tool", "bloom")
        tool = table.get("tool")
        if not isinstance(tool, dict) or "bloom" not in tool:
            raise PolicyError(
                "there is no table [tool.bloom]",
                path=name,
                hint=f"or write {NAME}, which has the keys at its top level",
            )
        table = tool["bloom"]
    keys = Keys(folder_of(name), readers=bool(readers), found=isinstance(path, FoundPolicy))
    policy = keys.policy(table, path=name)
    if keys.problems:
        _raise(keys.problems, text, name, within)
    return policy


def _text(name: str) -> str:
    try:
        data = read_file(name, limits.POLICY_MAX_BYTES + 1)
    except OSError as error:
        if (problem := option_file_error(error, name, "the policy")) is not None:
            raise problem from None
        init = "`bloom validate --init` writes one" if isinstance(error, FileNotFoundError) else None
        raise PolicyError(f"the policy can't be read: {reason(error)}", path=name, hint=init) from None
    except ValueError as error:  # a null byte
        raise PolicyError(f"the policy can't be read: {error}", path=name) from None
    if len(data) > limits.POLICY_MAX_BYTES:
        raise PolicyError(f"larger than {limits.POLICY_MAX_BYTES:,} bytes, the limit for a policy", path=name)
    try:
        return _decode(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError("not UTF-8, which TOML requires", path=f"{name}:{line}", hint="save it as UTF-8") from None


def _decode(data: bytes) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    return data.decode("utf-8-sig")


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return toml.parse(text)
    except toml.InvalidToml as error:
        where = name if error.line is None else f"{name}:{error.line}"
        raise PolicyError(error.reason, path=where) from None


def _raise(problems: list[Problem], text: str, name: str, within: tuple[str, ...]) -> NoReturn:
    """Raise one error with all problems, ordered by line."""
    known = key_lines(text)

    def line(problem: Problem) -> int:
        return line_of(known, (*within, *problem.at))

    def where(problem: Problem) -> str:
        return f"{name}:{found}" if (found := line(problem)) else name

    ordered = sorted(problems, key=line)
    if len(ordered) == 1:
        (only,) = ordered
        field = _field((*within, *only.at)) or None
        raise PolicyError(only.reason, path=where(only), field=field, hint=only.hint)
    listed = []
    for problem in ordered:
        error = PolicyError(problem.reason, path=where(problem), field=_field((*within, *problem.at)) or None)
        text = f"  {error.message}" + (f"; {problem.hint}" if problem.hint else "")
        listed.append("\n" + text.replace("\n", "\\n"))
    raise PolicyError(f"{len(ordered)} problems{''.join(listed)}", path=name)


def _field(at: tuple[str | int, ...]) -> str:
    """Format a key path as in TOML: ``files[1].columns."user.*".max-fpp``."""
    import json

    text = ""
    for step in at:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = step if re.fullmatch(r"[A-Za-z0-9_-]+", step) else json.dumps(step, ensure_ascii=False)
            text += f".{bare}" if text else bare
    return text
