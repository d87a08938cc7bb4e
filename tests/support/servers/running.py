"""Starts servers on loopback when a test first needs them, one of each kind per pytest process.

A server ends with the process that started it, even if that is killed. Its data are in a temporary folder, and its
credentials are generated for the run.
"""

from __future__ import annotations

import atexit
import base64
import functools
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.servers import install

_SECONDS: Final = 300
"""Seconds within which a server has to answer after its start, on a busy machine, too."""
_ATTEMPTS: Final = 3
"""Attempts to start a server: another process may take the free port first."""

# The server's parent: it waits for the server, and ends it when the other end of its input is closed, which the
# kernel does for a process that was killed.
_KEEPER: Final = """
import os, subprocess, sys, threading
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
threading.Thread(target=lambda: (os.read(0, 1), server.kill()), daemon=True).start()
os._exit(server.wait() & 0xFF)
"""


KMS_KEY: Final = "key-of-the-lake"
"""The name of MinIO's key for objects that are encrypted with a KMS key (SSE-KMS)."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    port: int
    folder: Path
    """The folder of its data."""
    user: str
    """The access key, or the account."""
    secret: str
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://127.0.0.1:{self.port}"


def installed(name: str) -> bool:
    """Whether a server is installed. Starts nothing."""
    return install.program(name) is not None


@functools.cache
def minio() -> Server:
    """MinIO, which speaks S3."""
    user, secret = secrets.token_hex(8), secrets.token_hex(16)

    def command(port: int, folder: Path) -> Sequence[str]:
        return [_program("minio"), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder)]

    env = {
        "MINIO_ROOT_USER": user,
        "MINIO_ROOT_PASSWORD": secret,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
        "MINIO_CI_CD": "1",  # the folder may be on the disk of the system
        "MINIO_API_REQUESTS_MAX": "1000",
        "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{base64.b64encode(secrets.token_bytes(32)).decode()}",
    }
    return _started("minio", command, env, "/minio/health/cluster", user, secret)


@functools.cache
def minio_with_tls() -> Server:
    """MinIO with a self-signed certificate, `certs/public.crt` in its folder: customer keys require TLS."""
    user, secret = secrets.token_hex(8), secrets.token_hex(16)

    def command(port: int, folder: Path) -> Sequence[str]:
        (folder / "certs").mkdir(exist_ok=True)
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        files = ["-keyout", f"{folder}/certs/private.key", "-out", f"{folder}/certs/public.crt"]
        names = ["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run([*new, *files, *names], check=True, capture_output=True)
        where = ["--address", f"127.0.0.1:{port}", "--certs-dir", f"{folder}/certs", f"{folder}/data"]
        return [_program("minio"), "server", "--quiet", *where]

    env = {"MINIO_ROOT_USER": user, "MINIO_ROOT_PASSWORD": secret, "MINIO_BROWSER": "off", "MINIO_CI_CD": "1"}
    return _started("minio", command, env, "/minio/health/cluster", user, secret, scheme="https")


@functools.cache
def moto() -> Server:
    """moto's server, which speaks S3 and ignores preconditions."""

    def command(port: int, folder: Path) -> Sequence[str]:
        del folder
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]

    return _started("moto", command, {}, "/moto-api/", "user", "secret")


@functools.cache
def azurite() -> Server:
    """Azurite, the emulator of Azure's blobs. Its data are in memory, which takes less time than on disk."""
    user, secret = "lake", base64.b64encode(secrets.token_bytes(64)).decode()

    def command(port: int, folder: Path) -> Sequence[str]:
        where = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence"]
        return [_program("azurite"), *where, "--skipApiVersionCheck", "--silent", "--disableTelemetry"]

    return _started("azurite", command, {"AZURITE_ACCOUNTS": f"{user}:{secret}"}, "/", user, secret)


@functools.cache
def fake_gcs() -> Server:
    """fake-gcs-server, the emulator of Google Cloud Storage. It ignores preconditions: `gcs.py` enforces them."""

    def command(port: int, folder: Path) -> Sequence[str]:
        where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
        return [_program("fake-gcs-server"), *where, "-log-level", "error", "-filesystem-root", str(folder)]

    return _started("fake-gcs-server", command, {}, "/storage/v1/b", "", "")


def _program(name: str) -> str:
    found = install.program(name)
    if found is None:
        raise FileNotFoundError(f"{name} isn't installed: python tests/support/servers/install.py {name}")
    return str(found)


def _started(
    name: str,
    command: Callable[[int, Path], Sequence[str]],
    env: Mapping[str, str],
    path: str,
    user: str,
    secret: str,
    scheme: str = "http",
) -> Server:
    folder = Path(tempfile.mkdtemp(prefix=f"bloom-{name}-"))
    log = folder.with_name(f"{folder.name}.log")
    atexit.register(_clean, folder, log, os.getpid())
    for _ in range(_ATTEMPTS):
        port = free_port()
        with log.open("wb") as output:
            keeper = subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", _KEEPER, *command(port, folder)],
                env=os.environ | env,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C at the terminal stops the tests, not the server
            )
        atexit.register(_end, keeper, os.getpid())
        if _answers(keeper, f"{scheme}://127.0.0.1:{port}{path}"):
            return Server(name, port, folder, user, secret, scheme)
        _end(keeper)
    raise RuntimeError(f"{name} doesn't start: {log.read_text(errors='replace')[-3000:]}")


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _answers(keeper: subprocess.Popen[bytes], url: str) -> bool:
    """Whether the server sends any answer in time."""
    unverified = ssl._create_unverified_context()
    https = urllib.request.HTTPSHandler(context=unverified)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and keeper.poll() is None:
        try:
            opener.open(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 503:  # the server is starting
                return keeper.poll() is None
        except OSError:
            pass
        else:
            return keeper.poll() is None
        time.sleep(0.05)
    return False


def _end(keeper: subprocess.Popen[bytes], of: int = 0) -> None:
    if of not in {0, os.getpid()}:
        return  # this process was forked
    assert keeper.stdin is not None
    with suppress(OSError):
        keeper.stdin.close()
    try:
        keeper.wait(100)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


def _clean(folder: Path, log: Path, of: int) -> None:
    if of != os.getpid():
        return
    shutil.rmtree(folder, ignore_errors=True)
    log.unlink(missing_ok=True)
