"""Replacements of files for the tests of atomic writing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from bloomcli.storage.local import temporary
from bloomcli.storage.local.atomic import replacing
from bloomcli.storage.local.source import LocalSource

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
    opened: LocalSource | None = None,
) -> None:
    """Write NEW to `target`, made from `source` (by default the target), which may be open already."""
    path = source or target
    with (
        contextlib.nullcontext(opened) if opened is not None else LocalSource(str(path), path) as made_from,
        replacing(target, source=made_from, overwrite=overwrite, verify=verify) as out,
    ):
        out.copy_range(made_from, 0, len(OLD))
        out.write(b"and")
        during()
        out.write(memoryview(b" more"))
        assert out.position == len(NEW)


def around(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run an action before and after each call that changes a folder or examines a file in it."""

    def wrap(module: object, name: str) -> None:
        real = getattr(module, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if acting:
                return real(*arguments, **named)
            acting.append(True)
            try:
                act()
                found = real(*arguments, **named)
                act()
            finally:
                acting.pop()
            return found

        monkeypatch.setattr(module, name, call)

    acting: list[bool] = []
    for name in ("replace", "rename", "link", "unlink", "fsync"):
        wrap(os, name)
    wrap(temporary, "_rename")


def names(folder: Path) -> set[str]:
    """All names in a folder, with hidden files."""
    return {entry.name for entry in folder.iterdir()}
