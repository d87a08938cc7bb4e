"""Reports of `validate`: a lake with every kind of finding, a sound file, a sample of many files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from bloomcli.model.dataset import FileRow, Status
from bloomcli.model.file import Severity
from bloomcli.model.gate import GateReport, Sample
from bloomcli.model.validate import Finding
from bloomcli.rules import RULES

FOUND = FileRow(
    path="lake/a.parquet", status=Status.FOUND, row_groups=4, filters=8, row_groups_read=4, values_checked=5000
)
SOUND = replace(FOUND, path="orders.parquet", status=Status.DONE)
FAILED = FileRow(
    path="lake/torn.parquet",
    status=Status.FAILED,
    error="lake/torn.parquet: the file ends before its footer (byte 7)",
    hint="copy it again",
    exit_code=3,
)
SKIPPED = FileRow(path="lake/_SUCCESS", status=Status.SKIPPED, reason="not a file of a known format")
MISSING = Finding(
    id="value-missing",
    severity=Severity.ERROR,
    message="2 of 5,000 values are missing",
    row_group=3,
    column="user.id",
    offset=7001,
    hint="build it again",
    missing=("4", "5"),
    path=FOUND.path,
)
ODD_SIZE = Finding(
    id="filter-not-power-of-two",
    severity=Severity.WARNING,
    message="the bitset has 96 bytes",
    row_group=0,
    column="id",
    stripe=2,
    path=FOUND.path,
)
NOTE = Finding(id="filter-no-length", severity=Severity.NOTE, message="it has no length", path=FOUND.path)
OFF = Finding(
    id="filter-fpp",
    severity=Severity.ERROR,
    message="the rate is 0.3",
    column="id",
    path="lake/old.parquet",
    off="nobody probes it",
)
KNOWN = Finding(
    id="filter-boolean",
    severity=Severity.ERROR,
    message="a filter on a BOOLEAN column",
    column="flag",
    path="lake/old.parquet",
    known=True,
)
OLD = replace(SOUND, path="lake/old.parquet")


def gate(*findings: Finding, rows: tuple[FileRow, ...] = (SOUND,), **kept: Any) -> GateReport:
    """A report of a deep check of one sound file, by default."""
    fields = {"engine": "local", "jobs": 2, "seconds": 2.0, "deep": True, "files_found": len(rows), **kept}
    return GateReport(findings=findings, rows=rows, **fields)


LAKE = gate(
    MISSING,
    OFF,
    KNOWN,
    ODD_SIZE,
    NOTE,
    rows=(FOUND, OLD, FAILED, SKIPPED),
    policy="bloom.toml",
    baseline="known.json",
    gone=3,
)
PARTIAL = gate(files_found=20, sample=Sample(seed=42, files="5%"))

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
"""Any characters: control characters, lone surrogates (bytes of names that aren't text), non-characters."""


@st.composite
def reports(draw: st.DrawFn) -> GateReport:
    """Any report. Its paths, columns and messages contain any text."""
    paths = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True))
    texts = st.none() | TEXT
    number = st.none() | st.integers(-5, 2**40)
    finding = st.builds(
        Finding,
        id=st.sampled_from(sorted(RULES)),
        severity=st.sampled_from(Severity),
        message=TEXT,
        row_group=st.none() | st.integers(0, 99),
        column=texts,
        offset=number,
        hint=texts,
        missing=st.lists(TEXT, max_size=2).map(tuple),
        stripe=st.none() | st.integers(0, 9),
        path=st.sampled_from(paths),
        off=texts,
        known=st.booleans(),
    )
    order = list(Severity)
    findings = sorted(draw(st.lists(finding, max_size=6)), key=lambda f: (order.index(f.severity), f.id))
    rows = [
        draw(
            st.sampled_from(
                (
                    replace(SOUND, path=path),
                    replace(SOUND, path=path, filters=0),
                    replace(FAILED, path=path, error=draw(texts), hint=draw(texts)),
                    replace(SKIPPED, path=path),
                )
            )
        )
        for path in paths
    ]
    sample = draw(st.none() | st.builds(Sample, seed=st.integers(), files=texts, row_groups=texts))
    return gate(
        *findings,
        rows=tuple(rows),
        files_found=len(rows) + draw(st.integers(0, 3)),
        sample=sample,
        deep=draw(st.booleans()),
        policy=draw(texts),
        baseline=draw(texts),
        gone=draw(st.integers(0, 2)),
        excluded=draw(st.integers(0, 2)),
    )
