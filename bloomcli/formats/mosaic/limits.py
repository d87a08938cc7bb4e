"""Ceilings for numbers that Mosaic files claim, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

SCHEMA_MAX_BYTES: Final = 64 << 20
"""The largest Mosaic schema block, uncompressed, and the total size of its column names: a name is stored as a prefix
length of the previous name and a suffix, so a small block could claim any size."""

FILTER_MAX_BYTES: Final = 512 << 20
"""The largest Mosaic bitset: the draft's reader accepts up to 2^24 blocks."""

BUCKET_MAX_BYTES: Final = 512 << 20
"""The largest uncompressed bucket, or column of a paged bucket: the writer's own limit. The released reader (0.2.0)
allocates the claimed size and aborts the process when the allocation fails."""

CELLS_MAX: Final = 1 << 26
"""Row groups times buckets of a Mosaic file whose columns are read: the released reader keeps about 40 bytes for
each, used or not."""

ROWS_MAX: Final = 1 << 28
"""Rows of a Mosaic row group whose columns are read: a constant column takes no bytes per row in the file, but its
full width when decoded."""

PARTS_MAX: Final = 1 << 21
"""The number of columns of a Mosaic schema, and of row groups, buckets, statistics and filters of an index. Each
takes some 200 bytes of memory, and a few in the file."""

DUMP_MAX_PARTS: Final = 1_000_000
"""The number of buckets, statistics, filters and columns that `bloom inspect --footer` writes as JSON: a file of
1,000 row groups and 300 columns has some 700,000."""
