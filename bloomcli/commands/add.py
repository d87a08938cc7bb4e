"""add: filters for chosen columns, without re-encoding the data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from bloomcli import limits
from bloomcli.checks.additions import Readers
from bloomcli.commands.arguments import names, readers_policy
from bloomcli.commands.change import ChangeRequest, Target, change
from bloomcli.commands.columns import select
from bloomcli.commands.existing_filters import Place, holds_nothing, incomplete, present, shortfall
from bloomcli.commands.progress import Progress
from bloomcli.errors import UsageError
from bloomcli.formats.add_options import checked_options, for_old_readers, refuse_foreign
from bloomcli.formats.base import Chosen, FilterFile, Plan, SizeRule
from bloomcli.formats.format import NO_OPTIONS, OptionValues
from bloomcli.model.file import ChangeReport, Column, FilterFacts
from bloomcli.policy.policy import FilePolicy, Policy

FPP: Final = 0.01
"""The rate of filters for which none is asked."""


def size_rule(
    fpp: float,
    ndv: int | None = None,
    max_bytes: int | None = None,
    options: OptionValues = NO_OPTIONS,
) -> SizeRule:
    """Check the figures that size filters, and the options that belong to single formats. Raises UsageError."""
    if not 0 < fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
    if ndv is not None and ndv < 1:
        raise UsageError(f"a number of distinct values is 1 or more, not {ndv}")
    if max_bytes is not None and max_bytes < limits.FILTER_MIN_BYTES:
        raise UsageError(f"the smallest filter has {limits.FILTER_MIN_BYTES} bytes; a cap of {max_bytes} leaves none")
    return SizeRule(fpp=fpp, ndv=ndv, max_bytes=max_bytes, options=checked_options(options))


def order(
    columns: Sequence[str],
    *,
    fpp: float | None = None,
    ndv: int | None = None,
    max_bytes: int | None = None,
    replace: bool = False,
    missing: bool = False,
    exclude: Sequence[str] = (),
    policy: Policy | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    format_options: OptionValues = NO_OPTIONS,
) -> ChangeRequest:
    """What to add, to whichever file; with `missing`, where there are no filters yet. Raises UsageError.

    The policy says who reads which file: columns in which a reader would lose rows by a filter get none.
    """
    if not columns:
        raise UsageError("no columns to add filters for", hint="name them with --columns")
    asked = fpp is not None or ndv is not None
    options = {"kind": kind, "variant": variant, "mosaic_draft": mosaic_draft, **format_options}
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    rule = size_rule(FPP if fpp is None else fpp, ndv, max_bytes, given)
    rule = rule._replace(by_default=not asked)

    wanted = names(columns, "columns")
    unwanted = names(exclude, "columns")
    whole = Policy() if policy is None else policy

    def readers_of(file: FilterFile) -> Readers:
        if for_old_readers(rule.options):  # who asks for a form that old readers have knows who reads it
            return Readers(file.format, FilePolicy(readers_said=True))
        return Readers(file.format, whole.for_file(file.source.path))

    def chosen(file: FilterFile) -> Chosen:
        readers = readers_of(file)

        def why_not(column: Column) -> str | None:
            refusal = readers.refusal(column)
            return file.why_not(column) if refusal is None else refusal.reason

        return select(file.leaves, wanted, path=file.source.path, exclude=unwanted, why_not=why_not)

    def sized(file: FilterFile) -> SizeRule:
        return rule._replace(least=readers_of(file).smallest())

    def done(file: FilterFile) -> str | None:
        if holds_nothing(file):
            return "there are no rows to filter"
        if replace:
            return None
        own = chosen(file)
        there = present(file, own)
        short = shortfall(file, own, sized(file), there, rated=lambda _: asked)
        if short is not None:
            raise short
        return None if incomplete(file, own, there) else "the columns have filters already"

    def made(file: FilterFile, output: FilterFile) -> bool:
        own = chosen(file)
        if not file.alike(output, {c.index for c in own}):
            return False
        there = present(output, own)
        if incomplete(output, own, there):
            return False
        before = present(file, own) if replace or not asked else {}
        if replace and any(_bits(found) == _bits(there.get(place)) for place, found in before.items()):
            return False  # it may be the one that was to be replaced

        def rated(place: Place) -> bool:
            return asked or replace or place not in before  # the source's own may be anybody's, others are ours

        return shortfall(output, own, sized(file), there, rated) is None

    def plan(file: FilterFile) -> Plan:
        own = chosen(file)
        _refuse(file, own, readers_of(file))
        refuse_foreign(rule.options, file.format, file.source.path)
        return file.plan_add(own, sized(file), replace=replace, missing=missing and not replace)

    def remarks(file: FilterFile) -> tuple[str, ...]:
        return tuple(readers_of(file).remarks(chosen(file), rule.largest_split_block))

    return ChangeRequest(command="add", plan=plan, done=done, made=made, remarks=remarks)


def _refuse(file: FilterFile, columns: Sequence[Column], readers: Readers) -> None:
    """Raise where a column was named in which a reader would lose rows."""
    for column in columns:
        refusal = readers.refusal(column)
        if refusal is not None:
            raise UsageError(
                f"column {column.path} gets no filter: {refusal.reason}", path=file.source.path, hint=refusal.hint
            )


def _bits(kinds: dict[str | None, FilterFacts] | None) -> list[tuple[int | None, float | None, float | None]]:
    """What filters that are the same have in common."""
    return [(f.bitset_bytes, f.fill, f.fpp) for f in (kinds or {}).values()]


def add(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    exclude: Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
    fpp: float | None = None,
    ndv: int | None = None,
    max_bytes: int | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    format_options: OptionValues = NO_OPTIONS,
    replace: bool = False,
    readers: Sequence[str] = (),
    table_schema: str | os.PathLike[str] | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ChangeReport:
    """Add Bloom filters to a file. Existing bytes are copied, never re-encoded.

    Each filter is built at an upper bound and folded to the smallest power of two whose measured
    false-positive rate meets `fpp`. With `ndv` its size is arrow-rs's formula instead: the next power of
    two of -8 n / ln(1 - fpp^(1/8)) bits.

    Args:
        path: a local file.
        columns: leaf paths or globs. Globs leave out columns that can't have a filter: the report names them.
        exclude: leaf paths or globs of columns to leave out, whatever `columns` says.
        output: the file to write; or
        in_place: replace the file itself, atomically.
        force: replace it even within a Delta, Iceberg or Hudi table, whose log records the file's size.
        overwrite: let `output` replace a file that exists.
        fpp: false-positive rate to meet, between 0 and 1; 0.01 where none is given. ORC's filters have the size that
            orc-core gives them for it, and may miss it by a little: the report tells of those only if one is given.
        ndv: distinct values per row group to size for, instead of measuring. In ORC not more than a row group's
            rows, except below lists and maps, where a row has several.
        max_bytes: cap of one filter's bitset, bytes; rounded down to a power of two.
        kind: ORC: "utf8" (the default), or "both" to write BLOOM_FILTER streams for old readers too.
        variant: Parquet, for tests and old readers: write one of the headers of the drafts of 2018
            ("parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"), hashed with Murmur3.
        mosaic_draft: Mosaic: write version 2 of the format, a draft that released readers refuse; without it
            filters can't be added to a Mosaic file. Other formats take no notice.
        format_options: options of single formats, by name; for those of formats that other packages add.
        replace: build new filters where there are some already.
        readers: the engines that read the file. Globs leave columns out in which one of them would lose rows by a
            sound filter; where such a column is named, that is an error. All known engines that read files as they
            are, if none is named here or by the policy. Filters have two blocks at least where Impala is among them.
        table_schema: file with the table's schema, for readers that look values up at its types.
        policy: a policy, or the file that holds one, of which `readers`, `table-schema` and what it says of the rules
            about readers count; what is given here besides wins over it.
        dry_run: write nothing; the report says what would be done, sizes being upper bounds.
        threads: column chunks decoded at a time; the machine's cores by default.
        progress: called with ("copy" or "decode", bytes done, bytes in all), from several threads.

    Raises:
        UsageError: contradicting options, an unknown or BOOLEAN column, one in which a reader would lose rows, a
            filter that is there already, an unknown reader, a policy or a schema that can't be read.
        UnreadableError: the file can't be read, or changed meanwhile.
        UnsupportedError: encrypted columns, a signed footer, an unknown codec or encoding.
        WriteError: the output could not be written; the original is whole, nothing is left behind.
    """
    what = order(
        columns,
        exclude=exclude,
        fpp=fpp,
        ndv=ndv,
        max_bytes=max_bytes,
        kind=kind,
        variant=variant,
        mosaic_draft=mosaic_draft,
        format_options=format_options,
        replace=replace,
        policy=readers_policy(policy, readers=readers, table_schema=table_schema),
    )
    target = Target(output=output, in_place=in_place, force=force, overwrite=overwrite, dry_run=dry_run)
    return change(path, what, target, threads=threads, progress=progress)
