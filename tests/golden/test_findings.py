"""The findings in the files of the corpus, shallow and deep, and what `add` mends of the filters of ORC C++.

All findings are correct: wrong hashes of ORC C++ and old writers. `test_command_reports` has those in every fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.golden import ORC

import bloomcli
from bloomcli.model.file import Severity

CORPUS: Final[dict[str, set[tuple[str, str | None]]]] = {
    "dict-page-offset-zero.parquet": set(),
    "data_index_bloom_encoding_stats.parquet": {("filter-no-length", "String")},
    "TestOrcFile.emptyFile.orc": set(),
    "TestOrcFile.testPredicatePushdown.orc": set(),
    "bad_bloom_filter_1.6.0.orc": {("filter-untrusted", "id"), ("filter-untrusted", "name")},
    "decimal.orc": set(),
    "orc_split_elim_new.orc": set(),
}
"""Rules and columns by file."""
FILTERED: Final = {"data_index_bloom_encoding_stats.parquet", "bad_bloom_filter_1.6.0.orc"}
"""Those of them that have filters."""


@pytest.mark.parametrize("deep", [False, True])
def test_a_file_of_the_corpus_has_exactly_what_is_known_to_be_wrong_with_it(corpus: Path, deep: bool) -> None:
    paths = [p for p in corpus.iterdir() if p.suffix in {".parquet", ".orc", ".mosaic"}]
    reports = {path.name: bloomcli.validate(path, deep=deep) for path in paths}
    assert {name: {(f.id, f.column) for f in report.findings} for name, report in reports.items()} == CORPUS
    assert {name for name, report in reports.items() if report.filters_checked} == FILTERED
    assert all(r.ok == all(f.severity is Severity.NOTE for f in r.findings) for r in reports.values())


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        # ORC C++ hashes tinyints from the buffer that it has packed over them (ByteColumnWriter::add), and pyarrow
        # hands it negative nanoseconds for moments before 1970, so that milliseconds are rounded up
        ("cpp_types.orc", ["moment", "tiny"]),
        # ORC C++ hashes a char's padded length from the buffer that isn't padded (CharColumnWriter::add)
        ("pyorc_types.orc", ["code"]),
    ],
)
def test_replaced_filters_hold_every_value_that_orc_cpp_lost(name: str, columns: list[str], tmp_path: Path) -> None:
    lost = {f.column for f in bloomcli.validate(ORC / name, deep=True).findings if f.id == "value-missing"}
    assert lost == set(columns)
    report = bloomcli.add(ORC / name, columns, output=tmp_path / "f.orc", replace=True)
    assert {c.action for c in report.changes} == {"replace"}
    checked = bloomcli.validate(tmp_path / "f.orc", deep=True)
    assert checked.findings == ()
    assert checked.values_checked > sum(c.values or 0 for c in report.changes)
