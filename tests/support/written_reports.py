"""Reports with figures written by hand, in every form of them: one golden file for each."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bloomcli import __version__
from bloomcli.advice.decide import decide
from bloomcli.model.advice import AdviseReport, QueryLog, UnservedPredicate
from bloomcli.model.dataset import DatasetReport, FileRow, Status
from bloomcli.model.file import Presence, Severity
from bloomcli.model.find import Certificate, LookedAt, Place, ReachableReport
from bloomcli.model.probe import ValueTotals
from bloomcli.model.validate import Finding
from bloomcli.report import csv, github, junit, render, sarif, text_advice, text_dataset, text_gate, text_trial
from bloomcli.report import json as json_report
from bloomcli.report.text_find import reachable
from support import gates, golden
from support.advice import MIB, column, exact, report
from support.trial_reports import REPORT as TRIAL

DATA: Final = golden.ROOT / "tests" / "golden" / "reports"

DONE: Final = FileRow(
    path="lake/a.parquet",
    status=Status.DONE,
    format="parquet",
    row_groups=3,
    columns=2,
    filters=6,
    filter_bytes=6 * 1024,
    bytes_before=10_000,
    max_fpp=0.0098,
    seconds=0.5,
)
SKIPPED: Final = replace(gates.SKIPPED, path="lake/notes.txt")
FAILED: Final = replace(
    gates.FAILED, path="lake/b.parquet", error="lake/b.parquet: it is torn (byte 7)", hint="mend it"
)
_REQUIRED: Final = Finding(
    id="filter-required", severity=Severity.ERROR, message="no filter in 1 of 1 row groups: 0", column="id"
)
_NOTE: Final = Finding(id="filter-no-length", severity=Severity.NOTE, message="a trifle")
FOUND: Final = FileRow(
    path="lake/c.parquet",
    status=Status.FOUND,
    format="parquet",
    filters=1,
    exit_code=1,
    findings=(_REQUIRED, _NOTE),
)

LOG: Final = QueryLog(
    statements=10_000,
    about_table=9_120,
    unreadable=3,
    unreadable_examples=(),
    columns=(),
    unserved=tuple(
        UnservedPredicate(kind="range", column=f"c{n}", count=10 - n, example=f"c{n} > ?") for n in range(10)
    ),
)

EXPIRY: Final = (
    "CALL ice.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2026-11-26 16:20:15.480 UTC')"
)
_PLACE: Final = Place(
    kind="data files", path="/lake/t/part-1.parquet", rows=2, kept_by=("tag `may`",), ends=(EXPIRY,)
)
REACHABLE: Final = ReachableReport(
    table="ice.db.t", location="/lake/t", format="iceberg", column="id", time="2026-11-26T16:00:00Z", bloom="0.1.0",
    version=2, versions=(1, 2), refs=("branch main",), values=3, values_found=1, metadata_files=4,
    looked_at=(LookedAt(kind="data files", files=9, by_filter=7, by_scan=2),
               LookedAt(kind="deletion vectors", files=1, without_values=1)),
    places=(*(replace(_PLACE, path=f"/lake/t/part-{number}.parquet") for number in range(5)),
            replace(_PLACE, kind="bounds in manifests", path="/lake/t/m0.avro", rows=0, part=True)),
    statements=(EXPIRY,), not_looked_at=("backups",),
    notes=("VACUUM harms running writers and readers, so that it is run while nothing else uses the table, or much"
           " later",),
)  # fmt: skip
_CLEAN: Final = replace(REACHABLE, places=(), statements=(), notes=(), values_found=0, exit_code=0)


def dataset(*rows: FileRow, command: str = "inspect", seconds: float = 2.0, jobs: int = 2) -> DatasetReport:
    """Rows as a run's report."""
    return DatasetReport(command=command, engine="local", jobs=jobs, seconds=seconds, rows=rows)


def probed(path: str, presence: Presence, skipped: int, code: int) -> FileRow:
    """A file that was probed for 42."""
    totals = ValueTotals(
        value="42",
        presence=presence,
        answer=presence,
        absent_row_groups=skipped,
        absent_bytes=skipped * 1024,
        row_groups=4,
        skipped_row_groups=skipped,
        skipped_bytes=skipped * 1024,
        stats_skipped_row_groups=1,
        gain_row_groups=0,
        gain_bytes=0,
    )
    return FileRow(path=path, status=Status.DONE, exit_code=code, totals=(totals,))


def advised(**given: Any) -> AdviseReport:
    """Two columns to add, two to leave."""
    found = decide(
        report(
            column("id", spread=0.03, lookups=8000, seconds_to_add=exact(14), filter_share=0.01),
            column("user.email", type="STRING", spread=0.1, filter_bytes=12 * MIB, lookups=70),
            column("day", type="DATE", overlap=exact(0.011), lookups=300),
            column("price", type="DECIMAL", unfilterable="rows are lost [reader-millis]", loses_rows=True),
            **given,
        )
    )
    return replace(
        found, command="bloom add lake --columns id --fpp 0.01\nbloom add lake --columns user.email --fpp 0.1"
    )


def _written(write: Callable[..., None], *arguments: Any) -> str:
    stream = io.StringIO()
    write(*arguments, stream)
    return stream.getvalue()


def _lines(blocks: Any) -> str:
    return "".join(f"{line}\n" for line in render.plain(blocks))


def _of_sarif(whole: Any) -> str:
    """The log without the descriptions of the rules."""
    log = json.loads(_written(sarif.write, whole))
    del log["runs"][0]["tool"]["driver"]["rules"]
    return json.dumps(log, indent=1).replace(__version__, "VERSION") + "\n"


_ROWS: Final = dataset(DONE, DONE, SKIPPED, FAILED, FOUND, seconds=0.5)
_CHANGED: Final = dataset(
    replace(DONE, bytes_after=11_000), replace(DONE, bytes_before=30_000, bytes_after=31_000), command="add"
)
_PROBED: Final = dataset(probed("p", Presence.MAYBE, 1, 0), FAILED, command="probe")
_SAMPLED: Final = {"sampled_row_groups": 60, "sampled_files": 9, "seed": 7, "readers": ("spark", "trino")}
_FAILED: Final = tuple((f"lake/{number}.parquet", "it is cut off") for number in range(7))

FORMS: Final[dict[str, Callable[[], str]]] = {
    **{
        f"{name}.{suffix}": lambda write=write, whole=whole: write(whole)
        for name, whole in (("validate", gates.LAKE), ("validate-part", gates.PARTIAL))
        for suffix, write in {
            "txt": lambda whole: _lines(text_gate.gate(whole)),
            "github": lambda whole: _written(github.write, whole),
            "xml": lambda whole: _written(junit.write, whole),
            "sarif": _of_sarif,
        }.items()
    },
    "validate.json": lambda: json.dumps(json_report.document("validate", gates.LAKE), indent=1) + "\n",
    "inspect-files.txt": lambda: _lines(text_dataset.dataset(_ROWS)),
    "inspect-files.csv": lambda: _written(csv.write_rows, _ROWS),
    "add-files.txt": lambda: _lines(text_dataset.dataset(_CHANGED)),
    "probe-files.csv": lambda: _written(csv.write_rows, _PROBED),
    "advise.txt": lambda: _lines(text_advice.advice(advised(queries=LOG))),
    "advise-sample.txt": lambda: _lines(text_advice.advice(advised(failed=_FAILED, **_SAMPLED))),
    "advise.csv": lambda: _written(csv.write_advice, advised()),
    "trial.txt": lambda: _lines(text_trial.trial(TRIAL)),
    "trial.csv": lambda: _written(csv.write_trial, TRIAL),
    "find-reachable.txt": lambda: _lines(reachable(REACHABLE)),
    "find-reachable-proof.txt": lambda: _lines(
        reachable(replace(_CLEAN, certificate=Certificate(salt="00", value_hashes=())))
    ),
    "find-reachable-failed.txt": lambda: _lines(reachable(replace(_CLEAN, errors=({},), exit_code=3))),
}
"""The golden file of each form of each report, and what it has."""


def texts() -> Iterator[tuple[Path, str]]:
    """Each golden file and its text."""
    for name, write in FORMS.items():
        yield DATA / name, write()
