"""A replacement of a file, as the tests of atomic writing do it over and over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from bloomcli.atomic import replacing
from bloomcli.source import LocalSource

OLD: Final = bytes(range(256)) * 20
NEW: Final = OLD + b"and more"


def accept(_: Path) -> None:
    """Verify nothing."""


def replace(
    target: Path,
    *,
    source: Path | None = None,
    overwrite: bool = True,
    verify: Callable[[Path], None] = accept,
    during: Callable[[], object] = lambda: None,
) -> None:
    """Write NEW to `target`, made from `source` (the target itself where none is given)."""
    path = source or target
    with (
        LocalSource(str(path), path) as opened,
        replacing(target, source=opened, overwrite=overwrite, verify=verify) as out,
    ):
        out.copy_range(opened, 0, len(OLD))
        out.write(b"and")
        during()
        out.write(memoryview(b" more"))
        assert out.position == len(NEW)


def names(folder: Path) -> set[str]:
    """Everything in a folder, hidden or not."""
    return {entry.name for entry in folder.iterdir()}
