"""Write the golden files again: ``python tests/golden/update.py``. Read the difference before it is kept."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent)]

from support import golden  # noqa: E402


def main() -> None:
    """One golden file a fixture, and none that is left over."""
    golden.DATA.mkdir(exist_ok=True)
    for stale in golden.DATA.glob("*.json"):
        stale.unlink()
    for path in golden.files():
        golden.golden(path).write_text(golden.text(path))


if __name__ == "__main__":
    main()
