"""Pages that are too large for memory have the same values, window by window, in every encoding and codec."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import blooms
from support.tables import CASES, COMPRESSIONS, ENCODINGS, write
from support.whole_pages import pages_of

import bloomcli
from bloomcli import kernels, limits
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.parquet import codecs
from bloomcli.formats.parquet import limits as parquet_limits

WRITTEN = [
    (encoding, name, ("none", "zstd")[at % 2], 1 + at // 2 % 2)
    for encoding, names in ENCODINGS.items()
    for at, name in enumerate(names)
] + [
    (encoding, names[0], codec, version)
    for encoding, names in ENCODINGS.items()
    for codec in COMPRESSIONS
    for version in (1, 2)
]
"""Every type in each of its encodings, and one column of an encoding in every codec and version."""


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every page as large, and read it a few bytes at a time."""
    monkeypatch.setattr(parquet_limits, "PAGE_AT_ONCE_BYTES", 0)
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 3)
    monkeypatch.setattr(codecs, "WINDOW", 5)


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(("encoding", "name", "compression", "page_version"), WRITTEN)
def test_a_large_page_has_the_values_of_a_small_one(
    tmp_path: Path, encoding: str, name: str, compression: str, page_version: int
) -> None:
    case = CASES[name]
    table = {"c": case.array(7)}
    path = write(tmp_path / "f", table, encoding=encoding, page_version=page_version, compression=compression)
    pages = pages_of(path)
    found = set()
    for page in pages:
        hashes = memoryview(page.hashes).cast("Q").tolist()
        assert len(hashes) == page.count <= 3
        assert hashes == [kernels.xxh64(value) for value in page.values()]
        found |= set(hashes)
    assert found == case.hashes()


@pytest.mark.parametrize("page_version", [1, 2])
def test_a_large_page_is_opened_once_for_its_levels_and_once_for_its_values(
    tmp_path: Path, page_version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_limits, "PAGE_AT_ONCE_BYTES", 0)
    array = pa.array([None if i % 3 else i for i in range(900)], pa.int64())
    path = write(tmp_path / "f", {"c": array}, dictionary=False, page_version=page_version, compression="zstd")
    opened = []
    original = codecs.Body.open
    monkeypatch.setattr(codecs.Body, "open", lambda body, at: opened.append(at) or original(body, at))
    assert sum(page.count for page in pages_of(path)) == 300
    assert len(opened) == 2


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("page_version", [1, 2])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_large_dictionary_and_its_indices_are_read_in_windows(
    tmp_path: Path, compression: str, page_version: int
) -> None:
    values = [None if i % 7 == 0 else f"value {i * 31 % 90}" for i in range(400)]
    path = write(tmp_path / "f", {"c": pa.array(values)}, compression=compression, page_version=page_version)
    (page,) = pages_of(path)
    assert page.dictionary
    assert {value.decode() for value in page.values()} == {value for value in values if value is not None}


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_a_long_value_is_hashed_as_it_comes_and_reported_by_its_length(
    tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_limits, "VALUE_AT_ONCE_BYTES", 40)
    values = [random.Random(size).randbytes(size) for size in (3, 50, 1000, 40, 41, 0)]
    path = write(tmp_path / "f", {"c": pa.array(values, pa.binary())}, encoding=encoding)
    bloomcli.add(path, ["c"], in_place=True)
    assert bloomcli.validate(path, deep=True).findings == ()
    found = [h for page in pages_of(path) for h in memoryview(page.hashes).cast("Q").tolist()]
    assert found == [kernels.xxh64(value) for value in values]
    kept = [page.long for page in pages_of(path)]
    assert kept.count(None) < len(kept) or encoding == "DELTA_BYTE_ARRAY"  # keeps each value for the next one
    for size in filter(None, kept):
        assert size in {50, 1000, 41}


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    "options",
    [{"dictionary": False}, {}, {"compression": "snappy"}],
    ids=["of a page", "of a dictionary", "of a compressed dictionary"],
)
def test_a_missing_long_value_is_reported_by_its_length(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_limits, "VALUE_AT_ONCE_BYTES", 40)
    path = write(tmp_path / "f", {"c": pa.array([b"x" * 1000, b"short"], pa.binary())}, **options)
    path.write_bytes(blooms.planted(path.read_bytes(), 0, 0, blooms.header(32) + blooms.build([b"other"], 32)))
    (finding,) = bloomcli.validate(path, deep=True).findings
    assert (finding.id, finding.missing) == ("value-missing", ("(a value of 1000 bytes)", "short"))


@pytest.mark.usefixtures("windows")
def test_a_long_value_gets_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_limits, "VALUE_AT_ONCE_BYTES", 40)
    path = write(tmp_path / "f", {"c": pa.array([b"x" * 1000], pa.binary())}, dictionary=False)
    with pytest.raises(UnsupportedError, match="a value of 1000 bytes; at most 40 are held in memory"):
        bloomcli.add(path, ["c"], in_place=True, variant="parquet-2018-header")


@pytest.mark.parametrize(
    ("limit", "options", "message"),
    [
        ("PAGE_WHOLE_MAX_BYTES", {"compression": "snappy"}, "with SNAPPY at most 60 are read"),
        ("PAGE_WHOLE_MAX_BYTES", {"encoding": "BYTE_STREAM_SPLIT"}, "in its encoding at most 60 are read"),
        ("PAGE_WHOLE_MAX_BYTES", {"dictionary": True}, r"a dictionary of \d+ bytes, more than the 60"),
        ("DICTIONARY_MAX_VALUES", {"dictionary": True}, "a dictionary of 90 values, more than the 60"),
        ("DELTA_VALUE_MAX_BYTES", {"encoding": "DELTA_BYTE_ARRAY"}, "a value of more than 60 bytes"),
        ("DELTA_PAGE_MAX_BYTES", {"encoding": "DELTA_BYTE_ARRAY"}, "with more than 60 bytes of values"),
    ],
)
def test_each_ceiling_is_named(
    tmp_path: Path, limit: str, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_limits, "PAGE_AT_ONCE_BYTES", 0)
    monkeypatch.setattr(parquet_limits, limit, 60)
    texts = [f"{'text' * 20} {i}" for i in range(90)]
    array = pa.array([i / 7 for i in range(90)] if options.get("encoding") == "BYTE_STREAM_SPLIT" else texts)
    path = write(tmp_path / "f", {"c": array}, **{"dictionary": False, **options})
    with pytest.raises(UnsupportedError, match=message) as caught:
        bloomcli.add(path, ["c"], in_place=True)
    error = caught.value
    assert (error.path, error.field) == (str(path), "row_groups[0].columns[0]")
    assert error.offset is not None
    assert error.hint


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("compression", [c for c in COMPRESSIONS if c != "none"])
@pytest.mark.parametrize("damage", ["zeros", "cut", "flipped"])
def test_a_large_page_that_is_damaged_is_refused(tmp_path: Path, compression: str, damage: str) -> None:
    array = pa.array([random.Random(1).randbytes(30) for _ in range(40)], pa.binary())
    path = write(tmp_path / "f", {"c": array}, compression=compression, dictionary=False)
    data = bytearray(path.read_bytes())
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start, end = chunk.data_page_offset + 60, chunk.data_page_offset + chunk.total_compressed_size
    middle = (start + end) // 2
    if damage == "flipped":
        data[start - 20 : start] = bytes(b ^ 0xFF for b in data[start - 20 : start])
    else:
        data[start if damage == "zeros" else middle : end] = bytes(end - (start if damage == "zeros" else middle))
    path.write_bytes(data)
    with pytest.raises(CorruptFile):
        bloomcli.add(path, ["c"], in_place=True)


def test_an_entry_of_a_dictionary_that_occurs_twice_in_a_row_keeps_its_index(tmp_path: Path) -> None:
    values = pa.array(["twice", "TWICE", "other", "last"])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 3, 1]), values)
    path = write(tmp_path / "f", pa.table({"c": column}))
    path.write_bytes(path.read_bytes().replace(b"TWICE", b"twice"))  # Arrow would not write it so
    (page,) = pages_of(path)
    assert [value.decode() for value in page.values()] == ["twice", "last"]
    assert memoryview(page.hashes).cast("Q").tolist() == [kernels.xxh64(value) for value in (b"twice", b"last")]
