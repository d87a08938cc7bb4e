"""The 2018 drafts: three headers distinguished by their bytes, Murmur3, blocks by mask; written only on request."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import mmh3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.errors import CorruptFile, UnsupportedError, UsageError
from bloomcli.filters.split_block import SALT, MaskedSplitBlockFilter
from bloomcli.formats.parquet import bloom_filter
from bloomcli.formats.parquet.spec import Location
from bloomcli.model.file import Presence

SEED = 1361930890
WORDS = ["hello", "parquet", "bloom", "filter"]
LOCATION = Location("f", 0, "")


def murmur(data: bytes) -> int:
    """The drafts' hash, from the library."""
    return int(mmh3.hash64(data, SEED, signed=False)[0])


def expected_bits(values: list[bytes], nbytes: int) -> bytes:
    """A draft's bitset by its definition: block (h >> 32) & (z - 1), then the usual eight bits."""
    words = [0] * (nbytes // 4)
    for value in values:
        h = murmur(value)
        block = (h >> 32) & (nbytes // 32 - 1)
        for i, salt in enumerate(SALT):
            words[8 * block + i] |= 1 << (((h & 0xFFFFFFFF) * salt & 0xFFFFFFFF) >> 27)
    return struct.pack(f"<{len(words)}I", *words)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strings, integers, floats with a zero and a dictionary column, in two row groups."""
    path = tmp_path_factory.mktemp("drafts") / "plain.parquet"
    table = pa.table(
        {
            "s": [f"value {i}" for i in range(400)],
            "i": pa.array(range(400), pa.int32()),
            "f": [i / 4 for i in range(400)],
            "d": ["a", "b", None, "c"] * 100,
        }
    )
    pq.write_table(table, path, row_group_size=200, use_dictionary=["d"])
    return path


def test_todays_header_is_read_at_once_and_as_walking_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change one byte after the other: the fast path accepts only known headers, and reads the same as the walk."""
    raws = [bloom_filter.write_header(1 << power) for power in range(5, 28)]
    raws += [
        raw[:at] + bytes([value]) + raw[at + 1 :]
        for raw in (*raws[::7], raws[-1])
        for at in range(16)
        for value in range(256)
    ]

    raws.append(raws[0][:1] + b"\xff\xff\xff\xff\x7f" + raws[0][2:])  # beyond an i32

    def read(raw: bytes) -> object:
        try:
            return bloom_filter.parse_header(raw + bytes(64), LOCATION)
        except CorruptFile as error:
            return str(error)

    quick = [read(raw) for raw in raws]
    assert sum(bloom_filter._USUAL.match(raw) is not None for raw in raws) > len(raws) / 100
    monkeypatch.setattr(bloom_filter, "_USUAL", re.compile(b"(?!)"))
    assert [read(raw) for raw in raws] == quick


def test_headers_are_the_bytes_that_the_drafts_wrote() -> None:
    assert bloom_filter.write_header(1024, bloom_filter.TWELVE_BYTES) == struct.pack("<III", 1024, 0, 0)
    assert bloom_filter.write_header(1024, bloom_filter.HEADER).hex() == "1580101c1c00001c1c000000"
    page = bloom_filter.write_header(1024, bloom_filter.PAGE).hex()
    assert page == "15081580101580106c1580101c1c00001c1c00000000"


@pytest.mark.parametrize("variant", bloom_filter.DRAFTS)
def test_a_draft_that_we_write_has_the_bits_of_its_definition(variant: str, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft.parquet"
    bloomcli.add(plain, ["s", "i", "d"], output=out, variant=variant)
    for group in range(2):
        rows = range(200 * group, 200 * group + 200)
        values = {
            "s": [f"value {i}".encode() for i in rows],
            "i": [struct.pack("<i", i) for i in rows],
            "d": [b"a", b"b", b"c"],
        }
        for column, held in values.items():
            dump = bloomcli.dump(out, column=column, row_group=group)
            assert dump.facts.variant == variant
            assert dump.bitset == expected_bits(held, len(dump.bitset))
    assert pq.read_table(out).equals(pq.read_table(plain))


@pytest.mark.parametrize("variant", bloom_filter.DRAFTS)
def test_drafts_are_probed_by_their_own_hash_reported_and_upgraded(variant: str, plain: Path, tmp_path: Path) -> None:
    out, new, back = (tmp_path / f"{n}.parquet" for n in ("draft", "new", "back"))
    bloomcli.add(plain, ["s", "f"], output=out, variant=variant)
    assert pq.ParquetFile(out).metadata.row_group(0).column(0).bloom_filter_length is None
    found = bloomcli.probe(out, ["value 7", "value 399", "nothing"], column="s")
    assert [t.presence for t in found.totals] == [Presence.MAYBE, Presence.MAYBE, Presence.ABSENT]
    assert [t.skipped_row_groups for t in found.totals] == [1, 1, 2]
    assert bloomcli.probe(out, ["-0.0"], column="f").totals[0].presence is Presence.MAYBE
    report = bloomcli.validate(out, deep=True)
    assert {f.id for f in report.findings} == {"filter-draft"}
    assert report.values_checked == 800
    assert not report.ok
    bloomcli.add(out, ["s", "f"], output=new, replace=True)
    assert {f.variant for f in bloomcli.inspect(new).filters} == {"parquet"}
    assert bloomcli.validate(new, deep=True).findings == ()
    assert new.stat().st_size - plain.stat().st_size < 2 * 1100 + 2 * 200
    bloomcli.remove(out, output=back)
    assert back.read_bytes() == plain.read_bytes()


def test_fold_leaves_drafts_alone(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "draft.parquet"
    bloomcli.add(plain, ["s"], output=out, variant=bloom_filter.HEADER, ndv=100_000)
    folded = bloomcli.fold(out, output=tmp_path / "folded.parquet")
    assert {c.action for c in folded.changes} == {"keep"}


def test_masked_filters_fold_to_what_fewer_blocks_would_have_given() -> None:
    large, small = MaskedSplitBlockFilter.empty(4096), MaskedSplitBlockFilter.empty(2048)
    for value in map(murmur, (str(i).encode() for i in range(300))):
        large.insert(value)
        small.insert(value)
        assert large.check(value)
    assert large.fold().bitset == small.bitset
    one = MaskedSplitBlockFilter.empty(32)
    one.insert(murmur(b"x"))
    assert one.check(murmur(b"x"))
    with pytest.raises(ValueError, match="single block"):
        one.fold()
    with pytest.raises(ValueError, match="power of two"):
        MaskedSplitBlockFilter.empty(96)


def test_an_unknown_variant_is_refused(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no variant of filter is called 'parquet-2019'"):
        bloomcli.add(plain, ["s"], output=tmp_path / "x", variant="parquet-2019")


@pytest.mark.parametrize(
    ("name", "variant"),
    [("bloom_filter.bin", bloom_filter.TWELVE_BYTES), ("bloom_filter.xxhash.bin", bloom_filter.CURRENT)],
)
def test_bare_filters_of_parquet_mr_hold_their_four_strings(name: str, variant: str, corpus: Path) -> None:
    path = corpus / name
    (facts,) = bloomcli.inspect(path).filters
    assert (facts.variant, facts.bitset_bytes) == (variant, 1024)
    found = bloomcli.probe(path, [*WORDS, "world", "spark"])
    assert [t.presence for t in found.totals] == [Presence.MAYBE] * 4 + [Presence.ABSENT] * 2
    dump = bloomcli.dump(path)
    assert dump.header + dump.bitset == path.read_bytes()
    ids = {f.id for f in bloomcli.validate(path).findings}
    assert ids == ({"filter-draft"} if variant != bloom_filter.CURRENT else set())


def test_the_bits_of_parquet_mr_are_the_bits_that_we_write(corpus: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "words.parquet", tmp_path / "draft.parquet"
    pq.write_table(pa.table({"w": WORDS}), path)
    bloomcli.add(path, ["w"], output=out, variant=bloom_filter.TWELVE_BYTES, ndv=700)
    dump = bloomcli.dump(out)
    assert dump.header + dump.bitset == (corpus / "bloom_filter.bin").read_bytes()


@pytest.mark.parametrize(
    ("header", "id_"),
    [
        ("1580101c1c00001c2c00001c1c000000", "filter-hash"),
        ("1580101c1c00001c1c00001c2c000000", "filter-compression"),
        ("1580101c1c00001c001c1c000000", "filter-hash"),
    ],
)
def test_a_bare_filter_of_unknown_kind_answers_nothing(header: str, id_: str, corpus: Path, tmp_path: Path) -> None:
    sound = (corpus / "bloom_filter.xxhash.bin").read_bytes()
    path = tmp_path / "filter.bin"
    path.write_bytes(bytes.fromhex(header) + sound[-1024:])
    (facts,) = bloomcli.inspect(path).filters
    assert facts.problem is not None
    found = bloomcli.probe(path, [*WORDS, "world"])
    assert [t.presence for t in found.totals] == [Presence.UNKNOWN] * 5
    report = bloomcli.validate(path)
    assert ([f.id for f in report.findings], report.ok) == ([id_], False)


def test_a_bare_filter_has_nothing_to_change_or_check(corpus: Path, tmp_path: Path) -> None:
    path = corpus / "bloom_filter.bin"
    for act in (
        lambda: bloomcli.add(path, ["*"], output=tmp_path / "x"),
        lambda: bloomcli.remove(path, output=tmp_path / "x"),
        lambda: bloomcli.fold(path, output=tmp_path / "x"),
        lambda: bloomcli.validate(path, deep=True),
    ):
        with pytest.raises(UnsupportedError, match="a bare filter"):
            act()
    with pytest.raises(UsageError, match="no row groups"):
        bloomcli.dump(path, row_group=1)
    assert list(tmp_path.iterdir()) == []
