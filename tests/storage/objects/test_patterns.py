"""Patterns over keys mean what they mean for files of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from bloomcli.errors import UnreadableError
from bloomcli.storage.local.store import files
from bloomcli.storage.objects.store import Pattern

KEYS = [
    "a.parquet",
    "b.orc",
    "ab.parquet",
    ".a.parquet",
    "_x.parquet",
    "_p=1/c.parquet",
    "year=2023/e.parquet",
    "year=2024/month=2/d.parquet",
    "year=2024/month=2/_SUCCESS",
    "year=2024/_delta_log/0.json",
    "year=2024/.git/x.parquet",
    "dir.parquet/part-0",
    "dir.parquet/_hidden",
]
PATTERNS = [
    "*.parquet",
    "?.parquet",
    "[!a]*",
    "*",
    "*/*.parquet",
    "**",
    "**/*.parquet",
    "**/d.parquet",
    "year=*/**/*.parquet",
    "year=2024/**",
    ".*",
    "_*",
    "_*/*",
    "*/_SUCCESS",
    "year=2024/*/_SUCCESS",
    "year=*",
    "year=*/",
    "*/",
    "year=2024/*/",
    "**/month=*",
    "**/_SUCCESS",
    "nothing*",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_the_keys_that_it_matches_as_files(pattern: str, tmp_path: Path) -> None:
    for key in KEYS:
        target = tmp_path / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"")
    try:
        expected = {str(Path(item.path).relative_to(tmp_path)) for item in files(f"{tmp_path}/{pattern}")}
    except UnreadableError:
        expected = set()
    matched = Pattern(f"lake/{pattern}")
    assert {key for key in KEYS if matched.match(f"lake/{key}") is not None} == expected
    assert all(f"lake/{key}".startswith(matched.prefix) for key in expected)
