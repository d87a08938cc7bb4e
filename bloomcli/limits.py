"""Named ceilings, each with its reason. No number from a file is trusted beyond them."""

from __future__ import annotations

from typing import Final

FOOTER_MAX_BYTES: Final = 512 << 20
"""Largest footer that is read. parquet-java and Arrow cap Thrift structures at 100 MB by default;
footers of very wide tables reach tens of MB; half a GiB leaves room and still bounds memory."""

FILTER_MIN_BYTES: Final = 32
"""One split-block filter block: 8 words of 32 bits."""

FILTER_MAX_BYTES: Final = 128 << 20
"""Largest split-block bitset: arrow-rs, Arrow C++ and parquet-java all stop at 128 MiB."""

FILTER_HEADER_MAX_BYTES: Final = 256
"""A BloomFilterHeader takes 12 to 20 bytes; unknown future fields are allowed for, a runaway is not."""

THRIFT_MAX_DEPTH: Final = 32
"""Nesting of structs and lists in Thrift metadata. The format's own structures nest 7 deep."""

SCHEMA_MAX_DEPTH: Final = 256
"""Nesting of groups in a Parquet schema; deeper than any engine's parser accepts."""

ROWS_PER_BATCH: Final = 65_536
"""Rows decoded at a time: enough to amortise a call, small enough for a batch to stay in L2/L3."""

PAGE_MAX_BYTES: Final = 1 << 30
"""Largest uncompressed page. Writers aim at 1 MiB; single values of hundreds of MB exist."""

PAGE_HEADER_MAX_BYTES: Final = 16 << 20
"""Page headers may carry whole min and max values; Arrow C++ stops at 16 MiB too."""
