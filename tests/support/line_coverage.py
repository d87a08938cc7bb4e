"""Measure which lines of `bloomcli` the tests of a process run: pytest's plugin ``-p tests.support.line_coverage``.

coverage.py traces every line that Python 3.11 runs, which takes 1.6 to 3 times as long as the tests alone; with
SlipCover's probes in the bytecode it is 1.2 times. The lines are written as a data file of coverage.py, whose name is
``COVERAGE_FILE``, so that `coverage combine` and `coverage report` do the rest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import slipcover
from coverage import CoverageData

ROOT: Final = Path(__file__).parent.parent.parent
NEVER: Final = 1 << 60
"""Probes stay: to search all functions for those to take out takes longer than the probes do."""
LINES: Final = slipcover.Slipcover(d_miss_threshold=NEVER, exclude_lines=[])
IMPORTS: Final = slipcover.ImportManager(LINES, slipcover.FileMatcher(sources=[ROOT / "bloomcli"]))
"""Puts probes into the modules that are imported from now on: pytest loads this plugin before the tests."""
IMPORTS.__enter__()


def pytest_unconfigure() -> None:
    """Write the lines that were run."""
    IMPORTS.__exit__()
    data = CoverageData(basename=os.environ["COVERAGE_FILE"])
    files = LINES.get_coverage()["files"]
    data.add_lines({str(ROOT / name): found["executed_lines"] for name, found in files.items()})
    data.write()
