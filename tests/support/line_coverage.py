"""Measure which lines of `bloomcli` the tests of a process run: pytest's plugin ``-p tests.support.line_coverage``.

coverage.py traces every line that Python 3.11 runs, which takes 1.6 to 3 times as long as the tests alone. SlipCover
has Python 3.12 and later say each line once, and puts a call into the bytecode of Python 3.11 before each line, which
takes 1.16 times as long; here a call also takes itself out, by a jump over itself, and it is 1.12 times. The lines
are written as a data file of coverage.py, whose name is ``COVERAGE_FILE``, so that `coverage combine` and `coverage
report` do the rest.
"""

from __future__ import annotations

import ctypes
import dis
import os
import sys
from pathlib import Path
from types import CodeType
from typing import Final

import slipcover
from coverage import CoverageData
from slipcover.bytecode import Editor
from slipcover.slipcover import findlinestarts

ROOT: Final = Path(__file__).parent.parent.parent
JUMP: Final = dis.opmap["JUMP_FORWARD"]
NOTHING: Final = dis.opmap["NOP"]


class Reached:
    """What the bytecode calls before a line: notes the line, and has the bytecode jump over the call from now on.

    It keeps the code, whose memory it writes to: a copy of the code calls it too, and may outlive the code.
    """

    __slots__ = ("code", "line", "lines", "offset")

    def __init__(self, lines: set[int], line: int) -> None:
        self.lines, self.line = lines, line

    def is_in(self, code: CodeType, offset: int) -> None:
        """Say at which byte of the code the call begins: with an instruction that does nothing, but whose argument is
        the length of the call."""
        self.code, self.offset = code, offset
        assert code.co_code[offset] == NOTHING

    def __call__(self) -> None:
        self.lines.add(self.line)
        ctypes.memset(bytecode(self.code) + self.offset, JUMP, 1)


def bytecode(code: CodeType) -> int:
    """The address of the bytecode that Python 3.11 runs: the last field of the code, whose length varies."""
    return id(code) + CodeType.__basicsize__


class Lines(slipcover.Slipcover):
    """Puts a call before each line, for Python 3.11."""

    def instrument(self, co: CodeType, parent: CodeType | None = None) -> CodeType:
        """The code with a call before each line, and so the codes of the functions in it."""
        editor = Editor(co)
        for number, constant in enumerate(co.co_consts):
            if isinstance(constant, CodeType):
                editor.set_const(number, self.instrument(constant, co))
        calls, added = [], 0
        for offset, line in findlinestarts(co):
            while offset >= 2 and co.co_code[offset - 2] == dis.EXTENDED_ARG:
                offset += 2
            calls.append(Reached(self.all_seen[co.co_filename], line))
            added += editor.insert_function_call(offset + added, editor.add_const(calls[-1]), ())
        code = editor.finish()
        assert ctypes.string_at(bytecode(code), len(code.co_code)) == code.co_code, "the bytecode lies elsewhere"
        for call, offset in zip(calls, editor.get_inserts(), strict=True):
            call.is_in(code, offset)
        if parent is None:
            self.code_lines[co.co_filename].update(self.lines_from_code(co))
        return code


LINES: Final = (Lines if sys.version_info < (3, 12) else slipcover.Slipcover)(exclude_lines=[])
IMPORTS: Final = slipcover.ImportManager(LINES, slipcover.FileMatcher(sources=[ROOT / "bloomcli"]))
"""Measures the modules that are imported from now on: pytest loads this plugin before the tests."""
IMPORTS.__enter__()


def pytest_unconfigure() -> None:
    """Write the lines that were run."""
    IMPORTS.__exit__()
    data = CoverageData(basename=os.environ["COVERAGE_FILE"])
    files = LINES.get_coverage()["files"]
    reached = {str(ROOT / name): found["executed_lines"] for name, found in files.items()}
    data.add_lines({str(path): [] for path in (ROOT / "bloomcli").rglob("*.py")} | reached)
    data.write()
