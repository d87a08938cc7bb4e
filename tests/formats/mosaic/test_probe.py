"""Mosaic files: probe of every type, findings of validate, dump, and a missing package."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support import blooms
from support.golden import MOSAIC
from support.mosaicfiles import DRAFT, Parts, read, write

import bloomcli
from bloomcli.errors import CorruptFile, LiteralError, UnsupportedError, UsageError, install
from bloomcli.model.file import Presence, Severity

DRAFT_FILE = MOSAIC / "draft_types.mosaic"
FILTERED = ("big", "day", "flag", "real", "small", "text", "tiny", "whole", "wide")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two row groups of 50 rows with filters on two columns by bloom, no statistics, nothing compressed."""
    table = pa.table({"id": pa.array(range(100), pa.int64()), "n": [f"n{i}" if i % 3 else None for i in range(100)]})
    plain = write(tmp_path / "plain.mosaic", table, batch=50, num_buckets=2, compression=0)
    bloomcli.add(plain, ["id", "n"], output=tmp_path / "f.mosaic", **DRAFT)
    return tmp_path / "f.mosaic"


@pytest.mark.parametrize("column", FILTERED)
def test_every_value_of_the_drafts_own_file_may_be_there_and_others_are_absent(column: str) -> None:
    """Its filters are by the draft's writer: that we find its values shows that we hash as it does."""
    data = bloomcli.inspect(DRAFT_FILE)
    assert {f.column for f in data.filters} == set(FILTERED)
    values = _values(column)
    presence = {t.value: t.presence for t in bloomcli.probe(DRAFT_FILE, values, column=column).totals}
    assert set(presence.values()) == {Presence.MAYBE}
    if column == "flag":
        return  # both of its values are there
    absent = {
        "big": ["-1", "7"],
        "day": ["1999-01-01", "2031-01-01"],
        "real": ["1000.5", "-0.125"],
        "small": ["1", "32767"],
        "text": ["text -1 ü", ""],
        "tiny": ["128", "-129"],
        "whole": ["1", "-1"],
        "wide": ["1000.5", "0.1"],
    }[column]
    totals = bloomcli.probe(DRAFT_FILE, absent, column=column).totals
    assert [t.presence for t in totals] == [Presence.ABSENT] * len(absent)


def _values(column: str) -> list[str]:
    """All values of a column of the file, as text; bloom has taken its filters away for the released reader."""
    source = read(MOSAIC / "released_types.mosaic", [column])[column].slice(0, 400)
    found = dict.fromkeys(str(v) for v in source.to_pylist() if v is not None)
    assert found
    return list(found)


def test_a_boolean_is_true_or_false_and_nothing_else(tmp_path: Path) -> None:
    table = pa.table({"yes": [True, True, None], "no": [False] * 3})
    bloomcli.add(write(tmp_path / "p", table), ["yes", "no"], output=tmp_path / "f", **DRAFT)
    for column, there, other in (("yes", "true", "false"), ("no", "0", "1")):
        totals = bloomcli.probe(tmp_path / "f", [there, other], column=column).totals
        assert [t.presence for t in totals] == [Presence.MAYBE, Presence.ABSENT]
    with pytest.raises(LiteralError, match="'perhaps' is not a value of column yes, BOOLEAN"):
        bloomcli.probe(tmp_path / "f", ["perhaps"], column="yes")


@pytest.mark.parametrize(("column", "value", "hashed"), [("tiny", "-3", b"\xfd"), ("small", "-3", b"\xfd\xff")])
def test_small_integers_are_hashed_at_their_own_width(column: str, value: str, hashed: bytes) -> None:
    verdict = bloomcli.probe(DRAFT_FILE, [value], column=column, explain=True).verdicts[0]
    assert [trail.hashed for trail in verdict.trail] == [hashed]
    assert verdict.trail[0].hash == blooms.hash_of(hashed)


def test_a_zero_is_looked_up_with_both_signs_and_nan_is_unknowable() -> None:
    report = bloomcli.probe(DRAFT_FILE, ["0", "nan"], column="wide", explain=True)
    assert [t.hashed for t in report.verdicts[0].trail] == [bytes(8), bytes(7) + b"\x80"]
    assert [t.presence for t in report.totals] == [Presence.MAYBE, Presence.UNKNOWN]


def test_a_row_group_of_nulls_is_skipped_without_a_filter() -> None:
    report = bloomcli.probe(MOSAIC / "released_types.mosaic", ["x"], column="nothing")
    assert {(v.presence, v.reason) for v in report.verdicts} == {(Presence.NO_FILTER, "only nulls")}


def test_a_columns_bytes_are_those_of_its_bucket(path: Path) -> None:
    parts = Parts.of(path.read_bytes())
    report = bloomcli.probe(path, ["3", "-3"], column="n")
    assert [v.chunk_bytes for v in report.verdicts[:1]] == [parts.groups[0].buckets[1].size]
    assert report.total_bytes == sum(b.size for g in parts.groups for b in g.buckets)


def test_dump_names_what_is_not_there(path: Path) -> None:
    for options, message in (({"row_group": 2}, "no row group 2; the file has 2"), ({"stripe": 1}, "no stripes")):
        with pytest.raises(UsageError, match=message):
            bloomcli.dump(path, column="id", **options)
    with pytest.raises(UsageError, match="column id has no filter in row group 0"):
        bloomcli.dump(path.with_name("plain.mosaic"), column="id")


def damaged(path: Path, parts: Parts) -> Path:
    """The parts, written as a file to the same directory."""
    bad = path.with_name("bad.mosaic")
    bad.write_bytes(parts.data())
    return bad


FIRST = 0
"""The first filter: of `id`, in row group 0."""


@pytest.mark.parametrize(
    ("at", "new", "id_", "message"),
    [
        (0, b"\2", "filter-header", "header version is 2"),
        (1, b"\2", "filter-algorithm", "algorithm is 2; only 1 is known"),
        (2, b"\0", "filter-hash", "hash is 0"),
        (3, b"\1", "filter-compression", "compression is 1"),
        (4, b"\x21", "filter-num-bytes", "a bitset of 33 bytes"),
        (4, b"\x00", "filter-num-bytes", "a bitset of 0 bytes"),
        (4, b"\x60", "filter-num-bytes", "a bitset of 96 bytes; it has to be 32 times a power of two"),
        (4, b"\x80\x80\x01", "filter-length", "header and bitset take 16391 bytes, the index says"),
        (4, b"\xff" * 5, "filter-header", "a varint of more than 5 bytes"),
        (4, b"\x80\x80\x80\x80\x08", "filter-too-large", "2147483648 bytes are more than 536870912"),
    ],
)
def test_a_filter_that_can_not_be_used_is_reported_and_harms_no_other(
    at: int, new: bytes, id_: str, message: str, path: Path
) -> None:
    parts = Parts.of(path.read_bytes())
    blob = parts.groups[0].blobs[FIRST]
    bad = damaged(path, parts.with_body(blob.offset + at, new))
    facts = bloomcli.inspect(bad).filters
    assert [message in (f.problem or "") for f in facts] == [True, False, False, False]
    finding = bloomcli.validate(bad, deep=True).findings[0]
    assert (finding.id, finding.severity, finding.row_group, finding.column) == (id_, Severity.ERROR, 0, "id")
    assert finding.offset is not None
    assert blob.offset <= finding.offset <= blob.offset + 4
    verdicts = bloomcli.probe(bad, ["1"], column="id").verdicts
    assert [v.presence for v in verdicts] == [Presence.UNKNOWN, Presence.ABSENT]
    with pytest.raises(CorruptFile, match=message):
        bloomcli.dump(bad, column="id")
    bloomcli.add(bad, ["id"], output=path.with_name("mended"), replace=True, **DRAFT)
    assert path.with_name("mended").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("changes", "id_", "message"),
    [
        ({"column": 7}, "filter-column", "of column 7, the file has 2"),
        ({"offset": 1 << 60}, "filter-offset", "runs past the data's end"),
        ({"length": 4_000_000_000}, "filter-offset", "runs past the data's end"),
        ({"length": 3}, "filter-header", "no filter header at the filter's offset"),
        ({"length": 0}, "filter-header", "no filter header at the filter's offset"),
        ({"length": 30}, "filter-length", "the index says 30"),
    ],
)
def test_an_index_with_wrong_claims_about_a_filter_is_reported(
    changes: dict[str, int], id_: str, message: str, path: Path
) -> None:
    bad = damaged(path, Parts.of(path.read_bytes()).with_blob(0, FIRST, **changes))
    findings = [f for f in bloomcli.validate(bad).findings if f.id != "filter-overlap"]
    assert [(f.id, f.severity) for f in findings] == [(id_, Severity.ERROR)]
    assert message in findings[0].message
    bloomcli.remove(bad, output=path.with_name("removed"))
    plain = path.with_name("plain.mosaic")
    assert read(path.with_name("removed")).equals(read(plain))


def test_a_filter_outside_the_data_can_not_stay_in_a_changed_file(path: Path) -> None:
    bad = damaged(path, Parts.of(path.read_bytes()).with_blob(0, FIRST, offset=1 << 60))
    with pytest.raises(CorruptFile, match="it can't stay in a changed file") as caught:
        bloomcli.remove(bad, columns=["n"], in_place=True)
    assert caught.value.field == "row_groups[0].filters[0]"


@pytest.mark.parametrize("module", ["raise ImportError", "raise OSError", "READER = None"])
def test_without_the_package_columns_can_not_be_decoded_and_the_rest_works(
    module: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is missing, or has no native library, or is another module without a reader."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "mosaic.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    for command in (
        lambda: bloomcli.add(path, ["id"], dry_run=True, replace=True, **DRAFT),
        lambda: bloomcli.validate(path, deep=True),
    ):
        with pytest.raises(UnsupportedError, match="paimon-mosaic, which isn't installed") as caught:
            command()
        assert caught.value.hint == install("mosaic")
    assert len(bloomcli.inspect(path).filters) == 4
    assert bloomcli.validate(path).ok
    assert bloomcli.probe(path, ["1"], column="id").totals[0].presence is Presence.MAYBE
    bloomcli.fold(path, fpp=0.5, output=path.with_name("folded"))
    bloomcli.remove(path, output=path.with_name("removed"))
    assert path.with_name("removed").read_bytes() == path.with_name("plain.mosaic").read_bytes()
