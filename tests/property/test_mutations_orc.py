"""A deep check reports every change to an ORC file's filters or to the values below them, for files of all writers.

Left out are filters that no reader looks up, or that nobody can check: of unions, of booleans by ORC C++, and
BLOOM_FILTER streams of timestamps, which are in the writer's local time.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc
from support import orcfiles
from support.golden import ORC
from support.mutants import EXAMPLES, OriginalFile, flipped, is_set, mutation, place, put
from support.orcfiles import BLOOM_FILTER_UTF8, File
from support.orcmutants import bitset, checkable, edited, ids, kind_of, lying, message, parts, set_bitset
from support.orcwalk import Orc

import bloomcli
from bloomcli.errors import CorruptFile
from bloomcli.model.file import FilterFacts

pytestmark = pytest.mark.slow

ROWS: Final = 48


def small(path: Path) -> Path:
    """Three stripes of two row groups, not compressed, with small filters by us on two of three columns."""
    table = {
        "id": pa.array(range(ROWS), pa.int32()),
        "text": [f"text {i:02}" for i in range(ROWS)],
        "x": [i / 4 + 1 for i in range(ROWS)],
    }
    options = {"stripe": 16, "stride": 8, "dictionary_key_size_threshold": 0.0}
    orcfiles.write(path.with_name("bare"), table, **options)
    bloomcli.add(path.with_name("bare"), ["id", "text"], output=path, fpp=0.02)
    return path


def both_kinds(path: Path) -> Path:
    """orc-core's file without filters, with ours of both kinds, not compressed."""
    columns = [c for c in Orc(ORC / "java_none.orc").hashable if c != "price"]  # not to be trusted in BLOOM_FILTER
    bloomcli.add(ORC / "java_none.orc", columns, output=path, kind="both")
    return path


def fixture(name: str) -> Callable[[Path], Path]:
    """A fixture."""
    return lambda _: ORC / f"{name}.orc"


WRITERS: Final[dict[str, Callable[[Path], Path]]] = {
    "bloom add, small": small,
    "orc-core, char": fixture("java_char_instant"),
    "orc-core, lz4": fixture("java_lz4"),
    "orc-core": fixture("java_types"),
    "orc-core, both kinds": fixture("java_both_kinds"),
    "ORC C++ by pyarrow": fixture("cpp_types"),
    "ORC C++ by PyORC": fixture("pyorc_types"),
    "bloom add": both_kinds,
}


@pytest.fixture(scope="module", params=WRITERS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """A file of each writer, taken apart and put together again, for mutants to differ in nothing else."""
    folder = tmp_path_factory.mktemp("mutants")
    return OriginalFile.of(orcfiles.edited(WRITERS[request.param](folder / "f"), folder / "joined", id), folder)


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> OriginalFile:
    """The small, unchanged file."""
    folder = tmp_path_factory.mktemp("little")
    return OriginalFile.of(small(folder / "f"), folder)


def test_untouched_filters_are_what_the_mutations_start_from(whole: OriginalFile) -> None:
    assert whole.check(whole.data) == []
    assert len(checkable(whole)) >= 2
    assert {name for name, _ in whole.known} <= {"value-missing", "filter-untrusted"}


def test_bits_of_filters_are_reported_and_of_which(whole: OriginalFile) -> None:
    """In turn a bit that is set, and one that isn't; for every column in a filter or two."""
    facts = {(f.column, f.row_group % 2): f for f in checkable(whole)}.values()
    random_ = random.Random("bits")
    for cleared, fact in zip(itertools.cycle([True, False]), facts):
        bits = bitset(message(whole, fact))
        there = [bit for bit in range(len(bits) * 8) if is_set(bits, bit) is cleared]
        if there:
            new = flipped(bits, random_.choice(there))
            with mutation(f"{place(fact)}, cleared: {cleared}"):
                changed = edited(whole, fact, lambda item, new=new: set_bitset(item, new))
                whole.flipped_bit(fact, changed, cleared=cleared)


def test_every_bit_of_a_filter_stream_is_reported(little: OriginalFile) -> None:
    """The filters' messages, their lengths and numbers of hash functions among them."""
    file = parts(little)
    stream = file.stripes[0].streams[file.place(BLOOM_FILTER_UTF8, 1)]
    start = little.data.index(stream)
    for bit in range(start * 8, (start + len(stream)) * 8):
        with mutation(f"bit {bit - start * 8} of the stream"):
            assert little.catches(flipped(little.data, bit))


def test_flipped_bits_of_compressed_streams_are_reported(whole: OriginalFile) -> None:
    """But one that decompresses to the same bytes: some of a frame's bits mean nothing."""
    random_ = random.Random("streams")
    for _ in range(8):
        fact = random_.choice(checkable(whole))
        file, column, stripe = parts(whole), ids(whole)[fact.column], fact.stripe or 0
        streams, at = file.stripes[stripe].streams, file.place(kind_of(fact), column, stripe)
        before = file.plain(streams[at])
        bit = random_.randrange(len(streams[at]) * 8)
        streams[at] = flipped(streams[at], bit)
        try:
            same = file.plain(streams[at]) == before
        except CorruptFile:
            same = False
        with mutation(f"{place(fact)}, bit {bit} of the stream"):
            assert whole.check(file.join()) == [] if same else whole.check(file.join())


@given(data=st.data(), by=st.integers(-300, 300).filter(bool))
@EXAMPLES
def test_any_other_length_of_a_filter_stream_is_reported(little: OriginalFile, data: st.DataObject, by: int) -> None:
    """Everything behind it is then looked for elsewhere."""
    fact = data.draw(st.sampled_from(little.sound))
    file, column, stripe = parts(little), ids(little)[fact.column], fact.stripe or 0
    stream = file.stripes[stripe].footer.streams[file.place(kind_of(fact), column, stripe)]
    stream.length = max(stream.length + by, 0)
    assert little.catches(lying(file))


@given(data=st.data(), by=st.integers(-300, 300).filter(bool), field=st.sampled_from(["offset", "index_length"]))
@EXAMPLES
def test_any_other_place_of_a_stripe_or_its_index_is_reported(
    little: OriginalFile, data: st.DataObject, by: int, field: str
) -> None:
    file = parts(little)
    info = data.draw(st.sampled_from(file.stripes)).info
    setattr(info, field, max(getattr(info, field) + by, 0))
    assert little.catches(lying(file))


def check_swap(whole: OriginalFile, one: FilterFacts, other: FilterFacts) -> bool:
    """Swap two filters' messages. Equal filters may be swapped."""
    first, second = message(whole, one), message(whole, other)
    if first == second:
        return False
    file = parts(whole)
    for fact, new in ((one, second), (other, first)):
        column, stripe = ids(whole)[fact.column], fact.stripe or 0
        index = file.filters(column, stripe, kind_of(fact))
        index.bloom_filter[fact.row_group].CopyFrom(new)
        file.set_filters(column, index, stripe, kind_of(fact))
    with mutation(f"{place(one)} for {place(other)}"):
        found = whole.findings(file.join())
        assert found
        assert {place(f) for f in found} <= {place(one), place(other)}
        assert {f.id for f in found} <= {"value-missing", "filter-stray-bits", "filter-all-zero"}
    return True


def test_every_swap_in_a_small_file_is_reported(little: OriginalFile) -> None:
    filters = little.sound
    reported = [check_swap(little, a, b) for i, a in enumerate(filters) for b in filters[i + 1 :]]
    assert all(reported)
    assert len(reported) == 12 * 11 / 2


@given(row=st.integers(0, ROWS - 1), text=st.text("abcxyz 0189", min_size=7, max_size=7))
@EXAMPLES
def test_a_changed_value_is_reported(little: OriginalFile, row: int, text: str) -> None:
    """But where the filter over the values that Arrow reads from the changed file is, bit for bit, the same."""
    stripe, group = row // 16, row % 16 // 8
    streams = parts(little).stripes[stripe].streams
    data = next(s for s in streams if f"text {stripe * 16:02}text {stripe * 16 + 1:02}".encode() in s)
    at = little.data.index(data) + data.index(f"text {row:02}".encode())
    changed = put(little.data, at, text.encode())
    if changed == little.data:
        return
    values = orc.ORCFile(pa.BufferReader(changed)).read()["text"].to_pylist()
    assert values == [text if i == row else f"text {i:02}" for i in range(ROWS)]
    fact = next(f for f in little.sound if place(f) == (stripe, group, "text"))
    stored = message(little, fact)
    bits, k = bitset(stored), stored.num_hash_functions
    hashes = map(orcfiles.text_hash, values[stripe * 16 + group * 8 :][:8])
    found = [f for f in little.findings(changed) if not f.id.startswith("statistics-")]
    if orcfiles.bits_of(hashes, len(bits) * 8, k) == bits:
        assert found == []
    else:
        (finding,) = found
        assert place(finding) == place(fact)
        assert finding.id in {"value-missing", "filter-stray-bits"}


@pytest.mark.parametrize(("zero", "retrofit"), [(0.0, True), (-0.0, False)], ids=["ours", "orc_cpp"])
def test_every_bit_of_a_filter_over_a_zero_is_reported_but_the_one_that_makes_a_sound_filter(
    zero: float, retrofit: bool, tmp_path: Path
) -> None:
    """A sound filter holds the other zero or doesn't: a bit that leads from one to the other is left out."""
    values = [zero, 1.5, 3.25]
    path = tmp_path / "f"
    if retrofit:
        orcfiles.write(tmp_path / "bare", {"c": values}, stride=10)
        bloomcli.add(tmp_path / "bare", ["c"], output=path, fpp=0.05)
    else:
        orcfiles.write(path, {"c": values}, stride=10, blooms=[1])
    whole = OriginalFile.of(path, tmp_path)
    (fact,) = whole.sound
    stored = message(whole, fact)
    bits, k = bitset(stored), stored.num_hash_functions
    hashes = [orcfiles.double_hash(v) for v in values]
    zeros = [orcfiles.double_hash(z) for z in (0.0, -0.0)]
    sound = [orcfiles.bits_of([*hashes, *more], len(bits) * 8, k) for more in ([], zeros)]
    assert bits in sound
    start = whole.data.index(bits)
    for bit in range(start * 8, (start + len(bits)) * 8):
        data = flipped(whole.data, bit)
        if data[start : start + len(bits)] in sound:
            assert whole.findings(data) == []
            continue
        with mutation(f"bit {bit - start * 8}"):
            (finding,) = whole.findings(data)
            assert finding.id in {"value-missing", "filter-stray-bits"}


def test_a_bit_in_a_filter_that_nothing_is_inserted_into_is_reported(tmp_path: Path) -> None:
    """orc-core's filters of structs and booleans: both are in the fixture."""
    whole = OriginalFile.of(ORC / "java_types.orc", tmp_path)
    empty = {f.physical: f for f in checkable(whole) if f.physical in {"struct", "boolean"}}
    assert set(empty) == {"struct", "boolean"}
    for fact in empty.values():
        bits = bitset(message(whole, fact))
        assert not any(bits)
        changed = edited(whole, fact, lambda item, bits=bits: set_bitset(item, flipped(bits, 77)))
        whole.flipped_bit(fact, changed, cleared=False)


def test_of_moments_that_readers_see_a_second_apart_every_bit_too_many_is_reported(tmp_path: Path) -> None:
    """Near 1970, in a file whose writer's zone isn't UTC, a sound filter holds what another reader sees."""
    moments = [1_500_000 * i + 250_000 for i in range(20, 32)]
    table = {"t": pa.array(moments, pa.timestamp("us"))}
    bare = orcfiles.write(tmp_path / "bare", table, stride=100)

    def elsewhere(file: File) -> None:
        file.stripes[0].footer.writer_timezone = "Asia/Tokyo"

    bloomcli.add(orcfiles.edited(bare, tmp_path / "zone", elsewhere), ["t"], output=tmp_path / "f", fpp=0.0001)
    read = orc.ORCFile(tmp_path / "f").read()["t"].cast(pa.int64()).to_pylist()
    seen = [orcfiles.long_hash(nanos // 10**6) for nanos in read]  # by ORC C++; by orc-core a second earlier

    def another(file: File) -> None:
        index = file.filters(1)
        (item,) = index.bloom_filter
        item.utf8bitset = orcfiles.bits_of(seen, len(item.utf8bitset) * 8, item.num_hash_functions)
        file.set_filters(1, index)

    whole = OriginalFile.of(orcfiles.edited(tmp_path / "f", tmp_path / "another", another), tmp_path)
    assert whole.known == frozenset()
    (fact,) = checkable(whole)
    bits = bitset(message(whole, fact))
    for bit in range(0, len(bits) * 8, 29):
        with mutation(f"bit {bit}"):
            if not is_set(bits, bit):
                changed = edited(whole, fact, lambda item, bit=bit: set_bitset(item, flipped(bits, bit)))
                whole.flipped_bit(fact, changed, cleared=False)
