"""Paimon's filters of columns, in an index file beside the data file or in the table's manifest.

`index_file` has the layout of an index, `values` the hashes, `table` the manifests; `filters` finds the filters of a
file, and `rewriting` writes those of an index file again.
"""

from collections.abc import Container

from bloomcli.engine_filters.base import EngineFilters
from bloomcli.engine_filters.paimon.table import is_bucket
from bloomcli.formats.base import FilterFile
from bloomcli.storage.registry import store_of


def may_have_index(path: str) -> bool:
    """Whether a file may be a data file, by its path."""
    return any(map(is_bucket, store_of(path).directories_above(path, 1)))


def filters_of(file: FilterFile, columns: Container[str] | None = None) -> EngineFilters:
    """The filters of a data file in a directory ``bucket-...``, by its table's newest snapshot."""
    if not may_have_index(file.source.path):
        return EngineFilters()
    from bloomcli.engine_filters.paimon import filters  # imports NumPy and pyarrow

    return filters.filters_of(file, columns)
