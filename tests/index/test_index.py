"""An index answers as the filters that it was made from do: built anew, updated, with slots used again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.indexes import COLUMN, IDS, answers, chunk, expected, filled, hashes, made, opened

from bloomcli import kernels
from bloomcli.errors import SourceChanged, UnknownColumn, UsageError, WriteError
from bloomcli.index import writer as writing
from bloomcli.index.bits import windows
from bloomcli.index.reader import Index
from bloomcli.index.tables import ALWAYS
from bloomcli.index.writer import IndexWriter
from bloomcli.model.index import ChunkState, ColumnType, IndexedChunk, IndexedColumn, IndexedFile
from bloomcli.storage.registry import LOCAL, open_source

BLOCKS = st.one_of(st.sampled_from([1, 2, 4, 8, 16, 32, 64]), st.integers(1, 70))
UNITS = st.lists(
    st.tuples(
        st.sampled_from([ChunkState.FILTER] * 6 + [ChunkState.ALWAYS, ChunkState.NEVER]), BLOCKS, st.integers(0, 60)
    ),
    max_size=200,
)
"""Units: their states, blocks of their filters, and numbers of values."""


def files_of(units: Sequence[tuple[ChunkState, int, int]], rng: random.Random, first: int = 0) -> list[IndexedFile]:
    """Files with this number of row groups in total, a few in each file."""
    found, left = [], len(units)
    while left:
        groups = min(left, rng.randint(1, 5))
        found.append(made(first + len(found), groups))
        left -= groups
    return found


def added(
    writer: IndexWriter,
    files: Sequence[IndexedFile],
    units: Sequence[tuple[ChunkState, int, int]],
    rng: random.Random,
) -> dict[tuple[str, int], tuple[ChunkState, bytes | None]]:
    """Add files with units to a writer, in any order; gives the units by path and row group."""
    left, given = list(units), {}
    plans = []
    for file in files:
        chunks = []
        for row_group in range(len(file.rows)):
            state, blocks, values = left.pop()
            bits = bytes(filled(blocks, values, rng)) if state is ChunkState.FILTER else None
            given[file.path, row_group] = state, bits
            chunks.append(IndexedChunk(row_group=row_group, column=IDS, state=state, bitset=bits))
        rng.shuffle(chunks)
        plans.append((file, chunks))
    rng.shuffle(plans)
    for file, chunks in plans:
        writer.add(file, chunks)
    return given


@contextmanager
def windows_of(size: int) -> Iterator[None]:
    """Write the bits in windows of a size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_WINDOW_BYTES", size)
        yield


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    units=UNITS, seed=st.integers(0, 1 << 30), fpp=st.sampled_from([0.001, 0.01, 0.3]), window=st.integers(0, 1 << 18)
)
def test_an_index_answers_as_its_filters_at_the_common_size(
    units: list[tuple[ChunkState, int, int]], seed: int, fpp: float, window: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    path = tmp_path / f"{seed}.index"
    with windows_of(window), IndexWriter([COLUMN], fpp=fpp) as writer:
        given = added(writer, files_of(units, rng), units, rng)
        writer.write(str(path), overwrite=True)
    with opened(path) as index:
        looked_up = hashes(rng, 300)
        assert answers(index, looked_up) == expected(index, given, looked_up)
        few = looked_up[: 8 * 5]
        assert answers(index, few) == expected(index, given, few)
        assert sum(len(file.rows) for file in index.files) == len(units)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    before=UNITS,
    rounds=st.lists(st.tuples(UNITS, st.floats(0, 1)), min_size=1, max_size=3),
    seed=st.integers(0, 1 << 30),
)
def test_an_updated_index_answers_as_the_filters_of_the_files_that_are_left(
    before: list[tuple[ChunkState, int, int]],
    rounds: list[tuple[list[tuple[ChunkState, int, int]], float]],
    seed: int,
    tmp_path: Path,
) -> None:
    rng = random.Random(seed)
    path = tmp_path / f"{seed}.index"
    with IndexWriter([COLUMN], fpp=0.02) as writer:
        given = added(writer, files_of(before, rng), before, rng)
        writer.write(str(path), overwrite=True)
    for number, (units, share) in enumerate(rounds, start=1):
        with opened(path) as old, windows_of(1 << 14), IndexWriter([COLUMN], fpp=0.02, old=old) as writer:
            kept = [at for at in range(len(old.files)) if rng.random() < share]
            writer.keep(kept)
            names = {old.files[at].path for at in kept}
            given = {key: unit for key, unit in given.items() if key[0] in names}
            given |= added(writer, files_of(units, rng, first=number * 1000), units, rng)
            writer.write(str(path), overwrite=True)
        with opened(path) as index:
            looked_up = hashes(rng, 200)
            assert answers(index, looked_up) == expected(index, given, looked_up, least=True)
            assert {file.path for file in index.files} >= {name for name, _ in given}


def test_slots_of_files_that_are_gone_are_used_again(tmp_path: Path) -> None:
    rng, path = random.Random(2), tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(130):
            writer.add(made(number, 1), [chunk(0, filled(8, 20, rng))])
        writer.write(str(path), overwrite=False)
    size = path.stat().st_size
    with opened(path) as old, IndexWriter([COLUMN], fpp=0.01, old=old) as writer:
        writer.keep(range(20, 130))
        for number in range(10):
            writer.add(made(500 + number, 1), [chunk(0, filled(8, 20, rng))])
        writer.write(str(path), overwrite=True)
    with opened(path) as index:
        facts = index.facts().columns[0]
        assert (facts.row_groups, facts.free_slots) == (120, 10)
        assert index.layout(IDS).slots == 130
    assert abs(path.stat().st_size - size) < 1000


def test_filters_of_other_sizes_are_folded_and_replicated_to_the_smallest_size_that_meets_the_rate(
    tmp_path: Path,
) -> None:
    rng, path = random.Random(3), tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number, blocks in enumerate([256, 64, 37, 100, 512]):
            writer.add(made(number, 1), [chunk(0, filled(blocks, 400, rng))])
        writer.write(str(path), overwrite=False)
    with opened(path) as index:
        facts = index.facts().columns[0]
        assert facts.filter_bytes == 32 * 32
        assert facts.fpp is not None
        assert 0.001 < facts.fpp <= 0.01


def test_the_rate_of_a_column_is_the_mean_of_the_rates_that_are_measured_at_the_common_size(tmp_path: Path) -> None:
    rng, path = random.Random(16), tmp_path / "index"
    filters = [filled(blocks, 300, rng) for blocks in (64, 32, 50, 16, 128)]
    with IndexWriter([COLUMN], fpp=0.05) as writer:
        for number, bits in enumerate(filters):
            writer.add(made(number, 1), [chunk(0, bits)])
        writer.add(made(9, 1), [chunk(0, None, state=ChunkState.ALWAYS)])
        writer.write(str(path), overwrite=False)
    with opened(path) as index:
        facts, blocks = index.facts().columns[0], index.layout(IDS).blocks
        measured = [kernels.sbbf_stats(kernels.sbbf_resized(bits, blocks))[1] for bits in filters]
        assert facts.fpp == pytest.approx(sum(measured) / 5, rel=1e-6)
        assert facts.fpp <= 0.05
        assert (facts.filters, facts.always, facts.row_groups) == (5, 1, 6)
        assert (facts.filter_bytes, facts.bytes) == (32 * blocks, 256 * blocks * 16)
        assert (facts.lookup_bytes, facts.slab_bytes) == (8 * 16, 256 * 16)


def test_a_few_very_large_filters_among_small_ones_do_not_blow_the_index_up(tmp_path: Path) -> None:
    rng, path = random.Random(4), tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.0001) as writer:
        writer.add(made(0, 1), [chunk(0, filled(1 << 17, 2_000_000, rng))])
        for number in range(1, 300):
            writer.add(made(number, 1), [chunk(0, filled(32, 700, rng))])
        writer.write(str(path), overwrite=False)
    assert path.stat().st_size < 5 * ((32 << 17) + 300 * 1024)


def test_columns_and_types_have_bits_of_their_own(tmp_path: Path) -> None:
    rng, path = random.Random(5), tmp_path / "index"
    narrow = IndexedColumn(path=COLUMN, type=ColumnType(physical="INT32"))
    stamp = IndexedColumn(
        path="at", type=ColumnType(physical="INT64", logical="TIMESTAMP(MICROS,UTC)", unit="MICROS", utc=True)
    )
    amount = IndexedColumn(
        path='a,b.ü "x"',
        type=ColumnType(
            physical="FIXED_LEN_BYTE_ARRAY", logical="DECIMAL(9,2)", type_length=4, scale=2, precision=9, signed=False
        ),
    )
    with IndexWriter([COLUMN, "at", amount.path, "nowhere"], fpp=0.01) as writer:
        writer.add(made(0, 2), [chunk(0, filled(4, 9, rng)), chunk(1, filled(4, 9, rng), narrow)])
        writer.add(made(1, 1), [chunk(0, filled(4, 9, rng), stamp), chunk(0, filled(4, 9, rng), amount)])
        writer.add(made(2, 3), [])
        writer.write(str(path), overwrite=False)
    with opened(path) as index:
        assert set(index.types(COLUMN)) == {narrow, IDS}
        assert index.types("at") == (stamp,)
        assert index.types(amount.path) == (amount,)
        assert index.types("nowhere") == ()
        with pytest.raises(UnknownColumn, match="isn't in the index"):
            index.types("idd")
        assert stamp.type.column("at").unit == "MICROS"
        assert ColumnType.of(amount.type.column("x")) == amount.type
        assert index.files[2].rows == made(2, 3).rows
        assert index.with_values(narrow) == [(0, 1)]


def test_row_groups_that_are_always_possible_are_given_once_beside_those_of_filters(tmp_path: Path) -> None:
    rng, path = random.Random(6), tmp_path / "index"
    states = [ChunkState.FILTER, ChunkState.ALWAYS, ChunkState.NEVER] * 40
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number, state in enumerate(states):
            writer.add(
                made(number, 1), [chunk(0, filled(4, 5, rng) if state is ChunkState.FILTER else None, state=state)]
            )
        writer.write(str(path), overwrite=False)
    with opened(path) as index:
        looked_up = hashes(rng, 100)
        every, units = answers(index, looked_up), index.units(IDS)
        slots = zip(units.file, units.row_group, units.state, strict=True)
        always = {(file, row_group) for file, row_group, state in slots if state == ALWAYS}
        assert len(always) == 40
        assert every >= {(at, *unit) for at in range(100) for unit in always}
        assert len(index.with_values(IDS)) == 80
        anything = index.possible(IDS, looked_up)
        assert set(anything) == {unit[1:] for unit in every}
        assert len(anything) == len({unit[1:] for unit in every})


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 9000])
def test_every_number_of_hashes_is_looked_up(count: int, tmp_path: Path) -> None:
    rng, path = random.Random(8), tmp_path / "index"
    bits = filled(16, 40, rng)
    with IndexWriter([COLUMN], fpp=0.000001) as writer:
        writer.add(made(0, 1), [chunk(0, bits)])
        writer.write(str(path), overwrite=False)
    looked_up = rng.randbytes(8 * count)
    out = bytearray(count)
    with opened(path) as index:
        assert index.layout(IDS).blocks == 16
        kernels.sbbf_check(bits, looked_up, count, out)
        assert answers(index, looked_up) == {(at, 0, 0) for at in range(count) if out[at]}


def test_an_index_without_files_has_no_answers(tmp_path: Path) -> None:
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        writer.write(str(tmp_path / "index"), overwrite=False)
    with opened(tmp_path / "index") as index:
        assert len(index.files) == 0
        assert index.types(COLUMN) == ()
        assert index.files.position("x") is None
        assert index.facts().columns == ()


def test_of_two_updates_at_once_one_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        writer.add(made(0, 1), [chunk(0, None, state=ChunkState.ALWAYS)])
        writer.write(path, overwrite=False)
    with (
        opened(path) as one,
        opened(path) as two,
        IndexWriter([COLUMN], fpp=0.01, old=one) as first,
        IndexWriter([COLUMN], fpp=0.01, old=two) as second,
    ):
        for number, writer in enumerate((first, second), start=1):
            writer.keep([0])
            writer.add(made(number, 1), [chunk(0, None, state=ChunkState.ALWAYS)])
        first.write(path, overwrite=True)
        with pytest.raises(SourceChanged):
            second.write(path, overwrite=True)
    with opened(path) as index:
        assert [file.path for file in index.files] == [made(0, 1).path, made(1, 1).path]


def test_an_index_that_is_there_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"something else")
    with IndexWriter([COLUMN], fpp=0.01) as writer, pytest.raises(UsageError, match="exists already"):
        writer.write(str(path), overwrite=False)
    assert path.read_bytes() == b"something else"
    assert list(tmp_path.iterdir()) == [path]


def test_an_update_keeps_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        writer.write(str(path), overwrite=False)
    with opened(path) as old, pytest.raises(UsageError, match="has the columns id, not id, other"):
        IndexWriter([COLUMN, "other"], fpp=0.01, old=old)


def test_what_a_caller_gives_is_checked(tmp_path: Path) -> None:
    rng = random.Random(9)
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        writer.add(made(0, 1), [])
        other = IndexedColumn(path="other", type=IDS.type)
        for file, chunks, reason in [
            (made(0, 1), [], "in the index already"),
            (made(1, 1), [chunk(1, filled(1, 1, rng))], "no row group 1"),
            (made(1, 1), [chunk(0, filled(1, 1, rng), other)], "isn't indexed"),
            (made(1, 1), [chunk(0, filled(1, 1, rng))] * 2, "comes twice"),
            (made(1, 1), [chunk(0, filled(1, 1, rng), state=ChunkState.ALWAYS)], "only then"),
            (made(1, 1), [chunk(0, None)], "only then"),
            (made(1, 1), [chunk(0, bytearray(31))], "multiple of 32"),
        ]:
            with pytest.raises(ValueError, match=reason):
                writer.add(file, chunks)
        with pytest.raises(ValueError, match="no old index"):
            writer.keep([0])


def test_the_store_of_an_index_is_that_of_its_path(tmp_path: Path) -> None:
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        assert writer.write((tmp_path / "index").as_uri(), overwrite=False) == (tmp_path / "index").stat().st_size
    with LOCAL.open(str(tmp_path / "index")) as source:
        assert Index(source).paths == (COLUMN,)


@pytest.mark.slow
def test_threads_may_look_values_up_at_once(tmp_path: Path) -> None:
    rng, path = random.Random(12), tmp_path / "index"
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(300):
            writer.add(made(number, 1), [chunk(0, filled(8, 40, rng))])
        writer.write(str(path), overwrite=False)
    looked_up = [hashes(rng, count) for count in (1, 3, 2000, 6000) * 3]
    with opened(path) as index:
        right = [answers(index, some) for some in looked_up]
    with opened(path) as index, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda some: answers(index, some), looked_up)) == right


def test_an_update_takes_a_larger_size_where_new_filters_need_it_and_loses_nothing(tmp_path: Path) -> None:
    rng, path = random.Random(13), tmp_path / "index"
    given: dict[tuple[str, int], tuple[ChunkState, bytes | None]] = {}
    for blocks, values, first in [(8, 150, 0), (256, 5000, 100), (64, 10, 200)]:
        old_source = open_source(str(path)) if first else None
        old = Index(old_source) if old_source else None
        with IndexWriter([COLUMN], fpp=0.01, old=old) as writer:
            if old:
                writer.keep(range(len(old.files)))
            for number in range(first, first + 70):
                bits = bytes(filled(blocks, values, rng))
                given[made(number, 1).path, 0] = ChunkState.FILTER, bits
                writer.add(made(number, 1), [chunk(0, bits)])
            writer.write(str(path), overwrite=True)
        if old_source:
            old_source.close()
    looked_up = hashes(rng, 300)
    with opened(path) as index:
        assert index.layout(IDS).blocks == 128
        assert answers(index, looked_up) == expected(index, given, looked_up, least=True)


def test_a_temporary_directory_that_cannot_be_written_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(14)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        with pytest.raises(WriteError, match="kept in a temporary file") as caught:
            writer.add(made(0, 1), [chunk(0, filled(1, 1, rng))])
        assert caught.value.hint is not None


def test_a_temporary_file_that_cannot_be_read_any_more_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, path, folder = random.Random(15), tmp_path / "index", tmp_path / "temporary"
    folder.mkdir()

    def cut(*args: Any) -> Iterator[bytearray]:
        for window in windows(*args):
            yield window
            for link in Path("/proc/self/fd").iterdir():
                with suppress(OSError):
                    if str(folder) in str(link.readlink()):
                        os.ftruncate(int(link.name), 100)

    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("bloomcli.index.writer.windows", cut)
    with windows_of(0), IndexWriter([COLUMN], fpp=0.01) as writer:
        for number in range(100):
            writer.add(made(number, 1), [chunk(0, filled(64, 1000, rng))])
        with pytest.raises(WriteError, match="shorter"):
            writer.write(str(path), overwrite=False)
    assert list(tmp_path.iterdir()) == [folder]
    assert not list(folder.iterdir())


def test_rows_are_summed_up_beyond_64_bits(tmp_path: Path) -> None:
    rows = (1 << 53,) * 1100
    with IndexWriter([COLUMN], fpp=0.01) as writer:
        writer.add(made(0, 1)._replace(rows=rows), [])
        writer.write(str(tmp_path / "index"), overwrite=False)
    with opened(tmp_path / "index") as index:
        assert index.facts().rows == sum(rows)


def test_paths_and_columns_have_any_name_that_a_file_may_have(tmp_path: Path) -> None:
    odd = [
        os.fsdecode(b"lake/\xff.parquet"),
        "lake/\u0041\u030a \n\"'\\.parquet",
        "",
        "lake/00ff.parquet",
        "zerow\u200d",
    ]
    columns = [COLUMN, "a.b", 'q"uote', "\u00fc\n", os.fsdecode(b"\xfe")]
    with IndexWriter(columns, fpp=0.01) as writer:
        for name in odd:
            kind = IndexedColumn(path=columns[len(name) % 5], type=IDS.type)
            file = IndexedFile(path=name, size=1, rows=(1,))
            writer.add(file, [chunk(0, None, kind, ChunkState.ALWAYS)])
        writer.write(str(tmp_path / "index"), overwrite=False)
    with opened(tmp_path / "index") as index:
        assert [file.path for file in index.files] == odd
        assert [index.files.position(name) for name in odd] == list(range(5))
        assert index.paths == tuple(columns)
        assert {column.path for column in index.columns} == {columns[len(name) % 5] for name in odd}
