"""Tables that Paimon 1.4.2 wrote, by `tests/support/PaimonTables.java`."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from support.golden import ENGINE_FILTERS


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The folder of the tables ``parquet``, ``orc``, ``embedded`` and ``large``."""
    with zipfile.ZipFile(ENGINE_FILTERS / "paimon-tables.zip") as packed:
        packed.extractall(tmp_path)
    return tmp_path / "d.db"
