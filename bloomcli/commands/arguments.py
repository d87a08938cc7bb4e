"""Arguments of the library's functions that may be one value or several, and the policy that all options result
in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.policy.policy import Policy


def several(given: object) -> tuple[object, ...]:
    """The items of a list or another iterable; a string, or anything else, as a single item."""
    if isinstance(given, str | bytes | bytearray | memoryview) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def read_policy(
    policy: Policy | str | os.PathLike[str] | None,
    *,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    max_fpp: float | None = None,
    max_oversize: float | None = None,
    size: str | None = None,
) -> Policy:
    """The policy, with the settings that options replace.

    Args:
        policy: a policy, or its file; None for an empty policy.
        readers: names of engines; if empty, the policy's.
        table_schema: file with the table's schema; if None, the policy's.
        max_fpp, max_oversize: limits; if None, the policy's.
        size: one of `SIZES`; if None, the policy's.

    Raises:
        UsageError: a figure out of range, an unknown engine, a policy or a schema that can't be read.
    """
    from bloomcli.policy.policy import Policy, with_options

    if policy is None:
        policy = Policy()
    elif not isinstance(policy, Policy):
        from bloomcli.policy.policy_file import load

        policy = load(policy, readers=readers)
    if not readers and table_schema is None and max_fpp is None and max_oversize is None and size is None:
        return policy
    table = None
    if table_schema is not None:
        from bloomcli.policy.table_schema import read

        table = read(table_schema)
    return with_options(policy, max_fpp=max_fpp, max_oversize=max_oversize, readers=readers, table=table, size=size)
