"""Decides the answer for one value in one unit (a row group): absent, maybe, or can't tell. No other module does.

A format gives the facts of each unit, `UnitFacts`, and each value with its hashes, `Lookup`. The first row whose
condition holds decides:

       condition                                       presence                reason
    1. the column's type in the file is faulty         can't tell, no filter   the fault
    2. the column can't hold the value                 absent, no filter       why it can't
    3. the column's metadata are encrypted             can't tell              the column is encrypted
    4. the unit has no values                          absent, no filter       no values
    5. it has only nulls, and no filter can be used    absent, no filter       only nulls
    6. there is no filter                              no filter               the format's reason, if any
    7. no filter can answer for this value             can't tell              why none can
    8. the filter can't be used                        can't tell              why it can't
    9. the filter doesn't have the value               absent                  -, only nulls
    10. the filter has the value                       maybe                   -, the statistics count only nulls

"Presence" is what the filter alone says. "..., no filter": the former where the unit has a filter, usable or not; no
filter where it has none, although the value is surely absent in rows 2, 4 and 5. In row 5
a filter can be used if it is readable and row 7 doesn't hold. The second reason in rows 9 and 10 is that of a unit
with only nulls: readers skip it by its statistics, and the filter shows whether the statistics are right.

Filter, statistics and dictionary together (`Answer.together`): absent where the filter says so, where trusted
statistics exclude the value, where the dictionary doesn't have it, where a filter that an engine keeps for the file
excludes it (`with_engine_filters`), or where the column can't hold it; else what the filter says. Statistics aren't
trusted where the filter contradicts them: in row 10 for a unit with only nulls, and in row 8 where the filter doesn't
hold the unit's own minimum or maximum.

A dictionary is read only in rows 6, 8 and 10, where statistics don't exclude the value, and only where every value of
the unit is one of its entries, which the format proves. If the unit's own minimum or maximum isn't an entry, the
dictionary or the statistics are wrong, and the dictionary isn't used. If it can't be read, the reason says why.

The format decides whether statistics exclude the value (`stats_skip`), except: None in rows 1 and 3, where no
statistics can be read; True for a unit without values or with only nulls, unless row 2 decides.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.model.file import Presence

if TYPE_CHECKING:
    from bloomcli.model.probe import BitTrail

ENCRYPTED: Final = "the column is encrypted"
ONLY_NULLS: Final = "only nulls"
NO_VALUES: Final = "no values"
NOT_ONLY_NULLS: Final = "the statistics count only nulls"
WRONG: Final = "the filter is wrong: it doesn't have the row group's own minimum or maximum"
"""The problem of a filter that its unit's statistics contradict. One of the two is wrong: neither is trusted."""


class Contents(Enum):
    """The kind of values that a column has in a unit, by the metadata."""

    VALUES = "some values, or it isn't known"
    ONLY_NULLS = "only nulls"
    NOTHING = "no values, not even nulls"


class HashLookup(Protocol):
    """The bits of a filter, or the entries of a dictionary."""

    def check(self, value: int) -> bool:
        """Whether a hash may be present."""


class Bits(HashLookup, Protocol):
    """A filter's bits."""

    def trail(self, value: int) -> tuple[int | None, tuple[int, ...], tuple[bool, ...]]:
        """The block of a hash (None where a filter has no blocks), its bits, and whether each is set."""


class Lookup(NamedTuple):
    """A value with the hashes that are looked up for it."""

    impossible: str | None
    """Why the column can't hold the value."""
    unknowable: str | None
    """Why no filter can answer for the value."""
    encodings: tuple[bytes, ...]
    """The bytes that are hashed; several where the value has several forms."""
    hashes: tuple[int, ...]
    """The hash of each encoding. The value may be there if the filter has any of them."""
    without_filter: str | None = None
    """The reason in an answer without a filter: Parquet says why no filter could answer, other formats give none."""


_HASH_BYTES: Final = 8

DictionaryLookup = Callable[[Lookup], bool | None]
"""Returns whether the dictionary excludes a value; None if the dictionary isn't read or is known to be wrong.
Raises CorruptFile, UnsupportedError."""


class DictionaryEntries:
    """The hashes of a dictionary's entries. Values with the same hash count as equal: the answer is then maybe."""

    def __init__(self, hashes: bytes | bytearray, others: Iterable[int] = ()) -> None:
        """`hashes` are uint64s in native order, `others` are added to them."""
        self._hashes = hashes
        self._others = frozenset(others)

    def check(self, value: int) -> bool:
        """Whether an entry has this hash. A search is faster than making a set: few values are looked up."""
        wanted = value.to_bytes(_HASH_BYTES, sys.byteorder)
        at = -1
        while (at := self._hashes.find(wanted, at + 1)) >= 0:
            if at % _HASH_BYTES == 0:  # else parts of two hashes
                return True
        return value in self._others


class ReadBudget:
    """The bytes of dictionaries that may still be read from a file. A larger dictionary isn't read."""

    def __init__(self, size: int) -> None:
        self._remaining = size

    def take(self, size: int) -> bool:
        """Return whether a dictionary of `size` bytes may be read; if so, deduct them."""
        if size > self._remaining:
            return False
        self._remaining -= size
        return True


class UnitFacts(NamedTuple):
    """The facts of a column in one unit. Bytes are compressed bytes."""

    row_group: int
    rows: int
    chunk_bytes: int
    row_group_bytes: int
    stripe: int | None = None
    contents: Contents = Contents.VALUES
    type_fault: str | None = None
    """Why the column's type in the file can't be trusted."""
    encrypted: bool = False
    """The column's metadata are encrypted: neither its values nor its filter are known."""
    bits: Bits | None = None
    """The filter, if it can be used."""
    problem: str | None = None
    """Why the filter can't be used; None if it can, and without a filter."""
    lookups: Sequence[Lookup] = ()
    stats_skip: Sequence[bool | None] = ()
    """For each lookup, whether the statistics exclude the value; None if that is unknown."""
    dictionary_excludes: DictionaryLookup | None = None
    """Looks a value up in the dictionary; None unless every value of the unit is an entry."""
    low: bytes | None = None
    """The minimum as PLAIN bytes of the literals' column, for lookups in batches; None if unknown."""
    high: bytes | None = None

    @property
    def has_filter(self) -> bool:
        """Whether the unit has a filter, usable or not."""
        return self.bits is not None or self.problem is not None


class Answer(NamedTuple):
    """The answer of one unit for one value."""

    presence: Presence
    stats_skip: bool | None
    reason: str | None = None
    trail: tuple[BitTrail, ...] = ()

    trusted: bool = True
    """Whether the statistics may be trusted: False where the filter contradicts them."""
    dictionary_skip: bool | None = None
    """Whether the dictionary excludes the value; None where it wasn't read."""
    impossible: bool = False
    """Whether the column can't hold the value."""
    engine_skip: bool = False
    """Whether a filter that an engine keeps for the whole file excludes the value."""

    @property
    def together(self) -> Presence:
        """The answer of filter, statistics and dictionary together."""
        return Presence.ABSENT if self.excluded_unfiltered else self.presence

    @property
    def excluded_unfiltered(self) -> bool:
        """Whether statistics, the dictionary, an engine's own filter or the column's type exclude the value."""
        by_statistics = self.stats_skip is True and self.trusted
        return by_statistics or self.dictionary_skip is True or self.engine_skip or self.impossible

    @property
    def excludes(self) -> bool:
        """Whether filter, statistics and dictionary together exclude the value."""
        return self.together is Presence.ABSENT


def of_all_types(units: Iterable[UnitAnswers], others: Mapping[int, str]) -> list[UnitAnswers]:
    """Return the answers for a path in a VARIANT, given those of the column with its values of one type.

    In the row groups in `others` (see `FilterFile.other_types`) another column may have the value, so that an absent
    value of the column proves nothing.
    """

    def weakened(unit_answer: Answer, why: str | None) -> Answer:
        if why is None or not unit_answer.excludes:
            return unit_answer
        unfiltered = unit_answer.presence is Presence.NO_FILTER
        return Answer(Presence.NO_FILTER if unfiltered else Presence.UNKNOWN, None, why, unit_answer.trail)

    return [
        unit._replace(
            answers=tuple(weakened(unit_answer, others.get(unit.row_group)) for unit_answer in unit.answers)
        )
        for unit in units
    ]


_MANY: Final = 8
"""From this number of lookups on, a filter is asked for all of them at once."""


class UnitAnswers(NamedTuple):
    """One unit's answers, one for each value. Bytes are compressed bytes."""

    row_group: int
    rows: int
    chunk_bytes: int
    row_group_bytes: int
    answers: tuple[Answer, ...]
    stripe: int | None = None

    def possible(self) -> set[int]:
        """The positions of the values that the unit may have."""
        absent = Presence.ABSENT  # `Answer.excludes`, for many answers
        return {
            at
            for at, unit_answer in enumerate(self.answers)
            if unit_answer.presence is not absent and not unit_answer.excluded_unfiltered
        }


def answers(units: Iterable[UnitFacts], *, explain: bool) -> Iterator[UnitAnswers]:
    """Yield each unit's answers to all its lookups; with the bits that were tested if `explain` is set."""
    lookups: Sequence[Lookup] | None = None
    hashed: _Hashes | None = None
    for facts in units:
        if facts.lookups is not lookups:  # most units of a file share them
            lookups = facts.lookups
            hashed = None if explain or len(lookups) < _MANY else _hashes_of(lookups)
        yield UnitAnswers(
            row_group=facts.row_group,
            stripe=facts.stripe,
            rows=facts.rows,
            chunk_bytes=facts.chunk_bytes,
            row_group_bytes=facts.row_group_bytes,
            answers=one_by_one(facts, explain=explain) if hashed is None else _at_once(facts, hashed),
        )


def one_by_one(facts: UnitFacts, *, explain: bool) -> tuple[Answer, ...]:
    """Return a unit's answers to all its lookups, by the table above; with the bits that were tested if `explain` is
    set."""
    return tuple(
        _with_dictionary(facts, lookup, answer(facts, lookup, skip, explain=explain))
        for lookup, skip in zip(facts.lookups, facts.stats_skip, strict=True)
    )


class _Hashes(NamedTuple):
    """The hashes of lookups, to be looked up at once."""

    hashes: bytes
    """uint64s in native order."""
    owners: Sequence[int]
    """For each hash, the position of its lookup."""
    others: Sequence[int]
    """Positions of the lookups that no filter answers."""


def _hashes_of(lookups: Sequence[Lookup]) -> _Hashes:
    others = [
        at for at, lookup in enumerate(lookups) if lookup.impossible is not None or lookup.unknowable is not None
    ]
    hashes = array("Q", (value for lookup in lookups for value in lookup.hashes))
    return _Hashes(hashes.tobytes(), [at for at, lookup in enumerate(lookups) for _ in lookup.hashes], others)


def _at_once(facts: UnitFacts, hashed: _Hashes) -> tuple[Answer, ...]:
    """Return what `one_by_one` returns. By most filters most values are absent (row 9): the filter is asked for all
    hashes at once, and only the other values take the whole table."""
    by_filter = facts.contents is Contents.VALUES and facts.type_fault is None and not facts.encrypted
    if facts.bits is None or not by_filter:
        return one_by_one(facts, explain=False)
    absent = {skip: Answer(Presence.ABSENT, skip) for skip in (None, False, True)}
    unit_answers = [absent[skip] for skip in facts.stats_skip]
    hits = memoryview(positions_in(facts.bits, hashed.hashes, len(hashed.owners))).cast("q")
    for at in {*hashed.others, *(hashed.owners[hit] for hit in hits)}:
        lookup = facts.lookups[at]
        unit_answers[at] = _with_dictionary(facts, lookup, answer(facts, lookup, facts.stats_skip[at], explain=False))
    return tuple(unit_answers)


def with_engine_filters(units: Iterable[UnitAnswers], excluded: Container[int]) -> Iterator[UnitAnswers]:
    """Add the answers of an engine's own filter of the file, which excludes the values at these positions."""
    for unit in units:
        pairs = enumerate(unit.answers)
        yield unit._replace(
            answers=tuple(unit_answer._replace(engine_skip=at in excluded) for at, unit_answer in pairs)
        )


class RemainingValues(NamedTuple):
    """The values that a unit may have, out of many."""

    positions: bytes | None
    """Their positions, ascending int64s in native order; every value if None."""
    bounded: bool
    """The statistics may exclude some of these values."""


def may_have(facts: UnitFacts, hashes: bytes, count: int) -> RemainingValues:
    """Find which of many values a unit may have, by the table above, but without statistics and dictionary.

    Args:
        facts: the unit's facts. `lookups` isn't used.
        hashes: the values' hashes, uint64s in native order. No value has a `Lookup.impossible` or `unknowable`.
        count: the number of values.
    """
    if facts.type_fault is not None or facts.encrypted:
        return RemainingValues(None, bounded=False)
    if facts.contents is Contents.NOTHING:
        return RemainingValues(b"", bounded=False)
    only_nulls = facts.contents is Contents.ONLY_NULLS
    if facts.bits is None:
        return RemainingValues(b"" if only_nulls else None, bounded=facts.problem != WRONG)
    return RemainingValues(positions_in(facts.bits, hashes, count), bounded=not only_nulls)


def positions_in(bits: Bits, hashes: bytes, count: int) -> bytes:
    """The positions of the hashes that a filter has, ascending int64s in native order."""
    import numpy as np  # only `find` looks many values up

    flags = bytearray(count)
    check_all = getattr(bits, "check_hashes", None)
    if check_all is not None:
        check_all(hashes, count, flags)
    else:  # a filter whose blocks are read one by one
        for at, value in enumerate(memoryview(hashes).cast("Q")):
            flags[at] = bits.check(value)
    return np.flatnonzero(np.frombuffer(flags, np.uint8)).tobytes()


def _with_dictionary(facts: UnitFacts, lookup: Lookup, unit_answer: Answer) -> Answer:
    """Add the dictionary's result to an answer, if it is needed."""
    settled = unit_answer.together is Presence.ABSENT or facts.type_fault is not None or facts.encrypted
    if settled or facts.dictionary_excludes is None or lookup.unknowable is not None or not lookup.hashes:
        return unit_answer
    try:
        return unit_answer._replace(dictionary_skip=facts.dictionary_excludes(lookup))
    except (CorruptFile, UnsupportedError) as error:
        return unit_answer._replace(reason=unit_answer.reason or f"the dictionary can't be read: {error.reason}")


def answer(facts: UnitFacts, lookup: Lookup, stats_skip: bool | None, *, explain: bool) -> Answer:
    """Return a unit's answer for a value, by the table above, without its dictionary."""
    if facts.type_fault is not None:
        return Answer(Presence.UNKNOWN if facts.has_filter else Presence.NO_FILTER, None, facts.type_fault)
    absent = Presence.ABSENT if facts.has_filter else Presence.NO_FILTER
    if lookup.impossible is not None:
        return Answer(absent, stats_skip, lookup.impossible, impossible=True)
    if facts.encrypted:
        return Answer(Presence.UNKNOWN, None, ENCRYPTED)
    if facts.contents is Contents.NOTHING:
        return Answer(absent, True, NO_VALUES)
    only_nulls = facts.contents is Contents.ONLY_NULLS
    if only_nulls and (facts.bits is None or lookup.unknowable is not None):
        return Answer(absent, True, ONLY_NULLS)
    if not facts.has_filter:
        return Answer(Presence.NO_FILTER, stats_skip, lookup.without_filter)
    trusted = facts.problem != WRONG
    if lookup.unknowable is not None:
        return Answer(Presence.UNKNOWN, stats_skip, lookup.unknowable, trusted=trusted)
    if facts.bits is None:
        return Answer(Presence.UNKNOWN, stats_skip, facts.problem, trusted=trusted)
    trail = tuple(_trail(facts.bits, lookup)) if explain else ()
    if any(map(facts.bits.check, lookup.hashes)):
        if only_nulls:
            return Answer(Presence.MAYBE, True, NOT_ONLY_NULLS, trail, trusted=False)
        return Answer(Presence.MAYBE, stats_skip, None, trail)
    return Answer(Presence.ABSENT, True if only_nulls else stats_skip, ONLY_NULLS if only_nulls else None, trail)


def _trail(bits: Bits, lookup: Lookup) -> Iterator[BitTrail]:
    from bloomcli.model.probe import BitTrail  # commands that don't explain answers start without it

    for encoded, value in zip(lookup.encodings, lookup.hashes, strict=True):
        block, positions, present = bits.trail(value)
        yield BitTrail(hashed=encoded, hash=value, block=block, bits=positions, present=present)
