"""The reports that commands return: frozen dataclasses, without behaviour beyond derived figures.

`inspect`, `probe`, `change` and `validate` have the reports on one file, `dataset` those on many
files, `gate` that of `validate` on many files. This package exports every name, and imports a module when one of its
names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.model.change import ChangeReport, FilterChange
    from bloomcli.model.columns import ColumnSummary
    from bloomcli.model.dataset import ColumnSeen, DatasetReport, FileRow, Status, SurveyReport, gravest
    from bloomcli.model.file import (
        Column,
        ColumnChunk,
        FilterFacts,
        Presence,
        Severity,
    )
    from bloomcli.model.gate import GateReport, Sample
    from bloomcli.model.inspect import FilterDump, FilterSummary, InspectReport
    from bloomcli.model.lake import ColumnFilters, ColumnOverFiles
    from bloomcli.model.pages import IndexEntry, MergedFilter, PageFacts
    from bloomcli.model.probe import BitTrail, ProbeReport, ValueTotals, Verdict
    from bloomcli.model.schema import SchemaNode
    from bloomcli.model.table import TableCommit, TableFacts
    from bloomcli.model.validate import Finding, ValidateReport

_HOMES = {
    "ColumnSummary": "columns",
    "SchemaNode": "schema",
    **dict.fromkeys(("ColumnFilters", "ColumnOverFiles"), "lake"),
    **dict.fromkeys(("TableCommit", "TableFacts"), "table"),
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
            "FilterFacts",
        ),
        "file",
    ),
    **dict.fromkeys(
        (
            "Status",
            "ColumnSeen",
            "SurveyReport",
            "FileRow",
            "DatasetReport",
            "gravest",
        ),
        "dataset",
    ),
    **dict.fromkeys(
        (
            "Sample",
            "GateReport",
        ),
        "gate",
    ),
}

__all__ = [
    "BitTrail",
    "ChangeReport",
    "Column",
    "ColumnChunk",
    "ColumnFilters",
    "ColumnOverFiles",
    "ColumnSeen",
    "ColumnSummary",
    "DatasetReport",
    "FileRow",
    "FilterChange",
    "FilterDump",
    "FilterFacts",
    "FilterSummary",
    "Finding",
    "GateReport",
    "IndexEntry",
    "InspectReport",
    "MergedFilter",
    "PageFacts",
    "Presence",
    "ProbeReport",
    "Sample",
    "SchemaNode",
    "Severity",
    "Status",
    "SurveyReport",
    "TableCommit",
    "TableFacts",
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
