"""fold: oversized filters made smaller without reading a column."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli.checks.additions import Readers
from bloomcli.commands.change import ChangeRequest, change
from bloomcli.commands.columns import indexes
from bloomcli.commands.options import FPP, FoldOptions
from bloomcli.commands.progress import Progress
from bloomcli.commands.targets import target_of
from bloomcli.formats.base import FilterFile, Plan
from bloomcli.model.change import ChangeReport
from bloomcli.policy.policy import FilePolicy


def request(options: FoldOptions) -> ChangeRequest:
    """Make the request for any file. Raises UsageError."""
    options = options.checked()
    rule = options.size_rule()

    def chosen(file: FilterFile) -> set[int] | None:
        return indexes(file.columns, options.columns, path=file.source.path, exclude=options.exclude)

    def plan(file: FilterFile) -> Plan:
        least = Readers(file.format, FilePolicy()).smallest()
        return file.plan_fold(chosen(file), rule._replace(least=least))

    def made(file: FilterFile, output: FilterFile) -> bool:
        if file.unfoldable is not None:
            return file.alike(output, set())
        if not file.alike(output, chosen(file)):
            return False
        planned = [(c.row_group, c.column, c.bitset_bytes, c.fpp) for c in plan(file).estimate]
        return planned == [(f.row_group, f.column, f.bitset_bytes, f.fpp) for f in output.facts(chosen(file))]

    return ChangeRequest(
        command="fold",
        plan=plan,
        done=lambda file: file.unfoldable,
        made=made,
        idle="no filter can be smaller",
    )


def run(path: str | os.PathLike[str], options: FoldOptions, *, progress: Progress | None = None) -> ChangeReport:
    """Change one file. Raises: as `fold`."""
    return change(path, request(options), target_of(options), progress=progress)


def fold(
    path: str | os.PathLike[str],
    *,
    fpp: float = FPP,
    columns: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_bytes: int | None = None,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ChangeReport:
    """Fold filters to the smallest size whose measured false-positive rate still meets `fpp`.

    A split-block filter of z blocks (z even) becomes exactly the filter that z/2 blocks would have given,
    by ORing neighbouring blocks: block i of the smaller one is chosen by the same hashes as 2i and 2i+1.

    Args:
        path: the file, a local path or a URI of a store.
        fpp: false-positive rate to keep to, between 0 and 1.
        columns: one or several leaf paths or globs; none means all.
        exclude: one or several leaf paths or globs of columns to leave out, even if `columns` names them.
        max_bytes: fold further down to this many bytes even where that misses `fpp`.
        output, in_place, force, overwrite, dry_run, progress: as for `add`.

    Raises:
        As `add`; CorruptFile where a filter can't be read.
    """
    options = FoldOptions(
        fpp=fpp,
        columns=columns,
        exclude=exclude,
        max_bytes=max_bytes,
        output=output,
        in_place=in_place,
        force=force,
        overwrite=overwrite,
        dry_run=dry_run,
    )
    return run(path, options, progress=progress)
