"""ORC files that are cut off or lie about lengths: a BloomError with the place, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import orcfiles
from support.damaged_orc import CHANGES, edited, refused, sample
from support.orcfiles import File

import bloomcli
from bloomcli.errors import BloomError, UnsupportedError
from bloomcli.formats.orc import spec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The sample, with a folder for damaged copies."""
    return sample(tmp_path)


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
