"""The reports on many files, under the public name that the documentation of `bloomcli.spark` uses."""

from __future__ import annotations

from bloomcli.model.dataset import DatasetReport, FileRow, Status, SurveyReport
from bloomcli.model.dataset import SurveyedColumn as ColumnSeen
from bloomcli.model.exit_codes import gravest
from bloomcli.model.gate import GateReport, Sample

__all__ = ["ColumnSeen", "DatasetReport", "FileRow", "GateReport", "Sample", "Status", "SurveyReport", "gravest"]
