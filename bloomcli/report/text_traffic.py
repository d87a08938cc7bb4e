"""Text about the requests to an object store."""

from __future__ import annotations

from collections.abc import Iterator

from bloomcli.model.traffic import TrafficFields, traffic_of
from bloomcli.report.human import size
from bloomcli.report.layout import Block, Cell, line
from bloomcli.words import plural


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
