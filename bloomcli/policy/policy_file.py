"""The policy file: ``bloom.toml``, or ``[tool.bloom]`` in pyproject.toml. The parser is strict and ignores nothing.

An unknown key, and a value that is invalid or redundant, is an error with its line. One error reports all problems of
a file. The reference of the keys is `docs/policy.md`.

tomllib parses the text, and alone decides what is valid TOML. It neither bounds what a hostile text costs nor knows
the lines of keys. Both need only the text's tokens: comments and strings are skipped, brackets and dots count.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from bloomcli import limits
from bloomcli.errors import PolicyError, UnreadableError
from bloomcli.policy.policy import Policy
from bloomcli.policy.policy_keys import At, Keys, Problem
from bloomcli.storage.names import folder_of
from bloomcli.storage.os_errors import hint, is_file, is_link, option_file_error, reason, status
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
        if _is_file(own, or_broken_link=True):  # its error says more than a file without a policy
            return own
        shared = folder / PYPROJECT
        if _is_file(shared) and _has_table(shared):
            return shared
    return None


def _is_file(path: Path, *, or_broken_link: bool = False) -> bool:
    try:
        return is_file(path) or (or_broken_link and status(path) is None and is_link(path))
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
        tool = parse_toml(_decode(data[: limits.POLICY_MAX_BYTES]), str(path)).get("tool")
    except (UnicodeDecodeError, PolicyError):
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
    table = parse_toml(text, name)
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
    keys = Keys(folder_of(name), readers=bool(readers), implicit=isinstance(path, FoundPolicy))
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


def _raise(problems: list[Problem], text: str, name: str, within: tuple[str, ...]) -> NoReturn:
    """Raise one error with all problems, ordered by line."""
    numbers = key_lines(text)

    def line(problem: Problem) -> int:
        return line_of(numbers, (*within, *problem.at))

    def where(problem: Problem) -> str:
        return f"{name}:{number}" if (number := line(problem)) else name

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


def _field(at: At) -> str:
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


_TOKEN: Final = re.compile(
    r"""
      (?P<comment>\#[^\n]*+ | [ \t\r]++)
    | (?P<newline>\n)
    | (?P<string>
          \"{3}(?:\\.|\"{1,2}(?!\")|[^\"\\])*+(?:\"{3,5}|\Z)
        | '{3}(?:'{1,2}(?!')|[^'])*+(?:'{3,5}|\Z)
        | \"(?:\\.|[^\"\\\n])*+\"
        | '[^'\n]*+')
    | (?P<sign>[\[\]{}=,.])
    | (?P<word>[^\s\"'\#\[\]{}=,.]++)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A token. A string of several lines without an end reaches to the end of the text, so that a scan is linear."""

_AT_LINE: Final = re.compile(r" \(at line (\d+), column (\d+)\)$")
_AT_END: Final = re.compile(r" \(at end of document\)$")


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse a text.

    Raises:
        PolicyError: it isn't TOML, or it nests deeper than `limits.POLICY_MAX_DEPTH`. tomllib recurses for arrays,
            and for a dotted key takes memory by the square of the number of its parts.
    """
    _check_depth(text, name)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
        if (position := _AT_LINE.search(problem)) is not None:
            line, where = int(position[1]), f"column {position[2]}"
        else:
            line, where = text.rstrip().count("\n") + 1, "at the end"
        problem = _AT_END.sub("", _AT_LINE.sub("", problem))
        raise PolicyError(f"not TOML: {problem[:1].lower()}{problem[1:]}, {where}", path=f"{name}:{line}") from None
    except ValueError:  # Python converts no integer of more than 4,300 digits
        raise PolicyError("an integer with thousands of digits", path=name) from None


def _check_depth(text: str, name: str) -> None:
    """Raise PolicyError if arrays and tables, or the parts of a dotted key, nest too deeply."""
    depth = parts = 0
    for kind, sign, line in _tokens(text):
        if kind == "sign":
            depth += (sign in "[{") - (sign in "]}")
            parts = parts + 1 if sign == "." else 0
        elif kind == "newline":
            parts = 0
        if depth + parts > limits.POLICY_MAX_DEPTH:
            raise PolicyError("nested too deeply", path=f"{name}:{line}")


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a text, without white space and comments."""
    line = 1
    for match in _TOKEN.finditer(text):
        if (kind := match.lastgroup) is not None and kind != "comment":
            yield _Token(kind, match[0], line)
            line += match[0].count("\n")


def key_lines(text: str) -> dict[At, int]:
    """The line, from 1, on which each key, table and element in a text that `parse_toml` accepts is first named."""
    lines: dict[At, int] = {}
    lengths: dict[At, int] = {}  # of the arrays so far
    table: At = ()
    opened: list[tuple[At, bool]] = []  # the brackets around a token: what they enclose, and whether an array
    value: At | None = None  # what the token belongs to the value of; None in front of a key or an element
    keys: list[str] = []
    first = brackets = 0

    def named(path: At, step: str | int, line: int) -> At:
        lines.setdefault((*path, step), line)
        return (*path, step)

    def element(array: At, line: int) -> At:
        lengths[array] = lengths.get(array, 0) + 1
        return named(array, lengths[array] - 1, line)

    for token in _tokens(text.removeprefix("\ufeff")):
        sign = token.text if token.kind == "sign" else ""
        if value is None and opened and opened[-1][1] and token.kind != "newline" and sign not in {",", "]"}:
            value = element(opened[-1][0], token.line)
        if token.kind == "newline":
            value = value if opened else None
        elif sign in {"]", "}"} and opened:
            value, _ = opened.pop()
        elif value is not None:
            if sign in {"[", "{"}:
                opened.append((value, sign == "["))
            value = None if sign in {"[", "{", ","} else value
        elif sign == "[":
            brackets += 1
        elif sign == "]" and keys:  # the end of a header, or the first of its two ends
            table = ()
            for number, key in enumerate(keys, 1):
                table = named(table, key, first)
                if number == len(keys) and brackets == 2:
                    table = element(table, first)
                elif table in lengths:  # a table below an array of tables is in the array's last one
                    table = (*table, lengths[table] - 1)
            keys, brackets = [], 0
        elif sign == "=":
            value = opened[-1][0] if opened else table
            for key in keys:
                value = named(value, key, first)
            keys = []
        elif not sign:
            first = first if keys else token.line
            keys.append(_key(token))
    return lines


def line_of(lines: Mapping[At, int], path: At) -> int:
    """The line of what a path names, or of the innermost part of it that is known; 0 for the whole text."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def _key(token: _Token) -> str:
    """A key, parsed by tomllib if it has quotes and escapes."""
    if token.kind == "word":
        return token.text
    parsed: str = tomllib.loads(f"key = {token.text}")["key"]
    return parsed
