"""Draws README's picture of a terminal: ``python -m tools.picture [--check] [FILE]``.

It runs bloom on a terminal of 100 columns, in a folder with a copy of a fixture, and draws the output.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "inspect.svg"
_FIXTURE: Final = ROOT / "fixtures" / "parquet" / "orders.parquet"
_WIDTH: Final = 100
"""The terminal's columns."""

_BEFORE: Final = "bloom add orders.parquet --columns id,user.email --in-place"
_SHOWN: Final = ("bloom inspect orders.parquet", "bloom probe orders.parquet --column id 42")

_SVG: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own template, without fonts from the web."""


def on_terminal(line: str, folder: str) -> str:
    """The output of a bloom command line on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, _WIDTH, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR"}}
    env |= {"TERM": "xterm", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "bloomcli", *shlex.split(line)[1:]]
    with subprocess.Popen(  # noqa: S603  the lines are the ones above
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=theirs
    ) as running:
        os.close(theirs)
        shown = bytearray()
        with contextlib.suppress(OSError):  # the command has ended
            while chunk := os.read(ours, 65536):
                shown.extend(chunk)
    os.close(ours)
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    return shown.decode().replace("\r\n", "\n")


def picture() -> str:
    """The picture, as SVG."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=_WIDTH,
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(_FIXTURE, folder)
        on_terminal(_BEFORE, folder)
        for line in _SHOWN:
            console.print(Text(f"$ {line}", style="bold"))
            console.print(Text.from_ansi(on_terminal(line, folder).rstrip()))
            console.print()
    return console.export_svg(title="bloom", code_format=_SVG, unique_id="bloom")


def main(args: Sequence[str]) -> int:
    """Write the picture, or with --check report whether it is out of date. Returns the exit code."""
    path = Path(next((a for a in args if not a.startswith("-")), PICTURE))
    text = picture()
    if "--check" in args:
        stale = not path.is_file() or path.read_text(encoding="utf-8") != text
        if stale:
            print(f"out of date: {path}; run python -m tools.picture", file=sys.stderr)
        return 1 if stale else 0
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
