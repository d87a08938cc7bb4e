"""Databricks' Bloom filter indexes: `_delta_index/FILE.index.v1.parquet` next to a data file.

Their hash and their columns are unpublished, so that only the folder is reported. VACUUM of open-source Delta doesn't
hide the folder (DeltaTable.isHiddenDirectory, 4.4.0), and deletes its files, valid ones too, past the retention time.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import partial
from typing import Final

from bloomcli.engine_filters.base import NOT_CHECKED, EngineFilters, finding
from bloomcli.errors import BloomError
from bloomcli.formats.base import FilterFile
from bloomcli.model.file import EngineFilterFacts
from bloomcli.model.validate import Finding
from bloomcli.storage.base import Kind
from bloomcli.storage.lookups import once_per_run
from bloomcli.storage.objects.client import AccessDenied
from bloomcli.storage.registry import store_of

FOLDER: Final = "_delta_index"
_REMARK: Final = (
    "a folder of Databricks' filter indexes: unpublished, not read; VACUUM of open-source Delta deletes them"
)
_FACTS: Final = EngineFilterFacts(kind="databricks", column="", place=f"folder {FOLDER}")
_WRITERS: Final = re.compile(r"-databricks-|\bPhoton\b")
"""In footers: `parquet-mr version 1.12.3-databricks-0002 (build ...)`, `parquet-mr compatible Photon version ...`."""


def filters_of(file: FilterFile, columns: Container[str] | None = None) -> EngineFilters:
    """The folder next to a file. In a store where the lookup takes a request, only `examine` looks, and only beside
    files of its writers."""
    del columns
    store = store_of(file.source.path)
    directory = store.directory(file.source.path)
    if store.remote:
        written = _WRITERS.search(file.created_by or "") is not None
        return EngineFilters(later=partial(_in_store, directory)) if written else EngineFilters()
    findings = _findings(directory)
    return EngineFilters((), findings, [(FOLDER, _REMARK)] * len(findings))


@once_per_run
def _findings(directory: str) -> tuple[Finding, ...]:
    """The note about the folder in a directory; empty without one. Raises UnreadableError."""
    folders = store_of(directory).existing(directory, {FOLDER: Kind.DIRECTORY})
    return (finding(NOT_CHECKED, _FACTS, f"beside the file is {FOLDER}, {_REMARK}", None),) if folders else ()


def _in_store(directory: str) -> Iterable[Finding]:
    try:
        return _findings(directory)
    except AccessDenied:  # who may read a file often may not list its directory
        return ()
    except BloomError as error:
        text = f"whether {FOLDER} is beside the file isn't known: {error.message}"
        return (finding(NOT_CHECKED, _FACTS, text, error.hint),)
