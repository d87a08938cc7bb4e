"""Changes files and checks that a deep check reports the change: for the mutation tests of every format."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from hypothesis import HealthCheck, settings

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.model.file import FilterFacts
from bloomcli.model.validate import Finding
from support.examples import examples

EXAMPLES: Final = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
"""Few examples: each is a deep check."""

Place = tuple[int | None, int | None, str | None]
"""Stripe, row group, column."""


def place(of: FilterFacts | Finding) -> Place:
    """The location of a filter or a finding."""
    return of.stripe, of.row_group, of.column


@dataclass(frozen=True)
class OriginalFile:
    """An unchanged file and its findings, which are correct: the file's writer made wrong filters."""

    data: bytes
    work: Path
    """The path of the changed file."""
    known: frozenset[tuple[str, Place]]
    filters: tuple[FilterFacts, ...]

    @classmethod
    def of(cls, path: Path, work: Path) -> OriginalFile:
        """Validate a file."""
        report = bloomcli.validate(path, deep=True)
        known = frozenset((f.id, place(f)) for f in report.findings if f.counts)
        return cls(path.read_bytes(), work / "mutant", known, bloomcli.inspect(path).filters)

    @property
    def sound(self) -> list[FilterFacts]:
        """The filters without findings: a change of another filter wouldn't add a finding."""
        wrong = {where for _, where in self.known}
        return [f for f in self.filters if place(f) not in wrong and (f.stripe, None, f.column) not in wrong]

    def bits(self, fact: FilterFacts) -> range:
        """The location of a split-block filter's bitset."""
        assert fact.header_bytes is not None
        assert fact.length is not None
        return range(fact.offset + fact.header_bytes, fact.offset + fact.length)

    def header(self, fact: FilterFacts) -> range:
        """The location of a split-block filter's header."""
        return range(fact.offset, self.bits(fact).start)

    def check(self, data: bytes) -> list[Finding] | BloomError:
        """The findings that only the changed file has, or the error from reading it."""
        self.work.write_bytes(data)
        try:
            report = bloomcli.validate(self.work, deep=True)
        except BloomError as error:
            assert error.path == str(self.work)
            return error
        new = [f for f in report.findings if f.counts and (f.id, place(f)) not in self.known]
        assert new == [] or not report.ok
        return new

    def catches(self, data: bytes) -> bool:
        """Check that the change is reported."""
        assert data != self.data, "nothing was changed"
        return bool(self.check(data))

    def findings(self, data: bytes) -> list[Finding]:
        """As `check`, for a file that can be read."""
        found = self.check(data)
        assert isinstance(found, list), f"can't be read: {found}"
        return found

    def flipped_bit(self, fact: FilterFacts, data: bytes, *, cleared: bool) -> None:
        """Check that the file with one flipped bit of this filter has exactly one finding, about that bit."""
        (finding,) = self.findings(data)
        assert place(finding) == place(fact)
        assert finding.id == ("value-missing" if cleared else "filter-stray-bits")
        assert bool(finding.missing) == cleared
        assert cleared or finding.message.startswith("1 bit is set")

    def flip_a_bit_of_each(self) -> None:
        """Check so a bit of every sound split-block filter: in turn one that is set, and one that isn't."""
        random = Random("bits")
        for cleared, fact in zip(itertools.cycle([True, False]), self.sound):
            span = self.bits(fact)
            bits = [bit for bit in range(span.start * 8, span.stop * 8) if is_set(self.data, bit) is cleared]
            if bits:
                with mutation(f"{fact}, cleared: {cleared}"):
                    self.flipped_bit(fact, flipped(self.data, random.choice(bits)), cleared=cleared)


def flipped(data: bytes, bit: int) -> bytes:
    """The data with one bit flipped; bits count from the file's start, the lowest of each byte first."""
    out = bytearray(data)
    out[bit >> 3] ^= 1 << (bit & 7)
    return bytes(out)


def put(data: bytes, at: int, new: bytes) -> bytes:
    """The data with other bytes at an offset."""
    return data[:at] + new + data[at + len(new) :]


def is_set(data: bytes, bit: int) -> bool:
    """Whether a bit is set."""
    return bool(data[bit >> 3] >> (bit & 7) & 1)


@contextmanager
def mutation(what: str) -> Iterator[None]:
    """Add the mutation to the error if an assertion in the block fails."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"mutation: {what}")
        raise
