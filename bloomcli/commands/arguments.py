"""What callers of the library give where several things may be meant: one is given as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bloomcli.errors import UsageError
from bloomcli.policy.policy import Policy, with_options


def names(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    """Names of columns and the like: a single one is meant as one, not as its letters.

    Args:
        given: one name or several.
        what: what they name, for the error.

    Raises:
        UsageError: something that is no text.
    """
    found = several(given)
    wrong = [name for name in found if not isinstance(name, str)]
    if wrong:
        raise UsageError(f"{what} are given by name, not as {wrong[0]!r}", hint="one text, or a list of texts")
    return tuple(map(str, found))


def several(given: object) -> tuple[object, ...]:
    """What is given, where it is one thing; the things in it, where it is a list of them."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def readers_policy(
    policy: Policy | str | os.PathLike[str] | None,
    *,
    readers: str | Sequence[str] | None = (),
    table_schema: str | os.PathLike[str] | None = None,
    max_fpp: float | None = None,
    max_oversize: float | None = None,
) -> Policy:
    """The policy, or that of a file, with what is asked for besides.

    Args:
        policy: a policy, or the file that holds one.
        readers: names of engines, which take the place of the policy's; none, or None, leave the policy's.
        table_schema: file with the table's schema, likewise.
        max_fpp, max_oversize: limits, likewise.

    Raises:
        UsageError: a figure out of range, an unknown engine, a policy or a schema that can't be read.
    """
    engines = names(() if readers is None else readers, "readers")
    if policy is None:
        policy = Policy()
    elif not isinstance(policy, Policy):
        from bloomcli.policy.policy_file import load

        policy = load(policy, readers=engines)
    table = None
    if table_schema is not None:
        from bloomcli.policy.table_schema import read

        table = read(table_schema)
    return with_options(policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=engines, table=table)
