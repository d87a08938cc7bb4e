"""MANIFEST.toml describes every fixture, and its statements are true, by readers that share no code with bloomcli."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.golden import ENGINE_FILTERS, FIXTURES, MOSAIC, ORC, RULE_PAIRS, WRITERS
from support.orcwalk import Orc

ROOT = FIXTURES.parent
ENTRIES: list[dict[str, Any]] = tomllib.loads((ROOT / "MANIFEST.toml").read_text())["file"]
OPEN = [
    entry
    for entry in ENTRIES
    if entry["path"].endswith(".parquet")
    and "encrypted_footer" not in entry["path"]
    and not entry["path"].startswith("encrypted/")
]
OF_ORC = [entry for entry in ENTRIES if entry["path"].endswith(".orc")]
HUNDRED_KB = 100_000


def names(entry: dict[str, Any]) -> str:
    """The test's id."""
    path = Path(entry["path"])
    return f"{path.parent.name}-{path.name}" if path.is_relative_to("rules") else path.stem


def test_the_manifest_and_the_folder_hold_the_same_files() -> None:
    listed = [ROOT / entry["path"] for entry in ENTRIES]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {
        *FIXTURES.iterdir(),
        *ORC.iterdir(),
        *MOSAIC.iterdir(),
        *RULE_PAIRS.glob("*/*"),
        *WRITERS.iterdir(),
        *(ROOT / "encrypted").iterdir(),
        *ENGINE_FILTERS.iterdir(),
    }


@pytest.mark.parametrize("entry", ENTRIES, ids=names)
def test_a_fixture_has_the_bytes_of_its_writer_and_a_recipe_that_exists(entry: dict[str, Any]) -> None:
    data = (ROOT / entry["path"]).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["bytes"], entry["sha256"])
    assert len(data) < HUNDRED_KB
    assert entry["writer"] and entry["version"] and entry["what"]
    assert (ROOT / entry["recipe"]).is_file()


@pytest.mark.parametrize("entry", OPEN, ids=names)
def test_rows_row_groups_and_filters_are_those_that_arrow_sees(entry: dict[str, Any]) -> None:
    metadata = pq.read_metadata(ROOT / entry["path"])
    assert (metadata.num_rows, metadata.num_row_groups) == (entry["rows"], entry["row_groups"])
    filtered = {
        chunk.path_in_schema
        for group in range(metadata.num_row_groups)
        for chunk in map(metadata.row_group(group).column, readable(entry, metadata))
        if chunk.bloom_filter_offset is not None
    }
    assert filtered == set(entry["filters"])


def readable(entry: dict[str, Any], metadata: pq.FileMetaData) -> range:
    """Ordinals of the columns whose metadata Arrow shows without keys."""
    hidden = {"pyarrow_encrypted_columns": 2, "pyarrow_signed": 1}.get(Path(entry["path"]).stem, 0)
    return range(metadata.num_columns - hidden)


@pytest.mark.parametrize("entry", OF_ORC, ids=names)
def test_rows_stripes_row_groups_and_filters_of_orc_files_are_those_in_the_file(entry: dict[str, Any]) -> None:
    file = Orc(ROOT / entry["path"])
    assert (sum(s.rows for s in file.stripes), len(file.stripes)) == (entry["rows"], entry["stripes"])
    groups = sum(-(-s.rows // file.stride) for s in file.stripes) if file.stride else 0
    assert groups == entry["row_groups"]
    paths = {index: path for path, index in file.columns.items()}
    assert {paths.get(column, f"column {column}") for s in file.stripes for _, column in s.filters} == set(
        entry["filters"]
    )


def test_orc_fixtures_cover_every_codec() -> None:
    assert {Orc(path).codec for path in ORC.iterdir()} == {"none", "zlib", "snappy", "lz4", "zstd"}
