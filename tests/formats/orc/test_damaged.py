"""ORC files that are cut off, lie about lengths, or have damaged metadata: a BloomError with the place, and nothing
written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import orcfiles
from support.orcfiles import BLOOM_FILTER_UTF8, ROW_INDEX, File

import bloomcli
from bloomcli.errors import BloomError, CorruptFile, UnsupportedError
from bloomcli.formats.orc import spec
from bloomcli.model.file import Presence


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """60 rows in 3 stripes of 2 row groups, with filters on two of three columns, and a folder for damaged copies."""
    table = {"id": range(60), "text": [f"t{i}" for i in range(60)], "other": range(60)}
    orcfiles.write(tmp_path / "plain", table, stripe=20, stride=10)
    bloomcli.add(tmp_path / "plain", ["id", "text"], output=tmp_path / "f")
    (tmp_path / "work").mkdir()
    return tmp_path / "f"


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "inspect": lambda path, _: bloomcli.inspect(path),
    "validate": lambda path, _: bloomcli.validate(path, deep=True),
    "probe": lambda path, _: bloomcli.probe(path, ["3"], column="id"),
    "dump": lambda path, _: bloomcli.dump(path, column="text"),
    "add": lambda path, out: bloomcli.add(path, ["*"], output=out, replace=True),
    "add in place": lambda path, _: bloomcli.add(path, ["other"], in_place=True),
    "remove": lambda path, out: bloomcli.remove(path, output=out),
}
CHANGES = ("add", "add in place", "remove")


def refused(data: bytes, path: Path, match: str, *names: str, error: type[BloomError] = CorruptFile) -> None:
    """Every command (or the named ones) raises an error that names the file, and leaves no other file."""
    bad = path.parent / "work" / "bad.orc"
    bad.write_bytes(data)
    for name in names or COMMANDS:
        with pytest.raises(error, match=match) as caught:
            COMMANDS[name](bad, bad.with_name("out"))
        assert caught.value.path == str(bad)
        assert bad.read_bytes() == data
        assert [p.name for p in bad.parent.iterdir()] == ["bad.orc"]


def edited(path: Path, edit: Callable[[File], object], **made_right: bool) -> bytes:
    """The edited file's bytes."""
    file = orcfiles.split(path)
    edit(file)
    return file.join(**made_right)


@pytest.mark.slow
def test_a_file_that_is_cut_off_is_refused_at_every_length(tmp_path: Path) -> None:
    orcfiles.write(tmp_path / "plain", {"i": [1, None, 3], "s": ["a", "b", None]}, stride=2, compression="zlib")
    bloomcli.add(tmp_path / "plain", ["i"], output=tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    folder = tmp_path / "work"
    folder.mkdir()
    bad = folder / "f"
    for length in range(len(whole)):
        bad.write_bytes(whole[:length])
        for command in (lambda: bloomcli.inspect(bad), lambda: bloomcli.add(bad, ["s"], in_place=True)):
            with pytest.raises(BloomError) as caught:  # the last bytes may look like a future postscript
                command()
            assert caught.value.path == str(bad)
        assert bad.stat().st_size == length
        assert list(folder.iterdir()) == [bad]
    bad.write_bytes(whole)
    assert bloomcli.inspect(bad).rows == 3


@pytest.mark.parametrize(
    "data", [b"", b"O", b"\0", b"ORC", b"ORCORC", b"ORC\x00", b"ORC\xff", b"ORC\x01", b"ORC" + bytes(300)], ids=repr
)
def test_hardly_any_bytes_are_no_file(path: Path, data: bytes) -> None:
    refused(data, path, r"\w")


@pytest.mark.parametrize("length", [0, 1, 5, 100, 254, 255])
def test_a_postscripts_length_with_wrong_claims_is_refused(path: Path, length: int) -> None:
    data = path.read_bytes()
    assert length != data[-1]
    refused(data[:-1] + bytes([length]), path, r"postscript|footer|PostScript|no valid|file")


def postscript(**fields: Any) -> Callable[[File], None]:
    def edit(file: File) -> None:
        for name, value in fields.items():
            setattr(file.postscript, name, value)

    return edit


BIG = (1 << 64) - 1
POSTSCRIPTS: dict[str, tuple[Callable[[File], None], str]] = {
    "a footer longer than the file": (postscript(footer_length=1 << 20), "longer than the file"),
    "an endless footer": (postscript(footer_length=BIG), "longer than the file"),
    "metadata longer than the file": (postscript(metadata_length=1 << 20), "longer than the file"),
    "endless metadata": (postscript(metadata_length=BIG), "longer than the file"),
    "endless stripe statistics": (postscript(stripe_statistics_length=BIG), "longer than the file"),
    "metadata over the stripes": (postscript(metadata_length=600), "outside the file's data"),
    "no footer": (postscript(footer_length=0), "0 types"),
    "a footer cut off": (postscript(footer_length=20), "Footer|types"),
    "another magic": (postscript(magic="CRO"), "magic is 'CRO'"),
    "blocks too large": (postscript(compression_block_size=(1 << 23) + 1), "23 bits"),
    "endless blocks": (postscript(compression_block_size=BIG), "23 bits"),
}


@pytest.mark.parametrize("name", POSTSCRIPTS)
def test_a_postscript_that_cant_be_is_refused(path: Path, name: str) -> None:
    edit, match = POSTSCRIPTS[name]
    refused(edited(path, edit, tail=False), path, match)


def test_a_footer_beyond_what_is_read_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bloomcli.limits.FOOTER_MAX_BYTES", 100)
    refused(path.read_bytes(), path, "a footer of", error=UnsupportedError)


@pytest.mark.parametrize(("kind", "match"), [(3, "LZO"), (7, "compression kind 7"), (200, "compression kind 200")])
def test_a_codec_that_nobody_has_is_named(path: Path, kind: int, match: str) -> None:
    """LZO's chunks may be stored uncompressed, which any reader can read: this footer is compressed."""
    data = edited(path, postscript(compression=kind))
    footer = orcfiles.split(path).footer.SerializeToString()
    at = data.rindex(footer[-20:]) + 20
    packed = (len(footer) << 1).to_bytes(3, "little") + footer
    tail = spec.message("PostScript").FromString(data[at:-1])
    tail.footer_length = len(packed)
    raw = tail.SerializeToString()
    refused(data[: at - len(footer)] + packed + raw + bytes([len(raw)]), path, match, error=UnsupportedError)


def info(stripe: int, **fields: int) -> Callable[[File], None]:
    def edit(file: File) -> None:
        for name, value in fields.items():
            setattr(file.footer.stripes[stripe], name, value)

    return edit


STRIPES: dict[str, tuple[Callable[[File], None], str]] = {
    "at the magic": (info(0, offset=0), "stripe 0 lies at 0"),
    "behind the file": (info(2, offset=1 << 30), "stripe 2 lies at"),
    "at the end of all": (info(1, offset=BIG), "stripe 1 lies at"),
    "an endless index": (info(0, index_length=BIG), "stripe 0 lies at"),
    "endless data": (info(1, data_length=BIG), "stripe 1 lies at"),
    "an endless footer": (info(2, footer_length=1 << 40), "stripe 2 lies at"),
    "into the metadata": (lambda f: info(2, data_length=f.footer.stripes[2].data_length + 50)(f), "stripe 2 lies at"),
}


@pytest.mark.parametrize("name", STRIPES)
def test_a_stripe_outside_the_files_data_is_refused(path: Path, name: str) -> None:
    edit, match = STRIPES[name]
    refused(edited(path, edit, lengths=False), path, match)


def test_stripes_that_overlap_are_never_rewritten(path: Path) -> None:
    def overlap(file: File) -> None:
        file.footer.stripes[1].CopyFrom(file.footer.stripes[0])

    refused(edited(path, overlap, lengths=False), path, "overlaps", *CHANGES)

    def swap(file: File) -> None:
        first, second = file.footer.stripes[0], file.footer.stripes[1]
        kept = type(first).FromString(first.SerializeToString())
        first.CopyFrom(second)
        second.CopyFrom(kept)

    refused(edited(path, swap, lengths=False), path, "overlaps", *CHANGES)


@pytest.mark.parametrize(("position", "length"), [(0, 1 << 20), (1, 1 << 40), (5, BIG)])
def test_a_stream_beyond_its_stripe_is_refused(path: Path, position: int, length: int) -> None:
    def edit(file: File) -> None:
        part = file.stripes[0]
        part.footer.streams[position].length = length
        grown = len(part.footer.SerializeToString()) - part.info.footer_length
        part.info.footer_length += grown
        for info in file.footer.stripes[1:]:
            info.offset += grown

    refused(edited(path, edit, lengths=False), path, r"the streams take .* the stripe has")


def test_rows_that_do_not_exist_are_refused_where_they_are_needed(path: Path) -> None:
    data = edited(path, info(1, number_of_rows=2000), lengths=False)
    refused(data, path, "ends before the stripe's last value", "add", "add in place")
    found = [(f.stripe, f.problem) for f in bloomcli.inspect(path.parent / "work" / "bad.orc").filters if f.problem]
    assert found == [(1, "2 filters for 200 row groups")] * 2


@pytest.mark.parametrize(("rows", "stride"), [(1 << 50, 10), (BIG, 1)])
def test_endless_rows_are_no_endless_work(path: Path, rows: int, stride: int) -> None:
    def edit(file: File) -> None:
        file.footer.row_index_stride = stride
        file.footer.stripes[0].number_of_rows = rows

    refused(edited(path, edit, lengths=False), path, "row groups are more than a file has")


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
