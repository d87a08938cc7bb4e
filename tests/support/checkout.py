"""A copy of this repository's current files, for tools that clone it, build in it or write to it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).parents[2]

GENERATED: Final = "bloomcli/kernels/compiled.c"
"""The C source that Cython generates for the kernels. Git doesn't track it."""
ENV: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "bloom",
    "GIT_AUTHOR_EMAIL": "bloom@example.org",
    "GIT_COMMITTER_NAME": "bloom",
    "GIT_COMMITTER_EMAIL": "bloom@example.org",
}
"""Environment for git, without this machine's settings and those of a hook that runs the tests."""

_COMPILER: Final = """#!/bin/sh
set -e
source= object=
for argument do
  shift
  case "$argument" in
    *.c) source=$argument ;;
    *.o) object=$argument ;;
  esac
  [ "$argument" = -O3 ] || set -- "$@" "$argument"
done
[ -n "$source" ] || exec cc "$@" -O0
kept="$0-$(sha256sum < "$source" | cut -c 1-64).o"
if [ -e "$kept" ]; then
  cp "$kept" "$object"
else
  cc "$@" -O0
  cp "$object" "$kept"
fi
"""


def environment(**more: str) -> dict[str, str]:
    """This process's environment without the variables of a git hook, with ENV and `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | ENV | more


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder. Returns its output."""
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]  # for files of any owner
    return subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout


def copy(target: Path) -> Path:
    """Copy the files that git tracks or would add, committed or not, to a new folder."""
    for name in filter(None, dict.fromkeys(_names())):
        source = ROOT / name
        if source.is_file():  # a deleted file is listed until its deletion is committed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    if generated_is_current():
        shutil.copy(ROOT / GENERATED, target / GENERATED)
        # pip builds with a Cython that it installs now: the kernels depend on its files, too, and would be older
        later = time.time() + 3600
        os.utime(target / GENERATED, (later, later))
    return target


def generated_is_current() -> bool:
    """Whether the C source is up to date. To generate it takes Cython 4 seconds of processor time."""
    source = ROOT / GENERATED
    if not source.exists():
        return False
    made = source.stat().st_mtime
    return all(path.stat().st_mtime < made for path in source.parent.glob("*.p[yx][xi]"))


def _names() -> list[str]:
    """Relative paths. Outside a git checkout (an unpacked archive), all files except those that work creates."""
    if (ROOT / ".git").exists():
        return git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    left = [".venv", "build", "dist", ".hypothesis", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"]
    made = (".so", ".pyc", "compiled.c", ".coverage")
    found = [p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file() and not p.name.endswith(made)]
    return [str(p) for p in found if not any(part in left or part.endswith(".egg-info") for part in p.parts)]


def quick_compiler(folders: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which setup.py compiles without optimizing, which takes a fifth of the time, each source once
    in a run of pytest, and pip doesn't compile the modules of all packages that it installs.

    For tests of the built package, not of compiler options. A wrapper, because the flags of setup.py come last.
    """
    script = folders.getbasetemp() / "quick compiler" / "cc"
    if not script.exists():
        script.parent.mkdir()
        script.write_text(_COMPILER)
        script.chmod(0o755)
    return {"CC": shlex.quote(str(script)), "PIP_COMPILE": "0"}


def commit(folder: Path) -> str:
    """Make a folder a git repository and commit all of its files. Returns the commit's id."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "-q", "--no-verify", "--no-gpg-sign", "-m", "all")
    return git(folder, "rev-parse", "HEAD").strip()
