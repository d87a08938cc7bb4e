"""The reports that commands return: frozen dataclasses, without behaviour beyond derived figures.

`inspect`, `probe`, `change` and `validate` contain the reports on one file, `dataset` the reports on many files, and
`gate` the report of `validate` on many files. This package exports every name, and imports a module when one of its
names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.model.advice import (
        AdviseReport,
        AtRate,
        ColumnAdvice,
        EngineFilterAdvice,
        ExistingFilters,
        Interval,
        LookupCost,
        LookupGain,
    )
    from bloomcli.model.change import ChangeReport, FilterChange, StructureChange
    from bloomcli.model.dataset import (
        ColumnFilters,
        ColumnOverFiles,
        DatasetReport,
        FileRow,
        Status,
        SurveyedColumn,
        SurveyReport,
        TableCommit,
        TableFacts,
        gravest,
    )
    from bloomcli.model.file import (
        Column,
        ColumnChunk,
        ColumnSummary,
        EngineFilterFacts,
        FilterFacts,
        IndexEntry,
        MergedFilter,
        PageFacts,
        Presence,
        Severity,
    )
    from bloomcli.model.find import FileFound, FindReport, ValueFound
    from bloomcli.model.gate import GateReport, Sample
    from bloomcli.model.index import BlobFacts, IndexedColumnFacts, IndexFacts, IndexReport
    from bloomcli.model.inspect import FilterDump, FilterSummary, InspectReport
    from bloomcli.model.probe import BitTrail, EngineAnswer, ProbeReport, ValueTotals, Verdict
    from bloomcli.model.queries import QueriedColumn, QueryLog, UnservedPredicate
    from bloomcli.model.reachable import Certificate, LookedAt, Place, ReachableReport
    from bloomcli.model.schema import SchemaNode
    from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups, TrialReport
    from bloomcli.model.validate import Finding, ValidateReport

_NAMES = {
    "advice": (
        "AdviseReport",
        "AtRate",
        "ColumnAdvice",
        "EngineFilterAdvice",
        "ExistingFilters",
        "Interval",
        "LookupCost",
        "LookupGain",
    ),
    "change": (
        "ChangeReport",
        "FilterChange",
        "StructureChange",
    ),
    "dataset": (
        "ColumnFilters",
        "ColumnOverFiles",
        "DatasetReport",
        "FileRow",
        "Status",
        "SurveyReport",
        "SurveyedColumn",
        "TableCommit",
        "TableFacts",
        "gravest",
    ),
    "file": (
        "Column",
        "ColumnChunk",
        "ColumnSummary",
        "EngineFilterFacts",
        "FilterFacts",
        "IndexEntry",
        "MergedFilter",
        "PageFacts",
        "Presence",
        "Severity",
    ),
    "find": (
        "FileFound",
        "FindReport",
        "ValueFound",
    ),
    "gate": (
        "GateReport",
        "Sample",
    ),
    "index": (
        "BlobFacts",
        "IndexFacts",
        "IndexReport",
        "IndexedColumnFacts",
    ),
    "inspect": (
        "FilterDump",
        "FilterSummary",
        "InspectReport",
    ),
    "probe": (
        "BitTrail",
        "EngineAnswer",
        "ProbeReport",
        "ValueTotals",
        "Verdict",
    ),
    "queries": (
        "QueriedColumn",
        "QueryLog",
        "UnservedPredicate",
    ),
    "reachable": (
        "Certificate",
        "LookedAt",
        "Place",
        "ReachableReport",
    ),
    "schema": ("SchemaNode",),
    "trial": (
        "Quartiles",
        "ReaderTrial",
        "RowDifference",
        "TrialLookups",
        "TrialReport",
    ),
    "validate": (
        "Finding",
        "ValidateReport",
    ),
}
"""The names of each module that this package exports."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AdviseReport",
    "AtRate",
    "BitTrail",
    "BlobFacts",
    "Certificate",
    "ChangeReport",
    "Column",
    "ColumnAdvice",
    "ColumnChunk",
    "ColumnFilters",
    "ColumnOverFiles",
    "ColumnSummary",
    "DatasetReport",
    "EngineAnswer",
    "EngineFilterAdvice",
    "EngineFilterFacts",
    "ExistingFilters",
    "FileFound",
    "FileRow",
    "FilterChange",
    "FilterDump",
    "FilterFacts",
    "FilterSummary",
    "FindReport",
    "Finding",
    "GateReport",
    "IndexEntry",
    "IndexFacts",
    "IndexReport",
    "IndexedColumnFacts",
    "InspectReport",
    "Interval",
    "LookedAt",
    "LookupCost",
    "LookupGain",
    "MergedFilter",
    "PageFacts",
    "Place",
    "Presence",
    "ProbeReport",
    "Quartiles",
    "QueriedColumn",
    "QueryLog",
    "ReachableReport",
    "ReaderTrial",
    "RowDifference",
    "Sample",
    "SchemaNode",
    "Severity",
    "Status",
    "StructureChange",
    "SurveyReport",
    "SurveyedColumn",
    "TableCommit",
    "TableFacts",
    "TrialLookups",
    "TrialReport",
    "UnservedPredicate",
    "ValidateReport",
    "ValueFound",
    "ValueTotals",
    "Verdict",
    "gravest",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"bloomcli.model.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
