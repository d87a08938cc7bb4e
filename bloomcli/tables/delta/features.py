"""The table features with which data files can be replaced without loss, and those that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomcli.errors import UnsupportedError

_NEWEST_READER: Final = 3
_NEWEST_WRITER: Final = 7
"""The protocol versions with lists of features. Older versions have a fixed set, all of it in `KEPT`."""

KEPT: Final = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "materializePartitionColumns",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)
"""Features that a replacement keeps: the new file has the same data, and its log entry keeps all other fields."""

_CATALOG: Final = "commits of the table go through its catalog, which bloom doesn't support"
_REDIRECT: Final = "the table redirects to another one"
REFUSED: Final[Mapping[str, str]] = {
    "adaptiveMetadata-preview": "files are listed in a tree of manifests, which bloom doesn't support",
    "catalogManaged": _CATALOG,
    "catalogOwned-preview": _CATALOG,
    "coordinatedCommits-preview": _CATALOG,
    "geospatial": "bloom isn't tested with it",
    "geospatial-dev": "bloom isn't tested with it",
    "redirectReaderWriter-preview": _REDIRECT,
    "redirectWriterOnly-preview": _REDIRECT,
}
"""Features of Delta that are refused, with the reason."""

_UNIFORM: Final = "delta.universalFormat.enabledFormats"
_SUSPENDED: Final = "delta.rowTrackingSuspended"
_BLOOM_INDEX: Final = '"delta.bloomFilter.'


def refusal(protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    """Why data files of a table can't be replaced; None if they can.

    Args:
        protocol: the log's ``protocol``.
        metadata: the log's ``metaData``.
    """
    reader, writer = protocol["minReaderVersion"], protocol["minWriterVersion"]
    if reader > _NEWEST_READER or writer > _NEWEST_WRITER:
        return f"protocol version {reader} for readers and {writer} for writers: bloom doesn't know it"
    used = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    found = [f"{name}: {REFUSED.get(name, 'bloom does not know it')}" for name in sorted(used - KEPT)]
    if found:
        return "table feature " + "; table feature ".join(found)
    configuration: Mapping[str, str] = metadata["configuration"]
    if configuration.get(_UNIFORM, "").strip():
        return (
            f"{_UNIFORM} is {configuration[_UNIFORM]}: Delta writes the table's metadata for other formats too, and"
            " bloom isn't tested with it"
        )
    if configuration.get(_SUSPENDED, "false").lower() == "true":
        return f"{_SUSPENDED} is true: rows would lose their ids"
    if _BLOOM_INDEX in metadata["schemaString"]:
        return "Databricks' Bloom filter indexes belong to the names of data files, and would be lost"
    return None


def check(name: str, protocol: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if data files of the table can't be replaced."""
    if (why := refusal(protocol, metadata)) is not None:
        raise UnsupportedError(f"data files of this Delta table can't be replaced: {why}", path=name)
