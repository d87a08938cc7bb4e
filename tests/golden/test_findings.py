"""The findings in every fixture and every file of the corpus: the exact rules and columns, shallow and deep.

All findings are correct: parquet-java's boolean filter, the drafts of 2018, wrong hashes of ORC C++ and old writers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.golden import files

import bloomcli
from bloomcli.errors import UnsupportedError
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
    "cpp_types.orc": {("value-missing", "tiny"), ("value-missing", "moment")},
    "pyorc_types.orc": {("value-missing", "code")},
}
"""What only values show."""
ENCRYPTED: Final = "pyarrow_encrypted_footer.parquet"

CORPUS: Final[dict[str, Found]] = {
    "dict-page-offset-zero.parquet": set(),
    "data_index_bloom_encoding_stats.parquet": {("filter-no-length", "String")},
    "TestOrcFile.emptyFile.orc": set(),
    "TestOrcFile.testPredicatePushdown.orc": set(),
    "bad_bloom_filter_1.6.0.orc": {("filter-untrusted", None)},
    "decimal.orc": set(),
    "orc_split_elim_new.orc": set(),
}
FILTERED: Final = {"data_index_bloom_encoding_stats.parquet", "bad_bloom_filter_1.6.0.orc"}
"""Those of them that have filters."""


def found(path: Path, *, deep: bool) -> Found:
    """Rules and columns; what is said against a whole file, and not noted, is what counts."""
    report = bloomcli.validate(path, deep=deep)
    assert report.ok == all(f.severity is Severity.NOTE for f in report.findings)
    return {(f.id, f.column) for f in report.findings}


@pytest.mark.parametrize("path", [p for p in files() if p.name != ENCRYPTED], ids=lambda path: path.name)
def test_a_fixture_has_exactly_what_is_known_to_be_wrong_with_it(path: Path) -> None:
    assert found(path, deep=False) == SHALLOW.get(path.name, set())
    assert found(path, deep=True) == SHALLOW.get(path.name, set()) | VALUES.get(path.name, set())


def test_every_file_that_something_is_known_of_is_there() -> None:
    names = {path.name for path in files()}
    assert {*SHALLOW, *VALUES, ENCRYPTED} <= names
    assert len(names) > 25


def test_of_an_encrypted_footer_nothing_can_be_said() -> None:
    (path,) = [p for p in files() if p.name == ENCRYPTED]
    for deep in (False, True):
        with pytest.raises(UnsupportedError, match="encrypted"):
            bloomcli.validate(path, deep=deep)


@pytest.mark.parametrize("deep", [False, True])
def test_a_file_of_the_corpus_has_exactly_what_is_known_to_be_wrong_with_it(corpus: Path, deep: bool) -> None:
    names = {p.name for p in corpus.iterdir() if p.suffix in {".parquet", ".orc", ".mosaic"}}
    assert names == set(CORPUS)
    for name, expected in CORPUS.items():
        report = bloomcli.validate(corpus / name, deep=deep)
        assert {(f.id, None if f.id == "filter-untrusted" else f.column) for f in report.findings} == expected, name
        assert bool(report.filters_checked) == (name in FILTERED)


def test_the_corpus_file_of_the_bad_writer_is_untrusted_in_every_column(corpus: Path) -> None:
    path = corpus / "bad_bloom_filter_1.6.0.orc"
    filtered = {fact.column for fact in bloomcli.inspect(path).filters}
    for deep in (False, True):
        findings = bloomcli.validate(path, deep=deep).findings
        assert {f.column for f in findings} == filtered
        assert {f.severity for f in findings} == {Severity.WARNING}
