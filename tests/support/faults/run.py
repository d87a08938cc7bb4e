"""``python -m support.faults.run TRACER FOLDER``: writes a line of JSON for each line
``SCENARIO MOST SEED`` of standard input.

MOST is the approximate number of faults to inject; 0: all.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import pkgutil
import sys
import time
from pathlib import Path
from typing import Any

import bloomcli.engine_filters
import bloomcli.formats
from support.faults.scenarios import SCENARIOS, Scenario
from support.faults.tracing import Tracer
from support.faults.trials import Trials, chosen


def _set(scenario: Scenario) -> dict[str, Any]:
    """Set a scenario's constants. Returns the previous values."""
    before = {}
    for name, value in scenario.constants.items():
        module, _, attribute = name.rpartition(".")
        home = importlib.import_module(module)
        before[name] = getattr(home, attribute)
        if value is ...:
            delattr(home, attribute)
        else:
            setattr(home, attribute, value)
    return before


def _warm(scenario: Scenario, folder: Path) -> None:
    """Run the command in this process, so that all children have its imports."""
    from bloomcli.cli import run

    scenario.make(folder)
    out, err = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        run([argument.format(root=folder) for argument in scenario.arguments])
        run(["inspect", str(folder / "nothing")])  # load the modules that report errors
    finally:
        for before, number in ((out, 1), (err, 2)):
            os.dup2(before, number)
            os.close(before)
        os.close(null)


def _trials(name: str, most: int, seed: int, here: Path, tracer: Tracer) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    started = time.monotonic()
    before = _set(scenario)
    warm = here / "warm" / name
    warm.mkdir(parents=True)
    _warm(scenario, warm)
    trials = Trials(scenario, here / "lake" / name, tracer)
    problems = list(trials.sound())
    faults = [] if problems else chosen(trials, most or None, seed)
    fired = 0
    for fault in faults:
        came, found = trials.trial(fault)
        fired += came
        problems += found
    for full, value in before.items():
        module, _, attribute = full.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    return {
        "scenario": name,
        "calls": len(trials.calls),
        "near": sum(map(trials.touches, trials.calls)),
        "every": sum(1 for _ in trials.faults()),
        "trials": len(faults),
        "fired": fired,
        "seconds": round(time.monotonic() - started, 2),
        "problems": [dataclasses.asdict(problem) for problem in problems],
    }


def _import_formats() -> None:
    """Import the modules of all formats and kinds of engines' filters: some would otherwise be imported in a worker
    process, and a fault would hit the import."""
    for package in (bloomcli.formats, bloomcli.engine_filters):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def main(arguments: list[str]) -> None:
    """Answer requests until standard input ends."""
    _import_formats()
    library, folder = arguments
    here = Path(folder).resolve()
    tracer = Tracer(Path(library), here / "run")
    os.chdir(here)
    for line in sys.stdin:
        name, most, seed = line.split()
        print(json.dumps(_trials(name, int(most), int(seed), here, tracer)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
