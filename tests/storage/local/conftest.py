"""A file to replace."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.replacing import OLD


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file, alone in its folder."""
    path = tmp_path / "data.parquet"
    path.write_bytes(OLD)
    return path
