"""Translates paths of Hadoop and Databricks to paths that Python can open on every machine of a cluster.

file:/data/x, file:///data/x    /data/x            must be mounted on every machine
dbfs:/x, dbfs:///x              /dbfs/x            if that is mounted
s3a://b/x, s3n://b/x            s3://b/x           Hadoop's names of S3
hdfs:/x                         hdfs:///x          the default name node
gs:, az:, abfss:, https:        unchanged          executors send the requests, with their own credentials
anything else                   unchanged          a path of a mounted file system
"""

from __future__ import annotations

import os
import re
from typing import Final

from bloomcli.errors import UnsupportedError, UsageError
from bloomcli.storage.local.paths import local_path
from bloomcli.storage.names import is_uri
from bloomcli.storage.os_errors import is_directory, path_exists
from bloomcli.storage.registry import store_of

_READABLE: Final = ("abfs", "abfss", "az", "gcs", "gs", "hdfs", "http", "https", "s3", "viewfs")
"""Schemes for which `storage` has a store."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)")
DBFS: Final = "/dbfs"
"""The directory at which Databricks mounts ``dbfs:/`` on every machine."""


def portable(path: str, *, changing: bool = False) -> str:
    """Return the path in the form that `storage` opens.

    Args:
        path: as a user names it.
        changing: the path will be written to, which not every store supports.

    Raises:
        UnsupportedError: no store can open it.
    """
    path = local_path(path)
    match = _SCHEME.match(path)
    if match is None or path_exists(path):
        return path
    scheme, rest = match[1].lower(), path[match.end() :]
    if scheme == "file":
        raise UnsupportedError("a file: URI of another machine", path=path, hint="mount it, and name the mount")
    if scheme == "dbfs":
        if not is_directory(DBFS):
            raise UnsupportedError(
                f"{DBFS} isn't mounted here, so files in dbfs:/ can't be opened", path=path, hint="name a mount"
            )
        return os.path.join(DBFS, rest.lstrip("/"))  # noqa: PTH118  text in, text out
    if scheme in {"s3a", "s3n"}:
        scheme = "s3"
    if scheme not in _READABLE:
        raise UnsupportedError(
            f"nothing here can read {scheme}: URIs", path=path, hint="mount it, and name the mount"
        )
    # hdfs:/x means the default name node; every other scheme needs a bucket
    uri = f"{scheme}:///{rest}" if match[2] == "/" else f"{scheme}://{rest}"
    if changing:
        try:
            store_of(uri).check_changes(uri)
        except UsageError as error:
            raise UnsupportedError(
                error.reason, path=path, hint="mount it, and name the mount; or write changed copies: -o DIRECTORY"
            ) from None
    return uri


def absolute(path: str) -> str:
    """Return a local path as absolute, because executors have their own working directories; a URI unchanged."""
    return path if is_uri(path) else os.path.abspath(path)  # noqa: PTH100  text in, text out


def located(path: str) -> str:
    """Return an absolute path, or a URI, in the form that `storage` opens. Raises: as `portable`."""
    return absolute(portable(path))
