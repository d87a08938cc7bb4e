"""Readers that don't look up values by themselves: libraries with an API for lookups, and engines without support."""

from __future__ import annotations

from typing import Final

from bloomcli.rules.reader_sizes import ANY_SIZE
from bloomcli.rules.reader_types import NOT_POWER_OF_TWO, TOO_LARGE, Reader, measured, source

_NEVER: Final[frozenset[str]] = frozenset()
_AUGUST: Final = "main of August 2026"
_NOVEMBER: Final = "the releases of November 2026"
_ONLY_ON_REQUEST: Final = "filters are read only through the API, scans don't use them"


LIBRARIES: Final = (
    Reader(
        name="arrow-rs",
        title="arrow-rs",
        aliases=("parquet-rs", "arro3"),
        probes=_NEVER,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=ANY_SIZE["arrow-rs"],
    ),
    Reader(
        name="arrow",
        title="Arrow C++",
        aliases=("arrow-cpp", "pyarrow"),
        probes=_NEVER,
        known=measured("Arrow C++ 26", _ONLY_ON_REQUEST),
        refuses={
            NOT_POWER_OF_TWO: measured(
                "Arrow C++ 26",
                "BloomFilterReader: `Given length of bitset is illegal`, an exception, for 3 to 1,310,721 blocks;"
                " pyarrow has no function that reads filters, and scans don't look at them",
            ),
            TOO_LARGE: source("Arrow C++ 26", "BlockSplitBloomFilter: at most 128 MiB"),
        },
    ),
    Reader(
        name="arrow-go",
        title="Arrow Go",
        probes=_NEVER,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=ANY_SIZE["arrow-go"],
    ),
    Reader(
        name="parquet-go",
        title="parquet-go",
        aliases=("segmentio-parquet",),
        probes=_NEVER,
        known=measured(
            _NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found. It writes any number of blocks"
        ),
        any_size=ANY_SIZE["parquet-go"],
    ),
    Reader(
        name="hyparquet",
        title="hyparquet",
        probes=_NEVER,
        known=measured(_NOVEMBER, f"{_ONLY_ON_REQUEST}; every value of 360 filters is found"),
        any_size=ANY_SIZE["hyparquet"],
    ),
    Reader(
        name="velox",
        title="Velox",
        aliases=("gluten",),
        probes=_NEVER,
        known=source(_AUGUST, "its Parquet reader doesn't support filters"),
        refuses={
            NOT_POWER_OF_TWO: source(
                "newer branches",
                "BlockSplitBloomFilter::init, which ParquetData::rowGroupBloomFilterMightMatch calls in branches that"
                " look filters up: an exception; the row group is read as if it had no filter",
            ),
        },
    ),
    Reader(
        name="polars",
        title="Polars",
        probes=_NEVER,
        known=measured(
            "Polars 2.1",
            "polars-parquet can decode filters, but polars-io and polars-stream don't use it",
        ),
    ),
)
