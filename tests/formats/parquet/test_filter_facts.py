"""Compiled code reports the same facts about many filters as the examination of each filter."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bloomcli
from bloomcli.errors import BloomError
from bloomcli.formats.located_file import LocatedFile
from bloomcli.formats.parquet.file import ParquetFile
from bloomcli.storage.registry import open_source

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "fixtures").rglob("*.parquet"))


def both(path: Path) -> tuple[object, object]:
    """The facts about the filters of a file, by compiled code and one by one, or the texts of the errors."""

    def found(one_by_one: bool) -> object:
        try:
            with open_source(path) as source:
                file = ParquetFile(source)
                if one_by_one:
                    chunks = file.filters.locations(None)
                    return [facts for chunk in chunks for facts in LocatedFile.facts_of(file, chunk)]
                return list(file.indexed_facts(None))
        except BloomError as error:
            return type(error), str(error), error.hint

    return found(False), found(True)


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file with filters on columns of every type, nulls, and zeros and NaN as bounds."""
    folder = tmp_path_factory.mktemp("facts")
    nan = float("nan")
    table = pa.table(
        {
            "i32": pa.array([1, None, 3, 4], pa.int32()),
            "i64": pa.array([-1, 2, 3, 2**40]),
            "u32": pa.array([1, 2, 3, 2**31], pa.uint32()),
            "f32": pa.array([0.0, 1.5, 2.5, 0.0], pa.float32()),
            "f64": pa.array([-0.0, 1.5, nan, 2.0]),
            "above": pa.array([1.0, 2.0, 3.0, 4.0]),
            "text": ["a", "b", None, "d" * 100],
            "fixed": pa.array([b"abcd", b"bcde", b"cdef", b"defg"], pa.binary(4)),
            "dec": pa.array([1, 2, 3, 4], pa.decimal128(20, 2)),
            "ts": pa.array([1, 2, 3, 4], pa.timestamp("us")),
            "list": [[1], [2, 3], [], None],
            "none": pa.array([None] * 4, pa.int64()),
        }
    )
    pq.write_table(table, folder / "plain.parquet", row_group_size=2, store_schema=False)
    bloomcli.add(folder / "plain.parquet", ["*"], output=folder / "filtered.parquet")
    return folder / "filtered.parquet"


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_every_fixture_has_the_same_facts_or_faults(path: Path) -> None:
    fast, slow = both(path)
    assert fast == slow


def test_every_type_has_the_same_facts_and_no_filter_is_examined_alone(
    every_type: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, slow = both(every_type)
    alone: list[object] = []
    monkeypatch.setattr(LocatedFile, "facts_of", lambda _, chunk: iter(alone.append(chunk) or ()))
    with open_source(every_type) as source:
        file = ParquetFile(source)
        assert list(file.indexed_facts(None)) == slow
        assert list(file.indexed_facts({1, 3})) == [pair for pair in slow if pair[0] in {1, 3}]
    assert isinstance(slow, list)
    assert len(slow) == 24
    assert not alone


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_have_the_same_facts_or_faults(every_type: Path, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    original = every_type.read_bytes()
    length = int.from_bytes(original[-8:-4], "little")
    footer = range(len(original) - 8 - length, len(original) - 8)
    with open_source(every_type) as source:
        filters = [f.offset + at for f in ParquetFile(source).facts(None) for at in range(f.header_bytes or 0)]
    path = tmp_path / "damaged.parquet"
    differing = 0
    for _ in range(250):
        data = bytearray(original)
        for _ in range(random.randint(1, 2)):
            at = random.choice(footer if random.random() < 0.7 else filters)
            data[at] = random.choice([0, 0x15, 0x16, 0x1C, 0xFF, data[at] ^ 1 << random.randrange(8)])
        path.write_bytes(data)
        fast, slow = both(path)
        assert fast == slow, f"seed {seed}"
        differing += isinstance(slow, tuple) or any(facts.problem or facts.untrusted for _, facts in slow)
    assert differing > 25, "the damage is noticed in many of the files"
