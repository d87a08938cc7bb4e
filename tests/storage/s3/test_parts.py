"""The parts of an upload: what S3 demands of them, and that they are the object."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.examples import examples

from bloomcli.storage.objects.content import Segment
from bloomcli.storage.s3.upload import (
    MAX_PART_BYTES,
    MAX_PARTS,
    MIN_PART_BYTES,
    UPLOAD_BYTES,
    Part,
    PartSizes,
    next_parts,
    sizes_for,
)

MIB = 1 << 20
GIB = 1 << 30


def segments_of(*pieces: tuple[bool, int, int]) -> list[Segment]:
    """Segments, of whether they are kept, their lengths, and their offsets where they come from."""
    found: list[Segment] = []
    for kept, length, offset in pieces:
        found.append(Segment(found[-1].end if found else 0, length, offset, kept))
    return found


def parts_of(segments: Sequence[Segment], sizes: PartSizes) -> list[Part]:
    """The parts of content that is known as a whole."""
    return list(next_parts(segments, None, sizes, finished=True))


def parts_as_they_come(segments: Sequence[Segment], sizes: PartSizes, steps: int) -> list[Part]:
    """The parts of content that becomes known in steps, in the middle of segments too."""
    size = segments[-1].end if segments else 0
    found: list[Part] = []
    for step in range(1, steps + 1):
        known = size * step // steps
        seen = [s._replace(length=min(s.end, known) - s.start) for s in segments if s.start < known]
        found += next_parts(seen, found[-1] if found else None, sizes, finished=False)
    return found + list(next_parts(segments, found[-1] if found else None, sizes, finished=True))


def check(segments: Sequence[Segment], parts: Sequence[Part], sizes: PartSizes) -> None:
    """Raise AssertionError where the parts aren't the object, or aren't what S3 takes."""
    at = 0
    for number, part in enumerate(parts, 1):
        assert (part.number, part.start) == (number, at)
        assert part.length <= MAX_PART_BYTES
        assert part.length >= MIN_PART_BYTES or part is parts[-1]
        at += part.length
        if part.copy_from is None:
            assert part.length <= sizes.upload
            continue
        (source,) = [s for s in segments if s.start <= part.start < s.end]
        assert source.kept
        assert part.start + part.length <= source.end, "from one range"
        assert part.copy_from == source.offset + part.start - source.start
    assert at == (segments[-1].end if segments else 0)
    assert len(parts) <= MAX_PARTS


def uploaded(parts: Sequence[Part]) -> int:
    """Bytes that don't stay in the store."""
    return sum(part.length for part in parts if part.copy_from is None)


LENGTHS = st.one_of(
    st.integers(1, 200),
    st.integers(1, 12 * MIB),
    st.sampled_from([MIN_PART_BYTES - 1, MIN_PART_BYTES, MIN_PART_BYTES + 1, 64 * MIB, 69 * MIB, 6 * GIB]),
)
SEGMENTS = st.lists(st.tuples(st.booleans(), LENGTHS, st.integers(0, 1 << 42)), max_size=30).map(
    lambda pieces: segments_of(*pieces)
)


@settings(max_examples=examples(100))
@given(SEGMENTS, st.booleans())
@example(segments_of((True, MIN_PART_BYTES, 0)), True)
def test_any_content_has_parts_that_s3_takes(segments: list[Segment], copies: bool) -> None:
    sizes = sizes_for(segments[-1].end if segments else 0, copies=copies)
    parts = parts_of(segments, sizes)
    check(segments, parts, sizes)
    assert copies or all(part.copy_from is None for part in parts)


@settings(max_examples=examples(100))
@given(SEGMENTS, st.integers(1, 12))
def test_content_that_comes_in_steps_has_parts_that_s3_takes(segments: list[Segment], steps: int) -> None:
    sizes = sizes_for(segments[-1].end if segments else 0)
    check(segments, parts_as_they_come(segments, sizes, steps), sizes)


@settings(max_examples=examples(100))
@given(SEGMENTS)
def test_no_more_is_uploaded_than_new_bytes_short_ranges_and_a_part_for_each_seam(segments: list[Segment]) -> None:
    sizes = sizes_for(0)
    needed = sum(s.length for s in segments if not s.kept or s.length < 2 * sizes.least)
    seams = sum(1 for a, b in itertools.pairwise(segments) if not (a.kept and b.kept) or a.length < b.length)
    assert uploaded(parts_of(segments, sizes)) <= needed + (seams + len(segments)) * sizes.least


def test_a_body_is_copied_and_its_new_tail_uploaded() -> None:
    parts = parts_of(segments_of((True, GIB, 0), (False, 9 * MIB, 0)), sizes_for(GIB))
    assert [part.copy_from is not None for part in parts] == [True] * 16 + [False] * 2
    assert uploaded(parts) == 9 * MIB


def test_a_body_that_is_short_is_uploaded() -> None:
    parts = parts_of(segments_of((True, MIN_PART_BYTES - 1, 0), (False, 1, 0)), sizes_for(0))
    assert [(part.length, part.copy_from) for part in parts] == [(MIN_PART_BYTES, None)]


def test_new_bytes_between_ranges_take_the_beginning_of_the_next_range_along() -> None:
    parts = parts_of(segments_of((True, 64 * MIB, 0), (False, 100, 0), (True, 64 * MIB, 64 * MIB)), sizes_for(0))
    assert [(part.length, part.copy_from is not None) for part in parts] == [
        (64 * MIB, True),
        (MIN_PART_BYTES, False),
        (59 * MIB + 100, True),
    ]


def test_a_range_that_may_become_longer_waits() -> None:
    kept = segments_of((True, 60 * MIB, 0))
    assert list(next_parts(kept, None, sizes_for(0), finished=False)) == []
    longer = segments_of((True, 70 * MIB, 0))
    assert [part.length for part in next_parts(longer, None, sizes_for(0), finished=False)] == [64 * MIB]


@pytest.mark.parametrize("size", [0, GIB, 100 * GIB, 5 << 40, 30 << 40])
def test_objects_of_any_size_have_few_enough_parts(size: int) -> None:
    sizes = sizes_for(size)
    segments = segments_of((True, size, 0), (False, 5 * GIB, 0))
    check(segments, parts_of(segments, sizes), sizes)


@pytest.mark.slow
def test_an_orc_file_of_many_stripes_has_few_enough_parts() -> None:
    stripe = 64 * MIB
    pieces = [piece for n in range(16_000) for piece in ((True, stripe, n * stripe), (False, 10_000, n * 10_000))]
    segments = segments_of(*pieces)
    sizes = sizes_for(16_000 * stripe)
    check(segments, parts_of(segments, sizes), sizes)


def test_what_is_uploaded_fits_in_memory_for_objects_of_up_to_32_gib() -> None:
    assert sizes_for(32 * GIB).upload <= UPLOAD_BYTES + MIB
