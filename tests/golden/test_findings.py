"""The findings in every fixture and every file of the corpus: the exact rules and columns, shallow and deep.

All findings are correct: parquet-java's boolean filter, the drafts of 2018, wrong hashes of ORC C++ and old writers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.golden import ORC, files

import bloomcli
from bloomcli.model.file import Severity

Found = set[tuple[str, str | None]]

SHALLOW: Final[dict[str, Found]] = {
    "spark_types.parquet": {("filter-boolean", "flag")},
    **{
        f"draft_{form}.parquet": {("filter-draft", "id"), ("filter-draft", "user.email")}
        for form in ("12byte", "header", "page")
    },
    "java_both_kinds.orc": {("filter-untrusted", "price")},
    "cpp_types.orc": {("filter-untrusted", "tiny")},
    "pyorc_types.orc": {("filter-untrusted", "code")},
    "java_encrypted.orc": {("filter-plaintext", "secret")},
    **{f"pyarrow_{name}.parquet": {("footer-unverified", None)} for name in ("encrypted_columns", "signed")},
}
"""By file; nothing is found in the others."""
VALUES: Final[dict[str, Found]] = {
    # ORC C++ hashes tinyints from the buffer that it has packed over them (ByteColumnWriter::add), and pyarrow
    # hands it negative nanoseconds for moments before 1970, so that milliseconds are rounded up
    "cpp_types.orc": {("value-missing", "tiny"), ("value-missing", "moment")},
    # ORC C++ hashes a char's padded length from the buffer that isn't padded (CharColumnWriter::add)
    "pyorc_types.orc": {("value-missing", "code")},
}
"""What only values show."""
ENCRYPTED: Final = "pyarrow_encrypted_footer.parquet"
"""Nothing can be said of it without its key."""

CORPUS: Final[dict[str, Found]] = {
    "dict-page-offset-zero.parquet": set(),
    "data_index_bloom_encoding_stats.parquet": {("filter-no-length", "String")},
    "TestOrcFile.emptyFile.orc": set(),
    "TestOrcFile.testPredicatePushdown.orc": set(),
    "bad_bloom_filter_1.6.0.orc": {("filter-untrusted", "id"), ("filter-untrusted", "name")},
    "decimal.orc": set(),
    "orc_split_elim_new.orc": set(),
}
FILTERED: Final = {"data_index_bloom_encoding_stats.parquet", "bad_bloom_filter_1.6.0.orc"}
"""Those of them that have filters."""


def found(path: Path, *, deep: bool) -> Found:
    """Rules and columns; what is said against a whole file, and not noted, is what counts."""
    report = bloomcli.validate(path, deep=deep)
    assert report.ok == all(f.severity is Severity.NOTE for f in report.findings)
    if path.name in CORPUS:
        assert bool(report.filters_checked) == (path.name in FILTERED)
    return {(f.id, f.column) for f in report.findings}


@pytest.mark.parametrize("path", [p for p in files() if p.name != ENCRYPTED], ids=lambda path: path.name)
def test_a_fixture_has_exactly_what_is_known_to_be_wrong_with_it(path: Path) -> None:
    assert found(path, deep=False) == SHALLOW.get(path.name, set())
    assert found(path, deep=True) == SHALLOW.get(path.name, set()) | VALUES.get(path.name, set())


def test_every_file_that_something_is_known_of_is_there() -> None:
    assert {*SHALLOW, *VALUES, ENCRYPTED} <= {path.name for path in files()}


@pytest.mark.parametrize("deep", [False, True])
def test_a_file_of_the_corpus_has_exactly_what_is_known_to_be_wrong_with_it(corpus: Path, deep: bool) -> None:
    paths = [p for p in corpus.iterdir() if p.suffix in {".parquet", ".orc", ".mosaic"}]
    assert {path.name: found(path, deep=deep) for path in paths} == CORPUS


@pytest.mark.parametrize("name", VALUES)
def test_replaced_filters_hold_every_value_that_orc_cpp_lost(name: str, tmp_path: Path) -> None:
    wrong = sorted({column for _, column in VALUES[name] if column})
    report = bloomcli.add(ORC / name, wrong, output=tmp_path / "f.orc", replace=True)
    assert {c.action for c in report.changes} == {"replace"}
    checked = bloomcli.validate(tmp_path / "f.orc", deep=True)
    assert checked.findings == ()
    assert checked.values_checked > sum(c.values or 0 for c in report.changes)
