"""Decimals of any column, exactly. Only what parses decimals imports this module: `decimal` takes 2 ms to import."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Inexact, InvalidOperation
from typing import Final

WIDE: Final = Context(prec=4000, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
"""Refuses what it can't hold exactly."""
