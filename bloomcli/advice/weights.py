"""The mean of lookups of present and absent values, by the share of lookups whose value is present."""

from __future__ import annotations

from bloomcli.model.advice import AtRate, Interval


def weights(present: object, absent: object, share: float) -> tuple[float, float]:
    """The weights of figures of present and of absent values; a figure that is None has the weight 0.

    Args:
        present, absent: the figures, or None.
        share: the share of the lookups whose value is present.
    """
    if present is None or absent is None:
        return float(present is not None), float(absent is not None)
    return share, 1 - share


def mean(present: Interval | None, absent: Interval | None, share: float) -> Interval | None:
    """The mean of two figures. The ends of the interval are means, too. None if both figures are."""
    pairs = zip((present, absent), weights(present, absent, share), strict=True)
    both = [(one, weight) for one, weight in pairs if one is not None]
    if not both:
        return None
    return Interval(
        estimate=sum(weight * one.estimate for one, weight in both),
        low=sum(weight * one.low for one, weight in both),
        high=sum(weight * one.high for one, weight in both),
    )


def saved_at(rate: AtRate, share: float) -> Interval | None:
    """The bytes that one lookup reads less with filters of this rate: for the queries' literals; without any, the
    mean for present and absent values."""
    if rate.saved_queried is not None:
        return rate.saved_queried
    return mean(rate.saved_present, rate.saved_absent, share)
