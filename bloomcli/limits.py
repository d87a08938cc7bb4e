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

DECODING_BYTES: Final = 4 << 20
"""What decoding a column chunk takes beside its filter, with pages of the usual size (1 MiB): the page as it lies in
the file, its values and their hashes."""

FILTER_HEADER_MAX_BYTES: Final = 256
"""A BloomFilterHeader takes 12 to 20 bytes; unknown future fields are allowed for, a runaway is not."""

THRIFT_MAX_DEPTH: Final = 32
"""Nesting of structs and lists in Thrift metadata. The format's own structures nest 7 deep."""

SCHEMA_MAX_DEPTH: Final = 256
"""Nesting of groups in a Parquet schema; deeper than any engine's parser accepts."""

POLICY_MAX_BYTES: Final = 1 << 20
"""Largest policy file: people write them. A data file that is named by mistake is not read whole."""

ROWS_PER_BATCH: Final = 65_536
"""Rows decoded at a time: enough to amortise a call, small enough for a batch to stay in L2/L3."""

PAGE_AT_ONCE_BYTES: Final = 8 << 20
"""Largest page that is decompressed at once; larger ones are read in windows of 1 MiB. Writers aim at 1 MiB."""

PAGE_WHOLE_MAX_BYTES: Final = 128 << 20
"""Largest page, as it lies in the file and decompressed, of a codec or an encoding that can't be read in windows:
SNAPPY and LZ4, whose libraries want all at once, and BYTE_STREAM_SPLIT, whose values' bytes lie apart. Of the other
codecs a page may have the 2 GiB that its header can say."""

VALUE_AT_ONCE_BYTES: Final = 32 << 20
"""Longest value of a large page that is held in memory; longer ones are hashed as they come, and shown by length."""

DELTA_VALUE_MAX_BYTES: Final = 128 << 20
"""Longest value in DELTA_BYTE_ARRAY: each may begin with the one before, which therefore has to be kept."""

DELTA_PAGE_MAX_BYTES: Final = 1 << 34
"""Most bytes that the values of one DELTA_BYTE_ARRAY page take once their prefixes are put back: a few seconds of
hashing. A page of 1 MiB may claim 2^40."""

DICTIONARY_MAX_VALUES: Final = 1 << 24
"""Most entries of a dictionary: it is held while the pages are looked into. It has `PAGE_WHOLE_MAX_BYTES` at most;
writers stop at 1 to 2 MiB."""

VALUES_FREE: Final = 1 << 25
"""Values of a column chunk that are hashed however few bytes they take in the file."""

VALUES_PER_BYTE: Final = 1024
"""Most values of a larger chunk for each byte in the file, equal neighbours not counted. Numbers that follow each
other take a byte for up to 4,000 in DELTA_BINARY_PACKED, and next to none once that is compressed."""

PAGE_HEADER_MAX_BYTES: Final = 16 << 20
"""Page headers may carry whole min and max values; Arrow C++ stops at 16 MiB too."""

STREAM_MAX_BYTES: Final = 128 << 20
"""Largest ORC filter stream, uncompressed: the filters of 110 million rows at 1 %. orc-core ends a stripe at 64 MiB.
Each of a few bytes may claim as much, and its filters are held twice while they are checked."""

ORC_METADATA_FREE_BYTES: Final = 32 << 20
"""ORC footers and indexes that are read however well they are compressed."""

ORC_METADATA_RATIO: Final = 64
"""How many times as large as on disk larger ones may be: messages take up to 8 times their bytes once they are read.
zlib and zstd press footers of real, wide tables to a twentieth."""

ORC_MESSAGES_MAX: Final = 1 << 21
"""Most columns, stripes and statistics of one ORC message: an empty one takes 2 bytes, and 80 once it is read."""

ORC_BLOCK_MAX_BYTES: Final = 1 << 23
"""Largest ORC compression chunk: the length in its header has 23 bits."""

ORC_TYPES_MAX: Final = 1 << 20
"""Most types (columns at any level) of an ORC file."""

ORC_DECIMAL_DIGITS: Final = 38
"""Most digits of an ORC decimal."""

ORC_CHAR_MAX: Final = 1 << 20
"""Longest ORC char that values are padded to: Hive stops at 255, and the file may say 4 billion."""

MOSAIC_SCHEMA_MAX_BYTES: Final = 64 << 20
"""Largest Mosaic schema block, uncompressed, and most bytes of all its column names together: names are
written as "so many bytes of the one before", so a small block could claim any amount."""

MOSAIC_FILTER_MAX_BYTES: Final = 512 << 20
"""Largest Mosaic bitset: the draft's reader takes up to 2^24 blocks."""

MOSAIC_BUCKET_MAX_BYTES: Final = 512 << 20
"""Largest uncompressed bucket, or column of a paged one: the writer's own ceiling. The released reader (0.2.0)
allocates what is claimed, and ends the process where that fails."""

MOSAIC_CELLS_MAX: Final = 1 << 26
"""Most row groups times buckets of a Mosaic file whose columns are read: the released reader keeps some 40
bytes for each, used or not."""

MOSAIC_ROWS_MAX: Final = 1 << 28
"""Most rows of a Mosaic row group whose columns are read: a constant column takes no bytes a row in the file,
but its full width once decoded."""

ORC_ROW_GROUPS_MAX: Final = 1 << 22
"""Most row groups of an ORC file: 42 billion rows at the usual stride. Each is a row of a probe's report."""

TABLE_SCHEMA_MAX_BYTES: Final = 64 << 20
"""Largest file with a table's schema. Iceberg's table metadata lists snapshots too, and reaches tens of MB."""

ORC_VALUES_MAX: Final = 1 << 27
"""Most values of a column in an ORC stripe, those of its lists counted one by one: 1 to 5 seconds of work. orc-core
ends a stripe at 64 MiB; a run of 512 equal values takes 4 bytes in the file, and compresses well."""

ORC_STREAM_MAX_BYTES: Final = 4 << 30
"""Largest ORC data stream, uncompressed. It is read in chunks, so that this bounds time, not memory: zlib takes some
seconds for as much, and packs it into 4 MB."""

ORC_DICTIONARY_MAX: Final = 1 << 24
"""Most entries of an ORC dictionary: their hashes take 128 MiB. A dictionary is of one stripe."""

ORC_STRIDE_TRUSTED: Final = 1 << 16
"""Row index strides by which ORC filters are sized though there are fewer rows, as orc-core does: 10,000 is usual.
A larger one sizes by the rows of the largest row group: a stride of 2^30 makes 128 MiB of it whatever they are."""

TABLE_SCHEMA_MAX_DEPTH: Final = 100
"""Nesting of a table's types. They are read by recursion, three calls a level, and Python stops at 1,000."""
