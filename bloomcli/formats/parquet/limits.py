"""Ceilings for numbers that Parquet files claim, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

DECODING_BYTES: Final = 4 << 20
"""What decoding a column chunk takes beside its filter, with pages of the usual size (1 MiB): the page as it lies in
the file, its values and their hashes."""

FILTER_HEADER_MAX_BYTES: Final = 256
"""A BloomFilterHeader takes 12 to 20 bytes; unknown future fields are allowed for, a runaway is not."""

THRIFT_MAX_DEPTH: Final = 32
"""Nesting of structs and lists in Thrift metadata. The format's own structures nest 7 deep."""

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
