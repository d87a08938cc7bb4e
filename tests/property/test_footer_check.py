"""The compiled check of a footer skips only column chunks that can't cause an error."""

from __future__ import annotations

from array import array
from pathlib import Path
from random import Random

import pytest
from support import fuzzing, fuzzparquet

from bloomcli import kernels
from bloomcli.errors import BloomError
from bloomcli.formats.parquet import footer_check, idl
from bloomcli.formats.parquet import limits as parquet_limits
from bloomcli.formats.parquet.footer import ChunkKey, Footer, read_footer
from bloomcli.storage.registry import open_source

FIXTURES = sorted((fuzzing.ROOT / "fixtures" / "parquet").glob("*.parquet"))
UNUSUAL = {
    "dict-page-offset-zero",  # an old field under bloom_filter_length's number
    "pyarrow_empty",  # no row group
    "pyarrow_encrypted_columns",
    "pyarrow_encrypted_footer",
    "pyarrow_signed",
}
"""Chunks of these are looked at one by one, or there are none."""
FILES = [p for p in FIXTURES if p.stem not in UNUSUAL]
MUTATIONS = 60
"""Of each file's footer."""


def passed_over(footer: Footer) -> tuple[list[ChunkKey], int]:
    """The chunks that aren't checked, and the number of those that are, except filters with a length only in their
    headers."""
    types = array("i", (idl.ENUMS["Type"].get(c.physical, -1) for c in footer.columns))
    plain: list[ChunkKey] = []
    count = 0
    for group in range(footer.row_group_count):
        starts = footer.row_group(group).chunks
        doubtful, unsized = kernels.chunks_to_check(
            footer.raw, starts, types, footer.start, parquet_limits.THRIFT_MAX_DEPTH
        )
        looked_at = {*doubtful, *(ordinal for ordinal, _ in unsized)}
        plain += [ChunkKey(group, n, at) for n, at in enumerate(starts) if n not in looked_at]
        count += len(doubtful)
    return plain, count


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_no_chunk_that_is_passed_over_is_damaged(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    random = Random(path.name)
    seen = 0
    for _ in range(MUTATIONS):
        (tmp_path / "f").write_bytes(fuzzparquet.mutate_footer(random, data))
        with open_source(str(tmp_path / "f")) as source:
            try:
                footer = read_footer(source)
                plain, _ = passed_over(footer)
            except BloomError:
                continue
            if footer.column_count != len(footer.columns):
                continue  # no column is looked up then
            for key in plain:
                footer_check._look_at(source, footer, key, set())  # its error mustn't be missed
                seen += 1
    assert seen


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_chunks_of_sound_files_are_passed_over(path: Path) -> None:
    """Skipping them makes the check cheap."""
    with open_source(str(path)) as source:
        plain, count = passed_over(read_footer(source))
    assert count == 0
    assert plain or path.stem.startswith("draft_")
