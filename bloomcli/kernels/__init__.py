"""The compiled loops: hashing, filter bits, page and stream decoding, Thrift compact walks, checksums."""

from bloomcli.kernels.compiled import *  # noqa: F403  its stub lists the names
