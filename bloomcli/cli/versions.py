"""`bloom --version --verbose`: the versions for a bug report, without importing the packages."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from bloomcli.version import __version__

REQUIRED: Final = (
    "click",
    "cramjam",
    "mmh3",
    "numpy",
    "pathspec",
    "protobuf",
    "pyarrow",
    "rich",
    "thriftpy2",
    "zstandard",
)
"""The packages that bloom needs. A checkout has no metadata that names them."""

OPTIONAL: Final = (
    "azure-identity",
    "azure-storage-blob",
    "boto3",
    "chdb",
    "cryptography",
    "datafusion",
    "duckdb",
    "fastavro",
    "google-cloud-storage",
    "jinja2",
    "markdown-it-py",
    "paimon-mosaic",
    "pillow",
    "polars",
    "pyiceberg",
    "pyspark",
    "requests",
    "sqlglot",
    "urllib3",
)
"""The packages of the extras, apart from those for tests."""


def versions() -> Iterator[str]:
    """Yield one line each for bloom, Python, the platform, and every package that bloom needs or can use."""
    yield f"bloom {__version__}"
    yield f"python {platform.python_version()} ({sys.executable})"
    yield f"platform {platform.platform()}"
    of_formats = (point.dist.name for point in metadata.entry_points(group="bloomcli.formats") if point.dist)
    for name in dict.fromkeys((*REQUIRED, *OPTIONAL, *of_formats)):
        yield f"{name} {_version(name)}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
