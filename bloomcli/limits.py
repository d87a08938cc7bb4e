"""Upper limits, each with its reason. A number from a file beyond its limit is an error."""

from __future__ import annotations

from typing import Final

FOOTER_MAX_BYTES: Final = 512 << 20
"""The largest footer. parquet-java and Arrow limit Thrift structures to 100 MB by default;
footers of very wide tables reach tens of MB; half a GiB leaves room and still bounds memory."""

FILTER_MIN_BYTES: Final = 32
"""One split-block filter block: 8 words of 32 bits."""

FILTER_MAX_BYTES: Final = 128 << 20
"""Largest split-block bitset: arrow-rs, Arrow C++ and parquet-java all stop at 128 MiB."""

FILTERS_IN_FLIGHT_MAX_BYTES: Final = 96 << 20
"""The total size of the filters that are under construction or wait to be written. The largest filter is built
alone; with its folding, the interpreter and the libraries, a command stays under 300 MB for any number of filters."""

FILTERS_FOLDED_MAX_BYTES: Final = 4 << 20
"""The total size of the folded filters that are kept between measuring and writing; other filters are folded twice.
It is small because folding the largest filter takes 290 MB, with the interpreter and the libraries."""

SCHEMA_MAX_DEPTH: Final = 256
"""The deepest nesting of groups in a Parquet schema. No engine's parser accepts this many levels."""

POLICY_MAX_BYTES: Final = 1 << 20
"""The largest policy file. People write policy files; a data file passed by mistake isn't read whole."""

POLICY_MAX_DEPTH: Final = 32
"""The deepest nesting of arrays and tables in a policy file, and the largest number of parts of a dotted key. A
policy needs 7 levels."""

PROBED_DICTIONARY_MAX_BYTES: Final = 4 << 20
"""The largest dictionary that `probe` reads, compressed and uncompressed. Writers stop at 1 to 2 MiB."""

PROBED_DICTIONARIES_MAX_BYTES: Final = 64 << 20
"""The total size of the dictionaries of a file that `probe` reads: a second of reading and hashing."""

ROWS_PER_BATCH: Final = 65_536
"""Rows decoded per batch: enough to amortise a call, few enough for a batch to stay in the L2 or L3 cache."""

TABLE_SCHEMA_MAX_BYTES: Final = 64 << 20
"""The largest table schema file. Iceberg's table metadata also lists snapshots, and reaches tens of MB."""

TABLE_SCHEMA_MAX_DEPTH: Final = 100
"""The deepest nesting of a table's types. The parser recurses, three calls per level, and Python stops at 1,000
calls."""

TRIAL_ROWS_COMPARED: Final = 10_000
"""Up to this number of rows of a value, `trial` compares all columns of the rows that a reader returns; their digest
takes less than a second. For more frequent values, the rows are counted."""

TRIAL_DOWNLOAD_MAX_BYTES: Final = 1 << 30
"""The largest object that `trial` copies from a store to this machine: some seconds at 1 Gbit/s."""

INDEX_FOOTER_MAX_BYTES: Final = 64 << 20
"""The largest footer of an index. It has some hundred bytes for each column and type."""

INDEX_TABLE_MAX_BYTES: Final = 256 << 20
"""The largest table of an index, uncompressed: a million files with long paths, or ten million row groups."""

INDEX_SLOTS_MAX: Final = 1 << 27
"""The maximum number of row groups of a column in an index. A row of bits then has 16 MiB, and a lookup reads 8
rows."""

INDEX_BLOCKS_MAX: Final = FILTER_MAX_BYTES // FILTER_MIN_BYTES
"""The maximum number of blocks of the common filter size in an index: that of the largest filter."""

INDEX_END_MAX_BYTES: Final = 4 << 20
"""The largest part of a file's end that an index keeps, uncompressed: a footer of a thousand columns and ten row
groups."""
