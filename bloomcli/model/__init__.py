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
        ExistingFilters,
        Interval,
        LookupCost,
        LookupGain,
    )
    from bloomcli.model.change import ChangeReport, FilterChange
    from bloomcli.model.columns import ColumnSummary
    from bloomcli.model.dataset import DatasetReport, FileRow, Status, SurveyedColumn, SurveyReport
    from bloomcli.model.exit_codes import gravest
    from bloomcli.model.file import (
        Column,
        ColumnChunk,
        Presence,
        Severity,
    )
    from bloomcli.model.filter_facts import FilterFacts
    from bloomcli.model.find import FileFound, FindReport
    from bloomcli.model.gate import GateReport, Sample
    from bloomcli.model.index_facts import BlobFacts, IndexedColumnFacts, IndexFacts
    from bloomcli.model.indexing import IndexReport
    from bloomcli.model.inspect import FilterDump, FilterSummary, InspectReport
    from bloomcli.model.lake import ColumnFilters, ColumnOverFiles
    from bloomcli.model.pages import IndexEntry, MergedFilter, PageFacts
    from bloomcli.model.probe import BitTrail, ProbeReport, ValueTotals, Verdict
    from bloomcli.model.queries import QueriedColumn, QueryLog, UnservedPredicate
    from bloomcli.model.schema import SchemaNode
    from bloomcli.model.table import TableCommit, TableFacts
    from bloomcli.model.trial import Quartiles, ReaderTrial, RowDifference, TrialLookups, TrialReport
    from bloomcli.model.validate import Finding, ValidateReport

_HOMES = {
    **dict.fromkeys(
        (
            "AdviseReport",
            "AtRate",
            "ColumnAdvice",
            "ExistingFilters",
            "Interval",
            "LookupCost",
            "LookupGain",
        ),
        "advice",
    ),
    **dict.fromkeys(("QueriedColumn", "QueryLog", "UnservedPredicate"), "queries"),
    "ColumnSummary": "columns",
    "SchemaNode": "schema",
    **dict.fromkeys(("ColumnFilters", "ColumnOverFiles"), "lake"),
    **dict.fromkeys(("FileFound", "FindReport"), "find"),
    **dict.fromkeys(("TableCommit", "TableFacts"), "table"),
    **dict.fromkeys(("Quartiles", "ReaderTrial", "RowDifference", "TrialLookups", "TrialReport"), "trial"),
    **dict.fromkeys(("IndexEntry", "MergedFilter", "PageFacts"), "pages"),
    **dict.fromkeys(
        (
            "Finding",
            "ValidateReport",
        ),
        "validate",
    ),
    **dict.fromkeys(
        (
            "FilterChange",
            "ChangeReport",
        ),
        "change",
    ),
    **dict.fromkeys(
        (
            "BitTrail",
            "Verdict",
            "ValueTotals",
            "ProbeReport",
        ),
        "probe",
    ),
    **dict.fromkeys(
        (
            "FilterSummary",
            "InspectReport",
            "FilterDump",
        ),
        "inspect",
    ),
    **dict.fromkeys(
        (
            "Presence",
            "Severity",
            "Column",
            "ColumnChunk",
        ),
        "file",
    ),
    **dict.fromkeys(
        (
            "Status",
            "SurveyedColumn",
            "SurveyReport",
            "FileRow",
            "DatasetReport",
        ),
        "dataset",
    ),
    "FilterFacts": "filter_facts",
    "gravest": "exit_codes",
    **dict.fromkeys(
        (
            "Sample",
            "GateReport",
        ),
        "gate",
    ),
    **dict.fromkeys(("BlobFacts", "IndexFacts", "IndexedColumnFacts"), "index_facts"),
    "IndexReport": "indexing",
}

__all__ = [
    "AdviseReport",
    "AtRate",
    "BitTrail",
    "BlobFacts",
    "ChangeReport",
    "Column",
    "ColumnAdvice",
    "ColumnChunk",
    "ColumnFilters",
    "ColumnOverFiles",
    "ColumnSummary",
    "DatasetReport",
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
    "LookupCost",
    "LookupGain",
    "MergedFilter",
    "PageFacts",
    "Presence",
    "ProbeReport",
    "Quartiles",
    "QueriedColumn",
    "QueryLog",
    "ReaderTrial",
    "RowDifference",
    "Sample",
    "SchemaNode",
    "Severity",
    "Status",
    "SurveyReport",
    "SurveyedColumn",
    "TableCommit",
    "TableFacts",
    "TrialLookups",
    "TrialReport",
    "UnservedPredicate",
    "ValidateReport",
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
