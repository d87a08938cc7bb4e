"""Damaged ORC metadata: garbage, impossible streams, chunks, texts or types: a BloomError, and nothing written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import orcfiles
from support.damaged_orc import edited, refused, sample
from support.orcfiles import BLOOM_FILTER_UTF8, ROW_INDEX, File

import bloomcli
from bloomcli.errors import CorruptFile
from bloomcli.formats.orc import spec
from bloomcli.model.file import Presence


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The sample, with a folder for damaged copies."""
    return sample(tmp_path)


def nested(depth: int) -> bytes:
    """Groups (wire type 3) of an unknown field, never closed."""
    return b"\xfb\x07" * depth


GARBAGE = {
    "noise": bytes(range(255, 100, -3)),
    "a field cut off": b"\x0a\xff\xff\xff\xff\x0f",
    "a wire type that isn't": b"\x0f\x0f",
    "field zero": b"\x00\x01",
    "deep nesting": nested(100_000),
    "a varint without end": b"\x08" + b"\xff" * 30,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_footer_of_garbage_is_refused(path: Path, name: str) -> None:
    data = GARBAGE[name]
    file = orcfiles.split(path)
    body = path.read_bytes()[: file.end]
    file.postscript.footer_length, file.postscript.metadata_length = len(data), 0
    raw = file.postscript.SerializeToString()
    refused(body + data + raw + bytes([len(raw)]), path, "no valid Footer")


@pytest.mark.parametrize("name", GARBAGE)
def test_a_postscript_of_garbage_is_refused(path: Path, name: str) -> None:
    data = GARBAGE[name][:250]
    refused(path.read_bytes() + data + bytes([len(data)]), path, "no valid PostScript")


@pytest.mark.parametrize("name", GARBAGE)
def test_a_stripe_footer_of_garbage_is_refused(path: Path, name: str) -> None:
    data = GARBAGE[name]

    def edit(file: File) -> None:
        part = file.stripes[0]
        part.footer = Raw(data)
        part.footer.streams = []
        part.rest, part.streams = b"".join(part.streams), []

    refused(edited(path, edit), path, "no valid StripeFooter")


class Raw:
    """Replace a message by these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.streams: list[Any] = []

    def SerializeToString(self) -> bytes:  # noqa: N802  protobuf's name
        return self.data


@pytest.mark.parametrize("name", GARBAGE)
def test_a_filter_stream_of_garbage_is_a_problem_of_the_filter(path: Path, name: str) -> None:
    data = edited(path, lambda f: f.set_filters(1, GARBAGE[name], 1))
    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(data)
    problems = [(f.stripe, f.column) for f in bloomcli.inspect(bad).filters if f.problem]
    assert problems == [(1, "id")]
    assert [f.id for f in bloomcli.validate(bad, deep=True).findings] == ["filter-header"]


@pytest.mark.parametrize("where", ["footer", "stripe footer", "filters"])
def test_chunks_that_cant_be_are_refused_wherever_they_are(tmp_path: Path, where: str) -> None:
    (tmp_path / "work").mkdir()
    path = orcfiles.write(
        tmp_path / "f", {c: range(40) for c in ("id", "text", "other")}, compression="zlib", blooms=[1]
    )
    chunk, match = b"\xff\xff\x00abc", "runs past its stream"
    file = orcfiles.split(path)
    if where == "filters":
        file.stripes[0].streams[file.place(BLOOM_FILTER_UTF8, 1)] = chunk
        (tmp_path / "work" / "bad.orc").write_bytes(file.join())
        (fact,) = bloomcli.inspect(tmp_path / "work" / "bad.orc", columns=["id"]).filters
        assert fact.problem is not None
        assert match in fact.problem
        return
    whole = path.read_bytes()
    if where == "footer":
        tail = len(whole) - whole[-1] - 1
        file.postscript.footer_length = len(chunk)
        raw = file.postscript.SerializeToString()
        data = whole[: tail - orcfiles.split(path).postscript.footer_length] + chunk + raw + bytes([len(raw)])
    else:
        part = file.stripes[0]
        part.rest, part.streams, part.footer = b"".join(part.streams), [], Raw(b"")
        file.packed = lambda d: chunk if not d else File.packed(file, d)  # type: ignore[method-assign]
        data = file.join()
    refused(data, path, match)


@pytest.mark.parametrize("kind", [0, 2, 8])
def test_a_stream_that_occurs_twice_is_refused(path: Path, kind: int) -> None:
    """ORC C++ crashes where a filter passes for a second LENGTH stream."""

    def double(file: File) -> None:
        for _ in range(2 - sum(s[:2] == (kind, 2) for s in file.streams(0))):
            file.insert(1, kind, 2, b"\1\2\3")

    name = spec.name_of("StreamKind", kind)
    refused(edited(path, double), path, f"column 2 has two {name} streams")


def test_too_few_encodings_are_refused_before_anything_is_written(path: Path) -> None:
    def encodings(file: File) -> None:
        for part in file.stripes:
            del part.footer.columns[2:]

    match = r"stripe 0 has 2 encodings, none for column (text|other)"
    refused(edited(path, encodings), path, match, "add", "add in place")


def test_streams_of_unknown_columns_are_reported_and_kept_or_removed(path: Path) -> None:
    def foreign(file: File) -> None:
        file.insert(0, BLOOM_FILTER_UTF8, 77, b"whatever")
        file.insert(0, ROW_INDEX, (1 << 32) - 1, b"whatever")

    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(edited(path, foreign))
    assert [f.column for f in bloomcli.inspect(bad).filters if f.problem] == ["column 77"]
    bloomcli.add(bad, ["other"], output=bad.with_name("out"))
    kinds = [s[:2] for s in orcfiles.split(bad.with_name("out")).streams(0)]
    assert {(ROW_INDEX, (1 << 32) - 1), (BLOOM_FILTER_UTF8, 77), (BLOOM_FILTER_UTF8, 3)} <= set(kinds)
    bloomcli.remove(bad, output=bad.with_name("gone"))
    kinds = [s[:2] for s in orcfiles.split(bad.with_name("gone")).streams(0)]
    assert (BLOOM_FILTER_UTF8, 77) not in kinds
    assert (ROW_INDEX, (1 << 32) - 1) in kinds


def not_utf8(data: bytes, text: bytes) -> bytes:
    """The file with a text whose last byte isn't UTF-8."""
    assert text in data
    return data.replace(text, text[:-1] + b"\xff")


def test_a_name_that_is_no_utf8_is_refused(path: Path) -> None:
    refused(not_utf8(path.read_bytes(), b"\x05other"), path, "a name that is no UTF-8")


def test_a_writers_version_that_is_no_utf8_is_shown_escaped(path: Path) -> None:
    data = edited(path, lambda f: setattr(f.footer, "software_version", "2.2.2-abc"))
    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(not_utf8(data, b"2.2.2-abc"))
    assert "2.2.2-ab\\xff" in (bloomcli.inspect(bad).created_by or "")
    bloomcli.add(bad, ["other"], in_place=True)
    assert b"2.2.2-ab\xff" in bad.read_bytes()
    assert bloomcli.validate(bad, deep=True).ok


def test_statistics_that_are_no_utf8_are_bounds_all_the_same(path: Path) -> None:
    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(not_utf8(path.read_bytes(), b"\x02t9"))
    verdicts = bloomcli.probe(bad, ["t5", "tz"], column="text").verdicts
    assert [v.stats_skip for v in verdicts if v.value == "t5"] == [False, *[True] * 5]
    assert {v.stats_skip for v in verdicts if v.row_group == 0 and v.stripe == 0} == {False}


@pytest.mark.parametrize("kind", [13, 99])
def test_a_filter_of_a_type_whose_hash_isnt_known_has_no_answer(path: Path, kind: int) -> None:
    bad = path.parent / "work" / "bad.orc"

    def edit(file: File) -> None:
        file.footer.types[1].kind = kind
        file.footer.writer = spec.ORC_JAVA  # ORC C++'s filters of unions hold little

    bad.write_bytes(edited(path, edit))
    verdicts = bloomcli.probe(bad, ["3", "400"], column="id").verdicts
    expected = {Presence.MAYBE, Presence.ABSENT} if kind == 13 else {Presence.UNKNOWN}
    assert {v.presence for v in verdicts} == expected
    if kind != 13:  # a union's tags are numbers
        assert {"hashed isn't known" in (v.reason or "") for v in verdicts} == {True}


@pytest.mark.parametrize("column", ["text", "other"])
def test_a_column_that_isnt_the_decimals_its_type_says_is_refused(path: Path, column: str) -> None:
    lie = orcfiles.typed(2 if column == "text" else 3, kind=spec.value_of("TypeKind", "DECIMAL"), precision=9)
    orcfiles.edited(path, path.with_name("bad.orc"), lie)
    with pytest.raises(CorruptFile, match="the stream ends before the stripe's last value"):
        bloomcli.add(path.with_name("bad.orc"), [column], output=path.with_name("out"), replace=True)
    assert not path.with_name("out").exists()


def test_filters_of_no_row_group_are_compared_with_nothing(path: Path, tmp_path: Path) -> None:
    """The footer has no stride, and the filter streams are empty, as that demands."""

    def edit(file: File) -> None:
        file.footer.row_index_stride = 0
        for part in file.stripes:
            streams = zip(part.footer.streams, part.streams, strict=True)
            part.streams = [b"" if stream.kind == BLOOM_FILTER_UTF8 else data for stream, data in streams]

    report = bloomcli.validate(orcfiles.edited(path, tmp_path / "edited.orc", edit), deep=True)
    assert "value-missing" not in {finding.id for finding in report.findings}
