"""The text of `find --reachable`: places that the same things keep come together, and statements are whole lines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bloomcli.model.find import Certificate, LookedAt, Place, ReachableReport
from bloomcli.report import render
from bloomcli.report.fitting import fit
from bloomcli.report.text_find import reachable

EXPIRY = "CALL ice.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2026-11-26 16:20:15.480 UTC')"
NOTE = "VACUUM harms running writers and readers, so that it is run while nothing else uses the table, or much later"
PLACE = Place(kind="data files", path="/lake/t/part-1.parquet", rows=2, kept_by=("tag `may`",), ends=(EXPIRY,))
REPORT = ReachableReport(
    table="ice.db.t", location="/lake/t", format="iceberg", column="id", time="2026-11-26T16:00:00Z", bloom="0.1.0",
    version=2, versions=(1, 2), refs=("branch main",), values=3, values_found=1, metadata_files=4,
    looked_at=(LookedAt(kind="data files", files=9, by_filter=7, by_scan=2),
               LookedAt(kind="deletion vectors", files=1, without_values=1)),
    places=(*(replace(PLACE, path=f"/lake/t/part-{number}.parquet") for number in range(5)),
            replace(PLACE, kind="bounds in manifests", path="/lake/t/m0.avro", rows=0, part=True)),
    statements=(EXPIRY,), notes=(NOTE,), not_looked_at=("backups",),
)  # fmt: skip


def test_places_that_the_same_things_keep_come_together() -> None:
    assert list(render.plain(reachable(REPORT))) == [
        "1 of 3 values of id is still in all that ice.db.t reaches: in 6 places",
        "",
        "data files: 10 rows, 0 not deleted",
        "  /lake/t/part-0.parquet",
        "  /lake/t/part-1.parquet",
        "  /lake/t/part-2.parquet",
        "  and 2 more, which --format json lists",
        "  kept by: tag `may`",
        "",
        "bounds in manifests: the beginning of a value, perhaps of another one",
        "  /lake/t/m0.avro",
        "  kept by: tag `may`",
        "",
        "statements that end this, in this order; look again afterwards:",
        f"  {EXPIRY};",
        f"note: {NOTE}",
        "",
        "looked at: data files: 9; 7 ruled out by filters, statistics or schema, 2 read",
        "looked at: deletion vectors: 1; 1 not opened: only row numbers",
        "looked at: 4 files of metadata",
        "not looked at: backups",
    ]


@pytest.mark.parametrize("columns", [80, 120])
def test_prose_wraps_at_the_terminal_s_width_and_statements_do_not(columns: int) -> None:
    lines = ["".join(text for text, _ in pieces) for pieces in fit(reachable(REPORT), columns)]
    assert f"  {EXPIRY};" in lines
    assert all(len(text) <= columns for text in lines if EXPIRY not in text)


def test_a_report_without_places_says_whether_it_is_a_proof() -> None:
    clean = replace(REPORT, places=(), statements=(), notes=(), values_found=0, exit_code=0)
    proof = list(render.plain(reachable(replace(clean, certificate=Certificate(salt="00", value_hashes=())))))
    assert proof[0] == "nothing left: all that ice.db.t reaches has none of 3 values of id"
    failed = list(render.plain(reachable(replace(clean, errors=({},), exit_code=3))))  # type: ignore[arg-type]
    assert failed[0] == "no value was found in what could be searched of all that ice.db.t reaches"
    assert failed[-1] == "failed: 1 file, in which there may be more; there is no certificate"
