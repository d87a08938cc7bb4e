"""The policy of a command: the file that an option names, or the nearest one."""

from __future__ import annotations

import os

from bloomcli.errors import UsageError
from bloomcli.storage.os_errors import convert_os_errors


def policy_file(policy: str | None, *, no_policy: bool) -> str | None:
    """The policy file that the option names, or the nearest one; None if there is none. Raises UsageError."""
    if no_policy and policy is not None:
        raise UsageError("--policy and --no-policy exclude each other", hint="leave one of them out")
    return None if no_policy else policy or _nearest()


def _nearest() -> str | None:
    from pathlib import Path

    from bloomcli.policy.policy_file import FoundPolicy, find

    with convert_os_errors():
        found = find(Path())
        return None if found is None else FoundPolicy(os.path.relpath(found))
