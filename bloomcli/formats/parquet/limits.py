"""Ceilings for numbers in Parquet files, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

DECODING_BYTES: Final = 4 << 20
"""Memory for decoding a column chunk, without its filter, with pages of the usual size (1 MiB): the compressed page,
its values and their hashes."""

HASHES_KEPT_BYTES: Final = 64 << 20
"""Memory for the hashes of a column chunk that is built at several sizes: 8 million values, 8 bytes each. Chunks with
more values are read again."""

FILTER_HEADER_MAX_BYTES: Final = 256
"""The largest filter header. A BloomFilterHeader takes 12 to 20 bytes; the limit leaves room for future fields."""

THRIFT_MAX_DEPTH: Final = 32
"""Nesting of structs and lists in Thrift metadata. The format's own structures nest 7 deep."""

LIST_MAX: Final = 1 << 19
"""The number of row groups, of schema elements, and of a row group's column chunks. Each takes about a kilobyte of
memory in `bloom inspect`, and an empty one a byte in the file. Arrow C++ reads up to a million."""

CHUNKS_MAX: Final = 1 << 23
"""The number of column chunks of all row groups: their positions in the footer take 300 MB of memory. A footer of
512 MiB holds fewer if each has its metadata."""

PAGE_AT_ONCE_BYTES: Final = 8 << 20
"""The largest page that is decompressed in one piece; larger pages are read in windows of 1 MiB. Writers aim at
1 MiB per page."""

PAGE_WHOLE_MAX_BYTES: Final = 128 << 20
"""The largest page, compressed and decompressed, with a codec or an encoding that can't be read in windows: SNAPPY
and LZ4, whose libraries decompress a page in one call; BYTE_STREAM_SPLIT, which scatters the bytes of a value; and
ALP, which starts with the places of its parts. With other codecs a page may have up to 2 GiB, the largest size that
its header can express."""

PAGE_SHARED_MAX_BYTES: Final = 32 << 30
"""The bytes of all values of a page whose values share bytes (DELTA_BYTE_ARRAY), which are decoded to be compared:
1 GiB takes about a second. A page of 100 KB can claim terabytes."""

VALUE_AT_ONCE_BYTES: Final = 32 << 20
"""The longest value of a large page that is held in memory; longer values are hashed in pieces, and reports give only
their length."""

DELTA_VALUE_MAX_BYTES: Final = 128 << 20
"""The longest value in DELTA_BYTE_ARRAY: a value may share a prefix with the previous one, which is therefore
kept."""

DELTA_PAGE_MAX_BYTES: Final = 1 << 34
"""The total size of the values of one DELTA_BYTE_ARRAY page, prefixes included: a few seconds of hashing. A page of
1 MiB may claim 2^40 bytes."""

DICTIONARY_MAX_VALUES: Final = 1 << 24
"""The number of entries of a dictionary, which is held in memory while the data pages are read. A dictionary has at
most `PAGE_WHOLE_MAX_BYTES`; writers stop at 1 to 2 MiB."""

ROWS_FILE_MAX_BYTES: Final = 1 << 30
"""The pages of the chosen columns of row groups whose rows are shown, if Arrow can't decode some of them:
these are decoded as a whole, and 10 KB of ALP pages can have 128 MiB of equal values."""

VALUES_FREE: Final = 1 << 25
"""Values of a column chunk that are hashed regardless of how few bytes they take in the file."""

VALUES_PER_BYTE: Final = 1024
"""The number of values per byte in the file, for chunks with more than `VALUES_FREE` values; a run of equal values
counts once. DELTA_BINARY_PACKED stores up to 4,000 consecutive numbers in a byte, and compression shrinks that
more."""

PAGE_HEADER_MAX_BYTES: Final = 16 << 20
"""The largest page header. It may contain entire min and max values; Arrow C++ has the same limit."""

DUMP_MAX_BYTES: Final = 64 << 20
"""The largest footer that `bloom inspect --footer` writes as JSON, which takes some 30 times the bytes in memory."""

DUMP_MAX_PARTS: Final = 3_000_000
"""The number of fields and list elements of a footer that is decoded as a whole: 20,000 column chunks have some
600,000."""

PAGES_LISTED_MAX: Final = 200_000
"""The number of pages or index entries of a column that `bloom inspect --pages` and `--indexes` list: some 100 MB of
memory. The report says that there are more."""

INDEX_MAX_BYTES: Final = 16 << 20
"""The largest column index or offset index that is read: one of 20,000 pages with bounds of 64 bytes has 3 MB."""

INDEX_MAX_ELEMENTS: Final = 3_000_000
"""The number of elements of all lists of a page index: one takes up to 50 bytes of memory, and a byte in the file."""

LINEAGE_MAX_ROWS: Final = 1 << 28
"""The rows of a row group that gets row lineage columns. Their pages, up to 10 MiB each, are built in memory."""

PAGE_VALUES_MOST: Final = 1 << 24
"""The values of a page that is searched. Runs of equal values take no bytes, so a small page can have many."""

SORTED_BY_MOST: Final = 8
"""The sorting columns of a row group by which rows are compared: their pages are decoded at the same time, and a
footer can name half a million columns. Writers sort by one to four."""

ORDERED_ROWS_MOST: Final = 1 << 27
"""The rows of a row group whose order is measured, with half a byte for each row and sorting column."""
