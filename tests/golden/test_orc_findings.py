"""Findings of a deep check in the ORC fixtures: none in those by orc-core, wrong filters in those by ORC C++."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import ORC
from support.orcwalk import Orc

import bloomcli
from bloomcli.model.file import Severity

FIXTURES = sorted(ORC.glob("*.orc"))
EXPECTED = {
    # ORC C++ hashes tinyints from the buffer that it has packed over them (ByteColumnWriter::add), and pyarrow
    # hands it negative nanoseconds for moments before 1970, so that milliseconds are rounded up
    "cpp_types": {("filter-untrusted", "tiny"), ("value-missing", "tiny"), ("value-missing", "moment")},
    # ORC C++ hashes a char's padded length from the buffer that isn't padded (CharColumnWriter::add)
    "pyorc_types": {("filter-untrusted", "code"), ("value-missing", "code")},
    "java_both_kinds": {("filter-untrusted", "price")},
    "java_encrypted": {("filter-plaintext", "secret")},
}
WRONG = {name: sorted({column for _, column in EXPECTED[name]}) for name in ("cpp_types", "pyorc_types")}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_deep_check_finds_fault_with_the_filters_that_are_wrong_and_no_others(path: Path) -> None:
    report = bloomcli.validate(path, deep=True)
    assert {(f.id, f.column) for f in report.findings} == EXPECTED.get(path.stem, set())
    assert bool(report.values_checked) == bool(report.filters_checked)


@pytest.mark.parametrize("name", WRONG)
def test_replaced_filters_hold_every_value(name: str, tmp_path: Path) -> None:
    mended = tmp_path / "mended.orc"
    report = bloomcli.add(ORC / f"{name}.orc", WRONG[name], output=mended, replace=True)
    assert {c.action for c in report.changes} == {"replace"}
    checked = bloomcli.validate(mended, deep=True)
    assert checked.findings == ()
    assert checked.values_checked > sum(c.values or 0 for c in report.changes)


def test_of_an_old_kind_of_filter_decimals_alone_are_not_to_be_trusted() -> None:
    report = bloomcli.validate(ORC / "java_both_kinds.orc")
    assert {(f.severity, f.column) for f in report.findings} == {(Severity.WARNING, "price")}
    kinds = {(f.column, f.encoding) for f in bloomcli.inspect(ORC / "java_both_kinds.orc").filters}
    columns = ("id", "name", "price", "moment")
    assert kinds == {(c, k) for c in columns for k in ("BLOOM_FILTER", "BLOOM_FILTER_UTF8")}


@pytest.mark.parametrize("name", ["java_bare", "java_none", "cpp_empty"])
def test_filters_that_were_added_and_removed_leave_the_very_same_bytes(name: str, tmp_path: Path) -> None:
    path = ORC / f"{name}.orc"
    added, removed = tmp_path / "added.orc", tmp_path / "removed.orc"
    report = bloomcli.add(path, Orc(path).hashable, output=added)
    assert bool(report.changes) == (name != "cpp_empty")
    bloomcli.remove(added, output=removed)
    assert removed.read_bytes() == path.read_bytes()
