"""The interface of filters that engines keep themselves, with the figures, faults and proof that all have in common.

Such a filter is of one column of a whole file, and says "absent" or "maybe" of a value. It has one row of bits or
several: a value may be present if all its k bits are set in a row. The hashes of a value are independent, so that a
row passes a random absent value with probability fill^k, and all rows together with 1 - product of (1 - fill^k).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from bloomcli import kernels
from bloomcli.filters.kirsch_mitzenmacher import estimate_ndv
from bloomcli.model.file import EngineFilterFacts
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES
from bloomcli.words import counted, exact_size

if TYPE_CHECKING:
    import pyarrow as pa

    from bloomcli.formats.base import FilterFile
    from bloomcli.model.change import FilterChange
    from bloomcli.model.file import Column
    from bloomcli.model.probe import BitTrail
    from bloomcli.storage.base import Fingerprint, Source
    from bloomcli.values.literals import Literal

MISSES: Final = "engine-filter-misses"
DAMAGED: Final = "engine-filter-damaged"
MISSING: Final = "engine-filter-missing"
LABEL: Final = "engine-filter-label"
COPY: Final = "engine-filter-copy"
BOUNDS: Final = "engine-filter-bounds"
OVERFILLED: Final = "engine-filter-overfilled"
OVERSIZED: Final = "engine-filter-oversized"
NOT_CHECKED: Final = "filter-not-checked"
"""The rules on such filters, for all engines."""
NOT_LOOKED_UP: Final = "values of this column or type aren't looked up"
"""The problem of a filter whose engine uses it, although nothing can be proven about it here."""

_USEFUL_FPP: Final = 0.01
"""A filter at or below this rate isn't overfilled, whatever rate its writer asked for."""
_OVERFILLED: Final = 2
"""The factor above the rate that was asked for (of each row of bits) from which a filter is overfilled."""
_OVERSIZED: Final = 4
"""The factor above the values that are there from which a filter is too large."""
_SMALL_BYTES: Final = 16 << 10
"""A filter of at most this size isn't too large: it is read with the footer."""


class BitRow(NamedTuple):
    """One row of a filter's bits: bit i is bit i & 7, the least significant being 0, of byte i >> 3."""

    bitset: bytes
    bits: int
    """m"""
    k: int

    @property
    def ones(self) -> int:
        """The bits that are set, without those behind the last one of m."""
        unused = 8 * len(self.bitset) - self.bits
        return kernels.count_bits(self.bitset) - (self.bitset[-1] >> 8 - unused).bit_count()

    @property
    def fpp(self) -> float:
        """The share of random absent values that the row passes."""
        return float((self.ones / self.bits) ** self.k)


def measured(facts: EngineFilterFacts, rows: Sequence[BitRow]) -> EngineFilterFacts:
    """Facts with the figures that follow from a filter's bits."""
    ones = [row.ones for row in rows]
    estimates = [estimate_ndv(count, row.bits, row.k) for count, row in zip(ones, rows, strict=True)]
    passed = 1.0
    for row in rows:
        passed *= 1 - row.fpp
    return replace(
        facts,
        bits=rows[0].bits,
        hash_functions=rows[0].k,
        rows=len(rows),
        fill=sum(ones) / sum(row.bits for row in rows),
        fpp=rows[0].fpp if len(rows) == 1 else 1 - passed,
        ndv_estimate=None if None in estimates else sum(filter(None, estimates)),
    )


class EngineFilter(ABC):
    """One filter that an engine keeps.

    Attributes:
        facts: what reports say about the filter. With a `problem`, it rules no value out.
        rows: its bits; empty if they can't be read.
        header: the bytes before the bits of the first row.
        faults: the findings about this filter, besides those of `examine`.
    """

    loses: ClassVar[str]
    """What happens to rows whose value the filter misses: ``an upsert inserts the keys again``."""
    rebuild: str
    """The hint on a wrong filter: how the engine writes it again."""
    resize: str | None = None
    """The hint on a filter of a wrong size; None if `facts.setting` is to be changed."""
    facts: EngineFilterFacts
    rows: Sequence[BitRow] = ()
    header: bytes = b""
    faults: Sequence[Finding] = ()

    @abstractmethod
    def check(self, forms: pa.Array) -> bytearray:
        """For each value, 1 if the filter may have it, or can't say; 0 if it is absent.

        `forms` are values of the column as `bloomcli.formats.wanted_values.WantedValues.forms`, without nulls:
        integers of the column's width, or bytes.
        """

    def check_values(self, values: pa.Array, column: Column) -> bytearray:
        """Which values the filter may have, a byte for each; see `check`. `values` are as Arrow reads them, and
        `column` is that of `FilterFile.literal_column`."""
        from bloomcli.formats.arrays import forms_of
        from bloomcli.formats.wanted_values import comparable

        return self.check(comparable(forms_of(values), column))

    @abstractmethod
    def trail(self, form: bytes) -> BitTrail:
        """The bits that a value selects, in the first row that has them all, else in the last one. `form`: its PLAIN
        bytes."""

    def outside(self, forms: pa.Array) -> Sequence[str]:
        """The values, as text, that the engine's own bounds leave out; by default it has none."""
        del forms
        return ()

    def elsewhere(self, file: FilterFile) -> Iterator[Finding]:
        """Yield faults of further copies of the filter, which take more reads; by default it has none."""
        del file
        return iter(())

    def has(self, form: bytes) -> bool:
        """Whether the filter may have a value. `form`: its PLAIN bytes."""
        return all(self.trail(form).present)

    def may_have(self, literal: Literal) -> bool:
        """Whether the filter may have a value in any of its forms."""
        return literal.unknowable is not None or any(map(self.has, literal.encodings))


class EngineFilters(NamedTuple):
    """The filters that engines keep for a file."""

    filters: Sequence[EngineFilter] = ()
    findings: Sequence[Finding] = ()
    """Faults of the places where filters lie: filters that should be there and aren't."""
    remarks: Sequence[tuple[str, str]] = ()
    """Names and texts about filters that can't be read, as `FilterFile.details`."""
    later: Callable[[], Iterable[Finding]] = tuple
    """Looks for faults that take a request of their own."""

    def examine(self) -> Iterator[Finding]:
        """Yield the faults that show without the column's values."""
        yield from self.findings
        yield from self.later()
        for filter_ in self.filters:
            yield from filter_.faults
            if filter_.facts.problem is None:
                yield from _sizes(filter_)


class Rewrite(NamedTuple):
    """A file of filters that lies beside a data file, with new content."""

    path: str
    fingerprint: Fingerprint | None
    """That of the file that was read; None if there is none."""
    size: int
    """Its bytes; 0 if there is none."""
    decoded: int
    """Compressed bytes of the columns that were decoded for the filters."""
    data: bytes
    changes: tuple[FilterChange, ...]
    verify: Callable[[Source], None]
    """Reads the finished file; raises WriteError, CorruptFile if it isn't what was planned."""


def finding(
    rule: str, facts: EngineFilterFacts, message: str, hint: str | None, missing: Sequence[str] = ()
) -> Finding:
    """A finding about a filter, with the severity of its rule."""
    return Finding(
        id=rule,
        severity=RULES[rule].severity,
        message=f"{facts.kind}: {message}",
        column=facts.column or None,
        offset=facts.offset if facts.path is None else None,
        hint=hint,
        missing=tuple(missing),
    )


def _sizes(filter_: EngineFilter) -> Iterator[Finding]:
    facts = filter_.facts
    values, sized, fpp = facts.values, facts.sized_for, facts.fpp
    if not values or not sized or fpp is None or facts.length is None:
        return
    hint = filter_.resize or f"set {facts.setting}={values} before the engine writes its next files"
    counts = f"it was sized for {counted(sized, 'value')}, and the file has {counted(values, 'row')}"
    if fpp > _USEFUL_FPP and fpp > _OVERFILLED * (facts.rows or 1) * (facts.asked_fpp or 0):
        yield finding(OVERFILLED, facts, f"the measured false-positive rate is {fpp:.2g}; {counts}", hint)
    elif facts.length > _SMALL_BYTES and sized > _OVERSIZED * values:
        yield finding(OVERSIZED, facts, f"it takes {exact_size(facts.length)}; {counts}", hint)
