"""Ceilings for numbers that ORC files claim, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

FILTER_STREAM_MAX_BYTES: Final = 128 << 20
"""The largest ORC filter stream, uncompressed: the filters of 110 million rows at 1 %. orc-core ends a stripe at
64 MiB. A stream of a few bytes may claim this size, and its filters are held in memory twice during a check."""

METADATA_FREE_BYTES: Final = 32 << 20
"""Uncompressed size up to which ORC footers and indexes are read at any compression ratio."""

METADATA_RATIO: Final = 64
"""The compression ratio of ORC footers and indexes larger than `ORC_METADATA_FREE_BYTES`: a parsed message takes up
to 8 times its bytes. zlib and zstd compress the footers of real, wide tables to a twentieth."""

MESSAGES_MAX: Final = 1 << 21
"""The number of columns, stripes and statistics in one ORC message: an empty one takes 2 bytes, and 80 when
parsed."""

BLOCK_MAX_BYTES: Final = 1 << 23
"""The largest ORC compression chunk: its header has 23 bits for the length."""

TYPES_MAX: Final = 1 << 20
"""The number of types (columns at any level) of an ORC file."""

DECIMAL_DIGITS: Final = 38
"""The number of digits of an ORC decimal."""

CHAR_MAX: Final = 1 << 20
"""The longest ORC char type, to which values are padded: Hive allows 255, and a file may claim 4 billion."""

ROW_GROUPS_MAX: Final = 1 << 22
"""The number of row groups of an ORC file: 42 billion rows at the usual stride. Each is a row in the report of
`bloom probe`."""

VALUES_MAX: Final = 1 << 27
"""Values of a column in an ORC stripe, list elements included: 1 to 5 seconds of work. orc-core ends a stripe at
64 MiB; a run of 512 equal values takes 4 bytes in the file, and compresses well."""

DATA_STREAM_MAX_BYTES: Final = 4 << 30
"""The largest ORC data stream, uncompressed. It is read in chunks, so the limit bounds time, not memory: zlib takes a
few seconds for 4 GiB and compresses it to 4 MB at best."""

DICTIONARY_MAX: Final = 1 << 24
"""The number of entries of an ORC dictionary: their hashes take 128 MiB. Each stripe has its own dictionary."""

STRIDE_TRUSTED: Final = 1 << 16
"""The largest row index stride that sizes ORC filters even for row groups with fewer rows, as in orc-core; 10,000 is
usual. Above it, the rows of the largest row group size the filters: with a stride of 2^30, a filter would take
128 MiB whatever its rows."""

RATE_MARGIN: Final = 0.9
"""An ORC filter that has to meet a limit is made for this part of it: orc-core's size for 1 % measures 1.02 %."""

DUMP_MAX_PARTS: Final = 3_000_000
"""The number of fields of one message that `bloom inspect --footer` writes as JSON: 1,000 stripes of 100 columns have
some 500,000 in their statistics."""

ENTRIES_LISTED_MAX: Final = 200_000
"""The number of row index entries of a column that `bloom inspect --indexes` lists: 2 billion rows at the usual
stride. The report says that there are more."""

COMPARED_ENTRIES_MAX_BYTES: Final = 64 << 20
"""Bytes of a dictionary's entries that `validate --deep` holds in memory to compare them with statistics: orc-core
ends a stripe at 64 MiB."""
