"""Measure which lines of `bloomcli` the tests of a process run: pytest's plugin ``-p tests.support.line_coverage``.

coverage.py traces every line that Python 3.11 runs, which takes 1.6 to 3 times as long as the tests alone; with
SlipCover's probes in the bytecode it is 1.2 times. The lines are written to a data file of coverage.py, named by
``COVERAGE_FILE``, for `coverage combine` and `coverage report`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import slipcover
from coverage import CoverageData

ROOT: Final = Path(__file__).parent.parent.parent
PROBES_STAY: Final = 1 << 30
"""Calls of a probe before it is removed. To remove it takes longer than the calls: it searches all functions."""
LINES: Final = slipcover.Slipcover(d_miss_threshold=PROBES_STAY, exclude_lines=[])
# coverage.py knows the lines that can be run. To list them here takes as long as to put the probes in.
slipcover.Slipcover.lines_from_code = staticmethod(lambda _: iter(()))
IMPORTS: Final = slipcover.ImportManager(LINES, slipcover.FileMatcher(sources=[ROOT / "bloomcli"]))
"""Puts probes into the modules that are imported from now on: pytest loads this plugin before the tests."""
IMPORTS.__enter__()


def pytest_unconfigure() -> None:
    """Write the lines that were run."""
    IMPORTS.__exit__()
    data = CoverageData(basename=os.environ["COVERAGE_FILE"])
    reached = {path: sorted(lines) for path, lines in LINES.newly_seen.items()}
    data.add_lines({str(path): [] for path in (ROOT / "bloomcli").rglob("*.py")} | reached)
    data.write()
