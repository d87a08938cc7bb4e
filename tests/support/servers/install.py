"""Install the servers that the tests of object stores run against: MinIO, fake-gcs-server and Azurite.

    python tests/support/servers/install.py             all of them
    python tests/support/servers/install.py minio       one of them
    python tests/support/servers/install.py --where     the folder

Each is built by its language's own tool, go or npm, from a pinned version. That takes some minutes of processor time
once: the results are kept in BLOOM_TEST_SERVERS, or in bloom-test-servers in the user's cache folder
(XDG_CACHE_HOME, or ~/.cache). A server whose tool is missing is left out, and its tests skip. An installation that
fails is an error. Needs nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple


class Server(NamedTuple):
    """A server to install."""

    tool: str
    """The command that installs it."""
    package: str
    version: str
    program: str
    """The server, in the folder that it is installed to."""

    @property
    def folder(self) -> Path:
        """The folder of this version."""
        return cache() / f"{self.package.rpartition('/')[2]}-{self.version}"


SERVERS: Final[Mapping[str, Server]] = {
    "azurite": Server("npm", "azurite", "3.37.0", "node_modules/.bin/azurite-blob"),
    "fake-gcs-server": Server("go", "github.com/fsouza/fake-gcs-server", "v1.56.1", "fake-gcs-server"),
    "minio": Server("go", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c", "minio"),
}
"""Those that are installed faster come first."""


def cache() -> Path:
    """The folder for all of them."""
    if chosen := os.environ.get("BLOOM_TEST_SERVERS"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bloom-test-servers"


def program(name: str) -> Path | None:
    """The program of a server; None where it isn't installed."""
    server = SERVERS[name]
    path = server.folder / server.program
    return path if path.exists() else None


def install(name: str) -> bool:
    """Install a server unless it is there; returns whether it is. Raises CalledProcessError."""
    server = SERVERS[name]
    if program(name) is not None:
        return True
    tool = shutil.which(server.tool)
    if tool is None:
        print(f"{name}: left out, as there is no {server.tool}", flush=True)
        return False
    print(f"{name}: installing {server.version}", flush=True)
    # It gets its name when it is whole: what is ended midway leaves a folder that nobody takes for the server.
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}-") as folder:
        wanted = f"{server.package}@{server.version}"
        options = ["--silent", "--no-audit", "--no-fund", "--prefix", folder] if server.tool == "npm" else []
        env = os.environ | {"GOBIN": folder, "CGO_ENABLED": "0"}
        subprocess.run(["nice", tool, "install", *options, wanted], check=True, env=env, cwd=folder)
        if not (Path(folder) / server.program).exists():
            raise FileNotFoundError(f"{server.tool} installed no {server.program}")
        Path(folder).chmod(0o755)
        Path(folder).rename(server.folder)
        Path(folder).mkdir()  # for its removal
    print(f"{name}: installed", flush=True)
    return True


def main(args: Sequence[str]) -> int:
    """Install the servers that are named, or all."""
    if "--where" in args:
        print(cache())
        return 0
    if unknown := set(args) - SERVERS.keys():
        print(f"no such server: {', '.join(sorted(unknown))}; there are {', '.join(SERVERS)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and with it what it has started
    cache().mkdir(parents=True, exist_ok=True)
    # One at a time: a second run waits, and then finds the servers.
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in args or SERVERS:
            try:
                install(name)
            except (subprocess.CalledProcessError, OSError) as error:
                print(f"{name}: the installation failed: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
