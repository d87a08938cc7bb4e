"""Exact decimals of any column. Only parsers of decimals import this module, because importing `decimal` takes 2
ms."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Inexact, InvalidOperation
from typing import Final

WIDE: Final = Context(prec=4000, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact])
"""A context that raises an exception for numbers that it can't represent exactly."""
