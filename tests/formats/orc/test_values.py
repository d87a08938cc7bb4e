"""The values that hashes, find, samples, an index and reports have in common."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import orcfiles, work
from support.orcvalues import row_groups

import bloomcli
from bloomcli import limits
from bloomcli.concurrency.threads import Stop
from bloomcli.formats.orc.arrow_forms import texts_of
from bloomcli.formats.orc.file import OrcFile
from bloomcli.formats.orc.hashes import column_hasher
from bloomcli.storage.registry import open_source
from bloomcli.values.literals import parse

DICTIONARY = 1.0
DIRECT = 0.0
LONG = "é" * (5 << 19)
"""5 MiB: more than what is read together."""


@functools.cache
def _hash(text: str) -> int:
    return orcfiles.text_hash(text)


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "compression"), [(DIRECT, "uncompressed"), (DICTIONARY, "zlib")])
def test_strings_that_are_too_long_to_be_read_together_are_hashed_shown_and_found(
    tmp_path: Path, threshold: float, compression: str
) -> None:
    texts = ["a", LONG, "", LONG, f"{LONG}b", "c"]
    path = orcfiles.write(
        tmp_path / "f.orc", {"t": texts}, compression=compression, dictionary_key_size_threshold=threshold
    )
    with open_source(path) as source:
        footer = OrcFile(source).footer
        (found,) = row_groups(footer, footer.stripes[0], footer.types[1])
        size = len(LONG.encode())
        cut = f"{LONG[:512]}... ({size:d} bytes)"
        assert memoryview(found.hashes).cast("Q").tolist() == list(map(_hash, texts))
        assert [found.value(at) for at in range(6)] == ["a", cut, "", cut, cut.replace(f"{size}", f"{size + 1}"), "c"]
    for value, rows in (("c", [5]), (LONG, [1, 3]), (f"{LONG}b", [4]), (LONG[:-1], [])):
        assert [row["row"] for batch in bloomcli.find(path, value, column="t") for row in batch.to_pylist()] == rows


@pytest.mark.parametrize("name", sorted(set(orcfiles.CASES) - {"all_null"}))
def test_values_by_their_keys_have_the_bytes_of_their_literals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(limits, "ROWS_PER_BATCH", 3)
    case = orcfiles.CASES[name]
    array = pa.array(case.values, case.type)
    path = orcfiles.write(tmp_path / "f.orc", {"c": array}, dictionary_key_size_threshold=DICTIONARY)
    with open_source(path) as source:
        file = OrcFile(source)
        column = file.literal_column(file.leaves[0])
        expected: list[Any] = [v for v in case.values if v is not None]
        (values,) = file.unit_values(file.leaves[:1], 0, [0.01], 0, Stop())
        batches = (one for group in values.row_groups for one in group.batches)
        keys = [one.key(at) for one in batches for at in range(one.hashed)]
        for value, plain in zip(expected, values.plain(keys), strict=True):
            literal = parse(case.text(value), column, path=str(path))
            assert plain is not None
            assert plain in literal.encodings or (literal.unknowable is not None and plain)


@pytest.mark.parametrize("threshold", [DIRECT, DICTIONARY])
def test_a_string_that_is_too_long_to_keep_has_no_bytes(tmp_path: Path, threshold: float) -> None:
    path = orcfiles.write(
        tmp_path / "f.orc",
        {"t": ["a", LONG, "b" * (1 << 16), "c" * (1 << 16) + "c"]},
        dictionary_key_size_threshold=threshold,
    )
    with open_source(path) as source:
        file = OrcFile(source)
        (values,) = file.unit_values(file.leaves[:1], 0, [0.01], 0, Stop())
        keys = [one.key(at) for group in values.row_groups for one in group.batches for at in range(one.hashed)]
        assert values.plain(keys) == [b"a", None, b"b" * (1 << 16), None]


def test_an_entry_of_a_dictionary_is_read_once_for_the_texts_of_equal_values(tmp_path: Path) -> None:
    rows = 2000
    path = orcfiles.write(tmp_path / "f.orc", {"t": ["same"] * rows}, dictionary_key_size_threshold=DICTIONARY)
    with open_source(path) as source:
        footer = OrcFile(source).footer
        stripe = footer.stripes[0]
        hasher = column_hasher(footer, footer.stripe_footer(stripe), footer.types[1], Stop())
        assert hasher.leaf.entries == 1
        (batch,) = hasher.take(rows)
        text = texts_of(hasher.leaf)(batch.values)
        texts: set[str] = set()
        calls = work.calls(lambda: texts.update(map(text, range(rows))))
        assert texts == {"same"}
        assert calls < 4 * rows


@pytest.mark.parametrize(
    ("rows", "stride", "units"),
    [(0, 0, []), (7, 0, [7]), (0, 3, []), (7, 3, [3, 3, 1]), (6, 3, [3, 3]), (2, 3, [2])],
)
def test_a_stripe_is_divided_by_the_stride_and_is_one_unit_without_it(
    fixtures: Path, rows: int, stride: int, units: list[int]
) -> None:
    with open_source(fixtures / "orc" / "java_types.orc") as source:
        footer = OrcFile(source).footer
    footer.message.row_index_stride = stride
    stripe = footer.stripes[0]._replace(rows=rows)
    assert footer.units(stripe) == units
    assert footer.row_groups(stripe) == (len(units) if stride else 0)
