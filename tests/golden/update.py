"""Write the golden files again: ``python tests/golden/update.py``. Read the difference before it is kept."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent)]

from support import command_reports, golden, screens  # noqa: E402


def main() -> None:
    """The reports of the commands on each fixture and of `validate` on those of each rule, and the screens of each
    command; none is left over."""
    command_reports.DATA.mkdir(exist_ok=True)
    for stale in command_reports.DATA.glob("*.jsonl"):
        stale.unlink()
    for path in golden.files():
        with tempfile.TemporaryDirectory() as scratch:
            lines = command_reports.lines(path, Path(scratch))
            command_reports.kept(path).write_text("".join(f"{line}\n" for line in lines))
    write_rules()
    write_screens()


def write_rules() -> None:
    """A file a rule: ``python tests/golden/update.py rules`` writes only these."""
    command_reports.OF_RULES.mkdir(exist_ok=True)
    for stale in command_reports.OF_RULES.glob("*.jsonl"):
        stale.unlink()
    for folder in sorted(golden.RULE_PAIRS.iterdir()):
        lines = command_reports.lines_of_rule(folder.name)
        command_reports.kept_of_rule(folder.name).write_text("".join(f"{line}\n" for line in lines))


def write_screens() -> None:
    """Two files a command, one for each width: ``python tests/golden/update.py screens`` writes only these."""
    screens.DATA.mkdir(exist_ok=True)
    for stale in screens.DATA.glob("*.txt"):
        stale.unlink()
    for path, text in screens.texts():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    {"rules": write_rules, "screens": write_screens}.get("".join(sys.argv[1:]), main)()
