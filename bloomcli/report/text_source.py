"""Text about the source of the data: the table, its snapshot and commits, and the requests to an object store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bloomcli.model.dataset import DatasetReport, Status, TableFacts
from bloomcli.model.traffic import TrafficFields, traffic_of
from bloomcli.report.human import size
from bloomcli.report.layout import Block, Cell, Style, line
from bloomcli.words import plural

_TITLES: Final = {"iceberg": "Iceberg", "delta": "Delta"}
_VERSIONS: Final = {"iceberg": "snapshot", "delta": "version"}
_COMMITS_SHOWN: Final = 10


def table_title(table: TableFacts) -> str:
    """Return ``ice.db.orders (Iceberg)``."""
    return f"{table.name} ({_TITLES.get(table.format, table.format)})"


def version_text(table: TableFacts, version: int | None) -> str:
    """Return ``snapshot 123``, ``version 7``, or ``no snapshot``."""
    return "no snapshot" if version is None else f"{_VERSIONS.get(table.format, 'version')} {version}"


def table_lines(report: DatasetReport) -> Iterator[Block]:
    """Yield the snapshot that the command read, and its commits; nothing for files that were named by path."""
    table = report.table
    if table is None:
        return
    start = f"table {table_title(table)}, {version_text(table, report.version_before)}"
    if report.command not in {"add", "remove", "fold"}:
        yield line(f"{start}: {plural(report.files, 'data file')}")
    elif not report.commits:
        yield line(f"{start}: nothing to commit" if not report.failed else f"{start}: nothing was committed")
    elif report.dry_run:
        yield line(f"{start}: {_replaced(report)} would be replaced in {_commits(report)}; it {_bytes(report)}")
        if len(report.commits) > 1:
            yield from _each(report)
    else:
        versions = [version_text(table, commit.version) for commit in report.commits[-1:]]
        last = "the last one " if len(report.commits) > 1 else ""
        yield line(f"{start}: {_replaced(report)} replaced in {_commits(report)}, {last}{versions[0]}", Style.GOOD)


def _replaced(report: DatasetReport) -> str:
    return (
        f"{sum(commit.files for commit in report.commits):,} of {plural(report.files + report.not_started, 'file')}"
    )


def _commits(report: DatasetReport) -> str:
    text = plural(len(report.commits), "commit")
    snapshots = sum(commit.snapshots for commit in report.commits)
    return text if snapshots == len(report.commits) else f"{text} ({plural(snapshots, 'snapshot')})"


def _bytes(report: DatasetReport) -> str:
    """Return the bytes that a dry run expects to read, copy and write."""
    rows = [row for row in report.rows if row.status is Status.PLANNED]
    read = sum(row.bytes_decoded or 0 for row in rows)
    copied = sum(row.bytes_copied or 0 for row in rows)
    new = sum(row.bytes_after or 0 for row in rows) - copied
    return f"reads at most {size(read)} of columns, copies {size(copied)}, writes at most {size(new)} anew"


def _each(report: DatasetReport) -> Iterator[Block]:
    for number, commit in enumerate(report.commits[:_COMMITS_SHOWN], 1):
        files = plural(commit.files, "file")
        yield line(
            f"commit {number}: {files}, {size(commit.bytes_before)} -> at most {size(commit.bytes_after)}", indent=2
        )
    if len(report.commits) > _COMMITS_SHOWN:
        yield line(f"... and {plural(len(report.commits) - _COMMITS_SHOWN, 'commit')} more: --format json", indent=2)


def traffic_text(report: TrafficFields) -> str | None:
    """Return ``12 requests, 1.0 MiB downloaded, 3.0 KiB uploaded, 1.0 GiB copied by the store``; None for local
    files."""
    traffic = traffic_of(report)
    if traffic is None:
        return None
    parts = (
        (traffic.bytes_downloaded, "downloaded"),
        (traffic.bytes_uploaded, "uploaded"),
        (traffic.bytes_copied_by_store, "copied by the store"),
    )
    return ", ".join([plural(traffic.requests, "request"), *(f"{size(n)} {how}" for n, how in parts if n)])


def traffic_line(report: TrafficFields, *, dry_run: bool = False) -> Iterator[Block]:
    """Yield the line about the requests; nothing for local files."""
    text = traffic_text(report)
    if text is not None:
        yield line(f"object store: {'would take about ' if dry_run else ''}{text}")


def traffic_pairs(report: TrafficFields) -> Iterator[tuple[str, Cell]]:
    """Yield the requests as a name and a value; nothing for local files."""
    text = traffic_text(report)
    if text is not None:
        yield "object store", Cell(text)
