"""The folders of fixtures, and those that have golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
FIXTURES: Final = ROOT / "fixtures" / "parquet"
ORC: Final = ROOT / "fixtures" / "orc"
MOSAIC: Final = ROOT / "fixtures" / "mosaic"
RULE_PAIRS: Final = ROOT / "fixtures" / "rules"
"""One folder per rule; their files have no golden files."""
WRITERS: Final = ROOT / "fixtures" / "writers"
"""Files with wrong metadata; they have no golden files."""
ENGINE_FILTERS: Final = ROOT / "fixtures" / "engine_filters"
"""Files with filters that engines keep themselves; they have no golden files."""


def files() -> list[Path]:
    """Every fixture that has a golden file."""
    return [*sorted(FIXTURES.glob("*.parquet")), *sorted(ORC.glob("*.orc")), *sorted(MOSAIC.glob("*.mosaic"))]
