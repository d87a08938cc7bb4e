"""A deep check reports every change to a Mosaic file's filters (version 2) or to the values below them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import blooms, mosaicfiles
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT, FOOTER
from support.mutants import EXAMPLES, OriginalFile, flipped, is_set, mutation, put
from support.thrift import varint

import bloomcli
from bloomcli.model.file import FilterFacts

pytestmark = pytest.mark.slow

ROWS: Final = 60
GROUP: Final = 20


def small(path: Path) -> Path:
    """Three row groups, not compressed, with our filters on all three columns."""
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "text": [f"text {i:02}" for i in range(ROWS)],
            "x": [i / 4 + 1 for i in range(ROWS)],
        }
    )
    bare = path.with_name("bare")
    mosaicfiles.write(bare, table, batch=GROUP, compression=0, num_buckets=1, max_dict_entries=0)
    bloomcli.add(bare, ["*"], output=path, **DRAFT)
    return path


def fixture(name: str) -> Callable[[Path], Path]:
    """A fixture."""
    return lambda _: MOSAIC / f"{name}.mosaic"


def retrofitted(path: Path) -> Path:
    """The released writer's file of many types, paged and monolithic buckets, with our filters."""
    columns = [f.column for f in bloomcli.inspect(MOSAIC / "draft_types.mosaic").filters]
    bloomcli.add(MOSAIC / "released_paged.mosaic", sorted(set(columns)), output=path, **DRAFT)
    return path


WRITERS: Final[dict[str, Callable[[Path], Path]]] = {
    "bloom add, small": small,
    "draft": fixture("draft_types"),
    "bloom add": retrofitted,
}


@pytest.fixture(scope="module", params=WRITERS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """A file of each writer."""
    folder = tmp_path_factory.mktemp("mutants")
    return OriginalFile.of(WRITERS[request.param](folder / "f"), folder)


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """The small file."""
    folder = tmp_path_factory.mktemp("little")
    return OriginalFile.of(small(folder / "f"), folder)


def claim(whole: OriginalFile, fact: FilterFacts) -> tuple[int, int, int]:
    """Where the index says offset and length of a filter: (offset's position, length's, its end)."""
    index = int.from_bytes(whole.data[-FOOTER:][:8], "big")
    assert fact.length is not None
    stored = fact.offset.to_bytes(8, "big") + varint(fact.length)
    at = whole.data.index(stored, index)
    assert whole.data.find(stored, at + 1) < 0
    return at, at + 8, at + len(stored)


def claimed(whole: OriginalFile, fact: FilterFacts, offset: int, length: int) -> bytes:
    """The file whose index says otherwise of a filter; nothing that the footer names lies behind it."""
    start, _, end = claim(whole, fact)
    return whole.data[:start] + offset.to_bytes(8, "big") + varint(length) + whole.data[end:]


def blob(whole: OriginalFile, fact: FilterFacts) -> bytes:
    """Header and bitset."""
    return whole.data[fact.offset : whole.bits(fact).stop]


def test_untouched_filters_are_what_the_mutations_start_from(whole: OriginalFile) -> None:
    assert whole.known == frozenset()
    assert whole.check(whole.data) == []
    assert len(whole.sound) >= 9


def test_a_bit_of_every_filter_is_reported_and_of_which(whole: OriginalFile) -> None:
    whole.flip_a_bit_of_each()


def test_every_bit_of_a_small_filter_and_its_header_is_reported(little: OriginalFile) -> None:
    fact = min(little.sound, key=lambda f: f.bitset_bytes or 0)
    directions = set()
    for bit in range(fact.offset * 8, little.bits(fact).stop * 8):
        with mutation(f"bit {bit - fact.offset * 8} of header and bitset"):
            if bit // 8 in little.header(fact):
                assert little.catches(flipped(little.data, bit))
                continue
            little.flipped_bit(fact, flipped(little.data, bit), cleared=is_set(little.data, bit))
            directions.add(is_set(little.data, bit))
    assert directions == {True, False}


BY: Final = st.sampled_from([-64, -32, -5, -1, 1, 5, 32, 64, 1 << 40]) | st.integers(-999, 999).filter(bool)


@given(data=st.data(), by=BY, byte=st.integers(0, 255))
@EXAMPLES
def test_any_other_place_or_length_or_byte_of_a_header_is_reported(
    little: OriginalFile, data: st.DataObject, by: int, byte: int
) -> None:
    fact = data.draw(st.sampled_from(little.sound))
    assert fact.length is not None
    others = [f.offset for f in little.filters if f != fact]
    to = data.draw(st.sampled_from([fact.offset + by, *others]))
    assert little.catches(claimed(little, fact, max(to, 0), fact.length))
    assert little.catches(claimed(little, fact, fact.offset, max(fact.length + by, 0)))
    at = data.draw(st.sampled_from(little.header(fact)))
    assert byte == little.data[at] or little.catches(put(little.data, at, bytes([byte])))


def check_swap(whole: OriginalFile, one: FilterFacts, other: FilterFacts) -> bool:
    """Swap two filters' claims, and their bytes where they have the same size. Equal filters may be swapped."""
    if blob(whole, one) == blob(whole, other):
        return False
    (start, _, end), (then, _, last) = sorted((claim(whole, one), claim(whole, other)))
    data = whole.data
    changed = [data[:start] + data[then:last] + data[end:then] + data[start:end] + data[last:]]
    if one.length == other.length:
        changed.append(put(put(data, one.offset, blob(whole, other)), other.offset, blob(whole, one)))
    for mutant in changed:
        with mutation(f"{one.column} in {one.row_group} for {other.column} in {other.row_group}"):
            found = whole.findings(mutant)
            assert found
            assert {(f.row_group, f.column) for f in found} <= {(f.row_group, f.column) for f in (one, other)}
            assert {f.id for f in found} <= {"value-missing", "filter-stray-bits"}
    return True


def test_every_swap_in_a_small_file_is_reported(little: OriginalFile) -> None:
    filters = little.sound
    reported = [check_swap(little, a, b) for i, a in enumerate(filters) for b in filters[i + 1 :]]
    assert all(reported)
    assert len(reported) == 9 * 8 / 2


@given(row=st.integers(0, ROWS - 1), text=st.text("abcxyz 0189", min_size=7, max_size=7))
@EXAMPLES
def test_a_changed_value_is_reported(little: OriginalFile, row: int, text: str) -> None:
    """But where the filter over the values that the released reader sees is, bit for bit, the same."""
    at = little.data.index(f"text {row:02}".encode())
    changed = put(little.data, at, text.encode())
    if changed == little.data:
        return
    little.work.with_name("released").write_bytes(changed)
    bare = little.work.with_name("bare_again")
    bloomcli.remove(little.work.with_name("released"), output=bare, overwrite=True)
    values = mosaicfiles.read(bare)["text"].to_pylist()
    assert values == [text if i == row else f"text {i:02}" for i in range(ROWS)]
    group = row // GROUP
    (fact,) = [f for f in little.filters if (f.column, f.row_group) == ("text", group)]
    span = little.bits(fact)
    inserted = (v.encode() for v in values[group * GROUP :][:GROUP])
    if blooms.build(inserted, len(span)) == little.data[span.start : span.stop]:
        assert little.findings(changed) == []
    else:
        (finding,) = little.findings(changed)
        assert (finding.column, finding.row_group) == ("text", group)
        assert finding.id in {"value-missing", "filter-stray-bits"}
