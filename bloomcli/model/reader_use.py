"""What filters of some columns do for one reader: the verdicts of `advise` and `trial`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderUse:
    """One reader, and columns for which filters do the same for it."""

    reader: str
    """The name, as `--readers` takes it."""
    title: str
    """The product's name."""
    verdict: str
    """One of ``gains`` (it skips row groups by filters), ``dictionaries`` (it skips the same row groups by the
    dictionaries of the chunks, so that filters change nothing), ``never-looks`` (it doesn't look at filters)."""
    columns: tuple[str, ...]
    reason: str
    """What the reader does, as a sentence without its subject and its period."""
