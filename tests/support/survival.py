"""Damages files, and runs commands on them: they may raise only BloomErrors, and leave no file in the folder."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bloomcli.errors import BloomError
from bloomcli.model.validate import ValidateReport

Command = Callable[[Path, Path], object]
"""A command on the file at the first path; it writes the second one, or nothing."""


def flipped(random_: random.Random, data: bytes, start: int, end: int, interesting: Sequence[int]) -> bytes:
    """Change one to three bytes between `start` and `end`: one bit, or to an interesting byte, or to any."""
    changed = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 3))):
        at = random_.randrange(start, end)
        one_bit = changed[at] ^ 1 << random_.randrange(8)
        changed[at] = random_.choice((one_bit, random_.choice(interesting), random_.randrange(256)))
    return bytes(changed)


def survives(folder: Path, cases: Iterable[bytes], commands: Callable[[int], Sequence[Command]]) -> tuple[int, int]:
    """Run commands on files with these bytes.

    Args:
        folder: an empty folder.
        cases: each file's bytes.
        commands: the commands for a case, by its number.

    Returns:
        The numbers of cases, and of errors and failed validations.
    """
    path, out = folder / "f", folder / "out"
    turns = refused = 0
    for turn, data in enumerate(cases):
        path.write_bytes(data)
        for command in commands(turn):
            try:
                report = command(path, out)
            except BloomError as error:
                refused += 1
                assert error.path == str(path)
                assert str(error)
                assert not out.exists()
            else:
                out.unlink(missing_ok=True)
                refused += isinstance(report, ValidateReport) and not report.ok
        assert list(folder.iterdir()) == [path]
        turns += 1
    return turns, refused
