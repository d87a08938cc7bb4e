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
    """The reports of the commands on each fixture and of `validate` on those of each rule, the screens of each
    command, and reports written by hand."""
    command_reports.DATA.mkdir(exist_ok=True)
    for stale in command_reports.DATA.glob("*.jsonl"):
        stale.unlink()
    for path in golden.files():
        with tempfile.TemporaryDirectory() as scratch:
            lines = command_reports.lines(path, Path(scratch))
            command_reports.kept(path).write_text("".join(f"{line}\n" for line in lines))
    write_rules()
    for kept in KEPT.values():
        write(kept)


def write_rules() -> None:
    """A file a rule: ``python tests/golden/update.py rules`` writes only these."""
    command_reports.OF_RULES.mkdir(exist_ok=True)
    for stale in command_reports.OF_RULES.glob("*.jsonl"):
        stale.unlink()
    for folder in sorted(golden.RULE_PAIRS.iterdir()):
        lines = command_reports.lines_of_rule(folder.name)
        command_reports.kept_of_rule(folder.name).write_text("".join(f"{line}\n" for line in lines))


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
    only = "".join(sys.argv[1:])
    write_rules() if only == "rules" else write(KEPT[only]) if only else main()
