"""Measure the table of wrong structures again and write it: ``python tests/interop/update_wrong_structures.py``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent.parent)]

from support import skipping_engines, wrong_structures  # noqa: E402
from support.engines import start_spark  # noqa: E402


def main() -> None:
    """Ask every engine. It takes about a minute."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        session = start_spark(folder / "spark", short=True)
        columns = {"Spark": wrong_structures.cells(skipping_engines.Spark(session), folder)}
        session.stop()
        for engine in skipping_engines.IN_PROCESS:
            with skipping_engines.running(engine) as ask:
                columns[engine] = wrong_structures.cells(ask, folder)
    wrong_structures.PAGE_OF_TABLE.write_text(wrong_structures.text(columns))


if __name__ == "__main__":
    main()
