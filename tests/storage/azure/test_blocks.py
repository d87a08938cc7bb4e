"""The blocks of a blob that remain in its new content."""

from __future__ import annotations

import itertools
import random

from bloomcli.storage.azure.writing import MAX_BLOCKS, NEW_BYTES, Block, Part, new_names, parts
from bloomcli.storage.objects.content import Segment


def test_any_content_is_made_of_whole_blocks_and_of_new_bytes() -> None:
    of = random.Random(5)
    for _ in range(300):
        committed = [Block(f"block{n}", of.randrange(0, 40)) for n in range(of.randrange(6))]
        old = {
            block.name: range(end - block.size, end)
            for block, end in zip(committed, itertools.accumulate(b.size for b in committed), strict=True)
        }
        size = sum(block.size for block in committed)
        segments: list[Segment] = []
        for _ in range(of.randrange(6)):
            at = segments[-1].end if segments else 0
            kept = of.random() < 0.7
            start = of.randrange(size + 1) if kept else 0
            length = of.randrange(size - start + 1) if kept else of.randrange(30)
            if length:
                segments.append(Segment(at, length, start, kept=kept))
        found = parts(segments, committed)
        content = [(s.kept, s.offset + n) for s in segments for n in range(s.length)]
        assert [n for part in found for n in range(part.start, part.start + part.length)] == list(range(len(content)))
        for part in found:
            if part.name is not None:
                there = content[part.start : part.start + part.length]
                assert there == [(True, n) for n in old[part.name]], "a kept block has the bytes that belong there"
        names = [part.name for part in found if part.name is not None]
        assert len(names) == len(set(names)), "a list names each block once"


def test_an_appended_tail_keeps_all_blocks_but_the_last() -> None:
    committed = [Block(f"b{n}", 100) for n in range(5)]
    body = Segment(0, 470, 0, kept=True)
    new = Segment(470, 60, 0, kept=False)
    assert parts([body, new], committed) == [
        *(Part(100 * n, 100, f"b{n}") for n in range(4)),
        Part(400, 130, None),
    ]


def test_new_blocks_are_as_large_as_the_number_of_blocks_demands() -> None:
    size = NEW_BYTES * MAX_BLOCKS * 2
    found = parts([Segment(0, size, 0, kept=True)], [])
    assert len(found) <= MAX_BLOCKS
    assert sum(part.length for part in found) == size
    assert [part.length for part in parts([Segment(0, 3 * NEW_BYTES + 1, 0, kept=True)], [])] == [NEW_BYTES] * 3 + [1]


def test_new_names_have_the_length_of_the_others_and_are_none_of_them() -> None:
    for length in (1, 2, 5, 64):
        taken = {f"{n:x}".rjust(length, "-") for n in range(10)}
        names = list(itertools.islice(new_names([Block(name, 1) for name in taken]), 20))
        assert {len(name) for name in names} == {length}
        assert len(set(names) | taken) == 30
