"""Ceilings for numbers that ORC files claim, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

FILTER_STREAM_MAX_BYTES: Final = 128 << 20
"""Largest ORC filter stream, uncompressed: the filters of 110 million rows at 1 %. orc-core ends a stripe at 64 MiB.
Each of a few bytes may claim as much, and its filters are held twice while they are checked."""

METADATA_FREE_BYTES: Final = 32 << 20
"""ORC footers and indexes that are read however well they are compressed."""

METADATA_RATIO: Final = 64
"""How many times as large as on disk larger ones may be: messages take up to 8 times their bytes once they are read.
zlib and zstd press footers of real, wide tables to a twentieth."""

MESSAGES_MAX: Final = 1 << 21
"""Most columns, stripes and statistics of one ORC message: an empty one takes 2 bytes, and 80 once it is read."""

BLOCK_MAX_BYTES: Final = 1 << 23
"""Largest ORC compression chunk: the length in its header has 23 bits."""

TYPES_MAX: Final = 1 << 20
"""Most types (columns at any level) of an ORC file."""

DECIMAL_DIGITS: Final = 38
"""Most digits of an ORC decimal."""

CHAR_MAX: Final = 1 << 20
"""Longest ORC char that values are padded to: Hive stops at 255, and the file may say 4 billion."""

ROW_GROUPS_MAX: Final = 1 << 22
"""Most row groups of an ORC file: 42 billion rows at the usual stride. Each is a row of a probe's report."""

VALUES_MAX: Final = 1 << 27
"""Most values of a column in an ORC stripe, those of its lists counted one by one: 1 to 5 seconds of work. orc-core
ends a stripe at 64 MiB; a run of 512 equal values takes 4 bytes in the file, and compresses well."""

DATA_STREAM_MAX_BYTES: Final = 4 << 30
"""Largest ORC data stream, uncompressed. It is read in chunks, so that this bounds time, not memory: zlib takes some
seconds for as much, and packs it into 4 MB."""

DICTIONARY_MAX: Final = 1 << 24
"""Most entries of an ORC dictionary: their hashes take 128 MiB. A dictionary is of one stripe."""

STRIDE_TRUSTED: Final = 1 << 16
"""Row index strides by which ORC filters are sized though there are fewer rows, as orc-core does: 10,000 is usual.
A larger one sizes by the rows of the largest row group: a stride of 2^30 makes 128 MiB of it whatever they are."""
