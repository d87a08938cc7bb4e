"""The reports on many files, under the public name that the documentation of `bloomcli.spark` uses."""

from __future__ import annotations

from bloomcli.model.dataset import DatasetReport, FileRow, Status, gravest
from bloomcli.model.dataset import SurveyedColumn as ColumnSeen
from bloomcli.model.gate import GateReport, Sample

__all__ = ["ColumnSeen", "DatasetReport", "FileRow", "GateReport", "Sample", "Status", "gravest"]


def __dir__() -> list[str]:
    return sorted(__all__)
