"""Databricks' Bloom filter indexes: `_delta_index/FILE.index.v1.parquet` next to a data file.

Their hash and their columns are unpublished, so that only the folder is reported. VACUUM of open-source Delta doesn't
hide the folder (DeltaTable.isHiddenDirectory, 4.4.0), and deletes its files, valid ones too, past the retention time.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from bloomcli.engine_filters.base import NOT_CHECKED, EngineFilters, finding
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import EngineFilterFacts
from bloomcli.storage.base import Kind
from bloomcli.storage.registry import store_of

FOLDER: Final = "_delta_index"
_REMARK: Final = (
    "a folder of Databricks' filter indexes: unpublished, not read; VACUUM of open-source Delta deletes them"
)
_FACTS: Final = EngineFilterFacts(kind="databricks", column="", place=f"folder {FOLDER}")


def filters_of(file: FilterFile, columns: Container[str] | None = None) -> EngineFilters:
    """The folder next to a file of this machine. In other stores, the lookup would take a request."""
    del columns
    path = file.source.path
    store = store_of(path)
    if store.remote or not store.existing(store.directory(path), {FOLDER: Kind.DIRECTORY}):
        return EngineFilters()
    return EngineFilters(
        (), [finding(NOT_CHECKED, _FACTS, f"beside the file is {FOLDER}, {_REMARK}", None)], [(FOLDER, _REMARK)]
    )
