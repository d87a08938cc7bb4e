"""Try mutated files for as long as wanted: ``python tests/fuzz.py --minutes 10 --seed 1 [FILE...]``.

Without files, every fixture and hostile file is mutated in turn. A file that breaks the contract of `support.fuzzing`
is reported, and saved in ``--save`` with as few mutations as break it. ``--check`` tries files without mutations. The
exit code is 1 if a file broke the contract.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from support import fuzzing  # noqa: E402  a program, not a test of a package

_SHOWN = 3
"""Number of cases to report of those that break the contract in the same way; all are saved."""


def main(args: Sequence[str]) -> int:
    """Parse the arguments, try files, and report. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Try bloom on mutated files.")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files to mutate [default: all fixtures]")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long [default: 10]")
    parser.add_argument("--cases", type=int, help="how many mutated files, at most")
    parser.add_argument("--seed", default="0", help="other mutations for another seed [default: 0]")
    parser.add_argument("--save", type=Path, default=Path("fuzz-found"), help="where to keep what breaks")
    parser.add_argument("--check", action="store_true", help="try the files as they are, without mutations")
    chosen = parser.parse_args(args)
    files: list[Path] = chosen.files or fuzzing.seeds()
    if chosen.check:
        return _check(files)
    tried = found = 0
    kinds = Counter[str]()
    for case in fuzzing.fuzz(files, chosen.seed, cases=chosen.cases, minutes=chosen.minutes):
        tried += 1
        if case is None:
            continue
        found += 1
        kinds[case.broken.alike] += 1
        chosen.save.mkdir(parents=True, exist_ok=True)
        kept = chosen.save / f"{case.source.stem}-{case.seed.replace('/', '-')}{case.source.suffix}"
        kept.write_bytes(case.data)
        if kinds[case.broken.alike] <= _SHOWN:
            print(f"{case}\n    kept as {kept}", flush=True)
    print(
        f"{tried} mutated files of {len(files)}, seed {chosen.seed}: {found} break the contract, in {len(kinds)} ways"
    )
    return 1 if found else 0


def _check(files: Sequence[Path]) -> int:
    found = 0
    with fuzzing.Trier() as trier:
        for path in files:
            for turn in range(6):
                broken = trier.broken(path.read_bytes(), path.suffix, turn)
                if broken is not None:
                    found += 1
                    print(f"{path}: bloom {broken.step}\n    {broken.what}", flush=True)
                    break
    print(f"{len(files)} files: {found} break the contract")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
