"""Write the golden files again: ``python tests/golden/update.py``. Read the difference before it is kept."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Final

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent)]

from support import command_reports, golden, screens, written_reports  # noqa: E402


def main() -> None:
    """The reports of the commands on each fixture, the screens of each command, and reports written by hand."""
    command_reports.DATA.mkdir(exist_ok=True)
    for stale in command_reports.DATA.glob("*.jsonl"):
        stale.unlink()
    for path in golden.files():
        with tempfile.TemporaryDirectory() as scratch:
            lines = command_reports.lines(path, Path(scratch))
            command_reports.kept(path).write_text("".join(f"{line}\n" for line in lines))
    for kept in KEPT.values():
        write(kept)


KEPT: Final = {"screens": screens, "reports": written_reports}
"""Golden files by the name of their folder: ``python tests/golden/update.py screens`` writes only these."""


def write(kept: ModuleType) -> None:
    """Each file of a folder, and none that is left over."""
    kept.DATA.mkdir(exist_ok=True)
    for stale in kept.DATA.iterdir():
        stale.unlink()
    for path, text in kept.texts():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(KEPT[sys.argv[1]]) if sys.argv[1:] else main()
