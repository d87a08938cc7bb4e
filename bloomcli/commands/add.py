"""add: filters for chosen columns, without re-encoding the data."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bloomcli import limits
from bloomcli.commands.change import Order, Progress, Target, change
from bloomcli.commands.columns import select
from bloomcli.errors import UsageError
from bloomcli.formats.base import Draft, FilterFile, SizeRule
from bloomcli.model import ChangeReport


def size_rule(
    fpp: float,
    ndv: int | None = None,
    max_bytes: int | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
) -> SizeRule:
    """Check the figures that size filters. Raises UsageError."""
    if not 0 < fpp < 1:
        raise UsageError(f"a false-positive rate lies between 0 and 1, not at {fpp}")
    if ndv is not None and ndv < 1:
        raise UsageError(f"a number of distinct values is 1 or more, not {ndv}")
    if max_bytes is not None and max_bytes < limits.FILTER_MIN_BYTES:
        raise UsageError(f"the smallest filter has {limits.FILTER_MIN_BYTES} bytes; a cap of {max_bytes} leaves none")
    if kind not in {None, "utf8", "both"}:
        raise UsageError(f"no kind of filter is called {kind!r}", hint="utf8 or both, for ORC")
    return SizeRule(fpp=fpp, ndv=ndv, max_bytes=max_bytes, kind=kind, variant=variant, mosaic_draft=mosaic_draft)


def order(
    columns: Sequence[str],
    *,
    fpp: float = 0.01,
    ndv: int | None = None,
    max_bytes: int | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    replace: bool = False,
) -> Order:
    """What to add, to whichever file. Raises UsageError."""
    rule = size_rule(fpp, ndv, max_bytes, kind, variant, mosaic_draft)

    def done(file: FilterFile) -> str | None:
        chosen = select(file.leaves, columns, path=file.source.path)
        filtered = file.filtered_columns()
        there = not replace and all(c.index in filtered and not file.without_filter(c) for c in chosen)
        return "the columns have filters already" if there else None

    def draft(file: FilterFile) -> Draft:
        chosen = select(file.leaves, columns, path=file.source.path)
        return file.draft_add(chosen, rule, replace=replace)

    return Order(command="add", draft=draft, done=done)


def add(
    path: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    force: bool = False,
    overwrite: bool = False,
    fpp: float = 0.01,
    ndv: int | None = None,
    max_bytes: int | None = None,
    kind: str | None = None,
    variant: str | None = None,
    mosaic_draft: bool = False,
    replace: bool = False,
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
        columns: leaf paths or globs.
        output: the file to write; or
        in_place: replace the file itself, atomically.
        force: replace it even within a Delta, Iceberg or Hudi table, whose log records the file's size.
        overwrite: let `output` replace a file that exists.
        fpp: false-positive rate to meet, between 0 and 1.
        ndv: distinct values per row group to size for, instead of measuring.
        max_bytes: cap of one filter's bitset, bytes; rounded down to a power of two.
        kind: ORC: "utf8" (the default), or "both" to write BLOOM_FILTER streams for old readers too.
        variant: Parquet, for tests and old readers: write one of the headers of the drafts of 2018
            ("parquet-2018-12byte", "parquet-2018-header", "parquet-2018-page"), hashed with Murmur3.
        mosaic_draft: Mosaic: write version 2 of the format, a draft that released readers refuse; without it
            filters can't be added to a Mosaic file. Other formats take no notice.
        replace: build new filters where there are some already.
        dry_run: write nothing; the report says what would be done, sizes being upper bounds.
        threads: column chunks decoded at a time; the machine's cores by default.
        progress: called with ("copy" or "decode", bytes done, bytes in all), from several threads.

    Raises:
        UsageError: contradicting options, an unknown or BOOLEAN column, a filter that is there already.
        UnreadableError: the file can't be read, or changed meanwhile.
        UnsupportedError: encrypted columns, a signed footer, an unknown codec or encoding.
        WriteError: the output could not be written; the original is whole, nothing is left behind.
    """
    if not columns:
        raise UsageError("no columns to add filters for", path=os.fspath(path), hint="name them with --columns")
    what = order(
        columns,
        fpp=fpp,
        ndv=ndv,
        max_bytes=max_bytes,
        kind=kind,
        variant=variant,
        mosaic_draft=mosaic_draft,
        replace=replace,
    )
    target = Target(output=output, in_place=in_place, force=force, overwrite=overwrite, dry_run=dry_run)
    return change(path, what, target, threads=threads, progress=progress)
