"""repair: mends or adds what readers skip by besides filters, and changes nothing else."""

from __future__ import annotations

import os

from bloomcli.commands.change import ChangeRequest, change, target_of
from bloomcli.commands.columns import indexes, why_none
from bloomcli.commands.options import RepairOptions
from bloomcli.commands.progress import Progress, cores
from bloomcli.formats.base import FilterFile, Plan, Repair
from bloomcli.model.change import ChangeReport


def request(options: RepairOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()
    repair = Repair(frozenset(options.add), options.threads or cores())

    def plan(file: FilterFile) -> Plan:
        return file.plan_repair(indexes(file, options.columns, exclude=options.exclude), repair)

    def is_result(file: FilterFile, output: FilterFile) -> bool:
        if not file.differs_only_in_structures(output):
            return False
        return all(one.action == "keep" for one in plan(output).structures)

    return ChangeRequest(
        command="repair",
        plan=plan,
        why_unchanged=lambda file: file.unrepairable or why_none(file, options.columns, exclude=options.exclude),
        is_result=is_result,
        why_idle="there is nothing to add" if options.add else "there is nothing to mend",
        names=options.names,
    )


def run(path: str | os.PathLike[str], options: RepairOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file. Raises: as `repair`."""
    return change(path, request(options), target_of(options), threads=options.threads, progress=progress)
