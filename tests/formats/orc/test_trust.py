"""The filters of an ORC file that readers may use: every rule of orc-core and ORC C++, on files that break it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyorc
import pytest
from support import orcfiles
from support.orcfiles import File

import bloomcli
from bloomcli.errors import UnsupportedError
from bloomcli.model.file import Presence, Severity

COLUMNS = {
    "int32": "42",
    "float64": "1.5",
    "string": "a",
    "binary": "0x61",
    "decimal_9_2": "1.5",
    "date": "2024-02-29",
    "timestamp": "1970-01-01",
    "timestamp_tz": "1970-01-01",
}
IDS = {name: list(orcfiles.CASES).index(name) + 1 for name in orcfiles.CASES}
TEXTS = ("string", "varchar", "char")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filters by pyarrow on every case."""
    folder = tmp_path_factory.mktemp("trust")
    return orcfiles.write(folder / "f", orcfiles.everything(40), blooms=IDS.values(), fpp=0.001)


def untrusted(path: Path) -> dict[str, str]:
    """Column -> why its filters must not be used, by inspect; probe and validate have to agree."""
    why = {s.column: s.untrusted for s in bloomcli.inspect(path, columns=list(COLUMNS)).summary}
    found = {f.column: f.message for f in bloomcli.validate(path).findings if f.id == "filter-untrusted"}
    for column, value in COLUMNS.items():
        (verdict,) = bloomcli.probe(path, [value], column=column).verdicts
        reason = why[column]
        if reason is None:
            assert column not in found
            local_time = column == "timestamp" and verdict.reason is not None
            assert verdict.presence is (Presence.UNKNOWN if local_time else Presence.MAYBE), column
        else:
            assert reason in found[column]
            assert (verdict.presence, verdict.reason) == (Presence.UNKNOWN, reason)
    return {column: reason for column, reason in why.items() if reason is not None}


def software(version: str | None, writer: int = 1) -> Callable[[File], None]:
    def edit(file: File) -> None:
        file.footer.writer = writer
        file.footer.ClearField("software_version")
        if version is not None:
            file.footer.software_version = version

    return edit


BAD = [None, "1.7.0", "1.6.0", "1.6.9", "1.6.10", "1.6.11", "1.6.11-SNAPSHOT", "1.7.0-SNAPSHOT"]
GOOD = ["1.6.12", "1.6.12-SNAPSHOT", "1.7.1", "2.2.2", "1.6.100"]


@pytest.mark.parametrize("version", [*BAD, *GOOD])
def test_no_filter_of_a_bad_cpp_writer_is_used(path: Path, tmp_path: Path, version: str | None) -> None:
    orcfiles.edited(path, tmp_path / "f", software(version))
    found = {s.column: s.untrusted for s in bloomcli.inspect(tmp_path / "f", columns=list(COLUMNS)).summary}
    assert found.keys() == COLUMNS.keys()
    for reason in found.values():
        assert (reason is None) == (version in GOOD)
        assert reason is None or ("ORC C++" in reason and (version or "unknown") in reason)


@pytest.mark.parametrize("version", [None, "2.2.2"])
def test_all_commands_agree_about_a_writer(path: Path, tmp_path: Path, version: str | None) -> None:
    orcfiles.edited(path, tmp_path / "f", software(version))
    assert untrusted(tmp_path / "f").keys() == (COLUMNS.keys() if version is None else set())


def test_no_value_is_lost_by_the_filters_on_tinyints_of_cpp(tmp_path: Path) -> None:
    """It overwrites the first eighth of the numbers before it hashes them."""
    bytes_, others = list(range(-100, 100)), list(range(200))
    table = {"a": pa.array(bytes_, pa.int8()), "b": pa.array(bytes_, pa.int8()), "n": pa.array(others)}
    path = orcfiles.write(tmp_path / "f", table, blooms=[1, 2, 3], fpp=0.0001)
    writer = bloomcli.inspect(path).created_by
    rows = [row for batch in bloomcli.find(path, bytes_[:25], column="a") for row in batch["row"].to_pylist()]
    assert rows == others[:25]
    assert all(v.presence is not Presence.ABSENT for v in bloomcli.probe(path, bytes_[:25], column="a").verdicts)
    found = {(f.id, f.column, f.severity) for f in bloomcli.validate(path, deep=True).findings}
    kinds = {("filter-untrusted", Severity.WARNING), ("value-missing", Severity.ERROR)}
    assert found == {(rule, column, severity) for rule, severity in kinds for column in ("a", "b")}

    bloomcli.add(path, ["a"], replace=True, in_place=True)  # takes out the other wrong one
    assert {f.column: f.untrusted for f in bloomcli.inspect(path).summary} == {"a": None, "n": None}
    assert bloomcli.validate(path, deep=True).findings == ()
    (absent,) = bloomcli.probe(path, [101], column="a").verdicts
    assert absent.presence is Presence.ABSENT

    marked = bloomcli.inspect(path).created_by
    bloomcli.remove(path, columns=["n"], in_place=True)
    assert bloomcli.inspect(path).created_by == marked != writer
    bloomcli.remove(path, in_place=True)
    assert bloomcli.inspect(path).created_by == writer


def test_no_value_is_lost_by_the_filters_on_chars_of_cpp(tmp_path: Path) -> None:
    """It hashes what follows a text in memory for its blanks. The bounds have none."""
    path = tmp_path / "f"
    with path.open("wb") as file, pyorc.Writer(file, "struct<c:char(4)>", bloom_filter_columns=[1]) as rows:
        rows.writerows([("!!!!",), ("a",), ("bc",), ("zzzz",)])
    found = bloomcli.find(path, ["a", "bc"], column="c").to_arrow()
    assert found["row"].to_pylist() == [1, 2]
    assert {f.id for f in bloomcli.validate(path, deep=True).findings} == {"filter-untrusted", "value-missing"}


@pytest.mark.parametrize(("writer", "version"), [(0, None), (2, "1.6.0"), (77, "1.6.0")])
def test_a_bad_version_of_cpp_is_none_of_another_writer(
    path: Path, tmp_path: Path, writer: int, version: str | None
) -> None:
    orcfiles.edited(path, tmp_path / "f", software(version, writer))
    assert untrusted(tmp_path / "f") == {}


def old_kinds(writer_version: int, string: int = 7) -> Callable[[File], None]:
    """BLOOM_FILTER streams by ORC Java; `string` is the type that the string column becomes."""

    def edit(file: File) -> None:
        software("1.9.0", 0)(file)
        file.postscript.writer_version = writer_version
        file.footer.types[IDS["string"]].kind = string
        file.footer.types[IDS["string"]].maximum_length = 400
        for column in IDS.values():
            file.old_kind(column)

    return edit


@pytest.mark.parametrize("version", [0, 2, 3, 5, 6, 9])
def test_old_streams_are_used_by_the_writers_version(path: Path, tmp_path: Path, version: int) -> None:
    orcfiles.edited(path, tmp_path / "f", old_kinds(version))
    found = untrusted(tmp_path / "f")
    assert "ORC-101" in found.pop("decimal_9_2")
    if version < 3:
        assert "HIVE-12055" in found.pop("string")
    if version < 6:
        assert "ORC-135" in found.pop("timestamp")
    assert found == {}


@pytest.mark.parametrize(("kind", "name"), [(7, "string"), (16, "varchar(400)"), (17, "char(400)")])
def test_old_streams_of_any_text_are_from_hive_12055_on(path: Path, tmp_path: Path, kind: int, name: str) -> None:
    for version in (2, 3):
        orcfiles.edited(path, tmp_path / "f", old_kinds(version, kind))
        (summary,) = bloomcli.inspect(tmp_path / "f", columns=["string"]).summary
        assert (summary.physical, summary.encoding) == (name, "BLOOM_FILTER")
        assert (summary.untrusted is None) == (version >= 3)


def test_old_streams_hold_timestamps_in_local_time_so_no_answer_is_given(path: Path, tmp_path: Path) -> None:
    orcfiles.edited(path, tmp_path / "f", old_kinds(6))
    (verdict,) = bloomcli.probe(tmp_path / "f", ["2000-01-01"], column="timestamp").verdicts
    assert verdict.presence is Presence.UNKNOWN
    assert "local time" in (verdict.reason or "")
    deep = bloomcli.validate(tmp_path / "f", columns=["timestamp"], deep=True)
    assert (deep.values_checked, deep.findings) == (0, ())


def versioned(*version: int) -> Callable[[File], None]:
    """ORC Java's file of a version; its decimals of up to 18 digits are then numbers."""

    def edit(file: File) -> None:
        software("2.3.0", 0)(file)
        file.postscript.version[:] = version

    return edit


def test_short_decimals_in_files_of_an_unreleased_version_are_not_looked_up(path: Path, tmp_path: Path) -> None:
    """orc-core's Decimal64TreeWriter hashes them as numbers; its reader looks their texts up and loses them."""
    orcfiles.edited(path, tmp_path / "f", versioned(1, 9999))
    found = untrusted(tmp_path / "f")
    assert "version 1.9999" in found.pop("decimal_9_2")
    assert found == {}
    columns = ["decimal_9_2", "decimal_38_10"]
    with pytest.raises(UnsupportedError, match=r"file version 1\.9999"):
        bloomcli.validate(tmp_path / "f", columns=columns, deep=True)
    report = bloomcli.validate(tmp_path / "f", columns=columns)
    assert [(f.id, f.column, f.severity) for f in report.findings] == [
        ("filter-untrusted", "decimal_9_2", Severity.WARNING)
    ]
    assert "--replace" not in (report.findings[0].hint or ""), "add refuses the file"
    orcfiles.edited(path, tmp_path / "f", versioned(0, 12))
    assert untrusted(tmp_path / "f") == {}


LENGTHS = {"l": [[1, 2]], "m": [[("k", 1), ("l", 2)]]}


@pytest.mark.parametrize("column", [*LENGTHS, "u"])
def test_what_cpp_leaves_out_of_filters_of_lists_maps_and_unions_is_never_absent(tmp_path: Path, column: str) -> None:
    types = {"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}
    table = {name: pa.array(LENGTHS[name] * 9, types[name]) for name in types}
    table["u"] = pa.UnionArray.from_sparse(pa.array([0] * 9, pa.int8()), [pa.array(range(9))])
    path = orcfiles.write(tmp_path / "f", {column: table[column]}, blooms=[1])
    bits = bloomcli.dump(path, column=column).bitset
    assert not any(bits), "ORC C++ inserts these by now: trust its filters from that version on"
    (verdict,) = bloomcli.probe(path, ["2" if column in LENGTHS else "0"], column=column).verdicts
    assert verdict.presence is Presence.UNKNOWN
    assert "leaves lengths" in (verdict.reason or "")
    findings = bloomcli.validate(path, deep=True).findings
    values = "value-missing" if column in LENGTHS else "filter-not-checked"
    assert {f.id for f in findings} == {"filter-all-zero", values}
    for finding in findings:
        assert finding.severity is Severity.NOTE
        if finding.id != "filter-not-checked":
            assert "no reader looks them up" in finding.message
            assert "readers lose" not in finding.message
            assert finding.hint == (
                f"`bloom remove {path} --columns {column} --in-place` takes it out; the column gets no other: it has"
                " no values of its own"
            )
    orcfiles.edited(path, path, software(None, 0))
    (finding,) = bloomcli.validate(path).findings
    assert (finding.id, finding.severity) == ("filter-all-zero", Severity.ERROR)


def encoding(value: int | None, *columns: str) -> Callable[[File], None]:
    def edit(file: File) -> None:
        for part in file.stripes:
            for column in columns:
                part.footer.columns[IDS[column]].ClearField("bloom_encoding")
                if value is not None:
                    part.footer.columns[IDS[column]].bloom_encoding = value

    return edit


def test_an_encoding_of_the_future_is_not_used(path: Path, tmp_path: Path) -> None:
    some = list(COLUMNS)[::2]
    orcfiles.edited(path, tmp_path / "f", encoding(2, *some))
    assert untrusted(tmp_path / "f") == dict.fromkeys(some, "bloomEncoding 2 is not known")


@pytest.mark.parametrize("value", [None, 0])
def test_without_an_encoding_timestamps_are_in_local_time_and_cpp_ignores_the_rest(
    path: Path, tmp_path: Path, value: int | None
) -> None:
    orcfiles.edited(path, tmp_path / "f", encoding(value, *COLUMNS))
    assert list(untrusted(tmp_path / "f")) == ["timestamp"]
    findings = bloomcli.validate(tmp_path / "f", columns=list(COLUMNS)).findings
    found = [(f.column, f.severity) for f in findings if f.id == "filter-encoding"]
    assert sorted(found) == [(column, Severity.WARNING) for column in sorted(COLUMNS)]


def test_of_two_streams_the_newer_one_is_used(path: Path, tmp_path: Path) -> None:
    """The old filter is empty: if it were used, every value would be absent."""

    def edit(file: File) -> None:
        index = file.filters(IDS["int32"])
        for item in index.bloom_filter:
            item.bitset.extend([0] * (len(item.utf8bitset) // 8))
            item.ClearField("utf8bitset")
        place = file.place(orcfiles.BLOOM_FILTER_UTF8, IDS["int32"])
        file.insert(place, orcfiles.BLOOM_FILTER, IDS["int32"], index.SerializeToString())

    orcfiles.edited(path, tmp_path / "f", edit)
    assert {s.encoding for s in bloomcli.inspect(tmp_path / "f", columns=["int32"]).summary} == {
        "BLOOM_FILTER",
        "BLOOM_FILTER_UTF8",
    }
    (verdict,) = bloomcli.probe(tmp_path / "f", ["42"], column="int32").verdicts
    assert verdict.presence is Presence.MAYBE
    found = {(f.id, f.severity) for f in bloomcli.validate(tmp_path / "f", columns=["int32"], deep=True).findings}
    assert found == {("filter-all-zero", Severity.ERROR), ("value-missing", Severity.ERROR)}
