"""The policy file: ``bloom.toml``, or ``[tool.bloom]`` in pyproject.toml. Read strictly: nothing in it is ignored.

A key that isn't known, a value that can't be meant or that says what is said already is an error, with its line. All
that is wrong with a file is told at once. `docs/policy.md` is the keys' reference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from bloomcli import limits
from bloomcli.errors import PolicyError, UnreadableError
from bloomcli.storage.os_errors import hint, is_file, read_file, reason, unreadable

# what reads a policy is loaded with the first: `find` is called by every command, and there is mostly none
if TYPE_CHECKING:
    from bloomcli.policy.policy import Policy
    from bloomcli.policy.policy_keys import Problem

NAME: Final = "bloom.toml"
PYPROJECT: Final = "pyproject.toml"
_AT_LINE: Final = r" \(at line (\d+), column (\d+)\)$"
_AT_END: Final = r" \(at end of document\)$"


def find(start: str | os.PathLike[str]) -> Path | None:
    """The policy file of a folder: its own or the nearest above's; bloom.toml goes before pyproject.toml.

    A pyproject.toml counts where it has a table ``[tool.bloom]``; one that isn't TOML, where it seems to have one, so
    that `load` says what is wrong with it.

    Args:
        start: a folder, or a file in it.
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
            return False  # a directory above that may not be searched: it isn't this team's
        raise


def _has_table(path: Path) -> bool:
    import tomllib

    try:
        data = read_file(path)
    except PermissionError:
        return False
    except OSError as error:
        raise UnreadableError(
            f"the policy can't be read: {reason(error)}", path=str(path), hint=hint(error)
        ) from None
    try:
        tool = tomllib.loads(_decode(data)).get("tool")
    except (ValueError, RecursionError):
        return b"tool.bloom" in data
    return isinstance(tool, dict) and "bloom" in tool


def load(path: str | os.PathLike[str], *, readers: Sequence[str] = ()) -> Policy:
    """Read a policy file.

    Args:
        path: the file.
        readers: engines that are named besides: a table's schema in the file is for them then.

    Raises:
        UnreadableError: it is there, and can't be read.
        PolicyError: it isn't there, isn't TOML, or something in it can't be meant: with its line, and its keys in
            `field`; where several things are wrong, each on a line of the message.
    """
    from bloomcli.policy.policy_keys import Keys

    name = os.fspath(path)
    text = _text(name)
    table = _toml(text, name)
    within: tuple[str, ...] = ()
    if Path(name).name == PYPROJECT:
        within = ("tool", "bloom")
        tool = table.get("tool")
        if not isinstance(tool, dict) or "bloom" not in tool:
            raise PolicyError(
                "there is no table [tool.bloom]", path=name, hint=f"{NAME} needs none: its keys stand alone"
            )
        table = tool["bloom"]
    base = os.path.dirname(os.path.abspath(name))  # noqa: PTH100, PTH120  as in `find`
    keys = Keys(base, readers=bool(readers))
    policy = keys.policy(table, path=name)
    if keys.problems:
        _raise(keys.problems, text, name, within)
    return policy


def _text(name: str) -> str:
    try:
        data = read_file(name, limits.POLICY_MAX_BYTES + 1)
    except OSError as error:
        if (told := unreadable(error, name, "the policy")) is not None:
            raise told from None
        init = "`bloom validate --init` writes one" if isinstance(error, FileNotFoundError) else None
        raise PolicyError(f"the policy can't be read: {reason(error)}", path=name, hint=init) from None
    except ValueError as error:  # a null byte
        raise PolicyError(f"the policy can't be read: {error}", path=name) from None
    if len(data) > limits.POLICY_MAX_BYTES:
        raise PolicyError(f"larger than {limits.POLICY_MAX_BYTES:,} bytes: no policy", path=name)
    try:
        return _decode(data)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError("not UTF-8, which TOML is", path=f"{name}:{line}", hint="save it as UTF-8") from None


def _decode(data: bytes) -> str:
    """UTF-8, with the mark at its start that some editors write."""
    return data.decode("utf-8-sig")


def _toml(text: str, name: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        if (place := re.search(_AT_LINE, reason)) is not None:
            where, column = f"{name}:{place[1]}", f", column {place[2]}"
        else:
            where, column = f"{name}:{text.rstrip().count(chr(10)) + 1}", ", at the end"
        reason = re.sub(_AT_END, "", re.sub(_AT_LINE, "", reason))
        raise PolicyError(f"not TOML: {reason[:1].lower()}{reason[1:]}{column}", path=where) from None
    except RecursionError:
        raise PolicyError("nested too deeply", path=name) from None


def _raise(problems: list[Problem], text: str, name: str, within: tuple[str, ...]) -> NoReturn:
    """One error for all of them, in the order of their lines."""
    from bloomcli.policy.toml_lines import lines

    known = lines(text)

    def line(problem: Problem) -> int:
        at = (*within, *problem.at)
        return next((known[at[:n]] for n in range(len(at), 0, -1) if at[:n] in known), 0)

    def where(problem: Problem) -> str:
        return f"{name}:{found}" if (found := line(problem)) else name

    ordered = sorted(problems, key=line)
    if len(ordered) == 1:
        (only,) = ordered
        field = _field((*within, *only.at)) or None
        raise PolicyError(only.reason, path=where(only), field=field, hint=only.hint)
    listed = []
    for problem in ordered:
        told = PolicyError(problem.reason, path=where(problem), field=_field((*within, *problem.at)) or None)
        shown = f"  {told}" + (f"; {problem.hint}" if problem.hint else "")
        listed.append("\n" + shown.replace("\n", "\\n"))
    raise PolicyError(f"{len(ordered)} things are wrong{''.join(listed)}", path=name)


def _field(at: tuple[str | int, ...]) -> str:
    """The keys as TOML has them: ``files[1].columns."user.*".max-fpp``."""
    import json

    text = ""
    for step in at:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            bare = step if re.fullmatch(r"[A-Za-z0-9_-]+", step) else json.dumps(step, ensure_ascii=False)
            text += f".{bare}" if text else bare
    return text
