"""MANIFEST.toml describes the ORC fixtures correctly, according to a reader that shares no code with bloomcli."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.golden import ORC
from support.orcwalk import Orc

ROOT = ORC.parent
ALL: list[dict[str, Any]] = [
    entry for entry in tomllib.loads((ROOT / "MANIFEST.toml").read_text())["file"] if entry["path"].endswith(".orc")
]
"""Those of the rules too."""
ENTRIES = [entry for entry in ALL if entry["path"].startswith("orc/")]
FOUR_HUNDRED_KB = 400_000


def names(entry: dict[str, Any]) -> str:
    """The test's id."""
    path = Path(entry["path"])
    return f"{path.parent.name}-{path.stem}" if path.is_relative_to("rules") else path.stem


def test_all_fixtures_together_are_small_and_cover_every_codec() -> None:
    assert ENTRIES
    assert sum(entry["bytes"] for entry in ENTRIES) < FOUR_HUNDRED_KB
    assert {Orc(ROOT / entry["path"]).codec for entry in ENTRIES} == {"none", "zlib", "snappy", "lz4", "zstd"}


@pytest.mark.parametrize("entry", ALL, ids=names)
def test_rows_stripes_row_groups_and_filters_are_those_in_the_file(entry: dict[str, Any]) -> None:
    file = Orc(ROOT / entry["path"])
    assert (sum(s.rows for s in file.stripes), len(file.stripes)) == (entry["rows"], entry["stripes"])
    groups = sum(-(-s.rows // file.stride) for s in file.stripes) if file.stride else 0
    assert groups == entry["row_groups"]
    paths = {index: path for path, index in file.columns.items()}
    assert {paths.get(column, f"column {column}") for s in file.stripes for _, column in s.filters} == set(
        entry["filters"]
    )
