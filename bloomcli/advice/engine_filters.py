"""What a right size of the filters that engines keep themselves would save."""

from __future__ import annotations

from collections.abc import Iterable

from bloomcli.model.advice import EngineFilterAdvice
from bloomcli.model.file import EngineFilterFacts

_LEAST_SHARE = 0.8
"""Filters that would keep more than this share of their bytes aren't reported."""


def too_large(facts: Iterable[EngineFilterFacts], scale: float) -> tuple[EngineFilterAdvice, ...]:
    """The filters that are larger than the rows of the largest file need, by kind and column.

    A filter's bytes are proportional to the values that it is sized for. `scale`: all files by those with facts.
    """
    found: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
    for one in facts:
        if one.problem is None and one.sized_for and one.length and one.values and one.setting:
            key = one.kind, one.column, one.setting
            found.setdefault(key, []).append((one.length, one.sized_for, one.values))
    advice = []
    for (kind, column, setting), sizes in found.items():
        most = max(values for *_, values in sizes)
        now, right = sum(size for size, *_ in sizes), sum(round(size * most / sized) for size, sized, _ in sizes)
        if right <= _LEAST_SHARE * now:
            advice.append(
                EngineFilterAdvice(
                    kind=kind,
                    column=column,
                    files=round(scale * len(sizes)),
                    bytes=round(scale * now),
                    bytes_right=round(scale * right),
                    values=most,
                    setting=f"{setting}={most}",
                )
            )
    return tuple(advice)
