"""Checks that a tag can be released: ``python tools/release.py v0.2.0``.

The tag has to match the package's version, and CHANGELOG.md needs a dated section for it that isn't empty.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(tag: str, version_source: str, changelog: str) -> list[str]:
    """The reasons why the tag can't be released; empty if it can."""
    found = []
    version = re.search(r'^__version__ = "([^"]+)"$', version_source, re.MULTILINE)
    if version is None or tag != f"v{version.group(1)}":
        found.append(f"the tag is {tag}, the package's version {version.group(1) if version else 'not found'}")
    heading = re.escape(tag.removeprefix("v"))
    section = re.search(
        rf"^## \[{heading}\] - \d{{4}}-\d{{2}}-\d{{2}}$(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None:
        found.append(f"CHANGELOG.md has no section '## [{tag.removeprefix('v')}] - YYYY-MM-DD'")
    elif not re.search(r"^- ", section.group(1), re.MULTILINE):
        found.append(f"CHANGELOG.md's section {tag.removeprefix('v')} is empty")
    return found


def main(args: Sequence[str]) -> int:
    """Print the problems of a release. Returns 1 if there are any."""
    if len(args) != 1:
        print("usage: python tools/release.py TAG", file=sys.stderr)
        return 2
    version = (ROOT / "bloomcli" / "version.py").read_text()
    found = problems(args[0], version, (ROOT / "CHANGELOG.md").read_text())
    for problem in found:
        print(f"{args[0]} can't be released: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
