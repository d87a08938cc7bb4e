"""Ceilings for numbers that Mosaic files claim, each with its reason. `bloomcli.limits` has the shared ones."""

from __future__ import annotations

from typing import Final

SCHEMA_MAX_BYTES: Final = 64 << 20
"""Largest Mosaic schema block, uncompressed, and most bytes of all its column names together: names are
written as "so many bytes of the one before", so a small block could claim any amount."""

FILTER_MAX_BYTES: Final = 512 << 20
"""Largest Mosaic bitset: the draft's reader takes up to 2^24 blocks."""

BUCKET_MAX_BYTES: Final = 512 << 20
"""Largest uncompressed bucket, or column of a paged one: the writer's own ceiling. The released reader (0.2.0)
allocates what is claimed, and ends the process where that fails."""

CELLS_MAX: Final = 1 << 26
"""Most row groups times buckets of a Mosaic file whose columns are read: the released reader keeps some 40
bytes for each, used or not."""

ROWS_MAX: Final = 1 << 28
"""Most rows of a Mosaic row group whose columns are read: a constant column takes no bytes a row in the file,
but its full width once decoded."""
