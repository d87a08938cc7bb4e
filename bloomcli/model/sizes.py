"""The sizes that split-block filters may have."""

from __future__ import annotations

from typing import Final

POWER_OF_TWO: Final = "power-of-two"
"""A power of two, which every reader takes."""
TIGHT: Final = "tight"
"""Any number of blocks, which some readers refuse or misread."""
SIZES: Final = (POWER_OF_TWO, TIGHT)
"""The values of ``--size``."""
