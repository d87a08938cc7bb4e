"""validate on ORC files: faults of filters, found with and without reading the columns."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import orcfiles
from support.orcfiles import CASES, File

import bloomcli
from bloomcli.errors import CorruptFile, UnsupportedError
from bloomcli.formats.orc import spec
from bloomcli.model.file import Presence, Severity
from bloomcli.model.validate import Finding, ValidateReport

ID, TEXT = 1, 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """40 rows in 2 stripes of 2 row groups, filters by bloom on both columns."""
    table = {"id": range(40), "text": [f"t{i}" if i % 4 else None for i in range(40)]}
    orcfiles.write(tmp_path / "plain", table, stripe=20, stride=10)
    bloomcli.add(tmp_path / "plain", ["*"], output=tmp_path / "f", fpp=0.001)
    return tmp_path / "f"


def check(path: Path, edit: Callable[[File], object], **options: Any) -> ValidateReport:
    """The report about the edited file."""
    orcfiles.edited(path, path.with_name("edited"), edit)
    return bloomcli.validate(path.with_name("edited"), **options)


def only(report: ValidateReport, id: str) -> Finding:  # noqa: A002
    (finding,) = report.findings
    assert finding.id == id, finding
    return finding


def test_a_file_by_bloom_has_nothing_wrong_and_every_value_is_looked_up(path: Path) -> None:
    report = bloomcli.validate(path, deep=True, require=["*"], max_fpp=0.002)
    assert report.findings == ()
    assert (report.filters_checked, report.values_checked, report.ok) == (8, 40 + 30, True)
    some = bloomcli.validate(path, columns=["text"], deep=True)
    assert (some.filters_checked, some.values_checked) == (4, 30)
    assert bloomcli.validate(path).values_checked == 0


def changed(column: int, stripe: int, change: Callable[[Any], object]) -> Callable[[File], None]:
    """An edit of a column's BloomFilterIndex."""

    def edit(file: File) -> None:
        index = file.filters(column, stripe)
        change(index)
        file.set_filters(column, index, stripe)

    return edit


def bitset(group: int, bits: bytes) -> Callable[[Any], object]:
    return lambda index: setattr(index.bloom_filter[group], "utf8bitset", bits)


def functions(group: int, count: int) -> Callable[[Any], object]:
    return lambda index: setattr(index.bloom_filter[group], "num_hash_functions", count)


BROKEN: dict[str, tuple[str, str, Callable[[Any], object]]] = {
    "no bits": ("filter-num-bytes", "a bitset of 0 bytes", bitset(1, b"")),
    "odd bits": ("filter-num-bytes", "a bitset of 13 bytes", bitset(0, bytes(13))),
    "no functions": ("filter-hash-functions", "0 hash functions", functions(1, 0)),
    "functions not given": (
        "filter-hash-functions",
        "0 hash functions",
        lambda i: i.bloom_filter[0].ClearField("num_hash_functions"),
    ),
    "too many functions": ("filter-hash-functions", "4294967295 hash functions", functions(0, (1 << 32) - 1)),
    "too few filters": ("filter-count", "1 filter for 2 row groups", lambda i: i.bloom_filter.pop()),
    "no filters": ("filter-count", "0 filters for 2 row groups", lambda i: i.ClearField("bloom_filter")),
    "too many filters": ("filter-count", "3 filters for 2", lambda i: i.bloom_filter.append(i.bloom_filter[0])),
    "bits of the other kind": (
        "filter-num-bytes",
        "a bitset of 0 bytes",
        lambda i: (i.bloom_filter[0].bitset.append(7), i.bloom_filter[0].ClearField("utf8bitset")),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_filters_that_readers_cant_use_are_errors(path: Path, name: str) -> None:
    id_, message, change = BROKEN[name]
    for deep in (False, True):
        report = check(path, changed(TEXT, 1, change), deep=deep)
        finding = only(report, id_)
        assert message in finding.message
        assert (finding.severity, finding.column, finding.stripe) == (Severity.ERROR, "text", 1)
        assert "--replace" in (finding.hint or "")
        assert finding.offset is not None
        assert report.values_checked == (40 + 15 if deep else 0), "the other filters are checked nevertheless"


def test_a_row_group_of_nulls_has_a_filter_without_a_bit(tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "plain", {"c": [None] * 10 + [1, 2]}, stride=10)
    bloomcli.add(tmp_path / "plain", ["c"], output=tmp_path / "f")
    assert not any(bloomcli.dump(tmp_path / "f").bitset)
    assert bloomcli.validate(tmp_path / "f", deep=True).findings == ()


def test_only_the_first_missing_values_are_named_each_once(path: Path) -> None:
    bits = (1).to_bytes(16, "little")
    report = check(path, changed(TEXT, 0, bitset(0, bits)), deep=True)
    finding = only(report, "value-missing")
    assert finding.missing == ("t1", "t2", "t3", "t5", "t6")
    assert "7 of 7 values" in finding.message


def test_deep_looks_up_every_value_of_every_type(tmp_path: Path) -> None:
    """Filters of zero bits are wrong for every value."""
    table = {name: case.array(33) for name, case in CASES.items()}
    orcfiles.write(tmp_path / "plain", table, stride=10)
    bloomcli.add(tmp_path / "plain", ["*"], output=tmp_path / "f", fpp=1e-6)
    counts = {name: len(array) - array.null_count for name, array in table.items()}
    assert bloomcli.validate(tmp_path / "f", deep=True).values_checked == sum(counts.values())

    def empty(index: Any) -> None:
        for item in index.bloom_filter:
            item.utf8bitset = bytes(len(item.utf8bitset))

    report = check(tmp_path / "f", lambda f: [changed(c + 1, 0, empty)(f) for c in range(len(CASES))], deep=True)
    for rule in ("value-missing", "filter-all-zero"):
        found = [f.column for f in report.findings if f.id == rule]
        assert {name: found.count(name) for name in CASES} == {name: 4 if counts[name] else 0 for name in CASES}


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([1_000_000_001], pa.timestamp("ns"), "1970-01-01T00:00:01.000000001"),
        ([1_000_000_001], pa.timestamp("ns", "UTC"), "1970-01-01T00:00:01.000000001Z"),
        ([b"\xff\x00a"], pa.binary(), "0xff0061"),
        ([9_999_999], pa.date32(), "29349-01-25"),
        ([Decimal("-12.00")], pa.decimal128(9, 2), "-12.00"),
    ],
    ids=str,
)
def test_a_missing_value_is_named_though_python_has_no_such_value(
    tmp_path: Path, values: list[Any], kind: pa.DataType, text: str
) -> None:
    orcfiles.write(tmp_path / "plain", {"c": pa.array(values, kind)})
    bloomcli.add(tmp_path / "plain", ["c"], output=tmp_path / "f")
    report = check(tmp_path / "f", changed(1, 0, bitset(0, bytes(8))), deep=True)
    (missing,) = (f.missing for f in report.findings if f.id == "value-missing")
    assert [text in m for m in missing] == [True], missing


def test_a_string_that_is_no_utf8_is_hashed_and_named(tmp_path: Path) -> None:
    """Hive's strings hold any bytes."""
    orcfiles.write(tmp_path / "binary", {"c": [b"\xff\xfe", b"ok"]})
    orcfiles.edited(tmp_path / "binary", tmp_path / "plain", lambda f: setattr(f.footer.types[1], "kind", 7))
    bloomcli.add(tmp_path / "plain", ["c"], output=tmp_path / "f")
    assert bloomcli.validate(tmp_path / "f", deep=True).findings == ()
    report = check(tmp_path / "f", changed(1, 0, bitset(0, bytes(8))), deep=True)
    assert report.findings[-1].missing == ("\udcff\udcfe", "ok")


def test_filters_of_encrypted_columns_are_an_error_and_never_read_and_can_be_removed(path: Path) -> None:
    report = check(path, orcfiles.encrypted(TEXT), deep=True)
    assert [(f.id, f.severity, f.column) for f in report.findings] == [
        ("filter-plaintext", Severity.ERROR, "text"),
        ("filter-plaintext", Severity.ERROR, "text"),
    ]
    assert report.values_checked == 40
    facts = bloomcli.inspect(path.with_name("edited")).filters
    (problem,) = {f.problem for f in facts if f.column == "text"}
    assert problem is not None and problem.startswith("the column is encrypted, and these filters aren't")
    assert {f.problem for f in facts if f.column == "id"} == {None}
    edited = path.with_name("edited")
    assert f"bloom remove {edited} --columns text --in-place" in (report.findings[0].hint or "")
    bloomcli.remove(edited, columns=["text"], in_place=True)
    assert bloomcli.validate(edited, deep=True).findings == ()
    assert {f.column for f in bloomcli.inspect(edited).filters} == {"id"}


def money(rows: int) -> pa.Array:
    return CASES["decimal_9_2"].array(rows)


def not_checked(report: ValidateReport) -> dict[str, str]:
    """The reason of each column's note. Asserts that there are only notes."""
    assert {(f.id, f.severity) for f in report.findings} == {("filter-not-checked", Severity.NOTE)}
    assert report.ok
    return {f.column or "": f.message.rpartition(": ")[2] for f in report.findings}


def test_filters_in_a_union_are_reported_and_the_others_checked(tmp_path: Path) -> None:
    union = pa.UnionArray.from_sparse(pa.array([0, 1] * 5, pa.int8()), [pa.array(range(10)), money(10)])
    path = orcfiles.write(tmp_path / "f", {"id": range(10), "u": union}, blooms=range(5))
    orcfiles.edited(path, path, lambda f: setattr(f.footer, "writer", spec.ORC_JAVA))
    report = bloomcli.validate(path, columns=["id", "u.*"], deep=True)
    assert report.values_checked == 10
    assert not_checked(report) == dict.fromkeys(("u.0", "u.1"), "it lies within a union")
    assert bloomcli.validate(path, columns=["id"], deep=True).findings == ()
    assert bloomcli.validate(path, columns=["u.*"]).findings == (), "without --deep nobody expects it"


def test_a_column_without_a_name_is_checked_and_not_taken_for_the_root(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(range(9)), money(9)], names=["", "d"])
    path = orcfiles.write(tmp_path / "f", table, blooms=[0, 1, 2])
    report = bloomcli.validate(path, deep=True)
    assert (report.findings, report.values_checked) == ((), 9 + sum(v.is_valid for v in money(9)))
    assert [(s.column, s.filters) for s in bloomcli.inspect(path).summary] == [
        ("(root)", 1),
        ("(no name)", 1),
        ("d", 1),
    ]
    assert bloomcli.probe(path, ["3"], column="(no name)").totals[0].presence is Presence.MAYBE


def test_a_decimal_of_more_digits_than_there_are_is_reported_and_the_others_checked(tmp_path: Path) -> None:
    table = {"wide": money(9), "d": money(9), "i": range(9)}
    path = orcfiles.write(tmp_path / "f", table, blooms=[1, 2, 3])
    orcfiles.edited(path, path, orcfiles.typed(1, precision=60))
    report = bloomcli.validate(path, deep=True)
    assert report.values_checked == 9 + sum(v.is_valid for v in money(9))
    assert not_checked(report).keys() == {"wide"}
    with pytest.raises(UnsupportedError, match=r"column wide is decimal\(60,2\)"):
        bloomcli.add(path, ["wide"], output=tmp_path / "out", replace=True)
    changes = bloomcli.add(path, ["*"], output=tmp_path / "out", replace=True).changes
    assert {c.column: c.action for c in changes} == {"wide": "keep", "d": "replace", "i": "replace"}


def test_an_encrypted_columns_statistics_are_its_masks_and_say_nothing_of_profit(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"id": range(9), "text": ["xxx"] * 9}, blooms=[TEXT])
    advice = tmp_path / "bloom.toml"
    advice.write_text("max-fpp = 0.9")
    assert [f.id for f in bloomcli.validate(path, policy=advice).findings] == ["profit-constant"]
    orcfiles.edited(path, path, orcfiles.encrypted(TEXT))
    assert [f.id for f in bloomcli.validate(path, policy=advice).findings] == ["filter-plaintext"]


def test_filters_of_structs_by_arrows_writer_hold_nothing_and_are_no_error(tmp_path: Path) -> None:
    path = orcfiles.write(tmp_path / "f", {"st": [{"x": 1}, {"x": 2}]}, blooms=[0, 1, 2])
    report = bloomcli.validate(path, deep=True)
    assert report.findings == ()  # it sets no bloomEncoding for its structs' streams: no reader looks them up
    assert report.values_checked == 2


def test_data_that_cant_be_decoded_is_an_unreadable_file(path: Path) -> None:
    orcfiles.edited(path, path.with_name("edited"), orcfiles.replaced(2, TEXT, b"\xff" * 3))
    assert bloomcli.validate(path.with_name("edited")).ok
    with pytest.raises(CorruptFile, match="the stream ends before the stripe's last value"):
        bloomcli.validate(path.with_name("edited"), deep=True)
