"""The reports that commands return: frozen dataclasses, without behaviour beyond derived figures.

`file` has the reports on one file, `dataset` those on many files, `gate` that of `validate` on many files. This
package exports every name, and imports a module when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bloomcli.model.dataset import ColumnSeen, DatasetReport, FileRow, Status, SurveyReport, gravest
    from bloomcli.model.file import (
        BitTrail,
        ChangeReport,
        Column,
        ColumnChunk,
        FilterChange,
        FilterDump,
        FilterFacts,
        FilterSummary,
        Finding,
        InspectReport,
        Presence,
        ProbeReport,
        Severity,
        ValidateReport,
        ValueTotals,
        Verdict,
    )
    from bloomcli.model.gate import GateReport, Sample

_HOMES = {
    **dict.fromkeys(
        (
            "Presence",
            "Severity",
            "Column",
            "ColumnChunk",
            "FilterFacts",
            "FilterSummary",
            "InspectReport",
            "FilterDump",
            "BitTrail",
            "Verdict",
            "ValueTotals",
            "ProbeReport",
            "FilterChange",
            "ChangeReport",
            "Finding",
            "ValidateReport",
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
    "ColumnSeen",
    "DatasetReport",
    "FileRow",
    "FilterChange",
    "FilterDump",
    "FilterFacts",
    "FilterSummary",
    "Finding",
    "GateReport",
    "InspectReport",
    "Presence",
    "ProbeReport",
    "Sample",
    "Severity",
    "Status",
    "SurveyReport",
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
