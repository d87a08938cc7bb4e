"""The compiled functions: hashing, filters, decoding of pages and streams, walks of Thrift structures, checksums."""

from bloomcli.kernels.compiled import *  # noqa: F403  its stub lists the names
