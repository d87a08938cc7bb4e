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

FILTERS_IN_FLIGHT_MAX_BYTES: Final = 96 << 20
"""Filters that are being built or wait to be written, in all. With the largest one built alone, folding it and the
interpreter with its libraries, a command stays under 300 MB however many filters a file gets."""

FILTERS_FOLDED_MAX_BYTES: Final = 4 << 20
"""Folded filters that are kept from when their sizes are measured to when they are written; the others are folded
once more. Small, as the largest one takes 290 MB to fold, with the interpreter and the libraries."""

SCHEMA_MAX_DEPTH: Final = 256
"""Nesting of groups in a Parquet schema; deeper than any engine's parser accepts."""

POLICY_MAX_BYTES: Final = 1 << 20
"""Largest policy file: people write them. A data file that is named by mistake is not read whole."""

ROWS_PER_BATCH: Final = 65_536
"""Rows decoded at a time: enough to amortise a call, small enough for a batch to stay in L2/L3."""

TABLE_SCHEMA_MAX_BYTES: Final = 64 << 20
"""Largest file with a table's schema. Iceberg's table metadata lists snapshots too, and reaches tens of MB."""

TABLE_SCHEMA_MAX_DEPTH: Final = 100
"""Nesting of a table's types. They are read by recursion, three calls a level, and Python stops at 1,000."""
