"""MANIFEST.toml describes every fixture, and its statements are true."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.golden import ENGINE_FILTERS, FIXTURES, MOSAIC, ORC, RULE_PAIRS, WRITERS

ROOT = FIXTURES.parent
ENTRIES: list[dict[str, Any]] = tomllib.loads((ROOT / "MANIFEST.toml").read_text())["file"]
PARQUET = [entry for entry in ENTRIES if entry["path"].endswith(".parquet")]
OPEN = [
    entry
    for entry in PARQUET
    if "encrypted_footer" not in entry["path"] and not entry["path"].startswith("encrypted/")
]
HUNDRED_KB = 100_000


def names(entry: dict[str, Any]) -> str:
    """The test's id."""
    path = Path(entry["path"])
    return f"{path.parent.name}-{path.name}" if path.is_relative_to("rules") else path.stem


def test_the_manifest_and_the_folder_hold_the_same_files() -> None:
    listed = [ROOT / entry["path"] for entry in ENTRIES]
    assert listed, "an empty manifest proves nothing"
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
def test_a_fixture_has_the_bytes_that_its_writer_wrote(entry: dict[str, Any]) -> None:
    data = (ROOT / entry["path"]).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["bytes"], entry["sha256"])
    assert len(data) < HUNDRED_KB


@pytest.mark.parametrize("entry", ENTRIES, ids=names)
def test_a_fixture_names_its_writer_and_a_recipe_that_exists(entry: dict[str, Any]) -> None:
    assert entry["writer"]
    assert entry["version"]
    assert entry["what"]
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
